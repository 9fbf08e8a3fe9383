package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/breaker"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// A reload keeps what it does not change: the backend with its breaker and
// connections, the limiter, the counters.
func TestReloadKeepsUnchanged(t *testing.T) {
	kept := fakebackend.Start(t)
	moved := fakebackend.Start(t)
	elsewhere := fakebackend.Start(t)
	text := func(second *fakebackend.Server, timeout int) string {
		return open(registration("0.1",
			hook("com.example.kept", kept.URL, intercepts("0.1", "fail-closed", timeout)),
			hook("com.example.moved", second.URL, intercepts("0.1", "fail-closed", 5000))))
	}
	r := start(t, text(moved, 5000))
	r.post("/hooks", event01("e1"))
	before := r.current.Load().parties[0]
	peers := map[string]*peer{"kept": r.peer("com.example.kept"), "moved": r.peer("com.example.moved")}
	if restart, err := r.Reload(t.Context(), parse(t, text(elsewhere, 4000))); err != nil || len(restart) != 0 {
		t.Fatalf("Reload() = %v, %v; want done without a restart", restart, err)
	}
	r.post("/hooks", event01("e2"))
	after := r.current.Load().parties[0]
	if r.peer("com.example.kept") != peers["kept"] {
		t.Error("a backend whose subscription alone has changed was replaced; want it kept")
	}
	if r.peer("com.example.moved") == peers["moved"] {
		t.Error("a backend that has moved was kept; want it replaced")
	}
	if after.limiter != before.limiter || after.stats != before.stats || after.observed != before.observed || after.answers == before.answers {
		t.Error("reload replaced the limiter, counters or observed events, or kept the answers")
	}
	if accepted, _ := kept.Connections(); accepted != 1 {
		t.Errorf("kept backend saw %d connections; want 1", accepted)
	}
	if moved.Count() != 1 || elsewhere.Count() != 1 {
		t.Errorf("the moved backend was called %d and %d times; want 1 at each place", moved.Count(), elsewhere.Count())
	}
	if got := r.peer("com.example.moved").stats.outcomes[1].Load(); got != 2 {
		t.Errorf("the moved backend's counter says %d; want 2, over both places", got)
	}
}

// A reload that leaves a backend as it is leaves its open breaker open.
func TestReloadKeepsBreaker(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("status-500"))
	text := open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-open", 5000))),
		"breaker: {volume: 2, ratio: 1, openFor: 1h}")
	r := start(t, text)
	for i := range 4 {
		r.post("/hooks", event01(fmt.Sprintf("e%d", i)))
	}
	if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
	r.post("/hooks", event01("after"))
	if got := r.peer("com.example.b").breaker.State(); got != breaker.Open || b.Count() != 2 {
		t.Errorf("after a reload the breaker is %v and the backend had %d calls; want open, 2", got, b.Count())
	}
}

// What cannot be built changes nothing.
func TestReloadRefused(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	bad := parse(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	settings := bad.Tenants[0].Backends["com.example.b"]
	settings.CAFile = filepath.Join(t.TempDir(), "missing.pem")
	bad.Tenants[0].Backends = map[string]config.BackendSettings{"com.example.b": settings}
	if _, err := r.Reload(t.Context(), bad); err == nil {
		t.Error("Reload(missing CA file) = nil; want an error")
	}
	if got := r.current.Load().generation; got != 1 || r.stats.reloadOK.Load() {
		t.Errorf("after a refused reload: generation %d, last reload ok %t; want 1, false", got, r.stats.reloadOK.Load())
	}
	if a := r.post("/hooks", event01("e1")); a.decision() != "pass" {
		t.Errorf("after a refused reload = %s; want pass", a.body)
	}
}

func TestReloadNamesWhatNeedsRestart(t *testing.T) {
	b := fakebackend.Start(t)
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))
	r := start(t, open(doc))
	restart, err := r.Reload(t.Context(), parse(t, open(doc, "limits: {body: 2MiB, rate: 5}")))
	if err != nil || strings.Join(restart, " ") != "limits.body" {
		t.Errorf("Reload(body and rate changed) = %v, %v; want limits.body", restart, err)
	}
}

