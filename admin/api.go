package admin

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/sealed"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

//go:embed openapi.yaml
var openAPI []byte

// Prefix is where the API is on the private listener.
const Prefix = "/admin/v1/"

// Options are what an API works with. All but Admits are needed.
type Options struct {
	// Apply makes the gateway serve a change: it reads the whole configuration as
	// it would be with it, serves that, and then calls Commit, which puts the
	// change in place. Where a step fails the gateway serves what it did before,
	// and the error says why: [config.Mistakes] of the configuration, what Check
	// or Commit returned, or that the gateway cannot use it. It returns the number
	// of the snapshot that serves the change. Apply is called for one change at a
	// time and gives up when ctx ends, unless Commit has begun.
	Apply func(ctx context.Context, c Change) (generation uint64, err error)
	// Record takes the record of a change that was made or refused, of those
	// that were asked for without a good key at most ten a second. It must not
	// wait long.
	Record func(*audit.Record)
	// Skipped returns the ids of those backends of a tenant that is served whose
	// policy does not hold, because they could not be asked for their subscriptions.
	// Nil is that there is none.
	Skipped func(tenant string) (backends []string)
	// Admits reports whether the listener would let a request in that it has let in
	// already. It is asked while Apply checks a change. Nil is that it would.
	Admits func(*http.Request) bool
}

// Change is one change of what the gateway serves.
type Change struct {
	config.Change
	// Begin, unless it is nil, is called before the configuration is read. It does
	// what the gateway has to find done, and returns what takes that back, which is
	// called where the change comes to nothing.
	Begin func() (undo func() error, err error)
	// Check sees the warnings of the configuration with the change in it, and
	// can still refuse that. Where others' changes come before this one, it and
	// Commit are called again.
	Check func(warnings []config.Mistake) error
	// Commit puts the change in place.
	Commit func() error
}

// API serves everything below Prefix. It answers 404 until Use has told it of a
// configuration with adminApi. It is safe for concurrent use.
type API struct {
	options   Options
	turn      chan struct{} // holds one while a change is made
	terms     atomic.Pointer[terms]
	strangers strangers
}

// terms are the configuration as far as it matters here.
type terms struct {
	// callers are by whose key or certificate somebody comes; what is known of
	// them is the start of the key's digest, or the certificate's name with its kind.
	callers *tenant.Directory[string]
	trust   bool // adminApi.trustDocuments
	store   Store
	secrets *sealed.Folder // nil where none are stored
	// lastGood is that of Use.
	lastGood bool
	tenants  []*config.Tenant // by id
}

// New returns an API that is off.
func New(o Options) *API { return &API{options: o, turn: make(chan struct{}, 1)} }

// Use has the API go by f from now on, which the gateway serves. Without
// adminApi in f the API is off. store holds the documents of f's TenantsDir;
// with nil the API shows tenants and changes none. secrets holds their stored
// secrets; with nil there are none. With lastGood f is what was kept from before,
// since the files have a mistake: the API changes none then, because what it
// would change is not what is served.
func (a *API) Use(f *config.File, store Store, secrets *sealed.Folder, lastGood bool) error {
	if len(f.AdminAPI.Keys) == 0 {
		a.terms.Store(nil)
		return nil
	}
	t := &terms{trust: f.AdminAPI.TrustDocuments, store: store, secrets: secrets, lastGood: lastGood}
	var entries []tenant.Entry
	var callers []string
	for _, key := range f.AdminAPI.Keys {
		digest := hex.EncodeToString(key.SHA256[:])
		entries = append(entries, tenant.Entry{ID: digest, Keys: []tenant.Key{{Digest: key.SHA256, Expires: key.Expires}}})
		callers = append(callers, digest[:shortDigest])
	}
	for _, n := range f.AdminTLS.Names {
		kind := tenant.NameURI
		switch n.Kind {
		case tenant.NameDNS.String():
			kind = tenant.NameDNS
		case tenant.NameEmail.String():
			kind = tenant.NameEmail
		}
		name := n.Kind + ":" + n.Value
		entries = append(entries, tenant.Entry{ID: name, Names: []tenant.Name{tenant.NewName(kind, n.Value)}})
		callers = append(callers, name)
	}
	var err error
	if t.callers, err = tenant.NewDirectory(entries, callers, nil); err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	for i := range f.Tenants {
		t.tenants = append(t.tenants, &f.Tenants[i])
	}
	slices.SortFunc(t.tenants, func(a, b *config.Tenant) int { return cmp.Compare(a.ID, b.ID) })
	a.terms.Store(t)
	return nil
}

