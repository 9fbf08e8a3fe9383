package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/internal/durable"
)

// keeper keeps the last good configuration in a folder, and the documents of the
// store that replicas share: two files, which only their owner may read, and each
// of which is replaced as a whole.
type keeper struct {
	dir    string
	sum    [sha256.Size]byte // of the configuration that it holds, once that is known
	stored [sha256.Size]byte // likewise, of the documents
}

// maxKept bounds a file, in bytes: the documents of a full store are a third more as
// they are kept, and there may be an earlier one of some.
const maxKept = 1 << 30

func (k *keeper) path() string { return filepath.Join(k.dir, "last-good.yaml") }

// keep replaces what is kept by f, unless that is the same.
func (k *keeper) keep(f *config.File) error {
	const remark = "# The last configuration of ahp-gateway that was good. It is replaced whenever one is loaded.\n"
	data := append([]byte(remark), f.WithoutStored().PrintWhole()...)
	return k.replace(k.path(), data, &k.sum)
}

// replace makes the file at path hold data, unless its digest is sum.
func (k *keeper) replace(path string, data []byte, known *[sha256.Size]byte) error {
	sum := sha256.Sum256(data)
	if sum == *known {
		return nil
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	// Told now, and not when it is needed.
	if err := k.checkFolder(); err != nil {
		return err
	}
	if err := durable.Replace(path, data, ".last-good-*"); err != nil {
		return err
	}
	*known = sum
	return nil
}

// load returns the configuration that is kept, with the documents of the store
// that l has. It takes nothing that somebody else could have written.
func (k *keeper) load(l *config.Loader) (*config.File, error) {
	data, err := k.read(k.path())
	if err == nil {
		var f *config.File
		if f, _, err = l.LoadKept(k.path(), data); err == nil {
			k.sum = sha256.Sum256(data)
			return f, nil
		}
	}
	return nil, fmt.Errorf("%s, the last good configuration: %w", k.path(), err)
}

func (k *keeper) read(path string) ([]byte, error) {
	if err := k.checkFolder(); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path) // before it is opened, which for a pipe waits
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	case !isOurs(info):
		return nil, errors.New("belongs neither to the user of this process nor to root")
	case info.Mode().Perm()&0o022 != 0:
		return nil, errors.New("can be written by others than its owner: make it 0600")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if opened, err := file.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(errors.New("was replaced while it was opened"), err)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxKept+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxKept {
		return nil, errors.New("is too large")
	}
	return data, nil
}

// keptDocuments are the documents of the store as they are kept.
type keptDocuments struct {
	Epoch     string            `json:"epoch"`
	Documents map[string][]byte `json:"documents"`
	// LeftOut are those of them that are not served, with the last good one of
	// their tenants, or null where there is none.
	LeftOut map[string][]byte `json:"leftOut,omitempty"`
}

// good returns the last good documents.
func (d keptDocuments) good() map[string][]byte {
	good := maps.Clone(d.Documents)
	for id, earlier := range d.LeftOut {
		if earlier == nil {
			delete(good, id)
		} else {
			good[id] = earlier
		}
	}
	return good
}

// leave notes which of the documents are not those that good has.
func (d *keptDocuments) leave(good map[string][]byte) {
	for id, data := range d.Documents {
		if earlier, ok := good[id]; !ok || !bytes.Equal(earlier, data) {
			if d.LeftOut == nil {
				d.LeftOut = make(map[string][]byte)
			}
			d.LeftOut[id] = earlier
		}
	}
}

func (k *keeper) documentsPath() string { return filepath.Join(k.dir, "stored-tenants.json") }

// keepDocuments replaces what is kept of the store, unless that is the same.
func (k *keeper) keepDocuments(d keptDocuments) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return k.replace(k.documentsPath(), data, &k.stored)
}

// documents returns what is kept of the store, nothing where there is no file.
func (k *keeper) documents() (d keptDocuments, err error) {
	data, err := k.read(k.documentsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		return keptDocuments{}, fmt.Errorf("%s, the documents of the store: %w", k.documentsPath(), err)
	}
	k.stored = sha256.Sum256(data)
	return d, nil
}

// checkFolder reports as an error that anybody could put a file into the folder,
// or that it is of somebody else. A group may write there, as it may in volumes
// that are shared by group: a file of another one's is not taken.
func (k *keeper) checkFolder() error {
	info, err := os.Stat(k.dir)
	switch {
	case err != nil:
		return err
	case !isOurs(info):
		return errors.New("the folder belongs neither to the user of this process nor to root")
	case info.Mode().Perm()&0o002 != 0:
		return errors.New("everybody can write to the folder: make it 0700, or name one below it that is not there yet")
	}
	return nil
}

// keep keeps what is served from now on, where that is asked for. That it cannot
// be kept does not keep it from being served.
func (s *server) keep(f *config.File) {
	if s.kept == nil {
		return
	}
	if follower := s.follower.Load(); follower != nil {
		if !follower.isKnown() {
			return // f lacks its tenants: what is kept may have them
		}
		documents := follower.keep()
		documents.leave(s.loader.Good())
		if err := s.kept.keepDocuments(documents); err != nil {
			s.log.Error("the documents of the store cannot be kept", "folder", s.kept.dir, "error", err)
		}
	}
	if err := s.kept.keep(f); err != nil {
		s.log.Error("the configuration cannot be kept as the last good one", "folder", s.kept.dir, "error", err)
	}
}
