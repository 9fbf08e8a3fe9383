package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

const adminTestKey = "admin-key-of-the-test-0123456789"

// hosted serves a gateway file with an admin API and one tenant that was written
// by hand, steady, in whose folder more files may be.
func hosted(t testing.TB, url string, more ...string) (p *process, dir, public string, tenant func(stdin string, args ...string) result) {
	t.Helper()
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	dir = folder(t, append([]string{
		"gateway.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\nadminApi: {trustDocuments: true, keys: [{env: AHP_ADMIN_KEY}]}\naudit: {file: audit.jsonl}\n",
		"tenants/steady.yml", tenantFile("steady", url),
	}, more...)...)
	p = launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, admin := p.urls()
	return p, dir, public, func(stdin string, args ...string) result {
		t.Helper()
		r := call(t, stdin, append([]string{"tenant", "--admin", admin}, args...)...)
		if strings.Contains(r.stdout+r.stderr, adminTestKey) {
			t.Errorf("tenant %q shows the admin key: %s%s", args, r.stdout, r.stderr)
		}
		return r
	}
}

// with returns the gateway's answer to an event that comes with a key.
func with(t testing.TB, public, key string) string {
	t.Helper()
	got, err := askGateway(&http.Client{Transport: bearer{once.Transport, strings.TrimSpace(key)}}, public)
	if err != nil {
		t.Errorf("asking the gateway: %v", err)
	}
	return got
}

// A tenant is added, used, changed and removed, and another one does not notice.
func TestTenantLife(t *testing.T) {
	pass, deny := pair(t)
	p, dir, public, tenant := hosted(t, pass.URL)

	var stopped atomic.Bool
	var asked atomic.Int64
	var steady sync.WaitGroup
	for range 2 {
		steady.Go(func() {
			client := &http.Client{Transport: bearer{&http.Transport{}, tenantKey("steady")}, Timeout: patience}
			defer client.CloseIdleConnections()
			for !stopped.Load() {
				if got, err := askGateway(client, public); err != nil || !strings.Contains(got, passed) {
					t.Errorf("steady's answer = %s, %v; want a pass whatever happens to others", got, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	expectKey := func(what, key, want string) {
		t.Helper()
		if got := with(t, public, key); !strings.Contains(got, want) {
			t.Errorf("%s: answer = %s; want one with %s", what, got, want)
		}
	}

	document := "id: acme\nregistration: " + onePolicy(pass.URL) + "\n"
	added := tenant(document, "add")
	first := added.stdout
	if added.code != 0 || !regexp.MustCompile(`^ahp_acme_[0-9A-Za-z]{43}\n$`).MatchString(first) ||
		!regexp.MustCompile(`^tenant acme added, served by generation 2, ETag "[0-9a-f]{64}"\n$`).MatchString(added.stderr) {
		t.Fatalf("tenant add = %d, stdout %q, stderr %q; want the key alone on standard output", added.code, first, added.stderr)
	}
	expectKey("after add", first, passed)

	rotated := tenant("", "rotate-key", "acme")
	second := rotated.stdout
	if rotated.code != 0 || second == first {
		t.Fatalf("tenant rotate-key = %+v; want another key", rotated)
	}
	expectKey("old key after rotate-key", first, passed)
	expectKey("new key after rotate-key", second, passed)
	if r := tenant("", "remove-key", "acme", sum(first)[:8]); r.code != 0 || !strings.Contains(r.stdout, "has a key less") {
		t.Errorf("tenant remove-key = %+v; want 0", r)
	}
	expectKey("old key after remove-key", first, "HTTP 401")
	expectKey("new key after remove-key", second, passed)

	got := tenant("", "get", "acme")
	changed := strings.Replace(got.stdout, pass.URL, deny.URL, 1)
	put(t, filepath.Join(dir, "changed.json"), changed)
	if r := tenant("", "put", "acme", "--file", filepath.Join(dir, "changed.json")); r.code != 0 || got.code != 0 {
		t.Errorf("tenant put of what get printed = %+v, %+v; want 0", got, r)
	}
	expectKey("after put", second, denied)
	if r := tenant(changed, "put", "acme", "--if-match", `"0"`); r.code != 1 || !strings.Contains(r.stderr, "HTTP 412") {
		t.Errorf("tenant put with an old ETag = %+v; want 1 and the status", r)
	}

	list := tenant("", "list")
	if list.code != 0 || !regexp.MustCompile(`(?m)^acme +1 +true +"[0-9a-f]{64}" +\S+/acme\.yaml$`).MatchString(list.stdout) ||
		!regexp.MustCompile(`(?m)^steady +1 +false +"[0-9a-f]{64}" +\S+/steady\.yml$`).MatchString(list.stdout) {
		t.Errorf("tenant list = %+v; want acme, which is managed, and steady, which is not", list)
	}
	var page struct{ Tenants []struct{ ID string } }
	if err := json.Unmarshal([]byte(tenant("", "list", "--format", "json").stdout), &page); err != nil || len(page.Tenants) != 2 {
		t.Errorf("tenant list --format json = %+v, %v; want two tenants", page, err)
	}
	if r := tenant("", "remove", "steady"); r.code != 1 || !strings.Contains(r.stderr, "steady.yml") {
		t.Errorf("tenant remove of what was written by hand = %+v; want 1 and where it is", r)
	}

	if r := tenant("", "remove", "acme"); r.code != 0 || !strings.Contains(r.stdout, "tenant acme removed \"") {
		t.Errorf("tenant remove = %+v; want 0 and what was removed", r)
	}
	expectKey("after remove", second, "HTTP 401")
	if r := tenant("", "get", "acme"); r.code != 1 || !strings.Contains(r.stderr, "HTTP 404") {
		t.Errorf("tenant get of a removed one = %+v; want 1", r)
	}

	stopped.Store(true)
	steady.Wait()
	if asked.Load() == 0 {
		t.Error("steady asked nothing")
	}
	p.quit()
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"status":201,"action":"create","by":"` + sum(adminTestKey)[:8] + `","after":"`, `"action":"rotate-key"`, `"action":"delete-key"`,
		`"outcome":"refused","status":412,"action":"put"`, `"outcome":"done","status":200,"action":"delete"`,
	} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the audit log has no record with %s", want)
		}
	}
	for what, text := range map[string]string{"the audit log": string(log), "the log": p.stderr.String()} {
		for _, key := range []string{strings.TrimSpace(first), strings.TrimSpace(second), adminTestKey} {
			if strings.Contains(text, key) {
				t.Errorf("%s holds a key", what)
			}
		}
	}
}

func sum(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.TrimSpace(key)))) }

