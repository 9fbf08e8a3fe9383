package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// notification is a hooks/observe of an event that more describes.
func notification(v, id, event, more string) string {
	return `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"` + v + `","event":{"id":"` + id +
		`","source":"urn:example:harness","type":"` + event + `","time":"2026-01-02T03:04:05Z"` + more + `}}}`
}

func observes(v, events string) string {
	s := `"events":[` + events + `],"mode":"observe"`
	if v == "draft" {
		s += `,"content":{"default":"metadata"}`
	}
	return s
}

// seen returns "method id" of each message a backend got, in order of arrival.
func seen(requests []fakebackend.Request) string {
	var s []string
	for _, q := range requests {
		s = append(s, strings.TrimPrefix(q.RPCMethod, "hooks/")+" "+q.EventID)
	}
	return strings.Join(s, ", ")
}

// Observers are told once the decision is settled, and so are, in draft, the
// interceptors that a short circuit left uncalled; the called ones get no
// second copy. In 0.1 what can be intercepted cannot be observed.
func TestObservationAfterSettlement(t *testing.T) {
	for _, v := range versions {
		denies := fakebackend.Start(t, fakebackend.Behave("deny:no"))
		uncalled := fakebackend.Start(t)
		observer := fakebackend.Start(t)
		sub := observes(v, `"tool.before"`)
		if v == "0.1" {
			sub = observes(v, `"tool.after"`)
		}
		r := start(t, open(registration(v,
			hook("com.example.observer", observer.URL, sub),
			hook("com.example.denies", denies.URL, intercepts(v, "fail-open", 5000)),
			hook("com.example.uncalled", uncalled.URL, intercepts(v, "fail-open", 5000)))))
		if a := r.post("/hooks", event(v, "e1")); a.decision() != "deny: no" {
			t.Errorf("%s: %s; want deny: no", v, a.body)
		}
		r.stop() // delivers what waits
		want := map[*fakebackend.Server]string{denies: "intercept e1", uncalled: "observe e1", observer: "observe e1"}
		if v == "0.1" {
			want[uncalled], want[observer] = "", ""
		}
		for b, w := range want {
			if got := seen(b.Requests()); got != w {
				t.Errorf("%s: a backend got %q; want %q", v, got, w)
			}
		}
		for _, q := range observer.Requests() {
			body := string(q.Body)
			if q.ID != nil || strings.Contains(body, "capabilities") || !strings.Contains(body, `"input":{"command":"git status"}`) {
				t.Errorf("%s: observation %s; want a notification with the event", v, body)
			}
		}
	}
}

// An observation is delivered once per event, whoever tells of it: the harness
// after the gateway has decided, or the harness twice.
func TestObservationIsNotRepeated(t *testing.T) {
	interceptor := fakebackend.Start(t)
	observer := fakebackend.Start(t)
	r := start(t, open(registration("draft",
		hook("com.example.interceptor", interceptor.URL, intercepts("draft", "fail-open", 5000)),
		hook("com.example.observer", observer.URL, observes("draft", `"*"`)))))
	const tool = `,"harness":{"name":"h","version":"1"},"call":{"id":"c"},"path":"native","tool":{"name":"Bash","origin":"native","input":{}}`
	r.post("/hooks", eventDraft("decided"))
	for range 2 {
		for _, id := range []string{"decided", "uncalled"} {
			if a := r.post("/hooks", notification("draft", id, "tool.before", tool)); a.status != http.StatusNoContent || a.body != "" {
				t.Errorf("hooks/observe = %d %q; want 204 without body", a.status, a.body)
			}
		}
	}
	r.stop()
	// One the gateway never decided goes to the interceptors as well: a harness
	// would tell them if they stood uncalled in its own chain.
	if got := seen(interceptor.Requests()); got != "intercept decided, observe uncalled" {
		t.Errorf("interceptor got %q; want its decision and the uncalled event", got)
	}
	got := strings.Split(seen(observer.Requests()), ", ")
	if len(got) != 2 || got[0] == got[1] {
		t.Errorf("observer got %q; want each event once", got)
	}
}

