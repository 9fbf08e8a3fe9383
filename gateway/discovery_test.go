package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// bare is a hook that lists no subscriptions.
func bare(id, url string, more ...string) string {
	return `{"id":"` + id + `","transport":{"type":"http","url":"` + url + `"}` + strings.Join(more, "") + `}`
}

// advertises is a backend's answer that advertises subscriptions, which it
// otherwise lists like a document.
func advertises(subscriptions ...string) string {
	return `configuration:{"subscriptions":[{` + strings.Join(subscriptions, "},{") + `}]}`
}

// logged makes start keep the log, which text returns.
func logged() (text func() string, o func(*Options)) {
	var mu sync.Mutex
	var log bytes.Buffer
	return func() string {
			mu.Lock()
			defer mu.Unlock()
			return log.String()
		}, func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
		}
}

const discoverySkipped = "ahp.gateway.discovery.skipped"

// refusedStart returns the error of New for the configuration text.
func refusedStart(t *testing.T, text string) string {
	t.Helper()
	g, err := New(t.Context(), parse(t, text), Options{Environ: environ})
	if err == nil {
		_ = g.Shutdown(t.Context())
		t.Fatalf("New(%s) = a gateway; want an error", text)
	}
	return err.Error()
}

// A backend with nothing but an id and an address is called under the terms
// that it advertises, as if the document had listed them.
func TestDiscovery(t *testing.T) {
	terms := []string{
		`"events":["tool.before"],"mode":"intercept","timeoutMs":700,"failurePolicy":"fail-open","includeNative":true,"content":{"default":"metadata"}`,
		`"events":["session.*"],"mode":"observe","content":{"default":"omit"}`,
	}
	var answers, events []string
	for _, discovered := range []bool{true, false} {
		b := fakebackend.Start(t, fakebackend.Behave("deny:no", "status-500", "pass"), fakebackend.Advertise(advertises(terms...)))
		h := bare("com.example.b", b.URL)
		if !discovered {
			h = bare("com.example.b", b.URL, `,"subscriptions":[{`+strings.Join(terms, "},{")+`}]`)
		}
		m, o := measured(t)
		r := start(t, open(registration("draft", h)), o)
		said := r.post("/hooks", ask).body
		for i := range 3 {
			said += r.post("/hooks", eventDraft(fmt.Sprint("e", i))).body
		}
		said += r.post("/hooks", notification("draft", "s1", "session.end", `,"harness":{"name":"h","version":"1"},"session":{"id":"s"},"outcome":"completed","reason":"r"`)).body
		_, admin := r.get("/admin/backends")
		if got := strings.Contains(admin, `"discovery":"done"`); got != discovered {
			t.Errorf("/admin/backends of a backend with discovery %t = %s", discovered, admin)
		}
		if _, body := r.get("/admin/config"); strings.Contains(body, "subscriptions") == discovered {
			t.Errorf("/admin/config of a backend with discovery %t = %s", discovered, body)
		}
		if got := m.value(discoverySkipped, "ahp.tenant=default"); got != 0 {
			t.Errorf("%s with discovery %t = %d; want 0", discoverySkipped, discovered, got)
		}
		r.stop()
		got := seen(b.Requests())
		if discovered {
			first := b.Requests()[0]
			if first.RPCMethod != "hooks/configuration" || first.Version != "draft" {
				t.Errorf("the first request was %s; want hooks/configuration of draft", first.Body)
			}
			got = strings.TrimPrefix(got, "configuration , ")
		}
		answers, events = append(answers, said), append(events, got)
	}
	if answers[0] != answers[1] || !strings.Contains(answers[0], `"timeoutMs":950`) || !strings.Contains(answers[0], `"reason":"no"`) {
		t.Errorf("with discovery the harness was told\n%s; want as without\n%s", answers[0], answers[1])
	}
	if want := "intercept e0, intercept e1, intercept e2, observe s1"; events[0] != want || events[1] != want {
		t.Errorf("the backend got %q with discovery and %q without; want %q", events[0], events[1], want)
	}
}

