package decision

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
)

// scenario is one chain: a request, and what each backend answers.
type scenario struct {
	event, caps dict
	state       any // nil where the harness tells none
	asked       any
	turns       []turn
}

type turn struct {
	effects []any
	hide    bool // texts from this backend
	closed  bool // a failure denies
}

// source makes up scenarios. Its alphabets are small, so that what a chain does
// is often undone, repeated or in conflict.
type source struct{ *rand.Rand }

func (r source) one(n int) bool { return r.IntN(n) == 0 }

func pick[T any](r source, from ...T) T { return from[r.IntN(len(from))] }

var interceptable = func() (names []string) {
	for name := range vocabulary {
		names = append(names, name)
	}
	// The order of a map is not that of a seed.
	for i := range names {
		for j := range i {
			if names[i] < names[j] {
				names[i], names[j] = names[j], names[i]
			}
		}
	}
	return names
}()

func (r source) scenario() scenario {
	kind := interceptable[r.IntN(len(interceptable))]
	s := scenario{event: r.event(kind)}
	if kind == "user.elicitation.result" && !r.one(8) {
		s.asked = r.asked(s.event)
	}
	s.caps = r.capabilities(kind)
	if !r.one(6) {
		s.state = r.state(kind, s.caps)
	}
	for range 1 + r.IntN(5) {
		t := turn{hide: r.one(4), closed: r.one(4)}
		for n := r.IntN(4); n > 0; n-- {
			t.effects = append(t.effects, r.effect(s.event, s.caps))
		}
		s.turns = append(s.turns, t)
	}
	return s
}

func (r source) event(kind string) dict {
	e := dict{"id": "e", "source": "urn:x", "type": kind, "extensions": dict{"a.b": json.Number("1.50")}}
	switch kind {
	case "tool.before", "tool.permission.request":
		e["tool"] = dict{"name": "t", "input": r.input()}
	case "turn.start", "turn.finish.before", "model.request.before", "model.response.after", "tool.after":
		e["items"] = r.messages(true)
	case "context.compact.before":
		e["items"] = []any{}
		if !r.one(6) {
			e["instructions"] = r.texts(r.one(8))
		}
	case "context.compact.after":
		e["summary"] = r.texts(r.one(8))
	case "workspace.change.before":
		e["workspace"] = dict{"kind": "cwd", "change": r.workspace()}
	case "user.elicitation.request":
		text, mode := r.question()
		e["elicitation"] = dict{"server": "s", "mode": mode, "request": part0(text)}
		if r.one(10) {
			e["elicitation"].(dict)["request"] = dict{"id": "q", "kind": "text", "mediaType": "text/plain", "selection": "metadata"}
		}
	case "user.elicitation.result":
		e["parentEventId"] = pick(r, "q", "q", "q", "q", "other")
		result := r.elicitResult()
		e["elicitation"] = dict{"server": "s", "mode": "form", "action": result["action"], "result": part0(string(encoded(result)))}
	}
	return e
}

func part0(text string) dict {
	return dict{"id": "q", "kind": "text", "mediaType": "text/plain", "selection": "body", "text": text}
}

func (r source) question() (text, mode string) {
	if r.one(5) {
		return `{"mode":"url","elicitationId":"1","message":"?","url":"https://example.com/x"}`, "url"
	}
	fields := `"n":{"type":"integer","minimum":1},"ok":{"type":"boolean"},"who":{"type":"string","maxLength":3}`
	if r.one(3) {
		fields += `,"pick":{"type":"string","enum":["a","b"]}`
	}
	return `{"message":"?", "requestedSchema":{"type":"object","properties":{` + fields + `},"required":[` + pick(r, "", "", `"ok"`) + `]}}`, "form"
}

func (r source) asked(result dict) dict {
	text, mode := r.question()
	return dict{"id": "q", "source": "urn:x", "type": "user.elicitation.request", "elicitation": dict{"server": "s", "mode": mode, "request": part0(text)}}
}

func (r source) elicitResult() dict {
	d := dict{"action": pick(r, "accept", "accept", "accept", "accept", "decline")}
	if d["action"] == "accept" && !r.one(6) || r.one(20) {
		d["content"] = r.answers()
	}
	return d
}

func (r source) answers() dict {
	d := dict{}
	if r.one(2) {
		d["ok"] = pick[any](r, true, false)
	}
	if r.one(2) {
		d["n"] = json.Number(pick(r, "1", "2", "2", "0"))
	}
	if r.one(3) {
		d["who"] = pick(r, "a", "b\"", "long")
	}
	return d
}

