package config

import (
	"net/url"
	"strings"
	"time"
	"unicode"
)

// soon is how long before a key's end its operator is warned.
const soon = 14 * 24 * time.Hour

// expires reads when a key ends. Without quotes it is a time to some readers of
// YAML and text to others, and means the same to all of them.
func (r *reader) expires(s spot) time.Time {
	const instead = "write a time of RFC 3339, such as 2027-01-01T00:00:00Z, or remove it for a key that does not end"
	if !r.is(s, kindString, instead) {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s.text)
	if err != nil || t.Year() < 2000 || t.UTC().Year() > 9999 {
		r.mistake(s, shown(s.text), "is not a time that can be used here", instead)
		return time.Time{}
	}
	t = t.UTC()
	for _, turn := range []time.Time{t.Add(-soon), t} {
		if turn.After(r.now()) && (r.until.IsZero() || turn.Before(r.until)) {
			r.until = turn
		}
	}
	switch left := t.Sub(r.now()); {
	case left <= 0:
		r.warn(s, shown(s.text), "the key has expired and is refused", "remove it, and put a new one in its place")
	case left <= soon:
		r.warn(s, shown(s.text), "the key expires within 14 days", "add a second key, have callers use it, and then remove this one")
	}
	return t
}

const certificateInstead = "write {uri: spiffe://acme/agent}, {dns: agent.acme.example} or {email: agent@acme.example}"

// certificates reads the names of client certificates that speak for a tenant.
func (r *reader) certificates(s spot) []nameClaim {
	if !r.is(s, kindList, "write a list of names; in each, "+certificateInstead[len("write "):]) {
		return nil
	}
	if len(s.items) == 0 {
		r.mistake(s, "", "is an empty list", "write at least one name, or remove it")
	}
	var names []nameClaim
	for i := range s.items {
		at := s.item(i)
		if n, ok := r.certificateName(at); ok {
			names = append(names, nameClaim{n, at})
		}
	}
	return names
}

func (r *reader) certificateName(s spot) (n CertificateName, ok bool) {
	o := r.object(s)
	var found []spot
	for _, kind := range []string{"uri", "dns", "email"} {
		if at, ok := o.get(kind); ok {
			n.Kind = kind
			found = append(found, at)
		}
	}
	o.done()
	if !o.usable() {
		return n, false
	}
	if len(found) != 1 {
		r.unless(oneOf(s, "uri", "dns", "email")).mistake(s, "", "needs exactly one of uri, dns and email", certificateInstead)
		return n, false
	}
	text, ok := r.text(found[0])
	if !ok {
		return n, false
	}
	host, good := text, true
	switch n.Kind {
	case "uri":
		u, err := url.Parse(text)
		// As certificates have it, byte for byte: there is one way to write it.
		good = err == nil && u.Scheme != "" && u.String() == text
		host = ""
	case "email":
		at := strings.LastIndexByte(text, '@')
		good = at > 0
		host = text[at+1:]
		n.Value = text[:max(0, at)] + "@" + strings.ToLower(host)
	case "dns":
		n.Value = strings.ToLower(text)
	}
	if !good || len(text) > maxClaim || strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII || c <= ' ' || c == 0x7f }) ||
		n.Kind != "uri" && !isHostName(host) {
		r.mistake(found[0], shown(text), "is not a name that a certificate can have here", certificateInstead+": the exact name, without patterns")
		return n, false
	}
	if n.Kind == "uri" {
		n.Value = text
	}
	return n, true
}