// What is asked is what the document says of the backend: its credential too.
func TestDiscoveryHasTheCredential(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Advertise("configuration"))
	start(t, open(registration("draft", bare("com.example.b", b.URL, `,"authentication":{"type":"bearer","tokenEnv":"AHP_TOKEN"}`))))
	if got := b.Requests()[0].Header.Get("Authorization"); got != "Bearer token-from-environment" {
		t.Errorf("hooks/configuration had Authorization %q; want the token", got)
	}
	got := refusedStart(t, open(registration("draft", bare("com.example.b", b.URL, `,"authentication":{"type":"bearer","tokenEnv":"AHP_ABSENT"}`))))
	if !strings.Contains(got, "tenant default: backend com.example.b: credential: ") || b.Count() != 1 {
		t.Errorf("New without the credential = %s after %d requests; want credential after one", got, b.Count())
	}
}

// discoveryFailures are ways to fail a discovery, and the class of each.
var discoveryFailures = map[string]ahp.FailureClass{
	"rpc-error-32601":            ahp.FailRPCError,
	"rpc-error-32001":            ahp.FailVersionUnsupported,
	"hang":                       ahp.FailDeadline,
	"reset":                      ahp.FailReset,
	"status-500":                 ahp.FailStatus,
	"status-401":                 ahp.FailUnauthorized,
	"redirect":                   ahp.FailRedirect,
	"media-type-text":            ahp.FailMediaType,
	"oversize":                   ahp.FailOversize,
	"bad-json":                   ahp.FailMalformedJSON,
	"dup-member":                 ahp.FailMalformedJSON,
	"pass":                       ahp.FailMalformedRPC,
	"configuration-effects":      ahp.FailMalformedRPC,
	"configuration-other-id":     ahp.FailIDMismatch,
	"configuration-version":      ahp.FailVersionUnsupported,
	"configuration-status-201":   ahp.FailStatus,
	"configuration-null":         ahp.FailMissingResult,
	"configuration-empty":        ahp.FailConfiguration,
	"configuration-bad-timeout":  ahp.FailConfiguration,
	"configuration-inapplicable": ahp.FailConfiguration,
	`configuration:{"subscriptions":[{"events":["token-from-environment"],"mode":"observe","content":{"default":"omit"},"token-from-environment":1}]}`: ahp.FailConfiguration,
}

// A backend that cannot be asked is in the way of the whole configuration,
// unless the operator says otherwise: then it alone is left out, and that can
// be seen. Nothing that it has said is shown.
func TestDiscoveryFailure(t *testing.T) {
	for behaviour, class := range discoveryFailures {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			b := fakebackend.Start(t, fakebackend.Advertise(behaviour), fakebackend.Behave("deny:never asked"))
			next := fakebackend.Start(t, fakebackend.Behave("deny:next"))
			doc := registration("draft",
				bare("com.example.b", b.URL, `,"authentication":{"type":"bearer","tokenEnv":"AHP_TOKEN"}`),
				hook("com.example.next", next.URL, intercepts("draft", "fail-closed", 5000)))
			timeout := "20s"
			if class == ahp.FailDeadline {
				timeout = "200ms"
			}
			got := refusedStart(t, open(doc, "discovery: {timeout: "+timeout+"}"))
			if want := "gateway: discovery of subscriptions failed; tenant default: backend com.example.b: " + class.String() + ": "; !strings.HasPrefix(got, want) ||
				strings.Contains(got, "token-from-environment") || strings.Contains(got, "fake backend") {
				t.Errorf("New = %s; want %s… and nothing that the backend says", got, want)
			}
			m, o := measured(t)
			text, l := logged()
			r := start(t, open(doc, "discovery: {timeout: "+timeout+", onFailure: skip}"), o, l)
			if a := r.post("/hooks", eventDraft("e1")); a.decision() != "deny: next" {
				t.Errorf("with the backend skipped = %s; want the next backend's deny", a.body)
			}
			if b.Count() != 2 {
				t.Errorf("the backend got %d requests; want the two for its configuration", b.Count())
			}
			if log := text(); !strings.Contains(log, `level=WARN msg="backend skipped`) || !strings.Contains(log, "backend=com.example.b failure=\""+class.String()+":") ||
				strings.Contains(log, "token-from-environment") {
				t.Errorf("log = %s; want that com.example.b is skipped for %s", log, class)
			}
			if m.value(discoverySkipped, "ahp.tenant=default") != 1 || m.value("ahp.gateway.failures", "ahp.backend=com.example.b,ahp.failure.class="+class.String()+",ahp.tenant=default") != 1 {
				t.Errorf("metrics %+v; want the failed discovery", m.collect())
			}
			if _, body := r.get("/admin/backends"); !strings.Contains(body, `"discovery":"`+class.String()+`: `) {
				t.Errorf("/admin/backends = %s; want why the backend is skipped", body)
			}
		})
	}
}

