package decision

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A second harness, written after the pinned snapshot's and as slow as that:
// everything is decoded, copied and compared as values. It shares nothing with
// the code under test.

type dict = map[string]any

// harness is a draft harness that settles one event.
type harness struct {
	event      dict
	asked      dict // the question that an elicitation's result answers, or nil
	caps       dict
	permission string
	denied     bool
	candidate  any // nil or a dict
	flow       string
	told       bool // of a flow
	spoken     bool // of instructions
	spent      bool // an answer was accepted
	left       int
	budgeted   bool
	steps      []any // instructions
	injections []any
	messages   []any
	raw        any // the state as it was given

	roles, owners map[string]string
}

func decoded(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err.Error() + ": " + string(text))
	}
	return v
}

// encoded is the JSON of a value with the members of objects in order.
func encoded(v any) []byte { return appendValue(nil, v) }

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case json.Number:
		return append(dst, v...)
	case string:
		if !strings.ContainsAny(v, "\\\"<>&\n") {
			return append(append(append(dst, '"'), v...), '"')
		}
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return append(dst, text...)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, e)
		}
		return append(dst, ']')
	case dict:
		if v == nil {
			return append(dst, "null"...)
		}
		names := make([]string, 0, 8)
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		dst = append(dst, '{')
		for i, name := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, '"'), name...), `":`...) // no name needs an escape
			dst = appendValue(dst, v[name])
		}
		return append(dst, '}')
	default:
		panic("no JSON value")
	}
}

func newHarness(event, caps, state, asked any) *harness {
	h := &harness{event: event.(dict), caps: caps.(dict), permission: "none", raw: state, roles: map[string]string{}, owners: map[string]string{}}
	h.asked, _ = asked.(dict)
	if flow, ok := h.caps["flow"].(dict); ok {
		number := func(name string) (n int) {
			if v, ok := flow[name]; ok {
				h.budgeted = true
				i, _ := v.(json.Number).Int64()
				n = int(i)
			}
			return n
		}
		h.left = max(0, number("maxContinuations")-number("continuationCount"))
		if _, ok := flow["remainingContinuations"]; ok {
			h.left = number("remainingContinuations")
		}
	}
	if s, ok := state.(dict); ok {
		h.permission = s["permission"].(string)
		h.denied = h.permission == "deny"
		h.candidate = s["candidate"]
		if f, ok := s["flow"].(string); ok {
			h.flow, h.told = f, true
		}
		if list, ok := s["instructions"].([]any); ok {
			h.steps, h.spoken = list, true
		}
		h.injections, _ = s["injections"].([]any)
	}
	if !h.trace(h.event) {
		panic("the event is none that a harness sends")
	}
	return h
}

func (h *harness) halted() bool { return h.denied || h.flow == "stop" }

// state is what the next backend is told.
func (h *harness) state() any {
	if !h.spent {
		return h.raw
	}
	s := dict{"permission": h.permission, "candidate": h.candidate}
	switch {
	case h.flow != "" && h.flow != "none":
		s["flow"] = h.flow
	case h.told:
		s["flow"] = "none"
	}
	if len(h.steps) > 0 || h.spoken || s["flow"] != nil && s["flow"] != "none" && h.budgeted {
		s["instructions"] = append([]any{}, h.steps...)
		h.spoken = true
	}
	if len(h.injections) > 0 {
		s["injections"] = h.injections
	}
	return s
}

// capabilities are what the next backend is told.
func (h *harness) capabilities() any {
	if !h.spent || !h.budgeted {
		return h.caps
	}
	caps, flow := dict{}, dict{}
	for k, v := range h.caps {
		caps[k] = v
	}
	for k, v := range h.caps["flow"].(dict) {
		flow[k] = v
	}
	flow["remainingContinuations"] = json.Number(big.NewInt(int64(h.left)).String())
	caps["flow"] = flow
	return caps
}

var errRefused = errors.New("refused")

// places are where the modify targets are.
var places = map[string]map[string][]string{
	"turn.start":              {"prompt": {"items"}},
	"tool.after":              {"output": {"items"}},
	"model.request.before":    {"request": {"items"}},
	"model.response.after":    {"response": {"items"}},
	"turn.finish.before":      {"response": {"items"}},
	"context.compact.before":  {"instructions": {"instructions"}},
	"context.compact.after":   {"summary": {"summary"}},
	"workspace.change.before": {"workspace": {"workspace", "change"}},
	"tool.before":             {"input": {"tool", "input"}},
	"tool.permission.request": {"input": {"tool", "input"}},
}