// What the gateway cannot use is refused and leaves nothing behind: not in the
// folder, not for the next reload, and not for a restart.
func TestRefusedTenantLeavesNothing(t *testing.T) {
	backend := fakebackend.Start(t)
	p, dir, public, tenant := hosted(t, backend.URL)
	asked := `{"protocolVersion":"draft","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":"http://127.0.0.1:1"}}]}`
	for what, c := range map[string]struct{ document, want string }{
		"a backend that cannot be asked": {"id: acme\nregistration: " + asked, `HTTP 422: The gateway cannot be served with this change\.`},
		"a mistake":                      {"id: acme\nregistration: " + onePolicy("ftp://example.com"), `(?m)^standard input:2:\d+: registration\.hooks\[0\]\.transport\.url: .*: \S`},
		"an unknown key":                 {tenantFile("acme", backend.URL) + "x: 1", `(?m)^standard input:5:1: x: unknown key`},
		"steady's key":                   {strings.Replace(tenantFile("steady", backend.URL), "id: steady", "id: acme", 1), `is the same key as`},
	} {
		if r := tenant(c.document, "add"); r.code != 1 || r.stdout != "" || !regexp.MustCompile(c.want).MatchString(r.stderr) {
			t.Errorf("tenant add with %s = %+v; want 1 and %s", what, r, c.want)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "tenants"))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v; want steady alone", entries, err)
	}
	p.signal(syscall.SIGHUP)
	p.stderr.await(t, `configuration reloaded" cause=hangup`, 1)
	if strings.Contains(p.stderr.String(), "refused") {
		t.Errorf("the log tells of a refused configuration: %s", p.stderr)
	}
	if got := with(t, public, tenantKey("steady")); !strings.Contains(got, passed) {
		t.Errorf("steady's answer = %s; want a pass", got)
	}
	p.quit()
	q := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	q.urls()
	q.quit()
}

