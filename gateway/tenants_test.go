package gateway

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/breaker"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
	"github.com/ahp-gateway/ahp-gateway/shared"
)

// estate is a gateway file with a folder of tenants, and a Loader of it.
type estate struct {
	t   testing.TB
	dir string
	*config.Loader
}

func newEstate(t testing.TB, more ...string) *estate {
	t.Helper()
	e := &estate{t: t, dir: t.TempDir()}
	e.Loader = config.NewLoader(filepath.Join(e.dir, "gateway.yaml"), environ)
	e.gateway(more...)
	return e
}

// gateway writes the gateway file; more are further lines of it.
func (e *estate) gateway(more ...string) {
	e.t.Helper()
	e.put("gateway.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\n"+strings.Join(more, "\n")+"\n")
}

func (e *estate) put(name, text string) {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// tenant writes the file of one tenant with one backend; more are further lines.
func (e *estate) tenant(id, url string, more ...string) {
	e.t.Helper()
	e.tenantOf(id, registration("0.1", hook("com.example.policy", url, intercepts("0.1", "fail-open", 5000))), more...)
}

func (e *estate) tenantOf(id, registration string, more ...string) {
	e.t.Helper()
	e.put("tenants/"+id+".yaml", fmt.Sprintf("id: %s\nkeys: [{sha256: \"%x\"}]\nregistration: %s\n%s\n",
		id, sha256.Sum256([]byte("key-of-"+id)), registration, strings.Join(more, "\n")))
}

func (e *estate) load() *config.File {
	e.t.Helper()
	f, _, err := e.Load()
	if err != nil {
		e.t.Fatal(err)
	}
	return f
}

// serve starts a gateway with what the files say.
func (e *estate) serve() *rig {
	e.t.Helper()
	return startFile(e.t, e.load())
}

// reload makes r serve what the files say now.
func (e *estate) reload(r *rig) {
	e.t.Helper()
	if _, err := r.Reload(e.t.Context(), e.load()); err != nil {
		e.t.Fatalf("Reload() = %v; want done", err)
	}
}

func (r *rig) party(id string) *party {
	r.t.Helper()
	for _, p := range r.current.Load().parties {
		if p.id == id {
			return p
		}
	}
	r.t.Fatalf("no tenant %s", id)
	return nil
}

// ask posts an event as a tenant.
func (r *rig) ask(tenant, event string) string {
	return r.post("/hooks", event01(event), "Authorization: Bearer key-of-"+tenant).decision()
}

// tally counts what others wait for.
type tally struct {
	mu    sync.Mutex
	grown *sync.Cond
	n     int
}

func newTally() *tally {
	c := new(tally)
	c.grown = sync.NewCond(&c.mu)
	return c
}

func (c *tally) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.grown.Broadcast()
}

// more waits until n more have been counted.
func (c *tally) more(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for end := c.n + n; c.n < end; {
		c.grown.Wait()
	}
}

