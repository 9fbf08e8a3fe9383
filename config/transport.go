package config

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// transport reads how a backend is reached, and reports whether that is by
// stdio, which is a mistake that makes others pointless.
func (d *document) transport(s spot, h *Hook) (stdio bool) {
	o := d.object(s)
	o.portable = true
	kind, ok := o.need("type", "write type: http")
	if ok {
		text, ok := d.text(kind)
		switch {
		case ok && text == "stdio":
			d.mistake(kind, shown(text), "this gateway speaks HTTP only", "run the backend behind an HTTP server and write type: http with its url")
			return true
		case ok && text != "http":
			d.mistake(kind, shown(text), "is not a transport that this gateway has", "write http")
		}
	}
	if at, ok := o.need("url", "write the backend's https URL"); ok {
		h.URL = d.url(at)
	}
	if at, ok := o.get("headers"); ok {
		h.Headers = d.headers(at)
	}
	o.refuseLiterals(noLiteral)
	o.done()
	return false
}

const maxURL = 2048 // bytes

// url reads a backend's URL (AHP-HTTP-001).
func (d *document) url(s spot) string {
	u, authority, ok := d.plainURL(s, "write an absolute URL such as https://policy.example.com/ahp")
	if !ok {
		return ""
	}
	text, host := s.text, u.Hostname()
	if u.Scheme == "http" && !isLoopbackHost(host) && !d.allowsHTTP(d.id) {
		d.mistake(s, shown(u.Scheme+"://"+authority), "is plain http to a host that is not loopback", "write https, or allow it in the gateway file with "+d.terms.allowKey(d.id)+": true")
	}
	if hideQuery(text) != text {
		d.warn(s, "", "seems to hold a credential in its query", noLiteral)
	}
	if first, dup := d.urls[text]; dup {
		d.warn(s, "", "is the url of "+first+" too", "join the subscriptions in one hook unless the backend expects to be called twice")
	} else {
		d.urls[text] = s.path
	}
	return text
}

// plainURL reads an absolute http or https URL. Whatever two URL readers could
// take for different hosts is refused, and so is a host that is an address which
// will not be dialled. Only the scheme and the host are ever shown, because
// other parts may hold a credential.
func (d *document) plainURL(s spot, instead string) (u *url.URL, authority string, ok bool) {
	text, ok := d.text(s)
	if !ok {
		return nil, "", false
	}
	if len(text) > maxURL {
		d.mistake(s, "", "is longer than 2048 bytes", instead)
		return nil, "", false
	}
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		d.mistake(s, "", "is not an absolute http or https URL", instead)
		return nil, "", false
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || c == '\\' || c == '"' || c == '<' || c == '>' || c == '^' || c == '`' || c == '{' || c == '|' || c == '}' {
			d.mistake(s, "", "holds characters that a URL may not hold", "write them percent-encoded, and the host in its ASCII form")
			return nil, "", false
		}
	}
	if strings.Contains(text, "#") {
		d.mistake(s, "", "has a fragment (#)", "remove it: a fragment is never sent")
		return nil, "", false
	}
	authority, _, _ = strings.Cut(text[strings.Index(text, "://")+3:], "/")
	authority, _, _ = strings.Cut(authority, "?")
	if strings.Contains(authority, "@") {
		d.mistake(s, "", "holds user information", "remove it, and "+noLiteral)
		return nil, "", false
	}
	u, err := url.Parse(text)
	if err != nil {
		d.mistake(s, "", "is not a URL", instead)
		return nil, "", false
	}
	if !isURLHost(u, authority) {
		d.mistake(s, shown(u.Scheme+"://"+authority), "has no usable host and port", instead)
		return nil, "", false
	}
	// The URL reader takes more than RFC 3986 allows, brackets in a path for one.
	if !ahp.IsURI([]byte(text)) {
		d.mistake(s, "", "holds characters that a URL may not hold there", "write them percent-encoded")
		return nil, "", false
	}
	d.literal(s, u.Hostname(), u.Scheme+"://"+authority)
	return u, authority, true
}

func (d *document) allowsHTTP(id string) bool {
	return !d.terms.alone && d.terms.settings.of(id).AllowHTTP
}

// allowKey names the key that permits plain http for a hook.
func (t *terms) allowKey(id string) string {
	return joinKey(t.key("backends"), id) + ".allowHTTP"
}

// isURLHost reports whether every reader finds the same host and port in u.
func isURLHost(u *url.URL, authority string) bool {
	host, port := u.Hostname(), u.Port()
	if strings.HasSuffix(authority, ":") {
		return false
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return false
		}
	}
	if strings.HasPrefix(authority, "[") {
		a, err := netip.ParseAddr(host)
		return err == nil && a.Is6() && a.Zone() == ""
	}
	return isHostName(host)
}

// isHostName reports whether s is a DNS name or a dotted IPv4 address. A name
// whose last label is a number is an address to some readers (127.1, 0x7f.1),
// so it is one of four plain numbers or nothing.
func isHostName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	labels := strings.Split(strings.TrimSuffix(s, "."), ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 {
			return false
		}
		for i := range len(l) {
			if !isAlphanumeric(l[i]) && l[i] != '-' && l[i] != '_' {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	if last[0] < '0' || last[0] > '9' {
		return true
	}
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

// authentication reads the credential of a hook, by reference only.
func (d *document) authentication(s spot, h *Hook) {
	o := d.object(s)
	o.portable = true
	kind, ok := o.need("type", "write type: bearer")
	if !ok {
		return
	}
	text, ok := d.text(kind)
	if !ok {
		return
	}
	switch {
	case text == "oauth":
		h.OAuth = d.oauth(o, kind, h.URL)
		return
	case text != "bearer":
		// A person may have written the whole header value here.
		value := ""
		if isWord(text) && len(text) <= 16 {
			value = shown(text)
		}
		d.mistake(kind, value, "is not an authentication that this gateway has", "write bearer with tokenEnv or tokenRef, or oauth")
		o.refuseLiterals(noLiteral)
		return
	}
	env, hasEnv := o.get("tokenEnv")
	ref, hasRef := o.get("tokenRef")
	o.refuseLiterals("write tokenEnv: NAME of an environment variable, or tokenRef: PATH below the folder of secrets")
	o.done()
	if hasEnv == hasRef {
		d.mistake(s, "", "needs exactly one of tokenEnv and tokenRef", "write tokenEnv: NAME of an environment variable, or tokenRef: PATH below the folder of secrets")
		return
	}
	h.Bearer = d.secretRef(env, ref, hasEnv, d.terms)
}

// someText checks that a string is not empty.
func (d *document) someText(s spot) {
	if text, ok := d.text(s); ok && text == "" {
		d.mistake(s, "", "is empty", "write a string that is not empty")
	}
}

// uniqueTexts reads a list of different strings that are not empty, and that fits
// does not report, which may be nil.
func (d *document) uniqueTexts(s spot, fits func(at spot, text string) bool) (texts []string) {
	if !d.is(s, kindList, "write a list of strings") {
		return nil
	}
	seen := make(map[string]bool)
	for i := range s.items {
		at := s.item(i)
		text, ok := d.text(at)
		switch {
		case !ok:
		case text == "":
			d.mistake(at, "", "is empty", "write a string that is not empty")
		case seen[text]:
			d.mistake(at, shown(text), "is there twice", "keep one of them")
		case fits == nil || fits(at, text):
			texts = append(texts, text)
		}
		seen[text] = true
	}
	return texts
}
