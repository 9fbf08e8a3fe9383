package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// keeper keeps the last good configuration in a folder: one file, which only its
// owner may read, and which is replaced as a whole.
type keeper struct {
	dir string
	sum [sha256.Size]byte // of what it holds, once that is known
}

// maxKept bounds the file, in bytes.
const maxKept = 512 << 20

func (k *keeper) path() string { return filepath.Join(k.dir, "last-good.yaml") }

// keep replaces what is kept by f, unless that is the same.
func (k *keeper) keep(f *config.File) error {
	const remark = "# The last configuration of ahp-gateway that was good. It is replaced whenever one is loaded.\n"
	data := append([]byte(remark), f.PrintWhole()...)
	sum := sha256.Sum256(data)
	if sum == k.sum {
		return nil
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	// Told now, and not when it is needed.
	if err := k.checkFolder(); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(k.dir, ".last-good-*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err == nil {
		err = temporary.Sync()
	}
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), k.path())
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	k.sum = sum
	return nil
}

// load returns what is kept. It takes nothing that somebody else could have
// written.
func (k *keeper) load() (*config.File, error) {
	f, err := k.read()
	if err != nil {
		return nil, fmt.Errorf("%s, the last good configuration: %w", k.path(), err)
	}
	return f, nil
}

func (k *keeper) read() (*config.File, error) {
	if err := k.checkFolder(); err != nil {
		return nil, err
	}
	info, err := os.Lstat(k.path()) // before it is opened, which for a pipe waits
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
	file, err := os.Open(k.path())
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
	f, _, err := config.ParseWhole(k.path(), data, nil)
	if err == nil {
		k.sum = sha256.Sum256(data)
	}
	return f, err
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
	if err := s.kept.keep(f); err != nil {
		s.log.Error("the configuration cannot be kept as the last good one", "folder", s.kept.dir, "error", err)
	}
}