// Invariant 6: reloads under load lose nothing and mix nothing.
func TestReloadUnderLoad(t *testing.T) {
	var backends [2]*fakebackend.Server
	var texts [2]string
	for i := range backends {
		backends[i] = fakebackend.Start(t, fakebackend.Behave(fmt.Sprintf("deny:policy %d", i)))
		texts[i] = open(registration("draft",
			hook("com.example.first", backends[i].URL, intercepts("draft", "fail-closed", 5000))))
	}
	r := start(t, texts[0])
	var stop atomic.Bool
	var wg sync.WaitGroup
	var answered atomic.Int64
	for w := range 8 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				a := r.post("/hooks", eventDraft(fmt.Sprintf("w%d-%d", w, i)))
				if d := a.decision(); d != "deny: policy 0" && d != "deny: policy 1" {
					t.Errorf("under reloads = %s; want one of the two policies", a.body)
					return
				}
				answered.Add(1)
			}
		})
	}
	for i := range 50 {
		if _, err := r.Reload(t.Context(), parse(t, texts[(i+1)%2])); err != nil {
			t.Error(err)
		}
		for target := answered.Load() + 8; answered.Load() < target && !t.Failed(); {
			time.Sleep(100 * time.Microsecond) // gives the load a turn between reloads; nothing is synchronised by it
		}
	}
	stop.Store(true)
	wg.Wait()
}

// Drain loses nothing: a request under way is answered, what waits for
// observers is delivered, and the audit log is complete.
func TestShutdownDrains(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("late"))
	observer := fakebackend.Start(t)
	r := start(t, open(registration("draft",
		hook("com.example.b", b.URL, intercepts("draft", "fail-closed", 20000)),
		hook("com.example.observer", observer.URL, observes("draft", `"tool.before"`)))))
	answer := make(chan *reply)
	go func() { answer <- r.post("/hooks", eventDraft("e1")) }()
	b.Await(1)
	done := make(chan struct{})
	go func() { r.stop(); close(done) }()
	for r.ready.Load() {
		time.Sleep(time.Millisecond) // until the shutdown has begun
	}
	if status, _ := r.get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz while draining = %d; want 503", status)
	}
	if status, _ := r.get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz while draining = %d; want 200", status)
	}
	b.Release()
	if a := <-answer; a.decision() != "pass" || !strings.EqualFold(a.header.Get("Connection"), "close") && a.header.Get("Connection") != "" {
		t.Errorf("request under way = %s; want pass", a.body)
	}
	<-done
	if got := seen(observer.Requests()); got != "observe e1" {
		t.Errorf("observer got %q; want observe e1", got)
	}
	if got := len(r.audit.await(1)); got != 1 {
		t.Errorf("%d audit records; want 1", got)
	}
}

// A drain that cannot end gives up when it is told to.
func TestShutdownGivesUp(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("late"))
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 20000)))))
	go r.post("/hooks", event01("e1"))
	b.Await(1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stopping.Store(r.Gateway, struct{}{})
	if err := r.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown(cancelled) = %v; want context.Canceled", err)
	}
	b.Release()
}

func TestCredentialsToBackends(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("token-from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := fakebackend.Start(t)
	for _, c := range []struct{ member, header, want string }{
		{`"authentication":{"type":"bearer","tokenEnv":"AHP_TOKEN"}`, "Authorization", "Bearer token-from-environment"},
		{`"authentication":{"type":"bearer","tokenRef":"token"}`, "Authorization", "Bearer token-from-file"},
		{`"transport":{"type":"http","url":"` + b.URL + `","headers":{"x-policy":"v","Authorization":{"valueRef":"token"}}}`, "Authorization", "token-from-file"},
		{`"transport":{"type":"http","url":"` + b.URL + `","headers":{"X-Policy":{"valueEnv":"AHP_TOKEN"}}}`, "X-Policy", "token-from-environment"},
	} {
		h := hook("com.example.b", b.URL, intercepts("draft", "fail-closed", 5000))
		if strings.HasPrefix(c.member, `"transport"`) {
			h = strings.Replace(h, `"transport":{"type":"http","url":"`+b.URL+`"}`, c.member, 1)
		} else {
			h = strings.Replace(h, `"subscriptions"`, c.member+`,"subscriptions"`, 1)
		}
		r := start(t, open(registration("draft", h), `secrets: {envPrefix: AHP_, dir: "`+dir+`"}`))
		if a := r.post("/hooks", eventDraft("e1")); a.decision() != "pass" {
			t.Errorf("%s: %s; want pass", c.member, a.body)
		}
		requests := b.Requests()
		if got := requests[len(requests)-1].Header.Get(c.header); got != c.want {
			t.Errorf("%s: backend got %s %q; want %q", c.member, c.header, got, c.want)
		}
		if _, body := r.get("/admin/config"); strings.Contains(body, "token-from") {
			t.Errorf("%s: /admin/config shows a secret", c.member)
		}
	}
}
