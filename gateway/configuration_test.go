package gateway

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

const ask = `{"jsonrpc":"2.0","id":7,"method":"hooks/configuration","params":{"protocolVersion":"draft"}}`

// A harness that asks is told the terms under which every backend gets what it
// asked for and every deadline fits.
func TestConfiguration(t *testing.T) {
	b := fakebackend.Start(t)
	sub := func(more string) string { return `{"content":{"default":"metadata"},` + more + `}` }
	both := func(id string, subs ...string) string {
		return `{"id":"` + id + `","transport":{"type":"http","url":"` + b.URL + `"},"subscriptions":[` + strings.Join(subs, ",") + `]}`
	}
	r := start(t, open(registration("draft",
		both("com.example.a", sub(`"events":["tool.*"],"mode":"intercept","timeoutMs":1000,"failurePolicy":"fail-open"`)),
		both("com.example.b",
			`{"events":["tool.before"],"mode":"intercept","timeoutMs":500,"failurePolicy":"fail-closed","includeNative":true,"content":{"default":"omit","reasoning":"body"}}`,
			sub(`"events":["tool.before","session.*","turn.end"],"mode":"observe"`)),
		both("com.example.shadow", sub(`"events":["tool.before"],"mode":"intercept","timeoutMs":9000,"failurePolicy":"fail-closed"`))),
		`backends: {com.example.shadow: {shadow: "*"}}`))
	a := r.post("/hooks", ask)
	if a.status != 200 || string(a.ID) != "7" {
		t.Fatalf("hooks/configuration = %d %s; want 200 with the id", a.status, a.body)
	}
	var got struct {
		Result struct {
			ProtocolVersion string
			Configuration   struct{ Subscriptions []map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"events": []any{"session.start", "session.end", "turn.end"}, "mode": "observe", "content": map[string]any{"default": "metadata"}},
		{"events": []any{"tool.before"}, "mode": "intercept", "timeoutMs": 1750.0, "failurePolicy": "fail-closed", "includeNative": true,
			"content": map[string]any{"default": "metadata", "reasoning": "body"}},
		// A harness that sends both has to show the same in each: whichever comes
		// first is what those see who are not called.
		{"events": []any{"tool.before"}, "mode": "observe", "includeNative": true, "content": map[string]any{"default": "metadata", "reasoning": "body"}},
		{"events": []any{"tool.after", "tool.permission.request", "tool.batch.after"}, "mode": "intercept", "timeoutMs": 1250.0,
			"failurePolicy": "fail-open", "content": map[string]any{"default": "metadata"}},
	}
	if !reflect.DeepEqual(got.Result.Configuration.Subscriptions, want) || got.Result.ProtocolVersion != "draft" {
		t.Errorf("hooks/configuration = %s; want %v", a.body, want)
	}
}

// Where answers of users are intercepted, the gateway has to know what was asked,
// whoever else is interested in it.
func TestConfigurationOfQuestions(t *testing.T) {
	b := fakebackend.Start(t)
	sub := func(event string) string {
		return `"events":["` + event + `"],"mode":"intercept","timeoutMs":1000,"failurePolicy":"fail-open","content":{"default":"metadata"}`
	}
	const observed = `{"events":["user.elicitation.request"],"mode":"observe","content":{"default":"body"}}`
	for _, test := range []struct {
		hooks string
		want  bool
	}{
		{hook("com.example.answers", b.URL, sub("user.elicitation.result")), true},
		{hook("com.example.questions", b.URL, sub("user.elicitation.request")), false},
		{hook("com.example.answers", b.URL, sub("user.elicitation.result")) + "," + hook("com.example.questions", b.URL, sub("user.elicitation.request")), true},
	} {
		r := start(t, open(registration("draft", test.hooks)))
		if a := r.post("/hooks", ask); strings.Contains(a.body, observed) != test.want {
			t.Errorf("hooks/configuration of %s = %s; want with %s: %v", test.hooks, a.body, observed, test.want)
		}
	}
}

// The chain's budget bounds what a harness has to wait for.
func TestConfigurationBudget(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("draft", hook("com.example.b", b.URL, intercepts("draft", "fail-open", 30000))), "limits: {budget: 2s}"))
	if a := r.post("/hooks", ask); !strings.Contains(a.body, `"timeoutMs":2250,"failurePolicy":"fail-open"`) {
		t.Errorf("hooks/configuration under a budget of 2 s = %s; want timeoutMs 2250", a.body)
	}
}

