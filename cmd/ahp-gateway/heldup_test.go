//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Whatever has got a mistake among a replica's own files, what changes in the store
// holds there, and what the files said before goes on.
func TestStoreIsFollowedUnderMistakes(t *testing.T) {
	server := redistest.Start(t)
	pass, deny := pair(t)
	dir := t.TempDir()
	cert, key := certificate(t)
	certFile, keyFile := filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	put(t, certFile, cert)
	put(t, keyFile, key)
	a := newReplica(t, server.Address, pass.URL)
	b := newReplica(t, server.Address, pass.URL, "backend: {clientCertFile: "+certFile+", clientKeyFile: "+keyFile+"}")
	gatewayFile, late := filepath.Join(b.dir, "gateway.yaml"), filepath.Join(b.dir, "tenants/late.yaml")
	good := contentOf(t, gatewayFile)
	for i, c := range []struct {
		what        string
		spoil, mend func()
		mistakes    string
	}{
		{"the gateway file", func() { put(t, gatewayFile, good+"x: 1\n") }, func() { put(t, gatewayFile, good) }, `gateway.yaml:\d+:1: x`},
		{"a gateway file without the store", func() { put(t, gatewayFile, "tenantsDir: tenants\nx: 1\n") }, func() { put(t, gatewayFile, good) }, `gateway.yaml:2:1: x`},
		{"a tenant's file", func() { put(t, late, "id: [") }, func() {
			if err := os.Remove(late); err != nil {
				t.Fatal(err)
			}
		}, `late.yaml:1:`},
		{"a certificate", func() {
			if err := os.Remove(certFile); err != nil {
				t.Fatal(err)
			}
		}, func() { put(t, certFile, cert) }, `clientCertFile: `},
	} {
		id := func(name string) string { return fmt.Sprint(name, "-", i) }
		a.add(id("gone"), pass.URL)
		changing := a.tenant("id: "+id("changing")+"\nregistration: "+onePolicy(pass.URL)+"\n", "add")
		if changing.code != 0 {
			t.Fatalf("tenant add = %+v; want 0", changing)
		}
		first := changing.stdout
		b.serves(first, passed)
		b.serves(tenantKey(id("gone")), passed)
		b.isReady()

		c.spoil()
		b.stderr.await(t, c.mistakes, 1)
		b.reports("configuration: reloads are refused since ")
		b.measures("ahp_gateway_config_last_reload_successful", 0)

		rotated := a.tenant("", "rotate-key", id("changing"))
		if rotated.code != 0 {
			t.Fatalf("tenant rotate-key = %+v; want 0", rotated)
		}
		for _, r := range []result{
			a.tenant("", "remove-key", id("changing"), sum(first)[:8]),
			a.tenant("", "remove", id("gone")),
			a.tenant(tenantFile(id("new"), deny.URL), "add"),
		} {
			if r.code != 0 {
				t.Errorf("a change at the other replica = %+v; want 0", r)
			}
		}
		b.serves(first, "HTTP 401")
		b.serves(rotated.stdout, passed)
		b.serves(tenantKey(id("gone")), "HTTP 401")
		b.serves(tenantKey(id("new")), denied)
		b.serves(tenantKey("steady"), passed)
		b.reports("configuration: reloads are refused since ")
		b.measures("ahp_gateway_stored_held", 0)
		if r := b.tenant("", "list"); r.code != 0 || !strings.Contains(r.stdout, id("new")) || strings.Contains(r.stdout, id("gone")) {
			t.Errorf("%s: tenant list = %+v; want what is served", c.what, r)
		}
		// What its own API is told holds as well, everywhere.
		b.add(id("own"), pass.URL)
		if got := with(t, b.public, tenantKey(id("own"))); !strings.Contains(got, passed) {
			t.Errorf("%s: answer to a tenant that was added at the replica with the mistake = %s; want a pass at once", c.what, got)
		}
		a.serves(tenantKey(id("own")), passed)
		if r := b.tenant("", "remove", id("own")); r.code != 0 {
			t.Errorf("%s: tenant remove at the replica with the mistake = %+v; want 0", c.what, r)
		}
		a.serves(tenantKey(id("own")), "HTTP 401")
		twin := strings.Replace(tenantFile("steady", pass.URL), "id: steady", "id: twin", 1)
		if r := b.tenant(twin, "add"); r.code != 1 || !strings.Contains(r.stderr, "is the same key as") {
			t.Errorf("%s: tenant add with a key of the file's = %+v; want 1 and why", c.what, r)
		}
		b.reports("configuration: reloads are refused since ")

		c.mend()
		b.isReady()
		b.measures("ahp_gateway_config_last_reload_successful", 1)
		b.serves(first, "HTTP 401")
		b.serves(tenantKey(id("new")), denied)
	}
	a.quit()
	b.quit()
}

