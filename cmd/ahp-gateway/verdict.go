package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// verdict is what became of a message, as send prints it.
type verdict struct {
	// Decision is pass, deny, ask, changed or error; accepted for an
	// observation, and answered for a question about the other side.
	Decision string `json:"decision"`
	// Reason and Code are those of a deny.
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	// Effects are the answer's effects, in order.
	Effects []json.RawMessage `json:"effects,omitempty"`
	// Answer is the configuration or the manifest that was asked for.
	Answer json.RawMessage `json:"answer,omitempty"`
	// ErrorCode is that of a JSON-RPC error, Status an HTTP status that is no
	// success; Message says what went wrong.
	ErrorCode int    `json:"errorCode,omitempty"`
	Status    int    `json:"status,omitempty"`
	Message   string `json:"message,omitempty"`

	// does says what the effects do beside what the decision's name says.
	does []string
	// otherVersions is set where Message names the snapshots that are spoken.
	otherVersions bool
}

// failed is the verdict of a message that got no decision.
func failed(format string, args ...any) *verdict {
	return &verdict{Decision: "error", Message: fmt.Sprintf(format, args...)}
}

// text returns the verdict for people: one line, or more for an answer. Beside
// a denial nothing else that the answer holds comes about.
func (v *verdict) text() []byte {
	var s string
	does := strings.Join(v.does, ", ")
	switch {
	case v.Decision == "answered":
		var out bytes.Buffer
		if err := json.Indent(&out, v.Answer, "", "  "); err != nil {
			panic("ahp-gateway: " + err.Error()) // it has been decoded
		}
		return escapeInvisible(out.Bytes())
	case v.Decision == "changed":
		s = "changed: " + does
	case v.Decision == "deny" && v.Code != "":
		s = fmt.Sprintf("deny: %s (%s)", v.Reason, v.Code)
	case v.Decision == "deny":
		s = "deny: " + v.Reason
	case v.ErrorCode != 0:
		s = fmt.Sprintf("error %d: %s", v.ErrorCode, v.Message)
	case v.Status != 0:
		s = fmt.Sprintf("error: HTTP %d %s", v.Status, http.StatusText(v.Status))
		if v.Message != "" {
			s += ": " + v.Message
		}
	case v.Decision == "error":
		s = "error: " + v.Message
	default:
		if s = v.Decision; does != "" {
			s += " (and " + does + ")"
		}
		if v.Reason != "" {
			s += ": " + v.Reason
		}
	}
	return []byte(printable(s))
}

func (v *verdict) exitCode() int {
	switch v.Decision {
	case "pass", "accepted", "answered":
		return 0
	case "deny":
		return exitDeny
	case "ask", "changed":
		return exitChanged
	default:
		return exitFailure
	}
}

// redact takes the key out of everything that the answer could have put in.
func (v *verdict) redact(key string) {
	if key == "" {
		return
	}
	texts := []*string{&v.Reason, &v.Code, &v.Message}
	for i := range v.does {
		texts = append(texts, &v.does[i])
	}
	for _, t := range texts {
		*t = strings.ReplaceAll(*t, key, "[key]")
	}
	for i, effect := range v.Effects {
		v.Effects[i] = redactStrings(effect, key)
	}
	v.Answer = redactStrings(v.Answer, key)
}

// redactStrings takes the key out of every string of raw, which is valid JSON:
// an escape in it must not hide the key.
func redactStrings(raw json.RawMessage, key string) json.RawMessage {
	var out []byte
	for len(raw) > 0 {
		start := bytes.IndexByte(raw, '"')
		if start < 0 {
			break
		}
		end := start + 1
		for ; raw[end] != '"'; end++ {
			if raw[end] == '\\' {
				end++
			}
		}
		out = append(out, raw[:start]...)
		out = append(out, marshal(strings.ReplaceAll(string(ahp.Text(raw[start:end+1])), key, "[key]"))...)
		raw = raw[end+1:]
	}
	return append(out, raw...)
}

// maxPrinted is how much of a text that came from outside is shown, in bytes.
const maxPrinted = 2048

