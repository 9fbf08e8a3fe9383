package gateway

import (
	"crypto/sha256"
	"fmt"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// origin is what a party was made from, besides what all parties share.
type origin struct {
	// tenant is a copy: a party may outlive many configurations, and would keep
	// the tenants of its own in memory.
	tenant config.Tenant
	// secrets is the digest of what its references to secrets led to.
	secrets [sha256.Size]byte
}

func (g *Gateway) origin(t *config.Tenant) origin {
	return origin{tenant: *t, secrets: g.secretsOf(t)}
}

// unchanged reports whether assembling t would make a party that is equal to p,
// which may be nil. With p its answers are kept: they were given by the same
// backends under the same terms, and the note in front of each counts hops of
// the same document. A tenant with backends that are asked for their
// subscriptions is always assembled, because the answers are not known yet.
func (g *Gateway) unchanged(t *config.Tenant, p *party) bool {
	return p != nil && t.Unchanged(&p.made.tenant) && len(p.discovered) == 0 && g.secretsOf(t) == p.made.secrets
}

// secretsOf returns the digest of what the references to secrets in t's
// documents lead to now, zero if there are none.
func (g *Gateway) secretsOf(t *config.Tenant) (digest [sha256.Size]byte) {
	h := sha256.New()
	any := false
	add := func(ref *config.SecretRef) {
		if ref == nil {
			return
		}
		any = true
		value, err := g.secret(t.Secrets, *ref)
		fmt.Fprintf(h, "%q %v\n", value, err)
	}
	for _, r := range t.Registrations {
		for i := range r.Hooks {
			add(r.Hooks[i].Bearer)
			for j := range r.Hooks[i].Headers {
				add(r.Hooks[i].Headers[j].Secret)
			}
		}
	}
	if any {
		h.Sum(digest[:0])
	}
	return digest
}
