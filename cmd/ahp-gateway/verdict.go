package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// verdict is what became of a message, as send prints it.
type verdict struct {
	// Decision is pass, deny, ask, changed or error, or accepted for an
	// observation.
	Decision string `json:"decision"`
	// Reason and Code are those of a deny.
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	// Effects are the types of the answer's effects, in order.
	Effects []string `json:"effects,omitempty"`
	// ErrorCode is that of a JSON-RPC error, Status an HTTP status that is no
	// success; Message says what went wrong.
	ErrorCode int    `json:"errorCode,omitempty"`
	Status    int    `json:"status,omitempty"`
	Message   string `json:"message,omitempty"`
}

// failed is the verdict of a message that got no decision.
func failed(format string, args ...any) *verdict {
	return &verdict{Decision: "error", Message: fmt.Sprintf(format, args...)}
}

// text returns the verdict as one line for people.
func (v *verdict) text() []byte {
	var s string
	switch {
	case v.Decision == "deny" && v.Code != "":
		s = fmt.Sprintf("deny: %s (%s)", v.Reason, v.Code)
	case v.Decision == "deny":
		s = "deny: " + v.Reason
	case v.Decision == "changed":
		s = "changed: " + strings.Join(v.Effects, ", ")
	case v.Decision == "ask" && v.Reason != "":
		s = "ask: " + v.Reason
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
		s = v.Decision
	}
	return []byte(printable(s))
}

func (v *verdict) exitCode() int {
	switch v.Decision {
	case "pass", "accepted":
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
	for i := range v.Effects {
		texts = append(texts, &v.Effects[i])
	}
	for _, t := range texts {
		*t = strings.ReplaceAll(*t, key, "[key]")
	}
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
	answer := ahp.Response{Body: body}
	switch f := ahp.DecodeResponse(&call, &answer); f.Class {
	case ahp.NoFailure:
		return weigh(m.Version, answer.Effects)
	case ahp.FailRPCError, ahp.FailVersionUnsupported, ahp.FailEventUnsupported:
		if v := rpcError(body); v != nil {
			return v
		}
		return failed("%s", f.Detail)
	default:
		return failed("%s", f.Detail)
	}
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
		message += ": supported are " + strings.Join(supported, ", ") + " (--protocol-version)"
	}
	return &verdict{Decision: "error", ErrorCode: code, Message: message}
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
		v.Effects = append(v.Effects, kind.String())
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