// Those that were asked get no second copy, even where the gateway itself had
// nobody to tell.
func TestNoSecondCopyForTheCalled(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("draft", hook("com.example.b", b.URL, intercepts("draft", "fail-open", 5000)))))
	r.post("/hooks", eventDraft("e1"))
	r.post("/hooks", notification("draft", "e1", "tool.before",
		`,"harness":{"name":"h","version":"1"},"call":{"id":"c"},"path":"native","tool":{"name":"Bash","origin":"native","input":{}}`))
	r.stop()
	if got := seen(b.Requests()); got != "intercept e1" {
		t.Errorf("interceptor got %q; want its decision alone", got)
	}
}

// An id that comes twice with other content hides nothing from observers.
func TestSameIDIsObservedForEachContent(t *testing.T) {
	interceptor, observer := fakebackend.Start(t), fakebackend.Start(t)
	r := start(t, open(registration("draft",
		hook("com.example.interceptor", interceptor.URL, intercepts("draft", "fail-open", 5000)),
		hook("com.example.observer", observer.URL, observes("draft", `"*"`)))))
	r.post("/hooks", notification("draft", "e1", "session.end", `,"harness":{"name":"h","version":"1"},"session":{"id":"s"},"outcome":"completed","reason":"r"`))
	r.post("/hooks", eventDraft("e1"))
	r.post("/hooks", strings.Replace(eventDraft("e1"), "git status", "other", 1))
	r.post("/hooks", eventDraft("e1"))
	r.stop()
	if got := seen(observer.Requests()); got != "observe e1, observe e1, observe e1" {
		t.Errorf("observer got %q; want the session's end and both tool calls", got)
	}
}

// A hooks/observe that overtakes the decision gives those that are being asked
// no second copy, and observers none before settlement.
func TestObserveDuringDecision(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	interceptor := fakebackend.Start(t, fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
		if q.RPCMethod == "hooks/intercept" {
			close(arrived)
			<-release
		}
		return "pass"
	}))
	observer := fakebackend.Start(t)
	r := start(t, open(registration("draft",
		hook("com.example.interceptor", interceptor.URL, intercepts("draft", "fail-open", 5000)),
		hook("com.example.observer", observer.URL, observes("draft", `"*"`)))))
	done := make(chan struct{})
	go func() { r.post("/hooks", eventDraft("e1")); close(done) }()
	<-arrived
	r.post("/hooks", notification("draft", "e1", "tool.before",
		`,"harness":{"name":"h","version":"1"},"call":{"id":"c"},"path":"native","tool":{"name":"Bash","origin":"native","input":{}}`))
	early := observer.Count()
	close(release)
	<-done
	r.stop()
	if a, b := seen(interceptor.Requests()), seen(observer.Requests()); a != "intercept e1" || b != "observe e1" || early != 0 {
		t.Errorf("interceptor got %q, observer %q, %d of it before settlement; want intercept e1, observe e1, 0", a, b, early)
	}
}

func TestObserveBothSnapshots(t *testing.T) {
	const session = `,"session":{"id":"s"}`
	const harness = `,"harness":{"name":"h","version":"1"}`
	for _, c := range []struct{ v, event, more string }{
		{"0.1", "session.start", session},
		{"0.1", "session.end", session + `,"outcome":"completed"`},
		{"0.1", "tool.after", session + `,"tool":{"callId":"c","name":"n","kind":"shell","input":{},"output":[1]}`},
		{"0.1", "tool.error", session + `,"tool":{"callId":"c","name":"n","kind":"shell","input":{},"error":{"message":"m"}}`},
		{"draft", "session.end", harness + session + `,"outcome":"completed","reason":"r"`},
		{"draft", "tool.after", harness + `,"outcome":"ok","execution":{"status":"executed"},"call":{"id":"c"},"path":"p","tool":{"name":"n","origin":"native","input":{}},"items":[]`},
		{"draft", "file.changed", harness + `,"changes":[{"path":"/a","operation":"create","agentCaused":true}]`},
	} {
		b := fakebackend.Start(t)
		r := start(t, open(registration(c.v, hook("com.example.b", b.URL, observes(c.v, `"`+c.event+`"`)))))
		if a := r.post("/hooks", notification(c.v, "e1", c.event, c.more)); a.status != http.StatusNoContent {
			t.Errorf("%s %s = %d %s; want 204", c.v, c.event, a.status, a.body)
		}
		r.stop()
		if got := seen(b.Requests()); got != "observe e1" {
			t.Errorf("%s %s: observer got %q; want observe e1", c.v, c.event, got)
		}
	}
}

