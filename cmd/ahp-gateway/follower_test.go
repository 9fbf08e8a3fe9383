//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// replica is a process that has the tenants of a store.
type replica struct {
	*process
	t             testing.TB
	dir           string
	public, admin string
}

// newReplica starts a replica on the server at address, with one tenant of its
// own folder, steady. more are lines of its gateway file, and what starts with
// -- and what follows arguments of the command.
func newReplica(t testing.TB, address, url string, more ...string) *replica {
	t.Helper()
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	file := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\nshared: {redis: {url: redis://" + address + "}}\n" +
		"discovery: {onFailure: skip}\nadminApi: {trustDocuments: true, keys: [{env: AHP_ADMIN_KEY}], store: redis}\naudit: {file: audit.jsonl}\n"
	args := []string{"serve", "--config", ""}
	for _, m := range more {
		if len(args) > 3 || strings.HasPrefix(m, "--") {
			args = append(args, m)
		} else {
			file += m + "\n"
		}
	}
	r := &replica{t: t, dir: folder(t, "gateway.yaml", file, "tenants/steady.yaml", tenantFile("steady", url))}
	args[2] = filepath.Join(r.dir, "gateway.yaml")
	r.process = launch(t, args...)
	r.public, r.admin = r.urls()
	return r
}

// tenant runs the command of that name.
func (r *replica) tenant(stdin string, args ...string) result {
	r.t.Helper()
	return call(r.t, stdin, append([]string{"tenant", "--admin", r.admin}, args...)...)
}

// contentOf returns what a file holds.
func contentOf(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// add adds a tenant whose key is known.
func (r *replica) add(id, url string) {
	r.t.Helper()
	if got := r.tenant(tenantFile(id, url), "add"); got.code != 0 {
		r.t.Fatalf("tenant add of %s = %+v; want 0", id, got)
	}
}

// awaited asks until the answer holds want.
func awaited(t testing.TB, what, want string, ask func() string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if got = ask(); strings.Contains(got, want) {
			return
		}
	}
	t.Fatalf("%s: %s; want one with %s", what, got, want)
}

// serves waits until events with a key are answered so.
func (r *replica) serves(key, want string) {
	r.t.Helper()
	awaited(r.t, "answer", want, func() string { return with(r.t, r.public, key) })
}

// reports waits until /readyz has a text.
func (r *replica) reports(want string) {
	r.t.Helper()
	awaited(r.t, "/readyz", want, func() string { return get(r.t, r.admin+"/readyz") })
}

// isReady waits until /readyz has nothing to say.
func (r *replica) isReady() {
	r.t.Helper()
	awaited(r.t, "/readyz", `"ready\n"`, func() string { return fmt.Sprintf("%q", get(r.t, r.admin+"/readyz")) })
}

// measures checks the value of a metric without labels.
func (r *replica) measures(metric string, want int) {
	r.t.Helper()
	if got, want := get(r.t, r.admin+"/metrics"), fmt.Sprintf("\n%s %d\n", metric, want); !strings.Contains(got, want) {
		r.t.Errorf("/metrics has no line %s", want)
	}
}

// What one replica's API changes, every replica serves, also one that comes
// later; and what one does not like keeps nobody else from being served.
func TestReplicasFollowTheStore(t *testing.T) {
	server := redistest.Start(t)
	pass, deny := pair(t)
	a, b := newReplica(t, server.Address, pass.URL), newReplica(t, server.Address, pass.URL)
	if got := get(t, b.admin+"/readyz"); got != "ready\n" {
		t.Errorf("/readyz with an empty store = %q; want ready", got)
	}

	added := a.tenant("id: acme\nregistration: "+onePolicy(pass.URL)+"\n", "add")
	first := added.stdout
	if added.code != 0 {
		t.Fatalf("tenant add = %+v; want 0", added)
	}
	if got := with(t, a.public, first); !strings.Contains(got, passed) {
		t.Errorf("answer of the replica that was told = %s; want a pass at once", got)
	}
	b.serves(first, passed)

	rotated := b.tenant("", "rotate-key", "acme")
	if rotated.code != 0 {
		t.Fatalf("tenant rotate-key at the other replica = %+v; want 0", rotated)
	}
	second := rotated.stdout
	a.serves(second, passed)
	if r := a.tenant("", "remove-key", "acme", sum(first)[:8]); r.code != 0 {
		t.Errorf("tenant remove-key = %+v; want 0", r)
	}
	b.serves(first, "HTTP 401")

	document := strings.Replace(a.tenant("", "get", "acme").stdout, pass.URL, deny.URL, 1)
	if r := b.tenant(document, "put", "acme"); r.code != 0 {
		t.Errorf("tenant put = %+v; want 0", r)
	}
	a.serves(second, denied)
	if r := a.tenant("", "list"); !strings.Contains(r.stdout, "redis:acme") || !strings.Contains(r.stdout, "/steady.yaml") {
		t.Errorf("tenant list = %+v; want acme of the store, and steady of the folder", r)
	}
	if r := a.tenant("", "remove", "steady"); r.code != 1 || !strings.Contains(r.stderr, "steady.yaml") {
		t.Errorf("tenant remove of a file's tenant = %+v; want 1 and where it is", r)
	}
	if entries, err := os.ReadDir(filepath.Join(a.dir, "tenants")); err != nil || len(entries) != 1 {
		t.Errorf("tenantsDir holds %v, %v; want what it did", entries, err)
	}

	// Somebody else writes into the server.
	write := func(id, data string) {
		server.Command("HSET", "ahp:tenants", id, data)
		server.Command("LPUSH", "ahp:tenants:log", `"`+id+"-was-written", id+`"`)
	}
	write("bad", "{")
	write("acme", `'{"id":"acme"}'`)
	write("nosy", `'{"id":"nosy","keys":[{"file":"/etc/hostname"}],"registration":"/etc/passwd"}'`)
	write("twin", `'`+fmt.Sprintf(`{"id":"twin","keys":[{"sha256":"%x"}],"registration":%s}`, sha256.Sum256([]byte(tenantKey("steady"))), strings.ReplaceAll(onePolicy(pass.URL), "\n", ""))+`'`)
	b.reports("documents that are left out: 4")
	a.reports("documents that are left out: 4")
	b.stderr.await(t, `redis:nosy:1:\d+: keys\[0\]\.file: `, 1)
	b.stderr.await(t, `redis:twin:1:\d+: keys\[0\]: is the same key as keys\[0\] in`, 1)
	b.measures("ahp_gateway_stored_left_out", 4)
	b.measures("ahp_gateway_stored_available", 1)
	for _, r := range []*replica{a, b} {
		r.serves(second, denied) // the last good one
		r.serves(tenantKey("steady"), passed)
	}
	a.add("other", pass.URL)
	b.serves(tenantKey("other"), passed)

	// One that comes later has no last good one.
	c := newReplica(t, server.Address, pass.URL)
	if got := with(t, c.public, tenantKey("other")); !strings.Contains(got, passed) {
		t.Errorf("first answer of a new replica = %s; want a pass", got)
	}
	if got := with(t, c.public, second); !strings.Contains(got, "HTTP 401") {
		t.Errorf("answer of a new replica to a tenant without a good document = %s; want 401", got)
	}

	if r := a.tenant("", "remove", "other"); r.code != 0 {
		t.Errorf("tenant remove = %+v; want 0", r)
	}
	b.serves(tenantKey("other"), "HTTP 401")
	c.serves(tenantKey("other"), "HTTP 401")

	// Without the store its tenants are served no more.
	text, err := os.ReadFile(filepath.Join(c.dir, "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a.add("last", pass.URL)
	c.serves(tenantKey("last"), passed)
	put(t, filepath.Join(c.dir, "gateway.yaml"), strings.Replace(string(text), ", store: redis", "", 1))
	c.serves(tenantKey("last"), "HTTP 401")
	put(t, filepath.Join(c.dir, "gateway.yaml"), string(text))
	c.serves(tenantKey("last"), passed)
	for _, r := range []*replica{a, b, c} {
		r.quit()
	}
}

// Of changes at two replicas that were meant for the same document one is made.
func TestReplicasDoNotOverwrite(t *testing.T) {
	server := redistest.Start(t)
	pass, _ := pair(t)
	a, b := newReplica(t, server.Address, pass.URL), newReplica(t, server.Address, pass.URL)
	a.add("acme", pass.URL)
	b.serves(tenantKey("acme"), passed)
	for round := range 5 {
		var listed struct {
			Tenants []struct{ ID, ETag string }
		}
		if err := json.Unmarshal([]byte(a.tenant("", "list", "--format", "json").stdout), &listed); err != nil || len(listed.Tenants) != 2 {
			t.Fatalf("tenant list = %+v, %v; want two", listed, err)
		}
		results := make([]result, 2)
		var racing sync.WaitGroup
		for i, r := range []*replica{a, b} {
			racing.Go(func() {
				document := tenantFile("acme", pass.URL) + fmt.Sprintf("rate: %d\n", 100+10*round+i)
				results[i] = r.tenant(document, "put", "acme", "--if-match", listed.Tenants[0].ETag)
			})
		}
		racing.Wait()
		if results[0].code+results[1].code != 1 || !strings.Contains(results[0].stderr+results[1].stderr, "HTTP 412") {
			t.Fatalf("two changes of one document = %+v; want one that is made and one 412", results)
		}
	}
}

// While the server is gone everything that is known is served, and a change is
// answered 503. What a replica that starts then does not know, it says.
func TestStoreGone(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--dir", t.TempDir())
	pass, _ := pair(t)
	state := filepath.Join(t.TempDir(), "state")
	a := newReplica(t, server.Address, pass.URL, "--state-dir", state)
	a.add("acme", pass.URL)
	server.Kill()
	a.reports("stored tenants: ")
	kept := contentOf(t, filepath.Join(state, "last-good.yaml"))
	if !strings.Contains(kept, "id: steady") || strings.Contains(kept, "id: acme") {
		t.Errorf("last good configuration = %.80s; want one with steady, and acme in the other file", kept)
	}
	folders := folder(t, "some/last-good.yaml", kept, "some/stored-tenants.json", contentOf(t, filepath.Join(state, "stored-tenants.json")), "all/last-good.yaml", kept, "all/stored-tenants.json", contentOf(t, filepath.Join(state, "stored-tenants.json")))
	b := newReplica(t, server.Address, pass.URL, "--state-dir", filepath.Join(folders, "some"))
	b.reports("none of them is known yet")
	b.serves(tenantKey("steady"), passed)
	c := newReplica(t, server.Address, pass.URL, "--state-dir", filepath.Join(folders, "all"), "--fallback", "last-good")
	if got := with(t, c.public, tenantKey("acme")); !strings.Contains(got, passed) {
		t.Errorf("first answer of a replica that has kept the tenant = %s; want a pass", got)
	}
	c.reports("those that were kept from before the start are served")
	if again := contentOf(t, filepath.Join(folders, "some", "last-good.yaml")); again != kept {
		t.Errorf("last good configuration after a start without the server = %.80s; want the one before", again)
	}
	a.serves(tenantKey("acme"), passed)
	for _, r := range []*replica{a, b, c} {
		for _, do := range []result{r.tenant(tenantFile("beta", pass.URL), "add"), r.tenant("", "rotate-key", "acme"), r.tenant("", "remove", "acme")} {
			if do.code != 1 || !strings.Contains(do.stderr, "HTTP 503") {
				t.Errorf("a change without the server = %+v; want 503", do)
			}
		}
		want := "HTTP 401"
		if r != a { // it does not know who else there is
			want = "HTTP 503"
		}
		if got := with(t, r.public, tenantKey("beta")); !strings.Contains(got, want) {
			t.Errorf("answer after a change that was refused = %s; want %s", got, want)
		}
	}
	req, err := http.NewRequestWithContext(context.Background(), "DELETE", a.admin+"/admin/v1/tenants/acme", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminTestKey)
	req.Header.Set("If-Match", "*")
	resp, err := once.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("DELETE without the server = %d, %v; want 503 with Retry-After", resp.StatusCode, resp.Header)
	}
	a.measures("ahp_gateway_stored_available", 0)
	for _, r := range []*replica{a, c} {
		if got := r.tenant("", "list"); got.code != 0 || !strings.Contains(got.stdout, "acme") {
			t.Errorf("tenant list without the server = %+v; want what is served", got)
		}
	}

	server.Restart()
	b.serves(tenantKey("acme"), passed)
	awaited(t, "tenant add once the server is back", "0", func() string {
		return fmt.Sprint(b.tenant(tenantFile("beta", pass.URL), "add").code)
	})
	a.serves(tenantKey("beta"), passed)
	c.serves(tenantKey("beta"), passed)
	a.isReady()
	c.isReady()
}

// A server that has lost its data takes no tenant away until somebody says so.
func TestStoreLost(t *testing.T) {
	server := redistest.Start(t)
	pass, deny := pair(t)
	state := filepath.Join(t.TempDir(), "state")
	a := newReplica(t, server.Address, pass.URL, "--state-dir", state)
	a.add("acme", pass.URL)
	a.add("beta", pass.URL)
	server.Kill()
	server.Restart()
	a.reports("the store has lost 2 that are still served")
	a.measures("ahp_gateway_stored_lost", 2)
	a.serves(tenantKey("acme"), passed)
	for _, do := range []result{a.tenant(tenantFile("gamma", pass.URL), "add"), a.tenant("", "rotate-key", "acme")} {
		if do.code != 1 || !strings.Contains(do.stderr, "HTTP 503") || !strings.Contains(do.stderr, "SIGHUP") {
			t.Errorf("a change at a replica whose store has lost documents = %+v; want 503 and what to do", do)
		}
	}

	// One that has kept the documents misses them as well.
	later := newReplica(t, server.Address, pass.URL, "--state-dir", state, "--fallback", "last-good")
	later.reports("the store has lost 2 that are still served")
	later.serves(tenantKey("acme"), passed)
	later.quit()

	// A replica that knows of no loss writes one anew, which holds everywhere.
	b := newReplica(t, server.Address, pass.URL)
	if got := with(t, b.public, tenantKey("acme")); !strings.Contains(got, "HTTP 401") {
		t.Errorf("answer of a new replica = %s; want 401", got)
	}
	b.add("acme", deny.URL)
	a.serves(tenantKey("acme"), denied)
	a.serves(tenantKey("beta"), passed)
	a.reports("the store has lost 1 that are still served")

	a.signal(syscall.SIGHUP)
	a.serves(tenantKey("beta"), "HTTP 401")
	a.serves(tenantKey("acme"), denied)
	a.add("gamma", pass.URL)
	b.serves(tenantKey("gamma"), passed)
	a.isReady()

	// One that was set back is told from one that was lost, and followed.
	server.Command("DEL", "ahp:tenants:log")
	b.stderr.await(t, "does not know the last change that was seen", 1)
	b.serves(tenantKey("gamma"), passed)

	// What was removed through the API is no loss.
	for _, id := range []string{"acme", "gamma"} {
		if r := b.tenant("", "remove", id); r.code != 0 {
			t.Errorf("tenant remove = %+v; want 0", r)
		}
		a.serves(tenantKey(id), "HTTP 401")
	}
}

// An older copy that is put in the place of what was lost is followed, and told
// from one that lacks nothing.
func TestOlderCopyAfterALoss(t *testing.T) {
	server := redistest.Start(t)
	pass, _ := pair(t)
	a := newReplica(t, server.Address, pass.URL)
	a.add("acme", pass.URL)
	names := []string{"ahp:tenants", "ahp:tenants:log", "ahp:tenants:epoch"}
	keep := func(prefix string) {
		for _, name := range names {
			server.Command("COPY", name, prefix+name)
		}
	}
	keep("old:")
	a.add("beta", pass.URL)
	keep("new:")
	for i, c := range []struct {
		copy, beta string
		warnings   int
	}{{"new:", passed, 0}, {"old:", "HTTP 401", 1}} {
		server.Command(append([]string{"DEL"}, names...)...)
		a.reports("the store has lost 2 that are still served")
		for _, name := range names { // the epoch is the last: until then all are lost
			server.Command("RENAME", c.copy+name, name)
		}
		a.stderr.await(t, "the store has the documents of tenants again", i+1)
		a.serves(tenantKey("acme"), passed)
		a.serves(tenantKey("beta"), c.beta)
		if got := strings.Count(a.stderr.String(), "does not know the last change that was seen"); got != c.warnings {
			t.Errorf("after %s: warnings that changes were lost = %d; want %d", c.copy, got, c.warnings)
		}
	}
}

// Followers may be asked for anything at any time.
func TestFollowersAtOnce(t *testing.T) {
	server := redistest.Start(t)
	all := make([]*follower, 3)
	for i := range all {
		var err error
		all[i], err = newFollower(context.Background(), &config.Redis{URL: "redis://" + server.Address, Address: server.Address, Prefix: "ahp"}, keptDocuments{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer all[i].close()
	}
	const each = 20
	var working sync.WaitGroup
	for i, f := range all {
		working.Go(func() {
			for n := range each {
				id, match := fmt.Sprintf("tenant-%d-%d", i, n), ""
				for _, data := range []string{"one", "two"} {
					// Another one's change may come before it, or have made the first document.
					err := errStale
					for errors.Is(err, errStale) || errors.Is(err, admin.ErrUnavailable) && n == 0 && match == "" {
						if err = f.begin(t.Context()); err == nil {
							err = f.Put(t.Context(), id, []byte(data), match)
							f.release()
						}
					}
					if err != nil {
						t.Errorf("Put(%s, %s) = %v; want none", id, data, err)
					}
					match = tagOf([]byte(data))
				}
				if got := f.served()[id]; string(got) != "two" {
					t.Errorf("served holds %s as %q; want what was put last", id, got)
				}
			}
		})
		working.Go(func() {
			for range each {
				f.status()
				f.accept()
				if _, err := f.Get(context.Background(), "absent"); !errors.Is(err, admin.ErrAbsent) {
					t.Errorf("Get = %v; want %v", err, admin.ErrAbsent)
				}
			}
		})
	}
	working.Wait()
	for i, f := range all {
		awaited(t, "documents served", fmt.Sprint(len(all)*each), func() string { return fmt.Sprint(len(f.served())) })
		if err := f.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.Put(context.Background(), "tenant-0-0", []byte("three"), tagOf([]byte("one"))); !errors.Is(err, admin.ErrChanged) {
			t.Errorf("Put of follower %d with an old tag = %v; want %v", i, err, admin.ErrChanged)
		}
		if err := f.Delete(context.Background(), "tenant-0-0", ""); !errors.Is(err, admin.ErrChanged) {
			t.Errorf("Delete of follower %d without a tag = %v; want %v", i, err, admin.ErrChanged)
		}
		f.release()
	}
}

// No more is put into the store than whoever starts can read.
func TestStoreIsNotOverfilled(t *testing.T) {
	server := redistest.Start(t)
	f, err := newFollower(t.Context(), &config.Redis{URL: "redis://" + server.Address, Address: server.Address, Prefix: "ahp"}, keptDocuments{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	f.room = 10
	for _, c := range []struct {
		id, data, match, want string
	}{
		{"acme", "123456", "", ""},
		{"beta", "12345", "", "may hold 10 bytes"},
		{"beta", "1234", "", ""},
		{"acme", "1234567", "123456", "may hold 10 bytes"},
		{"acme", "1", "123456", ""},
		{"acme", "123456", "1", ""},
	} {
		match := ""
		if c.match != "" {
			match = tagOf([]byte(c.match))
		}
		if err := f.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := f.Put(t.Context(), c.id, []byte(c.data), match)
		f.release()
		if got := fmt.Sprint(err); (err != nil) != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("Put(%s, %s) = %s; want %q", c.id, c.data, got, c.want)
		}
	}
}
