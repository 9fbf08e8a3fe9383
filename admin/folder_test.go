package admin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/config"
)

// What a crash leaves half written is no tenant, and is gone once the folder is
// used again. What others hide there stays.
func TestCrashWhileWriting(t *testing.T) {
	const left = ".ahp-gateway-123456.tmp"
	r := newRig(t, "tenants/acme.yaml", document("acme", "key-of-acme-012345"))
	r.write("tenants/"+left, `{"id": "acme", "ke`)
	r.write("tenants/.notes.tmp", "mine")
	f, _, err := config.Load(filepath.Join(r.dir, "gateway.yaml"), environ)
	if err != nil || len(f.Tenants) != 2 {
		t.Fatalf("Load beside a half-written file = %v; want the two tenants", err)
	}
	// It is another process's for as long as that might be writing it.
	if _, err := admin.OpenFolder(r.tenants("")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.tenants(left)); err != nil {
		t.Errorf("a file that is being written after OpenFolder: %v; want it there", err)
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(r.tenants(left), long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.OpenFolder(r.tenants("")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.tenants(left)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the half-written file after OpenFolder: %v; want it gone", err)
	}
	if got := r.read("tenants/.notes.tmp"); got != "mine" {
		t.Errorf("another's hidden file = %q; want it as it was", got)
	}
	// A folder that cannot be used says so itself, until it can.
	later, err := admin.OpenFolder(r.tenants("absent"))
	if err == nil || later == nil {
		t.Fatalf("OpenFolder of no folder = %v, %v; want a store and an error", later, err)
	}
	if err := later.Put(context.Background(), "acme", []byte("{}"), ""); err == nil {
		t.Error("Put into no folder = no error; want one")
	}
	if err := os.Mkdir(r.tenants("absent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := later.Put(context.Background(), "acme", []byte("{}"), ""); err != nil {
		t.Errorf("Put into the folder that has come = %v; want none", err)
	}
}

func TestFolder(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	f, err := admin.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	tag := func(data string) string { return digest(data) }
	if err := os.Symlink("elsewhere", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		what     string
		do       func() error
		want     error
		document string // of a afterwards; "" is none
	}{
		{"delete nothing", func() error { return f.Delete(ctx, "a", tag("one")) }, admin.ErrChanged, ""},
		{"replace nothing", func() error { return f.Put(ctx, "a", []byte("one"), tag("one")) }, admin.ErrChanged, ""},
		{"make", func() error { return f.Put(ctx, "a", []byte("one"), "") }, nil, "one"},
		{"make again", func() error { return f.Put(ctx, "a", []byte("two"), "") }, admin.ErrChanged, "one"},
		{"replace another", func() error { return f.Put(ctx, "a", []byte("two"), tag("zero")) }, admin.ErrChanged, "one"},
		{"replace", func() error { return f.Put(ctx, "a", []byte("two"), tag("one")) }, nil, "two"},
		{"delete another", func() error { return f.Delete(ctx, "a", tag("one")) }, admin.ErrChanged, "two"},
		{"delete any", func() error { return f.Delete(ctx, "a", "") }, admin.ErrChanged, "two"},
		{"delete", func() error { return f.Delete(ctx, "a", tag("two")) }, nil, ""},
		{"replace a link", func() error { return f.Put(ctx, "link", []byte("one"), "") }, admin.ErrForeign, ""},
		{"delete a link", func() error { return f.Delete(ctx, "link", tag("")) }, admin.ErrForeign, ""},
		{"replace a folder", func() error { return f.Put(ctx, "folder", []byte("one"), "") }, admin.ErrForeign, ""},
	} {
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%d %s = %v; want %v", i, c.what, err, c.want)
		}
		got, err := f.Get(ctx, "a")
		if string(got) != c.document || errors.Is(err, admin.ErrAbsent) != (c.document == "") {
			t.Errorf("%d after %s: Get = %q, %v; want %q", i, c.what, got, err, c.document)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v; want the link and the folder alone", entries, err)
	}
	// A folder that is gone is an error, and not an empty one.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Put(ctx, "a", []byte("one"), ""); err == nil {
		t.Error("Put into a folder that is gone = no error; want one")
	}
}

// Of those who make a document of one id at the same time, each with a store of
// its own as other processes have, one does, and it is theirs.
func TestOneMakesADocument(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	for round := range 20 {
		id := fmt.Sprint("t", round)
		var made atomic.Value
		var all sync.WaitGroup
		for n := range 8 {
			f, err := admin.OpenFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				switch err := f.Put(ctx, id, []byte(fmt.Sprint(n)), ""); {
				case err == nil:
					if before := made.Swap(fmt.Sprint(n)); before != nil {
						t.Errorf("%s was made by %v and by %d; want one of them", id, before, n)
					}
				case !errors.Is(err, admin.ErrChanged):
					t.Errorf("Put of %s = %v; want none or %v", id, err, admin.ErrChanged)
				}
			})
		}
		all.Wait()
		f, _ := admin.OpenFolder(dir)
		if got, err := f.Get(ctx, id); err != nil || string(got) != made.Load() {
			t.Errorf("%s = %q, %v; want what %v put", id, got, err, made.Load())
		}
	}
}
