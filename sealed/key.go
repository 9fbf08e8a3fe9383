package sealed

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// KeySize is the size of a key, in bytes.
const KeySize = 32

// Key seals and opens secrets. It is safe for concurrent use.
type Key struct {
	id     [idSize]byte // by which files name it; it tells nothing of the key
	aead   cipher.AEAD  // AES-256-GCM, with a random nonce for each file
	digest []byte       // key of digests
}

const idSize = 8

// ErrKey says that a text is not a key. It quotes nothing of it.
var ErrKey = errors.New("sealed: it is not 32 bytes in hexadecimal or base64")

// ParseKey reads a key of 32 bytes, in hexadecimal or in base64 of either
// alphabet, with or without padding. White space around it is left out.
func ParseKey(text string) (*Key, error) {
	text = strings.TrimSpace(text)
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != KeySize {
		text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
		raw, err = base64.RawStdEncoding.Strict().DecodeString(text)
	}
	if err != nil || len(raw) != KeySize {
		return nil, ErrKey
	}
	return newKey(raw)
}

// newKey derives what a key is used for, each part from all of it and none from
// another.
func newKey(raw []byte) (*Key, error) {
	k := new(Key)
	part := func(what string, size int) []byte {
		b, err := hkdf.Key(sha256.New, raw, nil, "ahp-gateway sealed "+what, size)
		if err != nil {
			panic(err) // the sizes are constants that it can make
		}
		return b
	}
	copy(k.id[:], part("id", idSize))
	k.digest = part("digest", sha256.Size)
	block, err := aes.NewCipher(part("secret", KeySize))
	if err != nil {
		return nil, err
	}
	k.aead, err = cipher.NewGCMWithRandomNonce(block)
	return k, err
}

// magic is what every file begins with.
const magic = "ahpseal1"

// about returns what a file is bound to beside its key: no two pairs of tenant
// and name give the same.
func about(tenant, name string) []byte {
	return []byte(magic + tenant + "\x00" + name)
}

func (k *Key) seal(tenant, name string, plain []byte) []byte {
	out := append([]byte(magic), k.id[:]...)
	return k.aead.Seal(out, nil, plain, about(tenant, name))
}

// open opens what one of keys has sealed. Its errors tell nothing of the content.
func open(keys []*Key, tenant, name string, file []byte) (plain []byte, by *Key, err error) {
	rest, ok := bytes.CutPrefix(file, []byte(magic))
	if !ok || len(rest) < idSize {
		return nil, nil, errors.New("it is no sealed secret")
	}
	for _, k := range keys {
		if !bytes.Equal(rest[:idSize], k.id[:]) {
			continue
		}
		plain, err := k.aead.Open(nil, nil, rest[idSize:], about(tenant, name))
		if err != nil {
			return nil, nil, errors.New("it was changed, or is another tenant's or name's")
		}
		return plain, k, nil
	}
	return nil, nil, errors.New("it is sealed by a key that is not given")
}

// digestOf returns the start of a keyed digest in hexadecimal: equal ones of a
// tenant's secret mean an equal value, sealed by the same key. Without the key
// it tells nothing.
func (k *Key) digestOf(tenant, name string, value []byte) string {
	h := hmac.New(sha256.New, k.digest)
	h.Write(about(tenant, name))
	h.Write([]byte{0})
	h.Write(value)
	return hex.EncodeToString(h.Sum(nil)[:4])
}
