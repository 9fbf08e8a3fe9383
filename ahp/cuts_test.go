package ahp

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// rawMember is one member of an object as it was written.
type rawMember struct{ name, value string }

// rawMembers reads an object's members by way of another reader than ours.
func rawMembers(t *testing.T, object string) []rawMember {
	t.Helper()
	d := jsontext.NewDecoder(strings.NewReader(object))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		t.Fatalf("ReadToken(%s) = %v, %v; want an object", object, token, err)
	}
	var all []rawMember
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			t.Fatalf("ReadValue(%s) = %v; want a name", object, err)
		}
		m := rawMember{name: string(name)}
		value, err := d.ReadValue()
		if err != nil {
			t.Fatalf("ReadValue(%s) = %v; want a value", object, err)
		}
		m.value = string(value)
		all = append(all, m)
	}
	return all
}

func (m rawMember) is(name string) bool {
	var s string
	return json.Unmarshal([]byte(m.name), &s) == nil && s == name
}

// without returns the members but those of the given names, and the value of
// the last of these.
func without(all []rawMember, names ...string) (rest []rawMember, value string) {
	for _, m := range all {
		if slices.ContainsFunc(names, m.is) {
			value = m.value
			continue
		}
		rest = append(rest, m)
	}
	return rest, value
}

// checkView holds what is sent to a subscription with view v against what the
// protocol and the design promise about it.
func checkView(t *testing.T, m *Message, v View) {
	t.Helper()
	body := string(m.Body)
	out := string(m.AppendIntercept([]byte("dst"), v))
	out, ok := strings.CutPrefix(out, "dst")
	if !ok {
		t.Fatalf("AppendIntercept(dst, %+v) of %q lost dst", v, body)
	}
	if string(m.Body) != body {
		t.Fatalf("AppendIntercept(%+v) changed the body %q to %q", v, body, m.Body)
	}
	if m.Verbatim(v) && out != body {
		t.Fatalf("AppendIntercept(%+v) of %q = %q; want the same", v, body, out)
	}
	var cut []string
	if !v.Native {
		cut = append(cut, "native")
	}

	// The value is the same but for what was cut.
	want, err := parseTree([]byte(body))
	if err != nil {
		t.Fatalf("parseTree(%q) = %v; want nil", body, err)
	}
	for _, name := range cut {
		if event := want.get("params.event"); slices.Contains(event.names, name) {
			event.drop(name)
		}
	}
	if !m.Capabilities.DenyOnly {
		raw := `{"effects":[]}`
		if m.Capabilities.Effects.Has(EffectDeny) {
			raw = `{"effects":["deny"]}`
		}
		want.set("params.capabilities", raw)
	}
	got, err := parseTree([]byte(out))
	if err != nil || !scans([]byte(out)) {
		t.Fatalf("AppendIntercept(%+v) of %q = %q; want JSON: %v", v, body, out, err)
	}
	if g, w := got.render(nil), want.render(nil); !bytes.Equal(g, w) {
		t.Fatalf("AppendIntercept(%+v) of %q\n got %s\nwant %s", v, body, g, w)
	}

	// Every member that stays is written as it was.
	rootBefore, paramsBefore := without(rawMembers(t, body), "params")
	rootAfter, paramsAfter := without(rawMembers(t, out), "params")
	if !slices.Equal(rootBefore, rootAfter) {
		t.Fatalf("AppendIntercept(%+v) of %q changed the envelope to %q", v, body, out)
	}
	restBefore, eventBefore := without(rawMembers(t, paramsBefore), "event")
	restAfter, eventAfter := without(rawMembers(t, paramsAfter), "event")
	if !m.Capabilities.DenyOnly {
		restBefore, _ = without(restBefore, "capabilities")
		restAfter, _ = without(restAfter, "capabilities")
	}
	if !slices.Equal(restBefore, restAfter) {
		t.Fatalf("AppendIntercept(%+v) of %q changed params to %q", v, body, out)
	}
	membersBefore, _ := without(rawMembers(t, eventBefore), cut...)
	if !slices.Equal(membersBefore, rawMembers(t, eventAfter)) {
		t.Fatalf("AppendIntercept(%+v) of %q has event %q; want members %q", v, body, eventAfter, membersBefore)
	}

	// Outside the event no byte changes, and inside none is added.
	if m.Capabilities.DenyOnly {
		start, end := int(m.Event.self.start), int(m.Event.self.end)
		if !strings.HasPrefix(out, body[:start+1]) || !strings.HasSuffix(out, body[end-1:]) {
			t.Fatalf("AppendIntercept(%+v) of %q = %q; want the same outside the event", v, body, out)
		}
		rest := eventBefore
		for i := range len(eventAfter) {
			at := strings.IndexByte(rest, eventAfter[i])
			if at < 0 {
				t.Fatalf("AppendIntercept(%+v) of %q has event %q; want only bytes taken away", v, body, eventAfter)
			}
			rest = rest[at+1:]
		}
	}

	// A notification shows the same event.
	observe := m.AppendObserve(nil, v)
	_, params := without(rawMembers(t, string(observe)), "params")
	if _, event := without(rawMembers(t, params), "event"); event != eventAfter {
		t.Fatalf("AppendObserve(%+v) of %q has event %q; want %q", v, body, event, eventAfter)
	}
}

