package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const redacted = "redacted"

// Print returns the effective configuration as YAML: every default filled in,
// every document inline, every path absolute. References to secrets are shown,
// secrets never: of a key's digest the first eight digits, of a literal header
// or query value that could be a credential the word "redacted". Equal
// configurations give equal bytes. The result is a gateway file again but for
// the shortened digests; filters and unknown members of documents are not in it.
func (f *File) Print() []byte { return new(printer).file(f) }

// PrintWhole is Print without anything left out: keys are whole digests, and
// what the documents say literally is there. Secrets that are referred to are
// not in it all the same. ParseWhole of it gives a configuration that can be
// served; it is for a file that nobody else may read.
func (f *File) PrintWhole() []byte {
	p := &printer{whole: true}
	return p.file(f)
}

func (p *printer) file(f *File) []byte {
	p.settings(f)
	if len(f.Tenants) == 1 && f.Tenants[0].Open {
		p.tenantBody(&f.Tenants[0])
		return p.out
	}
	if len(f.Tenants) == 0 { // only a folder or a store can say that there is none
		if f.TenantsDir != "" {
			p.text("tenantsDir", f.TenantsDir)
		}
		return p.out
	}
	p.open("tenants")
	for i := range f.Tenants {
		p.item()
		p.tenant(&f.Tenants[i])
		p.close()
	}
	p.close()
	return p.out
}

// PrintSettings returns what Print does, without the tenants.
func (f *File) PrintSettings() []byte {
	p := new(printer)
	p.settings(f)
	return p.out
}

// Print returns the tenant as the one item of a list of tenants that File.Print
// would show, without the list around it.
func (t *Tenant) Print() []byte {
	p := new(printer)
	p.tenant(t)
	return p.out
}

// settings prints everything but the tenants.
func (p *printer) settings(f *File) {
	p.text("listen", f.Listen)
	p.text("admin", f.Admin)
	if f.TLS.CertFile != "" {
		p.open("tls")
		p.text("certFile", f.TLS.CertFile)
		p.text("keyFile", f.TLS.KeyFile)
		if f.TLS.ClientCAFile != "" {
			p.text("clientCAFile", f.TLS.ClientCAFile)
			p.text("clientAuth", f.TLS.ClientAuth)
		}
		p.close()
	}
	if f.AdminTLS.CertFile != "" {
		p.adminTLS(&f.AdminTLS)
	}
	p.open("log")
	p.text("level", f.Log.Level)
	p.text("format", f.Log.Format)
	p.close()
	p.limits(&f.Limits)
	p.open("dedupe")
	p.int("entries", f.Dedupe.Entries)
	p.int("bytes", f.Dedupe.Bytes)
	p.duration("ttl", f.Dedupe.TTL)
	p.close()
	p.open("failClosed")
	p.text("reason", f.FailClosed.Reason)
	p.text("code", f.FailClosed.Code)
	p.close()
	p.open("audit")
	if f.Audit.File != "" {
		p.text("file", f.Audit.File)
	}
	p.bool("stdout", f.Audit.Stdout)
	p.text("overflow", f.Audit.Overflow)
	p.bool("inputs", f.Audit.Inputs)
	p.close()
	p.open("discovery")
	p.duration("timeout", f.Discovery.Timeout)
	p.text("onFailure", f.Discovery.OnFailure)
	p.close()
	if len(f.Auth.Issuers) > 0 {
		p.auth(&f.Auth)
	}
	p.open("metrics")
	p.int("tenants", f.Metrics.Tenants)
	p.close()
	if f.Shared.Redis.URL != "" {
		p.shared(&f.Shared)
	}
	if len(f.AdminAPI.Keys) > 0 {
		p.adminAPI(&f.AdminAPI)
	}
	if p.whole && f.AdminAPI.Store == "redis" { // for documents that are not in it
		p.open("backend")
		p.backendMembers(&f.Backend)
		p.close()
		p.breaker(&f.Backend.Breaker)
	}
}

func (p *printer) adminAPI(a *AdminAPI) {
	p.open("adminApi")
	p.keys(a.Keys)
	p.bool("trustDocuments", a.TrustDocuments)
	p.text("store", a.Store)
	p.storedSecrets(a)
	p.close()
}

