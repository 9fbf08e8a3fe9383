package tenant

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// fetchTimeout bounds one request to an issuer, and how long a caller's
	// request waits for all of them.
	fetchTimeout = 2 * time.Second
	// fetchSize bounds one answer of an issuer, in bytes.
	fetchSize = 1 << 20
	// renewEvery is the least time between two beginnings of asking an issuer:
	// tokens with keys that nobody has must not become requests to it.
	renewEvery = 10 * time.Second
	// renewAfter is the age from which on keys are asked for again, so that
	// those that were taken back end to hold.
	renewAfter = 15 * time.Minute
	// maxWaiting bounds the requests that wait for one issuer.
	maxWaiting = 256
	// maxKeys bounds the keys of one issuer.
	maxKeys = 100
	// busyWait is what callers are told while an issuer is being asked.
	busyWait = time.Second
)

// keyring has the keys of one issuer. It outlives the settings of the issuer.
type keyring struct {
	issuer string
	client *http.Client
	report func(issuer string, err error) // or nil
	set    atomic.Pointer[keySet]         // nil until the issuer has answered once

	mu      sync.Mutex
	began   time.Time     // of asking, last
	asking  chan struct{} // closed when that has ended; nil while nobody asks
	waiting int
	failure error // of asking last, or nil
}

// keySet is what an issuer answered. It never changes.
type keySet struct {
	keys    []jose.JSONWebKey
	fetched time.Time
	// epoch changes when a key is taken back.
	epoch uint64
}

func newKeyring(issuer string, report func(issuer string, err error)) *keyring {
	return &keyring{issuer: issuer, report: report, client: &http.Client{
		Timeout: fetchTimeout,
		// The zero Proxy asks no environment variable.
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: fetchTimeout}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true, // there is nothing more to ask for a long time
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// find returns the only key with that id, or of any id where it is "", that may
// verify signatures of the algorithm, or nil. k may be nil.
func (k *keySet) find(id, algorithm string) *jose.JSONWebKey {
	if k == nil {
		return nil
	}
	var found *jose.JSONWebKey
	for i := range k.keys {
		key := &k.keys[i]
		if id != "" && key.KeyID != id || !fits(key, algorithm) {
			continue
		}
		if found != nil {
			return nil // trying them all would multiply what a forged token costs
		}
		found = key
	}
	return found
}

// fits reports whether a key is one for signatures of the algorithm.
func fits(key *jose.JSONWebKey, algorithm string) bool {
	if key.Use != "" && key.Use != "sig" || key.Algorithm != "" && key.Algorithm != algorithm {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		switch algorithm {
		case "ES256":
			return public.Curve == elliptic.P256()
		case "ES384":
			return public.Curve == elliptic.P384()
		case "ES512":
			return public.Curve == elliptic.P521()
		}
		return false
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	default:
		return false
	}
}

// renew begins to ask the issuer for its keys, unless that is under way or was
// begun less than renewEvery ago. It returns what is closed at the end of what
// is under way, or nil.
func (r *keyring) renew(now time.Time) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begin(now)
}

// begin is renew for who holds the lock.
func (r *keyring) begin(now time.Time) <-chan struct{} {
	if r.asking != nil {
		return r.asking
	}
	if !r.began.IsZero() && now.Sub(r.began) < renewEvery {
		return nil
	}
	done := make(chan struct{})
	r.began, r.asking = now, done
	go func() {
		set, err := r.ask(now)
		r.mu.Lock()
		recovered := r.failure != nil && err == nil
		r.failure = err
		if err == nil {
			r.set.Store(set)
		}
		r.asking = nil
		r.mu.Unlock()
		close(done)
		if r.report != nil && (err != nil || recovered) {
			r.report(r.issuer, err)
		}
	}()
	return done
}

// await has the keys renewed, unless that was done a short time ago, and waits
// for that. wait is not zero where it takes too long.
func (r *keyring) await(now time.Time) (wait time.Duration) {
	r.mu.Lock()
	done := r.begin(now)
	if done == nil {
		r.mu.Unlock()
		return 0
	}
	if r.waiting >= maxWaiting {
		r.mu.Unlock()
		return busyWait
	}
	r.waiting++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
	}()
	end := time.NewTimer(fetchTimeout)
	defer end.Stop()
	select {
	case <-done:
		return 0
	case <-end.C:
		return busyWait
	}
}

// retryAfter is how long it takes until the issuer may be asked again.
func (r *keyring) retryAfter(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(busyWait, renewEvery-now.Sub(r.began))
}

// ask gets the issuer's keys. now is when they are said to be of.
func (r *keyring) ask(now time.Time) (set *keySet, err error) {
	defer func() {
		if p := recover(); p != nil {
			set, err = nil, errors.New("its keys cannot be read")
		}
	}()
	uri, err := r.discover()
	if err != nil {
		return nil, err
	}
	var answer struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if _, err := r.fetch(uri, &answer); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	if answer.Keys == nil || len(*answer.Keys) > maxKeys {
		return nil, fmt.Errorf("keys: no list of at most %d keys", maxKeys)
	}
	set = &keySet{fetched: now}
	for _, raw := range *answer.Keys {
		// A key of a kind that is not known here is for somebody else.
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil && isUsable(&key) {
			set.keys = append(set.keys, key)
		}
	}
	if old := r.set.Load(); old != nil {
		set.epoch = old.epoch
		if !set.covers(old) {
			set.epoch++
		}
	}
	return set, nil
}