func (r source) input() dict {
	d := dict{}
	for range r.IntN(3) {
		d[pick(r, "a", "b", "c")] = r.value(2)
	}
	return d
}

func (r source) value(depth int) any {
	if depth > 0 && r.one(4) {
		if r.one(2) {
			return []any{r.value(depth - 1)}
		}
		return dict{"k": r.value(depth - 1)}
	}
	return pick[any](r, json.Number("1"), json.Number("1.0"), json.Number("1e0"), json.Number("2"), true, false, nil, "x", "\u00e9\n", json.Number("12345678901234567890"))
}

// messages of an event hold each part once; those of an effect may not.
func (r source) messages(orderly bool) []any {
	list := []any{}
	for i := range r.IntN(3) {
		n := r.IntN(3)
		if orderly {
			n = i
		}
		role := []string{"user", "assistant", "tool"}[n]
		if !orderly && r.one(12) {
			role = "system"
		}
		m := dict{"id": "m" + string(rune('0'+n)), "role": role, "parts": r.parts(n, orderly)}
		list = append(list, m)
	}
	return list
}

func (r source) parts(owner int, orderly bool) []any {
	list := []any{}
	for i := range r.IntN(3) {
		if !orderly && r.one(20) {
			owner = 7
		}
		id := "p" + string(rune('0'+owner)) + string(rune('a'+i))
		switch r.IntN(6) {
		case 0:
			list = append(list, dict{"id": id, "kind": "attachment", "mediaType": "image/png", "selection": "body", "body": dict{"ref": "r"}})
		case 1:
			list = append(list, dict{"id": id, "kind": "text", "mediaType": "text/plain", "selection": "metadata"})
		default:
			list = append(list, dict{"id": id, "kind": "text", "mediaType": "text/plain", "selection": "body", "text": pick(r, "x", "y", "")})
		}
	}
	return list
}

func (r source) texts(hidden bool) []any {
	list := []any{}
	for range r.IntN(3) {
		p := dict{"id": pick(r, "t1", "t2"), "kind": "text", "mediaType": "text/plain", "selection": "body", "text": pick(r, "x", "y")}
		if hidden {
			p["selection"] = "omit"
			delete(p, "text")
		}
		list = append(list, p)
	}
	return list
}

func (r source) workspace() dict {
	d := dict{"cwd": pick(r, "/a", "/b")}
	if r.one(3) {
		d["workspaceRoots"] = []any{"/a", "/b"}[:r.IntN(3)]
	}
	if r.one(8) && d["workspaceRoots"] != nil {
		delete(d, "cwd")
	}
	return d
}

// capabilities are well-formed and within the event's bounds.
func (r source) capabilities(kind string) dict {
	names := []any{}
	caps := dict{}
	add := func(name string) {
		if !has(names, name) {
			names = append(names, name)
		}
	}
	flows := []any{}
	for _, word := range strings.Fields(vocabulary[kind]) {
		if r.one(6) {
			continue
		}
		name, of, _ := strings.Cut(word, ":")
		add(name)
		switch name {
		case "modify":
			ops := pick(r, dict{"replace": true, "merge": true}, dict{"replace": true, "merge": false}, dict{"replace": false, "merge": true})
			caps["modify"] = dict{of: ops}
		case "flow":
			flows = append(flows, of)
			flow := dict{"operations": append([]any{}, flows...)}
			if has(flows, "continue") {
				flow["remainingContinuations"] = json.Number(pick(r, "0", "1", "2", "2", "3"))
				flow["continuationCount"] = json.Number("0")
			} else if r.one(4) {
				flow["maxContinuations"] = json.Number(pick(r, "0", "3"))
				if r.one(3) {
					flow["continuationCount"] = json.Number("1")
				}
			}
			caps["flow"] = flow
		case "inject":
			caps["inject"] = dict{"context": dict{"append": true, "deliverAt": pick(r, []any{"now", "next_turn"}, []any{"now"}, []any{"next_turn"})}}
		}
	}
	caps["effects"] = names
	if !r.one(5) {
		caps["elicitation"] = pick(r, dict{"form": dict{}}, dict{"form": dict{}, "url": dict{}}, dict{"url": dict{}})
	}
	return caps
}

