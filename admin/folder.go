package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ahp-gateway/ahp-gateway/internal/durable"
)

// Folder is a Store whose documents are the files ID.yaml of a folder. What is
// written there is JSON, which is YAML too. Of two processes that make a document
// of one id, one does; two that change the same document can overwrite each
// other's change in the instant between comparing and renaming. Neither leaves
// half of one.
type Folder struct {
	dir string
	mu  sync.Mutex // held from comparing a document to changing it
}

// unfinished is the pattern of files that are being written. The loader takes
// no hidden file for a tenant.
const unfinished = ".ahp-gateway-*.tmp"

// OpenFolder returns the store of a folder, which is there already. It removes
// what a crash has left half written, once it is sure that no other process is
// writing it; an error says that it cannot. The store is of use all the same: what
// it cannot do then, each of its methods says itself.
func OpenFolder(dir string) (*Folder, error) {
	f := &Folder{dir: dir}
	if err := durable.Sweep(dir, unfinished, durable.Abandoned); err != nil {
		return f, fmt.Errorf("admin: %w", err)
	}
	return f, nil
}

// Place implements Store: it is the path of a file.
func (f *Folder) Place(id string) string { return filepath.Join(f.dir, id+".yaml") }

// Get implements Store.
func (f *Folder) Get(_ context.Context, id string) ([]byte, error) {
	info, err := os.Lstat(f.Place(id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrAbsent
	case err != nil:
		return nil, fmt.Errorf("admin: %w", err)
	case !info.Mode().IsRegular():
		return nil, ErrForeign
	}
	file, err := os.Open(f.Place(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	}
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxStored))
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	return data, nil
}

// maxStored is how much of a document is read, in bytes: more than the loader takes.
const maxStored = 16<<20 + 1

// matches reports as an error that the document is not the one with the tag match.
func (f *Folder) matches(ctx context.Context, id, match string) error {
	data, err := f.Get(ctx, id)
	switch {
	case errors.Is(err, ErrAbsent):
		if match == "" {
			return nil
		}
		return ErrChanged
	case err != nil:
		return err
	case match == "" || tagOf(data) != match:
		return ErrChanged
	}
	return nil
}

// Put implements Store.
func (f *Folder) Put(ctx context.Context, id string, data []byte, match string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.matches(ctx, id, match); err != nil {
		return err
	}
	var err error
	if match == "" {
		err = durable.Create(f.Place(id), data, unfinished)
	} else {
		err = durable.ReplaceIf(f.Place(id), data, unfinished, func() error { return f.matches(ctx, id, match) })
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return ErrChanged
	case errors.Is(err, ErrChanged), errors.Is(err, ErrForeign):
		return err
	case err != nil:
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}

// Delete implements Store.
func (f *Folder) Delete(ctx context.Context, id, match string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.matches(ctx, id, match); err != nil {
		return err
	}
	if err := os.Remove(f.Place(id)); err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	if err := durable.SyncFolder(f.dir); err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}
