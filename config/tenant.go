package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const openTenant = "default"

// tenants reads the one open tenant at the top of the file, or the list.
func (r *reader) tenants(o *object, f *File, base *baseSettings, burstSet bool) {
	registration, hasRegistration := o.get("registration")
	backends, hasBackends := o.get("backends")
	secrets, hasSecrets := o.get("secrets")
	tenants, hasTenants := o.get("tenants")
	if !o.usable() {
		return
	}
	if !hasTenants {
		if !hasRegistration {
			o.missing("registration", "write registration: with the path of a document for one open tenant, or tenants: for many")
			return
		}
		t := Tenant{ID: openTenant, Open: true, Rate: f.Limits.Rate, InFlight: f.Limits.InFlightPerTenant}
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
		r.documents(&t, registration, backends, defaults, f)
		f.Tenants = []Tenant{t}
		return
	}
	for _, x := range []struct {
		at    spot
		there bool
	}{{registration, hasRegistration}, {backends, hasBackends}, {secrets, hasSecrets}} {
		if x.there {
			r.mistake(x.at, "", "is for a file without tenants", "write "+x.at.path+" in each tenant instead")
		}
	}
	if !r.is(tenants, kindList, "write a list of tenants") {
		return
	}
	if len(tenants.items) == 0 {
		r.mistake(tenants, "", "is an empty list", "write at least one tenant with id, keys and registration")
	}
	list := &tenantList{ids: make(map[string]string), keys: make(map[[sha256.Size]byte]string), names: make(map[CertificateName]string)}
	if n, ok := o.fields["tls"]; ok {
		list.clients = spot{node: n}.has("clientCAFile")
	}
	for i := range tenants.items {
		f.Tenants = append(f.Tenants, r.tenant(tenants.item(i), f, base.BackendSettings, burstSet, list))
	}
	r.overlaps(tenants, f.Tenants)
}

// tenantList finds what two tenants may not share.
type tenantList struct {
	ids   map[string]string // id to the path of its tenant
	keys  map[[sha256.Size]byte]string
	names map[CertificateName]string
	// clients is set where client certificates are asked for.
	clients bool
}

var tenantID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

func (r *reader) tenant(s spot, f *File, defaults BackendSettings, burstSet bool, all *tenantList) Tenant {
	t := Tenant{Rate: f.Limits.Rate, Burst: f.Limits.Burst, InFlight: f.Limits.InFlightPerTenant}
	o := r.object(s)
	if at, ok := o.need("id", "write lower-case letters, digits and -, such as acme"); ok {
		t.ID = r.tenantID(at, s.path, all)
	}
	if at, ok := o.get("keys"); ok {
		t.Keys = r.keys(at, all)
	}
	if at, ok := o.get("certificates"); ok {
		t.Certificates = r.certificates(at, all)
		if !all.clients {
			r.mistake(at, "", "no client certificate is asked for", "write tls.clientCAFile with the roots of client certificates")
		}
	}
	if o.usable() && !o.has("keys") && !o.has("certificates") && !f.Auth.reaches(t.ID) {
		o.missing("keys", "write one or two keys, such as [{sha256: …}]: a tenant without a key cannot be reached")
	}
	registration, hasRegistration := o.need("registration", "write the path of a registration document, or the document itself")
	backends, _ := o.get("backends")
	rateSet := o.rate(&t.Rate)
	ownBurst := o.count("burst", &t.Burst, 1, maxCount)
	if rateSet && !ownBurst && !burstSet {
		t.Burst = defaultBurst(t.Rate)
	}
	if at, ok := o.get("burst"); ok && ownBurst && t.Rate == 0 {
		r.warn(at, "", "has no effect without a rate", "write rate beside it, or remove it")
	}
	if t.Rate == 0 {
		t.Burst = 0
	}
	o.count("inFlight", &t.InFlight, 1, maxCount)
	if at, ok := o.get("secrets"); ok {
		t.Secrets = r.grant(at)
	}
	o.done()
	if hasRegistration {
		r.documents(&t, registration, backends, defaults, f)
	}
	return t
}

func (r *reader) tenantID(s spot, path string, all *tenantList) string {
	id, ok := r.text(s)
	if !ok {
		return ""
	}
	if !tenantID.MatchString(id) {
		r.mistake(s, shown(id), "is not a tenant id", "write 1 to 63 lower-case letters, digits and -, starting with a letter or digit")
		return ""
	}
	if first, dup := all.ids[id]; dup {
		r.mistake(s, shown(id), "is the id of "+first+" too", "write another id")
		return id
	}
	all.ids[id] = path
	return id
}

const keyInstead = "write {sha256: …} with 64 hexadecimal digits, {env: NAME} or {file: PATH}"

func (r *reader) keys(s spot, all *tenantList) []Key {
	if !r.is(s, kindList, "write a list of one or two keys; in each, "+keyInstead[len("write "):]) {
		return nil
	}
	if n := len(s.items); n == 0 || n > 2 {
		r.mistake(s, "", "holds "+itoa(n)+" keys", "write one key, or two while one replaces the other")
	}
	var keys []Key
	for i := range s.items {
		at := s.item(i)
		key, ok := r.key(at)
		if !ok {
			continue
		}
		if first, dup := all.keys[key.SHA256]; dup {
			r.mistake(at, "", "is the same key as "+first, "write another key: one key names one tenant, once")
			continue
		}
		all.keys[key.SHA256] = at.path
		keys = append(keys, key)
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
		value, set := r.env(name)
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
			r.mistake(file, "", "the key file cannot be read, "+err.Error(), "write the path of a file that holds the bearer key alone, relative to the gateway file")
			return digest, false
		}
		return r.hash(file, string(data))
	default:
		r.mistake(s, "", "needs exactly one of sha256, env and file", keyInstead)
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
	o.done()
	return g
}

// overlaps warns where one tenant's grant holds another's: the first could
// send the second's secrets to its own backend.
func (r *reader) overlaps(s spot, tenants []Tenant) {
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
			r.warn(s.item(grants[i].at), "", "what this tenant is granted in secrets is granted to "+s.item(grants[cover].at).path+" too", "give every tenant a prefix and a folder that no other tenant's covers")
		}
	}
}