// vocabulary are the effects of each event.
var vocabulary = map[string]string{
	"session.start": "inject message", "config.change.before": "deny message",
	"turn.start":         "deny modify:prompt inject flow:stop message",
	"turn.finish.before": "modify:response flow:stop flow:continue message", "model.request.before": "deny modify:request inject return flow:stop message",
	"model.response.after": "modify:response flow:stop message", "model.switch.before": "deny flow:stop message",
	"tool.before": "deny allow ask modify:input inject flow:stop return message", "tool.after": "modify:output inject flow:stop flow:continue message",
	"tool.permission.request": "allow deny modify:input flow:stop message", "tool.batch.after": "flow:stop inject message",
	"context.compact.before": "deny modify:instructions return inject message", "context.compact.after": "inject modify:summary message",
	"task.change.before": "deny message", "user.elicitation.request": "deny return message",
	"user.elicitation.result": "modify:content message", "user.message.inbound": "deny modify:prompt message",
	"user.message.outbound": "deny modify:content message", "workspace.change.before": "deny modify:workspace message",
}

func (h *harness) kind() string { return h.event["type"].(string) }

func at(v any, path ...string) any {
	for _, name := range path {
		d, _ := v.(dict)
		v = d[name]
	}
	return v
}

// put returns v with the value at path replaced; v itself stays as it is.
func put(v any, value any, path ...string) any {
	if len(path) == 0 {
		return value
	}
	d := dict{}
	for k, old := range v.(dict) {
		d[k] = old
	}
	d[path[0]] = put(d[path[0]], value, path[1:]...)
	return d
}

func has(list any, want string) bool {
	l, _ := list.([]any)
	for _, v := range l {
		if v == want {
			return true
		}
	}
	return false
}

// accept settles one whole answer to a request that showed view, or refuses it
// and changes nothing.
func (h *harness) accept(view dict, effects []any) error {
	if !h.trace(view) {
		return errRefused
	}
	for _, raw := range effects {
		if !h.admits(view, raw) {
			return errRefused
		}
	}
	after, changed, ok := h.modified(view, effects)
	if !ok {
		return errRefused
	}
	host := h.event
	path, target := places[h.kind()], ""
	for name := range path {
		target = name
	}
	written := false
	for _, raw := range effects {
		if e := raw.(dict); e["type"] == "modify" && target != "" {
			host = put(host, joined(at(host, path[target]...), e), path[target]...).(dict)
			written = true
		}
	}
	if !written && changed { // an elicitation's result
		host = after
	}
	if !sameValue(view, after) || changed || !sameValue(h.event, host) {
		h.candidate = nil
		if h.permission == "allow" {
			h.permission = "none"
		}
	}
	h.event, h.spent = host, true
	continues := false
	for _, raw := range effects {
		switch e := raw.(dict); e["type"] {
		case "deny":
			h.denied = true
		case "ask":
			h.permission = "ask"
		case "allow":
			if h.permission != "ask" {
				h.permission = "allow"
			}
		case "return":
			h.candidate = dict{"value": e["value"]}
		case "message":
			h.messages = append(h.messages, e["text"])
		case "inject":
			h.injections = append(h.injections[:len(h.injections):len(h.injections)], e)
		case "flow":
			if e["operation"] == "continue" {
				continues = true
				if i, ok := e["instruction"]; ok {
					h.steps = append(h.steps[:len(h.steps):len(h.steps)], i)
				}
			}
			if h.flow != "stop" {
				h.flow = e["operation"].(string)
			}
		}
	}
	if continues && h.flow == "continue" {
		h.left--
	}
	return nil
}

// joined is what a target holds after a modification.
func joined(before any, e dict) any {
	if e["operation"] == "replace" {
		return e["value"]
	}
	if list, ok := before.([]any); ok {
		return append(list[:len(list):len(list)], e["value"].([]any)...)
	}
	d := dict{}
	for k, v := range before.(dict) {
		d[k] = v
	}
	for k, v := range e["value"].(dict) {
		d[k] = v
	}
	return d
}

// modified makes all modifications to what was shown.
func (h *harness) modified(view dict, effects []any) (after dict, changed, ok bool) {
	after = view
	kind := h.kind()
	settled := 0
	for _, raw := range effects {
		e := raw.(dict)
		t := e["type"]
		if kind == "user.elicitation.request" && (t == "deny" || t == "return") {
			settled++
			question, form, ok := h.question(view)
			if settled > 1 || !ok {
				return nil, false, false
			}
			if t == "return" && !answers(question, form, e["value"].(dict)) {
				return nil, false, false
			}
		}
		if t == "return" || t == "modify" {
			if target := map[string]string{"context.compact.before": "instructions", "context.compact.after": "summary"}[kind]; target != "" {
				shown, ok := view[target].([]any)
				if !ok || !allText(shown) || !allText(e["value"].([]any)) {
					return nil, false, false
				}
			}
		}
		if t != "modify" {
			continue
		}
		if kind == "user.elicitation.result" {
			if after, ok = h.edited(after, e); !ok {
				return nil, false, false
			}
			changed = true
			continue
		}
		path := places[kind][e["target"].(string)]
		if path == nil {
			return nil, false, false
		}
		after = put(after, joined(at(after, path...), e), path...).(dict)
	}
	return after, changed, true
}