// printable returns s fit for a terminal: on one line, without characters that
// could steer it, and not endless.
func printable(s string) string {
	if len(s) > maxPrinted {
		s = s[:maxPrinted] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// judge reads the answer to m.
func judge(m *ahp.Message, resp *http.Response, body []byte) *verdict {
	if m.Notification {
		if resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent {
			return &verdict{Decision: "accepted"}
		}
		return badStatus(resp, body)
	}
	switch {
	case resp.StatusCode != http.StatusOK:
		return badStatus(resp, body)
	case !isJSON(resp.Header.Get("Content-Type")):
		return failed("the answer is not application/json")
	}
	call := ahp.Call{ID: m.ID, Version: m.Version}
	var f ahp.Failure
	switch m.Method {
	case ahp.MethodCapabilities:
		return manifestOf(m, body)
	case ahp.MethodConfiguration:
		var configuration []byte
		if configuration, f = ahp.DecodeConfiguration(&call, body); f.OK() {
			return &verdict{Decision: "answered", Answer: configuration}
		}
	default:
		answer := ahp.Response{Body: body}
		if f = ahp.DecodeResponse(&call, &answer); f.OK() {
			return weigh(m.Version, answer.Effects)
		}
	}
	switch f.Class {
	case ahp.FailRPCError, ahp.FailVersionUnsupported, ahp.FailEventUnsupported:
		if v := rpcError(body); v != nil {
			return v
		}
	}
	return failed("%s", f.Detail)
}

// manifestOf returns the verdict of an answer to hooks/capabilities.
func manifestOf(m *ahp.Message, body []byte) *verdict {
	if body = bytes.TrimSpace(body); !ahp.Strict(body) || ahp.KindOf(body) != ahp.KindObject {
		return failed("the answer is no strict JSON object")
	}
	if v := rpcError(body); v != nil {
		return v
	}
	manifest := ahp.Member(ahp.Member(body, "result"), "manifest")
	if ahp.KindOf(manifest) != ahp.KindObject || !bytes.Equal(ahp.Member(body, "id"), m.ID) {
		return failed("the answer is no result with the request's id and a manifest")
	}
	return &verdict{Decision: "answered", Answer: manifest}
}

func badStatus(resp *http.Response, body []byte) *verdict {
	v := &verdict{Decision: "error", Status: resp.StatusCode}
	if contentType := resp.Header.Get("Content-Type"); strings.HasPrefix(contentType, "text/plain") {
		line, _, _ := bytes.Cut(body, []byte("\n"))
		v.Message = string(line)
	}
	return v
}

// rpcError returns the verdict of a JSON-RPC error answer, which has been
// decoded strictly before, or nil if it is none.
func rpcError(body []byte) *verdict {
	object := ahp.Member(bytes.TrimSpace(body), "error")
	code, err := strconv.Atoi(string(ahp.Member(object, "code")))
	if err != nil {
		return nil
	}
	message := string(ahp.Text(ahp.Member(object, "message")))
	var supported []string
	for v := range ahp.Elements(ahp.Member(ahp.Member(object, "data"), "supported")) {
		supported = append(supported, string(ahp.Text(v)))
	}
	if len(supported) > 0 {
		message += ": supported are " + strings.Join(supported, ", ")
	}
	return &verdict{Decision: "error", ErrorCode: code, Message: message, otherVersions: len(supported) > 0}
}

// weigh returns the verdict of a list of effects: the most severe one names it.
func weigh(version ahp.Version, effects []byte) *verdict {
	v := &verdict{Decision: "pass"}
	for raw := range ahp.Elements(effects) {
		reason, code := string(ahp.Text(ahp.Member(raw, "reason"))), string(ahp.Text(ahp.Member(raw, "code")))
		kind, ok := ahp.LookupEffect(version, ahp.Text(ahp.Member(raw, "type")))
		if !ok {
			return failed("the answer has an unknown effect")
		}
		v.Effects = append(v.Effects, raw)
		if what := doing(kind, raw); what != "" && !slices.Contains(v.does, what) {
			v.does = append(v.does, what)
		}
		switch {
		case kind == ahp.EffectDeny && reason == "":
			return failed("the answer has a deny without a reason")
		case kind == ahp.EffectDeny:
			v.Decision, v.Reason, v.Code = "deny", reason, code
		case v.Decision == "deny", kind == ahp.EffectAllow:
		case kind == ahp.EffectAsk:
			v.Decision, v.Reason = "ask", reason
		case v.Decision == "pass":
			v.Decision = "changed"
		}
	}
	return v
}

// doing says what an effect does, or "" where it names the decision.
func doing(kind ahp.EffectType, raw []byte) string {
	switch kind {
	case ahp.EffectDeny, ahp.EffectAsk:
		return ""
	case ahp.EffectAllow:
		return "allowed"
	case ahp.EffectModify:
		return string(ahp.Text(ahp.Member(raw, "target"))) + " changed"
	case ahp.EffectFlow:
		return "flow " + string(ahp.Text(ahp.Member(raw, "operation")))
	default:
		return kind.String()
	}
}
