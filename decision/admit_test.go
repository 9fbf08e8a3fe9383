package decision

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// TestAdmitControls holds every effect of draft but deny against terms that let
// it all, and against terms that do not.
func TestAdmitControls(t *testing.T) {
	const (
		ok           = ahp.NoFailure
		malformed    = ahp.FailEffectMalformed
		unknown      = ahp.FailEffectUnknown
		unadvertised = ahp.FailEffectUnadvertised
		text         = `{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"x"}`
		message      = `{"id":"m","role":"user","parts":[` + text + `]}`
	)
	modify := func(target, value string) string {
		return `{"type":"modify","target":"` + target + `","operation":"replace","value":` + value + `}`
	}
	shown := map[ahp.EventType]string{
		ahp.ContextCompactBefore: `{"instructions":[` + text + `]}`,
		ahp.ContextCompactAfter:  `{"summary":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"metadata"}]}`,
	}
	for _, c := range []struct {
		event  ahp.EventType
		effect string
		want   ahp.FailureClass
	}{
		{ahp.ToolBefore, `{"type":"allow"}`, ok},
		{ahp.ToolBefore, `{"type":"allow","reason":"r"}`, malformed},
		{ahp.ToolBefore, `{"type":"ask","x":1}`, unknown},
		{ahp.TurnStart, `{"type":"allow"}`, unadvertised},
		{ahp.ToolPermissionRequest, `{"type":"ask"}`, unadvertised},
		{ahp.ToolBefore, `{"type":"message","text":""}`, ok},
		{ahp.ToolBefore, `{"type":"message","text":1}`, malformed},
		{ahp.ToolBefore, `{"type":"message"}`, malformed},
		{ahp.ToolBefore, `{"type":"return","value":null}`, ok},
		{ahp.ToolBefore, `{"type":"return","value":1e308}`, ok},
		{ahp.ToolBefore, `{"type":"return","value":[{"x":-1e309}]}`, malformed},
		{ahp.ToolBefore, `{"type":"return","value":` + strings.Repeat("9", 4301) + `}`, malformed},
		{ahp.ToolBefore, `{"type":"return","value":"1e309\\"}`, ok},
		{ahp.ToolBefore, `{"type":"return"}`, malformed},
		{ahp.TurnStart, `{"type":"return","value":1}`, unadvertised},
		{ahp.ModelRequestBefore, `{"type":"return","value":1}`, malformed},
		{ahp.ModelRequestBefore, `{"type":"return","value":[` + message + `]}`, ok},
		{ahp.ToolBefore, modify("input", `{}`), ok},
		{ahp.ToolBefore, modify("input", `[]`), malformed},
		{ahp.ToolBefore, modify("prompt", `[]`), unadvertised},
		{ahp.ToolBefore, modify("nothing", `{}`), unknown},
		{ahp.ToolBefore, `{"type":"modify","target":"input","operation":"append","value":{}}`, unknown},
		{ahp.ToolBefore, `{"type":"modify","target":"input","operation":"stop","value":{}}`, unknown},
		{ahp.ToolBefore, `{"type":"modify","target":"input","operation":"merge"}`, malformed},
		{ahp.TurnStart, modify("prompt", `[`+message+`]`), ok},
		{ahp.TurnStart, modify("prompt", `[`+text+`]`), malformed},
		{ahp.TurnStart, modify("prompt", strings.Replace(`[`+message+`]`, text, `{"id":"p","kind":"attachment","mediaType":"image/png","selection":"body","body":{"ref":"ahp:owned:pending"}}`, 1)), malformed},
		{ahp.UserMessageInbound, modify("prompt", `[]`), unadvertised},
		{ahp.UserMessageOutbound, modify("content", `[]`), unadvertised},
		{ahp.WorkspaceChangeBefore, modify("workspace", `{"cwd":"/"}`), ok},
		{ahp.WorkspaceChangeBefore, modify("workspace", `{}`), malformed},
		{ahp.WorkspaceChangeBefore, modify("workspace", `{"workspaceRoots":["/","/"]}`), malformed},
		{ahp.ContextCompactBefore, modify("instructions", `[`+text+`]`), ok},
		{ahp.ContextCompactBefore, modify("instructions", `[{"id":"p","kind":"text","mediaType":"text/plain","selection":"omit"}]`), malformed},
		{ahp.ContextCompactBefore, `{"type":"return","value":[` + text + `]}`, ok},
		{ahp.ContextCompactAfter, modify("summary", `[`+text+`]`), unadvertised}, // it was not shown
		{ahp.TurnStart, `{"type":"flow","operation":"stop","reason":"r"}`, ok},
		{ahp.TurnStart, `{"type":"flow","operation":"stop"}`, malformed},
		{ahp.TurnStart, `{"type":"flow","operation":"continue"}`, unadvertised},
		{ahp.TurnFinishBefore, `{"type":"flow","operation":"continue"}`, ok},
		{ahp.TurnFinishBefore, `{"type":"flow","operation":"continue","instruction":""}`, malformed},
		{ahp.TurnFinishBefore, `{"type":"flow","operation":"merge"}`, unknown},
		{ahp.TurnFinishBefore, `{"type":"flow"}`, malformed},
		{ahp.SessionStart, `{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":[` + message + `]}`, ok},
		{ahp.SessionStart, `{"type":"inject","target":"context","operation":"append","deliverAt":"later","value":[]}`, unknown},
		{ahp.SessionStart, `{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":{}}`, malformed},
		{ahp.SessionStart, `{"type":"inject","target":"context","operation":"append","value":[]}`, malformed},
		{ahp.SessionStart, `{"type":"inject","target":"prompt","operation":"append","deliverAt":"now","value":[]}`, malformed},
	} {
		terms := everything(c.event)
		response := ahp.Response{Effects: []byte(`[` + c.effect + `]`)}
		got, f := Admit(terms, []byte(shown[c.event]), &response, nil)
		if f.Class != c.want {
			t.Errorf("Admit(%.400s, %.200s) = %v; want %v", c.event, c.effect, f, c.want)
		}
		if f.OK() != (len(got) == 1) {
			t.Errorf("Admit(%s, %.200s) admitted %d; want all or none", c.event, c.effect, len(got))
		}
		// What was not advertised is refused however good it is.
		nothing := Terms{Version: ahp.Draft, Event: c.event, Effects: c.event.Bounds().Effects &^ (1<<ahp.EffectModify | 1<<ahp.EffectFlow | 1<<ahp.EffectInject)}
		_, f = Admit(&nothing, []byte(shown[c.event]), &response, nil)
		if typ := string(ahp.Text(ahp.Member([]byte(c.effect), "type"))); (typ == "modify" || typ == "flow" || typ == "inject") && f.Class != unadvertised {
			t.Errorf("Admit(%s, %.200s) = %v without its terms; want %v", c.event, c.effect, f, unadvertised)
		}
	}
}