// shortDigest is how many digits of a key's digest stand for the key.
const shortDigest = 8

// served returns the tenant of that id that the gateway serves, or nil.
func (t *terms) served(id string) *config.Tenant {
	i, ok := slices.BinarySearchFunc(t.tenants, id, func(t *config.Tenant, id string) int { return cmp.Compare(t.ID, id) })
	if !ok {
		return nil
	}
	return t.tenants[i]
}

// manages reports whether a tenant's document is in the store.
func (t *terms) manages(c *config.Tenant) bool {
	return t.store != nil && c.File != "" && c.File == t.store.Place(c.ID)
}

// call is one request.
type call struct {
	*API
	*terms
	w  http.ResponseWriter
	r  *http.Request
	by string

	// What becomes part of the record.
	action, tenant, secret, before, after string
	generation                            uint64
}

// answer is what a request is answered with.
type answer struct {
	status    int
	mediaType string
	body      []byte
	tag       string // of the document as it is now
	location  string
	allow     string
}

func answerJSON(status int, v any) *answer {
	return &answer{status: status, mediaType: "application/json", body: marshal(v)}
}

// patience is how long a change may take, waiting for others included. It is
// less than the listener takes to give an answer up.
const patience = 20 * time.Second

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := a.terms.Load()
	if t == nil {
		http.NotFound(w, r)
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	c := &call{API: a, terms: t, w: w, r: r.WithContext(ctx)}
	answer := c.answer()
	if !isReading(r.Method) {
		c.record(began, answer.status)
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", answer.mediaType)
	if answer.tag != "" {
		h.Set("ETag", `"`+answer.tag+`"`)
	}
	if answer.location != "" {
		h.Set("Location", answer.location)
	}
	if answer.allow != "" {
		h.Set("Allow", answer.allow)
	}
	if answer.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if answer.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "5")
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body)
}

// certificateNames returns the names in the client certificate of a request's
// connection that whoever serves the API has verified, and has found to hold.
func certificateNames(r *http.Request) []tenant.Name {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return tenant.CertificateNames(r.TLS.PeerCertificates[0])
}

