package dedupe

import (
	"crypto/sha256"
	"encoding/binary"
)

// Key names a question. Make one with KeyOf.
type Key [sha256.Size]byte

// Fingerprint identifies the exact content of a question. Make one with FingerprintOf.
type Fingerprint [sha256.Size]byte

// preimageSize is what KeyOf hashes without allocating: far more than a usual
// source URI and event id.
const preimageSize = 512

// KeyOf returns the key of a tuple of parts. Two tuples have the same key only
// if they have the same number of parts and equal parts, however the bytes are
// distributed over them: ("ab", "c") and ("a", "bc") differ.
func KeyOf[T ~string | ~[]byte](parts ...T) Key {
	var stack [preimageSize]byte
	preimage := stack[:0]
	for _, p := range parts {
		preimage = appendPart(preimage, p)
	}
	return sha256.Sum256(preimage)
}

// appendPart appends p behind its length, so that the parts can be read back
// from a preimage in one way only.
func appendPart[T ~string | ~[]byte](dst []byte, p T) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(p)))
	return append(dst, p...)
}

// FingerprintOf returns the fingerprint of a message: the SHA-256 of its bytes.
func FingerprintOf(body []byte) Fingerprint { return sha256.Sum256(body) }
