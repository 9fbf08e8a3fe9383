package gateway

import "sync"

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
	mu       sync.Mutex
	tenants  int // places that are left
	backends int
	own      map[owner]struct{}
	crowded  bool // somebody counts among the others

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

// partyStats returns counters for a tenant that has none yet.
func (o *owners) partyStats(tenant string) *partyStats {
	if o.admit(owner{tenant: tenant}, &o.tenants) {
		return newPartyStats(tenant)
	}
	return o.party
}

// peerStats returns counters for a backend that has none yet, of a tenant that
// has some.
func (o *owners) peerStats(p *party, backend string) *peerStats {
	if p.stats != o.party && o.admit(owner{p.id, backend}, &o.backends) {
		return newPeerStats(p.id, backend)
	}
	return o.peer
}

// admit reports whether w has, or now gets, one of the places that are left.
func (o *owners) admit(w owner, left *int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.own[w]; ok {
		return true
	}
	if *left == 0 {
		o.crowded = true
		return false
	}
	*left--
	o.own[w] = struct{}{}
	return true
}

// used reports whether anybody has ever counted among the others.
func (o *owners) used() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.crowded
}
