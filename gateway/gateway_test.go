package gateway

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

var versions = []string{"0.1", "draft"}

func event(v, id string, more ...string) string {
	if v == "draft" {
		return eventDraft(id, more...)
	}
	return event01(id, more...)
}

func TestPassAndDeny(t *testing.T) {
	for _, v := range versions {
		first := fakebackend.Start(t)
		second := fakebackend.Start(t, fakebackend.Behave("pass", "effects:"+`[{"type":"deny","reason":"no \"such\" thing","code":"com.example.no","extensions":{"com.example.x":[1, 2]}}]`))
		third := fakebackend.Start(t)
		r := start(t, open(registration(v,
			hook("com.example.first", first.URL, intercepts(v, "fail-closed", 2000)),
			hook("com.example.second", second.URL, intercepts(v, "fail-closed", 2000)),
			hook("com.example.third", third.URL, intercepts(v, "fail-open", 2000)))))

		a := r.post("/hooks", event(v, "e1"))
		if a.decision() != "pass" || string(a.ID) != `"e1"` || a.Result.ProtocolVersion != v {
			t.Errorf("%s: first event = %s; want pass with its id and snapshot", v, a.body)
		}
		a = r.post("/t/default/hooks", event(v, "e2"))
		if a.decision() != `deny: no "such" thing (com.example.no)` {
			t.Errorf("%s: second event = %s; want the second backend's deny", v, a.body)
		}
		if want := `"extensions":{"com.example.x":[1, 2]}}`; !strings.Contains(a.body, want) {
			t.Errorf("%s: answer %s; want the deny byte for byte, with %s", v, a.body, want)
		}
		// In draft the third, uncalled, is told of the event instead.
		for i, b := range []*fakebackend.Server{first, second, third} {
			want := []int{2, 2, 1}[i]
			got := 0
			for _, q := range b.Requests() {
				if q.RPCMethod == "hooks/intercept" {
					got++
				}
			}
			if got != want {
				t.Errorf("%s: backend %d was asked %d times; want %d", v, i+1, got, want)
			}
		}
	}
}

// Invariant 1: hook n+1 starts after hook n has returned, in document order.
func TestSerialInDocumentOrder(t *testing.T) {
	for _, v := range versions {
		var mu sync.Mutex
		var order []string
		inside := 0
		script := func(name string) fakebackend.Option {
			return fakebackend.WithScript(func(int, *fakebackend.Request) string {
				mu.Lock()
				defer mu.Unlock()
				if inside++; inside > 1 {
					t.Errorf("%s: %s was called while another backend was", v, name)
				}
				order = append(order, name)
				inside--
				return "pass"
			})
		}
		var hooks []string
		for _, name := range []string{"zeta", "alpha", "mid", "beta"} {
			b := fakebackend.Start(t, script(name))
			hooks = append(hooks, hook("com.example."+name, b.URL, intercepts(v, "fail-closed", 2000)))
		}
		r := start(t, open(registration(v, hooks...)))
		for i := range 20 {
			if a := r.post("/hooks", event(v, fmt.Sprintf("e%d", i))); a.decision() != "pass" {
				t.Errorf("%s: event %d = %s; want pass", v, i, a.body)
			}
		}
		mu.Lock()
		got := strings.Join(order, " ")
		mu.Unlock()
		if want := strings.TrimSpace(strings.Repeat("zeta alpha mid beta ", 20)); got != want {
			t.Errorf("%s: backends were called as %s; want document order each time", v, got)
		}
	}
}

// Invariant 4: what a backend may see reaches it byte for byte.
func TestForwardsByteForByte(t *testing.T) {
	odd := ` , "native" : {"provider":"p","eventName":"E","payload":{"a":1}} ,"extensions":{"com.example.x":{"z":1.0e+2,"a":"\u00e9\/"}}, "unknown":[ null ]`
	for _, v := range versions {
		plain := fakebackend.Start(t)
		native := fakebackend.Start(t)
		r := start(t, open(registration(v,
			hook("com.example.plain", plain.URL, intercepts(v, "fail-closed", 2000)),
			hook("com.example.native", native.URL, intercepts(v, "fail-closed", 2000)+`,"includeNative":true`))))
		body := "\n " + event(v, "e1", odd) + " \n"
		if a := r.post("/hooks", body); a.decision() != "pass" {
			t.Fatalf("%s: %s; want pass", v, a.body)
		}
		if got := string(native.Requests()[0].Body); got != body {
			t.Errorf("%s: backend with includeNative got\n%s\nwant\n%s", v, got, body)
		}
		want := strings.Replace(body, ` , "native" : {"provider":"p","eventName":"E","payload":{"a":1}}`, " ", 1)
		if got := string(plain.Requests()[0].Body); strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(want), "") {
			t.Errorf("%s: backend without includeNative got\n%s\nwant\n%s", v, got, want)
		}
		if h := plain.Requests()[0].Header; h.Get("Content-Type") != "application/json" || h.Get("Accept") != "application/json" {
			t.Errorf("%s: backend got headers %v; want JSON both ways", v, h)
		}
	}
}

