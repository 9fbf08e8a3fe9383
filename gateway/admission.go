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
		g.throttle(ctx, p, denied, time.Second)
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
	g.throttle(ctx, p, tenant.DeniedBodies, time.Second)
	return false
}

// throttle answers a request that its tenant's own limits deny.
func (g *Gateway) throttle(ctx *fasthttp.RequestCtx, p *party, denied tenant.Denied, wait time.Duration) {
	p.stats.throttled[denied].Add(1)
	retryAfter(ctx, wait)
	switch denied {
	case tenant.DeniedRate:
		g.refuse(ctx, refusedRate, fasthttp.StatusTooManyRequests, "the tenant is over its rate")
	case tenant.DeniedQuota:
		g.refuse(ctx, refusedQuota, fasthttp.StatusTooManyRequests, "the tenant is over its quota")
	case tenant.DeniedUnknown:
		g.refuse(ctx, refusedShared, fasthttp.StatusServiceUnavailable, "what the tenant has used up is not known at the moment")
	case tenant.DeniedBodies:
		g.refuse(ctx, refusedTenantBodies, fasthttp.StatusServiceUnavailable, "the tenant has too many large bodies in flight")
	case tenant.DeniedShare:
		g.refuse(ctx, refusedShare, fasthttp.StatusServiceUnavailable, "the gateway is near its limit and the tenant over its share")
	default:
		g.refuse(ctx, refusedTenantInFlight, fasthttp.StatusServiceUnavailable, "the tenant is at its limit of requests in flight")
	}
}
