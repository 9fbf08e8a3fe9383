package decision

import (
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// denyOnly are terms that let an answer deny and nothing else.
func denyOnly(v ahp.Version) *Terms {
	return &Terms{Version: v, Event: ahp.ToolBefore, Effects: ahp.EffectSet(0).With(ahp.EffectDeny)}
}

// respond returns a decoded response of snapshot v with the given effects.
func respond(t testing.TB, v ahp.Version, effects string) *ahp.Response {
	t.Helper()
	r := &ahp.Response{Body: []byte(`{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"` + v.String() + `","effects":` + effects + `}}`)}
	call := &ahp.Call{ID: []byte(`"e"`), Version: v}
	if f := ahp.DecodeResponse(call, r); !f.OK() {
		t.Fatalf("DecodeResponse(%s) = %v; want none", r.Body, f)
	}
	return r
}

func TestAdmit(t *testing.T) {
	const deny = `{"type":"deny","reason":"r"}`
	for _, c := range []struct {
		effects    string
		v01, draft ahp.FailureClass
	}{
		{`[]`, 0, 0},
		{"[ \n]", 0, 0},
		{`[` + deny + `]`, 0, 0},
		{`[{"reason":"r","type":"deny","code":"com.example.x"}]`, 0, 0},
		{`[{"type":"deny","reason":"r","extensions":{"com.example.x":null}}]`, 0, 0},
		{`[{"\u0074ype":"d\u0065ny","reason":"\u0000"}]`, 0, 0},
		{`[{"type":"deny","reason":"r","extra":1}]`, 0, ahp.FailEffectUnknown},
		{`[` + deny + `,` + deny + `]`, ahp.FailEffectConflict, 0},
		{`[1]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[null]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[[]]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":1,"reason":"r"}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":"Deny","reason":"r"}]`, ahp.FailEffectUnknown, ahp.FailEffectUnknown},
		{`[{"type":"","reason":"r"}]`, ahp.FailEffectUnknown, ahp.FailEffectUnknown},
		{`[{"type":"com.example.effect"}]`, ahp.FailEffectUnknown, ahp.FailEffectUnknown},
		{`[{"type":"allow"}]`, ahp.FailEffectUnknown, ahp.FailEffectUnadvertised},
		{`[{"type":"modify","target":"input","operation":"replace","value":{}}]`, ahp.FailEffectUnknown, ahp.FailEffectUnadvertised},
		{`[{"type":"deny"}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":"deny","reason":""}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":"deny","reason":null}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":"deny","reason":["r"]}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":"deny","reason":"r","code":"plain"}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":"deny","reason":"r","code":1}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":"deny","reason":"r","code":null}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":"deny","reason":"r","extensions":[]}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		{`[{"type":"deny","reason":"r","extensions":{"x":1}}]`, ahp.FailEffectMalformed, ahp.FailEffectMalformed},
		// Atomic: a good deny does not save its company.
		{`[` + deny + `,{"type":"allow"}]`, ahp.FailEffectUnknown, ahp.FailEffectUnadvertised},
		{`[{"type":"nonsense"},` + deny + `]`, ahp.FailEffectUnknown, ahp.FailEffectUnknown},
	} {
		for v, want := range map[ahp.Version]ahp.FailureClass{ahp.V01: c.v01, ahp.Draft: c.draft} {
			before := []Effect{{Type: ahp.EffectAsk}}
			got, f := Admit(denyOnly(v), nil, respond(t, v, c.effects), before)
			if f.Class != want {
				t.Errorf("Admit(%s, %s) = %v; want %v", v, c.effects, f, want)
			}
			if !f.OK() && len(got) != 1 {
				t.Errorf("Admit(%s, %s) kept %d effects of a refused response; want 0", v, c.effects, len(got)-1)
			}
			if f.OK() && len(got)-1 != strings.Count(c.effects, "reason") {
				t.Errorf("Admit(%s, %s) admitted %d effects; want %d", v, c.effects, len(got)-1, strings.Count(c.effects, "reason"))
			}
		}
	}
}

func TestAdmitOnlyAdvertised(t *testing.T) {
	for _, v := range ahp.Versions {
		if _, f := Admit(&Terms{Version: v, Event: ahp.ToolBefore}, nil, respond(t, v, `[{"type":"deny","reason":"r"}]`), nil); f.Class != ahp.FailEffectUnadvertised {
			t.Errorf("Admit(%s, unadvertised deny) = %v; want %v", v, f, ahp.FailEffectUnadvertised)
		}
	}
}

func TestAdmitReadsDeny(t *testing.T) {
	const raw = `{"type":"deny","reason":"line\nbreak","code":"com.example.c"}`
	got, f := Admit(denyOnly(ahp.Draft), nil, respond(t, ahp.Draft, `[ `+raw+` ]`), nil)
	if !f.OK() || len(got) != 1 {
		t.Fatalf("Admit(%s) = %v, %v; want one effect", raw, got, f)
	}
	if e := got[0]; string(e.Raw) != raw || string(e.Reason) != "line\nbreak" || string(e.Code) != "com.example.c" {
		t.Errorf("Admit(%s) = {%s %q %q}; want its own bytes and texts", raw, e.Raw, e.Reason, e.Code)
	}
}

// One answer cannot cost memory without bound.
func TestAdmitTooMany(t *testing.T) {
	many := func(n int) *ahp.Response {
		return respond(t, ahp.Draft, "["+strings.TrimSuffix(strings.Repeat(`{"type":"deny","reason":"r"},`, n), ",")+"]")
	}
	if got, f := Admit(denyOnly(ahp.Draft), nil, many(maxEffects), nil); !f.OK() || len(got) != maxEffects {
		t.Errorf("Admit(%d effects) = %d, %v; want all", maxEffects, len(got), f)
	}
	if got, f := Admit(denyOnly(ahp.Draft), nil, many(maxEffects+1), nil); f.Class != ahp.FailEffectConflict || len(got) != 0 {
		t.Errorf("Admit(%d effects) = %d, %v; want none, %v", maxEffects+1, len(got), f, ahp.FailEffectConflict)
	}
}

// A missing effects member is none in draft.
func TestAdmitAbsentEffects(t *testing.T) {
	if got, f := Admit(denyOnly(ahp.Draft), nil, &ahp.Response{}, nil); !f.OK() || len(got) != 0 {
		t.Errorf("Admit(absent effects) = %v, %v; want none", got, f)
	}
}
