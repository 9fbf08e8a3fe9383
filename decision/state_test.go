package decision

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// everything lets an answer do what the snapshot lets it at the event.
func everything(e ahp.EventType) *Terms {
	b := e.Bounds()
	return &Terms{
		Version: ahp.Draft, Event: e, Effects: b.Effects, Replace: true, Merge: true, Stop: true, Continue: b.Continue,
		Budgeted: b.Continue, Remaining: 3, Now: true, NextTurn: true, Form: true, URL: true,
	}
}

// fold admits effects and folds them, and reports what stood against it.
func fold(s *State, terms *Terms, effects string) ahp.Failure {
	now := s.Terms()
	now.Effects = terms.Effects
	admitted, f := Admit(&now, s.Event, &ahp.Response{Effects: []byte(effects)}, nil)
	if f.OK() {
		s.Fold(admitted, nil)
	}
	return f
}

// said is the answer as JSON.
func said(s *State) (effects string, a Answer) {
	a = s.Answer(nil)
	return "[" + string(bytes.Join(a.Effects, []byte(","))) + "]", a
}

func TestFold(t *testing.T) {
	const (
		shell  = `{"type":"tool.before","tool":{"name":"sh","input":{"a":1}}}`
		finish = `{"type":"turn.finish.before","items":[]}`
		deny   = `{"type":"deny","reason":"r"}`
		allow  = `{"type":"allow"}`
		ask    = `{"type":"ask"}`
		stop   = `{"type":"flow","operation":"stop","reason":"r"}`
		steps  = `{"type":"flow","operation":"continue"}`
		step1  = `{"type":"flow","operation":"continue","instruction":"1"}`
		step2  = `{"type":"flow","operation":"continue","instruction":"2"}`
		note   = `{"type":"message","text":"m"}`
		none   = `{"permission":"none","candidate":null}`
	)
	give := func(value string) string { return `{"type":"return","value":` + value + `}` }
	set := func(value string) string {
		return `{"type":"modify","target":"input","operation":"replace","value":` + value + `}`
	}
	add := func(value string) string {
		return `{"type":"modify","target":"input","operation":"merge","value":` + value + `}`
	}
	state := func(permission, candidate string) string {
		return `{"permission":"` + permission + `","candidate":` + candidate + `}`
	}
	for _, c := range []struct {
		name  string
		event string // shell where empty
		given string // none where empty
		turns []string
		say   string
		state string // as the next backend would be told it
		over  bool
	}{
		{name: "nothing", turns: []string{``}, say: ``, state: none},
		{name: "deny", turns: []string{deny}, say: deny, state: none, over: true},
		{name: "nothing lifts a deny", given: state("deny", "null"), say: ``, state: state("deny", "null"), over: true},
		{name: "ask survives an allow", turns: []string{ask, allow}, say: ask, state: state("ask", "null")},
		{name: "ask over allow", turns: []string{allow, ask}, say: ask, state: state("ask", "null")},
		{name: "deny over all", turns: []string{ask, note, allow + `,` + deny}, say: note + `,` + deny, state: state("ask", "null"), over: true},
		{name: "what the harness has is not said", given: state("allow", "null"), turns: []string{allow}, say: ``, state: state("allow", "null")},
		{name: "a change takes an allow back", given: state("allow", "null"), turns: []string{set(`{}`)}, say: set(`{}`), state: none},
		{name: "an allow of what was changed", turns: []string{set(`{}`) + `,` + allow}, say: set(`{}`) + `,` + allow, state: state("allow", "null")},
		{name: "order within a response", turns: []string{allow + `,` + set(`{}`)}, say: set(`{}`) + `,` + allow, state: state("allow", "null")},
		{name: "no change leaves an allow", turns: []string{allow, set(`{"a":1.0}`)}, say: allow, state: state("allow", "null")},
		{name: "true is a change from 1", turns: []string{allow, set(`{"a":true}`)}, say: set(`{"a":true}`), state: none},
		{name: "a change voids a candidate", turns: []string{give(`1`), set(`{}`)}, say: set(`{}`), state: none},
		{name: "a return replaces", turns: []string{give(`1`), give(`null`)}, say: give(`null`), state: state("none", `{"value":null}`)},
		{name: "a return binds to what was changed", turns: []string{give(`2`) + `,` + set(`{}`)}, say: set(`{}`) + `,` + give(`2`), state: state("none", `{"value":2}`)},
		{name: "a candidate from before stays", given: state("none", `{"value":1,"provenance":{}}`), turns: []string{note}, say: note, state: state("none", `{"value":1,"provenance":{}}`)},
		{name: "merges are one merge", turns: []string{add(`{"b":1,"c":1}`), add(`{"c":2,"d":null}`)}, say: add(`{"b":1,"c":2,"d":null}`), state: none},
		{name: "a replacement says it all", turns: []string{add(`{"b":1}`), set(`{"x":1}`), add(`{"y":2}`)}, say: set(`{"x":1,"y":2}`), state: none},
		{name: "changed and changed back is nothing", turns: []string{set(`{}`), set(`{"a":1}`)}, say: ``, state: none},
		{name: "stop ends the chain", turns: []string{allow, stop}, say: allow + `,` + stop, state: `{"permission":"allow","candidate":null,"flow":"stop"}`, over: true},
		{name: "a stop keeps its candidate back, not out", turns: []string{give(`1`) + `,` + stop}, say: give(`1`) + `,` + stop, state: `{"permission":"none","candidate":{"value":1},"flow":"stop"}`, over: true},
		{name: "continues add up", event: finish, turns: []string{step1, steps, step2}, say: step1 + `,` + step2, state: `{"permission":"none","candidate":null,"flow":"continue","instructions":["1","2"]}`},
		{name: "one step without a word", event: finish, turns: []string{steps, steps}, say: steps, state: `{"permission":"none","candidate":null,"flow":"continue","instructions":[]}`},
		{name: "stop over continue", event: finish, turns: []string{step1 + `,` + stop + `,` + step2}, say: step1 + `,` + step2 + `,` + stop, state: `{"permission":"none","candidate":null,"flow":"stop","instructions":["1","2"]}`, over: true},
		{name: "a flow that was told", given: `{"permission":"none","candidate":null,"flow":"none","injections":[],"unknown":1}`, turns: []string{``}, say: ``, state: `{"permission":"none","candidate":null,"flow":"none"}`},
	} {
		if c.event == "" {
			c.event = shell
		}
		if c.given == "" {
			c.given = none
		}
		kind, _ := ahp.LookupEvent(ahp.Draft, string(ahp.Text(ahp.Member([]byte(c.event), "type"))))
		terms := everything(kind)
		var s State
		s.Start(terms, []byte(c.event), []byte(c.given))
		for _, turn := range c.turns {
			if f := fold(&s, terms, `[`+turn+`]`); !f.OK() {
				t.Errorf("%s: Admit(%s) = %v; want none", c.name, turn, f)
			}
		}
		say, a := said(&s)
		if say != "["+c.say+"]" || a.Inexact || a.Code != 0 {
			t.Errorf("%s: Answer = %s, inexact %t, code %d; want [%s]", c.name, say, a.Inexact, a.Code, c.say)
		}
		if got := string(s.AppendState(nil)); got != c.state {
			t.Errorf("%s: AppendState = %s; want %s", c.name, got, c.state)
		}
		if over := s.Denied || s.Stopped; over != c.over {
			t.Errorf("%s: over is %t; want %t", c.name, over, c.over)
		}
	}
}

