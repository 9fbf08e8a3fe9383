package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/breaker"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// The budget bounds the whole chain, and what it cuts short is a failure of
// its own class under the subscription's policy.
func TestBudget(t *testing.T) {
	for policy, want := range map[string]string{
		"fail-open":   "pass",
		"fail-closed": "deny: Required policy backend unavailable. (io.ahp-gateway.fail_closed)",
	} {
		first := fakebackend.Start(t, fakebackend.Behave("hang"))
		second := fakebackend.Start(t)
		r := start(t, open(registration("0.1",
			hook("com.example.first", first.URL, intercepts("0.1", "fail-open", 30000)),
			hook("com.example.second", second.URL, intercepts("0.1", policy, 30000))),
			"limits: {budget: 200ms}"))
		if a := r.post("/hooks", event01("e1")); a.decision() != want {
			t.Errorf("%s with the budget spent = %s; want %s", policy, a.body, want)
		}
		for i, s := range r.audit.await(1)[0]["steps"].([]any) {
			if got := str(s.(map[string]any)["failure"]); got != "budget" {
				t.Errorf("%s: step %d failed as %q; want budget", policy, i+1, got)
			}
		}
		if got := second.Count(); got != 0 {
			t.Errorf("%s: the second backend was called %d times after the budget; want 0", policy, got)
		}
		first.Release()
	}
}

// A turn that the budget cut short says nothing against the backend.
func TestBudgetDoesNotOpenBreaker(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("hang"))
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-open", 30000))),
		"limits: {budget: 10ms}\nbreaker: {volume: 2, ratio: 1, openFor: 1h}"))
	for i := range 4 {
		r.post("/hooks", event01(fmt.Sprintf("e%d", i)))
	}
	if got := r.peer("com.example.b").breaker.State(); got != breaker.Closed {
		t.Errorf("breaker after 4 turns without budget = %v; want closed", got)
	}
	b.Release()
}

// Invariant 2: an answer that came whole and in time opens no breaker, however
// little use it is: an event that a backend cannot decide must not turn its
// denies off for other events.
func TestAnswersDoNotOpenBreaker(t *testing.T) {
	for _, behaviour := range []string{"rpc-error-32004", "rpc-error-32003", "bad-json", "oversize", "no-version", "unknown-effect", "media-type-text", "id-mismatch"} {
		b := fakebackend.Start(t, fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
			if strings.HasPrefix(q.EventID, "odd") {
				return behaviour
			}
			return "deny:no"
		}))
		r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-open", 5000))),
			"breaker: {volume: 2, ratio: 1, openFor: 1h}"))
		for i := range 4 {
			r.post("/hooks", event01(fmt.Sprintf("odd%d", i)))
		}
		if a := r.post("/hooks", event01("e")); a.decision() != "deny: no" {
			t.Errorf("after 4 answers %s = %s; want deny: no", behaviour, a.body)
		}
	}
}

// Invariant 2: a backend that is busy with other events is waited for.
func TestFullBulkheadIsWaitedFor(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("late", "deny:no"))
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-open", 20000))),
		"backends: {com.example.b: {inFlight: 1}}"))
	first, second := make(chan *reply), make(chan *reply)
	go func() { first <- r.post("/hooks", event01("e1")) }()
	b.Await(1)
	go func() { second <- r.post("/hooks", event01("e2")) }()
	b.Release()
	if a := <-first; a.decision() != "pass" {
		t.Errorf("first = %s; want pass", a.body)
	}
	if a := <-second; a.decision() != "deny: no" {
		t.Errorf("one more than the bulkhead holds = %s; want its deny", a.body)
	}
}

// Subscriptions on one host keep their own deadlines: a short one that fails
// takes nothing from a long one on the same connection pool (AHP-FAIL-002).
func TestEachSubscriptionHasItsDeadline(t *testing.T) {
	release := make(chan struct{})
	b := fakebackend.Start(t, fakebackend.WithScript(func(n int, _ *fakebackend.Request) string {
		if n%2 == 0 {
			return "hang"
		}
		<-release // long after the short deadline
		return "deny:slow but in time"
	}))
	r := start(t, open(registration("draft",
		`{"id":"com.example.b","transport":{"type":"http","url":"`+b.URL+`"},"subscriptions":[{"id":"short",`+
			intercepts("draft", "fail-open", 50)+`},{"id":"long",`+intercepts("draft", "fail-open", 5000)+`}]}`)))
	answer := make(chan *reply)
	go func() { answer <- r.post("/hooks", eventDraft("e1")) }()
	b.Await(2)
	time.AfterFunc(150*time.Millisecond, func() { close(release) })
	if a := <-answer; a.decision() != "deny: slow but in time" {
		t.Errorf("50 ms then 5 s on one host = %s; want the second's deny", a.body)
	}
	steps := r.audit.await(1)[0]["steps"].([]any)
	first, second := steps[0].(map[string]any), steps[1].(map[string]any)
	if str(first["subscription"]) != "short" || str(first["failure"]) != "deadline" || str(second["subscription"]) != "long" || str(second["outcome"]) != "deny" {
		t.Errorf("steps = %v; want short: deadline, long: deny", steps)
	}
}

// panics is a backend that fails the gateway itself.
type panics struct{}

func (panics) Intercept(*ahp.Call, *ahp.Response) ahp.Failure { panic("a fault") }
func (panics) Observe(*ahp.Call) ahp.Failure                  { panic("a fault") }

