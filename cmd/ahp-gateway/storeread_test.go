//go:build unix

package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
	"github.com/ahp-gateway/ahp-gateway/shared"
)

// The tenants in Redis are checked, printed and compared where that is asked
// for; where it is not, it is said that they are not.
func TestCommandsReadTheStore(t *testing.T) {
	server, backend := redistest.Start(t), fakebackend.Start(t)
	r := newReplica(t, server.Address, backend.URL)
	r.add("acme", backend.URL)
	path := filepath.Join(r.dir, "gateway.yaml")
	const unread = "gateway.yaml: warning: adminApi.store: the tenants in Redis are not looked at: add --with-store"
	without := [][]string{{"validate"}, {"config", "print"}, {"diff", "--against-running", r.admin}}
	for _, args := range without {
		got := call(t, "", append(args, "--config", path)...)
		if strings.Count(got.stderr, unread) != 1 || strings.Contains(got.stdout, "acme") != (args[0] == "diff") {
			t.Errorf("%q = %+v; want a warning that stored tenants are not looked at", args, got)
		}
	}
	for _, args := range without {
		got := call(t, "", append(args, "--config", path, "--with-store")...)
		want := "acme"
		if args[0] == "diff" {
			want = "no difference\n"
		}
		if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, want) {
			t.Errorf("%q --with-store = %+v; want 0 and %q", args, got, want)
		}
	}
	if got := call(t, "", "diff", "--config", path, "--against", path, "--with-store"); got.code != 0 || got.stdout != "no difference\n" {
		t.Errorf("diff --with-store of a file and itself = %+v; want no difference", got)
	}

	// What would be left out is a mistake of what is checked, and a gap in what is compared.
	server.Command("HSET", "ahp:tenants", "globex", `'{"id":"globex","keyz":[]}'`)
	var v validation
	got := call(t, "", "validate", "--config", path, "--with-store", "--format", "json")
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || got.code != 1 || v.Valid || len(v.Mistakes) != 1 || v.Mistakes[0].File != "redis:globex" {
		t.Errorf("validate --with-store beside a broken document = %+v, %v; want 1 and one mistake of it", got, err)
	}
	if got := call(t, "", "diff", "--config", path, "--against-running", r.admin, "--with-store"); got.code != 0 || !strings.Contains(got.stderr, "redis:globex:1:") || !strings.Contains(got.stderr, "warning: ") || !strings.Contains(got.stderr, "the tenant is left out: ") {
		t.Errorf("diff --with-store beside a broken document = %+v; want no difference, and a warning", got)
	}

	// A Redis that cannot be asked is said to be one, and not taken for an empty one.
	server.Kill()
	for _, args := range without {
		got := call(t, "", append(args, "--config", path, "--with-store")...)
		if got.code != 1 || got.stdout != "" || !strings.Contains(got.stderr, "adminApi.store: the tenants in Redis cannot be read, there is no connection to Redis: see that it runs") {
			t.Errorf("%q --with-store without Redis = %+v; want 1 and why", args, got)
		}
	}
	plain := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL)))
	if got := call(t, "", "validate", "--config", filepath.Join(plain, "gateway.yaml"), "--with-store"); got.code != 0 || !strings.Contains(got.stderr, "--with-store reads nothing") {
		t.Errorf("validate --with-store of a file without a store = %+v; want 0 and a warning", got)
	}
}

// Reading the store ends, whatever Redis does, and a reply that refuses is named.
func TestStoreThatCannotBeRead(t *testing.T) {
	server := redistest.Start(t, "--requirepass", canaryToken)
	redis := func(address string) *config.Redis {
		t.Helper()
		f, _, err := config.Parse("gateway.yaml", []byte(openFile(onePolicy("http://127.0.0.1:1"), "shared: {redis: {url: redis://"+address+"}}")), nil)
		if err != nil {
			t.Fatal(err)
		}
		return &f.Shared.Redis
	}
	if _, err := readStore(context.Background(), redis(server.Address), patience); err == nil || !strings.Contains(err.Error(), "Redis answered with an error: see that its user, password and permissions are right (NOAUTH)") {
		t.Errorf("readStore without the password = %v; want what Redis replied", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	if _, err := readStore(ended, redis(server.Address), patience); err == nil {
		t.Errorf("readStore that may take no time = nil after %v; want an error", time.Since(began))
	}
}

// Every reason has words of its own that say what to look at, and while Redis is
// down the answer to a change has them, and not the name of a metric's label.
func TestStoreTrouble(t *testing.T) {
	said := make(map[string]shared.Class)
	for c := shared.OK + 1; c < shared.ClassCount; c++ {
		text := storeTrouble(c)
		if other, twice := said[text]; twice || !strings.Contains(text, ": ") || strings.Contains(text, c.String()+":") {
			t.Errorf("storeTrouble(%v) = %q (%v the same); want what to look at", c, text, other)
		}
		said[text] = c
	}
	server, backend := redistest.Start(t), fakebackend.Start(t)
	r := newReplica(t, server.Address, backend.URL)
	server.Kill()
	awaited(t, "a change without Redis", "HTTP 503: The store of tenants cannot be reached, or must not be changed for now. Redis failed a moment ago, and is asked again every second: try again; nothing was changed\n", func() string {
		return r.tenant(tenantFile("acme", backend.URL), "add").stderr
	})
}
