package sealed

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/durable"
)

const (
	// MaxValue bounds a secret, in bytes.
	MaxValue = 8 << 10
	// MaxSecrets bounds how many secrets a tenant may have.
	MaxSecrets = 64
	// maxFile bounds a file that is read: a value with all that is around it.
	maxFile = MaxValue + 256
	// maxFiles bounds what a tenant's folder may hold, secrets and other files.
	maxFiles = 16 * MaxSecrets
)

var (
	// ErrAbsent says that there is no such secret.
	ErrAbsent = errors.New("sealed: there is no such secret")
	// ErrFull says that the tenant has MaxSecrets secrets already.
	ErrFull = fmt.Errorf("sealed: the tenant has %d secrets", MaxSecrets)
)

// errIrregular says that what has the name of a secret cannot be one.
var errIrregular = errors.New("sealed: it is no regular file")

var secretName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// IsName reports whether s can be the name of a secret: 1 to 64 lower-case
// letters, digits, dots, - and _, starting with a letter or digit.
func IsName(s string) bool { return secretName.MatchString(s) }

// Secret is what is told of a secret.
type Secret struct {
	Name string
	// Set is when its value was set, in UTC and whole seconds.
	Set time.Time
	// Digest is eight hexadecimal digits that depend on the value and on the key
	// that has sealed it. It is "" where the secret does not open.
	Digest string
	// Outdated is true where another key than the first one has sealed it.
	Outdated bool
}

// Folder holds the secrets of tenants as files TENANT/NAME, which their owner
// alone may read. Tenants are ids and names are as IsName has them; whoever
// calls has seen to that. It is safe for concurrent use; two processes that
// change one secret at the same time leave one of the two values.
type Folder struct {
	dir  string
	keys []*Key
	mu   sync.Mutex // held while files are changed
}

// New returns the folder dir, which is made when the first secret is put into
// it. The first of keys, of which there is one at least, seals; all of them open.
func New(dir string, keys []*Key) *Folder { return &Folder{dir: dir, keys: keys} }

// Mark is the name of a file in a folder that is written anew after every
// change: who watches it knows when to look at the secrets again.
const Mark = ".changed"

// Open returns the value of a secret, or ErrAbsent. Its other errors say why the
// secret cannot be had, and never what is in it.
func (f *Folder) Open(tenant, name string) (string, error) {
	data, err := f.read(tenant, name)
	if err != nil {
		return "", err
	}
	value, _, _, err := f.open(tenant, name, data)
	return string(value), err
}

// open takes apart what is in the file of a secret.
func (f *Folder) open(tenant, name string, data []byte) (value []byte, set time.Time, by *Key, err error) {
	plain, by, err := open(f.keys, tenant, name, data)
	if err == nil && len(plain) < 8 {
		err = errors.New("it is no sealed secret")
	}
	if err != nil {
		return nil, time.Time{}, nil, fmt.Errorf("sealed: %w", err)
	}
	return plain[8:], time.Unix(int64(binary.BigEndian.Uint64(plain)), 0).UTC(), by, nil
}

// read returns the content of a secret's file, or ErrAbsent.
func (f *Folder) read(tenant, name string) ([]byte, error) {
	path := filepath.Join(f.dir, tenant, name)
	info, err := os.Lstat(path) // before it is opened, which for a pipe waits
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrAbsent
	case err != nil:
		return nil, fmt.Errorf("sealed: %w", plain(err))
	case !info.Mode().IsRegular():
		return nil, errIrregular
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	}
	if err != nil {
		return nil, fmt.Errorf("sealed: %w", plain(err))
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, fmt.Errorf("sealed: %w", plain(err))
	}
	return data, nil
}

// plain leaves the path out of an error: these are shown to those who know the
// secret by its name.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// List returns what is told of a tenant's secrets, by name.
func (f *Folder) List(tenant string) ([]Secret, error) {
	names, err := f.names(tenant)
	if err != nil {
		return nil, err
	}
	secrets := []Secret{}
	for _, name := range names {
		s := Secret{Name: name}
		data, err := f.read(tenant, name)
		if errors.Is(err, ErrAbsent) {
			continue // it was removed meanwhile
		}
		if err == nil {
			if value, set, by, err := f.open(tenant, name, data); err == nil {
				s.Set, s.Digest, s.Outdated = set, by.digestOf(tenant, name, value), by != f.keys[0]
			}
		}
		secrets = append(secrets, s)
	}
	return secrets, nil
}

// names returns the names of a tenant's secrets, sorted.
func (f *Folder) names(tenant string) ([]string, error) {
	dir, err := os.Open(filepath.Join(f.dir, tenant))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sealed: %w", err)
	}
	defer dir.Close()
	// Others may have put anything there; what is not looked at might be a secret.
	found, err := dir.Readdirnames(maxFiles + 1)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("sealed: %w", plain(err))
	}
	if len(found) > maxFiles {
		return nil, fmt.Errorf("sealed: the tenant's folder holds more than %d files", maxFiles)
	}
	names := slices.DeleteFunc(found, func(name string) bool { return !IsName(name) })
	slices.Sort(names)
	return names, nil
}

// Holds reports whether there are secrets of a tenant, whether they open or not:
// another tenant of that id would have them.
func (f *Folder) Holds(tenant string) (bool, error) {
	names, err := f.names(tenant)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		switch data, err := f.read(tenant, name); {
		case errors.Is(err, ErrAbsent), errors.Is(err, errIrregular):
		case err != nil:
			return false, err
		case strings.HasPrefix(string(data), magic):
			return true, nil
		}
	}
	return false, nil
}