// Every backend that failed is named, up to a bound.
func TestDiscoveryNamesAllFailures(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Advertise("rpc-error-32601"))
	var hooks []string
	for i := range maxFailuresShown + 3 {
		hooks = append(hooks, bare(fmt.Sprintf("com.example.b%d", i), b.URL))
	}
	got := refusedStart(t, open(registration("draft", hooks...)))
	if strings.Count(got, "; tenant default: backend com.example.b") != maxFailuresShown || !strings.Contains(got, "; and 3 more; ") {
		t.Errorf("New = %s; want %d backends named and 3 more", got, maxFailuresShown)
	}
}

// An intercept selector covers only what can be intercepted; an upload that
// nobody has permitted is left out.
func TestDiscoveryKeepsWhatIsServed(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Advertise(advertises(
		`"events":["tool.*","turn.start"],"mode":"intercept","timeoutMs":700,"failurePolicy":"fail-open","content":{"default":"body"},"upload":{"endpoint":"https://u.example.com","timeoutMs":1,"maxBytes":1}`,
		`"events":["session.*","acme.*"],"mode":"observe","content":{"default":"omit"}`)))
	text, o := logged()
	r := start(t, open(registration("draft", bare("com.example.b", b.URL))), o)
	a := r.post("/hooks", ask)
	for _, want := range []string{
		`{"events":["session.start","session.end"],"mode":"observe","content":{"default":"omit"}}`,
		`{"events":["tool.before","tool.after","tool.permission.request","tool.batch.after","turn.start"],"mode":"intercept","timeoutMs":950,"failurePolicy":"fail-open","content":{"audio":"metadata","default":"body","files":"metadata","images":"metadata","video":"metadata"}}`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("hooks/configuration = %s; want %s", a.body, want)
		}
	}
	for _, want := range []string{"subscriptions[0].upload: content upload is not supported yet", "subscriptions[1].events[1]: covers no event", `intercept="[tool.before tool.after tool.permission.request tool.batch.after turn.start]"`, "observe=\"[session.start session.end]\""} {
		if !strings.Contains(text(), want) {
			t.Errorf("log = %s; want %s", text(), want)
		}
	}
	// Not its own, although the family covers it.
	r.post("/hooks", notification("draft", "p1", "tool.progress", `,"harness":{"name":"h","version":"1"},"call":{"id":"c"},"tool":{"name":"n","origin":"native","input":{}},"path":"native","partialOutput":{"id":"m","role":"tool","parts":[]},"backgrounded":false`))
	r.stop()
	if got := seen(b.Requests()); got != "configuration " {
		t.Errorf("the backend got %q; want its configuration alone", got)
	}
}

// Shadow settings hold for the ids that are advertised.
func TestDiscoveryShadow(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("deny:in shadow"), fakebackend.Advertise(advertises(`"id":"tools",`+intercepts("draft", "fail-closed", 5000))))
	text, o := logged()
	r := start(t, open(registration("draft", bare("com.example.b", b.URL)), "backends: {com.example.b: {shadow: [tools, gone]}}"), o)
	if a := r.post("/hooks", eventDraft("e1")); a.decision() != "pass" {
		t.Errorf("a denial in shadow = %s; want pass", a.body)
	}
	if !strings.Contains(text(), "advertises no subscription with this id") || !strings.Contains(text(), "gone") {
		t.Errorf("log = %s; want a warning of the id that is not advertised", text())
	}
}