// A stored tenant whose backend cannot be asked from here is left out, and where it
// has been good before goes on as it was. Nobody else waits for it.
func TestOneIsSetAsideForItsBackend(t *testing.T) {
	server := redistest.Start(t)
	pass, deny := pair(t)
	a, b := newReplica(t, server.Address, pass.URL), newReplica(t, server.Address, pass.URL)
	gatewayFile := filepath.Join(b.dir, "gateway.yaml")
	put(t, gatewayFile, strings.Replace(contentOf(t, gatewayFile), "onFailure: skip", "onFailure: refuse", 1))
	b.stderr.await(t, "configuration reloaded", 1)
	a.add("acme", pass.URL)
	a.add("changed", pass.URL)
	b.serves(tenantKey("acme"), passed)
	b.serves(tenantKey("changed"), passed)

	// The other one skips such backends, and says what that means.
	for _, do := range []struct {
		stdin   string
		args    []string
		skipped bool
	}{
		{asking(t, "asked"), []string{"add"}, true},
		{asking(t, "changed"), []string{"put", "changed"}, true},
		{tenantFile("acme", deny.URL), []string{"put", "acme"}, false},
	} {
		r := a.tenant(do.stdin, do.args...)
		if r.code != 0 || strings.Contains(r.stderr, "its policy does not hold until it answers (found com.example.policy)") != do.skipped {
			t.Fatalf("tenant %v = %+v; want 0, and a warning where the policy does not hold: %t", do.args, r, do.skipped)
		}
	}
	b.serves(tenantKey("acme"), denied)
	b.reports("documents that are left out: 2")
	b.measures("ahp_gateway_stored_left_out", 2)
	b.measures("ahp_gateway_stored_held", 0)
	b.serves(tenantKey("asked"), "HTTP 401")
	b.serves(tenantKey("changed"), passed)
	b.signal(syscall.SIGHUP)
	b.stderr.await(t, "configuration reloaded", 2)
	b.serves(tenantKey("changed"), passed)

	if r := b.tenant(tenantFile("asked", deny.URL), "put", "asked"); r.code != 0 {
		t.Fatalf("tenant put of what can be served = %+v; want 0", r)
	}
	b.serves(tenantKey("asked"), denied)
	for _, id := range []string{"acme", "changed"} {
		if r := a.tenant("", "remove", id); r.code != 0 {
			t.Fatalf("tenant remove = %+v; want 0", r)
		}
		b.serves(tenantKey(id), "HTTP 401")
	}
	b.isReady()
}

