package tenant

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
)

// Entry is one tenant as a Directory knows it.
type Entry struct {
	// ID is the tenant's name in /t/{tenant}/hooks.
	ID string
	// Open admits callers without a credential. An open tenant has no keys and
	// is the only one of its directory.
	Open bool
	// Keys are the SHA-256 digests of the tenant's live bearer tokens. No two
	// tenants share one.
	Keys [][sha256.Size]byte
}

// Result is the outcome of Authenticate. The zero value admits nobody.
type Result uint8

// The results.
const (
	// Unauthenticated: there is no usable credential, or nobody's.
	Unauthenticated Result = iota
	// OK: the credential is good and the path is the tenant's.
	OK
	// WrongTenant: the credential is good but the path names another tenant.
	// Whether that tenant exists makes no difference here and must make none
	// in the answer, or callers could find out who else is served.
	WrongTenant
)

// String returns the result's stable name, or "unknown".
func (r Result) String() string {
	switch r {
	case Unauthenticated:
		return "unauthenticated"
	case OK:
		return "ok"
	case WrongTenant:
		return "wrong_tenant"
	default:
		return "unknown"
	}
}

// Directory maps credentials to tenants, and each tenant to whatever T the
// caller attaches to it. It is immutable and safe for concurrent use.
type Directory[T any] struct {
	open    *member[T] // the only tenant, or nil
	byToken map[[sha256.Size]byte]*member[T]
}

// member is one tenant of a directory.
type member[T any] struct {
	id      string
	keys    [][sha256.Size]byte
	payload T
}

// NewDirectory returns the directory of entries; payload[i] is attached to
// entries[i]. A directory without entries admits nobody. NewDirectory refuses an
// empty or repeated id, a tenant that nobody could authenticate as, a digest that
// appears twice, and an open tenant with keys or beside another. Its errors name
// tenants, never digests.
func NewDirectory[T any](entries []Entry, payload []T) (*Directory[T], error) {
	if len(payload) != len(entries) {
		return nil, fmt.Errorf("tenant: %d payloads for %d tenants", len(payload), len(entries))
	}
	d := &Directory[T]{byToken: make(map[[sha256.Size]byte]*member[T])}
	ids := make(map[string]bool, len(entries))
	for i, e := range entries {
		switch {
		case e.ID == "":
			return nil, fmt.Errorf("tenant: tenant %d has no id", i)
		case ids[e.ID]:
			return nil, fmt.Errorf("tenant: %q appears twice", e.ID)
		case e.Open && len(entries) > 1:
			return nil, fmt.Errorf("tenant: %q is open and not the only one", e.ID)
		case e.Open && len(e.Keys) > 0:
			return nil, fmt.Errorf("tenant: %q is open and has keys", e.ID)
		case !e.Open && len(e.Keys) == 0:
			return nil, fmt.Errorf("tenant: %q has no keys and is not open", e.ID)
		}
		ids[e.ID] = true
		m := &member[T]{id: e.ID, keys: slices.Clone(e.Keys), payload: payload[i]}
		if e.Open {
			d.open = m
		}
		for _, k := range e.Keys {
			if other, ok := d.byToken[k]; ok {
				return nil, fmt.Errorf("tenant: %q and %q have a key in common", other.id, e.ID)
			}
			d.byToken[k] = m
		}
	}
	return d, nil
}

// Authenticate returns the payload of the tenant that a request speaks for.
// authorization is the value of the request's only Authorization header, or
// empty; path is the tenant id in the request's path, or "". The payload is
// T's zero value unless the result is OK. An open tenant looks at no
// credential. Authenticate allocates nothing and keeps neither argument.
//
// Tokens are looked up by their SHA-256, in a map. How long that takes depends
// on the digest of what the caller sent, and nobody can choose tokens whose
// digests approach a stored one, so the timing says nothing about a live token.
// The digest that was found is compared once more in constant time, so that
// admission does not rest on how a map compares its keys.
func (d *Directory[T]) Authenticate(authorization []byte, path string) (T, Result) {
	var none T
	m := d.open
	if m == nil {
		token, ok := bearerToken(authorization)
		if !ok {
			return none, Unauthenticated
		}
		if m = d.lookup(token); m == nil {
			return none, Unauthenticated
		}
	}
	if path != "" && path != m.id {
		return none, WrongTenant
	}
	return m.payload, OK
}

// lookup returns the member that token belongs to, or nil.
func (d *Directory[T]) lookup(token []byte) *member[T] {
	digest := sha256.Sum256(token)
	m, ok := d.byToken[digest]
	if !ok {
		return nil
	}
	match := 0
	for i := range m.keys {
		match |= subtle.ConstantTimeCompare(m.keys[i][:], digest[:])
	}
	if match != 1 {
		return nil
	}
	return m
}
