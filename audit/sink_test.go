package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func mustFileSink(t *testing.T, path string) *FileSink {
	t.Helper()
	s, err := NewFileSink(path)
	if err != nil {
		t.Fatalf("NewFileSink(%s) = %v; want nil", path, err)
	}
	return s
}

func write(t *testing.T, s Sink, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err := s.Write([]byte(line + "\n")); err != nil {
			t.Fatalf("Write(%s) = %v; want nil", line, err)
		}
	}
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFileSinkAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for _, line := range []string{"1", "2"} {
		s := mustFileSink(t, path)
		write(t, s, line)
		if err := s.Close(); err != nil {
			t.Fatalf("Close() = %v; want nil", err)
		}
	}
	if got, want := contents(t, path), "1\n2\n"; got != want {
		t.Errorf("file = %q; want %q", got, want)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Mode().Perm(), os.FileMode(0o600); got != want {
		t.Errorf("mode = %v; want %v", got, want)
	}
}

func TestFileSinkContinuesAfterTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte("1\nto"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustFileSink(t, path)
	write(t, s, "2", "3")
	if err := s.Close(); err != nil {
		t.Fatalf("Close() = %v; want nil", err)
	}
	if got, want := contents(t, path), "1\nto\n2\n3\n"; got != want {
		t.Errorf("file = %q; want %q", got, want)
	}
}

func TestFileSinkReopen(t *testing.T) {
	dir := t.TempDir()
	path, moved := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "audit.jsonl.1")
	s := mustFileSink(t, path)
	write(t, s, "1")
	if err := s.Flush(); err != nil {
		t.Fatalf("Flush() = %v; want nil", err)
	}
	write(t, s, "2")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if err := s.Reopen(); err != nil {
		t.Fatalf("Reopen() = %v; want nil", err)
	}
	write(t, s, "3")
	if err := s.Flush(); err != nil {
		t.Fatalf("Flush() = %v; want nil", err)
	}
	if got, want := contents(t, moved), "1\n"; got != want {
		t.Errorf("moved file = %q; want %q", got, want)
	}
	if got, want := contents(t, path), "2\n3\n"; got != want {
		t.Errorf("new file = %q; want %q", got, want)
	}

	// The directory is gone: the sink goes on with the file it has.
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir + ".gone") })
	if err := s.Reopen(); err == nil {
		t.Error("Reopen() without the directory = nil; want an error")
	}
	write(t, s, "4")
	if err := s.Close(); err != nil {
		t.Fatalf("Close() = %v; want nil", err)
	}
	if got, want := contents(t, filepath.Join(dir+".gone", "audit.jsonl")), "2\n3\n4\n"; got != want {
		t.Errorf("file after a failed Reopen = %q; want %q", got, want)
	}
}

func TestFileSinkRefusesDirectory(t *testing.T) {
	if _, err := NewFileSink(t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "audit: ") {
		t.Errorf("NewFileSink(directory) = %v; want an error that begins with audit:", err)
	}
}

// /dev/full answers every write as a full disk does.
func TestFileSinkFullDisk(t *testing.T) {
	s := mustFileSink(t, "/dev/full")
	for range 3 {
		write(t, s, "1")
		if err := s.Flush(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Flush() to a full disk = %v; want %v", err, syscall.ENOSPC)
		}
	}
	if err := s.Flush(); err != nil {
		t.Errorf("Flush() with nothing held back = %v; want nil: what was lost is not tried again", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close() = %v; want nil", err)
	}
}

// limited fails from the moment its room is used up.
type limited struct {
	bytes.Buffer
	room int
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.room {
		return 0, io.ErrShortWrite
	}
	l.room -= len(p)
	return l.Buffer.Write(p)
}

func TestWriterSink(t *testing.T) {
	w := &limited{room: 4}
	s := NewWriterSink(w)
	write(t, s, "1", "2")
	if got := w.String(); got != "" {
		t.Errorf("writer has %q before Flush; want nothing", got)
	}
	if err := s.Flush(); err != nil {
		t.Fatalf("Flush() = %v; want nil", err)
	}
	write(t, s, "3")
	if err := s.Flush(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Flush() to a failing writer = %v; want %v", err, io.ErrShortWrite)
	}
	w.room = 8
	write(t, s, "4")
	if err := s.Close(); err != nil {
		t.Fatalf("Close() = %v; want nil", err)
	}
	if got, want := w.String(), "1\n2\n4\n"; got != want {
		t.Errorf("writer has %q; want %q", got, want)
	}
}

// A sink by itself holds back a bounded amount.
func TestSinksFlushThemselves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	file := mustFileSink(t, path)
	var out bytes.Buffer
	writer := NewWriterSink(&out)
	line := strings.Repeat("x", sinkBytes-1)
	write(t, file, line)
	write(t, writer, line)
	if got := len(contents(t, path)); got != sinkBytes {
		t.Errorf("file has %d bytes; want %d", got, sinkBytes)
	}
	if got := out.Len(); got != sinkBytes {
		t.Errorf("writer has %d bytes; want %d", got, sinkBytes)
	}
	if err := file.Close(); err != nil {
		t.Errorf("Close() = %v; want nil", err)
	}
}
