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