func (p *printer) limits(l *Limits) {
	p.open("limits")
	p.int("body", l.Body)
	p.int("response", l.Response)
	p.int("headers", l.Headers)
	p.duration("readTimeout", l.ReadTimeout)
	p.duration("writeTimeout", l.WriteTimeout)
	p.duration("idleTimeout", l.IdleTimeout)
	p.int("connections", l.Connections)
	p.int("connectionsPerIP", l.ConnectionsPerIP)
	p.int("inFlight", l.InFlight)
	p.int("inFlightPerTenant", l.InFlightPerTenant)
	p.rate(l.Rate, l.Burst)
	p.int("quotaDay", l.QuotaDay)
	p.int("quotaMonth", l.QuotaMonth)
	p.duration("budget", l.Budget)
	p.int("observeQueue", l.ObserveQueue)
	p.int("bodyBytes", l.BodyBytes)
	p.int("observeBytes", l.ObserveBytes)
	p.int("auditQueue", l.AuditQueue)
	p.duration("drainTimeout", l.DrainTimeout)
	p.close()
}

func (p *printer) rate(rate float64, burst int) {
	p.float("rate", rate)
	// Without a rate there is no bucket whose size could be written.
	if burst > 0 {
		p.int("burst", burst)
	}
}

func (p *printer) tenant(t *Tenant) {
	p.text("id", t.ID)
	p.credentials(t)
	p.rate(t.Rate, t.Burst)
	p.int("inFlight", t.InFlight)
	p.open("quota")
	p.int("day", t.Quota.Day)
	p.int("month", t.Quota.Month)
	p.close()
	p.int("weight", t.Weight)
	p.tenantBody(t)
}

func (p *printer) tenantBody(t *Tenant) {
	if !t.Secrets.AnyEnv {
		p.secrets(t.Secrets)
	}
	p.open("backends")
	for _, id := range slices.Sorted(maps.Keys(t.Backends)) {
		p.backend(id, t.Backends[id])
	}
	p.close()
	p.open("registration")
	for _, reg := range t.Registrations {
		p.item()
		p.registration(reg)
		p.close()
	}
	p.close()
}

func (p *printer) secrets(g Grant) {
	if g == (Grant{}) {
		p.line("secrets: {}")
		return
	}
	p.open("secrets")
	if g.EnvPrefix != "" {
		p.text("envPrefix", g.EnvPrefix)
	}
	if g.Dir != "" {
		p.text("dir", g.Dir)
	}
	if g.Stored {
		p.bool("stored", true)
	}
	p.close()
}

func (p *printer) backend(id string, b BackendSettings) {
	p.open(yamlText(id))
	p.backendMembers(&b)
	if b.IssuerCAFile != "" {
		p.text("issuerCAFile", b.IssuerCAFile)
	}
	if b.CAFile != "" {
		p.text("caFile", b.CAFile)
	}
	p.breaker(&b.Breaker)
	switch {
	case isEvery(b.Shadow):
		p.text("shadow", "*")
	case len(b.Shadow) > 0:
		p.texts("shadow", b.Shadow)
	}
	p.close()
}

// backendMembers prints what stands in the gateway file's backend too.
func (p *printer) backendMembers(b *BackendSettings) {
	p.bool("allowHTTP", b.AllowHTTP)
	p.bool("allowPrivate", b.AllowPrivate)
	if len(b.AllowAddresses) > 0 {
		p.ranges("allowAddresses", b.AllowAddresses)
	}
	if b.ClientCertFile != "" {
		p.text("clientCertFile", b.ClientCertFile)
		p.text("clientKeyFile", b.ClientKeyFile)
	}
	p.int("inFlight", b.InFlight)
	p.int("connections", b.Connections)
	p.bool("retry", b.Retry)
}

func (p *printer) breaker(b *Breaker) {
	p.open("breaker")
	p.bool("enabled", !b.Disabled)
	p.duration("window", b.Window)
	p.int("buckets", b.Buckets)
	p.int("volume", b.Volume)
	p.float("ratio", b.Ratio)
	p.duration("openFor", b.OpenFor)
	p.int("probes", b.Probes)
	p.close()
}

func (p *printer) registration(reg *Registration) {
	p.text("protocolVersion", reg.Version.String())
	p.open("hooks")
	for i := range reg.Hooks {
		h := &reg.Hooks[i]
		p.item()
		p.text("id", h.ID)
		p.open("transport")
		p.text("type", "http")
		p.text("url", p.url(h.URL))
		if len(h.Headers) > 0 {
			p.open("headers")
			for _, hd := range h.Headers {
				p.header(hd)
			}
			p.close()
		}
		p.close()
		if h.Bearer != nil {
			p.open("authentication")
			p.text("type", "bearer")
			p.secretRef(h.Bearer, "token")
			p.close()
		}
		if h.OAuth != nil {
			p.oauth(h.OAuth)
		}
		if !h.Discover {
			p.open("subscriptions")
			for j := range h.Subscriptions {
				p.subscription(&h.Subscriptions[j])
			}
			p.close()
		}
		p.close()
	}
	p.close()
}