// A change that is made through the API is not taken for one of a file, and one
// of a file beside it is not lost.
func TestTenantChangesAndFiles(t *testing.T) {
	pass, deny := pair(t)
	p, dir, public, tenant := hosted(t, pass.URL)
	for i := range 3 {
		id := fmt.Sprintf("t%d", i)
		if r := tenant("id: "+id+"\nregistration: "+onePolicy(pass.URL), "add"); r.code != 0 {
			t.Fatalf("tenant add = %+v; want 0", r)
		}
	}
	put(t, filepath.Join(dir, "tenants/steady.yml"), tenantFile("steady", deny.URL))
	p.stderr.await(t, `configuration reloaded" cause="a file has changed"`, 1)
	if got := with(t, public, tenantKey("steady")); !strings.Contains(got, denied) {
		t.Errorf("steady's answer = %s; want that of its new backend", got)
	}
	if got := strings.Count(p.stderr.String(), "configuration reloaded"); got != 4 {
		t.Errorf("%d reloads; want 3 for the API and 1 for the file\n%s", got, p.stderr)
	}
	// By hand in the API's file: taken, and found changed.
	r := tenant("", "get", "t1")
	put(t, filepath.Join(dir, "tenants/t1.yaml"), strings.Replace(r.stdout, pass.URL, deny.URL, 1))
	p.stderr.await(t, `configuration reloaded" cause="a file has changed"`, 2)
	if again := tenant("", "get", "t1"); again.code != 0 || again.stdout == r.stdout {
		t.Errorf("tenant get after a change by hand = %+v; want the document as it is now", again)
	}
	p.quit()
	p = launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	_, admin := p.urls()
	if list := call(t, "", "tenant", "list", "--admin", admin); strings.Count(list.stdout, " true ") != 3 {
		t.Errorf("tenant list after a restart = %+v; want the three that were added", list)
	}
	p.quit()
}

func TestTenantUsage(t *testing.T) {
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	t.Setenv("EMPTY", "")
	backend := fakebackend.Start(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"tenant", 2, `a command is needed`},
		{"tenant nonsense", 2, `unknown command "nonsense"; write one of add, get, list, put, remove, remove-key, rotate-key, secret`},
		{"tenant lst", 2, `unknown command "lst"; did you mean list\?`},
		{"tenant secret", 2, `a command is needed; write one of list, remove, reseal, set`},
		{"tenant add extra", 2, `takes no arguments: write --file extra`},
		{"tenant get", 2, `needs TENANT`},
		{"tenant list --format xml", 2, `--format is "xml"`},
		{"tenant list --timeout 0s", 2, `--timeout is 0s`},
		{"tenant list --key-env EMPTY", 2, `"EMPTY", which --key-env names, is not set`},
		{"tenant list --admin http://user:hunter2@127.0.0.1:1", 2, `--admin holds a user name`},
		{"tenant list --admin ftp://127.0.0.1", 2, `--admin is "ftp://127.0.0.1"`},
		{"tenant list --admin http://192.0.2.1:8788", 2, `plain http to another machine`},
		{"tenant list --admin http://127.0.0.1:1", 1, `no answer: .*refused`},
		{"tenant list --admin " + backend.URL, 1, `the answer is not one of`},
		{"tenant add --file /nowhere/acme.yaml --admin http://127.0.0.1:1", 1, `no such file`},
	} {
		r := call(t, "", strings.Fields(c.args)...)
		if r.code != c.code || r.stdout != "" || !regexp.MustCompile(c.want).MatchString(r.stderr) || strings.Contains(r.stderr, "hunter2") {
			t.Errorf("%s = %+v; want %d and %s", c.args, r, c.code, c.want)
		}
	}
	// Without adminApi there is none, and no hint of one.
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL)))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	_, admin := p.urls()
	if r := call(t, "", "tenant", "list", "--admin", admin); r.code != 1 || !strings.Contains(r.stderr, "there is no admin API") {
		t.Errorf("tenant list without adminApi = %+v; want 1 and why", r)
	}
	p.quit()
}