// A tenant without a draft document has nothing to advertise.
func TestNoConfiguration(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-open", 1000)))))
	if a := r.post("/hooks", ask); a.decision() != "error -32001" {
		t.Errorf("hooks/configuration without a draft document = %s; want error -32001", a.body)
	}
}

// hooks/capabilities tells what the gateway can do as a harness: the bounds of
// the catalogue, event by event.
func TestCapabilities(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("draft", hook("com.example.b", b.URL, intercepts("draft", "fail-open", 1000)))))
	a := r.post("/hooks", strings.Replace(ask, "configuration", "capabilities", 1))
	var got struct {
		Result struct {
			Manifest struct {
				Events []struct {
					Event        string
					Modes        []string
					Capabilities struct{ Effects []string }
				}
				Transports []string
			}
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || string(a.ID) != "7" {
		t.Fatalf("hooks/capabilities = %s, %v; want a manifest", a.body, err)
	}
	intercept := 0
	for _, e := range got.Result.Manifest.Events {
		event, ok := ahp.LookupEvent(ahp.Draft, e.Event)
		if !ok || slices.Contains(e.Modes, "intercept") != event.Interceptable(ahp.Draft) {
			t.Errorf("manifest has %+v; want the catalogue's modes", e)
		}
		if event.Interceptable(ahp.Draft) {
			intercept++
			if len(e.Capabilities.Effects) == 0 {
				t.Errorf("manifest has no effects for %s", e.Event)
			}
			// Who may not be answered with a modify are users' messages, which
			// their harness has no place to change in.
			b := event.Bounds()
			if want := b.Effects.Has(ahp.EffectModify) && b.Path != nil; slices.Contains(e.Capabilities.Effects, "modify") != want {
				t.Errorf("manifest of %s has the effects %v; want modify: %t", e.Event, e.Capabilities.Effects, want)
			}
		}
	}
	if intercept != 19 || len(got.Result.Manifest.Events) != 32 || !slices.Equal(got.Result.Manifest.Transports, []string{"http"}) {
		t.Errorf("manifest has %d events, %d of them to intercept, over %v; want 32, 19, http", len(got.Result.Manifest.Events), intercept, got.Result.Manifest.Transports)
	}
}

// What a harness may advertise is a message that every reader here takes, cut to
// the families that were asked for and that the event has.
func TestCapabilitiesOfEvents(t *testing.T) {
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		if !e.Interceptable(ahp.Draft) {
			continue
		}
		event, err := os.ReadFile(filepath.Join("..", "ahp", "testdata", "draft", "events", e.String()+".json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, effects := range []ahp.EffectSet{EveryEffect, 0, ahp.EffectSet(0).With(ahp.EffectFlow).With(ahp.EffectDeny)} {
			capabilities, err := json.Marshal(Capabilities(e, effects))
			if err != nil {
				t.Fatal(err)
			}
			var m ahp.Message
			body := `{"jsonrpc":"2.0","id":"evt-1","method":"hooks/intercept","params":{"protocolVersion":"draft","event":` + string(event) +
				`,"capabilities":` + string(capabilities) + `}}`
			if err := ahp.Decode([]byte(body), &m); err != nil || m.Capabilities.Effects&^effects != 0 {
				t.Errorf("Capabilities(%s, %b) = %s, which ahp.Decode takes with %v; want it valid and no more than was asked for", e, effects, capabilities, err)
			}
		}
	}
}