// The zero State serves 0.1, where a deny is all there is.
func TestFoldWithoutStart(t *testing.T) {
	deny := Effect{Type: ahp.EffectDeny, Raw: []byte("1")}
	var s State
	if stop := s.Fold(nil, nil); stop || s.Denied {
		t.Errorf("Fold(no effects) = %t, denied %t; want false, false", stop, s.Denied)
	}
	if stop := s.Fold([]Effect{deny}, nil); !stop || !s.Denied || len(s.Effects) != 1 {
		t.Errorf("Fold(deny) = %t, denied %t, %d effects; want true, true, 1", stop, s.Denied, len(s.Effects))
	}
	if stop := s.Fold(nil, nil); !stop {
		t.Error("Fold(no effects after a deny) = false; want true: nothing lifts a deny")
	}
	if say, _ := said(&s); say != "[1]" {
		t.Errorf("Answer = %s; want [1]", say)
	}
	if s.Reset(); s.Denied || len(s.Effects) != 0 {
		t.Errorf("Reset left denied %t, %d effects; want false, 0", s.Denied, len(s.Effects))
	}
}

// What effects do not touch stays as it was written, byte for byte.
func TestFoldKeepsBytes(t *testing.T) {
	for _, c := range []struct {
		kind                 ahp.EventType
		event, effects, want string
	}{
		{
			ahp.ToolBefore,
			"{\"x\" : 1.50, \"tool\": {\"input\" : { \"a\" :1e2 , \"\\u0062\": [1.0] }, \"name\":\"\\u0073h\"}\t, \"y\":[ ]}",
			`[{"type":"modify","target":"input","operation":"merge","value":{"b":{"n":1.10},"c\n":null}}]`,
			"{\"x\" : 1.50, \"tool\": {\"input\" : { \"a\" :1e2 , \"\\u0062\": {\"n\":1.10} ,\"c\\n\":null}, \"name\":\"\\u0073h\"}\t, \"y\":[ ]}",
		},
		{
			ahp.ToolBefore, `{"tool":{"input":{ }}}`,
			`[{"type":"modify","target":"input","operation":"merge","value":{"a":1}},{"type":"modify","target":"input","operation":"merge","value":{"a":2,"b":3}}]`,
			`{"tool":{"input":{ "a":2,"b":3}}}`,
		},
		{
			ahp.ToolBefore, `{"tool":{"input":{"a":1}},"z":0.0}`,
			`[{"type":"modify","target":"input","operation":"replace","value":{ "b" : 1.0 }}]`,
			`{"tool":{"input":{ "b" : 1.0 }},"z":0.0}`,
		},
		{
			ahp.TurnStart, `{"items":[ {"id":"m","role":"user","parts":[]} ],"n":1.0}`,
			`[{"type":"modify","target":"prompt","operation":"merge","value":[ ]},{"type":"modify","target":"prompt","operation":"merge","value":[{"id":"n","role":"user","parts":[]}]}]`,
			`{"items":[ {"id":"m","role":"user","parts":[]} ,{"id":"n","role":"user","parts":[]}],"n":1.0}`,
		},
	} {
		terms := everything(c.kind)
		var s State
		s.Start(terms, []byte(c.event), nil)
		if f := fold(&s, terms, c.effects); !f.OK() || string(s.Event) != c.want {
			t.Errorf("Fold(%s, %s) = %s, %v; want %s", c.event, c.effects, s.Event, f, c.want)
		}
	}
}

