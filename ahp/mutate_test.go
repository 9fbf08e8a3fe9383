package ahp

import "math/rand/v2"

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
	var holders []*tree
	var collect func(*tree)
	collect = func(t *tree) {
		if t.kind != KindObject && t.kind != KindArray {
			return
		}
		holders = append(holders, t)
		for _, m := range t.members {
			collect(m)
		}
	}
	collect(t)
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
