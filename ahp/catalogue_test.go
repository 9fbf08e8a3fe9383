package ahp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// catalogue is the protocol's: whether 0.1 intercepts (i) or observes (o) the
// event, the same for draft, and the payload that draft requires.
var catalogue = []struct{ name, in01, inDraft, payload string }{
	{"session.start", "o", "io", "session trigger permissionMode manifest items"},
	{"session.end", "o", "o", "session outcome reason"},
	{"tool.before", "i", "io", "call tool path"},
	{"tool.after", "o", "io", "outcome execution call tool path items"},
	{"tool.error", "o", "", ""},
	{"tool.permission.request", "", "io", "call tool path suggestions sandboxBypass"},
	{"tool.permission.resolved", "", "o", "call tool path decision decidedBy"},
	{"tool.progress", "", "o", "call tool path partialOutput backgrounded"},
	{"tool.batch.after", "", "io", "batch calls"},
	{"turn.start", "", "io", "turn trigger items"},
	{"turn.finish.before", "", "io", "turn outcome continuationCount items"},
	{"turn.end", "", "o", "turn outcome continuationCount items"},
	{"turn.progress", "", "o", "turn item delta final"},
	{"model.request.before", "", "io", "model attempt params items"},
	{"model.response.after", "", "io", "model attempt execution items finishReason"},
	{"model.error", "", "o", "model attempt execution error"},
	{"model.switch.before", "", "io", "current proposed reason"},
	{"model.switch.after", "", "o", "previous current reason"},
	{"context.compact.before", "", "io", "trigger items"},
	{"context.compact.after", "", "io", "summary removed execution"},
	{"config.change.before", "", "io", "change"},
	{"config.change.after", "", "o", "change"},
	{"user.attention", "", "o", "attention"},
	{"user.elicitation.request", "", "io", "elicitation"},
	{"user.elicitation.result", "", "io", "elicitation"},
	{"user.message.inbound", "", "io", "message"},
	{"user.message.outbound", "", "io", "message"},
	{"hook.failure", "", "o", "failure parentEventId"},
	{"task.change.before", "", "io", "task"},
	{"task.change.after", "", "o", "task"},
	{"workspace.change.before", "", "io", "workspace"},
	{"workspace.change.after", "", "o", "workspace"},
	{"file.changed", "", "o", "changes"},
}

func TestCatalogue(t *testing.T) {
	if got, want := int(EventTypeCount)-1, len(catalogue); got != want {
		t.Errorf("the catalogue has %d events; want %d", got, want)
	}
	for i, want := range catalogue {
		e := EventUnknown + 1 + EventType(i)
		if got := e.String(); got != want.name {
			t.Errorf("event %d is %s; want %s", e, got, want.name)
			continue
		}
		for v, ways := range map[Version]string{V01: want.in01, Draft: want.inDraft, 0: ""} {
			intercept, observe := strings.Contains(ways, "i"), strings.Contains(ways, "o")
			if e.Interceptable(v) != intercept || e.Observable(v) != observe || e.In(v) != (ways != "") {
				t.Errorf("%v in %v: interceptable %v, observable %v, in %v; want %q", e, v, e.Interceptable(v), e.Observable(v), e.In(v), ways)
			}
			got, ok := LookupEvent(v, want.name)
			if ok != (ways != "") || ok && got != e || !ok && got != EventUnknown {
				t.Errorf("LookupEvent(%v, %s) = %v, %v; want %v", v, want.name, got, ok, ways != "")
			}
		}
		if eventShapes[e] == nil {
			if want.payload != "" {
				t.Errorf("eventShapes[%v] = nil; want %s", e, want.payload)
			}
			continue
		}
		got, wanted := requiredOf(e), strings.Fields(want.payload)
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%v requires %q; want %q", e, got, wanted)
		}
	}
	for _, e := range []EventType{EventUnknown, EventTypeCount, 255} {
		if e.String() != "unknown" || e.In(V01) || e.In(Draft) {
			t.Errorf("EventType(%d) = %v, in 0.1 %v, in draft %v; want no event", e, e, e.In(V01), e.In(Draft))
		}
	}
	for _, name := range []string{"", "unknown", "Tool.before", "tool.*", "*", "tool.before ", "tool"} {
		if e, ok := LookupEvent(Draft, name); ok {
			t.Errorf("LookupEvent(draft, %q) = %v, true; want false", name, e)
		}
	}
}