// A state that no effects can say is answered with one that permits less.
func TestAnswerInexact(t *testing.T) {
	const (
		event = `{"tool":{"input":{"a":1}}}`
		out   = `[{"type":"modify","target":"input","operation":"replace","value":{}}]`
		back  = `[{"type":"modify","target":"input","operation":"merge","value":{"a":1}}]`
	)
	all := everything(ahp.ToolBefore).Effects
	without := func(gone ...ahp.EffectType) (s ahp.EffectSet) {
		s = all
		for _, e := range gone {
			s &^= 1 << e
		}
		return s
	}
	for _, c := range []struct {
		name    string
		effects ahp.EffectSet
		given   string
		then    string
		say     string
		code    ahp.Code
	}{
		{"allow", all, `{"permission":"allow","candidate":null}`, `[]`, `{"type":"ask"}`, 0},
		{"allow, no ask", without(ahp.EffectAsk), `{"permission":"allow","candidate":null}`, `[]`, string(denyEffect), 0},
		{"allow, no ask, no deny", without(ahp.EffectAsk, ahp.EffectDeny), `{"permission":"allow","candidate":null}`, `[]`, ``, ahp.CodeBackendInternal},
		{"candidate", all, `{"permission":"none","candidate":{"value":1}}`, `[]`, string(denyEffect), 0},
		{"both", all, `{"permission":"allow","candidate":{"value":1}}`, `[]`, string(denyEffect), 0},
		{"candidate, no deny", without(ahp.EffectDeny), `{"permission":"none","candidate":{"value":1}}`, `[]`, ``, ahp.CodeBackendInternal},
		{"candidate, stopped", without(ahp.EffectDeny), `{"permission":"none","candidate":{"value":1}}`, `[{"type":"flow","operation":"stop","reason":"r"}]`, `{"type":"flow","operation":"stop","reason":"r"}`, 0},
		{"candidate, denied", all, `{"permission":"none","candidate":{"value":1}}`, `[{"type":"deny","reason":"r"}]`, `{"type":"deny","reason":"r"}`, 0},
	} {
		terms := everything(ahp.ToolBefore)
		terms.Effects = c.effects
		var s State
		s.Start(terms, []byte(event), []byte(c.given))
		for _, turn := range []string{out, back, c.then} {
			if f := fold(&s, terms, turn); !f.OK() {
				t.Errorf("%s: Admit(%s) = %v; want none", c.name, turn, f)
			}
		}
		if say, a := said(&s); say != "["+c.say+"]" || a.Code != c.code || !a.Inexact {
			t.Errorf("%s: Answer = %s, code %d, inexact %t; want [%s], %d, true", c.name, say, a.Code, a.Inexact, c.say, c.code)
		}
	}
}