// With 10,000 tenants in as many files, a reload that changes one of them
// rebuilds that one, and no request of anybody fails meanwhile.
func TestReloadOfManyTenants(t *testing.T) {
	const tenants = 10_000
	pass, failing := fakebackend.Start(t), fakebackend.Start(t, fakebackend.Behave("status-500"))
	deny := fakebackend.Start(t, fakebackend.Behave("deny:moved"))
	e := newEstate(t, "breaker: {volume: 2, ratio: 1, openFor: 1h}")
	id := func(i int) string { return fmt.Sprintf("t%05d", i) }
	for i := range tenants {
		e.tenant(id(i), pass.URL)
	}
	e.tenant("broken", failing.URL)
	r := e.serve()
	for i := range 3 {
		r.ask("broken", fmt.Sprint("e", i))
	}
	if got := r.party("broken").peers[0].breaker.State(); got != breaker.Open {
		t.Fatalf("the breaker of a failing backend is %v; want open", got)
	}
	r.ask(id(1), "remembered")

	var stop atomic.Bool
	asked := newTally()
	var asking sync.WaitGroup
	for w := range 4 {
		asking.Go(func() {
			for n := w; !stop.Load(); n += 4 {
				// The first tenants are those that change; none of these answers
				// depends on which configuration it was given under.
				if got := r.ask(id(100+n%(tenants-100)), fmt.Sprint("load-", n)); got != "pass" {
					t.Errorf("a request during reloads = %s; want pass", got)
				}
				asked.add()
			}
		})
	}
	before := r.current.Load()
	for i := range 3 {
		e.tenant(id(i*2), deny.URL)                   // has moved
		e.tenant(id(i*2+1), pass.URL, "inFlight: 77") // has another limit only
		e.tenant(fmt.Sprint("new-", i), pass.URL)
		if err := os.Remove(filepath.Join(e.dir, "tenants", id(50+i)+".yaml")); err != nil {
			t.Fatal(err)
		}
		e.reload(r)
		asked.more(100) // so that there are requests under each of them
	}
	stop.Store(true)
	asking.Wait()

	after := make(map[string]*party)
	for _, p := range r.current.Load().parties {
		after[p.id] = p
	}
	if got, want := len(after), tenants+1; got != want {
		t.Errorf("%d tenants after the reloads; want %d: as many came as went", got, want)
	}
	kept := 0
	for _, old := range before.parties {
		p := after[old.id]
		if p == old {
			kept++
			continue
		}
		var n int
		if _, err := fmt.Sscanf(old.id, "t%05d", &n); err != nil || n >= 6 && (n < 50 || n >= 53) {
			t.Errorf("tenant %s was rebuilt; want it kept", old.id)
			continue
		}
		switch {
		case n >= 50:
			if p != nil {
				t.Errorf("tenant %s is still there; want it gone", old.id)
			}
		case n%2 == 0: // its backend has moved
			if p.peers[0] == old.peers[0] || p.limiter != old.limiter || p.stats != old.stats || p.peers[0].stats != old.peers[0].stats {
				t.Errorf("tenant %s, whose backend moved, kept it, or lost its limiter or counters", old.id)
			}
		default:
			if p.peers[0] != old.peers[0] || p.limiter == old.limiter || p.stats != old.stats || p.answers == old.answers {
				t.Errorf("tenant %s, whose limit changed, kept it or its answers, or lost its backend or counters", old.id)
			}
		}
	}
	if want := tenants + 1 - 9; kept != want {
		t.Errorf("%d tenants were kept as they were; want %d", kept, want)
	}
	for asks, want := range map[string]string{id(0): "deny: moved", id(1): "pass", "new-2": "pass", id(51): "HTTP 401", "broken": "pass"} {
		if got := r.ask(asks, "after"); !strings.HasPrefix(got, want) {
			t.Errorf("after the reloads tenant %s is answered %s; want %s", asks, got, want)
		}
	}
	if got := r.party("broken").peers[0].breaker.State(); got != breaker.Open || failing.Count() != 2 {
		t.Errorf("after the reloads the breaker is %v and its backend had %d calls; want open, 2", got, failing.Count())
	}
}