func isReading(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// answer authenticates the caller and has the request answered.
func (c *call) answer() *answer {
	var known bool
	if c.by, known = c.terms.caller(c.r); !known {
		return unauthenticated.problem("Send Authorization: Bearer with a key of adminApi.keys, or come with a certificate of adminTLS.names.")
	}
	if !isReading(c.r.Method) && len(c.r.Header["Origin"]) > 0 {
		return crossOrigin.problem("The request has an Origin header.")
	}
	operations := c.operations()
	if operations == nil {
		return c.nothing()
	}
	serve, ok := operations[c.r.Method]
	if !ok {
		var allow []string
		for method := range operations {
			allow = append(allow, method)
		}
		slices.Sort(allow)
		p := methodNotAllowed.problem("Allowed are " + strings.Join(allow, ", ") + ".")
		p.allow = strings.Join(allow, ", ")
		return p
	}
	return serve()
}

// errNoLonger says that a change was asked for by who may not make it any more.
var errNoLonger = errors.New("admin: the caller may not make this change any more")

// stillMay reports whether the caller may make the change under the terms of
// the moment: a request can wait for others, and for a reload that took its key
// back, or the root of its certificate.
func (c *call) stillMay() bool {
	t := c.API.terms.Load()
	if t == nil || c.trust && !t.trust || c.options.Admits != nil && !c.options.Admits(c.r) {
		return false
	}
	_, known := t.caller(c.r)
	return known
}

// caller returns whose key or certificate a request comes with.
func (t *terms) caller(r *http.Request) (by string, known bool) {
	who := tenant.Request{Now: time.Now()}
	switch values := r.Header["Authorization"]; len(values) {
	case 1: // who sends a key comes by that, whatever the certificate
		who.Authorization = []byte(values[0])
	case 0:
		who.Names = certificateNames(r)
	default:
		return "", false
	}
	by, verdict := t.callers.Authenticate(who)
	return by, verdict.Result == tenant.OK
}

// nothing answers that there is nothing at the request's path, and where that has
// what no tenant can be called, what an id is.
func (c *call) nothing() *answer {
	rest, ok := strings.CutPrefix(c.r.URL.EscapedPath(), Prefix+"tenants/")
	if id, _, _ := strings.Cut(rest, "/"); ok && id != "" && !config.IsTenantID(id) {
		return noSuchTenant.problem("An id is 1 to 63 lower-case letters, digits and -, starting with a letter or digit.")
	}
	return noSuchPath.problem("The operations are listed at " + Prefix + "openapi.yaml.")
}

type operations map[string]func() *answer

// operations returns what can be done at the request's path, by method, or nil.
// The path is looked at as it was sent: an id needs no escapes, so what has some
// names nothing.
func (c *call) operations() operations {
	path, ok := strings.CutPrefix(c.r.URL.EscapedPath(), Prefix)
	if !ok {
		return nil
	}
	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 1 && parts[0] == "openapi.yaml":
		return operations{http.MethodGet: func() *answer {
			return &answer{status: http.StatusOK, mediaType: "application/yaml", body: openAPI}
		}}
	case len(parts) == 1 && parts[0] == "tenants":
		return operations{http.MethodGet: c.listTenants, http.MethodPost: c.createTenant}
	case len(parts) < 2 || parts[0] != "tenants" || !config.IsTenantID(parts[1]):
		return nil
	}
	c.tenant = parts[1]
	switch {
	case len(parts) == 2:
		return operations{http.MethodGet: c.getTenant, http.MethodPut: c.putTenant, http.MethodDelete: c.deleteTenant}
	case len(parts) == 3 && parts[2] == "keys":
		return operations{http.MethodPost: c.addKey}
	case len(parts) == 3 && parts[2] == "keys:rotate":
		return operations{http.MethodPost: c.rotateKey}
	case len(parts) == 4 && parts[2] == "keys" && parts[3] != "":
		return operations{http.MethodDelete: func() *answer { return c.deleteKey(parts[3]) }}
	case len(parts) == 3 && parts[2] == "secrets":
		return operations{http.MethodGet: c.listSecrets}
	case len(parts) == 3 && parts[2] == "secrets:reseal":
		return operations{http.MethodPost: c.resealSecrets}
	case len(parts) == 4 && parts[2] == "secrets" && sealed.IsName(parts[3]):
		c.secret = parts[3]
		return operations{http.MethodPut: c.putSecret, http.MethodDelete: c.deleteSecret}
	case len(parts) == 4 && parts[2] == "secrets" && parts[3] != "":
		refuse := func(action string) func() *answer {
			return func() *answer {
				c.action = action
				return badSecretName.problem("Write 1 to 64 lower-case letters, digits, dots, - and _, starting with a letter or digit.")
			}
		}
		return operations{http.MethodPut: refuse("put-secret"), http.MethodDelete: refuse("delete-secret")}
	default:
		return nil
	}
}

func (c *call) record(began time.Time, status int) {
	if c.by == "" && !c.strangers.admit(began) {
		return
	}
	c.options.Record(&audit.Record{
		Time: began, Duration: time.Since(began), Tenant: c.tenant, Generation: c.generation,
		Change: &audit.Change{By: c.by, Action: cmp.Or(c.action, "unknown"), Secret: c.secret, Before: c.before, After: c.after, Status: status},
	})
}