// A failure that denies keeps what was accepted before it, and is an error
// where the harness does not take a deny (AHP-FAIL-001).
func TestFailClosed(t *testing.T) {
	const (
		note  = `{"type":"message","text":"m"}`
		given = `{"type":"return","value":{"action":"decline"}}`
	)
	question := func(mode string) string {
		return `{"elicitation":{"mode":"` + mode + `","request":{"id":"q","kind":"text","mediaType":"text/plain","selection":"body",` +
			`"text":"{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}"}}}`
	}
	for _, c := range []struct {
		name    string
		kind    ahp.EventType
		event   string
		without ahp.EffectSet
		turn    string
		say     string
		code    ahp.Code
		inexact bool
	}{
		{"deny", ahp.ToolBefore, `{"tool":{"input":{}}}`, 0, note, note + `,` + string(failClosed), 0, false},
		{"no deny", ahp.ToolBefore, `{"tool":{"input":{}}}`, 1 << ahp.EffectDeny, note, ``, ahp.CodeUnavailable, false},
		{"a question that was answered", ahp.UserElicitationRequest, question("form"), 0, given, string(failClosed), 0, true},
		{"a question that nobody may settle", ahp.UserElicitationRequest, question("url"), 0, note, ``, ahp.CodeUnavailable, false},
	} {
		terms := everything(c.kind)
		terms.Effects &^= c.without
		var s State
		s.Start(terms, []byte(c.event), nil)
		if f := fold(&s, terms, `[`+c.turn+`]`); !f.OK() {
			t.Errorf("%s: Admit(%s) = %v; want none", c.name, c.turn, f)
		}
		s.FailClosed(failClosed)
		if say, a := said(&s); say != "["+c.say+"]" || a.Code != c.code || a.Inexact != c.inexact {
			t.Errorf("%s: Answer = %s, code %d, inexact %t; want [%s], %d, %t", c.name, say, a.Code, a.Inexact, c.say, c.code, c.inexact)
		}
	}
}

// What is hidden is edited unseen: a merge leaves it alone, a replacement
// removes it.
func TestHiddenContent(t *testing.T) {
	const (
		body     = `{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"secret"}`
		metadata = `{"id":"p","kind":"text","mediaType":"text/plain","selection":"metadata"}`
	)
	event := func(part string) string { return `{"items":[{"id":"m","role":"user","parts":[` + part + `]}]}` }
	more := `{"id":"n","role":"user","parts":[]}`
	modify := func(operation, value string) string {
		return `[{"type":"modify","target":"prompt","operation":"` + operation + `","value":[` + value + `]}]`
	}
	same := `{"id":"m","role":"user","parts":[` + metadata + `]}`
	for _, c := range []struct {
		name, event, shown string
		asked              ahp.ContentSelection
		effects            string
		permission         permission
		want, say          string
	}{
		{"a merge keeps it", event(body), event(metadata), ahp.ContentSelection{}, modify("merge", more), permissionNone,
			`{"items":[{"id":"m","role":"user","parts":[` + body + `]},` + more + `]}`, modify("merge", more)},
		{"a replacement by what is shown removes it", event(body), event(metadata), ahp.ContentSelection{}, modify("replace", same), permissionNone,
			event(metadata), modify("replace", same)},
		{"a guess of it is a change", event(body), event(metadata), ahp.ContentSelection{}, modify("replace", `{"id":"m","role":"user","parts":[`+body+`]}`), permissionNone,
			event(body), `[]`},
		{"nothing was hidden here", event(metadata), event(metadata), ahp.ContentSelection{}, modify("replace", same), permissionAllow,
			event(metadata), modify("replace", same)},
		{"nor where all was asked for", event(metadata), event(metadata), ahp.ContentSelection{Default: ahp.SelectBody}, modify("replace", same), permissionAllow,
			event(metadata), modify("replace", same)},
		{"nor where less was asked for but of others", event(metadata), event(metadata),
			ahp.ContentSelection{Default: ahp.SelectOmit, Categories: map[string]ahp.Selection{"text": ahp.SelectBody}}, modify("replace", same), permissionAllow,
			event(metadata), modify("replace", same)},
		{"the harness may hide more", event(metadata), event(metadata), ahp.ContentSelection{Default: ahp.SelectMetadata}, modify("replace", same), permissionNone,
			event(metadata), modify("replace", same)},
	} {
		terms := everything(ahp.TurnStart)
		var s State
		s.Start(terms, []byte(c.event), []byte(`{"permission":"allow","candidate":null}`))
		s.Shown = c.asked
		effects, f := Admit(terms, []byte(c.shown), &ahp.Response{Effects: []byte(c.effects)}, nil)
		if !f.OK() {
			t.Fatalf("%s: Admit(%s) = %v; want none", c.name, c.effects, f)
		}
		s.Fold(effects, []byte(c.shown))
		if string(s.Event) != c.want || s.permission != c.permission {
			t.Errorf("%s: Fold = %s, permission %s; want %s, %s", c.name, s.Event, permissions[s.permission], c.want, permissions[c.permission])
		}
		if say, _ := said(&s); !strings.HasPrefix(say, strings.TrimSuffix(c.say, "]")) {
			t.Errorf("%s: Answer = %s; want %s", c.name, say, c.say)
		}
	}
}

