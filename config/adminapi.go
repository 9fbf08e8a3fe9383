package config

import "crypto/sha256"

// AdminAPI is the API by which tenants are shown, and those of its store are
// changed. Without keys there is none.
type AdminAPI struct {
	// Keys are the bearer keys of those who may use it. No tenant has one of them.
	Keys []Key
	// TrustDocuments lets its documents have what is the operator's, see
	// [TenantDocument.OperatorOnly].
	TrustDocuments bool
	// SecretsKeys are where the keys are that secrets of tenants are stored under:
	// the first one seals, all of them open. Without any there are no stored secrets.
	SecretsKeys []SecretsKey
	// SecretsDir is the absolute path of the folder that holds them, by default
	// .secrets below TenantsDir. It is "" without SecretsKeys.
	SecretsDir string
	// Store is where the documents are that it changes: "directory" (default), which
	// is TenantsDir, or "redis", which is the server of Shared. With the latter
	// tenants also come from there, those of TenantsDir are not changed, and a
	// [Loader] has to be told what is stored. It is "" without keys.
	Store string
}

// maxAdminKeys bounds how many keys the API may have.
const maxAdminKeys = 64

// adminAPI reads the rest of the section of the API at s, which is o, once the
// tenants are known.
func (r *reader) adminAPI(s spot, o *object, f *File) {
	keys, hasKeys := o.need("keys", "write a list of keys; in each, "+keyInstead[len("write "):])
	o.boolean("trustDocuments", &f.AdminAPI.TrustDocuments)
	f.AdminAPI.Store = "directory"
	o.choice("store", &f.AdminAPI.Store, "directory", "redis")
	if at, ok := o.get("store"); ok && f.AdminAPI.Store == "redis" {
		r.sharedStore(at, f)
	}
	o.done()
	if !o.usable() {
		return
	}
	switch {
	case f.Admin == "off":
		r.mistake(s, "", "there is no private listener to serve it", "write an address for admin, or remove this")
	case !isLoopbackAddress(f.Admin) && f.AdminTLS.CertFile == "":
		r.unless(cause{file: r.main, of: "adminTLS.certFile|adminTLS.keyFile"}).warn(s, "", "its keys travel over plain http to an address that is not loopback", "write adminTLS, or a loopback address for admin, or make sure that nobody listens in that network")
	}
	if f.TenantsDir == "" && f.AdminAPI.Store != "redis" {
		r.unless(cause{file: r.main, of: "tenantsDir|adminApi.store"}).warn(s, "", "there is no folder for tenants: the API shows those that there are and changes none", "write tenantsDir")
	}
	if !hasKeys || !r.is(keys, kindList, "write a list of keys; in each, "+keyInstead[len("write "):]) {
		return
	}
	if n := len(keys.items); n == 0 || n > maxAdminKeys {
		r.mistake(keys, "", "holds "+itoa(n)+" keys", "write one key for each person or program that changes tenants, at most "+itoa(maxAdminKeys))
	}
	owners := make(map[[sha256.Size]byte]string)
	for i := range f.Tenants {
		for _, key := range f.Tenants[i].Keys {
			owners[key.SHA256] = "tenant " + f.Tenants[i].ID
		}
	}
	for i := range keys.items {
		at := keys.item(i)
		key, ok := r.key(at)
		if !ok {
			continue
		}
		if owner, taken := owners[key.SHA256]; taken {
			r.mistake(at, "", "is the key of "+owner+" too", "write another key: who may change tenants is none of them")
			continue
		}
		owners[key.SHA256] = at.path
		f.AdminAPI.Keys = append(f.AdminAPI.Keys, key)
	}
}

// sharedStore checks what the store that replicas share needs.
func (r *reader) sharedStore(s spot, f *File) {
	if f.Shared.Redis.URL == "" {
		r.unless(cause{file: r.main, of: "shared.redis.url"}).mistake(s, shown(s.text), "there is no server that replicas share", "write shared: {redis: {url: redis://host:6379/0}}")
	}
	if f.Discovery.OnFailure == "refuse" {
		r.unless(cause{file: r.main, of: "discovery.onFailure"}).warn(s, "", "a replica does not start, and takes no change, while there is a backend that it has not yet asked for its subscriptions and cannot ask", "write discovery: {onFailure: skip}")
	}
}