// TestContentPaths: the paths that content selection walks are those at which
// shapes have content parts.
func TestContentPaths(t *testing.T) {
	for e, s := range eventShapes {
		known := map[string]memberPath{}
		pathsOf(known, s, "")
		var want, got []string
		for path, p := range known {
			if p.part {
				want = append(want, strings.TrimPrefix(path, "."))
			}
		}
		for _, path := range contentPaths[e] {
			got = append(got, strings.Join(path, "."))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("content paths of %v = %q; want %q", EventType(e), got, want)
		}
	}
}

func TestLookupEffect(t *testing.T) {
	all := []string{"deny", "allow", "ask", "modify", "message", "return", "flow", "inject"}
	var set EffectSet
	for i, name := range all {
		e, ok := LookupEffect(Draft, []byte(name))
		if !ok || e.String() != name || set.Has(e) {
			t.Errorf("LookupEffect(draft, %s) = %v, %v; want it", name, e, ok)
		}
		if set = set.With(e); !set.Has(e) {
			t.Errorf("With(%v).Has(%v) = false; want true", e, e)
		}
		if e, ok := LookupEffect(V01, []byte(name)); ok != (i == 0) {
			t.Errorf("LookupEffect(0.1, %s) = %v, %v; want %v", name, e, ok, i == 0)
		}
	}
	for _, name := range []string{"", "unknown", "Deny", "deny ", "com.example.deny"} {
		if e, ok := LookupEffect(Draft, []byte(name)); ok || e != EffectUnknown {
			t.Errorf("LookupEffect(draft, %q) = %v, %v; want unknown, false", name, e, ok)
		}
	}
	if got := effectTypeCount.String(); got != "unknown" {
		t.Errorf("an effect beyond the last = %s; want unknown", got)
	}
}

func TestVersions(t *testing.T) {
	for s, want := range map[string]Version{"0.1": V01, "draft": Draft, "": 0, "0.1.0": 0, "0.2": 0, "Draft": 0, "draft ": 0, "unknown": 0} {
		if v, ok := ParseVersion(s); v != want || ok != (want != 0) {
			t.Errorf("ParseVersion(%q) = %v, %v; want %v", s, v, ok, want)
		}
	}
	if got := fmt.Sprint(Versions, Version(0), Version(9)); got != "[0.1 draft] unknown unknown" {
		t.Errorf("versions = %s; want [0.1 draft] unknown unknown", got)
	}
}

func TestSelections(t *testing.T) {
	var names []string
	for s := Selection(0); s < 5; s++ {
		names = append(names, s.String())
		if got, ok := ParseSelection(s.String()); ok != (1 <= s && s <= 3) || ok && got != s {
			t.Errorf("ParseSelection(%v) = %v, %v", s, got, ok)
		}
	}
	if want := []string{"unknown", "body", "metadata", "omit", "unknown"}; !slices.Equal(names, want) {
		t.Errorf("selections = %q; want %q", names, want)
	}
	c := ContentSelection{Default: SelectMetadata, Categories: map[string]Selection{"reasoning": SelectOmit}}
	if c.Of("reasoning") != SelectOmit || c.Of("other") != SelectMetadata || (ContentSelection{}).Of("x") != 0 {
		t.Errorf("Of(reasoning), Of(other) of %+v = %v, %v; want omit, metadata", c, c.Of("reasoning"), c.Of("other"))
	}
}
