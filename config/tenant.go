package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const openTenant = "default"

// roster is what tenants are read under, and what they are added to.
type roster struct {
	terms  *tenantTerms
	list   *tenantList
	kept   tenantFiles
	stored bool // there are also those of the store
}

// tenants reads the one open tenant at the top of the file, or the list and the
// folder, and returns what others can be added to; nil with an open one.
func (r *reader) tenants(o *object, f *File, base *baseSettings, burstSet bool) *roster {
	registration, hasRegistration := o.get("registration")
	backends, hasBackends := o.get("backends")
	secrets, hasSecrets := o.get("secrets")
	tenants, hasTenants := o.get("tenants")
	dir, hasDir := o.get("tenantsDir")
	if !o.usable() {
		return nil
	}
	stored := readsStore(o)
	if !hasTenants && !hasDir && !stored {
		if !hasRegistration {
			m := o.at
			m.path = "registration"
			r.unless(cause{file: r.main, of: "adminApi.store", slip: "registration|tenants|tenantsDir"}).mistake(m, "", "is missing", "write registration: with the path of a document for one open tenant, or tenants: or tenantsDir: for many")
			return nil
		}
		t := Tenant{ID: openTenant, Open: true, Rate: f.Limits.Rate, InFlight: f.Limits.InFlightPerTenant,
			Quota: f.Limits.quota(), Weight: defaultWeight}
		if t.Rate > 0 {
			t.Burst = f.Limits.Burst
		}
		defaults := base.BackendSettings
		if !base.hasPrivate {
			defaults.AllowPrivate = true
		}
		t.Secrets = Grant{AnyEnv: !hasSecrets}
		if hasSecrets {
			t.Secrets = r.grant(secrets)
		}
		r.documents(&t, registration, backends, defaults, f.Limits.Budget)
		f.Tenants = []Tenant{t}
		return nil
	}
	for _, x := range []struct {
		at    spot
		there bool
	}{{registration, hasRegistration}, {backends, hasBackends}, {secrets, hasSecrets}} {
		if x.there {
			r.mistake(x.at, "", "is for a file without tenants", "write "+x.at.path+" in each tenant instead")
		}
	}
	terms := &tenantTerms{
		rate: f.Limits.Rate, burst: f.Limits.Burst, inFlight: f.Limits.InFlightPerTenant,
		quota: f.Limits.quota(), budget: f.Limits.Budget, base: base.BackendSettings, auth: f.Auth,
		stored: r.stored, files: r.named(&base.BackendSettings),
	}
	// What was printed has it in any case.
	terms.burstSet = burstSet && !(r.large && f.Limits.Burst == defaultBurst(f.Limits.Rate))
	if n, ok := o.fields["tls"]; ok {
		terms.clients = spot{node: n}.has("clientCAFile")
	}
	to := &roster{terms: terms, list: newTenantList(), kept: r.loader.under(terms, r.change), stored: stored}
	if hasTenants && r.is(tenants, kindList, "write a list of tenants") {
		if len(tenants.items) == 0 {
			r.mistake(tenants, "", "is an empty list", "write at least one tenant with id, keys and registration")
		}
		for i := range tenants.items {
			at := tenants.item(i)
			t, claims := r.tenant(at, terms)
			to.list.add(r, member{at: at}, &claims)
			f.Tenants = append(f.Tenants, t)
		}
	}
	if hasDir {
		r.tenantsDir(dir, f, to)
	}
	return to
}

// tenantTerms are all that reading a tenant takes from the rest of the gateway
// file. While they stay the same, what a Loader has read of a tenant's own file holds.
type tenantTerms struct {
	rate     float64
	burst    int
	burstSet bool // limits.burst was written
	inFlight int
	quota    Quota
	budget   time.Duration
	base     BackendSettings
	clients  bool // client certificates are asked for
	auth     Auth
	stored   string // folder of stored secrets
	// files is the digest of the files that the rest of the gateway file names,
	// such as the roots that all backends are trusted by.
	files [sha256.Size]byte
}

// claims are what no two tenants may both have, and where this one has it.
type claims struct {
	id    spot // without a node where there is no usable one
	keys  []keyClaim
	names []nameClaim
}