// A fault of the gateway in one turn is a failure of that turn under its
// policy, never the end of the process and never a pass by accident.
func TestPanicInATurn(t *testing.T) {
	for policy, want := range map[string]string{
		"fail-open":   "deny: the next one",
		"fail-closed": "deny: Required policy backend unavailable. (io.ahp-gateway.fail_closed)",
	} {
		b := fakebackend.Start(t)
		next := fakebackend.Start(t, fakebackend.Behave("deny:the next one"))
		r := start(t, open(registration("0.1",
			hook("com.example.b", b.URL, intercepts("0.1", policy, 5000)),
			hook("com.example.next", next.URL, intercepts("0.1", "fail-open", 5000)))))
		r.peer("com.example.b").breaker = breaker.New(panics{}, breaker.Settings{})
		if a := r.post("/hooks", event01("e1")); a.decision() != want {
			t.Errorf("%s: panic in a turn = %s; want %s", policy, a.body, want)
		}
		if got := str(r.audit.await(1)[0]["steps"].([]any)[0].(map[string]any)["failure"]); got != "internal" {
			t.Errorf("%s: step failed as %q; want internal", policy, got)
		}
		if got := r.stats.panics.Load(); got != 1 {
			t.Errorf("%s: %d panics counted; want 1", policy, got)
		}
	}
}

// Trace context goes on to backends unchanged where the gateway does not trace.
func TestTraceContextPassesThrough(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.post("/hooks", event01("e1"), "traceparent: "+parent, "tracestate: congo=t61rcWkgMzE")
	h := b.Requests()[0].Header
	if h.Get("traceparent") != parent || h.Get("tracestate") != "congo=t61rcWkgMzE" {
		t.Errorf("backend got traceparent %q, tracestate %q; want the caller's", h.Get("traceparent"), h.Get("tracestate"))
	}
	r.post("/hooks", event01("e2"), "traceparent: "+strings.Repeat("0", 1000))
	if got := b.Requests()[1].Header.Get("traceparent"); got != "" {
		t.Errorf("backend got an over-long traceparent of %d bytes; want none", len(got))
	}
}

// A chain of many backends composes as a short one does.
func TestLongChain(t *testing.T) {
	var hooks []string
	var last *fakebackend.Server
	for i := range 16 {
		last = fakebackend.Start(t)
		hooks = append(hooks, hook(fmt.Sprintf("com.example.b%d", i), last.URL, intercepts("0.1", "fail-closed", 5000)))
	}
	deny := fakebackend.Start(t, fakebackend.Behave("deny:the last word"))
	hooks = append(hooks, hook("com.example.deny", deny.URL, intercepts("0.1", "fail-open", 5000)))
	r := start(t, open(registration("0.1", hooks...)))
	if a := r.post("/hooks", event01("e1")); a.decision() != "deny: the last word" || last.Count() != 1 {
		t.Errorf("chain of 17 = %s, 16th called %d times; want the last one's deny, 1", a.body, last.Count())
	}
}

// What a selection shows of an event is worked out once for all backends that
// have it, and again when the event has changed.
func TestProjections(t *testing.T) {
	const text = `{"id":"p%d","kind":"text","mediaType":"text/plain","selection":"%s"%s}`
	message := func(n int, selection, more string) string {
		return fmt.Sprintf(`{"id":"m%d","role":"user","parts":[`+text+`]}`, n, n, selection, more)
	}
	adds := `effects:[{"type":"modify","target":"prompt","operation":"merge","value":[` + message(2, "body", `,"text":"second"`) + `]}]`
	var servers []*fakebackend.Server
	var hooks []string
	for i, content := range []string{"body", "metadata", "metadata", "metadata", "body", "metadata"} {
		behaviour := "pass"
		if i == 2 {
			behaviour = adds
		}
		b := fakebackend.Start(t, fakebackend.Behave(behaviour))
		servers = append(servers, b)
		hooks = append(hooks, hook(fmt.Sprintf("com.example.b%d", i), b.URL,
			`"events":["turn.start"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"`+content+`"}`))
	}
	body := `{"jsonrpc":"2.0","id":"e1","method":"hooks/intercept","params":{"protocolVersion":"draft","event":{"id":"e1","source":"urn:example:harness",` +
		`"type":"turn.start","time":"2026-01-02T03:04:05Z","harness":{"name":"h","version":"1"},"turn":{"id":"t"},"trigger":"user","items":[` +
		message(1, "body", `,"text":"first"`) + `]},"capabilities":{"effects":["modify"],"modify":{"prompt":{"replace":true,"merge":true}}}}}`
	r := start(t, open(registration("draft", hooks...)))
	if a := r.post("/hooks", body); !strings.Contains(a.body, `"text":"second"`) {
		t.Fatalf("answered %s; want the modification", a.body)
	}
	before := [2]string{message(1, "body", `,"text":"first"`), message(1, "metadata", "")}
	after := [2]string{before[0] + "," + message(2, "body", `,"text":"second"`), before[1] + "," + message(2, "metadata", "")}
	for i, want := range []string{before[0], before[1], before[1], after[1], after[0], after[1]} {
		if got := servers[i].Requests(); len(got) != 1 || !strings.Contains(string(got[0].Body), `"items":[`+want+`]`) {
			t.Errorf("backend %d got %s; want items %s", i, got, want)
		}
	}

	snap := r.current.Load()
	x := r.acquire(snap, snap.parties[0], time.Now())
	defer r.release(x)
	if err := ahp.Decode([]byte(body), &x.msg); err != nil {
		t.Fatal(err)
	}
	x.state.Start(&x.terms, x.msg.Event.Raw, nil)
	hops := snap.parties[0].documents[ahp.Draft].of(ahp.TurnStart).intercept
	for i, of := range []int{0, 1, 1, 1, 0, 1} {
		if !ahp.Same(x.show(hops[i]), x.show(hops[of])) {
			t.Errorf("what backend %d is shown was made anew; want that of backend %d", i, of)
		}
	}
	if len(x.projections) != 2 {
		t.Errorf("%d projections were made; want 2", len(x.projections))
	}
}
