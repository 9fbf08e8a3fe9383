package tenant

import (
	"encoding/hex"
	"time"
)

// KeyUse is what is known of one key, for operators.
type KeyUse struct {
	// Tenant is the id of the tenant that it belongs to.
	Tenant string
	// Digest is the first eight hexadecimal digits of the key's SHA-256: enough
	// to tell a tenant's keys apart, and nothing that could be turned into one.
	Digest string
	// Expires is when the key ends, or zero.
	Expires time.Time
	// LastUsed is when the key was last good, to the second, or zero if it has
	// not been since the process began or the key came.
	LastUsed time.Time
}

// KeyUses returns what is known of every key, in the order of the entries.
func (d *Directory[T]) KeyUses() []KeyUse {
	var uses []KeyUse
	for _, m := range d.members {
		for _, k := range m.keys {
			use := KeyUse{Tenant: m.id, Digest: hex.EncodeToString(k.Digest[:4]), Expires: k.Expires}
			if second := k.used.Load(); second != 0 {
				use.LastUsed = time.Unix(second, 0).UTC()
			}
			uses = append(uses, use)
		}
	}
	return uses
}

// Resume takes over when the keys were last used from the directory that this
// one follows, for those that the same tenant still has. Until both have served
// their last request either tells of the use of the other. It must be called
// before the directory is used.
func (d *Directory[T]) Resume(previous *Directory[T]) {
	for digest, k := range d.byToken {
		if old, ok := previous.byToken[digest]; ok && old.member.id == k.member.id {
			k.used = old.used
		}
	}
}