// A reload asks again, over the connections there are, and serves what is
// wanted then.
func TestReloadDiscoversAgain(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("deny:no"), fakebackend.Advertise(
		"configuration",
		advertises(`"events":["session.*"],"mode":"observe","content":{"default":"omit"}`),
		"rpc-error-32601",
		"rpc-error-32601",
		"configuration",
	))
	text := open(registration("draft", bare("com.example.b", b.URL)))
	m, o := measured(t)
	r := start(t, text, o)
	p := r.peer("com.example.b")
	expect := func(when, id, want string) {
		t.Helper()
		if a := r.post("/hooks", eventDraft(id)); a.decision() != want {
			t.Errorf("%s = %s; want %s", when, a.body, want)
		}
	}
	expect("at first", "e1", "deny: no")
	if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
	expect("once the backend only observes", "e2", "pass")
	if _, err := r.Reload(t.Context(), parse(t, text)); err == nil || !strings.Contains(err.Error(), "backend com.example.b: rpc_error: JSON-RPC error -32601") {
		t.Errorf("Reload while the backend cannot be asked = %v; want rpc_error", err)
	}
	if got := r.current.Load().generation; got != 2 || m.value("ahp.gateway.config.last_reload_successful", "") != 0 || m.value(discoverySkipped, "ahp.tenant=default") != 0 {
		t.Errorf("after a refused reload: generation %d, metrics %+v; want 2, last reload failed, nothing skipped", got, m.collect())
	}
	skip := text + "discovery: {onFailure: skip}\n"
	if _, err := r.Reload(t.Context(), parse(t, skip)); err != nil || m.value(discoverySkipped, "ahp.tenant=default") != 0 {
		t.Errorf("Reload with a backend that may be skipped = %v, %s %d; want none, 0: its earlier terms hold", err, discoverySkipped, m.value(discoverySkipped, "ahp.tenant=default"))
	}
	if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
	expect("with the first terms again", "e3", "deny: no")
	if accepted, _ := b.Connections(); r.peer("com.example.b") != p || accepted != 1 {
		t.Errorf("the backend was replaced: %t, connections: %d; want it kept and asked on its one connection", r.peer("com.example.b") != p, accepted)
	}
}

// Invariant 2: where a backend that cannot be asked may be skipped, a reload does
// not turn off what it asked for before, unless the backend is another one.
func TestReloadKeepsWhatWasDiscovered(t *testing.T) {
	first := fakebackend.Start(t, fakebackend.Behave("deny:no"), fakebackend.Advertise("configuration", "rpc-error-32601"))
	other := fakebackend.Start(t, fakebackend.Behave("deny:no"), fakebackend.Advertise("rpc-error-32601"))
	text := func(b *fakebackend.Server, more string) string {
		return open(registration("draft", bare("com.example.b", b.URL))) + "discovery: {onFailure: skip}\n" + more
	}
	m, o := measured(t)
	r := start(t, text(first, ""), o)
	for i, c := range []struct {
		text, want, admin string
		skipped           int64
	}{
		{text(first, ""), "deny: no", "(its earlier subscriptions hold)", 0},
		{text(first, ""), "deny: no", "(its earlier subscriptions hold)", 0},
		{text(first, `backends: {com.example.b: {shadow: "*"}}`), "pass", "(its earlier subscriptions hold)", 0},
		{text(first, ""), "deny: no", "(its earlier subscriptions hold)", 0},
		{text(first, "backends: {com.example.b: {inFlight: 50}}"), "deny: no", "(its earlier subscriptions hold)", 0},
		{text(first, "limits: {observeQueue: 99}"), "deny: no", "(its earlier subscriptions hold)", 0},
		{text(other, ""), "pass", "JSON-RPC error -32601\"", 1},
	} {
		if _, err := r.Reload(t.Context(), parse(t, c.text)); err != nil {
			t.Fatal(err)
		}
		a := r.post("/hooks", eventDraft(fmt.Sprintf("e%d", i)))
		if _, body := r.get("/admin/backends"); a.decision() != c.want || !strings.Contains(body, c.admin) || m.value(discoverySkipped, "ahp.tenant=default") != c.skipped {
			t.Errorf("after reload %d: %s, /admin/backends %s, %d skipped; want %s, %s, %d", i, a.decision(), body, m.value(discoverySkipped, "ahp.tenant=default"), c.want, c.admin, c.skipped)
		}
	}
}

