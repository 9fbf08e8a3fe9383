package tenant

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"sync/atomic"
	"time"
)

// Entry is one tenant as a Directory knows it.
type Entry struct {
	// ID is the tenant's name in /t/{tenant}/hooks.
	ID string
	// Open admits callers without a credential. An open tenant has no keys and
	// is the only one of its directory.
	Open bool
	// Keys are the tenant's bearer keys. No two tenants share one.
	Keys []Key
	// Names are those of client certificates that speak for the tenant. No two
	// tenants share one.
	Names []Name
}

// Directory maps credentials to tenants, and each tenant to whatever T the
// caller attaches to it. It is safe for concurrent use; who is admitted never
// changes, but for what time and the issuers' keys do.
type Directory[T any] struct {
	open    *member[T] // the only tenant, or nil
	members []*member[T]
	byToken map[[sha256.Size]byte]*key[T]
	byName  map[Name]*member[T] // nil where no tenant has names
	// issuers are those whose tokens are accepted, or nil. The tokens that they
	// have found good are remembered.
	issuers  *Issuers
	byID     map[string]*member[T]
	verified *verified[T]
}

// member is one tenant of a directory.
type member[T any] struct {
	id      string
	keys    []*key[T]
	payload T
}

// key is one bearer key at work.
type key[T any] struct {
	Key
	member *member[T]
	// used is when the key was last good, in Unix seconds, or 0. Directories
	// that follow one another share it.
	used *atomic.Int64
}

// NewDirectory returns the directory of entries; payload[i] is attached to
// entries[i], and tokens of issuers, which may be nil, are accepted. A directory
// without entries admits nobody. NewDirectory refuses an empty or repeated id, a
// tenant that nobody could authenticate as, a digest or name that appears twice,
// and an open tenant with credentials, beside another or beside issuers. Its
// errors name tenants, never credentials.
func NewDirectory[T any](entries []Entry, payload []T, issuers *Issuers) (*Directory[T], error) {
	if len(payload) != len(entries) {
		return nil, fmt.Errorf("tenant: %d payloads for %d tenants", len(payload), len(entries))
	}
	d := &Directory[T]{byToken: make(map[[sha256.Size]byte]*key[T]), byID: make(map[string]*member[T], len(entries)), issuers: issuers}
	for i, e := range entries {
		switch {
		case e.ID == "":
			return nil, fmt.Errorf("tenant: tenant %d has no id", i)
		case d.byID[e.ID] != nil:
			return nil, fmt.Errorf("tenant: %q appears twice", e.ID)
		case e.Open && len(entries) > 1:
			return nil, fmt.Errorf("tenant: %q is open and not the only one", e.ID)
		case e.Open && len(e.Keys) > 0:
			return nil, fmt.Errorf("tenant: %q is open and has keys", e.ID)
		case e.Open && (len(e.Names) > 0 || issuers != nil):
			return nil, fmt.Errorf("tenant: %q is open and has names or issuers", e.ID)
		case !e.Open && len(e.Keys)+len(e.Names) == 0 && !issuers.reach(e.ID):
			return nil, fmt.Errorf("tenant: %q has no keys and is not open", e.ID)
		}
		m := &member[T]{id: e.ID, payload: payload[i]}
		d.members = append(d.members, m)
		d.byID[e.ID] = m
		if e.Open {
			d.open = m
		}
		for _, k := range e.Keys {
			if other, ok := d.byToken[k.Digest]; ok {
				return nil, fmt.Errorf("tenant: %q and %q have a key in common", other.member.id, e.ID)
			}
			own := &key[T]{Key: k, member: m, used: new(atomic.Int64)}
			m.keys = append(m.keys, own)
			d.byToken[k.Digest] = own
		}
		for _, n := range e.Names {
			if other, ok := d.byName[n]; ok {
				return nil, fmt.Errorf("tenant: %q and %q have a certificate name in common", other.id, e.ID)
			}
			if d.byName == nil {
				d.byName = make(map[Name]*member[T])
			}
			d.byName[n] = m
		}
	}
	if issuers != nil {
		d.verified = newVerified[T]()
	}
	return d, nil
}

