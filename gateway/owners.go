package gateway

import (
	"maps"
	"sync/atomic"
)

// others stands, in time series, for all tenants and backends that have none of
// their own. No configured one has that id.
const others = "_other"

// backendsPerOwner is how many backends have time series of their own, for each
// tenant that may.
const backendsPerOwner = 4

// owners bounds the time series of tenants and backends, whose number is
// bounded by nothing else. The first ones, in the order of the configuration,
// have series of their own; whoever comes later counts, with all others, in one
// set of counters. Those are never told apart again, so their sums neither jump
// nor run backwards when tenants come and go.
//
// Who has had series of its own keeps its place until the process ends, and
// finds it again: a histogram never forgets whom it has counted, so a place
// that was given on would be one more.
type owners struct {
	tenants  int // places that are left
	backends int
	own      map[owner]struct{}
	crowded  atomic.Bool // somebody has counted among the others

	// party and peer count what all others do.
	party *partyStats
	peer  *peerStats
}

// owner is a tenant, or one of its backends.
type owner struct{ tenant, backend string }

func newOwners(tenants int) *owners {
	return &owners{
		tenants: tenants, backends: tenants * backendsPerOwner, own: make(map[owner]struct{}),
		party: newPartyStats(others), peer: newPeerStats(others, others),
	}
}

// claims are the places that a configuration takes if it comes to be served: one
// that is refused takes none. At most one is assembled at a time.
type claims struct {
	owners   *owners
	tenants  int // places that would be left
	backends int
	own      map[owner]struct{} // who would take one
	crowded  bool
}

// claim returns what has claimed nothing yet.
func (o *owners) claim() *claims {
	return &claims{owners: o, tenants: o.tenants, backends: o.backends, own: make(map[owner]struct{})}
}

// settle takes the places that are claimed, once.
func (c *claims) settle() {
	if c.own == nil {
		return
	}
	o := c.owners
	o.tenants, o.backends = c.tenants, c.backends
	maps.Copy(o.own, c.own)
	c.own = nil
	if c.crowded {
		o.crowded.Store(true)
	}
}

// partyStats returns counters for a tenant that has none yet.
func (c *claims) partyStats(tenant string) *partyStats {
	if c.admit(owner{tenant: tenant}, &c.tenants) {
		return newPartyStats(tenant)
	}
	return c.owners.party
}

// peerStats returns counters for a backend that has none yet, of a tenant that
// has some.
func (c *claims) peerStats(p *party, backend string) *peerStats {
	if p.stats != c.owners.party && c.admit(owner{p.id, backend}, &c.backends) {
		return newPeerStats(p.id, backend)
	}
	return c.owners.peer
}

// admit reports whether w has, or would get, one of the places that are left.
func (c *claims) admit(w owner, left *int) bool {
	if _, ok := c.owners.own[w]; ok {
		return true
	}
	if _, ok := c.own[w]; ok {
		return true
	}
	if *left == 0 {
		c.crowded = true
		return false
	}
	*left--
	c.own[w] = struct{}{}
	return true
}

// used reports whether anybody has ever counted among the others. It is safe for
// concurrent use.
func (o *owners) used() bool { return o.crowded.Load() }