// The last good configuration follows the store too, and what is kept of that is
// what was there last.
func TestLastGoodFollowsTheStore(t *testing.T) {
	server := redistest.Start(t)
	pass, deny := pair(t)
	state := filepath.Join(t.TempDir(), "state")
	settings := []string{"limits: {rate: 1000, quotaDay: 100000}", "backend: {inFlight: 7}"}
	a := newReplica(t, server.Address, pass.URL)
	b := newReplica(t, server.Address, pass.URL, append(settings, "--state-dir", state, "--fallback", "last-good")...)
	a.add("acme", pass.URL)
	a.add("beta", pass.URL)
	b.serves(tenantKey("acme"), passed)
	b.serves(tenantKey("beta"), passed)
	b.quit()
	if r := a.tenant("", "remove", "beta"); r.code != 0 {
		t.Fatalf("tenant remove = %+v; want 0", r)
	}

	c := newReplica(t, server.Address, pass.URL, "x: 1", "--state-dir", state, "--fallback", "last-good")
	if got := with(t, c.public, tenantKey("beta")); !strings.Contains(got, "HTTP 401") {
		t.Errorf("first answer to a tenant that was removed meanwhile = %s; want 401", got)
	}
	if got := with(t, c.public, tenantKey("acme")); !strings.Contains(got, passed) {
		t.Errorf("first answer to a tenant that is still there = %s; want a pass", got)
	}
	c.reports("ready, with the last good configuration")
	if r := a.tenant("", "remove", "acme"); r.code != 0 {
		t.Fatalf("tenant remove = %+v; want 0", r)
	}
	a.add("gamma", deny.URL)
	c.serves(tenantKey("acme"), "HTTP 401")
	c.serves(tenantKey("gamma"), denied)
	c.serves(tenantKey("steady"), passed)
	c.reports("ready, with the last good configuration")
	c.measures("ahp_gateway_config_last_good", 1)
	c.measures("ahp_gateway_stored_available", 1)
	c.measures("ahp_gateway_stored_held", 0)
	if got := get(t, c.admin+"/admin/config"); !strings.Contains(got, "quotaDay: 100000") || strings.Count(got, "inFlight: 7\n") != 2 {
		t.Errorf("the configuration is not that which was kept:\n%s", got)
	}
	c.quit()

	// Without the server the next start has what was served last.
	server.Kill()
	d := newReplica(t, server.Address, pass.URL, "x: 1", "--state-dir", state, "--fallback", "last-good")
	if got := with(t, d.public, tenantKey("gamma")); !strings.Contains(got, denied) {
		t.Errorf("first answer without the server = %s; want a deny", got)
	}
	if got := with(t, d.public, tenantKey("acme")); !strings.Contains(got, "HTTP 503") {
		t.Errorf("first answer without the server to a tenant that was removed = %s; want 503", got)
	}
	d.reports("those that were kept from before the start are served")
	gatewayFile := filepath.Join(d.dir, "gateway.yaml")
	put(t, gatewayFile, strings.Replace(contentOf(t, gatewayFile), "x: 1", "", 1))
	d.stderr.await(t, "configuration reloaded", 1)
	d.serves(tenantKey("gamma"), denied)
	if got := get(t, d.admin+"/readyz"); strings.Contains(got, "last good") {
		t.Errorf("/readyz after the correction = %q; want no last good configuration", got)
	}
}

// Of two replicas that are told of one key for two tenants at once, one accepts it;
// and changes that have nothing to do with each other are all made.
func TestReplicasAcceptOneClaim(t *testing.T) {
	server := redistest.Start(t)
	pass, _ := pair(t)
	replicas := []*replica{newReplica(t, server.Address, pass.URL), newReplica(t, server.Address, pass.URL)}
	replicas[0].add("first", pass.URL)
	replicas[1].serves(tenantKey("first"), passed)
	both := func(id func(replica int) string, document func(replica int) string) (codes int, said string) {
		results := make([]result, len(replicas))
		var racing sync.WaitGroup
		for i, r := range replicas {
			racing.Go(func() { results[i] = r.tenant(strings.Replace(document(i), "id: x", "id: "+id(i), 1), "add") })
		}
		racing.Wait()
		return results[0].code + results[1].code, results[0].stderr + results[1].stderr
	}
	for round := range 5 {
		id := func(i int) string { return fmt.Sprintf("tenant-%d-%d", round, i) }
		shared := strings.Replace(tenantFile(fmt.Sprint("key-", round), pass.URL), fmt.Sprint("id: key-", round), "id: x", 1)
		if codes, said := both(id, func(int) string { return shared }); codes != 1 || !strings.Contains(said, "is the same key as") {
			t.Fatalf("one key for two tenants at once: %d were refused, %s; want one, for the key", codes, said)
		}
		for _, r := range replicas {
			r.serves(tenantKey(fmt.Sprint("key-", round)), passed)
		}
		id = func(i int) string { return fmt.Sprintf("other-%d-%d", round, i) }
		if codes, said := both(id, func(i int) string { return strings.Replace(tenantFile(id(i), pass.URL), "id: "+id(i), "id: x", 1) }); codes != 0 {
			t.Fatalf("two tenants at once: %d were refused, %s; want none", codes, said)
		}
	}
	for _, r := range replicas {
		r.isReady()
	}
}

