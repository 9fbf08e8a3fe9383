package backend

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// Header is one header field of every request, as a literal.
type Header struct{ Name, Value string }

// requestHead is the part of a request head that is the same for every call,
// written once.
type requestHead struct {
	lines string // request line and fields, each with its line end
	// ownTraceparent and ownTracestate say that a configured header stands in
	// for the call's own, because configured headers are merged last.
	ownTraceparent, ownTracestate bool
}

// framingFields belong to the connection, not to its user: a configured one
// would let a document change where a message ends.
var framingFields = map[string]bool{
	"connection": true, "content-length": true, "expect": true, "keep-alive": true,
	"proxy-connection": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
}

// newRequestHead merges the configured headers over the client's own, without
// regard to case. AHP-REG-003.
func newRequestHead(cfg *Config, u *url.URL) (requestHead, error) {
	fields := []Header{
		{"Host", u.Host},
		{"User-Agent", cfg.UserAgent},
		{"Content-Type", "application/json"},
		{"Accept", "application/json"},
	}
	if cfg.Bearer != "" {
		fields = append(fields, Header{"Authorization", "Bearer " + cfg.Bearer})
	}
	own := len(fields)

	var h requestHead
	seen := make(map[string]bool, len(cfg.Headers))
configured:
	for _, f := range cfg.Headers {
		name := strings.ToLower(f.Name)
		switch {
		case !isToken(f.Name):
			return h, errors.New("a header name is no HTTP token")
		case framingFields[name]:
			return h, fmt.Errorf("header %s belongs to the connection and cannot be configured", f.Name)
		case seen[name]:
			return h, fmt.Errorf("header %s is configured twice", f.Name)
		}
		seen[name] = true
		for i := range fields[:own] {
			if strings.EqualFold(fields[i].Name, f.Name) {
				fields[i] = f
				continue configured
			}
		}
		fields = append(fields, f)
	}
	h.ownTraceparent, h.ownTracestate = seen["traceparent"], seen["tracestate"]

	var b strings.Builder
	b.WriteString("POST " + u.RequestURI() + " HTTP/1.1\r\n")
	for _, f := range fields {
		value, ok := latin1(f.Value)
		if !ok {
			return h, fmt.Errorf("the value of header %s holds a character that a header cannot", f.Name)
		}
		if f.Name == "User-Agent" && value == "" {
			continue
		}
		b.WriteString(f.Name + ": " + value + "\r\n")
	}
	h.lines = b.String()
	if len(h.lines) > maxHead {
		return h, fmt.Errorf("the request head is longer than %d bytes", maxHead)
	}
	return h, nil
}

// trace returns v when it may be sent as a field value, otherwise "": trace
// context comes from the caller and is dropped rather than repaired.
func trace(v string) string {
	if len(v) > maxTrace {
		return ""
	}
	for i := range len(v) {
		if v[i] < ' ' || v[i] > '~' {
			return ""
		}
	}
	return v
}

// maxTrace bounds a trace context header value, in bytes. W3C asks for at
// least 512 of tracestate.
const maxTrace = 1024

// appendCall appends the fields of one call and the end of the head to dst.
func (h *requestHead) appendCall(dst []byte, call *ahp.Call) []byte {
	dst = append(dst, h.lines...)
	if v := trace(call.Traceparent); v != "" && !h.ownTraceparent {
		dst = append(append(append(dst, "traceparent: "...), v...), "\r\n"...)
		if v := trace(call.Tracestate); v != "" && !h.ownTracestate {
			dst = append(append(append(dst, "tracestate: "...), v...), "\r\n"...)
		}
	}
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(call.Body)), 10)
	return append(dst, "\r\n\r\n"...)
}

// latin1 returns s as the bytes of a field value, one per character.
func latin1(s string) (string, bool) {
	var b strings.Builder
	for _, r := range s {
		if r < ' ' && r != '\t' || r == 0x7f || r > 0xff {
			return "", false
		}
		b.WriteByte(byte(r))
	}
	return b.String(), true
}

// isToken reports whether s is an HTTP token.
func isToken[T string | []byte](s T) bool {
	for i := range len(s) {
		if !tokenByte[s[i]] {
			return false
		}
	}
	return len(s) > 0
}

var tokenByte = func() (is [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
		is[c] = true
	}
	return is
}()
