package gateway

import (
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// unauthorized answers a request that may not be served, before anything of its
// message is looked at (AHP-AUTH-001). name is the tenant in its path.
func (g *Gateway) unauthorized(ctx *fasthttp.RequestCtx, snap *snapshot, name string, v tenant.Verdict) {
	switch v.Result {
	case tenant.WrongTenant:
		g.refuse(ctx, refusedTenant, fasthttp.StatusForbidden, "the credential is not for this tenant")
	case tenant.TwoTenants:
		g.refuse(ctx, refusedTenant, fasthttp.StatusForbidden, "the credential and the client certificate are not of one tenant")
	case tenant.InsufficientScope:
		challenge(ctx, snap.resource, name, "insufficient_scope", v.Scope)
		g.refuse(ctx, refusedScope, fasthttp.StatusForbidden, "the credential lacks a scope")
	case tenant.Unavailable:
		// It may be good: a client that took a 401 for an answer would get
		// itself another one, in vain.
		retryAfter(ctx, v.RetryAfter)
		g.refuse(ctx, refusedIssuer, fasthttp.StatusServiceUnavailable, "the credential cannot be checked for now")
	case tenant.Refused:
		if g.missesTenants() {
			retryAfter(ctx, time.Second)
			g.refuse(ctx, refusedShared, fasthttp.StatusServiceUnavailable, "not all tenants are known yet")
			return
		}
		challenge(ctx, snap.resource, name, "invalid_token", "")
		g.refuse(ctx, refusedCredential, fasthttp.StatusUnauthorized, "a valid bearer credential is required")
	default:
		// RFC 6750, 3.1: who has shown no token is told of no error.
		challenge(ctx, snap.resource, name, "", "")
		g.refuse(ctx, refusedCredential, fasthttp.StatusUnauthorized, "a valid bearer credential is required")
	}
}

// challenge says what credential would do (RFC 6750, 3, and RFC 9728, 5.1). r
// may be nil. None of what it quotes can hold a quote.
func challenge(ctx *fasthttp.RequestCtx, r *resource, name, failure, scope string) {
	var b strings.Builder
	b.WriteString(`Bearer realm="ahp-gateway"`)
	for _, p := range [][2]string{{"error", failure}, {"scope", scope}, {"resource_metadata", r.metadataURL(name)}} {
		if p[1] != "" {
			b.WriteString(", " + p[0] + `="` + p[1] + `"`)
		}
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, b.String())
}

// metadataURL returns where the metadata of a tenant's endpoint is, or "".
func (r *resource) metadataURL(name string) string {
	if r == nil {
		return ""
	}
	origin, path := r.identifier(name)
	return origin + wellKnown + path
}
