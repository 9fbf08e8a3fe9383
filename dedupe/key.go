package dedupe

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/fips140"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// Key names a question. Make one with KeyOf.
type Key [sha256.Size]byte

// Fingerprint identifies the exact content of a question. Make one with
// Fingerprints.
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

// Fingerprints makes fingerprints. Those of one Fingerprints alone can be
// compared. It is safe for concurrent use.
//
// A fingerprint is a GMAC under a random key that nobody knows: whoever chooses
// two different messages, without having seen a fingerprint, makes their
// fingerprints equal with a probability below 2^-100, and it takes a tenth of
// the time of a hash that needs no secret. Fingerprints must therefore never
// leave the process. Where FIPS 140 is enforced, which has no use for a GMAC
// with a fixed nonce, they are SHA-256.
type Fingerprints struct {
	mac   cipher.AEAD // nil for SHA-256
	nonce [12]byte    // always zero: nothing is encrypted
}

// NewFingerprints returns a Fingerprints with a key of its own.
func NewFingerprints() *Fingerprints {
	if fips140.Enforced() {
		return &Fingerprints{}
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // ends the process rather than fail
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("dedupe: " + err.Error()) // the key has the right size
	}
	mac, err := cipher.NewGCM(block)
	if err != nil {
		panic("dedupe: " + err.Error()) // the block has the right size
	}
	return &Fingerprints{mac: mac}
}

// Make sets fp to the fingerprint of a message.
func (f *Fingerprints) Make(fp *Fingerprint, body []byte) {
	if f.mac == nil {
		*fp = sha256.Sum256(body)
		return
	}
	*fp = Fingerprint{}
	f.mac.Seal(fp[:0], f.nonce[:], nil, body)
}