// Whether a replacement of what is not shown has changed anything, only the
// harness knows. A candidate that it may have voided is not dropped for that:
// then the operation would be carried out.
func TestDoubtfulCandidate(t *testing.T) {
	const item = `{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"metadata"}]}`
	const event = `{"items":[` + item + `]}`
	replace := func(items string) string {
		return `[{"type":"modify","target":"request","operation":"replace","value":[` + items + `]}]`
	}
	const supply = `[{"type":"return","value":[]}]`
	metadata := ahp.ContentSelection{Default: ahp.SelectMetadata}
	for _, c := range []struct {
		name    string
		asked   ahp.ContentSelection
		turns   []string
		inexact bool
	}{
		{"all was asked for", ahp.ContentSelection{Default: ahp.SelectBody}, []string{supply, replace(item)}, false},
		{"nothing was supplied", metadata, []string{replace(item)}, false},
		{"in doubt", metadata, []string{supply, replace(item)}, true},
		{"in doubt, and changed later", metadata, []string{supply, replace(item), replace("")}, false},
		{"in doubt, and supplied later", metadata, []string{supply, replace(item), supply}, false},
		{"in doubt, and in doubt again", metadata, []string{supply, replace(item), replace(item)}, true},
		{"changed", metadata, []string{supply, replace("")}, false},
	} {
		for _, deny := range []bool{true, false} {
			terms := everything(ahp.ModelRequestBefore)
			if !deny {
				terms.Effects &^= ahp.EffectSet(0).With(ahp.EffectDeny)
			}
			var s State
			s.Start(terms, []byte(event), nil)
			s.Shown = c.asked
			for _, effects := range c.turns {
				if f := fold(&s, terms, effects); !f.OK() {
					t.Fatalf("%s: Admit(%s) = %v; want none", c.name, effects, f)
				}
			}
			a := s.Answer(nil)
			denied := len(a.Effects) > 0 && strings.Contains(string(a.Effects[len(a.Effects)-1]), `"deny"`)
			if a.Inexact != c.inexact || denied != (c.inexact && deny) || (a.Code == ahp.CodeBackendInternal) != (c.inexact && !deny) {
				t.Errorf("%s, deny %v: Answer = %s, inexact %v, code %d; want inexact %v", c.name, deny, a.Effects, a.Inexact, a.Code, c.inexact)
			}
		}
	}
}