var views = []View{{}, {Native: true}}

// TestCuts puts native first, in the middle and last among the other members
// of an event, or leaves it out, in random order and style.
func TestCuts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	native := mustTree(`{"provider":"p","eventName":"e","payload":{"native":[1,"}"],"items":"\"{"}}`)
	requests := messages(t, "*/requests/intercept*.json")
	for path, body := range messages(t, "draft/requests/observe*.json") {
		requests[path] = body
	}
	for _, path := range slices.Sorted(maps.Keys(requests)) {
		good, err := parseTree(requests[path])
		if err != nil {
			t.Fatalf("parseTree(%s) = %v; want nil", path, err)
		}
		bare := good.get("params.event")
		if slices.Contains(bare.names, "native") {
			bare.drop("native")
		}
		n := len(bare.names)
		for _, at := range []int{-1, 0, 1, n / 2, n - 1, n} {
			c := good.clone()
			c.shuffle(r)
			if event := c.get("params.event"); at >= 0 {
				event.names = slices.Insert(event.names, at, "native")
				event.members = slices.Insert(event.members, at, native)
			}
			for _, style := range []*rand.Rand{nil, r, r} {
				text := c.render(style)
				var m Message
				if err := Decode(text, &m); err != nil {
					t.Fatalf("Decode(%s) = %v; want nil", text, err)
				}
				if m.Method == MethodObserve {
					m.Capabilities.DenyOnly = true // it has none to rewrite
				}
				for _, v := range views {
					checkView(t, &m, v)
				}
			}
		}
	}
}

// cuttable scans any text that has an event, valid or not, into a message that
// can be cut, or returns nil.
func cuttable(text []byte, denyOnly, deny bool) *Message {
	var s scanner
	s.reset(text)
	if !s.scan(nodeRoot) || KindOf(s.fields[fieldEvent].of(text)) != KindObject {
		return nil
	}
	m := &Message{Body: text, Version: Draft}
	m.Event.Type = ToolBefore
	m.Event.self = s.fields[fieldEvent]
	m.Event.native = s.native
	m.Capabilities.self = s.fields[fieldCapabilities]
	m.Capabilities.DenyOnly = denyOnly || !m.Capabilities.self.present()
	if deny || m.Capabilities.DenyOnly {
		m.Capabilities.Effects = m.Capabilities.Effects.With(EffectDeny)
	}
	return m
}

var smallEvents = []string{
	`{"params":{"event":{}}}`,
	`{"params":{"event":{"native":1}}}`,
	`{"params":{"event":{"items":1}}}`,
	`{"params":{"event":{"native":1,"items":2}}}`,
	`{"params":{"event":{"items":2,"native":1}}}`,
	`{"params":{"event":{ "n\u0061tive" : {} , "it\u0065ms" : [ ] } , "capabilities":{} } }`,
	`{"params":{"capabilities":null,"event":{"a":1,"native":"}","b":2}}}`,
	`{"params":{"event":{"items":[],"a":{"native":1},"native":[]}}}`,
	`{"params":{"event":{"a":1,"items":[],"native":[]}}}`,
	`{"params":{"event":{"a":1,"native":[],"items":[],"b":1}}}`,
	"{\"params\":{\"event\":{\n\t\"native\": 1,\n\t\"a\": 2,\n\t\"items\": 3\n}}}",
}

func FuzzCuts(f *testing.F) {
	for _, text := range smallEvents {
		f.Add([]byte(text), true, true)
		f.Add([]byte(text), false, true)
		f.Add([]byte(text), false, false)
	}
	for _, text := range messages(f, "*/requests/*.json") {
		f.Add(text, false, true)
	}
	f.Fuzz(func(t *testing.T, text []byte, denyOnly, deny bool) {
		m := cuttable(text, denyOnly, deny)
		if m == nil {
			return
		}
		for _, v := range views {
			checkView(t, m, v)
		}
	})
}