func (r source) state(kind string, caps dict) dict {
	s := dict{"permission": pick(r, "none", "none", "allow", "allow", "ask"), "candidate": nil}
	if r.one(25) {
		s["permission"] = "deny"
	}
	if r.one(3) {
		s["candidate"] = dict{"value": r.returned(kind), "provenance": dict{"by": "host"}}
	}
	if r.one(2) {
		s["flow"] = pick(r, "none", "none", "continue")
		if r.one(20) {
			s["flow"] = "stop"
		}
	}
	if r.one(3) {
		s["instructions"] = []any{"earlier"}[:r.IntN(2)]
	}
	if r.one(3) {
		s["injections"] = []any{dict{"type": "inject", "target": "context", "operation": "append", "deliverAt": "now", "value": []any{}}}[:r.IntN(2)]
	}
	return s
}

func (r source) returned(kind string) any {
	switch kind {
	case "model.request.before":
		return r.messages(false)
	case "context.compact.before":
		return r.texts(false)
	case "user.elicitation.request":
		return r.elicitResult()
	default:
		return r.value(2)
	}
}

// effect is mostly one that was advertised.
func (r source) effect(event, caps dict) any {
	kind := event["type"].(string)
	var e dict
	for range 4 {
		e = r.wellFormed(kind)
		if e["type"] == "deny" && !r.one(6) || e["type"] == "flow" && e["operation"] == "stop" && !r.one(4) {
			continue // or all chains are short
		}
		if has(caps["effects"], e["type"].(string)) {
			break
		}
	}
	if ops, ok := at(caps, "modify", str(e["target"])).(dict); ok && e["type"] == "modify" && !r.one(12) {
		e["operation"] = "replace"
		if ops["replace"] != true || ops["merge"] == true && r.one(2) {
			e["operation"] = "merge"
		}
	}
	if path := places[kind][str(e["target"])]; e["type"] == "modify" && path != nil && r.one(3) {
		if value := at(event, path...); value != nil && e["operation"] == "replace" {
			e["value"] = value
		}
	}
	if r.one(30) {
		e = put(e, e["type"], "type").(dict)
		r.spoil(e)
	}
	return e
}

func (r source) wellFormed(kind string) dict {
	words := strings.Fields(vocabulary[kind])
	name, of, _ := strings.Cut(words[r.IntN(len(words))], ":")
	switch name {
	case "deny":
		d := dict{"type": "deny", "reason": "r"}
		if r.one(2) {
			d["code"] = "com.example.c"
		}
		return d
	case "message":
		return dict{"type": "message", "text": pick(r, "hello", "")}
	case "return":
		return dict{"type": "return", "value": r.returned(kind)}
	case "inject":
		return dict{"type": "inject", "target": "context", "operation": "append", "deliverAt": pick(r, "now", "next_turn"), "value": r.messages(false)}
	case "flow":
		if of == "stop" {
			return dict{"type": "flow", "operation": "stop", "reason": "r"}
		}
		d := dict{"type": "flow", "operation": "continue"}
		if r.one(2) {
			d["instruction"] = pick(r, "go on", "again")
		}
		return d
	case "modify":
		d := dict{"type": "modify", "target": of, "operation": pick(r, "replace", "merge")}
		switch kind {
		case "tool.before", "tool.permission.request":
			d["value"] = r.input()
		case "context.compact.before", "context.compact.after":
			d["value"] = r.texts(r.one(12))
		case "workspace.change.before":
			d["value"] = r.workspace()
		case "user.elicitation.result":
			d["value"] = r.answers()
		default:
			d["value"] = r.messages(false)
		}
		return d
	default:
		return dict{"type": name}
	}
}

// spoil makes an effect one that nobody may accept, most of the time.
func (r source) spoil(e dict) {
	switch r.IntN(5) {
	case 0:
		e["type"] = pick(r, "nonsense", "allow", "ask", "return", "com.example.x")
	case 1:
		e["extra"] = true
	case 2:
		for _, name := range []string{"value", "reason", "text", "operation", "deliverAt"} {
			delete(e, name)
		}
	case 3:
		e["operation"] = pick(r, "append", "replace", "continue", "drop")
	case 4:
		e["value"] = pick[any](r, json.Number("3"), "text", nil, dict{"k": nil}, []any{dict{"id": "m"}})
	}
}

// written is the JSON of a value, now and then with white space and escapes
// that mean nothing.
func (r source) written(v any) []byte {
	text := encoded(v)
	if r.one(8) {
		var b bytes.Buffer
		if err := json.Indent(&b, text, " ", "\t"); err != nil {
			panic(err)
		}
		text = b.Bytes()
	}
	if r.one(8) {
		text = bytes.ReplaceAll(text, []byte(`"value"`), []byte(`"v\u0061lue"`))
		text = bytes.ReplaceAll(text, []byte(`"a"`), []byte(`"\u0061"`))
	}
	return text
}