// An unchanged tenant keeps what was answered; a change of whatever its answers
// depend on does not let them be given again.
func TestReloadOfTenantFiles(t *testing.T) {
	b := fakebackend.Start(t)
	e := newEstate(t)
	e.tenant("plain", b.URL)
	e.tenant("other", b.URL)
	doc := registration("0.1", hook("com.example.policy", b.URL, intercepts("0.1", "fail-open", 5000)))
	e.tenantOf("secret", strings.Replace(doc, `"subscriptions"`, `"authentication":{"type":"bearer","tokenRef":"token"},"subscriptions"`, 1),
		"secrets: {dir: ../secrets}")
	e.put("secrets/token", "first\n")
	r := e.serve()
	names := []string{"plain", "other", "secret"}
	for _, step := range []struct {
		what    string
		change  func()
		rebuilt []string // tenants that are assembled anew
		peers   []string // tenants whose backend is too
	}{
		{"nothing", func() {}, nil, nil},
		{"one tenant's rate", func() { e.tenant("other", b.URL, "rate: 1000") }, []string{"other"}, nil},
		{"a secret", func() { e.put("secrets/token", "second\n") }, []string{"secret"}, []string{"secret"}},
		{"what all share", func() {
			e.gateway("failClosed: {reason: Not now.}")
		}, names, nil},
	} {
		before := make(map[string]*party)
		hits := make(map[string]uint64)
		for _, name := range names {
			p := r.party(name)
			before[name] = p
			if got := r.ask(name, "event"); got != "pass" {
				t.Errorf("tenant %s is answered %s; want pass", name, got)
			}
			hits[name] = p.stats.dedupe[dedupe.Hit].Load()
		}
		step.change()
		e.reload(r)
		for _, name := range names {
			p := r.party(name)
			r.ask(name, "event")
			rebuilt, hit := p != before[name], p.stats.dedupe[dedupe.Hit].Load() > hits[name]
			if want := slices.Contains(step.rebuilt, name); rebuilt != want || hit == want {
				t.Errorf("after a change of %s: tenant %s rebuilt = %t, answered from memory = %t; want %t, %t", step.what, name, rebuilt, hit, want, !want)
			}
			if moved, want := p.peers[0] != before[name].peers[0], slices.Contains(step.peers, name); moved != want {
				t.Errorf("after a change of %s: the backend of tenant %s replaced = %t; want %t", step.what, name, moved, want)
			}
		}
	}
}

// A backend that is asked again, because it could not be before, leaves the
// tenants alone that have nothing to do with it.
func TestAskingAgainKeepsOtherTenants(t *testing.T) {
	b := fakebackend.Start(t)
	late := fakebackend.Start(t, fakebackend.Advertise("rpc-error-32601", "configuration"))
	e := newEstate(t, "discovery: {onFailure: skip}")
	e.tenant("plain", b.URL)
	e.tenantOf("late", `{"protocolVersion":"draft","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":"`+late.URL+`"}}]}`)
	r := e.serve()
	plain, asking := r.party("plain"), r.party("late")
	if err := r.askAgain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.party("plain") != plain || r.party("late") == asking {
		t.Error("asking a backend again rebuilt another tenant, or not its own")
	}
}

// Asking a backend again is no reload: what a tenant remembers is kept where its
// backends are those of before, not where a secret is another one by now; and
// whether the files have a mistake it says nothing about.
func TestAskingAgainIsNoReload(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
		if q.Header.Get("Authorization") == "Bearer lenient" {
			return "pass"
		}
		return "deny:not for you"
	}))
	asked := fakebackend.Start(t, fakebackend.Advertise("configuration"))
	late := fakebackend.Start(t, fakebackend.Advertise("status-500", "configuration"))
	bare := func(b *fakebackend.Server) string {
		return `{"protocolVersion":"draft","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":"` + b.URL + `"}}]}`
	}
	e := newEstate(t, "discovery: {onFailure: skip}")
	e.put("secrets/token", "lenient\n")
	doc := registration("0.1", hook("com.example.policy", b.URL, intercepts("0.1", "fail-closed", 5000)))
	e.tenantOf("secret", strings.Replace(doc, `"subscriptions"`, `"authentication":{"type":"bearer","tokenRef":"token"},"subscriptions"`, 1), "secrets: {dir: ../secrets}")
	e.tenantOf("asked", bare(asked))
	e.tenantOf("late", bare(late))
	r := e.serve()
	if got := r.ask("secret", "e1"); got != "pass" {
		t.Fatalf("first = %s; want pass", got)
	}
	remembers := r.party("asked").answers
	e.put("tenants/secret.yaml", "id: [")
	if _, _, err := e.Load(); err == nil {
		t.Fatal("Load of a mistake = no error; want one")
	}
	r.Rejected()
	when := r.stats.reloadTime.Load()
	e.put("secrets/token", "strict\n")
	before := r.Generation()
	if err := r.askAgain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Generation() == before {
		t.Fatal("a backend that answers now was not taken in")
	}
	if r.stats.reloadOK.Load() || r.stats.reloadTime.Load() != when {
		t.Error("after a backend was asked again the refused reload counts as a good one; want it as it was")
	}
	if got := r.ask("secret", "e1"); got != "deny: not for you" {
		t.Errorf("the event once another secret is in use = %s; want another decision", got)
	}
	if r.party("asked").answers != remembers {
		t.Error("a tenant whose backend is the same forgot its answers")
	}
}

