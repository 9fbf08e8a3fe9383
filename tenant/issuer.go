package tenant

import (
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is one authorization server whose access tokens are accepted.
type Issuer struct {
	// URL is the issuer identifier, exactly as its tokens and its metadata have it.
	URL string
	// Audiences are the values of which a token's aud needs one.
	Audiences []string
	// Origin, where it is not empty, makes Origin/t/{tenant}/hooks an audience
	// of the tokens of that tenant, and of no others.
	Origin string
	// Algorithms are the signature algorithms that are accepted, as JWA names
	// them. Symmetric ones verify nothing, whatever stands here.
	Algorithms []string
	// TenantClaim is the claim that holds the tenant's id. Where it is empty,
	// MappingClaim is the claim that Tenants maps to a tenant's id.
	TenantClaim  string
	MappingClaim string
	Tenants      map[string]string
	// ClockSkew is how far the issuer's clock may be from ours.
	ClockSkew time.Duration
	// KeysMaxAge is how long keys hold that the issuer could not be asked for again.
	KeysMaxAge time.Duration
	// Scopes are what a token needs, all of them.
	Scopes []string
}

// Issuers verifies access tokens. It is safe for concurrent use and starts no
// goroutine of its own but while it asks an issuer for its keys, which it does
// when a token needs them: an issuer that cannot be reached keeps nobody from
// starting.
type Issuers struct {
	list []*issuer
	// anyone is set where a claim can hold any tenant's id, and mapped are the
	// tenants that claims are mapped to.
	anyone bool
	mapped map[string]bool
	// verifying holds one for each signature that is being verified.
	verifying chan struct{}
}

type issuer struct {
	Issuer
	algorithms []jose.SignatureAlgorithm
	keys       *keyring
}

// NewIssuers returns the verifier of the issuers' tokens, or nil for none. The
// keys that previous, which may be nil, has of an issuer are taken over, with
// when it was last asked. report, which may be nil, is told when an issuer's
// keys cannot be had, at most once in ten seconds and issuer, and with nil when
// they can again.
func NewIssuers(settings []Issuer, previous *Issuers, report func(issuer string, err error)) *Issuers {
	if len(settings) == 0 {
		return nil
	}
	s := &Issuers{mapped: make(map[string]bool), verifying: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	for _, own := range settings {
		i := &issuer{Issuer: own}
		for _, a := range own.Algorithms {
			i.algorithms = append(i.algorithms, jose.SignatureAlgorithm(a))
		}
		if old := previous.find(own.URL); old != nil {
			i.keys = old.keys
		} else {
			i.keys = newKeyring(own.URL, report)
		}
		s.list = append(s.list, i)
		s.anyone = s.anyone || own.TenantClaim != ""
		for _, id := range own.Tenants {
			s.mapped[id] = true
		}
	}
	return s
}

// find returns the issuer with that identifier, or nil.
func (s *Issuers) find(url string) *issuer {
	if s != nil {
		for _, i := range s.list {
			if i.URL == url {
				return i
			}
		}
	}
	return nil
}

// reach reports whether a token could name the tenant.
func (s *Issuers) reach(id string) bool {
	return s != nil && (s.anyone || s.mapped[id])
}

// token is a token that was found good.
type token struct {
	tenant string
	until  time.Time // by its own claims
	issuer *issuer
	epoch  uint64 // of the issuer's keys
}

// holds reports whether the token is still good: it has not expired, and none
// of the keys that its issuer had then has been taken back.
func (t *token) holds(now time.Time) bool {
	if !now.Before(t.until) {
		return false
	}
	k := t.issuer.current(now)
	return k != nil && k.epoch == t.epoch
}

// current returns the issuer's keys unless there are none or they are too old,
// and has them renewed in the background when it is time.
func (i *issuer) current(now time.Time) *keySet {
	k := i.keys.set.Load()
	if k == nil {
		return nil
	}
	switch age := now.Sub(k.fetched); {
	case age >= i.KeysMaxAge:
		return nil
	case age >= min(renewAfter, i.KeysMaxAge/2):
		i.keys.renew(now)
	}
	return k
}

// verify finds out whose token a JSON Web Token is. What can be said without a
// key is looked at first: neither a signature nor the issuer is bothered with a
// token that is refused anyhow.
func (s *Issuers) verify(raw string, now time.Time) (token, Verdict) {
	refused := Verdict{Result: Refused}
	claimed, ok := unverified(raw)
	if !ok {
		return token{}, refused
	}
	i := s.find(claimed.text("iss"))
	if i == nil {
		return token{}, refused
	}
	jws, err := jose.ParseSignedCompact(raw, i.algorithms)
	if err != nil || !isAccessToken(jws, claimed) {
		return token{}, refused
	}
	t, missing, ok := i.admit(claimed, now)
	if !ok {
		return token{}, refused
	}
	header := jws.Signatures[0].Protected
	set := i.current(now)
	key := set.find(header.KeyID, header.Algorithm)
	good, able := s.isSigned(jws, key)
	if !able {
		return token{}, Verdict{Result: Unavailable, RetryAfter: busyWait}
	}
	if key == nil || !good && header.KeyID == "" {
		// The issuer may have new keys. One that names its keys never gives two
		// the same name, so that a bad signature of a known one is final.
		before := set
		if wait := i.keys.await(now); wait > 0 {
			return token{}, Verdict{Result: Unavailable, RetryAfter: wait}
		}
		if set = i.current(now); set == nil {
			return token{}, Verdict{Result: Unavailable, RetryAfter: i.keys.retryAfter(now)}
		}
		// Whoever had them renewed: they may have come since they were looked at.
		if set != before {
			key = set.find(header.KeyID, header.Algorithm)
			if good, able = s.isSigned(jws, key); !able {
				return token{}, Verdict{Result: Unavailable, RetryAfter: busyWait}
			}
		}
	}
	switch {
	case !good:
		return token{}, refused
	case missing:
		return token{}, Verdict{Result: InsufficientScope, Scope: strings.Join(i.Scopes, " ")}
	}
	t.epoch = set.epoch
	return t, Verdict{Result: OK}
}

// verifyWait is how long a token waits for its signature to be looked at.
const verifyWait = 100 * time.Millisecond

// isSigned reports whether the key, which may be nil, made the signature. able
// is false where too many others are being verified: anybody can send a token
// that costs a signature, and those who have a credential that costs none must
// not wait for them.
func (s *Issuers) isSigned(jws *jose.JSONWebSignature, key *jose.JSONWebKey) (good, able bool) {
	if key == nil {
		return false, true
	}
	select {
	case s.verifying <- struct{}{}:
	default:
		end := time.NewTimer(verifyWait)
		defer end.Stop()
		select {
		case s.verifying <- struct{}{}:
		case <-end.C:
			return false, false
		}
	}
	defer func() { <-s.verifying }()
	_, err := jws.Verify(key)
	return err == nil, true
}

// lacks reports whether one of the wanted is not among the granted.
func lacks(granted, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(scope string) bool { return !slices.Contains(granted, scope) })
}