// A backend that could not be asked is asked again until it answers, and then
// its policy holds.
func TestSkippedBackendsAreAskedAgain(t *testing.T) {
	var up atomic.Bool
	asked := make(chan struct{}, 100)
	b := fakebackend.Start(t, fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
		switch {
		case q.RPCMethod != "hooks/configuration":
			return "deny:no"
		case up.Load():
			return "configuration"
		default:
			asked <- struct{}{}
			return "status-500-pass"
		}
	}))
	g, err := New(t.Context(), parse(t, open(registration("draft", bare("com.example.b", b.URL)))+"discovery: {onFailure: skip}\n"), Options{Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	g.rediscoverEvery = time.Millisecond
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	r := &rig{Gateway: g, t: t, client: &http.Client{}}
	t.Cleanup(r.stop)
	<-asked
	if a := r.post("/hooks", eventDraft("e1")); a.decision() != "pass" || g.current.Load().generation != 1 {
		t.Errorf("while the backend is skipped = %s in generation %d; want a pass in 1", a.body, g.current.Load().generation)
	}
	up.Store(true)
	for i := 0; ; i++ {
		if a := r.post("/hooks", eventDraft(fmt.Sprintf("f%d", i))); a.decision() == "deny: no" {
			break
		}
		if i == 10000 {
			t.Fatal("a backend that answers again was not asked again")
		}
	}
	if got := g.current.Load().generation; got != 2 {
		t.Errorf("generation %d after the backend has answered; want 2", got)
	}
}

// A backend that answers with what cannot be served is no reason to start anew:
// nobody else is asked, and nothing that is remembered is forgotten. Nor does a
// backend that answers again void what other tenants remember.
func TestAskingAgainConcernsNobodyElse(t *testing.T) {
	var tries, useful atomic.Int64
	asked := make(chan struct{}, 1000)
	bad := fakebackend.Start(t, fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
		if q.RPCMethod != "hooks/configuration" {
			return "deny:no"
		}
		asked <- struct{}{}
		if tries.Add(1); useful.Load() == 0 {
			return advertises(`"events":["model.nonsense"],"mode":"observe","content":{"default":"omit"}`)
		}
		return "configuration"
	}))
	good := fakebackend.Start(t, fakebackend.Advertise("configuration"))
	tenantOf := func(id string, b *fakebackend.Server) string {
		return fmt.Sprintf("  - {id: %s, keys: [{sha256: %x}], registration: %s}\n", id, sha256.Sum256([]byte(id)), registration("draft", bare("com.example.b", b.URL)))
	}
	g, err := New(t.Context(), parse(t, "tenants:\n"+tenantOf("good", good)+tenantOf("bad", bad)+"discovery: {onFailure: skip}\n"), Options{Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	g.rediscoverEvery = time.Millisecond
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	r := &rig{Gateway: g, t: t, client: &http.Client{}}
	t.Cleanup(r.stop)
	decide := func() {
		if a := r.post("/hooks", eventDraft("e1"), "Authorization: Bearer good"); a.decision() != "pass" {
			t.Fatalf("answered %s; want a pass", a.body)
		}
	}
	for range 10 {
		decide()
		<-asked
	}
	if got := g.current.Load().generation; got != 1 {
		t.Errorf("generation %d while the backend's answers are of no use; want 1", got)
	}
	useful.Store(1)
	for i := 0; g.current.Load().generation == 1; i++ {
		if i == 10000 {
			t.Fatal("a backend that answers with something useful was not noticed")
		}
		decide()
	}
	decide()
	decisions := 0
	for _, q := range good.Requests() {
		if q.RPCMethod == "hooks/intercept" {
			decisions++
		}
	}
	if decisions != 1 {
		t.Errorf("one event was decided %d times; want once", decisions)
	}
}

// Requests do not wait for a reload that waits for a backend, and a reload that
// is no longer wanted ends at once.
func TestReloadWaitsBesideRequests(t *testing.T) {
	release := make(chan struct{})
	var asked atomic.Int64
	b := fakebackend.Start(t, fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
		if q.RPCMethod != "hooks/configuration" {
			return "deny:no"
		}
		if asked.Add(1) > 1 {
			<-release
		}
		return "configuration"
	}))
	text := open(registration("draft", bare("com.example.b", b.URL)), "discovery: {timeout: 1h}")
	r := start(t, text)
	reload := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := r.Reload(ctx, parse(t, text))
			done <- err
		}()
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := reload(ctx)
	b.Await(2)
	if a := r.post("/hooks", eventDraft("e1")); a.decision() != "deny: no" {
		t.Errorf("while a reload waits = %s; want deny: no", a.body)
	}
	cancel()
	if err := <-interrupted; !errors.Is(err, context.Canceled) || r.current.Load().generation != 1 || !r.stats.reloadOK.Load() {
		t.Errorf("an interrupted reload = %v, generation %d, last reload ok %t; want context.Canceled, 1, true", err, r.current.Load().generation, r.stats.reloadOK.Load())
	}
	done := reload(t.Context())
	b.Await(4)
	close(release)
	if err := <-done; err != nil || r.current.Load().generation != 2 {
		t.Errorf("Reload = %v, generation %d; want none, 2", err, r.current.Load().generation)
	}
	if a := r.post("/hooks", eventDraft("e2")); a.decision() != "deny: no" {
		t.Errorf("after the reload = %s; want deny: no", a.body)
	}
}

