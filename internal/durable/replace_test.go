package durable

import (
	"os"
	"path/filepath"
	"testing"
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
