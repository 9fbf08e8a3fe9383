package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxKeys is how many live keys a tenant may have.
const maxKeys = 2

// newKey returns a new bearer key of a tenant: ahp_, its id, and 32 random
// bytes in base 62, so that scanners for leaked secrets know it and people see
// whose it is.
func newKey(id string) string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails: it ends the process instead
	return "ahp_" + id + "_" + base62(random)
}

// base62 returns b as 43 letters and digits.
func base62(b [32]byte) string {
	// The digits of big.Int in base 62 are 0-9, a-z, A-Z.
	digits := new(big.Int).SetBytes(b[:]).Text(62)
	return strings.Repeat("0", 43-len(digits)) + digits
}

func digestOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// isDigestStart reports whether s can be the start of a digest that is long
// enough to name one.
func isDigestStart(s string) bool {
	return len(s) >= shortDigest && len(s) <= 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

func (c *call) addKey() *answer {
	c.action = "add-key"
	return c.changeKeys(func(digests []string, live []int) ([]int, *answer) {
		if len(digests) >= maxKeys {
			return nil, tooManyKeys.problem("Delete one first, or rotate.")
		}
		return places(digests), nil
	}, true)
}

// rotateKey adds a key, and keeps of the others the newest alone of those that
// have not expired.
func (c *call) rotateKey() *answer {
	c.action = "rotate-key"
	return c.changeKeys(func(digests []string, live []int) ([]int, *answer) {
		return live[max(0, len(live)-(maxKeys-1)):], nil
	}, true)
}

func (c *call) deleteKey(start string) *answer {
	c.action = "delete-key"
	if !isDigestStart(start) {
		return badDigest.problem("Name the key by 8 to 64 lower-case hexadecimal digits: the first ones of its SHA-256.")
	}
	return c.changeKeys(func(digests []string, live []int) ([]int, *answer) {
		kept := slices.DeleteFunc(places(digests), func(i int) bool { return strings.HasPrefix(digests[i], start) })
		switch {
		case len(kept) == len(digests):
			return nil, noSuchKey.problem("The digests of its keys stand in its document, which GET shows.")
		case !slices.ContainsFunc(kept, func(i int) bool { return slices.Contains(live, i) }):
			return nil, onlyKey.problem("Add another one first, or delete the tenant.")
		}
		return kept, nil
	}, false)
}

// places returns the places of all the keys.
func places(digests []string) []int {
	all := make([]int, len(digests))
	for i := range all {
		all[i] = i
	}
	return all
}

// changeKeys leaves a stored tenant those of its keys whose places keep returns,
// and adds a new one if create is set.
func (c *call) changeKeys(keep func(digests []string, live []int) ([]int, *answer), create bool) *answer {
	check := c.emptyBody
	if create {
		check = func() *answer { return c.emptyPost("application/json", "application/yaml") }
	}
	if refused := check(); refused != nil {
		return refused
	}
	return c.inTurn(func() *answer {
		var old *stored
		var refused *answer
		if len(c.r.Header.Values("If-Match")) > 0 {
			old, refused = c.matched()
		} else {
			old, refused = c.stored()
		}
		if refused != nil {
			return refused
		}
		kept, refused := keep(old.doc.KeyDigests(), old.doc.LiveKeys(time.Now()))
		if refused != nil {
			return refused
		}
		if !create {
			return c.apply(http.StatusOK, nil, old.doc.WithKeys(kept), old, "")
		}
		key := newKey(c.tenant)
		return c.apply(http.StatusOK, nil, old.doc.WithKeys(kept, digestOf(key)), old, key)
	})
}
