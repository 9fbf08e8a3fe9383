package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Store keeps one document for each tenant. Whatever of it cannot be reached
// makes its methods fail with [ErrUnavailable], and a change that it has to be
// reached for. Its methods are safe for concurrent
// use. Ids are valid ones.
type Store interface {
	// Place names where the document of a tenant is, whether there is one or
	// not: as [config.Tenant.File] says it of a tenant that came from there.
	Place(id string) string
	// Get returns a tenant's document, or [ErrAbsent].
	Get(ctx context.Context, id string) (data []byte, err error)
	// Put writes a document durably and at once: whoever reads finds the old one
	// or the new one. It fails with [ErrChanged] unless the tag of the document
	// that is there is match, or with match "" if there is one.
	Put(ctx context.Context, id string, data []byte, match string) error
	// Delete removes the document whose tag is match, as Put does.
	Delete(ctx context.Context, id, match string) error
}

var (
	// ErrAbsent says that a store has no document of a tenant.
	ErrAbsent = errors.New("admin: there is no such document")
	// ErrChanged says that a document is not the one that was to be changed.
	ErrChanged = errors.New("admin: the document is another one by now")
	// ErrForeign says that what is in a document's place was put there by other
	// means, and cannot be changed without losing that: a link, for example.
	ErrForeign = errors.New("admin: what is in the document's place is no regular file")
	// ErrUnavailable says that the store cannot be reached, or must not be changed
	// for now. What wraps it says to the caller why, and whether it is known that
	// nothing was changed.
	ErrUnavailable = errors.New("admin: the store cannot be had")
)

// tagOf returns the tag of a document: the SHA-256 of its bytes in lower-case
// hexadecimal. Equal tags mean equal documents.
func tagOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
