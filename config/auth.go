package config

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The bounds of an issuer's durations.
const (
	maxClockSkew  = 5 * time.Minute
	minKeysMaxAge = time.Minute
)

// algorithms are the signature algorithms of access tokens that can be
// accepted, and the default ones. Symmetric ones, and none, are not among them.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// mapping is one value of a claim and the tenant that it stands for.
type mapping struct {
	at     spot
	tenant string
}

// auth reads the auth section, and returns what it maps to tenants, which are
// not known yet.
func (r *reader) auth(s spot, a *Auth) []mapping {
	o := r.object(s)
	if at, ok := o.get("resource"); ok {
		a.Resource = r.resource(at)
	}
	issuers, ok := o.need("issuers", "write a list of issuers, such as [{issuer: https://idp.example, tenantClaim: ahp_tenant}]")
	o.done()
	if !ok || !r.is(issuers, kindList, "write a list of issuers") {
		return nil
	}
	if len(issuers.items) == 0 {
		r.unread(issuers, "", "is an empty list", "write at least one issuer, or remove auth")
	}
	var maps []mapping
	for i := range issuers.items {
		at := issuers.item(i)
		own, m := r.issuer(at, o.has("resource"))
		if first := slices.IndexFunc(a.Issuers, func(other Issuer) bool { return own.URL != "" && other.URL == own.URL }); first >= 0 {
			r.mistake(at, shown(own.URL), "is there twice", "write one entry for each issuer")
		}
		a.Issuers = append(a.Issuers, own)
		maps = append(maps, m...)
	}
	return maps
}

// mapped reports the values that are mapped to no tenant of the file.
func (r *reader) mapped(maps []mapping, f *File) {
	var ids []string
	known := make(map[string]bool)
	for i := range f.Tenants {
		ids = append(ids, f.Tenants[i].ID)
		known[f.Tenants[i].ID] = true
	}
	// One of the tenants may be there and have another mistake.
	unknown := r.unless(cause{file: r.main, of: "tenants[].id|tenantsDir|adminApi.store", others: "id"})
	for _, m := range maps {
		if known[m.tenant] {
			continue
		}
		instead := "write the id of a tenant"
		if near := r.nearest(m.tenant, ids); near != "" {
			instead = "did you mean " + near + "?"
		}
		if f.AdminAPI.Store == "redis" { // it may come, and must be able to go
			unknown.warn(m.at, shown(m.tenant), "no tenant has this id for now", "write the id of a tenant, or add one")
			continue
		}
		unknown.mistake(m.at, shown(m.tenant), "no tenant has this id", instead)
	}
}

// reaches reports whether a token could name the tenant.
func (a *Auth) reaches(id string) bool {
	return slices.ContainsFunc(a.Issuers, func(i Issuer) bool {
		if i.TenantClaim != "" {
			return true
		}
		for _, to := range i.Tenants {
			if to == id {
				return true
			}
		}
		return false
	})
}

func (r *reader) issuer(s spot, hasResource bool) (Issuer, []mapping) {
	i := Issuer{Algorithms: slices.Clone(algorithms), ClockSkew: 30 * time.Second, KeysMaxAge: maxDuration}
	o := r.object(s)
	if at, ok := o.need("issuer", "write the issuer identifier, such as https://idp.example"); ok {
		i.URL = r.issuerURL(at)
	}
	audience, hasAudience := o.get("audience")
	if hasAudience {
		i.Audience = r.words(audience, nil, "write a list of what a token's aud has for this gateway, such as [https://gateway.example/hooks]")
	} else if !hasResource && o.usable() {
		m := o.at
		m.path = joinKey(m.path, "audience")
		r.unless(cause{file: r.main, of: "auth.resource", slip: s.members("audience")}).mistake(m, "", "is missing", "write what a token's aud has for this gateway, or auth.resource: any token of the issuer would be accepted")
	}
	if at, ok := o.get("algorithms"); ok {
		if list := r.words(at, algorithms, "write a list of "+list(algorithms)); list != nil {
			i.Algorithms = list
		}
	}
	claim, hasClaim := o.get("tenantClaim")
	mappingClaim, hasMappingClaim := o.get("mappingClaim")
	tenants, hasTenants := o.get("tenants")
	var maps []mapping
	switch {
	case !o.usable():
	case hasClaim == hasTenants:
		r.unless(oneOf(s, "tenantClaim", "tenants")).mistake(s, "", "needs exactly one of tenantClaim and tenants", "write tenantClaim with the claim that holds the tenant's id, or tenants with an object from a claim's values to tenants")
	case hasClaim:
		i.TenantClaim = r.claim(claim)
	default:
		i.MappingClaim = "sub"
		if hasMappingClaim {
			i.MappingClaim = r.claim(mappingClaim)
		}
		i.Tenants, maps = r.mappings(tenants)
	}
	if hasMappingClaim && hasClaim && !hasTenants {
		r.mistake(mappingClaim, "", "is there without tenants", "write tenants beside it, or remove it")
	}
	if at, ok := o.get("clockSkew"); ok {
		i.ClockSkew = r.within(at, i.ClockSkew, time.Millisecond, maxClockSkew)
	}
	if at, ok := o.get("keysMaxAge"); ok {
		i.KeysMaxAge = r.within(at, i.KeysMaxAge, minKeysMaxAge, maxDuration)
	}
	if at, ok := o.get("scopes"); ok {
		i.Scopes = r.scopes(at)
	}
	if at, ok := o.get("allowAddresses"); ok {
		i.AllowAddresses = r.ranges(at)
	}
	o.done()
	return i, maps
}