// What comes to nothing for a tenant costs it nothing: a change of its document
// that is refused, a mistake in the gateway file, and a renewal of the listener's
// certificate, though its file is read again.
func TestReadAgainToTheSameEnd(t *testing.T) {
	b := fakebackend.Start(t)
	e := newEstate(t)
	pair := func(n int64) {
		cert, key, _ := keyPair(t, n)
		e.put("c.pem", cert)
		e.put("k.pem", key)
	}
	pair(1)
	base := "tls: {certFile: c.pem, keyFile: k.pem}"
	e.gateway(base)
	e.tenant("acme", b.URL)
	e.tenant("other", b.URL, "rate: 50")
	r := e.serve()
	refused := func() {
		if _, _, err := e.Load(); err == nil {
			t.Error("Load of a mistake = no error; want one")
		}
	}
	for _, step := range []struct {
		what   string
		change func()
	}{
		{"a change that is refused", func() {
			if _, _, err := e.LoadWith(config.Change{Path: filepath.Join(e.dir, "tenants/acme.yaml"), Data: []byte("id: acme\n")}); err == nil {
				t.Error("LoadWith a tenant without a registration = no error; want one")
			}
			e.tenant("third", b.URL)
		}},
		{"a mistake that is corrected", func() {
			e.gateway(base, "limits: {budget: 3}")
			refused()
			e.gateway(base)
		}},
		{"a mistake in its file that is corrected", func() {
			e.put("tenants/acme.yaml", "id: [")
			refused()
			e.tenant("acme", b.URL)
		}},
		{"a renewal of the listener's certificate", func() { pair(2) }},
	} {
		acme, other := r.party("acme"), r.party("other")
		step.change()
		e.reload(r)
		if r.party("acme") != acme || r.party("other") != other {
			t.Errorf("after %s a tenant that has not changed was made anew", step.what)
		}
	}
}

// BenchmarkReload measures a reload with 10,000 tenants in as many files, with
// one backend each: reading the files and building what is served.
func BenchmarkReload(b *testing.B) {
	const tenants = 10_000
	for _, c := range []struct {
		name   string
		change func(e *estate, n int)
	}{
		{"nothing", func(*estate, int) {}},
		{"one", func(e *estate, n int) { e.tenant("t00000", fmt.Sprintf("http://127.0.0.1:9000/%d", n)) }},
		{"defaults", func(e *estate, n int) { e.gateway(fmt.Sprintf("limits: {rate: %d}", n+1)) }},
		{"all", func(e *estate, n int) {
			for i := range tenants {
				e.tenant(fmt.Sprintf("t%05d", i), fmt.Sprintf("http://127.0.0.1:9000/%d/%d", i, n))
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := newEstate(b)
			old := time.Now().Add(-time.Hour)
			for i := range tenants {
				name := fmt.Sprintf("t%05d", i)
				e.tenant(name, fmt.Sprintf("http://127.0.0.1:9000/%d", i))
				if err := os.Chtimes(filepath.Join(e.dir, "tenants", name+".yaml"), old, old); err != nil {
					b.Fatal(err)
				}
			}
			r := e.serve()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				b.StopTimer()
				n++
				c.change(e, n)
				b.StartTimer()
				e.reload(r)
			}
		})
	}
}

