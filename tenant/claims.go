package tenant

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// claims are the members of a token's payload, or of its header. The reader
// refuses what has one of them twice, and tells upper from lower case.
type claims map[string]json.RawMessage

// unverified returns the header and the claims of a token as it has them, signed
// or not. Every part must be in the one form that its bytes have in base64url:
// otherwise whoever has a token could have as many that are equal to it, and
// take the room of everybody else's where tokens are remembered. Of a signature
// by ECDSA there are two still, s and its negative: signers use either, and to
// remember one entry for both would cost whoever alternates them a signature each
// time, in which others wait, to save one entry in 10,000.
func unverified(raw string) (header, payload claims, ok bool) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return nil, nil, false
	}
	for i, part := range parts {
		decoded, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil {
			return nil, nil, false
		}
		into := []*claims{&header, &payload, nil}[i]
		if into != nil && (json.Unmarshal(decoded, into) != nil || *into == nil) {
			return nil, nil, false
		}
	}
	return header, payload, true
}

// isPlain reports whether a token's header has nothing that would give its
// payload another meaning: extensions that have to be understood, compression,
// encryption, or another token inside.
func (c claims) isPlain() bool {
	return !c.has("crit") && !c.has("b64") && !c.has("zip") && !c.has("enc") && !c.has("cty")
}

func (c claims) has(name string) bool { return c[name] != nil }

// text returns a claim that is a string, or "".
func (c claims) text(name string) string {
	var s string
	if !c.has(name) || json.Unmarshal(c[name], &s) != nil {
		return ""
	}
	return s
}

// texts returns a claim that is a list of strings, or nil.
func (c claims) texts(name string) []string {
	var list []string
	if !c.has(name) || json.Unmarshal(c[name], &list) != nil {
		return nil
	}
	return list
}

// lastTime is the last second that a claim may name: that of year 9999.
const lastTime = 253402300799

// time returns a claim that is a NumericDate of RFC 7519. there is true also
// where the claim is something else.
func (c claims) time(name string) (t time.Time, there, ok bool) {
	if !c.has(name) {
		return t, false, false
	}
	var seconds float64
	if json.Unmarshal(c[name], &seconds) != nil || string(c[name]) == "null" || !(seconds >= 0 && seconds <= lastTime) {
		return t, true, false
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), true, true
}

// isAccessToken reports whether a token is, as far as can be told, meant to be
// shown to a resource by whoever bears it. Identity and refresh tokens of the
// same issuer are signed with the same keys, and a token that is bound to a key
// of its client (cnf) is worth nothing without a proof that is not asked for here.
func isAccessToken(jws *jose.JSONWebSignature, c claims) bool {
	declared := false
	if typ, there := jws.Signatures[0].Protected.ExtraHeaders[jose.HeaderType]; there {
		name, _ := typ.(string)
		switch strings.TrimPrefix(strings.ToLower(name), "application/") {
		case "at+jwt":
			declared = true
		case "jwt":
		default:
			return false
		}
	}
	if c.has("cnf") {
		return false
	}
	// Logout tokens and other security events (RFC 8417) may have no type.
	if events := c["events"]; len(events) > 0 && events[0] == '{' {
		return false
	}
	// These are what single issuers say in the payload: typ is Keycloak's,
	// token_use Cognito's.
	if c.has("typ") {
		if c.text("typ") != "Bearer" {
			return false
		}
		declared = true
	}
	if c.has("token_use") {
		if c.text("token_use") != "access" {
			return false
		}
		declared = true
	}
	// OpenID Connect Core has these in identity tokens.
	return declared || !c.has("nonce") && !c.has("at_hash") && !c.has("c_hash")
}

// admit reads whose token this is and until when, by claims whose signature is
// still to be checked. missing is true where it lacks a scope.
func (i *issuer) admit(c claims, now time.Time) (t token, missing, ok bool) {
	expires, _, ok := c.time("exp")
	if !ok {
		return t, false, false
	}
	expires = expires.Add(i.ClockSkew)
	if !now.Before(expires) {
		return t, false, false
	}
	latest := now.Add(i.ClockSkew)
	for _, name := range []string{"nbf", "iat"} {
		if at, there, ok := c.time(name); there && (!ok || at.After(latest)) {
			return t, false, false
		}
	}
	t = token{until: expires, issuer: i}
	if i.TenantClaim != "" {
		t.tenant = c.text(i.TenantClaim)
	} else {
		t.tenant = i.Tenants[c.text(i.MappingClaim)]
	}
	if t.tenant == "" || !slices.ContainsFunc(c.audience(), func(a string) bool {
		return slices.Contains(i.Audiences, a) || i.Origin != "" && a == i.Origin+"/t/"+t.tenant+"/hooks"
	}) {
		return token{}, false, false
	}
	return t, lacks(c.scopes(), i.Scopes), true
}

// audience returns aud, which is a string or a list of them.
func (c claims) audience() []string {
	if one := c.text("aud"); one != "" {
		return []string{one}
	}
	return c.texts("aud")
}

// scopes returns what was granted: scope as RFC 9068 has it, or scp, as a list
// or in one string, as large issuers do.
func (c claims) scopes() []string {
	if c.has("scope") {
		return strings.Fields(c.text("scope"))
	}
	if list := c.texts("scp"); list != nil {
		return list
	}
	return strings.Fields(c.text("scp"))
}