func TestSendable(t *testing.T) {
	const event = `{"items":[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"metadata"}]}]}`
	part := func(id string) string {
		return `{"id":"` + id + `","kind":"text","mediaType":"text/plain","selection":"metadata"}`
	}
	for _, c := range []struct {
		value string
		ok    bool
	}{
		{`{"id":"m","role":"user","parts":[` + part("p") + `,` + part("q") + `]}`, true},
		{`{"id":"n","role":"tool","parts":[]}`, true},
		{`{"id":"m","role":"tool","parts":[]}`, false},
		{`{"id":"n","role":"user","parts":[` + part("p") + `]}`, false},
		{`{"id":"p","role":"tool","parts":[]}`, false},
		{`{"id":"n","role":"user","parts":[` + part("n") + `]}`, false},
		{`{"id":"n","role":"user","parts":[` + part("o") + `]},{"id":"o","role":"user","parts":[` + part("n") + `]}`, false},
	} {
		terms := everything(ahp.TurnStart)
		var s State
		s.Start(terms, []byte(event), nil)
		effects := `[{"type":"modify","target":"prompt","operation":"replace","value":[` + c.value + `]}]`
		if f := fold(&s, terms, effects); !f.OK() {
			t.Fatalf("Admit(%s) = %v; want none", effects, f)
		}
		if f := s.Sendable(); f.OK() != c.ok {
			t.Errorf("Sendable after %s = %v; want %t", c.value, f, c.ok)
		}
	}
}

func TestAppendCapabilities(t *testing.T) {
	const step = `[{"type":"flow","operation":"continue"}]`
	for _, c := range []struct {
		raw, want string
		turns     []string
	}{
		{`{"effects":["flow"],"flow":{"operations":["continue"], "remainingContinuations" : 2,"continuationCount":0} }`,
			`{"effects":["flow"],"flow":{"operations":["continue"], "remainingContinuations" : 1,"continuationCount":0} }`, []string{step}},
		{`{"effects":["flow"],"flow":{"operations":["continue"],"remainingContinuations":2.0,"continuationCount":0}}`,
			`{"effects":["flow"],"flow":{"operations":["continue"],"remainingContinuations":2.0,"continuationCount":0}}`, []string{`[]`}},
		{`{"effects":["flow"],"flow":{"operations":["continue"],"remainingContinuations":2,"continuationCount":0}}`,
			`{"effects":["flow"],"flow":{"operations":["continue"],"remainingContinuations":0,"continuationCount":0}}`, []string{step, step}},
		{`{"effects":["flow"],"flow":{"operations":["stop"],"maxContinuations":3}}`,
			`{"effects":["flow"],"flow":{"operations":["stop"],"maxContinuations":3,"remainingContinuations":3}}`, []string{`[]`}},
		{`{"effects":[]}`, `{"effects":[]}`, []string{`[]`}},
	} {
		terms := ParseTerms(ahp.Draft, ahp.TurnFinishBefore, []byte(c.raw))
		var s State
		s.Start(&terms, []byte(`{"items":[]}`), nil)
		if got := string(s.AppendCapabilities(nil, []byte(c.raw))); got != c.raw {
			t.Errorf("AppendCapabilities(%s) = %s before any answer; want the same", c.raw, got)
		}
		for _, turn := range c.turns {
			if f := fold(&s, &terms, turn); !f.OK() {
				t.Errorf("Admit(%s) = %v; want none", turn, f)
			}
		}
		if got := string(s.AppendCapabilities(nil, []byte(c.raw))); got != c.want {
			t.Errorf("AppendCapabilities(%s) = %s; want %s", c.raw, got, c.want)
		}
	}
	terms := everything(ahp.TurnFinishBefore)
	terms.Remaining = 2
	var s State
	s.Start(terms, []byte(`{"items":[]}`), nil)
	for i, want := range []ahp.FailureClass{0, 0, ahp.FailEffectUnadvertised} {
		if f := fold(&s, terms, step); f.Class != want {
			t.Errorf("continue %d of a budget of 2 = %v; want %v", i+1, f, want)
		}
	}
}

// A State that is used again and again keeps nothing of one large event.
func TestResetLetsGo(t *testing.T) {
	var s State
	terms := everything(ahp.ToolBefore)
	s.Start(terms, []byte(`{"tool":{"name":"n","input":{"a":1}}}`), nil)
	for range 2 {
		if f := fold(&s, terms, `[{"type":"modify","target":"input","operation":"merge","value":{"b":"`+strings.Repeat("x", 2*keptBytes)+`"}}]`); !f.OK() {
			t.Fatalf("fold(a large merge) = %v; want none", f)
		}
	}
	if len(s.Event) < 2*keptBytes {
		t.Fatalf("the event has %d bytes; want the large one", len(s.Event))
	}
	s.Reset()
	if cap(s.buffer) > keptBytes || cap(s.spare) > keptBytes || s.Event != nil {
		t.Errorf("Reset keeps buffers of %d and %d bytes; want at most %d", cap(s.buffer), cap(s.spare), keptBytes)
	}
}
