package config

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Digests are the SHA-256 digests of files by path. A file is read again only
// where its size, its time, its mode or the file itself is another one than
// when it was read, or where it had been changed so shortly before that a
// second change may have left the same time. They are safe for concurrent use.
type Digests struct {
	mu    sync.Mutex // not held while a file is read
	known map[string]*digested
	round int // of use: what is not used for a while is forgotten
}

// digested is a file as it was when it was read.
type digested struct {
	info  fs.FileInfo
	at    time.Time // before it was read
	sum   [sha256.Size]byte
	round int // of the last use
}

// settled is how old a file's time must be to tell it from a later change: some
// file systems know seconds only, and some two.
const settled = 3 * time.Second

// NewDigests returns the digests of no file yet.
func NewDigests() *Digests { return &Digests{known: make(map[string]*digested)} }

// Of returns the digest of the file at path. It is zero where the file cannot be
// read, is not a regular one, or is larger than 16 MiB, as no file that is read is.
func (d *Digests) Of(path string) [sha256.Size]byte {
	if info, err := os.Stat(path); err == nil {
		if sum, ok := d.lookup(path, info); ok {
			return sum
		}
	}
	at := time.Now()
	data, info, err := readFile(path, maxFile)
	if err != nil {
		return [sha256.Size]byte{}
	}
	return d.note(path, info, at, data)
}

// lookup returns the digest that is known of a file that now looks like info.
func (d *Digests) lookup(path string, info fs.FileInfo) (sum [sha256.Size]byte, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.known[path]
	if k == nil || !k.holds(info) {
		return sum, false
	}
	k.round = d.round
	return k.sum, true
}

// note takes a file that was read at some time or later, and returns its digest.
func (d *Digests) note(path string, info fs.FileInfo, at time.Time, data []byte) [sha256.Size]byte {
	sum := sha256.Sum256(data)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[path] = &digested{info: info, at: at, sum: sum, round: d.round}
	return sum
}

// Forget makes every file be read again when its digest is asked for.
func (d *Digests) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.known)
}

// unused is after how many rounds without a use a file is forgotten.
const unused = 4

// turn begins a new round.
func (d *Digests) turn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.round++
	for path, k := range d.known {
		if k.round < d.round-unused {
			delete(d.known, path)
		}
	}
}

// holds reports whether a file that now looks like info has the content that
// was read.
func (k *digested) holds(info fs.FileInfo) bool {
	return os.SameFile(k.info, info) && k.info.Size() == info.Size() && k.info.Mode() == info.Mode() &&
		k.info.ModTime().Equal(info.ModTime()) && k.at.Sub(info.ModTime()) > settled
}
