package ahp

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// What a mutation puts into a message: values and names that mean something to
// the decoder somewhere, or nearly do.
var (
	mutantValues = []string{
		`null`, `true`, `false`, `0`, `-1`, `1.5`, `1e2`, `-32001`, `-32001.0`, `99999999999999999999`,
		`""`, `"x"`, `"2.0"`, `"0.1"`, `"draft"`, `"evt-1"`, `"evt-2"`, `"hooks/intercept"`, `"hooks/observe"`, `"hooks/capabilities"`,
		`"tool.before"`, `"tool.after"`, `"tool.error"`, `"session.start"`, `"session.end"`, `"turn.start"`,
		`"shell"`, `"mcp"`, `"other"`, `"Shell"`, `"deny"`, `"allow"`, `"com.example.hold"`, `"com"`, `"9.a"`, `"completed"`, `"unknown"`, `"done"`,
		`"urn:x"`, `"http://[::1]:80/a?b#c"`, `"http://[12]/"`, `"/relative"`, `"a b:c"`, `"urn:%4"`,
		`"2026-03-01T10:00:00Z"`, `"2016-12-31T23:59:60Z"`, `"2026-02-29T10:00:00Z"`, `"2026-03-01 10:00:00Z"`, `"2026-03-01T10:00:00"`,
		`[]`, `[1]`, `["deny"]`, `["deny","deny"]`, `["com.example.a","deny"]`, `["deny","ask"]`, `["/a","/b"]`, `["/a",null]`,
		`{}`, `{"id":"x"}`, `{"id":""}`, `{"message":"m"}`, `{"message":null}`, `{"com.example.a":1}`, `{"a":1}`, `{"code":1,"message":"m"}`,
		`{"provider":"p","eventName":"e","payload":1}`, `{"type":"deny","reason":"r"}`, `{"protocolVersion":"0.1","effects":[]}`,
	}
	mutantNames = []string{
		"", "x", "jsonrpc", "id", "method", "params", "result", "error", "protocolVersion", "event", "capabilities", "effects", "state",
		"source", "type", "time", "session", "tool", "native", "items", "extensions", "outcome", "call", "harness", "path",
		"cwd", "workspaceRoots", "model", "agent", "callId", "name", "kind", "input", "output", "mcp", "origin", "message", "code", "data",
		"provider", "eventName", "payload", "com.example.a", "a.b", "a..b",
	}
)

// mutate makes one random change somewhere in an object or array of t.
func mutate(r *rand.Rand, t *tree) {
	holders := holdersOf(t)
	if len(holders) == 0 {
		*t = *mustTree(mutantValues[r.IntN(len(mutantValues))])
		return
	}
	h := holders[r.IntN(len(holders))]
	value := mustTree(mutantValues[r.IntN(len(mutantValues))])
	name := mutantNames[r.IntN(len(mutantNames))]
	insert := func(name string, value *tree) {
		h.members = append(h.members, value)
		if h.kind == KindObject {
			h.names = append(h.names, name)
		}
	}
	if len(h.members) == 0 {
		insert(name, value)
		return
	}
	i := r.IntN(len(h.members))
	switch r.IntN(16) {
	case 0, 1, 2, 3: // another value, often of another kind
		h.members[i] = value
	case 4, 5, 6:
		h.remove(i)
	case 7, 8, 9: // a member that is unknown here, or stands in the wrong place
		insert(name, value)
	case 10: // the same name twice, or an element
		twice := name
		if h.kind == KindObject {
			twice = h.names[i]
		}
		insert(twice, h.members[i].clone())
	case 11: // another name
		if h.kind == KindObject {
			h.names[i] = name
		}
	case 12: // the same in a wrapper
		h.members[i] = &tree{kind: KindArray, members: []*tree{h.members[i]}}
	case 13: // a string's text in another case or longer
		if m := h.members[i]; m.kind == KindString {
			m.text += mutantNames[r.IntN(len(mutantNames))]
		}
	case 14: // another part of the message in its place
		h.members[i] = holders[r.IntN(len(holders))].clone()
	case 15: // very deep
		h.members[i] = mustTree(nest(MaxDepth-r.IntN(8), "[", "", "]"))
	}
}

// holdersOf returns the objects and arrays of t.
func holdersOf(t *tree) []*tree {
	if t.kind != KindObject && t.kind != KindArray {
		return nil
	}
	holders := []*tree{t}
	for _, m := range t.members {
		holders = append(holders, holdersOf(m)...)
	}
	return holders
}

// allMembers are the members that any shape has anywhere, in a fixed order, and
// allShapes the shapes.
var allMembers, allShapes = func() (func() []member, func() []*shape) {
	collected := sync.OnceValues(func() (members []member, shapes []*shape) {
		var collect func(s *shape)
		collect = func(s *shape) {
			if s == nil || slices.Contains(shapes, s) {
				return
			}
			shapes = append(shapes, s)
			for _, m := range s.members {
				members = append(members, m)
				collect(m.shape)
			}
			for _, c := range s.choices {
				collect(c)
			}
			collect(s.elem)
			collect(s.others)
		}
		for e := range EventTypeCount {
			collect(eventShapes[e])
			collect(capabilityShapes[e])
			collect(stateShapes[e])
			for _, s := range effectShapes[e] {
				collect(s)
			}
		}
		return members, shapes
	})
	return func() []member { m, _ := collected(); return m }, func() []*shape { _, s := collected(); return s }
}()