func allText(parts []any) bool {
	for _, p := range parts {
		if at(p, "kind") != "text" || at(p, "text") == nil {
			return false
		}
	}
	return true
}

// question reads what an elicitation asks for, if hooks may settle it.
func (h *harness) question(event dict) (mode string, form any, ok bool) {
	text, _ := at(event, "elicitation", "request", "text").(string)
	if text == "" || !json.Valid([]byte(text)) {
		return "", nil, false
	}
	payload, _ := decoded([]byte(text)).(dict)
	mode = "form"
	if m, ok := payload["mode"].(string); ok {
		mode = m
	}
	_, granted := at(h.caps, "elicitation", mode).(dict)
	return mode, payload["requestedSchema"], granted && at(event, "elicitation", "mode") == mode
}

func answers(mode string, form any, result dict) bool {
	content, there := result["content"].(dict)
	if mode == "url" || result["action"] != "accept" {
		return !there
	}
	required, _ := at(form, "required").([]any)
	for _, name := range required {
		if content[name.(string)] == nil {
			return false
		}
	}
	for name, field := range at(form, "properties").(dict) {
		value, there := content[name]
		if !there {
			continue
		}
		switch at(field, "type") {
		case "string":
			text, ok := value.(string)
			if !ok || at(field, "enum") != nil && !has(at(field, "enum"), text) {
				return false
			}
			if most, ok := at(field, "maxLength").(json.Number); ok {
				if n, _ := most.Int64(); int64(len([]rune(text))) > n {
					return false
				}
			}
		case "boolean":
			if _, ok := value.(bool); !ok {
				return false
			}
		case "integer":
			n, ok := value.(json.Number)
			if !ok || !rat(n).IsInt() {
				return false
			}
			if least, ok := at(field, "minimum").(json.Number); ok && rat(n).Cmp(rat(least)) < 0 {
				return false
			}
		}
	}
	return true
}

// edited makes an edit to an elicitation's result.
func (h *harness) edited(event dict, e dict) (dict, bool) {
	if h.asked == nil || at(event, "parentEventId") != h.asked["id"] || at(event, "source") != h.asked["source"] {
		return nil, false
	}
	mode, form, ok := h.question(h.asked)
	text, _ := at(event, "elicitation", "result", "text").(string)
	if !ok || text == "" {
		return nil, false
	}
	result := decoded([]byte(text)).(dict)
	if !answers(mode, form, result) || result["action"] != at(event, "elicitation", "action") {
		return nil, false
	}
	content := e["value"]
	if e["operation"] == "merge" {
		if result["content"] == nil {
			return nil, false
		}
		content = joined(result["content"], e)
	}
	result = put(result, content, "content").(dict)
	if !answers(mode, form, result) {
		return nil, false
	}
	return put(event, string(encoded(result)), "elicitation", "result", "text").(dict), true
}

// admits reports whether one effect is one of the snapshot's, and advertised.
func (h *harness) admits(view dict, raw any) bool {
	e, _ := raw.(dict)
	kind, _ := e["type"].(string)
	target, _ := e["target"].(string)
	operation, _ := e["operation"].(string)
	word := kind
	switch kind {
	case "modify":
		word += ":" + target
	case "flow":
		word += ":" + operation
	}
	if !has(h.caps["effects"], kind) || !contains(vocabulary[h.kind()], word) {
		return false
	}
	names := map[string]string{
		"deny": "type reason code? extensions?", "allow": "type", "ask": "type", "message": "type text",
		"modify": "type target operation value", "return": "type value", "inject": "type target operation deliverAt value",
		"flow": "type operation reason",
	}[kind]
	if word == "flow:continue" {
		names = "type operation instruction?"
	}
	for _, name := range strings.Fields(names) {
		if _, ok := e[strings.TrimSuffix(name, "?")]; !ok && !strings.HasSuffix(name, "?") {
			return false
		}
	}
	for name := range e {
		if !contains(strings.ReplaceAll(names, "?", ""), name) {
			return false
		}
	}
	filled := func(name string) bool {
		v, there := e[name]
		text, _ := v.(string)
		return !there || text != ""
	}
	switch kind {
	case "deny":
		code, coded := e["code"].(string)
		return filled("reason") && (e["code"] == nil || coded && isDotted.MatchString(code))
	case "message":
		_, ok := e["text"].(string)
		return ok
	case "flow":
		return filled("reason") && filled("instruction") && has(at(h.caps, "flow", "operations"), operation) && (operation != "continue" || h.left > 0)
	case "inject":
		when, _ := e["deliverAt"].(string)
		return target == "context" && operation == "append" && has(at(h.caps, "inject", "context", "deliverAt"), when) && areMessages(e["value"])
	case "return":
		switch h.kind() {
		case "model.request.before":
			return areMessages(e["value"])
		case "context.compact.before":
			return areParts(e["value"], "text")
		case "user.elicitation.request":
			v, _ := e["value"].(dict)
			content, there := v["content"]
			return contains("accept decline cancel", str(v["action"])) && (!there || areAnswers(content))
		}
	case "modify":
		if at(h.caps, "modify", target, operation) != true {
			return false
		}
		switch target {
		case "input":
			_, ok := e["value"].(dict)
			return ok
		case "instructions", "summary":
			return areParts(e["value"], "text")
		case "workspace":
			v, _ := e["value"].(dict)
			for name, value := range v {
				if name == "cwd" && str(value) == "" || name != "cwd" && name != "workspaceRoots" {
					return false
				}
				if name == "workspaceRoots" {
					if _, ok := value.([]any); !ok {
						return false
					}
				}
			}
			return len(v) > 0
		}
		if h.kind() == "user.elicitation.result" {
			return areAnswers(e["value"])
		}
		return areMessages(e["value"])
	}
	return true
}

