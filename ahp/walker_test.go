package ahp

import (
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestMisfits: a refusal names the first member at fault by its path, and
// nothing that the caller wrote.
func TestMisfits(t *testing.T) {
	const (
		turnStart = "testdata/draft/requests/intercept-turn-start.json"
		toolAfter = "testdata/draft/requests/intercept-tool-after.json"
		session   = "testdata/draft/requests/observe-session-start.json"
		progress  = "testdata/draft/requests/observe-turn-progress.json"
	)
	for _, test := range []struct{ path, edit, want string }{
		{turnStart, `-params.event.turn`, `params.event.turn is missing`},
		{turnStart, `params.event.turn={"id":"t","secret":1}`, `params.event.turn has an unknown member`},
		{turnStart, `params.event.trigger="whim"`, `params.event.trigger is none of user, continuation, hook, external`},
		{turnStart, `params.event.items=[{"id":"m","role":"user","parts":[]},{"id":"m","role":"none","parts":[]}]`, `params.event.items[1].role is none of system, developer, user, assistant, tool`},
		{turnStart, `params.event.items=[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body"}]}]`, `params.event.items[0].parts[0] has not exactly one of text, body, gap`},
		{turnStart, `params.event.items=[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"omit","text":"x"}]}]`, `params.event.items[0].parts[0].text does not belong there beside that selection`},
		{turnStart, `params.event.items=[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"text/html","selection":"omit"}]}]`, `params.event.items[0].parts[0].mediaType is no media type of a text or an attachment`},
		{turnStart, `params.event.items=[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"image/png","selection":"omit"}]}]`, `params.event.items[0].parts[0].mediaType is not that of a text`},
		{turnStart, `params.event.session.counters={"turns":1,"mine":-1}`, `params.event.session.counters.* is no integer of at least 0`},
		{turnStart, `params.event.gaps=[{"path":"x","reason":""}]`, `params.event.gaps[0].reason is no non-empty string`},
		{turnStart, `params.capabilities.effects=["deny","modify","message","inject","flow"]`, `params.capabilities.flow is missing`},
		{turnStart, `params.capabilities.effects=["deny","modify","message"]`, `params.capabilities.inject does not belong there without its effect`},
		{turnStart, `params.capabilities.modify.prompt={"replace":false,"merge":false}`, `params.capabilities.modify.prompt.merge allows no operation, nor does replace`},
		{turnStart, `params.capabilities.modify={"input":{"replace":true,"merge":true}}`, `params.capabilities.modify has an unknown member`},
		{turnStart, `params.capabilities.modify={}`, `params.capabilities.modify is empty`},
		{turnStart, `params.capabilities.inject.context.deliverAt=["now","now"]`, `params.capabilities.inject.context.deliverAt says something twice`},
		{turnStart, `params.state.injections=[{"type":"inject","target":"context","operation":"append","deliverAt":"never","value":[]}]`, `params.state.injections[0].deliverAt is none of now, next_turn`},
		{turnStart, `params.state.instructions=["a",""]`, `params.state.instructions[1] is no non-empty string`},
		{turnStart, `params.state.candidate=[]`, `params.state.candidate is no null or object with a value`},
		{toolAfter, `params.event.outcome="error"`, `params.event.error is missing`},
		{toolAfter, `params.event.error={"message":"m","class":"c"}`, `params.event.error does not belong there beside that outcome`},
		{toolAfter, `params.event.outcome="denied"`, `params.event.execution of a denied call is not skipped by policy`},
		{toolAfter, `params.event.execution={"status":"skipped","reason":"other"}`, `params.event.durationMs does not belong there of a skipped call`},
		{toolAfter, `params.event.execution={"status":"skipped"}`, `params.event.execution.reason is missing`},
		{toolAfter, `params.event.tool.output={}`, `params.event.tool has an unknown member`},
		{toolAfter, `params.event.batch={"id":"b","callIds":[]}`, `params.event.batch.callIds is empty`},
		{toolAfter, `params.capabilities.flow={"operations":["continue"]}`, `params.capabilities.flow.remainingContinuations is missing`},
		{toolAfter, `params.event.tool={"name":"n","origin":"mcp","input":{},"mcp":{"server":{"id":"s"},"toolName":"n","provenance":"runtime","connection":{"transport":"sse"}}}`, `params.event.tool.mcp.connection.url is missing and not among gaps`},
		{session, `params.event.tool={}`, `params.event.tool does not belong there`},
		{session, `params.event.trigger="fork"`, `params.event.resumedFrom is missing`},
		{session, `params.event.manifest.events=[{"event":"tool.before","modes":["intercept"]}]`, `params.event.manifest.events[0].capabilities is missing`},
		{session, `params.event.manifest.events=[{"event":"tool.before","modes":["intercept"],"capabilities":{"effects":["com.example.x"]}}]`, `params.event.manifest.events[0].capabilities.effects[0] is none of deny, allow, ask, modify, message, return, flow, inject`},
		{session, `params.event.manifest.events=[{"event":"session.end","modes":["intercept"],"capabilities":{"effects":[]}}]`, `params.event.manifest.events[0].modes has intercept at an event that is observed only`},
		{session, `params.event.manifest.managedPolicy.disableable=true`, `params.event.manifest.managedPolicy.disableable is not false beside scope managed`},
		{progress, `params.event.final="yes"`, `params.event.final is no boolean`},
		{progress, `params.event.delta=[]`, `params.event.delta is no object`},
	} {
		body := base(t, test.path).edited(test.edit)
		var m Message
		switch err := Decode(body, &m); {
		case err == nil:
			t.Errorf("Decode(%s with %s) = nil; want %q", test.path, test.edit, test.want)
		case err.Code != CodeInvalidParams || err.Message != test.want:
			t.Errorf("Decode(%s with %s) = %d %q; want %d %q", test.path, test.edit, err.Code, err.Message, CodeInvalidParams, test.want)
		}
	}
}

func TestCheckEffect(t *testing.T) {
	for _, test := range []struct {
		event EventType
		raw   string
		want  EffectType
		wrong string
	}{
		{ToolBefore, `{"type":"deny","reason":"r","code":"com.example.c"}`, EffectDeny, ""},
		{ToolBefore, `{"type":"deny","reason":"r","more":1}`, EffectDeny, "effect has an unknown member"},
		{ToolBefore, `{"type":"return","value":null}`, EffectReturn, ""},
		{ToolBefore, `{"type":"return"}`, EffectReturn, "effect.value is missing"},
		{ToolBefore, `{"type":"flow","operation":"continue"}`, EffectFlow, "effect.operation is none of stop"},
		{ToolAfter, `{"type":"flow","operation":"continue","instruction":"i"}`, EffectFlow, ""},
		{ToolAfter, `{"type":"flow","operation":"stop"}`, EffectFlow, "effect.reason is missing beside stop"},
		{ToolAfter, `{"type":"deny","reason":"r"}`, EffectDeny, "effect.type is none of the event's"},
		{SessionEnd, `{"type":"message","text":"t"}`, EffectMessage, "effect.type is none of the event's"},
		{EventTypeCount, `{"type":"message","text":"t"}`, EffectMessage, "effect.type is none of the event's"},
		{ToolBefore, `{"type":"com.example.x"}`, EffectUnknown, "effect.type is none of the snapshot's"},
		{ToolBefore, `{}`, EffectUnknown, "effect.type is none of the snapshot's"},
		{ToolBefore, `[]`, EffectUnknown, "effect is no object"},
		{TurnStart, `{"type":"modify","target":"prompt","operation":"merge","value":[{"id":"m","role":"user","parts":[1]}]}`, EffectModify, "effect.value[0].parts[0] is no object"},
		{UserElicitationResult, `{"type":"modify","target":"content","operation":"replace","value":{"a":[1]}}`, EffectModify, "effect.value.*[0] is no string"},
		{UserElicitationRequest, `{"type":"return","value":{"action":"accept","content":{"a":["x"],"b":true}}}`, EffectReturn, ""},
		{WorkspaceChangeBefore, `{"type":"modify","target":"workspace","operation":"merge","value":{}}`, EffectModify, "effect.value is empty"},
	} {
		e, wrong := test.event.CheckEffect([]byte(test.raw))
		if e != test.want || wrong != test.wrong {
			t.Errorf("%v.CheckEffect(%s) = %v, %q; want %v, %q", test.event, test.raw, e, wrong, test.want, test.wrong)
		}
	}
}

// TestReadNumber compares random numbers with what package big makes of them.
func TestReadNumber(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("0001259"[r.IntN(7)])
		}
		return b.String()
	}
	for range 50_000 {
		s := []string{"", "-"}[r.IntN(2)]
		if whole := strings.TrimLeft(digits(r.IntN(5)), "0"); whole != "" {
			s += whole
		} else {
			s += "0"
		}
		if r.IntN(2) == 0 {
			s += "." + digits(1+r.IntN(4))
		}
		if r.IntN(2) == 0 {
			s += []string{"e", "E"}[r.IntN(2)] + []string{"", "+", "-"}[r.IntN(3)] + digits(1+r.IntN(2))
		}
		want, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("SetString(%s) = false; want a number", s)
		}
		got, ok := readNumber([]byte(s))
		if w := (numeral{want.Sign() < 0, want.Sign() == 0, want.IsInt()}); !ok || got != w {
			t.Fatalf("readNumber(%s) = %+v, %v; want %+v", s, got, ok, w)
		}
	}
	for s, want := range map[string]bool{"1e400": true, "1e401": false, "1e999999999999999999999": false, "1e-999999999999999999999": true, "0e999999999999999999999": true, `"1"`: false, "null": false, "": false} {
		if got, ok := readNumber([]byte(s)); ok != want {
			t.Errorf("readNumber(%s) = %+v, %v; want %v", s, got, ok, want)
		}
	}
}

