package config

import (
	"net/url"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

const (
	maxClientID = 1024 // bytes
	maxScope    = 256  // bytes
	maxScopes   = 64
)

// oauth reads an OAuth client of draft. Only the flow that needs no person is
// served. Its secret is a reference to a file, under the same grant as a
// tokenRef.
func (d *document) oauth(o *object, kind spot, transport string) *OAuth {
	if d.version == ahp.V01 {
		d.mistake(kind, shown("oauth"), "is not an authentication of snapshot 0.1", "write bearer with tokenEnv, or put the hook in a draft document")
	}
	var c OAuth
	if at, ok := o.need("resource", "write the URI by which the issuer knows the backend"); ok {
		c.Resource = d.resource(at, transport)
	}
	if at, ok := o.need("clientId", "write a string that is not empty"); ok {
		c.ClientID = d.clientID(at)
	}
	issuer, hasIssuer := o.need("issuer", "write the issuer's https URL")
	if hasIssuer {
		c.Issuer = d.issuer(issuer)
	}
	flow := ""
	at, hasFlow := o.need("flow", "write client_credentials")
	if hasFlow {
		o.choice("flow", &flow, "authorization_code_pkce", "client_credentials")
	}
	secret, hasSecret := o.get("clientSecretRef")
	switch {
	case flow == "authorization_code_pkce":
		d.mistake(at, shown(flow), "needs a person who consents, and a gateway has nobody to ask", "write client_credentials with clientSecretRef")
		if hasSecret {
			d.someText(secret)
		}
	case hasSecret:
		c.ClientSecret = d.secretFile(secret, d.terms)
	case flow != "":
		o.missing("clientSecretRef", "write the path of a file below the folder of secrets: client_credentials is for clients that have a secret")
	}
	if at, ok := o.get("scopes"); ok {
		c.Scopes = d.scopes(at)
	}
	o.refuseLiterals("write clientSecretRef: PATH below the folder of secrets")
	o.done()
	return &c
}

// issuer reads the issuer identifier (RFC 8414, section 2), from which the
// places of its metadata are made. It is compared character by character later,
// so it is returned as it was written.
func (d *document) issuer(s spot) string {
	const instead = "write the issuer's https URL"
	u, authority, ok := d.plainURL(s, instead)
	if !ok {
		return ""
	}
	if u.Scheme == "http" && !isLoopbackHost(u.Hostname()) {
		d.mistake(s, shown(u.Scheme+"://"+authority), "is plain http to a host that is not loopback", instead)
		return ""
	}
	if u.RawQuery != "" || u.ForceQuery {
		d.mistake(s, "", "has a query, which an issuer identifier has not", instead)
		return ""
	}
	return s.text
}

// resource reads a resource indicator (RFC 8707, section 2).
func (d *document) resource(s spot, transport string) string {
	text, ok := d.text(s)
	if !ok {
		return ""
	}
	if len(text) > maxURL || !ahp.IsURI([]byte(text)) || strings.Contains(text, "#") {
		d.mistake(s, "", "is not an absolute URI without a fragment", "write the URI by which the issuer knows the backend, such as https://policy.example.com")
		return ""
	}
	to, err := url.Parse(transport)
	of, err2 := url.Parse(text)
	if err == nil && err2 == nil && of.Host != "" && to.Host != "" && !strings.EqualFold(of.Host, to.Host) {
		d.warn(s, "", "is at another host than the url: a token for the one is sent to the other", "write the resource that the url belongs to, if this is not meant")
	}
	return text
}

func (d *document) clientID(s spot) string {
	text, ok := d.text(s)
	switch {
	case !ok:
		return ""
	case text == "":
		d.mistake(s, "", "is empty", "write a string that is not empty")
		return ""
	case len(text) > maxClientID || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		d.mistake(s, "", "is longer than 1024 bytes, or holds characters that are not printable ASCII", "write the client id that the issuer gave")
		return ""
	}
	return text
}

// scopes reads a list of different scopes.
func (d *document) scopes(s spot) []string {
	if s.kind == kindList && len(s.items) > maxScopes {
		d.mistake(s, "", "holds more than 64 scopes", "write those that the backend asks for")
		return nil
	}
	return d.uniqueTexts(s, func(at spot, text string) bool {
		if len(text) > maxScope || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			d.mistake(at, "", "is not one scope of at most 256 bytes", "write every scope as an item of its own, without spaces and quotes")
			return false
		}
		return true
	})
}
