// Package durable changes files so that a crash leaves the old content or the
// new one, never a part of either.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace puts a file of mode 0600 with that content in the place of path, there
// or not, and returns once a crash cannot undo it. unfinished is a pattern of
// os.CreateTemp for the name that it has in the same folder until then: what a
// crash leaves is recognised by it. On error what was there is there still.
func Replace(path string, data []byte, unfinished string) error {
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
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return SyncFolder(dir)
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
