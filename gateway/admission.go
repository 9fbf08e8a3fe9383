package gateway

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// enter takes one of the places for requests in flight, or answers that there
// is none for this tenant. One that is entered is followed by places.Leave.
func (g *Gateway) enter(ctx *fasthttp.RequestCtx, snap *snapshot, p *party) bool {
	switch denied := g.places.Enter(p.seat, snap.file.Limits.InFlight); denied {
	case tenant.Admitted:
		return true
	case tenant.DeniedShare:
		p.stats.throttled[denied].Add(1)
		retryAfter(ctx, time.Second)
		g.refuse(ctx, refusedShare, fasthttp.StatusServiceUnavailable, "the gateway is near its limit and the tenant over its share")
	default:
		retryAfter(ctx, time.Second)
		g.refuse(ctx, refusedInFlight, fasthttp.StatusServiceUnavailable, "the gateway is at its limit")
	}
	return false
}

// carry takes room for a large body of a tenant, or answers that there is none.
func (g *Gateway) carry(ctx *fasthttp.RequestCtx, p *party, size int64) bool {
	if g.answering.take(p.bodies, 0, size) {
		return true
	}
	p.stats.throttled[tenant.DeniedBodies].Add(1)
	retryAfter(ctx, time.Second)
	g.refuse(ctx, refusedTenantBodies, fasthttp.StatusServiceUnavailable, "the tenant has too many large bodies in flight")
	return false
}

// allowance is what a tenant with a quota may still ask for.
type allowance struct {
	quota tenant.Quota
	usage *tenant.Usage
}

// allowanceOf returns that of a tenant with a quota, or nil. What was counted
// before is counted on, also while there is no quota any more, so that one that
// comes back finds it.
func allowanceOf(q tenant.Quota, previous *allowance) *allowance {
	switch {
	case previous != nil:
		return &allowance{q, previous.usage}
	case q == tenant.Quota{}:
		return nil
	default:
		return &allowance{q, new(tenant.Usage)}
	}
}

// spend counts a request against its tenant's quota, or answers that it is
// over it.
func (g *Gateway) spend(ctx *fasthttp.RequestCtx, p *party) bool {
	wait, ok := p.allowance.usage.Take(p.allowance.quota, time.Now())
	if !ok {
		p.stats.throttled[tenant.DeniedQuota].Add(1)
		retryAfter(ctx, wait)
		g.refuse(ctx, refusedQuota, fasthttp.StatusTooManyRequests, "the tenant is over its quota")
	}
	return ok
}