// isUsable reports whether a key is public, asymmetric and of a sane strength.
func isUsable(key *jose.JSONWebKey) bool {
	if !key.Valid() || !key.IsPublic() {
		return false
	}
	if public, ok := key.Key.(*rsa.PublicKey); ok {
		return public.N.BitLen() >= 2048 && public.N.BitLen() <= 8192
	}
	return true
}

// covers reports whether every key of old is in k as well, unchanged.
func (k *keySet) covers(old *keySet) bool {
	for i := range old.keys {
		was, still := &old.keys[i], false
		public, ok := was.Key.(interface{ Equal(crypto.PublicKey) bool })
		for j := range k.keys {
			is := &k.keys[j]
			still = still || ok && is.KeyID == was.KeyID && is.Algorithm == was.Algorithm && is.Use == was.Use && public.Equal(is.Key)
		}
		if !still {
			return false
		}
	}
	return true
}

// discover returns where the issuer says that its keys are: by OpenID Connect
// Discovery or, if it has no such document, by RFC 8414.
func (r *keyring) discover() (string, error) {
	base, err := url.Parse(r.issuer)
	if err != nil {
		return "", errors.New("the issuer is no URL")
	}
	path := strings.TrimSuffix(base.Path, "/")
	for _, place := range []string{path + "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server" + path} {
		at := *base
		at.Path, at.RawPath = place, ""
		var answer struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		found, err := r.fetch(at.String(), &answer)
		switch {
		case err != nil:
			return "", fmt.Errorf("metadata: %w", err)
		case !found:
			continue
		case answer.Issuer != r.issuer:
			return "", errors.New("metadata: it is that of another issuer")
		case !isSecureURL(answer.Keys) || base.Scheme == "https" && !strings.HasPrefix(answer.Keys, "https:"):
			return "", errors.New("metadata: jwks_uri is no https URL")
		}
		return answer.Keys, nil
	}
	return "", errors.New("metadata: there is none at the well-known places")
}

// fetch reads a JSON document. found is false where there is none. Its errors
// are short and quote nothing of what came.
func (r *keyring) fetch(from string, into any) (found bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return false, errors.New("not a URL")
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	resp, err := r.client.Do(req)
	if err != nil {
		return false, errors.New(transportFault(err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return false, nil
	case resp.StatusCode != http.StatusOK:
		return false, fmt.Errorf("status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, fetchSize+1))
	switch {
	case err != nil:
		return false, errors.New(transportFault(err))
	case len(body) > fetchSize:
		return false, fmt.Errorf("more than %d bytes", fetchSize)
	case json.Unmarshal(body, into) != nil:
		return false, errors.New("not the JSON that was asked for")
	}
	return true, nil
}

// transportFault says in a few words of ours why a request failed.
func transportFault(err error) string {
	var certificate *tls.CertificateVerificationError
	var resolve *net.DNSError
	var late interface{ Timeout() bool }
	switch {
	case errors.As(err, &certificate):
		return "its certificate is not trusted"
	case errors.As(err, &late) && late.Timeout():
		return "it did not answer in time"
	case errors.As(err, &resolve):
		return "its host name cannot be resolved"
	default:
		return "it cannot be reached"
	}
}

// isSecureURL reports whether raw is an absolute https URL with a host and
// without user and fragment, or an http one of a loopback address.
func isSecureURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return false
	}
	switch u.Scheme {
	case "https":
		return true
	case "http":
		if strings.EqualFold(u.Hostname(), "localhost") {
			return true
		}
		a, err := netip.ParseAddr(u.Hostname())
		return err == nil && a.Unmap().IsLoopback()
	default:
		return false
	}
}

// IssuerState is what is known of one issuer, for operators.
type IssuerState struct {
	Issuer string
	// Keys is how many of its keys are in use.
	Keys int
	// Fetched is when they came, or zero.
	Fetched time.Time
	// Failure is why the issuer could not be asked last, or "".
	Failure string
}

// States returns what is known of every issuer, in order.
func (s *Issuers) States() []IssuerState {
	var states []IssuerState
	if s == nil {
		return nil
	}
	for _, i := range s.list {
		state := IssuerState{Issuer: i.URL}
		if k := i.keys.set.Load(); k != nil {
			state.Keys, state.Fetched = len(k.keys), k.fetched.UTC()
		}
		i.keys.mu.Lock()
		if i.keys.failure != nil {
			state.Failure = i.keys.failure.Error()
		}
		i.keys.mu.Unlock()
		states = append(states, state)
	}
	return states
}