// Every effect that the harness advertised is composed, so a draft backend is
// told of all of them; 0.1 has one, and what others invent beside it is not
// advertised on.
func TestAdvertisesWhatItEnforces(t *testing.T) {
	for _, c := range []struct{ v, advertised, told string }{
		{"draft", `{"effects":["deny","allow","modify"],"modify":{"input":{"replace":true,"merge":false}}}`, ""},
		{"draft", `{"effects":[]}`, ""},
		{"0.1", `{"effects":["deny"],"extra":1}`, ""},
		{"0.1", `{"effects":["com.example.own","deny"]}`, `{"effects":["deny"]}`},
	} {
		b := fakebackend.Start(t)
		r := start(t, open(registration(c.v, hook("com.example.b", b.URL, intercepts(c.v, "fail-closed", 2000)))))
		body := strings.Replace(event(c.v, "e1"), `{"effects":["deny"]}`, c.advertised, 1)
		if a := r.post("/hooks", body); a.decision() != "pass" {
			t.Errorf("%s harness advertising %s = %s; want pass", c.v, c.advertised, a.body)
		}
		want := body
		if c.told != "" {
			want = strings.Replace(body, c.advertised, c.told, 1)
		}
		if got := string(b.Requests()[0].Body); got != want {
			t.Errorf("%s backend got %s; want %s", c.v, got, want)
		}
	}
}

// Effects chain: each backend sees the event as those before it have left it,
// and the state that they have come to; the answer brings the harness there.
func TestEffectsCompose(t *testing.T) {
	first := fakebackend.Start(t, fakebackend.Behave(`effects:[{"type":"modify","target":"input","operation":"merge","value":{"dry":true}},{"type":"allow"}]`))
	second := fakebackend.Start(t, fakebackend.Behave(`effects:[{"type":"message","text":"careful"}]`))
	third := fakebackend.Start(t, fakebackend.Behave(`effects:[{"type":"modify","target":"input","operation":"merge","value":{"limit":1.50}}]`))
	observer := fakebackend.Start(t)
	r := start(t, open(registration("draft",
		hook("com.example.first", first.URL, intercepts("draft", "fail-closed", 5000)),
		hook("com.example.second", second.URL, intercepts("draft", "fail-closed", 5000)),
		hook("com.example.third", third.URL, intercepts("draft", "fail-closed", 5000)),
		hook("com.example.observer", observer.URL, observes("draft", `"tool.before"`)))))
	body := strings.Replace(eventDraft("e1", `,"extensions":{"com.example.x":1.0}`), `{"effects":["deny"]}`,
		`{"effects":["deny","allow","modify","message"],"modify":{"input":{"replace":false,"merge":true}}}`, 1)
	a := r.post("/hooks", body)
	// The second change takes the allow of the first back.
	if want := `"effects":[{"type":"modify","target":"input","operation":"merge","value":{"dry":true,"limit":1.50}},{"type":"message","text":"careful"}]`; !strings.Contains(a.body, want) {
		t.Errorf("answer = %s; want %s", a.body, want)
	}
	input := func(now string) string { return strings.Replace(body, `{"command":"git status"}`, now, 1) }
	state := func(text, now string) string {
		return strings.Replace(text, `{"permission":"none","candidate":null}`, now, 1)
	}
	for b, want := range map[*fakebackend.Server]string{
		first:  body,
		second: state(input(`{"command":"git status","dry":true}`), `{"permission":"allow","candidate":null}`),
		third:  state(input(`{"command":"git status","dry":true}`), `{"permission":"allow","candidate":null}`),
	} {
		if got := string(b.Requests()[0].Body); got != want {
			t.Errorf("backend got\n%s\nwant\n%s", got, want)
		}
	}
	r.stop()
	if got := string(observer.Requests()[0].Body); !strings.Contains(got, `"input":{"command":"git status","dry":true,"limit":1.50}`) {
		t.Errorf("observer got %s; want the settled event", got)
	}
	record := r.audit.await(1)[0]
	if str(record["verdict"]) != "changed" {
		t.Errorf("audit record = %v; want verdict changed", record)
	}
}

// A fail-closed failure is a deny only where the harness can enforce one.
func TestFailClosedWithoutDeny(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("status-500"))
	r := start(t, open(registration("draft", hook("com.example.b", b.URL, intercepts("draft", "fail-closed", 2000)))))
	a := r.post("/hooks", strings.Replace(eventDraft("e1"), `{"effects":["deny"]}`, `{"effects":["message"]}`, 1))
	if a.decision() != "error -32003" || string(a.ID) != `"e1"` {
		t.Errorf("fail-closed without deny = %s; want error -32003 with the id", a.body)
	}
	record := r.audit.await(1)[0]
	if record["verdict"] != "error" || record["error_code"] != -32003.0 {
		t.Errorf("audit record = %v; want verdict error, error_code -32003", record)
	}
}

// A boundary that has already settled on deny or stop asks nobody any more; the
// interceptors are told of it, as a harness would tell them.
func TestHaltedState(t *testing.T) {
	for _, state := range []string{`{"permission":"deny","candidate":null}`, `{"permission":"none","candidate":null,"flow":"stop"}`} {
		b := fakebackend.Start(t)
		r := start(t, open(registration("draft", hook("com.example.b", b.URL, intercepts("draft", "fail-closed", 2000)))))
		a := r.post("/hooks", strings.Replace(eventDraft("e1"), `{"permission":"none","candidate":null}`, state, 1))
		if a.decision() != "pass" {
			t.Errorf("state %s = %s; want no effects", state, a.body)
		}
		if got := b.Await(1)[0].RPCMethod; got != "hooks/observe" {
			t.Errorf("state %s: backend got %s; want hooks/observe", state, got)
		}
	}
}

// With no subscription there is no decision step, and no objection.
func TestNoSubscription(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, `"events":["tool.after"],"mode":"observe"`))))
	if a := r.post("/hooks", event01("e1")); a.decision() != "pass" {
		t.Errorf("event without interceptors = %s; want pass", a.body)
	}
	if n := b.Count(); n != 0 {
		t.Errorf("the observer was called %d times; want 0", n)
	}
}