// KnowsNames reports whether a client certificate can speak for any tenant.
func (d *Directory[T]) KnowsNames() bool { return d.byName != nil }

// Authenticate returns the payload of the tenant that a request speaks for. The
// payload is T's zero value unless the result is OK. An open tenant looks at no
// credential. A client certificate that no tenant has counts as none; beside a
// token that is good it has to name the same tenant, and no other. An Authorization value of
// another scheme admits nobody, whatever the certificate says.
//
// Without a token to verify Authenticate allocates nothing, and it keeps
// nothing of the request. With one whose key is not known it can take as long
// as the issuer is waited for, at most two seconds.
//
// Keys are looked up by their SHA-256, in a map. How long that takes depends
// on the digest of what the caller sent, and nobody can choose tokens whose
// digests approach a stored one, so the timing says nothing about a live token.
// The digest that was found is compared once more in constant time, so that
// admission does not rest on how a map compares its keys.
func (d *Directory[T]) Authenticate(r Request) (T, Verdict) {
	var none T
	m := d.open
	if m == nil {
		var v Verdict
		if m, v = d.identify(&r); v.Result != OK {
			return none, v
		}
	}
	if r.Path != "" && r.Path != m.id {
		return none, Verdict{Result: WrongTenant}
	}
	return m.payload, Verdict{Result: OK}
}

// identify returns the member that the request's credentials name.
func (d *Directory[T]) identify(r *Request) (*member[T], Verdict) {
	var certified *member[T]
	var several bool
	if len(r.Names) > 0 && d.byName != nil {
		certified, several = d.certified(r.Names)
	}
	if len(r.Authorization) == 0 {
		if certified == nil {
			return nil, Verdict{}
		}
		return certified, Verdict{Result: OK}
	}
	token, ok := bearerToken(r.Authorization)
	if !ok {
		if isBearer(r.Authorization) {
			return nil, Verdict{Result: Refused}
		}
		return nil, Verdict{}
	}
	m, v := d.bearer(token, r.Now)
	if v.Result == OK && (several || certified != nil && certified != m) {
		return nil, Verdict{Result: TwoTenants}
	}
	return m, v
}

// bearer returns the member that a token belongs to.
func (d *Directory[T]) bearer(token []byte, now time.Time) (*member[T], Verdict) {
	digest := sha256.Sum256(token)
	if k, ok := d.byToken[digest]; ok {
		if subtle.ConstantTimeCompare(k.Digest[:], digest[:]) != 1 || !k.Expires.IsZero() && !now.Before(k.Expires) {
			return nil, Verdict{Result: Refused}
		}
		// Written once a second at most: every core reads it.
		if second := now.Unix(); k.used.Load() != second {
			k.used.Store(second)
		}
		return k.member, Verdict{Result: OK}
	}
	if d.issuers == nil || !isJWT(token) {
		return nil, Verdict{Result: Refused}
	}
	if m := d.verified.get(digest, now); m != nil {
		return m, Verdict{Result: OK}
	}
	t, v := d.issuers.verify(string(token), now)
	if v.Result != OK {
		return nil, v
	}
	m := d.byID[t.tenant]
	if m == nil {
		return nil, Verdict{Result: Refused}
	}
	d.verified.add(digest, m, t)
	return m, v
}

// certified returns the only member that the names belong to, or nil. several
// is true for a certificate that could speak for two tenants: it speaks for none,
// and against every key.
func (d *Directory[T]) certified(names []Name) (found *member[T], several bool) {
	for _, n := range names {
		m := d.byName[n]
		switch {
		case m == nil || m == found:
		case found != nil:
			return nil, true
		default:
			found = m
		}
	}
	return found, false
}
