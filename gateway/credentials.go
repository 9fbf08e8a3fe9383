package gateway

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// entryOf returns what a tenant is known by.
func entryOf(t *config.Tenant) tenant.Entry {
	e := tenant.Entry{ID: t.ID, Open: t.Open}
	for _, k := range t.Keys {
		e.Keys = append(e.Keys, tenant.Key{Digest: k.SHA256, Expires: k.Expires})
	}
	for _, n := range t.Certificates {
		kind := tenant.NameURI
		switch n.Kind {
		case tenant.NameDNS.String():
			kind = tenant.NameDNS
		case tenant.NameEmail.String():
			kind = tenant.NameEmail
		}
		e.Names = append(e.Names, tenant.NewName(kind, n.Value))
	}
	return e
}

// assembleCredentials gives s the directory of its parties. Keys that previous
// has of issuers, and when keys of tenants were last used, are taken over.
func (g *Gateway) assembleCredentials(s *snapshot, entries []tenant.Entry, previous *snapshot) (err error) {
	s.resource = newResource(&s.file.Auth)
	var known *tenant.Issuers
	if previous != nil {
		known = previous.issuers
	}
	s.issuers = tenant.NewIssuers(s.resource.issuers(&s.file.Auth), known, g.issuerReport)
	if s.tenants, err = tenant.NewDirectory(entries, s.parties, s.issuers); err == nil && previous != nil {
		s.tenants.Resume(previous.tenants)
	}
	return err
}

// credentials tells what is known of keys and issuers, for people and scripts.
// Of a key it shows the beginning of its digest.
func (g *Gateway) credentials(w http.ResponseWriter, _ *http.Request) {
	type key struct {
		Tenant string `json:"tenant"`
		SHA256 string `json:"sha256"` // eight digits of it
		// Expires and LastUsed are left out where there is no such time.
		Expires  time.Time `json:"expires,omitzero"`
		Expired  bool      `json:"expired"`
		LastUsed time.Time `json:"last_used,omitzero"`
	}
	type issuer struct {
		Issuer  string    `json:"issuer"`
		Keys    int       `json:"keys"` // in use
		Fetched time.Time `json:"fetched,omitzero"`
		Failure string    `json:"failure,omitempty"` // of asking for them last
	}
	snap := g.current.Load()
	answer := struct {
		Generation uint64   `json:"generation"`
		Keys       []key    `json:"keys"`
		Issuers    []issuer `json:"issuers"`
	}{snap.generation, []key{}, []issuer{}}
	now := time.Now()
	for _, k := range snap.tenants.KeyUses() {
		answer.Keys = append(answer.Keys, key{k.Tenant, k.Digest, k.Expires, !k.Expires.IsZero() && !now.Before(k.Expires), k.LastUsed})
	}
	for _, s := range snap.issuers.States() {
		answer.Issuers = append(answer.Issuers, issuer{s.Issuer, s.Keys, s.Fetched, s.Failure})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// issuerReport logs that an issuer's keys cannot be had, or can be had again.
func (g *Gateway) issuerReport(issuer string, err error) {
	if err != nil {
		g.log.Warn("the keys of an issuer cannot be had: tokens that need them are not admitted", "issuer", issuer, "error", err)
		return
	}
	g.log.Info("the keys of an issuer can be had again", "issuer", issuer)
}