// all returns the keys and names, without where they are.
func (c *claims) all() iter.Seq[any] {
	return func(yield func(any) bool) {
		for _, k := range c.keys {
			if !yield(k.key.SHA256) {
				return
			}
		}
		for _, n := range c.names {
			if !yield(n.name) {
				return
			}
		}
	}
}

type keyClaim struct {
	key Key
	at  spot
}

type nameClaim struct {
	name CertificateName
	at   spot
}

// member is one tenant of the list.
type member struct {
	at spot
	// file is the base name of the tenant's own file, or "".
	file string
	// claims are those that it was added with.
	claims *claims
}

// String returns what mistakes call the tenant.
func (m member) String() string {
	if m.file == "" {
		return m.at.path
	}
	return "the tenant in " + shown(m.file)
}

// key returns what mistakes call the key at s of the tenant.
func (m member) key(s spot) string {
	if m.file == "" {
		return s.path
	}
	return s.path + " in " + shown(m.file)
}

// tenantList finds what two tenants may not share.
type tenantList struct {
	members []member
	ids     map[string]string // id to the name of its tenant
	keys    map[[sha256.Size]byte]string
	names   map[CertificateName]string
}

func newTenantList() *tenantList {
	return &tenantList{ids: make(map[string]string), keys: make(map[[sha256.Size]byte]string), names: make(map[CertificateName]string)}
}

// add adds a tenant, and reports what of its claims a tenant before has, or
// itself already.
func (l *tenantList) add(r *reader, m member, c *claims) {
	m.claims = c
	l.members = append(l.members, m)
	if c.id.node != nil {
		if first, dup := l.ids[c.id.text]; dup {
			r.mistake(c.id, shown(c.id.text), "is the id of "+first+" too", "write another id")
		} else {
			l.ids[c.id.text] = m.String()
		}
	}
	for _, k := range c.keys {
		if r.printed {
			break // of digests that were cut off, two may be equal
		}
		if first, dup := l.keys[k.key.SHA256]; dup {
			r.mistake(k.at, "", "is the same key as "+first, "write another key: one key names one tenant, once")
			continue
		}
		l.keys[k.key.SHA256] = m.key(k.at)
	}
	for _, n := range c.names {
		if first, dup := l.names[n.name]; dup {
			r.mistake(n.at, "", "is the same name as "+first, "write another name: one name stands for one tenant, once")
			continue
		}
		l.names[n.name] = m.key(n.at)
	}
}

// remove takes back what add has added last.
func (l *tenantList) remove(m member, c *claims) {
	l.members = l.members[:len(l.members)-1]
	if c.id.node != nil && l.ids[c.id.text] == m.String() {
		delete(l.ids, c.id.text)
	}
	for _, k := range c.keys {
		if l.keys[k.key.SHA256] == m.key(k.at) {
			delete(l.keys, k.key.SHA256)
		}
	}
	for _, n := range c.names {
		if l.names[n.name] == m.key(n.at) {
			delete(l.names, n.name)
		}
	}
}

var tenantID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// IsTenantID reports whether s can be the id of a tenant: 1 to 63 lower-case
// letters, digits and -, starting with a letter or digit.
func IsTenantID(s string) bool { return tenantID.MatchString(s) }

