package config

import (
	"strings"
)

// forbiddenHeaders are headers that a document may not set, and why.
var forbiddenHeaders = func() map[string]string {
	const (
		framing = "frames the message, which is the gateway's to do"
		hop     = "belongs to one connection, not to the message"
		body    = "describes the body, which is always application/json as it is"
	)
	return map[string]string{
		"host": "names the host, which is that of the url", "content-length": framing, "transfer-encoding": framing,
		"trailer": framing, "te": hop, "connection": hop, "keep-alive": hop, "proxy-connection": hop,
		"proxy-authenticate": hop, "upgrade": hop, "http2-settings": hop,
		"expect": "asks for an interim answer, which is not read", "content-type": body,
		"content-encoding": body, "accept-encoding": "asks for a compressed answer, which is not read",
	}
}()

// credentialHeaders always hold a credential, so a literal value is refused.
var credentialHeaders = map[string]bool{
	"authorization": true, "proxy-authorization": true, "cookie": true, "x-api-key": true,
}

func hasHeader(headers []Header, name string) bool {
	for _, h := range headers {
		if strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}

// headers reads transport.headers (AHP-REG-003).
func (d *document) headers(s spot) []Header {
	if !d.is(s, kindObject, "write an object from header name to value") {
		return nil
	}
	var headers []Header
	seen := make(map[string]string)
	for _, f := range s.fields {
		at := s.member(f.key, f.value)
		name := *f.value
		name.line, name.col = f.line, f.col
		atName := spot{&name, at.path}
		if !isToken(f.key) || len(f.key) > 256 {
			// The name is not shown: a whole header line with its value may stand there.
			d.mistake(spot{&name, s.path}, "", "holds a member whose name is not a header name", "write letters, digits and - only, without a colon")
			continue
		}
		lower := strings.ToLower(f.key)
		if first, dup := seen[lower]; dup {
			d.mistake(atName, "", "is the same header as "+shown(first), "keep one of them: names do not differ by case")
			continue
		}
		seen[lower] = f.key
		if why, bad := forbiddenHeaders[lower]; bad {
			d.mistake(atName, "", why, "remove it")
			continue
		}
		h := Header{Name: f.key}
		if at.kind == kindObject {
			h.Secret = d.headerSource(at)
		} else {
			h.Value = d.headerValue(at, lower)
		}
		headers = append(headers, h)
	}
	return headers
}

const headerInstead = "write a string, {valueEnv: NAME} or {valueRef: PATH}"

func (d *document) headerValue(s spot, lower string) string {
	if s.kind != kindString && !(s.plain && s.kind != kindNull && s.kind != kindBroken) {
		d.is(s, kindString, headerInstead)
		return ""
	}
	if credentialHeaders[lower] {
		d.mistake(s, "", "a credential may not stand in the document", "write {valueEnv: NAME} or {valueRef: PATH}")
		return ""
	}
	text, ok := d.text(s)
	if !ok {
		return ""
	}
	for _, c := range text {
		if c == '\r' || c == '\n' || c == 0 || c > 0xFF {
			d.mistake(s, "", "holds a line break, a NUL or a character that is not Latin-1", "write one line of Latin-1 text")
			return ""
		}
	}
	if len(text) > 8*kib {
		d.mistake(s, "", "is longer than 8 KiB", "write a shorter value")
		return ""
	}
	if strings.HasPrefix(strings.ToLower(text), "bearer ") || strings.HasPrefix(strings.ToLower(text), "basic ") {
		d.mistake(s, "", "a credential may not stand in the document", "write {valueEnv: NAME} or {valueRef: PATH}")
		return ""
	}
	if looksSecret(lower, text) {
		d.warn(s, "", "looks like a credential", "write {valueEnv: NAME} or {valueRef: PATH} if it is one")
	}
	return text
}

func (d *document) headerSource(s spot) *SecretRef {
	o := d.object(s)
	o.portable = true
	env, hasEnv := o.get("valueEnv")
	ref, hasRef := o.get("valueRef")
	o.refuseLiterals("write valueEnv: NAME or valueRef: PATH, or the string itself in place of the object if it is no secret")
	o.done()
	if hasEnv == hasRef {
		d.mistake(s, "", "needs exactly one of valueEnv and valueRef", headerInstead)
		return nil
	}
	return d.secretRef(env, ref, hasEnv, d.terms)
}

// isToken reports whether s is an HTTP token.
func isToken(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return true
}

// isCredentialName reports whether something of that name is likely to hold a
// credential.
func isCredentialName(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "token", "secret", "password", "passwd", "cookie", "credential", "apikey", "api-key", "api_key", "signature", "session", "jwt"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	switch name[strings.LastIndexAny(name, "-_")+1:] {
	case "key", "pass", "pwd":
		return true
	}
	// code is what functions of a large provider, and OAuth, call one.
	return name == "sig" || name == "code"
}

// secretPrefixes start the tokens of widely used services.
var secretPrefixes = []string{"sk-", "sk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xox", "eyJ", "AKIA", "AIza", "hf_", "npm_", "-----BEGIN"}

// looksSecret reports whether a literal header is likely to be a credential.
// It errs towards yes: the answer only hides the value and warns about it.
func looksSecret(name, value string) bool {
	if value == "" {
		return false
	}
	if isCredentialName(name) {
		return true
	}
	for _, p := range secretPrefixes {
		if strings.HasPrefix(value, p) {
			return true
		}
	}
	return isRandom(value)
}

// isRandom reports whether s is one long run of letters and digits mixed, as
// generated keys are and names, versions and sentences are not.
func isRandom(s string) bool {
	if len(s) < 24 {
		return false
	}
	letters, digits := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
		case isAlphanumeric(c):
			letters++
		case strings.IndexByte("+/=_-", c) < 0:
			return false
		}
	}
	return letters >= 4 && digits >= 4
}
