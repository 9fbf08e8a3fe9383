// Package fakeissuer is an authorization server for tests: it publishes keys
// over HTTP, signs whatever it is asked to, and misbehaves as it is told.
package fakeissuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Manner is how an issuer answers.
type Manner string

// The manners.
const (
	Up             Manner = ""                // as it should
	Down           Manner = "down"            // closes the connection without an answer
	Hanging        Manner = "hanging"         // sends nothing until the test ends
	Failing        Manner = "failing"         // 500
	NoOIDC         Manner = "no OIDC"         // has metadata at the place of RFC 8414 only
	NoMetadata     Manner = "no metadata"     // 404
	WrongIssuer    Manner = "wrong issuer"    // in its metadata
	PlainKeys      Manner = "plain keys"      // at an http URL elsewhere
	HugeKeys       Manner = "huge keys"       // more than anybody should read
	RedirectedKeys Manner = "redirected keys" // the keys are elsewhere on the same server
	BrokenKeys     Manner = "broken keys"     // cut off
)

// Issuer is a running server. Its methods are safe for concurrent use.
type Issuer struct {
	// URL is the issuer identifier.
	URL string

	mu      sync.Mutex
	manner  Manner
	keys    []*Key
	fetches int
	stopped chan struct{}
}

// Key is a key pair of an issuer.
type Key struct {
	ID        string // "" for a key without one
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// Start returns an issuer that lives until the test ends, without keys. path is
// what its identifier has behind the host, such as "" or "/realm".
func Start(t testing.TB, path string) *Issuer {
	t.Helper()
	i := &Issuer{stopped: make(chan struct{})}
	s := httptest.NewServer(i)
	i.URL = s.URL + path
	t.Cleanup(func() {
		close(i.stopped)
		s.Close()
	})
	return i
}

// NewKey returns a new key pair that is not published yet.
func NewKey(t testing.TB, id string, algorithm jose.SignatureAlgorithm) *Key {
	t.Helper()
	k := &Key{ID: id, Algorithm: algorithm}
	var err error
	switch algorithm {
	case jose.ES256:
		k.Private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		k.Private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.EdDSA:
		_, k.Private, err = ed25519.GenerateKey(rand.Reader)
	default:
		k.Private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Publish makes keys the published ones, in place of those before.
func (i *Issuer) Publish(keys ...*Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// Behave changes the manner.
func (i *Issuer) Behave(m Manner) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.manner = m
}

// Requests returns how many requests came.
func (i *Issuer) Requests() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// Sign returns a token with these claims. header are further members of its
// header, such as typ.
func (k *Key) Sign(t testing.TB, claims, header map[string]any) string {
	t.Helper()
	o := new(jose.SignerOptions)
	for name, value := range header {
		o.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.Algorithm, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID}}, o)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

// Claims returns those of a good access token of five minutes; more are names
// and values over them. A nil value takes the name away.
func (i *Issuer) Claims(audience string, more ...any) map[string]any {
	now := time.Now().Unix()
	c := map[string]any{"iss": i.URL, "aud": audience, "sub": "agent-7", "iat": now, "exp": now + 300}
	for n := 0; n+1 < len(more); n += 2 {
		if name := more[n].(string); more[n+1] == nil {
			delete(c, name)
		} else {
			c[name] = more[n+1]
		}
	}
	return c
}

// ServeHTTP answers as the manner has it.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	manner, keys := i.manner, i.keys
	i.fetches++
	i.mu.Unlock()
	switch manner {
	case Down:
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			c.Close()
		}
		return
	case Hanging:
		<-i.stopped
		return
	case Failing:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case NoMetadata:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	base, path := "http://"+r.Host, strings.TrimPrefix(i.URL, "http://"+r.Host)
	place := path + "/.well-known/openid-configuration"
	if manner == NoOIDC {
		place = "/.well-known/oauth-authorization-server" + path
	}
	switch r.URL.Path {
	case place:
		metadata := map[string]any{"issuer": i.URL, "jwks_uri": base + "/keys", "authorization_endpoint": base + "/authorize"}
		switch manner {
		case WrongIssuer:
			metadata["issuer"] = i.URL + "/"
		case PlainKeys:
			metadata["jwks_uri"] = "http://192.0.2.1/keys"
		}
		writeJSON(w, metadata)
	case "/keys":
		switch manner {
		case HugeKeys:
			// Good JSON all the same: nothing but its size is wrong.
			_, _ = io.WriteString(w, `{"keys":`+strings.Repeat(" ", 1<<20))
			writeJSON(w, public(keys))
			_, _ = io.WriteString(w, "}")
			return
		case RedirectedKeys:
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		case BrokenKeys:
			_, _ = io.WriteString(w, `{"keys":[{`)
			return
		}
		writeJSON(w, map[string]any{"keys": public(keys)})
	case "/elsewhere":
		writeJSON(w, map[string]any{"keys": public(keys)})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// public returns what is published of keys, behind some that a reader has to
// pass over.
func public(keys []*Key) []any {
	list := []any{
		map[string]any{"kty": "oct", "kid": "symmetric", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"},
		map[string]any{"kty": "unknown", "kid": "unknown"},
	}
	for _, k := range keys {
		list = append(list, jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Use: "sig"})
	}
	return list
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