func TestParseTerms(t *testing.T) {
	const whole = `{"effects":["deny","modify","flow","inject","com.example.x"],"modify":{"input":{"replace":true,"merge":true},"output":{"replace":true,"merge":false}},
		"flow":{"operations":["stop","continue"],"remainingContinuations":2,"continuationCount":1,"maxContinuations":9},
		"inject":{"context":{"append":true,"deliverAt":["next_turn"]}},"elicitation":{"form":{}}}`
	effects := func(of ...ahp.EffectType) (s ahp.EffectSet) {
		for _, e := range of {
			s = s.With(e)
		}
		return s
	}
	for _, c := range []struct {
		version ahp.Version
		event   ahp.EventType
		raw     string
		want    Terms
	}{
		{ahp.V01, ahp.ToolBefore, whole, Terms{Effects: effects(ahp.EffectDeny)}},
		{ahp.Draft, ahp.ToolAfter, whole, Terms{Effects: effects(ahp.EffectModify, ahp.EffectFlow, ahp.EffectInject),
			Replace: true, Stop: true, Continue: true, Budgeted: true, Remaining: 2, NextTurn: true, Form: true}},
		{ahp.Draft, ahp.ToolBefore, whole, Terms{Effects: effects(ahp.EffectDeny, ahp.EffectModify, ahp.EffectFlow, ahp.EffectInject),
			Replace: true, Merge: true, Stop: true, Budgeted: true, Remaining: 2, NextTurn: true, Form: true}},
		{ahp.Draft, ahp.SessionEnd, whole, Terms{Stop: true, Budgeted: true, Remaining: 2, NextTurn: true, Form: true}},
		{ahp.Draft, ahp.ToolAfter, `{"flow":{"operations":["continue"],"continuationCount":3,"maxContinuations":2}}`, Terms{Continue: true, Budgeted: true}},
		{ahp.Draft, ahp.ToolAfter, `{"flow":{"maxContinuations":1e30,"continuationCount":2.0}}`, Terms{Budgeted: true, Remaining: 1<<63 - 3}},
		{ahp.Draft, ahp.ToolAfter, `{"effects":"modify","modify":{"output":{"replace":1}},"flow":[],"inject":{"context":{"deliverAt":["now"]}},"elicitation":{"url":[]}}`, Terms{}},
		{ahp.Draft, ahp.ToolAfter, `[]`, Terms{}},
	} {
		c.want.Version, c.want.Event = c.version, c.event
		got := ParseTerms(c.version, c.event, []byte(c.raw))
		if !sameTerms(got, c.want) {
			t.Errorf("ParseTerms(%s, %s, %s) = %+v; want %+v", c.version, c.event, c.raw, got, c.want)
		}
	}
}