// tenant reads one tenant. That nobody else has its id and keys is left to a
// tenantList.
func (r *reader) tenant(s spot, terms *tenantTerms) (Tenant, claims) {
	t := Tenant{Rate: terms.rate, Burst: terms.burst, InFlight: terms.inFlight, Quota: terms.quota, Weight: defaultWeight}
	var c claims
	o := r.object(s)
	if at, ok := o.need("id", "write lower-case letters, digits and -, such as acme"); ok {
		if t.ID = r.tenantID(at); t.ID != "" {
			c.id = at
		}
	}
	if at, ok := o.get("keys"); ok {
		c.keys = r.keys(at)
		for _, k := range c.keys {
			t.Keys = append(t.Keys, k.key)
		}
	}
	if at, ok := o.get("certificates"); ok {
		c.names = r.certificates(at)
		for _, n := range c.names {
			t.Certificates = append(t.Certificates, n.name)
		}
		if !terms.clients {
			r.unless(cause{file: r.main, of: "tls.clientCAFile"}).mistake(at, "", "no client certificate is asked for", "write tls.clientCAFile with the roots of client certificates")
		}
	}
	if o.usable() && !o.has("keys") && !o.has("certificates") && !terms.auth.reaches(t.ID) {
		m := o.at
		m.path = joinKey(m.path, "keys")
		c := cause{file: r.main, of: "auth.issuers[].tenantClaim|auth.issuers[].tenants", slip: s.members("keys", "certificates")}
		r.unless(c).mistake(m, "", "is missing", "write one or two keys, such as [{sha256: …}]: a tenant without a key cannot be reached")
	}
	registration, hasRegistration := o.need("registration", "write the path of a registration document, or the document itself")
	backends, _ := o.get("backends")
	rateSet := o.rate(&t.Rate)
	ownBurst := o.count("burst", &t.Burst, 1, maxCount)
	if rateSet && !ownBurst && !terms.burstSet {
		t.Burst = defaultBurst(t.Rate)
	}
	if at, ok := o.get("burst"); ok && ownBurst && t.Rate == 0 {
		r.warn(at, "", "has no effect without a rate", "write rate beside it, or remove it")
	}
	if t.Rate == 0 {
		t.Burst = 0
	}
	o.count("inFlight", &t.InFlight, 1, maxCount)
	r.fairness(o, &t)
	if at, ok := o.get("secrets"); ok {
		t.Secrets = r.grant(at)
	}
	o.done()
	if hasRegistration {
		r.documents(&t, registration, backends, terms.base, terms.budget)
	}
	return t, c
}

func (r *reader) tenantID(s spot) string {
	id, ok := r.text(s)
	if !ok {
		return ""
	}
	if !tenantID.MatchString(id) {
		r.mistake(s, shown(id), "is not a tenant id", "write 1 to 63 lower-case letters, digits and -, starting with a letter or digit")
		return ""
	}
	return id
}

const keyInstead = "write {sha256: …} with 64 hexadecimal digits, {env: NAME} or {file: PATH}"

func (r *reader) keys(s spot) []keyClaim {
	if !r.is(s, kindList, "write a list of one or two keys; in each, "+keyInstead[len("write "):]) {
		return nil
	}
	if n := len(s.items); n == 0 || n > 2 {
		r.mistake(s, "", "holds "+itoa(n)+" keys", "write one key, or two while one replaces the other")
	}
	var keys []keyClaim
	for i := range s.items {
		at := s.item(i)
		if key, ok := r.key(at); ok {
			keys = append(keys, keyClaim{key, at})
		}
	}
	return keys
}

// key reads one key. Nothing of what stands there is ever shown: a person may
// have put the key itself where its digest or its place belongs.
func (r *reader) key(s spot) (k Key, ok bool) {
	o := r.object(s)
	k.SHA256, ok = r.digest(s, o)
	if at, there := o.get("expires"); there {
		k.Expires = r.expires(at)
	}
	o.done()
	return k, ok
}

// digest reads the digest of a key, or makes it of the key.
func (r *reader) digest(s spot, o *object) (digest [sha256.Size]byte, ok bool) {
	sum, hasSum := o.get("sha256")
	env, hasEnv := o.get("env")
	file, hasFile := o.get("file")
	if !o.usable() {
		return digest, false
	}
	switch {
	case hasSum && !hasEnv && !hasFile:
		text, ok := r.text(sum)
		if !ok {
			return digest, false
		}
		if r.printed {
			return printedDigest(text), true
		}
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != sha256.Size {
			r.mistake(sum, "", "is not a SHA-256 digest", "write 64 hexadecimal digits, such as the output of sha256sum, never the key itself")
			return digest, false
		}
		return [sha256.Size]byte(raw), true
	case hasEnv && !hasSum && !hasFile:
		name, ok := r.text(env)
		if !ok {
			return digest, false
		}
		if !envName.MatchString(name) {
			r.mistake(env, "", "is not the name of an environment variable", "write letters, digits and _, such as ACME_GATEWAY_KEY")
			return digest, false
		}
		value, set := r.lookup(name)
		if !set {
			r.mistake(env, "", "the environment variable "+cut(name, maxShown)+" is not set", "set it to the bearer key")
			return digest, false
		}
		return r.hash(env, value)
	case hasFile && !hasSum && !hasEnv:
		path, ok := r.path(file)
		if !ok {
			return digest, false
		}
		data, err := r.read(path, maxKey)
		if err != nil {
			r.mistake(file, "", "the key file cannot be read, "+err.Error(), "write the path of a file that holds the bearer key alone, relative to the "+r.role)
			return digest, false
		}
		return r.hash(file, string(data))
	default:
		r.unless(oneOf(s, "sha256", "env", "file")).mistake(s, "", "needs exactly one of sha256, env and file", keyInstead)
		return digest, false
	}
}