// Put sets a secret, durably and at once: whoever reads finds the old value or
// the new one. undo, where there is no error, puts back what was there, unless
// another process has set or removed the secret since.
func (f *Folder) Put(tenant, name, value string, now time.Time) (undo func() error, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names, err := f.names(tenant)
	if err != nil {
		return nil, err
	}
	if len(names) >= MaxSecrets && !slices.Contains(names, name) {
		return nil, ErrFull
	}
	before, err := f.read(tenant, name)
	if err != nil && !errors.Is(err, ErrAbsent) {
		return nil, err
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	data := f.keys[0].seal(tenant, name, append(plain, value...))
	if err := f.write(tenant, name, data, always); err != nil {
		return nil, errors.Join(err, f.restore(tenant, name, data, before))
	}
	return f.undo(tenant, name, data, before), nil
}

// Delete removes a secret, as Put sets one. It fails with ErrAbsent where there
// is none.
func (f *Folder) Delete(tenant, name string) (undo func() error, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, err := f.read(tenant, name)
	if errors.Is(err, ErrAbsent) {
		_ = f.mark() // whoever removed it may have ended before others were told
	}
	if err != nil {
		return nil, err
	}
	if err := f.remove(tenant, name); err != nil {
		return nil, errors.Join(err, f.restore(tenant, name, nil, before))
	}
	return f.undo(tenant, name, nil, before), nil
}

func (f *Folder) undo(tenant, name string, ours, before []byte) func() error {
	return func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.restore(tenant, name, ours, before)
	}
}

// restore puts back the content before that a secret's file had, if it has ours
// now; nil is that there is none. What others have done since stays: where they
// have removed all of a tenant's secrets, nothing of it comes back.
func (f *Folder) restore(tenant, name string, ours, before []byte) error {
	still := func() error {
		now, err := f.read(tenant, name)
		switch {
		case err != nil && !errors.Is(err, ErrAbsent):
			return err
		case errors.Is(err, ErrAbsent) != (ours == nil) || !bytes.Equal(now, ours):
			return errOvertaken
		}
		return nil
	}
	err := still()
	switch {
	case err != nil:
	case before == nil:
		err = f.remove(tenant, name)
	default:
		err = f.write(tenant, name, before, still)
	}
	if errors.Is(err, errOvertaken) {
		return nil
	}
	return err
}

// Reseal seals by the first key what others of the keys have sealed, with the
// values and their times as they are, and returns how many secrets that were. One
// that another process changes or removes meanwhile is left as it is then. Where
// it is interrupted each secret is sealed by the one key or by the other.
func (f *Folder) Reseal(tenant string) (resealed int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names, err := f.names(tenant)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		data, err := f.read(tenant, name)
		if err != nil {
			return resealed, err
		}
		plain, by, err := open(f.keys, tenant, name, data)
		if err != nil {
			return resealed, fmt.Errorf("sealed: secret %s: %w", name, err)
		}
		if by == f.keys[0] {
			continue
		}
		// Another process may set it to another value meanwhile, which stays.
		err = f.write(tenant, name, f.keys[0].seal(tenant, name, plain), func() error {
			if now, err := f.read(tenant, name); err != nil || !bytes.Equal(now, data) {
				return errOvertaken
			}
			return nil
		})
		switch {
		case errors.Is(err, errOvertaken):
		case err != nil:
			return resealed, err
		default:
			resealed++
		}
	}
	return resealed, nil
}

// errOvertaken says that a secret is not the one any more that was resealed.
var errOvertaken = errors.New("sealed: the secret was changed meanwhile")

// Clear removes all secrets of a tenant, of which there may be none.
func (f *Folder) Clear(tenant string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := filepath.Join(f.dir, tenant)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	names, err := f.names(tenant)
	if err != nil {
		return err
	}
	_ = durable.Sweep(dir, unfinished, 0) // also what is being written: it is removed then
	for _, name := range names {          // nothing else that may stand there
		data, err := f.read(tenant, name)
		if err == nil && strings.HasPrefix(string(data), magic) {
			err = os.Remove(filepath.Join(dir, name))
		}
		if err != nil && !errors.Is(err, ErrAbsent) && !errors.Is(err, errIrregular) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sealed: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // something else is in it
		return errors.Join(durable.SyncFolder(dir), f.mark())
	}
	return errors.Join(durable.SyncFolder(f.dir), f.mark())
}

// unfinished is the pattern of the names of files that are being written.
const unfinished = ".ahp-gateway-*"

// always is a condition of write that holds.
func always() error { return nil }

// write replaces the file of a secret as a whole, unless still returns an error
// in the instant before.
func (f *Folder) write(tenant, name string, data []byte, still func() error) error {
	dir := filepath.Join(f.dir, tenant)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("sealed: %w", err)
	}
	_ = durable.Sweep(dir, unfinished, durable.Abandoned) // what cannot be swept is in nobody's way
	if err := durable.ReplaceIf(filepath.Join(dir, name), data, unfinished, still); err != nil {
		return fmt.Errorf("sealed: %w", err)
	}
	return f.mark()
}

func (f *Folder) remove(tenant, name string) error {
	dir := filepath.Join(f.dir, tenant)
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sealed: %w", err)
	}
	return errors.Join(durable.SyncFolder(dir), f.mark())
}

// mark writes the file Mark.
func (f *Folder) mark() error {
	_ = durable.Sweep(f.dir, unfinished, durable.Abandoned)
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails: it ends the process instead
	if err := durable.Replace(filepath.Join(f.dir, Mark), []byte(hex.EncodeToString(random[:])+"\n"), unfinished); err != nil {
		return fmt.Errorf("sealed: %w", err)
	}
	return nil
}
