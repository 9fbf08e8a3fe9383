package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first", "second, which is longer", ""} {
		if err := Replace(path, []byte(text), ".unfinished-*"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(got) != text || info.Mode() != 0o600 {
			t.Errorf("Replace left %q, %v, mode %v; want %q, mode 0600", got, err, info.Mode(), text)
		}
	}
	// A folder cannot be replaced, and nothing is left of the attempt.
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(folder, []byte("x"), ".unfinished-*"); err == nil {
		t.Error("Replace of a folder = nil; want an error")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v; want the file and the folder", entries, err)
	}
	if err := Replace(filepath.Join(dir, "absent", "file"), nil, "*"); err == nil {
		t.Error("Replace in a folder that is not there = nil; want an error")
	}
}

// What another has done meanwhile is seen in the last instant, and stays.
func TestReplaceIf(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	changed := errors.New("it has changed")
	err := ReplaceIf(path, []byte("ours"), ".unfinished-*", func() error {
		left, err := filepath.Glob(filepath.Join(dir, ".unfinished-*"))
		if err != nil || len(left) != 1 {
			t.Errorf("unfinished are %q, %v; want the whole content to be written by then", left, err)
		}
		if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
			t.Fatal(err)
		}
		return changed
	})
	holds(t, dir, "file", "theirs")
	if !errors.Is(err, changed) {
		t.Errorf("ReplaceIf = %v; want %v", err, changed)
	}
	if err := ReplaceIf(path, []byte("ours"), ".unfinished-*", func() error { return nil }); err != nil {
		t.Errorf("ReplaceIf = %v; want none", err)
	}
	holds(t, dir, "file", "ours")
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, want := range []error{nil, fs.ErrExist} {
		if err := Create(path, []byte("first"), ".unfinished-*"); !errors.Is(err, want) {
			t.Errorf("Create = %v; want %v", err, want)
		}
		holds(t, dir, "file", "first")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", path); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("first"), ".unfinished-*"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a link that leads nowhere = %v; want %v", err, fs.ErrExist)
	}
}

// holds fails the test unless a folder holds one file alone, with that content.
func holds(t testing.TB, dir, name, content string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v; want %s alone", entries, err, name)
	}
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
		t.Errorf("%s = %q, %v; want %q", name, got, err, content)
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"file": 0, "old": 2 * Abandoned, ".unfinished-1": 0, ".unfinished-2": 2 * Abandoned} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		since time.Duration
		left  int
	}{{Abandoned, 3}, {0, 2}} {
		if err := Sweep(dir, ".unfinished-*", c.since); err != nil {
			t.Errorf("Sweep = %v; want none", err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != c.left {
			t.Errorf("Sweep(%v) has left %v; want %d", c.since, entries, c.left)
		}
	}
	if err := Sweep(filepath.Join(dir, "absent"), "*", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Sweep of no folder = %v; want %v", err, fs.ErrNotExist)
	}
}