// An observer that fails or hangs changes and delays nothing; what finds no
// room is dropped and counted.
func TestSlowObserver(t *testing.T) {
	interceptor := fakebackend.Start(t)
	observer := fakebackend.Start(t, fakebackend.Behave("hang"))
	r := start(t, open(registration("draft",
		hook("com.example.interceptor", interceptor.URL, intercepts("draft", "fail-closed", 5000)),
		hook("com.example.observer", observer.URL, observes("draft", `"tool.before"`))),
		"limits: {observeQueue: 3}"))
	for i := range 20 {
		if a := r.post("/hooks", eventDraft(fmt.Sprintf("e%d", i))); a.decision() != "pass" {
			t.Errorf("event %d with a hanging observer = %s; want pass", i, a.body)
		}
	}
	s := r.peer("com.example.observer").stats
	if dropped := s.dropped.Load(); dropped < 20-3-courierWorkers || dropped > 20-3 {
		t.Errorf("%d observations dropped; want 20 less 3 waiting and up to %d under way", dropped, courierWorkers)
	}
	observer.Release()
}

// Bytes waiting for all observers together are bounded.
func TestObserverRoom(t *testing.T) {
	interceptor := fakebackend.Start(t)
	observer := fakebackend.Start(t, fakebackend.Behave("hang"))
	r := start(t, open(registration("draft",
		hook("com.example.interceptor", interceptor.URL, intercepts("draft", "fail-closed", 5000)),
		hook("com.example.observer", observer.URL, observes("draft", `"tool.before"`))),
		"limits: {observeBytes: 100KiB}"))
	large := strings.Repeat("x", 60<<10)
	for i := range 4 {
		r.post("/hooks", strings.Replace(eventDraft(fmt.Sprintf("e%d", i)), "git status", large, 1))
	}
	if got := r.room.used.Load(); got > 100<<10 {
		t.Errorf("%d bytes wait for observers; want at most %d", got, 100<<10)
	}
	if got := r.peer("com.example.observer").stats.dropped.Load(); got != 3 {
		t.Errorf("%d observations dropped; want 3", got)
	}
	observer.Release()
}

// Of several tenants none can take all of the room.
func TestObserverRoomIsShared(t *testing.T) {
	r := &room{max: 1000}
	r.tenants.Store(2)
	var greedy, modest share
	for range 100 {
		r.take(&greedy, 10)
	}
	if got := greedy.used.Load(); got != 500 {
		t.Errorf("one of two tenants holds %d of 1000 bytes; want 500", got)
	}
	if !r.take(&modest, 250) || r.take(&modest, 10) {
		t.Errorf("the other tenant holds %d bytes; want just 250, which leaves as much free", modest.used.Load())
	}
	if r.take(&greedy, 10) {
		t.Error("the greedy tenant got more; want what is left kept free")
	}
	r.give(&greedy, 500)
	r.tenants.Store(1)
	if !r.take(&modest, 750) || r.used.Load() != 1000 || r.take(&modest, 1) {
		t.Errorf("a tenant alone holds %d of 1000 bytes; want all, and no more", modest.used.Load())
	}
}

// A shadow subscription is asked and recorded, and changes nothing: not the
// answer, not the chain, not what is remembered.
func TestShadow(t *testing.T) {
	for _, v := range versions {
		for behaviour, outcome := range map[string]string{
			"deny:would have": "shadow_deny", "pass": "shadow_pass", "status-500": "shadow_failed",
		} {
			shadow := fakebackend.Start(t, fakebackend.Behave(behaviour))
			real := fakebackend.Start(t)
			r := start(t, open(registration(v,
				hook("com.example.shadow", shadow.URL, intercepts(v, "fail-closed", 5000)),
				hook("com.example.real", real.URL, intercepts(v, "fail-closed", 5000))),
				`backends: {com.example.shadow: {shadow: "*"}}`))
			if a := r.post("/hooks", event(v, "e1")); a.decision() != "pass" {
				t.Errorf("%s: shadow %s = %s; want pass", v, behaviour, a.body)
			}
			if got := shadow.Await(1)[0].RPCMethod; got != "hooks/intercept" {
				t.Errorf("%s: shadow got %s; want hooks/intercept", v, got)
			}
			records := r.audit.await(2)
			if truth(records[0]["shadow"]) {
				records[0], records[1] = records[1], records[0]
			}
			step := records[1]["steps"].([]any)[0].(map[string]any)
			if !truth(records[1]["shadow"]) || str(step["outcome"]) != outcome || str(records[1]["event_id"]) != "e1" {
				t.Errorf("%s: record of shadow %s = %v; want outcome %s", v, behaviour, records[1], outcome)
			}
			first := records[0]["steps"].([]any)[0].(map[string]any)
			if str(records[0]["verdict"]) != "pass" || str(first["outcome"]) != "shadowed" {
				t.Errorf("%s: record of the decision = %v; want pass, first step shadowed", v, records[0])
			}
			if a := r.post("/hooks", event(v, "e1")); a.decision() != "pass" || real.Count() != 1 {
				t.Errorf("%s: duplicate = %s after %d evaluations; want pass, remembered", v, a.body, real.Count())
			}
		}
	}
}