func TestStartIsInterrupted(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("hang"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	f := parse(t, open(registration("draft", bare("com.example.b", b.URL)), "discovery: {timeout: 1h}"))
	go func() {
		_, err := New(ctx, f, Options{})
		done <- err
	}()
	b.Await(1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("New(cancelled) = %v; want context.Canceled", err)
	}
}

// Backends are asked side by side, but not all at once, and those of one tenant
// cannot use up the time of another's.
func TestDiscoverySideBySide(t *testing.T) {
	var now, most, arrived atomic.Int64
	together := make(chan struct{})
	b := fakebackend.Start(t, fakebackend.WithScript(func(int, *fakebackend.Request) string {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if arrived.Add(1) == inquiriesPerTenant {
			close(together)
		}
		<-together
		return "configuration"
	}))
	var hooks []string
	for i := range 3 * inquiriesPerTenant {
		hooks = append(hooks, bare(fmt.Sprintf("com.example.b%d", i), b.URL))
	}
	start(t, open(registration("draft", hooks...), "discovery: {timeout: 1h}"))
	if got := most.Load(); got != inquiriesPerTenant || b.Count() != len(hooks) {
		t.Errorf("%d backends were asked at once, %d in all; want %d, %d", got, b.Count(), inquiriesPerTenant, len(hooks))
	}
}

func TestDiscoveryOfOneTenantDoesNotDelayAnother(t *testing.T) {
	slow := fakebackend.Start(t, fakebackend.Behave("hang"))
	quick := fakebackend.Start(t, fakebackend.Advertise("configuration"), fakebackend.Behave("deny:no"))
	var hooks []string
	for i := range 4 * inquiriesPerTenant {
		hooks = append(hooks, bare(fmt.Sprintf("com.example.b%d", i), slow.URL))
	}
	r := start(t, many(
		tenantEntry("acme", registration("draft", hooks...), []string{"acme-key"}, "backends: {}"),
		tenantEntry("beta", registration("draft", bare("com.example.b", quick.URL)), []string{"beta-key"}),
	)+"discovery: {timeout: 500ms, onFailure: skip}\n")
	if a := r.post("/hooks", eventDraft("e1"), "Authorization: Bearer beta-key"); a.decision() != "deny: no" {
		t.Errorf("beta's event = %s; want its own backend's deny", a.body)
	}
	if slow.Count() != inquiriesPerTenant {
		t.Errorf("%d slow backends were asked; want %d, and none after the time was over", slow.Count(), inquiriesPerTenant)
	}
}