// One tenant's backend that cannot be asked any more keeps nobody else's change
// out: it goes on with what it asked for. A change by the API does not ask it.
func TestDiscoveryOfOneTenantDelaysNobody(t *testing.T) {
	b := fakebackend.Start(t)
	asked := fakebackend.Start(t, fakebackend.Behave("deny:no"), fakebackend.Advertise("configuration"))
	e := newEstate(t) // discovery.onFailure: refuse
	e.tenant("acme", b.URL)
	e.tenantOf("flaky", `{"protocolVersion":"draft","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":"`+asked.URL+`"}}]}`)
	r := e.serve()
	asked.Close()

	e.tenant("acme", b.URL, "rate: 1000")
	before := r.party("flaky")
	if _, err := r.Propose(t.Context(), e.load(), func() error { return nil }); err != nil {
		t.Errorf("Propose beside a backend that cannot be asked = %v; want none", err)
	}
	if r.party("flaky") != before {
		t.Error("Propose of another tenant's change has assembled the tenant of a backend that is asked; want it taken over")
	}
	e.tenant("acme", b.URL, "rate: 2000")
	if _, err := r.Reload(t.Context(), e.load()); err != nil {
		t.Errorf("Reload beside a backend that cannot be asked = %v; want none", err)
	}
	if p := r.party("acme"); p.limiter.Limits.Rate != 2000 {
		t.Errorf("rate of acme after the reload = %v; want 2000", p.limiter.Limits.Rate)
	}
	p := r.party("flaky")
	if len(p.discovered) != 1 || p.discovered[0].failure.OK() || p.discovered[0].skipped() {
		t.Errorf("the backend was found to be %v; want one that could not be asked and keeps its subscriptions", p.discovered)
	}
	// It is the file of that tenant that a failure refuses.
	e.tenantOf("flaky", `{"protocolVersion":"draft","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":"`+asked.URL+`"}}]}`, "rate: 3")
	if _, err := r.Reload(t.Context(), e.load()); err == nil {
		t.Error("Reload of a changed tenant whose backend cannot be asked = no error; want one")
	}
}

// While nobody knows who all the tenants are, a key of none of them may be good:
// it is asked to come again, and without any tenant the gateway is not ready.
func TestUnknownTenants(t *testing.T) {
	b := fakebackend.Start(t)
	e := newEstate(t)
	e.put("tenants/README.md", "none yet")
	known := false
	stored := func(o *Options) { o.Stored = func() *Stored { return &Stored{Known: known} } }
	r := startFile(t, e.load(), stored)
	expect := func(ready, unknown int) {
		t.Helper()
		if status, body := r.get("/readyz"); status != ready {
			t.Errorf("/readyz = %d %s; want %d", status, body, ready)
		}
		a := r.post("/hooks", event01("e1"), "Authorization: Bearer key-of-nobody-0123456789")
		if a.status != unknown || (a.header.Get("Retry-After") != "") != (unknown == 503) {
			t.Errorf("a key of nobody's = %d, Retry-After %q; want %d", a.status, a.header.Get("Retry-After"), unknown)
		}
		if a := r.post("/hooks", event01("e1")); a.status != 401 {
			t.Errorf("no key = %d; want 401", a.status)
		}
	}
	expect(503, 503)
	e.tenant("acme", b.URL)
	e.reload(r)
	expect(200, 503)
	known = true
	expect(200, 401)
}

// That changes of the store are not served is told of, and takes nobody's readiness.
func TestHeldChangesAreTold(t *testing.T) {
	b := fakebackend.Start(t)
	e := newEstate(t)
	e.tenant("acme", b.URL)
	held := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	store, err := OpenStore(&config.Redis{URL: "redis://127.0.0.1:1", Timeout: time.Second, Prefix: "ahp"}, nil, func(shared.Class, string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	m, measuring := measured(t)
	r := startFile(t, e.load(), measuring, func(o *Options) {
		o.Stored = func() *Stored { return &Stored{Known: true, Held: held, Store: store} }
	})
	if status, body := r.get("/readyz"); status != 200 || !strings.Contains(body, "since 2026-01-02T03:04:05Z what has changed in the store is not served") {
		t.Errorf("/readyz = %d %s; want 200 and since when", status, body)
	}
	if got := m.value("ahp.gateway.stored.held", ""); got != 1 {
		t.Errorf("ahp.gateway.stored.held = %d; want 1", got)
	}
}
