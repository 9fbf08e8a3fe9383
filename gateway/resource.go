package gateway

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// wellKnown is where RFC 9728 has the metadata of a protected resource; the
// path of the resource's own identifier comes behind it.
const wellKnown = "/.well-known/oauth-protected-resource"

// resource is the gateway as an OAuth protected resource.
type resource struct {
	origin string // scheme and host of its identifier
	path   string // of its identifier
	// base is path less /hooks, in front of /t/{tenant}/hooks. tenants is false
	// where path does not end so: nobody could say then where tenants are.
	base    string
	tenants bool
	// members are those of the metadata behind the identifier.
	members []byte
}

// newResource returns what the auth section calls the gateway, or nil.
func newResource(a *config.Auth) *resource {
	if a.Resource == "" {
		return nil
	}
	// It is a URL: config has read it.
	u, _ := url.Parse(a.Resource)
	r := &resource{origin: u.Scheme + "://" + u.Host, path: u.Path}
	r.base, r.tenants = strings.CutSuffix(u.Path, "/hooks")
	members := struct {
		Servers []string `json:"authorization_servers"`
		Methods []string `json:"bearer_methods_supported"`
		Scopes  []string `json:"scopes_supported,omitempty"`
	}{Methods: []string{"header"}}
	for i := range a.Issuers {
		members.Servers = append(members.Servers, a.Issuers[i].URL)
		for _, scope := range a.Issuers[i].Scopes {
			if !slices.Contains(members.Scopes, scope) {
				members.Scopes = append(members.Scopes, scope)
			}
		}
	}
	r.members, _ = json.Marshal(members) // strings always have a JSON form
	return r
}

// issuers are those of the auth section as package tenant takes them.
func (r *resource) issuers(a *config.Auth) []tenant.Issuer {
	var list []tenant.Issuer
	for i := range a.Issuers {
		own := &a.Issuers[i]
		t := tenant.Issuer{
			URL: own.URL, Audiences: own.Audience, Algorithms: own.Algorithms, TenantClaim: own.TenantClaim, MappingClaim: own.MappingClaim,
			Tenants: own.Tenants, ClockSkew: own.ClockSkew, KeysMaxAge: own.KeysMaxAge, Scopes: own.Scopes,
			Allow: own.AllowAddresses,
		}
		if len(own.Audience) == 0 {
			t.Audiences = []string{a.Resource}
			if r.tenants {
				t.Origin = r.origin + r.base
			}
		}
		list = append(list, t)
	}
	return list
}

// identifier returns what the endpoint of a tenant is called, "" being the one
// without a tenant in its path. It depends on the tenant's name only as far as
// that could be one: who else is served stays unknown.
func (r *resource) identifier(name string) (origin, path string) {
	if name == "" || !r.tenants || !isTenantID(name) {
		return r.origin, r.path
	}
	return r.origin, r.base + "/t/" + name + "/hooks"
}

// metadata returns the document at a path, or nil where there is none.
func (r *resource) metadata(path string) []byte {
	suffix, ok := strings.CutPrefix(path, wellKnown)
	if !ok {
		return nil
	}
	name := ""
	if suffix != "" && suffix != r.path {
		rest, ok := strings.CutPrefix(suffix, r.base+"/t/")
		if !ok || !r.tenants {
			return nil
		}
		if name, ok = strings.CutSuffix(rest, "/hooks"); !ok || !isTenantID(name) {
			return nil
		}
	}
	origin, path := r.identifier(name)
	// Neither part has a character that JSON would write in another way.
	return slices.Concat([]byte(`{"resource":"`+origin+path+`",`), r.members[1:])
}

// isTenantID reports whether a tenant could be called so.
func isTenantID(name string) bool {
	if len(name) == 0 || len(name) > 63 || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// serveMetadata answers a request for the metadata, and reports whether it was
// one. It needs no credential: it is how clients learn where to get one.
func (g *Gateway) serveMetadata(ctx *fasthttp.RequestCtx, path []byte) bool {
	r := g.current.Load().resource
	if r == nil {
		return false
	}
	document := r.metadata(string(path))
	if document == nil {
		return false
	}
	if !ctx.IsGet() && !ctx.IsHead() {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD")
		g.refuse(ctx, refusedMethod, fasthttp.StatusMethodNotAllowed, "GET required")
		ctx.SetConnectionClose()
		return true
	}
	if hasBody(&ctx.Request.Header) {
		g.refuse(ctx, refusedFraming, fasthttp.StatusBadRequest, "a body where none is read")
		ctx.SetConnectionClose()
		return true
	}
	ctx.SetStatusCode(fasthttp.StatusOK)
	ctx.SetContentType(jsonType)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	ctx.Response.SetBodyRaw(document)
	return true
}
