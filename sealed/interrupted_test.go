package sealed_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/sealed"
)

// several are the names of secrets that are resealed together.
var several = []string{"a", "b", "c", "d", "e"}

// ofAll returns the folder with the keys, the first of which seals.
func ofAll(t testing.TB, dir string, keys ...string) *sealed.Folder {
	t.Helper()
	var all []*sealed.Key
	for _, text := range keys {
		all = append(all, key(t, text))
	}
	return sealed.New(dir, all)
}

// However far resealing has come when the process ends, between any two of the
// things that it does to files, each secret is there, and the next one
// brings it to its end.
func TestResealThatIsInterrupted(t *testing.T) {
	// What is there before and after each secret is resealed.
	before, after := make(map[string][]byte), make(map[string][]byte)
	whole := t.TempDir()
	for _, name := range several {
		put(t, ofAll(t, whole, first), "acme", name, "value of "+name)
	}
	contents := func(into map[string][]byte) {
		for name, data := range files(t, filepath.Join(whole, "acme")) {
			into[name] = []byte(data)
		}
	}
	contents(before)
	if n, err := ofAll(t, whole, later, first).Reseal("acme"); n != len(several) || err != nil {
		t.Fatalf("Reseal = %d, %v; want all", n, err)
	}
	contents(after)

	for done := range len(several) + 1 {
		next := after[several[min(done, len(several)-1)]]
		for what, left := range map[string][]byte{"nothing": nil, "an empty file": {}, "half a file": next[:len(next)/2], "a whole file": next} {
			for _, in := range []string{"acme", ""} { // of the next secret, or of the mark
				dir := t.TempDir()
				if err := os.Mkdir(filepath.Join(dir, "acme"), 0o700); err != nil {
					t.Fatal(err)
				}
				write := func(path string, data []byte) {
					t.Helper()
					if err := os.WriteFile(filepath.Join(dir, path), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				for i, name := range several {
					if i < done {
						write("acme/"+name, after[name])
					} else {
						write("acme/"+name, before[name])
					}
				}
				if left != nil {
					write(filepath.Join(in, ".ahp-gateway-123"), left)
				}
				point := fmt.Sprintf("%d resealed, %s left in %q", done, what, in)
				both := ofAll(t, dir, later, first)
				for _, name := range several {
					expect(t, both, "acme", name, "value of "+name)
				}
				list, err := both.List("acme")
				if err != nil || len(list) != len(several) {
					t.Errorf("%s: List = %+v, %v; want all secrets", point, list, err)
				}
				for i, s := range list {
					if s.Outdated != (i >= done) || s.Digest == "" {
						t.Errorf("%s: %+v; want it outdated %t", point, s, i >= done)
					}
				}
				if n, err := both.Reseal("acme"); n != len(several)-done || err != nil {
					t.Errorf("%s: Reseal = %d, %v; want the other %d", point, n, err, len(several)-done)
				}
				for _, name := range several {
					expect(t, ofAll(t, dir, later), "acme", name, "value of "+name)
				}
			}
		}
	}
}

// resealing is set for a process that does nothing but reseal.
const resealing = "AHP_TEST_RESEALING"

// TestResealer is what such a process does, back and forth between two keys,
// until it is killed. It writes a dot after each time.
func TestResealer(t *testing.T) {
	dir := os.Getenv(resealing)
	if dir == "" {
		t.Skip("it is started by other tests")
	}
	for {
		for _, keys := range [][]string{{later, first}, {first, later}} {
			if _, err := ofAll(t, dir, keys...).Reseal("acme"); err != nil {
				fmt.Fprintf(os.Stdout, "!%v\n", err)
				return
			}
			fmt.Fprint(os.Stdout, ".")
		}
	}
}

// resealer starts one.
func resealer(t testing.TB, dir string) (cmd *exec.Cmd, out io.Reader) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestResealer$")
	cmd.Env = append(os.Environ(), resealing+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, out
}

// dots waits until a resealer has resealed so many times.
func dots(out io.Reader, n int) error {
	seen := make([]byte, n)
	if _, err := io.ReadFull(out, seen); err != nil || !bytes.Equal(seen, bytes.Repeat([]byte("."), n)) {
		rest, _ := io.ReadAll(out)
		return fmt.Errorf("a resealer wrote %q, %v; want %d dots", append(seen, rest...), err, n)
	}
	return nil
}

// A process that is killed while it reseals leaves every secret.
func TestResealerIsKilled(t *testing.T) {
	dir := t.TempDir()
	for _, name := range several {
		put(t, ofAll(t, dir, first), "acme", name, "value of "+name)
	}
	for round := range 12 {
		cmd, out := resealer(t, dir)
		if err := dots(out, 1+round%4); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for _, name := range several {
			expect(t, ofAll(t, dir, later, first), "acme", name, "value of "+name)
		}
	}
}

// Two processes that reseal the same secrets, to different keys, and one that sets
// them meanwhile, keep each other from nothing.
func TestTwoResealers(t *testing.T) {
	dir := t.TempDir()
	f := ofAll(t, dir, later, first)
	set := func(n int) {
		for _, name := range several {
			put(t, f, "acme", name, fmt.Sprint("value ", n, " of ", name))
		}
	}
	set(0)
	var all sync.WaitGroup
	for range 2 {
		_, out := resealer(t, dir)
		all.Go(func() {
			if err := dots(out, 20); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range 10 {
		set(n)
	}
	all.Wait()
	list, err := f.List("acme")
	if err != nil || len(list) != len(several) || slices.ContainsFunc(list, func(s sealed.Secret) bool { return s.Digest == "" }) {
		t.Errorf("List = %+v, %v; want all secrets", list, err)
	}
}
