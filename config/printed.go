package config

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ParsePrinted reads what Print has written, perhaps on another machine: it reads
// no other file, keys stay shortened, and what was redacted stays that. The
// result is for people and comparisons; it must not be served. name is what
// mistakes call the text.
func ParsePrinted(name string, data []byte) (*File, error) {
	r := newReader(name, func(string) (string, bool) { return "", false })
	r.printed, r.large = true, true
	f, _, err := r.gateway(name, data)
	return f, err
}

// ParseWhole reads what PrintWhole has written. Files that it refers to, those of
// TLS and of secrets, are read as by Parse; a folder of tenants is not.
func ParseWhole(name string, data []byte, env Environ) (*File, []Mistake, error) {
	r := newReader(name, env)
	r.large = true
	r.noteSource(name)
	return r.gateway(name, data)
}

// printedDigest returns the digest whose shortened form Print has written, with
// zeros for what is not known of it.
func printedDigest(text string) (digest [sha256.Size]byte) {
	raw, _ := hex.DecodeString(strings.TrimSuffix(text, "…")) // what is no digest is equal to none
	copy(digest[:], raw)
	return digest
}
