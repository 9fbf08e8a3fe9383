package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/gateway"
)

// toolEvent is a tool.before event to be sent.
type toolEvent struct {
	version           ahp.Version
	id, session, call string
	source            string
	tool, kind        string
	input             json.RawMessage // an object
	// effects are those that the harness advertises.
	effects ahp.EffectSet
}

// newEvent returns a call of a shell without input, with ids of its own. Its
// harness advertises every effect that the event has.
func newEvent(v ahp.Version) *toolEvent {
	return &toolEvent{
		version: v,
		id:      "event-" + rand.Text(),
		session: "session-" + rand.Text(),
		call:    "call-" + rand.Text(),
		source:  "urn:ahp-gateway:send",
		tool:    "Bash",
		kind:    "shell",
		input:   json.RawMessage("{}"),
		effects: gateway.EveryEffect,
	}
}

// command makes the event's input that of a shell.
func (e *toolEvent) command(line string) {
	e.input = marshal(map[string]string{"command": line})
}

// capabilities returns params.capabilities. In 0.1 there is nothing to choose.
func (e *toolEvent) capabilities() map[string]any {
	if e.version == ahp.V01 {
		return map[string]any{"effects": []string{ahp.EffectDeny.String()}}
	}
	return gateway.Capabilities(ahp.ToolBefore, e.effects)
}

// message returns the hooks/intercept request.
func (e *toolEvent) message() []byte {
	type object = map[string]any
	tool := object{"name": e.tool, "kind": e.kind, "input": e.input}
	event := object{
		"id": e.id, "source": e.source, "type": ahp.ToolBefore.String(), "time": time.Now().UTC().Format(time.RFC3339),
		"session": object{"id": e.session}, "tool": tool,
	}
	params := object{"protocolVersion": e.version.String(), "event": event, "capabilities": e.capabilities()}
	if e.version == ahp.V01 {
		tool["callId"] = e.call
	} else {
		tool["origin"] = "native"
		event["call"] = object{"id": e.call}
		event["path"] = "native"
		event["harness"] = object{"name": "ahp-gateway", "version": programVersion()}
		params["state"] = object{"permission": "none", "candidate": nil}
	}
	return marshal(object{"jsonrpc": "2.0", "id": e.id, "method": ahp.MethodIntercept.String(), "params": params})
}

// marshal returns v as JSON on one line. v holds nothing that JSON cannot.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("ahp-gateway: " + err.Error())
	}
	return escapeInvisible(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// escapeInvisible writes what a terminal would obey and not show as an escape:
// a backend's text may reach it.
func escapeInvisible(text []byte) []byte {
	var out []byte
	for _, r := range string(text) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// fill takes what the flags of send say over the defaults.
func (e *toolEvent) fill(o *sendOptions) error {
	for _, f := range []struct {
		to   *string
		from string
	}{{&e.tool, o.tool}, {&e.kind, o.kind}, {&e.session, o.session}, {&e.id, o.eventID}, {&e.source, o.source}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	switch {
	case o.input != "" && o.command != "":
		return usage("--input and --command exclude each other")
	case o.command != "":
		e.command(o.command)
	case o.input != "":
		// Only what one reader understands may be put into a message. Whether
		// it is an object is for the check of the whole message.
		if !json.Valid([]byte(o.input)) {
			return usage("--input is no JSON")
		}
		e.input = json.RawMessage(strings.TrimSpace(o.input))
	}
	return e.narrow(o.effects)
}

// narrow leaves of the effects those in a list of names; an empty one is all.
func (e *toolEvent) narrow(names string) error {
	if names == "" {
		return nil
	}
	if e.effects = 0; e.version == ahp.V01 && names != ahp.EffectDeny.String() {
		return usage("--effects is %.64q; want deny, the only one of 0.1", names)
	}
	for name := range strings.SplitSeq(names, ",") {
		effect, ok := ahp.LookupEffect(e.version, []byte(strings.TrimSpace(name)))
		if !ok {
			return usage("--effects has %.64q; want some of %s", name, strings.Join(effectsOf(e.version), ","))
		}
		e.effects = e.effects.With(effect)
	}
	return nil
}