func sameTerms(a, b Terms) bool {
	same := string(a.Asked) == string(b.Asked)
	a.Asked, b.Asked = nil, nil
	return same && a.Version == b.Version && a.Event == b.Event && a.Effects == b.Effects && a.Replace == b.Replace && a.Merge == b.Merge &&
		a.Stop == b.Stop && a.Continue == b.Continue && a.Budgeted == b.Budgeted && a.Remaining == b.Remaining &&
		a.Now == b.Now && a.NextTurn == b.NextTurn && a.Form == b.Form && a.URL == b.URL
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true}, {`1`, `1e0`, true}, {`100`, `1E+2`, true}, {`1`, `true`, false}, {`0`, `false`, false}, {`0`, `-0`, true}, {`0`, `-0.0`, true},
		{`0.1`, `0.10`, true}, {`0.1`, `0.1000000000000000055`, true}, {`9007199254740993`, `9007199254740992.0`, false},
		{`9007199254740993`, `9007199254740992`, false}, {`12345678901234567890`, `12345678901234567890`, true}, {`1e22`, `10000000000000000000000`, true},
		{`1e400`, `1`, false}, {`1.5`, `1`, false}, {`null`, `null`, true}, {`null`, `0`, false}, {`"a"`, `"\u0061"`, true}, {`"1"`, `1`, false},
		{`[1,2]`, `[ 1 , 2.0 ]`, true}, {`[1,2]`, `[2,1]`, false}, {`[1]`, `[1,1]`, false}, {`[1,1]`, `[1]`, false}, {`[]`, `{}`, false},
		{`{"a":1,"b":[true]}`, `{"b":[true],"\u0061":1.0}`, true}, {`{"a":1}`, `{"a":1,"b":1}`, false}, {`{"a":1,"b":1}`, `{"a":1}`, false}, {`{"a":1}`, `{"b":1}`, false},
		{manyMembers(0, 40), manyMembers(40, 40), true}, {manyMembers(0, 40), manyMembers(0, 39), false},
	} {
		if got := equal([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("equal(%.80s, %.80s) = %t; want %t", c.a, c.b, got, c.want)
		}
		if got := sameValue(decoded([]byte(c.a)), decoded([]byte(c.b))); got != c.want && !strings.Contains(c.a, "e400") {
			t.Errorf("the reference says of %.80s and %.80s %t; want %t", c.a, c.b, got, c.want)
		}
	}
}