// TestIsAttachment compares random media types with the protocol's expression.
func TestIsAttachment(t *testing.T) {
	inline := regexp.MustCompile(noAttachment)
	r := rand.New(rand.NewPCG(8, 8))
	pieces := []string{"text", "TEXT", "json", "JsOn", "/", "/", "+", ";", "a", "x", " ", "image", "\n", "é", "jso"}
	for range 100_000 {
		var s string
		for range r.IntN(8) {
			s += pieces[r.IntN(len(pieces))]
		}
		if got, want := isAttachment([]byte(s)), s != "" && !inline.MatchString(s); got != want {
			t.Fatalf("isAttachment(%q) = %v; want %v", s, got, want)
		}
	}
}

// TestRepeats looks for the same text in short and long lists, escaped or not.
func TestRepeats(t *testing.T) {
	s := set(filled)
	for n := 1; n < 64; n++ {
		list := &tree{kind: KindArray}
		for i := range n {
			list.members = append(list.members, str(strings.Repeat("x", i+1)))
		}
		if why, ok := fits(s, list); !ok {
			t.Errorf("%d different texts: %s; want them to fit", n, why)
		}
		for _, i := range []int{0, n / 2, n - 1} {
			raw := list.render(nil)
			raw = append(raw[:len(raw)-1], `,"\u0078`+strings.Repeat("x", i)+`"]`...)
			w := walker{b: raw}
			if w.fits(s, 0) || w.misfit("list") != "list says something twice" {
				t.Errorf("text %d of %d twice: fits, or %s; want it refused", i, n, w.misfit("list"))
			}
		}
	}
}