var isDotted = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9_-]*\.)+[A-Za-z][A-Za-z0-9_-]*$`)

func str(v any) string { s, _ := v.(string); return s }

// contains reports whether word is among words with spaces between.
func contains(words, word string) bool {
	for words != "" {
		var w string
		if w, words, _ = strings.Cut(words, " "); w == word {
			return true
		}
	}
	return false
}

func areAnswers(v any) bool {
	d, ok := v.(dict)
	for _, value := range d {
		switch value := value.(type) {
		case string, bool, json.Number:
		case []any:
			for _, e := range value {
				if _, ok := e.(string); !ok {
					return false
				}
			}
		default:
			return false
		}
	}
	return ok
}

func areMessages(v any) bool {
	list, ok := v.([]any)
	for _, m := range list {
		d, _ := m.(dict)
		if str(d["id"]) == "" || !contains("system developer user assistant tool", str(d["role"])) || !areParts(d["parts"], "text attachment") {
			return false
		}
		for name := range d {
			if !contains("id role parts synthesized", name) {
				return false
			}
		}
	}
	return ok
}

func areParts(v any, kinds string) bool {
	list, ok := v.([]any)
	for _, p := range list {
		d, _ := p.(dict)
		for name := range d {
			if !contains("id kind mediaType selection text body category", name) {
				return false
			}
		}
		_, text := d["text"].(string)
		_, body := d["body"].(dict)
		if str(d["id"]) == "" || !contains(kinds, str(d["kind"])) {
			return false
		}
		if isText := d["kind"] == "text"; isText != (d["mediaType"] == "text/plain") || isText && body || !isText && text || d["text"] != nil && !text {
			return false
		}
		switch d["selection"] {
		case "body":
			if text == body {
				return false
			}
		case "metadata", "omit":
			if text || body {
				return false
			}
		default:
			return false
		}
	}
	return ok
}

// trace follows whose the messages and parts of an event are.
func (h *harness) trace(event dict) bool {
	switch h.kind() {
	case "turn.start", "turn.finish.before", "model.request.before", "model.response.after", "tool.after":
	default:
		return true
	}
	roles, owners := map[string]string{}, map[string]string{}
	for k, v := range h.roles {
		roles[k] = v
	}
	for k, v := range h.owners {
		owners[k] = v
	}
	for _, m := range event["items"].([]any) {
		id, role := str(at(m, "id")), str(at(m, "role"))
		if r, ok := roles[id]; ok && r != role {
			return false
		}
		roles[id] = role
		for _, p := range at(m, "parts").([]any) {
			child := str(at(p, "id"))
			if o, ok := owners[child]; ok && o != id {
				return false
			}
			if r, ok := roles[child]; ok && r != role {
				return false
			}
			owners[child], roles[child] = id, role
		}
	}
	for child := range owners {
		seen := map[string]bool{child: true}
		for o, ok := owners[child]; ok; o, ok = owners[o] {
			if seen[o] {
				return false
			}
			seen[o] = true
		}
	}
	h.roles, h.owners = roles, owners
	return true
}

func rat(n json.Number) *big.Rat {
	if strings.ContainsAny(string(n), ".eE") {
		f, err := n.Float64()
		if err != nil {
			return new(big.Rat)
		}
		return new(big.Rat).SetFloat64(f)
	}
	r, _ := new(big.Rat).SetString(string(n))
	return r
}

// sameValue is the snapshot's JSON equality.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || rat(a).Cmp(rat(b)) == 0)
	case dict:
		b, ok := b.(dict)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			other, there := b[k]
			if !there || !sameValue(v, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}