// A shadow that hangs takes nothing of the chain's time or budget.
func TestSlowShadow(t *testing.T) {
	shadow := fakebackend.Start(t, fakebackend.Behave("hang"))
	real := fakebackend.Start(t, fakebackend.Behave("deny:real"))
	r := start(t, open(registration("0.1",
		hook("com.example.shadow", shadow.URL, intercepts("0.1", "fail-closed", 30000)),
		hook("com.example.real", real.URL, intercepts("0.1", "fail-open", 5000))),
		`backends: {com.example.shadow: {shadow: "*"}}`))
	if a := r.post("/hooks", event01("e1")); a.decision() != "deny: real" {
		t.Errorf("with a hanging shadow = %s; want deny: real", a.body)
	}
	shadow.Release()
}

// In draft every subscription sees of an event's content what it selects.
func TestContentSelection(t *testing.T) {
	var servers []*fakebackend.Server
	var hooks []string
	for i, content := range []string{`{"default":"body"}`, `{"default":"metadata"}`, `{"default":"omit","text":"body"}`} {
		b := fakebackend.Start(t)
		servers = append(servers, b)
		hooks = append(hooks, hook(fmt.Sprintf("com.example.b%d", i), b.URL, `"events":["user.message.inbound"],"mode":"observe","content":`+content))
	}
	r := start(t, open(registration("draft", hooks...)))
	const text = `{"id":"p1","kind":"text","mediaType":"text/plain","selection":"body","text":"the text"}`
	const file = `{"id":"p2","kind":"attachment","mediaType":"image/png","selection":"body","body":{"ref":"the ref"}}`
	r.post("/hooks", notification("draft", "e1", "user.message.inbound",
		`,"harness":{"name":"h","version":"1"},"message":{"channel":"c","sender":"s","messages":[{"id":"m","role":"user","parts":[`+text+`,`+file+`]}]}`))
	r.stop()
	for i, want := range []struct{ text, file string }{
		{text, file},
		{`{"id":"p1","kind":"text","mediaType":"text/plain","selection":"metadata"}`, `{"id":"p2","kind":"attachment","mediaType":"image/png","selection":"metadata"}`},
		{text, `{"id":"p2","kind":"attachment","mediaType":"image/png","selection":"omit"}`},
	} {
		got := servers[i].Requests()
		if len(got) != 1 || !strings.Contains(string(got[0].Body), `"parts":[`+want.text+`,`+want.file+`]`) {
			t.Errorf("observer %d got %v; want parts %s and %s", i, got, want.text, want.file)
		}
	}
}

// What an event's observers are shown is kept for those that still wait, and no
// longer: a slow one does not hold what the quick ones were sent.
func TestBulletin(t *testing.T) {
	body := []byte(eventDraft("e1"))
	var hops []*hop
	b := &bulletin{body: body}
	for _, selection := range []int{0, 1, 1, 2, 2} {
		h := &hop{selection: selection}
		hops = append(hops, h)
		b.expect(h)
	}
	b.forget(hops[4]) // found no room
	for i, want := range []int{2, 2, 1, 0} {
		note := b.take(hops[i])
		if !strings.Contains(string(note), `"id":"e1"`) || len(b.notes) != want {
			t.Errorf("take %d = %s with %d selections left; want the event, %d", i, note, len(b.notes), want)
		}
	}
}