const (
	minKey = 16   // bytes of a bearer key
	maxKey = 4096 // bytes of a file that holds one
)

// hash returns the digest of a bearer key that was read from elsewhere.
func (r *reader) hash(s spot, key string) (digest [sha256.Size]byte, ok bool) {
	key = strings.TrimSuffix(strings.TrimSuffix(key, "\n"), "\r")
	if len(key) < minKey {
		r.mistake(s, "", "the key there is empty or shorter than 16 bytes", "make one of at least 16 random bytes, such as the output of: openssl rand -hex 32")
		return digest, false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			r.mistake(s, "", "the key there holds spaces, line breaks or other characters that cannot be sent in a header", "make one of ASCII letters and digits, such as the output of: openssl rand -hex 32")
			return digest, false
		}
	}
	return sha256.Sum256([]byte(key)), true
}

// grant reads what a tenant's documents may refer to.
func (r *reader) grant(s spot) Grant {
	var g Grant
	o := r.object(s)
	if at, ok := o.get("envPrefix"); ok {
		if text, ok := r.text(at); ok {
			if !envName.MatchString(text) {
				r.mistake(at, shown(text), "is not the start of an environment variable's name", "write letters, digits and _, such as ACME_; leave it out to grant none")
			} else {
				g.EnvPrefix = text
			}
		}
	}
	if at, ok := o.get("dir"); ok {
		if path, ok := r.path(at); ok {
			g.Dir = path
		}
	}
	o.boolean("stored", &g.Stored)
	if at, ok := o.get("stored"); ok && g.Stored {
		switch {
		case !r.storing:
			r.unless(cause{file: r.main, of: "adminApi.secretsKey|adminApi.secretsKeys"}).mistake(at, "", "no secrets are stored", "write adminApi.secretsKey in the gateway file, or remove this")
		case o.has("dir"):
			r.mistake(at, "", "is there beside dir", "keep one of them: a reference is the name of a stored secret, or a path below dir")
		}
	}
	o.done()
	return g
}

// overlaps warns where one tenant's grant holds another's: the first could
// send the second's secrets to its own backend.
func (r *reader) overlaps(members []member, tenants []Tenant) {
	type grant struct {
		what string
		at   int
	}
	var envs, dirs []grant
	for i, t := range tenants {
		if t.Secrets.EnvPrefix != "" {
			envs = append(envs, grant{t.Secrets.EnvPrefix, i})
		}
		if t.Secrets.Dir != "" {
			dirs = append(dirs, grant{strings.TrimSuffix(t.Secrets.Dir, string(filepath.Separator)) + string(filepath.Separator), i})
		}
	}
	for _, grants := range [][]grant{envs, dirs} {
		// Sorted, a prefix comes before everything that it covers.
		slices.SortStableFunc(grants, func(a, b grant) int { return cmp.Compare(a.what, b.what) })
		for i, cover := 1, 0; i < len(grants); i++ {
			if !strings.HasPrefix(grants[i].what, grants[cover].what) {
				cover = i
				continue
			}
			r.warn(members[grants[i].at].at, "", "what this tenant is granted in secrets is granted to "+members[grants[cover].at].String()+" too", "give every tenant a prefix and a folder that no other tenant's covers")
		}
	}
}
