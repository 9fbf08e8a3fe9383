// Package durable changes files so that a crash leaves the old content or the
// new one, never a part of either.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Replace puts a file of mode 0600 with that content in the place of path, there
// or not, and returns once a crash cannot undo it. unfinished is a pattern of
// os.CreateTemp for the name that it has in the same folder until then: what a
// crash leaves is recognised by it. On error what was there is there still.
func Replace(path string, data []byte, unfinished string) error {
	return ReplaceIf(path, data, unfinished, func() error { return nil })
}

// ReplaceIf is Replace unless still returns an error, which it returns then.
// still is called in the instant before the new content takes the place of the
// old one, when all that takes time is done: what another process does in
// that instant alone goes unnoticed.
func ReplaceIf(path string, data []byte, unfinished string, still func() error) error {
	return place(path, data, unfinished, func(finished string) error {
		if err := still(); err != nil {
			return err
		}
		return os.Rename(finished, path)
	})
}

// Create is Replace for a path where there is nothing, or else it fails with
// fs.ErrExist: of two processes that create one path, one succeeds. Where the file
// system has no hard links that does not hold for the same instant.
func Create(path string, data []byte, unfinished string) error {
	return place(path, data, unfinished, func(finished string) error {
		switch err := os.Link(finished, path); {
		case err == nil:
			_ = os.Remove(finished) // it is there already, whatever is left beside it
			return nil
		case errors.Is(err, fs.ErrExist):
			return err
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fs.ErrExist)
		}
		return os.Rename(finished, path)
	})
}

// place writes a file under another name and has settle give it its own.
func place(path string, data []byte, unfinished string, settle func(finished string) error) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, unfinished) // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = settle(file.Name())
	}
	if err != nil {
		if left := os.Remove(file.Name()); !errors.Is(left, fs.ErrNotExist) {
			err = errors.Join(err, left)
		}
		return err
	}
	return SyncFolder(dir)
}

// Abandoned is after how long a file that nobody has finished is one that a
// crash has left: until then another process may be writing it.
const Abandoned = time.Hour

// Sweep removes the files in a folder whose names match unfinished and that have
// not changed for so long.
func Sweep(dir, unfinished string, since time.Duration) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if left, _ := filepath.Match(unfinished, e.Name()); !left {
			continue
		}
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) >= since {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // its writer may have finished it
			return err
		}
	}
	return nil
}

// SyncFolder returns once a crash cannot undo what was renamed in a folder or
// removed from it.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
