package config

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"time"
)

func (p *printer) auth(a *Auth) {
	p.open("auth")
	if a.Resource != "" {
		p.text("resource", a.Resource)
	}
	p.open("issuers")
	for i := range a.Issuers {
		p.issuer(&a.Issuers[i])
	}
	p.close()
	p.close()
}

func (p *printer) issuer(i *Issuer) {
	p.item()
	p.text("issuer", i.URL)
	if len(i.Audience) > 0 {
		p.texts("audience", i.Audience)
	}
	p.texts("algorithms", i.Algorithms)
	if i.TenantClaim != "" {
		p.text("tenantClaim", i.TenantClaim)
	} else {
		p.text("mappingClaim", i.MappingClaim)
		p.open("tenants")
		for _, value := range slices.Sorted(maps.Keys(i.Tenants)) {
			p.text(yamlText(value), i.Tenants[value])
		}
		p.close()
	}
	p.duration("clockSkew", i.ClockSkew)
	p.duration("keysMaxAge", i.KeysMaxAge)
	if len(i.Scopes) > 0 {
		p.texts("scopes", i.Scopes)
	}
	if len(i.AllowAddresses) > 0 {
		p.ranges("allowAddresses", i.AllowAddresses)
	}
	p.close()
}

func (p *printer) ranges(key string, ranges []netip.Prefix) {
	words := make([]string, len(ranges))
	for i, r := range ranges {
		words[i] = r.String()
	}
	p.texts(key, words)
}

// credentials prints what a tenant is known by. What is not there is left out:
// an empty list of keys could not be loaded again.
func (p *printer) credentials(t *Tenant) {
	if len(t.Keys) > 0 {
		p.keys(t.Keys)
	}
	p.certificateNames("certificates", t.Certificates)
}

// certificateNames prints a list that is left out where it is empty.
func (p *printer) certificateNames(key string, names []CertificateName) {
	if len(names) == 0 {
		return
	}
	p.open(key)
	for _, n := range names {
		p.item()
		p.text(n.Kind, n.Value)
		p.close()
	}
	p.close()
}

func (p *printer) keys(keys []Key) {
	p.open("keys")
	for _, k := range keys {
		p.item()
		p.text("sha256", p.digest(k.SHA256))
		if !k.Expires.IsZero() {
			p.text("expires", k.Expires.Format(time.RFC3339Nano))
		}
		p.close()
	}
	p.close()
}

// digest returns a digest as it is shown.
func (p *printer) digest(k [sha256.Size]byte) string {
	if p.whole {
		return hex.EncodeToString(k[:])
	}
	return hex.EncodeToString(k[:4]) + "…"
}