// A change that waits for a slow store waits no longer than whoever asked for it,
// than the process is to live, and than it may; and calls for what is in the store
// end with whoever made them.
func TestWaitingForTheStoreEnds(t *testing.T) {
	server := redistest.Start(t)
	f, err := newFollower(t.Context(), &config.Redis{URL: "redis://" + server.Address, Address: server.Address, Prefix: "ahp"}, keptDocuments{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.await(t.Context()); err != nil { // as whoever reads very much
		t.Fatal(err)
	}
	s := newServer("gateway.yaml")
	s.service = &service{log: slog.New(slog.DiscardHandler)}
	s.follower.Store(f)
	stop := make(chan os.Signal, 2)
	propose := func(what string, ctx context.Context) {
		t.Helper()
		got := s.propose(stop, proposal{ctx: ctx, change: admin.Change{
			Change: config.Change{Path: config.StoredName("acme"), Data: []byte("{}")},
			Begin:  func() (func() error, error) { t.Errorf("%s: the change was begun", what); return nil, nil },
		}})
		if !errors.Is(got.err, admin.ErrUnavailable) {
			t.Errorf("%s = %v; want %v", what, got.err, admin.ErrUnavailable)
		}
	}
	f.patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	propose("a change whose request was given up", ctx)
	stop <- os.Interrupt
	propose("a change while the process is to end", t.Context())
	if len(stop) != 1 {
		t.Error("the signal is not there any more for whoever looks next")
	}
	<-stop
	f.patience = time.Millisecond
	propose("a change that may not wait", t.Context())
	f.release()

	// As well where it is the server that does not answer.
	f.patience = time.Hour
	server.Pause()
	stop <- os.Interrupt
	propose("a change while the server is slow", t.Context())
	f.accept()
	s.unfollow()
	server.Resume()
}

// A change of what is in the store is checked on the files as they are, noticed yet
// or not, and where those have a mistake on what is served.
func TestChangesBesideFilesNotNoticedYet(t *testing.T) {
	server := redistest.Start(t)
	pass, _ := pair(t)
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	dir := folder(t, "gateway.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\nshared: {redis: {url: redis://"+server.Address+"}}\n"+
		"discovery: {onFailure: skip}\nadminApi: {trustDocuments: true, keys: [{env: AHP_ADMIN_KEY}], store: redis}\n", "tenants/steady.yaml", tenantFile("steady", pass.URL))
	s, stop, log := newServer(filepath.Join(dir, "gateway.yaml")), make(chan os.Signal, 2), slog.New(slog.DiscardHandler)
	f, _, err := s.loadFollowed(t.Context(), stop, log)
	if err != nil {
		t.Fatal(err)
	}
	defer s.unfollow()
	p := program{stdin: strings.NewReader(""), stdout: t.Output(), stderr: t.Output()}
	if s.service, err = p.start(t.Context(), f, log, s.api, s.stored, false); err != nil {
		t.Fatal(err)
	}
	s.followed(f)
	propose := func(id, document string) error {
		return s.propose(stop, proposal{ctx: t.Context(), change: admin.Change{
			Change: config.Change{Path: config.StoredName(id), Data: []byte(document)},
			Check:  func([]config.Mistake) error { return nil },
			Commit: func() error { return s.follower.Load().Put(t.Context(), id, []byte(document), "") },
		}}).err
	}
	late := filepath.Join(dir, "tenants/late.yaml")
	put(t, late, tenantFile("late", pass.URL))
	twin := strings.Replace(tenantFile("late", pass.URL), "id: late", "id: twin", 1)
	if err := propose("twin", twin); err == nil || !strings.Contains(err.Error(), "is the same key as") {
		t.Errorf("a change with the key of a file that has just come = %v; want it refused for that", err)
	}
	put(t, late, "id: [")
	if err := propose("twin", "id: twin"); err == nil || strings.Contains(err.Error(), "late.yaml") {
		t.Errorf("a bad change beside a bad file = %v; want its own mistakes", err)
	}
	if err := propose("twin", twin); err != nil {
		t.Errorf("a good change beside a bad file = %v; want it made", err)
	}
	if got := with(t, s.URL(), tenantKey("late")); !strings.Contains(got, passed) {
		t.Errorf("answer after the change = %s; want a pass", got)
	}
	if len(s.known.differing(contentsOf(s.loader.Digests, s.files))) == 0 {
		t.Error("the bad file is not there to be noticed after the change")
	}
	if err := s.shutdown(); err != nil {
		t.Errorf("shutdown = %v; want none", err)
	}
}
