package ahp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// sampler makes values that fit shapes, at random. It knows nothing of rules:
// it tries until the walker is content, object by object.
type sampler struct {
	*rand.Rand
	ids int
}

func (r *sampler) some(p float64) bool { return r.Float64() < p }

func (r *sampler) pick(from ...string) *tree { return mustTree(from[r.IntN(len(from))]) }

func str(s string) *tree { return &tree{kind: KindString, text: s} }

// fits reports whether a value has a shape, and why not.
func fits(s *shape, t *tree) (string, bool) {
	w := walker{b: []byte(" " + string(t.render(nil)))}
	if w.fits(s, 1) {
		return "", true
	}
	return w.misfit("value"), false
}

// value returns a value of shape s.
func (r *sampler) value(s *shape) *tree {
	switch s.kind {
	case shapeAny:
		return r.pick(`null`, `true`, `0`, `-1.5e3`, `"x"`, `""`, `[]`, `[1,[]]`, `{}`, `{"a":{"text":"t"}}`)
	case shapeNull:
		return mustTree("null")
	case shapeText:
		return r.pick(`""`, `"x"`, `"a text, of two clauses"`, `"\u0000é😀"`, `"/a/b"`)
	case shapeFilled:
		r.ids++
		return r.pick(`"x"`, `" "`, `"😀"`, strconv.Quote("id-"+strconv.Itoa(r.ids)))
	case shapeEnum, shapeScheme, shapeDotted:
		if len(s.values) == 0 || s.open && r.some(.3) {
			return r.pick(`"com.example.a"`, `"a.b-c.d_1"`)
		}
		if s.kind == shapeScheme && r.some(.25) {
			return r.pick(`"_x"`, `"_\r"`, `"_a\n"`)
		}
		return str(s.values[r.IntN(len(s.values))])
	case shapeURI:
		return r.pick(`"urn:x"`, `"https://harness.example/a?b#c"`, `"a+b:c"`)
	case shapeHTTPURL:
		return r.pick(`"https://mcp.example"`, `"http://[::1]:80/a"`, `"http://x"`)
	case shapeDateTime:
		return r.pick(`"2026-03-01T10:00:00Z"`, `"2026-03-01t10:00:00.5+02:00"`)
	case shapeCurrency:
		return r.pick(`"EUR"`, `"XXX"`)
	case shapeSHA256:
		return str(strings.Repeat(fmt.Sprintf("%02x", r.IntN(256)), 32))
	case shapeMedia:
		if r.some(.5) {
			return str("text/plain")
		}
		return r.pick(`"image/png"`, `"audio/ogg"`, `"a"`, `"application/jsonish"`, `"a/+json"`, `"/json"`, `"a/b/json"`, `"a/b;json"`)
	case shapeBool:
		return r.pick(`true`, `false`)
	case shapeTrue:
		return mustTree("true")
	case shapeWhole:
		if s.atLeast > 0 {
			return r.pick(`1`, `20e-1`, `7`)
		}
		return r.pick(`0`, `-0`, `3`, `1.0`, `12e1`, `1234567890123456789012`, `-0.0e5`, `0e999`)
	case shapeAnyWhole:
		return r.pick(`0`, `-7`, `4.0`)
	case shapeNumber:
		return r.pick(`0`, `0.25`, `1e-7`, `-0`)
	case shapeAnyNumber:
		return r.pick(`-1`, `0.5`, `3`)
	case shapeChoice:
		return r.value(s.choices[r.IntN(len(s.choices))])
	case shapeList:
		t := &tree{kind: KindArray}
		for range s.atLeast + r.IntN(3) {
			e := r.value(s.elem)
			if s.unique && slices.ContainsFunc(t.members, func(o *tree) bool { return o.text == e.text }) {
				continue
			}
			t.members = append(t.members, e)
		}
		return t
	case shapeObject:
		for try := 0; ; try++ {
			t := r.object(s)
			if why, ok := fits(s, t); ok {
				return t
			} else if try > 100_000 {
				panic(fmt.Sprintf("no value of %s: %s: %s", s.name, why, t.render(nil)))
			}
		}
	}
	panic("no value of a shape of kind " + strconv.Itoa(int(s.kind)))
}

// object returns an object that has the members of s, but may break its rules.
func (r *sampler) object(s *shape) *tree {
	t := &tree{kind: KindObject}
	rare := r.some(.5) // otherwise few of the members that need not be there
	for i := range s.members {
		m := &s.members[i]
		if m.shape.kind == shapeNever || !m.required && !r.some(map[bool]float64{true: .5, false: .15}[rare]) {
			continue
		}
		of := m.shape
		for _, rule := range s.rules {
			if rule.asOf == m.name && t.get(rule.when[0].member).text == s.members[s.index(rule.when[0].member)].shape.values[lowest(rule.when[0].bits)] && r.some(.9) {
				of = rule.as
			}
		}
		t.add(m.name, r.value(of))
	}
	switch {
	case s.dotted:
		for range r.IntN(3) {
			t.add(fmt.Sprintf("com.example.x%d", len(t.names)), r.value(anything))
		}
	case s.others != nil:
		for range r.IntN(3) {
			t.add(fmt.Sprintf("other%d", len(t.names)), r.value(s.others))
		}
	case !s.closed && r.some(.2):
		t.add("org.example.more", r.value(anything))
	}
	if r.some(.3) {
		r.Shuffle(len(t.members), func(i, j int) {
			t.names[i], t.names[j] = t.names[j], t.names[i]
			t.members[i], t.members[j] = t.members[j], t.members[i]
		})
	}
	return t
}

func lowest(bits uint64) int {
	i := 0
	for bits>>i&1 == 0 {
		i++
	}
	return i
}

// observation returns a hooks/observe of an event.
func (r *sampler) observation(e EventType) *tree {
	t := mustTree(`{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft"}}`)
	t.get("params").add("event", r.value(eventShapes[e]))
	return t
}

// interception returns a hooks/intercept of an event.
func (r *sampler) interception(e EventType) *tree {
	t := r.observation(e)
	t.set("method", `"hooks/intercept"`)
	t.add("id", t.get("params.event.id").clone())
	p := t.get("params")
	p.add("capabilities", r.value(capabilityShapes[e]))
	if r.some(.6) {
		p.add("state", r.value(stateShapes[e]))
	}
	if r.some(.2) {
		p.add("extensions", r.value(extensions))
	}
	return t
}

// answer returns a result for an interception of an event.
func (r *sampler) answer(e EventType) *tree {
	t := mustTree(`{"jsonrpc":"2.0","id":"e-1","result":{"protocolVersion":"draft"}}`)
	result := t.get("result")
	if r.some(.9) {
		effects := &tree{kind: KindArray}
		names := effectNamesOf(e.Bounds().Effects)
		for range r.IntN(4) {
			of, _ := LookupEffect(Draft, []byte(names[r.IntN(len(names))]))
			effects.members = append(effects.members, r.value(effectShapes[e][of]))
		}
		result.add("effects", effects)
	}
	if r.some(.2) {
		result.add("extensions", r.value(extensions))
	}
	return t
}

// question returns a request that is about no event.
func (r *sampler) question(method Method) *tree {
	t := mustTree(`{"jsonrpc":"2.0","method":"` + method.String() + `","params":{"protocolVersion":"draft"}}`)
	t.add("id", r.pick(`7`, `-1`, `"x"`, `99999999999999999999`))
	return t
}
