package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
)

func TestEntriesOf(t *testing.T) {
	// Without links of the system's own, such as those of a temporary folder.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, "plain.yaml"), "")
	put(t, filepath.Join(dir, "..1/gateway.yaml"), "")
	put(t, filepath.Join(dir, "sub/deep/x"), "")
	link("..1", "..data")
	link("..data/gateway.yaml", "gateway.yaml")
	link(filepath.Join(dir, "plain.yaml"), "absolute")
	link("sub/deep", "folder")
	link("loop", "loop")
	link("gone/away", "dangling")
	link("folder/../../plain.yaml", "up")
	for name, want := range map[string][]string{
		"plain.yaml":   {"plain.yaml"},
		"gateway.yaml": {"gateway.yaml", "..data", "..1/gateway.yaml"},
		"absolute":     {"absolute", "plain.yaml"},
		"folder/x":     {"folder", "sub/deep/x"},
		"absent":       {"absent"},
		"absent/x":     {"absent"},
		"dangling":     {"dangling", "gone"},
		// ".." leads out of where the link led, not of where it stood.
		"up": {"up", "folder", "plain.yaml"},
	} {
		for i := range want {
			want[i] = filepath.Join(dir, want[i])
		}
		if got := entriesOf(filepath.Join(dir, name)); !slices.Equal(got, want) {
			t.Errorf("entriesOf(%s) = %q; want %q", name, got, want)
		}
	}
	if got := entriesOf(filepath.Join(dir, "loop")); len(got) > maxLinks+1 {
		t.Errorf("entriesOf(a link to itself) has %d entries; want an end", len(got))
	}
}

func TestContents(t *testing.T) {
	dir := folder(t, "a", "1", "b", "2")
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	files := []string{a, b, c, dir}
	before := contentsOf(config.NewDigests(), files)
	if got := before.differing(contentsOf(config.NewDigests(), files)); len(got) != 0 {
		t.Errorf("differing of what has not changed = %q; want none", got)
	}
	put(t, a, "1") // the same again
	put(t, b, "3")
	put(t, c, "")
	if got, want := before.differing(contentsOf(config.NewDigests(), files)), []string{b, c}; !slices.Equal(got, want) {
		t.Errorf("differing = %q; want %q", got, want)
	}
	if got, want := before.differing(contentsOf(config.NewDigests(), files[:1])), []string{dir, b, c}; !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("differing of fewer files = %q; want %q", got, want)
	}
}

// changes runs w until it reports changes, as serve does.
func changes(t *testing.T, w *watcher) []string {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e := <-w.events:
			w.note(e)
		case err := <-w.errors:
			w.trouble(err)
		case <-w.due:
			if changed := w.stale(); len(changed) > 0 {
				return changed
			}
		case <-deadline:
			t.Fatalf("no change was noticed; want one")
		}
	}
}

func watching(t *testing.T, poll time.Duration, files ...string) *watcher {
	t.Helper()
	w := newWatcher(slog.New(slog.DiscardHandler), config.NewDigests(), poll)
	t.Cleanup(w.close)
	w.watch(files, contentsOf(config.NewDigests(), files))
	return w
}

func TestWatcher(t *testing.T) {
	dir := folder(t, "a", "1", "sub/b", "1")
	a, b, late := filepath.Join(dir, "a"), filepath.Join(dir, "sub/b"), filepath.Join(dir, "late/c")
	w := watching(t, time.Hour, a, b, late)
	for _, c := range []struct {
		what   string
		change func() error
		want   string
	}{
		{"replaced", func() error { put(t, a, "2"); return nil }, a},
		{"written", func() error { return os.WriteFile(b, []byte("2"), 0o600) }, b},
		{"removed", func() error { return os.Remove(a) }, a},
		{"created", func() error { put(t, a, "3"); return nil }, a},
		{"folder moved away", func() error { return os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "old")) }, b},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		if got := changes(t, w); !slices.Equal(got, []string{c.want}) {
			t.Errorf("after %s: changed = %q; want %q", c.what, got, c.want)
		}
	}
}

// A folder that comes later is watched once something else is noticed, or once
// it is time to look again.
func TestWatcherOfWhatIsNotThereYet(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new/folder/file")
	w := watching(t, time.Hour, path)
	put(t, path, "1")
	if got := changes(t, w); !slices.Equal(got, []string{path}) {
		t.Errorf("changed = %q; want %q", got, path)
	}
	put(t, path, "2")
	if got := changes(t, w); !slices.Equal(got, []string{path}) {
		t.Errorf("changed = %q; want %q", got, path)
	}
}

// Of a folder of tenants it is noticed what comes, changes and goes, also
// behind links.
func TestWatcherOfTenants(t *testing.T) {
	dir := folder(t, "tenants/a.yaml", "1", "elsewhere/b.yaml", "1")
	tenants := filepath.Join(dir, "tenants")
	a, b, c := filepath.Join(tenants, "a.yaml"), filepath.Join(tenants, "b.yaml"), filepath.Join(tenants, "c.json")
	if err := os.Symlink("../elsewhere/b.yaml", b); err != nil {
		t.Fatal(err)
	}
	w := watching(t, time.Hour, tenants)
	for _, step := range []struct {
		what   string
		change func() error
		want   []string
	}{
		{"created", func() error { put(t, c, "1"); return nil }, []string{c}},
		{"written", func() error { return os.WriteFile(a, []byte("2"), 0o600) }, []string{a}},
		{"written behind a link", func() error { put(t, filepath.Join(dir, "elsewhere/b.yaml"), "2"); return nil }, []string{b}},
		{"removed", func() error { return os.Remove(c) }, []string{c}},
		{"renamed", func() error { return os.Rename(a, c) }, []string{a, c}},
		{"folder moved away", func() error { return os.Rename(tenants, filepath.Join(dir, "old")) }, []string{b, c}},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if got := changes(t, w); !slices.Equal(got, step.want) {
			t.Errorf("after %s: changed = %q; want %q", step.what, got, step.want)
		}
	}
}

// Without notifications, changes are found by looking.
func TestWatcherPolls(t *testing.T) {
	dir := folder(t, "a", "1")
	a := filepath.Join(dir, "a")
	w := watching(t, time.Millisecond, a)
	w.events = nil
	put(t, a, "2")
	if got := changes(t, w); !slices.Equal(got, []string{a}) {
		t.Errorf("changed = %q; want %q", got, a)
	}
}

// What changed between reading and watching is noticed.
func TestWatcherNoticesWhatItMissed(t *testing.T) {
	dir := folder(t, "a", "1")
	a := filepath.Join(dir, "a")
	known := contentsOf(config.NewDigests(), []string{a})
	put(t, a, "2")
	w := newWatcher(slog.New(slog.DiscardHandler), config.NewDigests(), time.Hour)
	t.Cleanup(w.close)
	w.watch([]string{a}, known)
	if got := changes(t, w); !slices.Equal(got, []string{a}) {
		t.Errorf("changed = %q; want %q", got, a)
	}
}