// nearly are values that a shape of a kind nearly or just about accepts.
var nearly = map[shapeKind][]string{
	shapeDotted:   {`"com"`, `"com."`, `".com.a"`, `"com.9"`, `"com.a\n"`, `"com..a"`},
	shapeURI:      {`"x"`, `"urn:"`, `"urn:a b"`},
	shapeHTTPURL:  {`"ftp://x"`, `"HTTP://x"`, `"http:x"`, `"https://"`, `"http://x y"`, `"//x"`},
	shapeCurrency: {`"EUr"`, `"EURO"`, `"EU"`, `"EUR\n"`, `"ÄÖÜ"`},
	shapeSHA256:   {`"00"`, `"0000000000000000000000000000000000000000000000000000000000000000"`, `"000000000000000000000000000000000000000000000000000000000000000G"`, `"AA00000000000000000000000000000000000000000000000000000000000000"`},
	shapeMedia: {`"text/html"`, `"TEXT/plain"`, `"text/plain"`, `"application/JSON"`, `"application/x+json"`, `"application/x+json;a=b"`, `"a/+json"`, `"/json"`, `"a;b/json"`,
		`"a/b;c+json"`, `"a/b/json"`, `"a/b/x+json"`, `"a/json "`, `"a/json\n"`, `"a/xjson"`, `"text"`, `"image/png; charset=json"`, `"a/++json"`, `"a/+x+json"`},
	shapeScheme:    {`"_"`, `"_\n"`, `"_x"`, `"https"`, `"SSE"`, `"http "`, `""`},
	shapeWhole:     {`-1`, `1.5`, `10e-1`, `15e-1`, `100e-3`, `0.0`, `-0.0`, `1e300`, `-1e-300`, `1e-300`, `0e-9`, `"1"`, `1.50e1`, `1.05e1`},
	shapeAnyWhole:  {`1.5`, `10e-1`, `15e-1`, `-3e2`, `"1"`},
	shapeNumber:    {`-1`, `-0.0`, `-1e-300`, `1e300`, `"1"`},
	shapeAnyNumber: {`"1"`, `null`},
	shapeFilled:    {`""`, `1`, `null`},
	shapeTrue:      {`false`, `1`, `"true"`},
}

// mutateDraft makes one random change somewhere in t: like mutate, and with
// members and values that draft has in other places.
func (r *sampler) mutateDraft(t *tree) {
	holders := holdersOf(t)
	if len(holders) == 0 || r.some(.25) {
		mutate(r.Rand, t)
		return
	}
	// Small objects are as likely to be changed as large ones: most rules are
	// theirs.
	h := holders[r.IntN(len(holders))]
	m := allMembers()[r.IntN(len(allMembers()))]
	value := func(s *shape) *tree {
		if s.kind == shapeNever {
			s = anything
		}
		if near := nearly[s.kind]; near != nil && r.some(.3) {
			return r.pick(near...)
		}
		return r.value(s)
	}
	if len(h.members) == 0 {
		if h.kind == KindObject {
			h.add(m.name, value(m.shape))
		} else {
			h.members = append(h.members, value(m.shape))
		}
		return
	}
	i := r.IntN(len(h.members))
	switch r.IntN(10) {
	case 0, 1: // a known member, in the right place by chance
		if h.kind == KindObject && !slices.Contains(h.names, m.name) {
			h.add(m.name, value(m.shape))
			return
		}
		h.remove(i)
	case 2, 3: // a sibling that the object lacks
		if h.kind == KindObject {
			var of []*shape
			for _, s := range allShapes() {
				if len(s.members) > 0 && len(s.members) <= 24 && !slices.ContainsFunc(h.names, func(n string) bool { return s.find([]byte(n)) < 0 }) {
					of = append(of, s)
				}
			}
			if len(of) > 0 {
				s := of[r.IntN(len(of))]
				m := s.members[r.IntN(len(s.members))]
				if !slices.Contains(h.names, m.name) {
					h.add(m.name, value(m.shape))
					return
				}
			}
		}
		h.remove(i)
	case 4:
		h.remove(i)
	case 5, 6: // the value of a member with the same name elsewhere
		if h.kind == KindObject {
			var same []member
			for _, m := range allMembers() {
				if m.name == h.names[i] {
					same = append(same, m)
				}
			}
			if len(same) > 0 {
				h.members[i] = value(same[r.IntN(len(same))].shape)
				return
			}
		}
		h.members[i] = value(m.shape)
	case 7: // any value
		h.members[i] = value(m.shape)
	case 8: // an element once more
		if h.kind == KindArray {
			h.members = append(h.members, h.members[i].clone())
			return
		}
		h.members[i] = r.value(filled)
	case 9: // an empty value
		h.members[i] = r.pick(`""`, `[]`, `{}`, `0`, `-1`, `null`, `false`)
	}
}
