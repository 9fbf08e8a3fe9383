package gateway

import (
	"crypto/sha256"
	"fmt"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// making is what a party was made from, besides what all parties share.
type making struct {
	// tenant is a copy: a party may outlive many configurations, and would keep
	// the tenants of its own in memory.
	tenant config.Tenant
	// secrets is the digest of what its references to secrets led to.
	secrets [sha256.Size]byte
}

func (v *vault) makingOf(t *config.Tenant) making {
	return making{tenant: *t, secrets: v.secretsOf(t)}
}

// unchanged reports whether assembling t would make a party that is equal to p,
// which may be nil. With p its answers are kept: they were given by the same
// backends under the same terms, and the note in front of each counts hops of
// the same document. A tenant with backends that are asked for
// their subscriptions is assembled where ask is set, because the answers are
// not known yet.
func (v *vault) unchanged(t *config.Tenant, p *party, ask bool) bool {
	return p != nil && t.Unchanged(&p.made.tenant) && (!ask || len(p.discovered) == 0) && (v.settled || v.secretsOf(t) == p.made.secrets)
}

// secretsOf returns the digest of what the references to secrets in t's
// documents lead to now, zero if there are none.
func (v *vault) secretsOf(t *config.Tenant) (digest [sha256.Size]byte) {
	h := sha256.New()
	any := false
	for ref := range t.SecretRefs() {
		any = true
		value, err := v.secret(t, ref)
		fmt.Fprintf(h, "%q %v\n", value, err)
	}
	if any {
		h.Sum(digest[:0])
	}
	return digest
}