// manyMembers is an object of n members that begins with the one numbered from.
func manyMembers(from, n int) string {
	var members []string
	for i := range n {
		members = append(members, `"`+strings.Repeat("k", (from+i)%n)+`":`+`1`)
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestForm(t *testing.T) {
	field := func(schema string) string {
		return `{"type":"object","properties":{"f":` + schema + `}}`
	}
	for _, c := range []struct {
		form, content string
		want          bool
	}{
		{`{"type":"object","properties":{}}`, `{"x":1}`, true},
		{`{"type":"object","properties":{},"required":["x"]}`, `{}`, false},
		{`{"type":"object","properties":{},"required":["x"]}`, `{"x":1}`, true},
		{field(`{"type":"boolean"}`), `{"f":true}`, true},
		{field(`{"type":"boolean"}`), `{"f":1}`, false},
		{field(`{"type":"integer","minimum":1,"maximum":3}`), `{"f":3.0}`, true},
		{field(`{"type":"integer"}`), `{"f":1.5}`, false},
		{field(`{"type":"integer","minimum":1}`), `{"f":0}`, false},
		{field(`{"type":"number","maximum":3}`), `{"f":3.01}`, false},
		{field(`{"type":"number","minimum":-1e400,"maximum":1e400}`), `{"f":1e308}`, true},
		{field(`{"type":"number"}`), `{"f":"1"}`, false},
		{field(`{"type":"string","minLength":2,"maxLength":2}`), `{"f":"éé"}`, true},
		{field(`{"type":"string","minLength":2}`), `{"f":"é"}`, false},
		{field(`{"type":"string","format":"email"}`), `{"f":"a@b"}`, true},
		{field(`{"type":"string","format":"email"}`), `{"f":"ab"}`, false},
		{field(`{"type":"string","format":"date"}`), `{"f":"2024-02-29"}`, true},
		{field(`{"type":"string","format":"date"}`), `{"f":"2023-02-29"}`, false},
		{field(`{"type":"string","format":"date"}`), `{"f":"0000-01-01"}`, false},
		{field(`{"type":"string","format":"date-time"}`), `{"f":"2024-02-29T10:00:00Z"}`, true},
		{field(`{"type":"string","format":"date-time"}`), `{"f":"2016-12-31T23:59:60Z"}`, false},
		{field(`{"type":"string","format":"uri"}`), `{"f":"https://example.com/"}`, true},
		{field(`{"type":"string","format":"uri"}`), `{"f":"example"}`, false},
		{field(`{"type":"string","enum":["a","b"],"enumNames":["A","B"]}`), `{"f":"b"}`, true},
		{field(`{"type":"string","enum":["a","b"]}`), `{"f":"c"}`, false},
		{field(`{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"},{"const":"b","title":"C"}]}`), `{"f":"a"}`, true},
		{field(`{"type":"string","oneOf":[{"const":"b","title":"B"},{"const":"b","title":"C"}]}`), `{"f":"b"}`, false},
		{field(`{"type":"array","items":{"type":"string","enum":["a"]},"minItems":1,"maxItems":2}`), `{"f":["a","a"]}`, true},
		{field(`{"type":"array","items":{"type":"string","enum":["a"]},"minItems":1}`), `{"f":[]}`, false},
		{field(`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"a","title":"B"}]}}`), `{"f":["a"]}`, true},
		{field(`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`), `{"f":["b"]}`, false},
		{field(`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`), `{"f":"a"}`, false},
	} {
		if !isForm([]byte(c.form)) {
			t.Errorf("isForm(%s) = false; want true", c.form)
		}
		if got := fillsIn([]byte(c.form), []byte(c.content)); got != c.want {
			t.Errorf("fillsIn(%s, %s) = %t; want %t", c.form, c.content, got, c.want)
		}
	}
	for _, form := range []string{
		`[]`, `{}`, `{"type":"object"}`, `{"type":"array","properties":{}}`, `{"type":"object","properties":{},"required":"x"}`, `{"type":"object","properties":{},"additionalProperties":false}`,
		field(`{}`), field(`[]`), field(`{"type":"null"}`), field(`{"type":"string","pattern":"x"}`), field(`{"type":"string","minimum":1}`), field(`{"type":"boolean","maxLength":1}`),
		field(`{"type":"string","format":"ipv4"}`), field(`{"type":"string","enum":[1]}`), field(`{"type":"string","enum":["a"],"maxLength":1}`), field(`{"type":"string","enumNames":["a"]}`),
		field(`{"type":"array"}`), field(`{"type":"array","items":{"type":"string"}}`), field(`{"type":"array","items":{"enum":["a"]}}`), field(`{"type":"string","oneOf":[{"const":"a"}]}`),
		field(`{"type":"boolean","default":1}`), field(`{"type":"string","$ref":"x"}`),
	} {
		if isForm([]byte(form)) {
			t.Errorf("isForm(%s) = true; want false", form)
		}
	}
}

// TestElicitation settles questions and edits their answers.
func TestElicitation(t *testing.T) {
	quoted := func(s string) string { return string(appendQuoted(nil, []byte(s))) }
	textPart := func(text string) string {
		return `{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":` + quoted(text) + `}`
	}
	const form = `{"message":"?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`
	// As many answers as there are choices take no longer than reading both.
	list := make([]string, 20000)
	for i := range list {
		list[i] = `"` + strconv.Itoa(i) + `"`
	}
	many := strings.Join(list, ",")
	choosing := `{"message":"?","requestedSchema":{"type":"object","properties":{"many":{"type":"array","items":{"type":"string","enum":[` + many + `]}}}}}`
	request := func(mode, text string) string {
		return `{"id":"q","source":"urn:x","elicitation":{"server":"s","mode":"` + mode + `","request":` + textPart(text) + `}}`
	}
	result := func(action, text string) string {
		return `{"id":"r","source":"urn:x","parentEventId":"q","elicitation":{"server":"s","mode":"form","action":"` + action + `","result":` + textPart(text) + `}}`
	}
	give := func(value string) string { return `[{"type":"return","value":` + value + `}]` }
	edit := func(operation, value string) string {
		return `[{"type":"modify","target":"content","operation":"` + operation + `","value":` + value + `}]`
	}
	const deny = `{"type":"deny","reason":"r"}`
	for _, c := range []struct {
		event, asked, effects string
		want                  ahp.FailureClass
		text                  string // of the result
	}{
		{request("form", form), "", `[` + deny + `]`, 0, ""},
		{request("form", form), "", `[` + deny + `,` + deny + `]`, ahp.FailEffectConflict, ""},
		{request("form", form), "", `[{"type":"return","value":{"action":"cancel"}},` + deny + `]`, ahp.FailEffectConflict, ""},
		{request("form", form), "", give(`{"action":"accept","content":{"n":1}}`), 0, ""},
		{request("form", form), "", give(`{"action":"accept","content":{"n":"1"}}`), ahp.FailEffectMalformed, ""},
		{request("form", form), "", give(`{"action":"accept"}`), ahp.FailEffectMalformed, ""},
		{request("form", form), "", give(`{"action":"decline","content":{"n":1}}`), ahp.FailEffectMalformed, ""},
		{request("form", form), "", give(`{"action":"maybe"}`), ahp.FailEffectMalformed, ""},
		{request("url", form), "", `[` + deny + `]`, ahp.FailEffectUnadvertised, ""},
		{request("form", `{"message":"?","message":"!"}`), "", `[` + deny + `]`, ahp.FailEffectUnadvertised, ""},
		{request("form", `no JSON`), "", `[` + deny + `]`, ahp.FailEffectUnadvertised, ""},
		{`{"elicitation":{"mode":"form"}}`, "", `[` + deny + `]`, ahp.FailEffectUnadvertised, ""},
		{`{"elicitation":{"mode":"form"}}`, "", `[{"type":"message","text":"m"}]`, 0, ""},
		{request("url", `{"mode":"url","elicitationId":"1","message":"?","url":"https://example.com"}`), "", give(`{"action":"accept"}`), 0, ""},
		{request("url", `{"mode":"url","elicitationId":"1","message":"?","url":"https://example.com"}`), "", give(`{"action":"accept","content":{}}`), ahp.FailEffectMalformed, ""},
		{result("accept", `{"action":"accept", "content":{"n":1, "x":"é\n"}}`), request("form", form), edit("merge", `{"n":2}`), 0, `{"action":"accept","content":{"n":2,"x":"é\n"}}`},
		{result("accept", `{"action":"accept","content":{"n":1}}`), request("form", form), edit("replace", `{"n":1}`), 0, `{"action":"accept","content":{"n":1}}`},
		{result("accept", `{"action":"accept","content":{"n":1}}`), request("form", form), edit("replace", `{}`), ahp.FailEffectMalformed, ""},
		{result("accept", `{"action":"accept","content":{"n":1}}`), "", edit("replace", `{"n":1}`), ahp.FailEffectUnadvertised, ""},
		{result("accept", `{"action":"decline"}`), request("form", form), edit("replace", `{"n":1}`), ahp.FailEffectUnadvertised, ""},
		{result("decline", `{"action":"decline"}`), request("form", form), edit("replace", `{"n":1}`), ahp.FailEffectMalformed, ""},
		{result("accept", `{"action":"accept","content":{"n":1}}`), strings.Replace(request("form", form), `"q"`, `"other"`, 1), edit("replace", `{"n":1}`), ahp.FailEffectUnadvertised, ""},
		{result("accept", `{"action":"accept","content":{"n":1}}`), request("form", form), `[` + strings.Repeat(edit("merge", `{"n":1}`)[1:len(edit("merge", `{"n":1}`))-1]+`,`, 99) + edit("merge", `{"n":1}`)[1:], 0, ""},
		{result("accept", `{"action":"accept","content":{"n":1,"x":"`+strings.Repeat("x", maxEdited/99)+`"}}`), request("form", form), `[` + strings.Repeat(edit("merge", `{"n":1}`)[1:len(edit("merge", `{"n":1}`))-1]+`,`, 99) + edit("merge", `{"n":1}`)[1:], ahp.FailEffectMalformed, ""},
		{request("form", strings.Replace(form, `{`, `{"_meta":1,`, 1)), "", `[` + deny + `]`, ahp.FailEffectUnadvertised, ""},
		{request("form", strings.Replace(form, `{`, `{"_meta":{"progressToken":null},`, 1)), "", `[` + deny + `]`, ahp.FailEffectUnadvertised, ""},
		{request("form", strings.Replace(form, `{`, `{"_meta":{"progressToken":1},"task":{"ttl":1}, `, 1)), "", `[` + deny + `]`, 0, ""},
		{request("form", strings.Replace(form, `{`, `{"task":{"ttl":"1"},`, 1)), "", `[` + deny + `]`, ahp.FailEffectUnadvertised, ""},
		{request("form", strings.Replace(form, `{`, `{"task":[],`, 1)), "", `[` + deny + `]`, ahp.FailEffectUnadvertised, ""},
		{request("form", choosing), "", give(`{"action":"accept","content":{"many":[` + many + `]}}`), 0, ""},
		{request("form", choosing), "", give(`{"action":"accept","content":{"many":[` + many + `,"none"]}}`), ahp.FailEffectMalformed, ""},
	} {
		kind := ahp.UserElicitationRequest
		if strings.Contains(c.event, `"action"`) {
			kind = ahp.UserElicitationResult
		}
		terms := everything(kind)
		if c.asked != "" {
			terms.Asked = []byte(c.asked)
		}
		var s State
		s.Start(terms, []byte(c.event), nil)
		if f := fold(&s, terms, c.effects); f.Class != c.want {
			t.Errorf("Admit(%.400s, %.200s) = %v; want %v", c.event, c.effects, f, c.want)
		}
		if got := ahp.Text(ahp.Member(ahp.Member(ahp.Member(s.Event, "elicitation"), "result"), "text")); c.text != "" && string(got) != c.text {
			t.Errorf("Fold(%s, %s) makes %s; want %s", c.event, c.effects, got, c.text)
		}
	}
	// Modes that were not granted settle nothing.
	terms := everything(ahp.UserElicitationRequest)
	terms.Form = false
	if _, f := Admit(terms, []byte(request("form", form)), &ahp.Response{Effects: []byte(`[` + deny + `]`)}, nil); f.Class != ahp.FailEffectUnadvertised {
		t.Errorf("Admit(deny without the mode) = %v; want %v", f, ahp.FailEffectUnadvertised)
	}
}

// FuzzAdmit folds whatever is admitted: neither may fail on it, and what the
// state then says must be JSON.
func FuzzAdmit(f *testing.F) {
	events := []string{
		ahp.ToolBefore:             `{"tool":{"input":{"a":1}}}`,
		ahp.TurnStart:              `{"items":[{"id":"m","role":"user","parts":[]}]}`,
		ahp.TurnFinishBefore:       `{"items":[]}`,
		ahp.ContextCompactBefore:   `{"instructions":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"x"}]}`,
		ahp.UserElicitationRequest: `{"elicitation":{"mode":"form","request":{"text":"{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"number\",\"minimum\":0.1}}}}"}}}`,
		ahp.WorkspaceChangeBefore:  `{"workspace":{"change":{"cwd":"/"}}}`,
	}
	for _, s := range []string{
		`[]`, `[{"type":"deny","reason":"r"}]`, `[{"type":"deny","reason":"r","code":"a.b","extensions":{"a.b":1}}]`, `[{"type":"allow"},{"type":"deny","reason":"r"}]`,
		`[{"type":"modify","target":"input","operation":"merge","value":{"a":1.0,"b":[]}},{"type":"return","value":null},{"type":"ask"}]`,
		`[{"type":"modify","target":"prompt","operation":"merge","value":[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"x"}]}]}]`,
		`[{"type":"modify","target":"instructions","operation":"replace","value":[]},{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":[]}]`,
		`[{"type":"flow","operation":"continue","instruction":"x"},{"type":"flow","operation":"stop","reason":"r"},{"type":"message","text":""}]`,
		`[{"type":"return","value":{"action":"accept","content":{"n":1e5}}}]`, `[{"type":"modify","target":"workspace","operation":"merge","value":{"workspaceRoots":["/"]}}]`,
	} {
		for e := range events {
			f.Add(s, uint8(e), true)
		}
		f.Add(s, uint8(ahp.ToolBefore), false)
	}
	f.Fuzz(func(t *testing.T, effects string, kind uint8, draft bool) {
		v, e := ahp.V01, ahp.ToolBefore
		if draft {
			v = ahp.Draft
			if int(kind) < len(events) && events[kind] != "" {
				e = ahp.EventType(kind)
			}
		}
		r := &ahp.Response{Body: []byte(`{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"` + v.String() + `","effects":` + effects + `}}`)}
		if f := ahp.DecodeResponse(&ahp.Call{ID: []byte(`"e"`), Version: v}, r); !f.OK() {
			return
		}
		terms := everything(e)
		if v == ahp.V01 {
			terms = denyOnly(v)
		}
		var s State
		s.Start(terms, []byte(events[e]), nil)
		got, failure := Admit(terms, s.Event, r, nil)
		if !failure.OK() {
			if len(got) > 0 {
				t.Errorf("Admit(%s) = %d effects and %v; want all or none", effects, len(got), failure)
			}
			return
		}
		for _, e := range got {
			if e.Type == ahp.EffectDeny && (len(e.Reason) == 0 || e.Code != nil && !ahp.IsReverseDNS(e.Code)) || v == ahp.V01 && e.Type != ahp.EffectDeny {
				t.Errorf("Admit(%s) admitted %s; want only well-formed effects", effects, e.Raw)
			}
		}
		s.Fold(got, nil)
		say, a := said(&s)
		for _, text := range []string{say, string(s.Event), string(s.AppendState(nil))} {
			if !ahp.Strict([]byte(text)) && text != "" {
				t.Errorf("after %s: %s; want JSON", effects, text)
			}
		}
		if s.Denied && a.Code == 0 && !strings.Contains(say, `deny`) && !strings.Contains(effects, `\u`) {
			t.Errorf("Answer after %s = %s; want the deny in it", effects, say)
		}
	})
}
