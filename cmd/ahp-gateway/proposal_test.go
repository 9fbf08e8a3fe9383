package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// A change is served before it is put in place, and taken back where that
// fails. Once the process is to end nobody waits for one.
func TestProposals(t *testing.T) {
	backend := fakebackend.Start(t)
	dir := folder(t, "gateway.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\n", "tenants/steady.yaml", tenantFile("steady", backend.URL))
	s := newServer(filepath.Join(dir, "gateway.yaml"))
	f, _, err := s.load(config.Change{})
	if err != nil {
		t.Fatal(err)
	}
	p := program{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	ctx := context.Background()
	if s.service, err = p.start(ctx, f, slog.New(slog.DiscardHandler), s.api, s.stored, false); err != nil {
		t.Fatal(err)
	}
	hangup, stop := make(chan os.Signal), make(chan os.Signal, 2)
	ended := make(chan error, 1)
	go func() {
		_, err := s.loop(ctx, hangup, stop)
		close(s.ending)
		ended <- errors.Join(err, s.shutdown())
	}()

	path := filepath.Join(dir, "tenants", "acme.yaml")
	change := func(text string, commit func() error) error {
		_, err := s.apply(ctx, admin.Change{
			Change: config.Change{Path: path, Data: []byte(text)},
			Check:  func([]config.Mistake) error { return nil },
			Commit: commit,
		})
		return err
	}
	full := errors.New("disk full")
	err = change(tenantFile("acme", backend.URL), func() error {
		if got := with(t, s.URL(), tenantKey("acme")); !strings.Contains(got, passed) {
			t.Errorf("answer when the change is put in place = %s; want a pass", got)
		}
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("apply = %v; want what Commit returned", err)
	}
	if got := with(t, s.URL(), tenantKey("acme")); !strings.Contains(got, "HTTP 401") {
		t.Errorf("answer after a change that could not be stored = %s; want 401", got)
	}
	// Also where another file has got a mistake by then.
	steady := filepath.Join(dir, "tenants", "steady.yaml")
	err = change(tenantFile("acme", backend.URL), func() error {
		put(t, steady, "id: [")
		return full
	})
	if got := with(t, s.URL(), tenantKey("acme")); !errors.Is(err, full) || !strings.Contains(got, "HTTP 401") {
		t.Errorf("apply beside a mistake = %v, and then the answer is %s; want what Commit returned, and 401", err, got)
	}
	put(t, steady, tenantFile("steady", backend.URL))
	if err := change("id: acme", func() error { t.Error("a change that is refused was put in place"); return nil }); len(config.AsMistakes(err)) == 0 {
		t.Errorf("apply of a bad tenant = %v; want mistakes", err)
	}
	if got := with(t, s.URL(), tenantKey("steady")); !strings.Contains(got, passed) {
		t.Errorf("steady's answer = %s; want a pass", got)
	}

	stop <- os.Interrupt
	if err := <-ended; err != nil {
		t.Errorf("the end = %v; want none", err)
	}
	if err := change(tenantFile("acme", backend.URL), func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("apply after the end = %v; want %v", err, context.Canceled)
	}
}

// A folder of tenants that the API cannot use yet is looked at again with the
// next configuration, and one that is named no more is used no more.
func TestFolderOfTheAPIIsRetried(t *testing.T) {
	dir := t.TempDir()
	tenants := filepath.Join(dir, "tenants")
	left := filepath.Join(tenants, ".ahp-gateway-1.tmp")
	s := newServer(filepath.Join(dir, "gateway.yaml"))
	s.service = &service{log: slog.New(slog.DiscardHandler)}
	f := &config.File{TenantsDir: tenants, AdminAPI: config.AdminAPI{Keys: []config.Key{{SHA256: [32]byte{1}}}, Store: "directory"}}
	s.offerAPI(f)
	if s.store == nil {
		t.Error("a folder that is not there leaves no store to say so")
	}
	if err := os.Mkdir(tenants, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, left, "half")
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(left, long, long); err != nil {
		t.Fatal(err)
	}
	s.offerAPI(f)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a crash left in the folder that has come: %v; want it gone", err)
	}
	put(t, left, "half")
	if err := os.Chtimes(left, long, long); err != nil {
		t.Fatal(err)
	}
	s.offerAPI(f)
	if _, err := os.Stat(left); err != nil {
		t.Errorf("what is being written into a folder in use: %v; want it left alone", err)
	}
	s.offerAPI(&config.File{AdminAPI: f.AdminAPI})
	if s.store != nil {
		t.Error("a folder that is named no more still has a store")
	}
}