func (p *printer) oauth(c *OAuth) {
	p.open("authentication")
	p.text("type", "oauth")
	p.text("issuer", c.Issuer)
	p.text("resource", p.url(c.Resource))
	p.text("clientId", c.ClientID)
	p.text("flow", "client_credentials")
	if len(c.Scopes) > 0 {
		p.texts("scopes", c.Scopes)
	}
	p.secretRef(c.ClientSecret, "clientSecret")
	p.close()
}

func (p *printer) header(h Header) {
	key := yamlText(h.Name)
	switch {
	case h.Secret != nil:
		p.open(key)
		p.secretRef(h.Secret, "value")
		p.close()
	case !p.whole && looksSecret(strings.ToLower(h.Name), h.Value):
		p.text(key, redacted)
	default:
		p.text(key, h.Value)
	}
}

func (p *printer) secretRef(s *SecretRef, prefix string) {
	if s.Env != "" {
		p.text(prefix+"Env", s.Env)
	} else {
		p.text(prefix+"Ref", s.Ref)
	}
}

func (p *printer) subscription(s *Subscription) {
	p.item()
	if s.ID != "" {
		p.text("id", s.ID)
	}
	p.texts("events", s.Selectors)
	p.text("mode", s.Mode.String())
	if s.Mode == Intercept {
		p.int("timeoutMs", int(s.Timeout/time.Millisecond))
		policy := "fail-open"
		if s.FailClosed {
			policy = "fail-closed"
		}
		p.text("failurePolicy", policy)
	}
	p.bool("includeNative", s.IncludeNative)
	if s.Content.Default != 0 {
		p.open("content")
		p.text("default", s.Content.Default.String())
		for _, c := range slices.Sorted(maps.Keys(s.Content.Categories)) {
			p.text(yamlText(c), s.Content.Categories[c].String())
		}
		p.close()
	}
	if s.Managed {
		p.bool("disableable", false)
	}
	p.close()
}

// url returns a URL as it is shown.
func (p *printer) url(s string) string {
	if p.whole {
		return s
	}
	return hideQuery(s)
}

// printer writes block-style YAML.
type printer struct {
	out   []byte
	depth int
	whole bool // nothing is shortened or hidden
	// dash is set between item and the first line of that item.
	dash bool
}

func (p *printer) line(s string) {
	for range p.depth {
		p.out = append(p.out, "  "...)
	}
	if p.dash {
		copy(p.out[len(p.out)-2:], "- ")
		p.dash = false
	}
	p.out = append(p.out, s...)
	p.out = append(p.out, '\n')
}

// open starts an object or list under key, until close.
func (p *printer) open(key string) {
	p.line(key + ":")
	p.depth++
}

// item starts an item, an object, of a list, until close. Its first line is
// written behind the dash.
func (p *printer) item() {
	p.depth++
	p.dash = true
}

func (p *printer) close() { p.depth-- }

func (p *printer) text(key, value string)  { p.line(key + ": " + yamlText(value)) }
func (p *printer) int(key string, v int)   { p.line(key + ": " + strconv.Itoa(v)) }
func (p *printer) bool(key string, v bool) { p.line(key + ": " + strconv.FormatBool(v)) }
func (p *printer) float(key string, v float64) {
	p.line(key + ": " + strconv.FormatFloat(v, 'g', -1, 64))
}
func (p *printer) duration(key string, v time.Duration) { p.text(key, v.String()) }

func (p *printer) texts(key string, values []string) {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = yamlText(v)
	}
	p.line(key + ": [" + strings.Join(quoted, ", ") + "]")
}

var yamlBare = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// yamlText returns s as a YAML scalar that every reader takes for that string.
func yamlText(s string) string {
	if yamlBare.MatchString(s) && !isOldBool(s) {
		switch strings.ToLower(s) {
		case "true", "false", "null":
		default:
			return s
		}
	}
	// Go's escapes of valid UTF-8 are all escapes of YAML's double quotes.
	return strconv.Quote(s)
}