// within reads a duration with bounds of its own.
func (r *reader) within(s spot, instead, least, most time.Duration) time.Duration {
	d, ok := r.duration(s)
	switch {
	case !ok:
		return instead
	case d < least || d > most:
		r.mistake(s, shown(s.text), "is out of range", "write a duration from "+least.String()+" to "+most.String())
		return instead
	}
	return d
}

// mappings reads an object from a claim's values to tenant ids.
func (r *reader) mappings(s spot) (map[string]string, []mapping) {
	if !r.is(s, kindObject, `write an object from a claim's values to tenants, such as {"client-7": acme}`) {
		return nil, nil
	}
	if len(s.fields) == 0 {
		r.mistake(s, "", "is empty", `write values and tenants, such as {"client-7": acme}`)
	}
	tenants := make(map[string]string)
	var maps []mapping
	for _, f := range s.fields {
		at := s.member(f.key, f.value)
		if f.key == "" || len(f.key) > maxClaim {
			r.mistake(at, "", "is mapped from an empty value or a very long one", "write the value that the claim has")
			continue
		}
		if id, ok := r.text(at); ok {
			tenants[f.key] = id
			maps = append(maps, mapping{at, id})
		}
	}
	return tenants, maps
}

const maxClaim = 1024 // bytes of a claim's name or value

func (r *reader) claim(s spot) string {
	text, ok := r.text(s)
	if ok && (text == "" || len(text) > maxClaim) {
		r.mistake(s, shown(text), "is not the name of a claim", "write the name of a claim that is a string, such as ahp_tenant")
		return ""
	}
	return text
}

// words reads a list of different strings: among known, or any where that is nil.
func (r *reader) words(s spot, known []string, instead string) []string {
	if !r.is(s, kindList, instead) {
		return nil
	}
	if len(s.items) == 0 {
		r.mistake(s, "", "is an empty list", instead)
	}
	var words []string
	for i := range s.items {
		at := s.item(i)
		word, ok := r.text(at)
		switch {
		case !ok:
		case word == "" || len(word) > maxClaim || known != nil && !slices.Contains(known, word):
			r.mistake(at, shown(word), "is not one that can be used here", instead)
		case slices.Contains(words, word):
			r.mistake(at, shown(word), "is there twice", "keep one of them")
		default:
			words = append(words, word)
		}
	}
	return words
}

// scopeText is a scope of RFC 6749, which is quoted in a header.
var scopeText = regexp.MustCompile(`^[!#-\[\]-~]{1,256}$`)

func (r *reader) scopes(s spot) []string {
	words := r.words(s, nil, "write a list of scopes, such as [ahp.intercept], or remove it")
	for i := range words {
		if !scopeText.MatchString(words[i]) {
			r.mistake(s, shown(words[i]), "is not a scope", `write ASCII characters without spaces, " and \`)
			return nil
		}
	}
	return words
}

// plainURL is a URL of characters that mean the same in every reader, and that
// can be quoted in a header.
var plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?$`)

// secureURL reads an https URL without user, query and fragment, or an http
// one of a loopback address.
func (r *reader) secureURL(s spot, instead string) (*url.URL, bool) {
	text, ok := r.text(s)
	if !ok {
		return nil, false
	}
	u, err := url.Parse(text)
	if err != nil || len(text) > maxClaim || !plainURL.MatchString(text) || u.Hostname() == "" ||
		u.Path != "" && path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") && u.Path != "/" {
		r.mistake(s, shown(text), "is not a URL that can be used here", instead)
		return nil, false
	}
	if u.Scheme != "https" && !isLoopbackHost(u.Hostname()) {
		r.mistake(s, shown(text), "is not https", "write an https URL; plain http is for loopback addresses")
		return nil, false
	}
	return u, true
}

func (r *reader) issuerURL(s spot) string {
	if _, ok := r.secureURL(s, "write the issuer identifier exactly as its tokens have it in iss, such as https://idp.example, without user, query and fragment"); !ok {
		return ""
	}
	return s.text
}

func (r *reader) resource(s spot) string {
	const instead = "write the URL that harnesses post to, such as https://gateway.example/hooks, without user, query, fragment and a / at the end"
	u, ok := r.secureURL(s, instead)
	if !ok {
		return ""
	}
	if strings.HasSuffix(u.Path, "/") {
		r.mistake(s, shown(s.text), "ends in /", instead)
		return ""
	}
	if !strings.HasSuffix(u.Path, "/hooks") {
		r.warn(s, shown(s.text), "is not the URL of /hooks: harnesses that compare it with the one that they post to refuse its metadata", "write that URL, such as https://gateway.example/hooks")
	}
	return s.text
}
