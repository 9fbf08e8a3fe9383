package config

import (
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// File is a whole, valid gateway configuration with every default filled in.
// It is immutable once Load has returned it.
type File struct {
	// Listen is the public listener's address. Default 127.0.0.1:8787.
	Listen string
	// Admin is the private listener's address. Default 127.0.0.1:8788. "" is
	// not allowed; "off" serves none.
	Admin string
	// AdminTLS is how the private listener is secured: by default it is not.
	AdminTLS AdminTLS
	// TLS serves the public listener over TLS when CertFile is set.
	TLS TLS
	// Log is the process log.
	Log Log
	// Limits bound what callers can make the gateway hold and do.
	Limits Limits
	// Dedupe is the event-id cache, per tenant.
	Dedupe Dedupe
	// FailClosed is what a harness is told when a fail-closed backend failed.
	FailClosed FailClosed
	// Audit is where decision records go.
	Audit Audit
	// Discovery is how backends that list no subscriptions are asked for them.
	Discovery Discovery
	// Metrics bounds the time series of tenants.
	Metrics Metrics
	// Shared is what replicas of the gateway have in common: by default nothing.
	Shared Shared
	// Auth is whose access tokens are accepted. Without Issuers there are none.
	Auth Auth
	// Backend is what the backends of the store's tenants take over, for those
	// that are yet to come: those of Tenants have it. It is zero without a store.
	Backend BackendSettings
	// Tenants are in document order, and after them those of TenantsDir by the
	// names of their files, and then those of the store by id. There is at least
	// one, unless TenantsDir is set or there is a store. A file that says neither yields one with ID "default" and Open set.
	Tenants []Tenant
	// TenantsDir is the absolute path of a folder whose files, as TenantFiles
	// lists them, are a tenant each, or "".
	TenantsDir string
	// AdminAPI is how tenants are changed over HTTP.
	AdminAPI AdminAPI
	// Sources are the absolute paths of all files that were read, the gateway
	// file first, so that a watcher knows what to watch.
	Sources []string
}

// TLS names a certificate chain and its key, both PEM files.
type TLS struct {
	CertFile, KeyFile string
	// ClientCAFile is a PEM bundle of the roots of client certificates. "" asks
	// for none.
	ClientCAFile string
	// ClientAuth says whether every connection needs a client certificate:
	// "optional" (default) or "required". It is "" where ClientCAFile is.
	ClientAuth string
}

// Log configures the process log on standard error.
type Log struct {
	Level  string // debug, info (default), warn, error
	Format string // text (default) or json
}

// Limits are the gateway's own bounds. See Default for the values.
type Limits struct {
	Body              int           // bytes of a request body; 413 beyond
	BodyBytes         int           // bytes of all request bodies being received or answered, shared by addresses and tenants; 503 beyond
	Response          int           // bytes of a backend's answer; an operational failure beyond
	Headers           int           // bytes of a request's header block; 431 beyond
	ReadTimeout       time.Duration // to read one whole request
	WriteTimeout      time.Duration // to write one whole answer
	IdleTimeout       time.Duration // of a keep-alive connection between requests
	Connections       int           // open connections in all
	ConnectionsPerIP  int           // open connections of one address
	InFlight          int           // requests being served in all, the last quarter shared by weight; 503 beyond
	InFlightPerTenant int           // requests being served for one tenant; 503 beyond
	Rate              float64       // requests per second and tenant; 0 = unlimited; 429 beyond
	Burst             int           // token bucket size of Rate
	QuotaDay          int           // requests per UTC day and tenant; 0 = unlimited; 429 beyond
	QuotaMonth        int           // requests per UTC month and tenant; 0 = unlimited; 429 beyond
	Budget            time.Duration // whole chain of one event
	ObserveQueue      int           // events waiting for one observer
	ObserveBytes      int           // bytes of events waiting for all observers together
	AuditQueue        int           // audit records waiting to be written
	DrainTimeout      time.Duration // for requests and queues at shutdown
}

// Dedupe bounds the memory of one tenant's event-id cache.
type Dedupe struct {
	Entries int           // events remembered per tenant; 0 turns the cache off, joining in flight stays
	Bytes   int           // bytes of answers remembered per tenant
	TTL     time.Duration // how long an answer is remembered
}

// FailClosed is the generic denial after a fail-closed operational failure.
type FailClosed struct{ Reason, Code string }

// Audit configures the decision log. With neither File nor Stdout set there is none.
type Audit struct {
	File     string // path of a JSONL file, appended to
	Stdout   bool   // JSONL on standard output
	Overflow string // "drop" (default; counted) or "block" when the queue is full
	Inputs   bool   // add the tool input, redacted; default false
}

// Discovery is how the gateway asks, whenever it loads a configuration, the
// draft backends whose registration lists no subscriptions for those that they
// want, by hooks/configuration.
type Discovery struct {
	Timeout   time.Duration // for all backends together
	OnFailure string        // "refuse" (default) the configuration, or "skip" a backend that has never answered
}

// Metrics bounds what metrics hold of tenants.
type Metrics struct {
	// Tenants is how many tenants have time series of their own. The others
	// are added up in one.
	Tenants int
}

// Quota is what a tenant may ask for in a UTC day and in a UTC month, in
// requests. 0 is unlimited.
type Quota struct{ Day, Month int }

// Tenant is one party whose events are decided by its own backends only.
type Tenant struct {
	ID string
	// File is the absolute path of the tenant's own file, below TenantsDir, or
	// what StoredName calls its document in the store, or "".
	File string
	// Open admits callers without a credential. Only the single tenant of a
	// file without a tenants section is open, and only on loopback.
	Open bool
	// Keys are the tenant's bearer keys: one or two, or none where it can be
	// reached by a certificate or a token.
	Keys []Key
	// Certificates are the names of client certificates that speak for the
	// tenant. No two tenants share one.
	Certificates []CertificateName
	// Registrations hold at most one document per snapshot, in document order.
	Registrations []*Registration
	// Rate, Burst, InFlight and Quota are File.Limits with the tenant's own
	// values over them. Burst is 0 where Rate is 0.
	Rate     float64
	Burst    int
	InFlight int
	Quota    Quota
	// Weight is the tenant's part, against that of others, of the places for
	// requests in flight when they run out. Default 1.
	Weight int
	// Secrets is what the tenant's documents may refer to.
	Secrets Grant
	// Backends are the gateway's own settings, complete for every hook id of
	// the tenant's registrations.
	Backends map[string]BackendSettings

	read *tenantFile // by a Loader, which keeps it; else nil
}

// Key is a bearer key.
type Key struct {
	SHA256 [sha256.Size]byte // of the key
	// Expires is the instant, in UTC, from which on the key is refused, or zero.
	Expires time.Time
}

// CertificateName is an exact subject alternative name, its host in lower case.
type CertificateName struct {
	Kind  string // uri, dns or email
	Value string
}

// Auth is whose access tokens are accepted.
type Auth struct {
	// Resource is what the gateway is called as an OAuth protected resource
	// (RFC 9728): the URL that harnesses post to. "" publishes no metadata.
	Resource string
	// Issuers are in document order, each there once.
	Issuers []Issuer
}

// Issuer is one authorization server.
type Issuer struct {
	// URL is the issuer identifier: https, or http of a loopback address.
	URL string
	// Audience is what a token's aud needs one of. Empty is Auth.Resource, and
	// for tokens of a tenant that one with /t/{tenant}/hooks as its path too.
	Audience []string
	// Algorithms are the signature algorithms that are accepted.
	Algorithms []string
	// TenantClaim is the claim that holds the tenant's id. Where it is "",
	// MappingClaim (default sub) is the claim that Tenants maps to tenant ids.
	TenantClaim  string
	MappingClaim string
	Tenants      map[string]string
	ClockSkew    time.Duration // between the issuer's clock and ours
	KeysMaxAge   time.Duration // how long keys hold that cannot be asked for again
	Scopes       []string      // a token needs all of them
	// AllowAddresses are addresses that may be dialled for it which otherwise
	// may not: those of its own host may be private, those of others are public.
	AllowAddresses []netip.Prefix
}

// Grant is what an operator lets a tenant's documents refer to. References
// outside it are mistakes.
type Grant struct {
	// AnyEnv grants every environment variable: true only for the open tenant
	// of a file without a tenants section and without a secrets section.
	AnyEnv bool
	// EnvPrefix grants the environment variables that start with it. "" grants none.
	EnvPrefix string
	// Dir grants the files below it to tokenRef, valueRef and clientSecretRef.
	// "" grants none.
	Dir string
	// Stored grants, instead of files, the tenant's own secrets of
	// AdminAPI.SecretsDir to them, by name.
	Stored bool
}

// BackendSettings are ours, not the protocol's: they are keyed by hook id in
// the gateway file so that registration documents stay portable.
type BackendSettings struct {
	// AllowHTTP permits plain http to a host that is not loopback.
	AllowHTTP bool
	// AllowPrivate permits private addresses after resolution: RFC 1918, unique
	// local and shared address space, and loopback. Link-local, metadata and
	// reserved addresses are never dialled. Default true for the open tenant,
	// whose documents are the operator's own, and false for tenants of a list,
	// which may dial loopback only where the URL's host is literally loopback.
	AllowPrivate bool
	// AllowAddresses permits the addresses in these ranges, at most 64, whatever
	// AllowPrivate says; see [egress.Policy]. Where it is written and
	// allowPrivate is not written beside it, AllowPrivate is false.
	AllowAddresses []netip.Prefix
	// ClientCertFile and ClientKeyFile are the PEM certificate chain and key by
	// which the gateway identifies itself in TLS, to the backend alone. Both
	// are set, or none.
	ClientCertFile, ClientKeyFile string
	// IssuerCAFile is a PEM bundle that replaces the platform's trust roots
	// towards the issuer of OAuth tokens.
	IssuerCAFile string
	// CAFile is a PEM bundle that replaces the platform's trust roots.
	CAFile string
	// InFlight caps calls in flight to the backend.
	InFlight int
	// Connections caps open connections to the backend.
	Connections int
	// Retry allows the one retry on a connection that the backend had already closed.
	Retry bool
	// Breaker is the circuit breaker's setting.
	Breaker Breaker
	// Shadow lists the subscription ids whose answers are recorded, never used.
	// "*" means every subscription of the backend. Of a backend that is asked
	// for its subscriptions, they are the ids that it advertises.
	Shadow []string
}

// Breaker is a rolling-window circuit breaker.
type Breaker struct {
	Disabled bool
	Window   time.Duration // what the ratio looks back on
	Buckets  int           // how many steps the window rolls in
	Volume   int           // calls in the window before it may open
	Ratio    float64       // failures per call that open it, 0 < Ratio ≤ 1
	OpenFor  time.Duration // before probes are let through
	Probes   int           // probes at once, and successes that close it
}

// Registration is one valid portable registration document.
type Registration struct {
	Version ahp.Version
	Hooks   []Hook
}

// Hook is one backend of a registration document.
type Hook struct {
	ID      string
	URL     string // absolute, http or https, without userinfo and fragment
	Headers []Header
	// Bearer is nil without an authentication member.
	Bearer *SecretRef
	// OAuth is nil without an OAuth client. It and Bearer are not both set.
	OAuth *OAuth
	// Discover is true in draft where the document lists no subscriptions:
	// Subscriptions is then empty, and the backend is asked for them.
	Discover      bool
	Subscriptions []Subscription
}

// OAuth is a client that obtains its tokens by client credentials (RFC 6749,
// section 4.4).
type OAuth struct {
	Issuer       string   // issuer identifier, an https URL, or http on loopback
	Resource     string   // absolute URI of what tokens are for (RFC 8707)
	ClientID     string   // printable ASCII
	Scopes       []string // in the order of the document; may be empty
	ClientSecret *SecretRef
}

// Header is one of transport.headers (AHP-REG-003). Exactly one of Value and
// Secret is set; an empty literal value has Secret nil.
type Header struct {
	Name   string
	Value  string
	Secret *SecretRef
}

// SecretRef refers to a secret: exactly one member is set.
type SecretRef struct {
	Env string // name of an environment variable
	Ref string // path below the tenant's Grant.Dir, or with Grant.Stored the name of a stored secret
}

// Mode is how a subscription is called.
type Mode uint8

// The subscription modes.
const (
	Intercept Mode = iota + 1
	Observe
)

// Subscription is one entry of a hook's subscriptions.
type Subscription struct {
	ID        string   // local name, or "" ; never on the wire
	Selectors []string // exact names, "family.*" or "*"
	Mode      Mode
	Timeout   time.Duration // intercept only
	// FailClosed is the effective policy: failurePolicy, or true where scope is
	// managed or disableable is false.
	FailClosed bool
	// Managed is true where scope is managed or disableable is false.
	Managed       bool
	IncludeNative bool
	Content       ahp.ContentSelection
	Shadow        bool
}
