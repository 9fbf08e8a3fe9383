package tenant

import (
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ahp-gateway/ahp-gateway/internal/fakeissuer"
)

const resource = "https://gateway.example/hooks"

// everyAlgorithm lists the symmetric ones as well: no setting makes them good.
var everyAlgorithm = []string{"RS256", "PS256", "ES256", "ES384", "EdDSA", "HS256", "HS384", "HS512", "none"}

// settingsOf is an issuer whose tokens name the tenant in ahp_tenant.
func settingsOf(i *fakeissuer.Issuer) Issuer {
	return Issuer{URL: i.URL, Audiences: []string{resource}, Algorithms: everyAlgorithm, TenantClaim: "ahp_tenant",
		ClockSkew: 30 * time.Second, KeysMaxAge: 24 * time.Hour}
}

// trusting is a directory of acme and beta that trusts the issuers.
func trusting(t testing.TB, previous *Issuers, settings ...Issuer) *Directory[string] {
	t.Helper()
	d, err := NewDirectory([]Entry{keyed("acme", "acme-key"), {ID: "beta"}}, []string{"acme", "beta"}, NewIssuers(settings, previous, nil))
	if err != nil {
		t.Fatalf("NewDirectory() = %v; want a directory", err)
	}
	return d
}

// show shows a token.
func show(d *Directory[string], token string, now time.Time) (string, Verdict) {
	return d.Authenticate(Request{Authorization: []byte("Bearer " + token), Now: now})
}

func expect(t *testing.T, name string, d *Directory[string], token string, now time.Time, tenant string, want Result) {
	t.Helper()
	if got, v := show(d, token, now); got != tenant || v.Result != want {
		t.Errorf("%s: Authenticate = %q, %v; want %q, %v", name, got, v.Result, tenant, want)
	}
}

func TestTokens(t *testing.T) {
	i := fakeissuer.Start(t, "")
	other := fakeissuer.Start(t, "")
	rsa, ec, ed := fakeissuer.NewKey(t, "rsa", jose.RS256), fakeissuer.NewKey(t, "ec", jose.ES256), fakeissuer.NewKey(t, "ed", jose.EdDSA)
	pss := &fakeissuer.Key{ID: "rsa", Algorithm: jose.PS256, Private: rsa.Private}
	forged := fakeissuer.NewKey(t, "rsa", jose.RS256)
	i.Publish(rsa, ec, ed)
	other.Publish(rsa)
	strict := settingsOf(i)
	strict.Algorithms = []string{"ES256"}
	base := trusting(t, nil, settingsOf(i))
	now := time.Now()
	sec := now.Unix()
	good := func(more ...any) map[string]any {
		return i.Claims(resource, append([]any{"ahp_tenant", "acme"}, more...)...)
	}
	spoil := func(token string, part int, f func([]byte) []byte) string {
		parts := strings.Split(token, ".")
		b, err := base64.RawURLEncoding.DecodeString(parts[part])
		if err != nil {
			t.Fatal(err)
		}
		parts[part] = base64.RawURLEncoding.EncodeToString(f(b))
		return strings.Join(parts, ".")
	}
	// The key to verify with as the secret of a symmetric signature, in the
	// forms that a library could take it for.
	der, err := x509.MarshalPKIXPublicKey(rsa.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	symmetric := func(secret []byte, kid string) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: kid}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		payload, _ := json.Marshal(good())
		signed, err := signer.Sign(payload)
		if err != nil {
			t.Fatal(err)
		}
		compact, _ := signed.CompactSerialize()
		return compact
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"rsa"}`)) + "." + strings.Split(rsa.Sign(t, good(), nil), ".")[1] + "."
	twice := good()
	delete(twice, "ahp_tenant")
	payload, _ := json.Marshal(twice)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: ec.Private, KeyID: "ec"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(strings.TrimSuffix(string(payload), "}") + `,"ahp_tenant":"acme","ahp_tenant":"beta"}`))
	if err != nil {
		t.Fatal(err)
	}
	doubled, _ := signed.CompactSerialize()

	for _, c := range []struct {
		name, token, tenant string
		want                Result
	}{
		{"RS256", rsa.Sign(t, good(), nil), "acme", OK},
		{"PS256", pss.Sign(t, good(), nil), "acme", OK},
		{"ES256", ec.Sign(t, good(), nil), "acme", OK},
		{"EdDSA", ed.Sign(t, good(), nil), "acme", OK},
		{"another tenant", ec.Sign(t, good("ahp_tenant", "beta"), nil), "beta", OK},
		{"several audiences", ec.Sign(t, good("aud", []string{"https://other.example", resource}), nil), "acme", OK},
		{"at+jwt", ec.Sign(t, good(), map[string]any{"typ": "at+jwt"}), "acme", OK},
		{"application/at+jwt", ec.Sign(t, good(), map[string]any{"typ": "application/AT+JWT"}), "acme", OK},
		{"JWT", ec.Sign(t, good(), map[string]any{"typ": "JWT"}), "acme", OK},
		{"no iat", ec.Sign(t, good("iat", nil), nil), "acme", OK},
		{"a fraction of a second", ec.Sign(t, good("exp", float64(sec)+20.5), nil), "acme", OK},
		{"expired within the skew", ec.Sign(t, good("exp", sec-20), nil), "acme", OK},
		{"not before within the skew", ec.Sign(t, good("nbf", sec+20), nil), "acme", OK},
		{"Keycloak's access token with a nonce", ec.Sign(t, good("typ", "Bearer", "nonce", "n"), nil), "acme", OK},
		{"Cognito's access token", ec.Sign(t, good("token_use", "access"), nil), "acme", OK},

		{"wrong audience", ec.Sign(t, good("aud", "https://other.example"), nil), "", Refused},
		{"audience below", ec.Sign(t, good("aud", resource+"/"), nil), "", Refused},
		{"no audience", ec.Sign(t, good("aud", nil), nil), "", Refused},
		{"audience of a wrong type", ec.Sign(t, good("aud", map[string]any{resource: true}), nil), "", Refused},
		{"alg none", none, "", Refused},
		{"HS256 with the public key in DER", symmetric(der, "rsa"), "", Refused},
		{"HS256 with the public key in PEM", symmetric(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "rsa"), "", Refused},
		{"HS256 with a published secret", symmetric([]byte("secret-secret-secret-secret-secret"), "symmetric"), "", Refused},
		{"expired", ec.Sign(t, good("exp", sec-31), nil), "", Refused},
		{"no expiry", ec.Sign(t, good("exp", nil), nil), "", Refused},
		{"expiry null", ec.Sign(t, good("exp", json.RawMessage("null")), nil), "", Refused},
		{"expiry as text", ec.Sign(t, good("exp", fmt.Sprint(sec+300)), nil), "", Refused},
		{"expiry beyond time", ec.Sign(t, good("exp", 1e300), nil), "", Refused},
		{"expiry before time", ec.Sign(t, good("exp", -1e300), nil), "", Refused},
		{"not before", ec.Sign(t, good("nbf", sec+40), nil), "", Refused},
		{"not before as text", ec.Sign(t, good("nbf", "0"), nil), "", Refused},
		{"issued in the future", ec.Sign(t, good("iat", sec+40), nil), "", Refused},
		{"unknown key", fakeissuer.NewKey(t, "unknown", jose.ES256).Sign(t, good(), nil), "", Refused},
		{"another key under a known name", forged.Sign(t, good(), nil), "", Refused},
		{"a key of another type under a known name", (&fakeissuer.Key{ID: "rsa", Algorithm: jose.ES256, Private: ec.Private}).Sign(t, good(), nil), "", Refused},
		{"issuer that is not trusted", rsa.Sign(t, other.Claims(resource, "ahp_tenant", "acme"), nil), "", Refused},
		{"issuer with a slash", rsa.Sign(t, good("iss", i.URL+"/"), nil), "", Refused},
		{"no issuer", rsa.Sign(t, good("iss", nil), nil), "", Refused},
		{"issuer of a wrong type", rsa.Sign(t, good("iss", []string{i.URL}), nil), "", Refused},
		{"unknown tenant", ec.Sign(t, good("ahp_tenant", "nobody"), nil), "", Refused},
		{"no tenant", ec.Sign(t, good("ahp_tenant", nil), nil), "", Refused},
		{"empty tenant", ec.Sign(t, good("ahp_tenant", ""), nil), "", Refused},
		{"tenant in another case", ec.Sign(t, good("ahp_tenant", "ACME"), nil), "", Refused},
		{"tenant as a list", ec.Sign(t, good("ahp_tenant", []string{"acme"}), nil), "", Refused},
		{"tenant as a number", ec.Sign(t, good("ahp_tenant", 7), nil), "", Refused},
		{"claim in another case", ec.Sign(t, good("ahp_tenant", nil, "AHP_tenant", "acme"), nil), "", Refused},
		{"tenant twice", doubled, "", Refused},
		{"refresh token by header", ec.Sign(t, good(), map[string]any{"typ": "refresh+jwt"}), "", Refused},
		{"proof by header", ec.Sign(t, good(), map[string]any{"typ": "dpop+jwt"}), "", Refused},
		{"type that is no text", ec.Sign(t, good(), map[string]any{"typ": 7}), "", Refused},
		{"Keycloak's identity token", ec.Sign(t, good("typ", "ID"), nil), "", Refused},
		{"Keycloak's refresh token", ec.Sign(t, good("typ", "Refresh"), nil), "", Refused},
		{"Cognito's identity token", ec.Sign(t, good("token_use", "id"), nil), "", Refused},
		{"identity token", ec.Sign(t, good("at_hash", "h"), nil), "", Refused},
		{"identity token by nonce", ec.Sign(t, good("nonce", "n"), nil), "", Refused},
		{"bound to a key", ec.Sign(t, good("cnf", map[string]any{"jkt": "x"}), map[string]any{"typ": "at+jwt"}), "", Refused},
		{"claims changed", spoil(ec.Sign(t, good(), nil), 1, func(b []byte) []byte { return []byte(strings.Replace(string(b), "acme", "beta", 1)) }), "", Refused},
		{"signature changed", spoil(ec.Sign(t, good(), nil), 2, func(b []byte) []byte { b[3] ^= 1; return b }), "", Refused},
		{"no signature", strings.TrimRight(ec.Sign(t, good(), nil), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), "", Refused},
		{"no JSON", "eyJ.eyJ.eyJ", "", Refused},
		{"nothing", "..", "", Refused},
		{"empty list of critical headers", ec.Sign(t, good(), map[string]any{"crit": []string{}}), "", Refused},
		{"compressed", ec.Sign(t, good(), map[string]any{"zip": "DEF"}), "", Refused},
		{"encrypted", ec.Sign(t, good(), map[string]any{"enc": "A128GCM"}), "", Refused},
		{"a token inside", ec.Sign(t, good(), map[string]any{"cty": "JWT"}), "", Refused},
		{"a payload that is not encoded", ec.Sign(t, good(), map[string]any{"b64": true}), "", Refused},
		{"logout token", ec.Sign(t, good("events", map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}), nil), "", Refused},
		{"a claim that is named like events", ec.Sign(t, good("events", "none"), nil), "acme", OK},
		{"four parts", ec.Sign(t, good(), nil) + ".eyJ", "", Refused},
		{"critical header", ec.Sign(t, good(), map[string]any{"crit": []string{"x"}, "x": 1}), "", Refused},
	} {
		// Each with keys that are known and with keys that have to be asked for.
		expect(t, c.name+", first", trusting(t, nil, settingsOf(i)), c.token, now, c.tenant, c.want)
		for range 2 {
			expect(t, c.name, base, c.token, now, c.tenant, c.want)
		}
	}
	expect(t, "algorithm that is not listed", trusting(t, nil, strict), rsa.Sign(t, good(), nil), now, "", Refused)
	expect(t, "algorithm that is listed", trusting(t, nil, strict), ec.Sign(t, good(), nil), now, "acme", OK)
	expect(t, "key", base, "acme-key", now, "acme", OK)
	if _, v := base.Authenticate(Request{Authorization: []byte("Bearer " + rsa.Sign(t, good(), nil)), Path: "beta", Now: now}); v.Result != WrongTenant {
		t.Errorf("token of acme on the path of beta = %v; want %v", v.Result, WrongTenant)
	}
}

// A remembered token ends with its expiry, and costs no signature until then.
func TestVerifiedTokensAreRemembered(t *testing.T) {
	i := fakeissuer.Start(t, "")
	key := fakeissuer.NewKey(t, "k", jose.RS256)
	i.Publish(key)
	d, now := trusting(t, nil, settingsOf(i)), time.Now()
	token := key.Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil)
	header := []byte("Bearer " + token)
	expect(t, "first", d, token, now, "acme", OK)
	if got := testing.AllocsPerRun(100, func() { d.Authenticate(Request{Authorization: header, Now: now}) }); got != 0 {
		t.Errorf("allocations of Authenticate with a known token = %v; want 0", got)
	}
	expect(t, "within the skew", d, token, now.Add(325*time.Second), "acme", OK)
	expect(t, "expired", d, token, now.Add(331*time.Second), "", Refused)
	// What is refused is looked at again each time.
	expect(t, "before that", d, token, now, "acme", OK)

	known, _ := d.verified.shard(digest(token)).lru.Get(digest(token))
	for n := range 2 * verifiedTokens {
		d.verified.add(digest(fmt.Sprint(n)), d.members[0], known.token)
	}
	total := 0
	for n := range d.verified.shards {
		total += d.verified.shards[n].lru.Len()
	}
	if total > verifiedTokens {
		t.Errorf("%d tokens are remembered; want at most %d", total, verifiedTokens)
	}
}

// A token has one spelling for each signature: no other one is good, and so none
// takes the room of those that others remember.
func TestSpellingsOfAToken(t *testing.T) {
	i := fakeissuer.Start(t, "")
	// The last character of such a signature has four bits that mean nothing.
	key := fakeissuer.NewKey(t, "k", jose.ES256)
	i.Publish(key)
	d, now := trusting(t, nil, settingsOf(i)), time.Now()
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	loose := 0                                       // of those that mean the same to a reader that is not strict
	for _, sub := range []string{"a", "ab", "abc"} { // for every length of the claims
		token := key.Sign(t, i.Claims(resource, "ahp_tenant", "acme", "sub", sub), nil)
		expect(t, "token", d, token, now, "acme", OK)
		parts := strings.Split(token, ".")
		check := func(part int, other string) {
			t.Helper()
			own := parts[part]
			if own == other {
				return
			}
			a, _ := base64.RawURLEncoding.DecodeString(own)
			b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(other, "="))
			if err != nil || string(a) != string(b) {
				return
			}
			loose++
			all := append([]string(nil), parts...)
			all[part] = other
			expect(t, fmt.Sprintf("part %d as %q", part, other), d, strings.Join(all, "."), now, "", Refused)
		}
		for part, own := range parts {
			for _, c := range alphabet {
				check(part, own[:len(own)-1]+string(c))
			}
			for n := 1; n < 5; n++ {
				check(part, own+strings.Repeat("=", n))
			}
		}
	}
	if loose < 3*15 {
		t.Errorf("%d other spellings; want at least the 15 of each signature", loose)
	}
}

// By ECDSA anybody can make one more signature of a token that has one. It is worth
// no more and no longer than the token, and there is no third.
func TestTwinOfAToken(t *testing.T) {
	i := fakeissuer.Start(t, "")
	key := fakeissuer.NewKey(t, "k", jose.ES256)
	i.Publish(key)
	d, now := trusting(t, nil, settingsOf(i)), time.Now()
	twin := func(token string) string {
		parts := strings.Split(token, ".")
		signature, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err != nil || len(signature) != 64 {
			t.Fatalf("the signature has %d bytes, %v; want 64", len(signature), err)
		}
		s := new(big.Int).SetBytes(signature[32:])
		s.Sub(elliptic.P256().Params().N, s).FillBytes(signature[32:])
		parts[2] = base64.RawURLEncoding.EncodeToString(signature)
		return strings.Join(parts, ".")
	}
	one := key.Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil)
	other := twin(one)
	if other == one || twin(other) != one {
		t.Fatalf("twins of twins are %q and %q; want two", one, other)
	}
	for range 3 {
		expect(t, "token", d, one, now, "acme", OK)
		expect(t, "twin", d, other, now, "acme", OK)
	}
	total := 0
	for n := range d.verified.shards {
		total += d.verified.shards[n].lru.Len()
	}
	if total != 2 {
		t.Errorf("%d tokens are remembered; want the two", total)
	}
	expect(t, "token that has expired", d, one, now.Add(time.Hour), "", Refused)
	expect(t, "its twin", d, other, now.Add(time.Hour), "", Refused)
}

// Scopes are all needed, in whatever form issuers list them; a token without
// them is told so only if it is good otherwise.
func TestScopes(t *testing.T) {
	i := fakeissuer.Start(t, "")
	key := fakeissuer.NewKey(t, "k", jose.ES256)
	i.Publish(key)
	s := settingsOf(i)
	s.Scopes = []string{"ahp.intercept", "ahp.observe"}
	d, now := trusting(t, nil, s), time.Now()
	for _, c := range []struct {
		name  string
		claim []any
		want  Result
	}{
		{"both", []any{"scope", "openid ahp.observe ahp.intercept"}, OK},
		{"scp in one string", []any{"scp", "ahp.observe ahp.intercept"}, OK},
		{"scp as a list", []any{"scp", []string{"ahp.intercept", "ahp.observe"}}, OK},
		{"one", []any{"scope", "ahp.intercept"}, InsufficientScope},
		{"none", nil, InsufficientScope},
		{"a longer one", []any{"scope", "ahp.intercept.x ahp.observe"}, InsufficientScope},
		{"scope as a list", []any{"scope", []string{"ahp.intercept", "ahp.observe"}}, InsufficientScope},
		{"none and expired", []any{"exp", 1}, Refused},
	} {
		token := key.Sign(t, i.Claims(resource, append([]any{"ahp_tenant", "acme"}, c.claim...)...), nil)
		_, v := show(d, token, now)
		if v.Result != c.want || (v.Scope == "ahp.intercept ahp.observe") != (c.want == InsufficientScope) {
			t.Errorf("%s: Authenticate = %+v; want %v, and the scopes if they are what lacks", c.name, v, c.want)
		}
	}
	forged := fakeissuer.NewKey(t, "k", jose.ES256).Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil)
	expect(t, "forged and without scopes", d, forged, now, "", Refused)
}

// A claim can be mapped to a tenant, and a tenant can have its own audience.
func TestMappedTenants(t *testing.T) {
	i := fakeissuer.Start(t, "/realms/a")
	key := fakeissuer.NewKey(t, "k", jose.ES256)
	i.Publish(key)
	s := settingsOf(i)
	s.TenantClaim, s.MappingClaim, s.Tenants = "", "client_id", map[string]string{"client-1": "acme", "client-2": "beta"}
	s.Origin = "https://gateway.example"
	d, now := trusting(t, nil, s), time.Now()
	for _, c := range []struct {
		client any
		aud    string
		tenant string
		want   Result
	}{
		{"client-1", resource, "acme", OK},
		{"client-2", resource, "beta", OK},
		{"client-2", "https://gateway.example/t/beta/hooks", "beta", OK},
		{"client-1", "https://gateway.example/t/beta/hooks", "", Refused},
		{"acme", resource, "", Refused},
		{nil, resource, "", Refused},
		{7, resource, "", Refused},
	} {
		expect(t, fmt.Sprint(c), d, key.Sign(t, i.Claims(c.aud, "client_id", c.client, "ahp_tenant", "acme"), nil), now, c.tenant, c.want)
	}
	if _, err := NewDirectory([]Entry{{ID: "gamma"}}, []int{0}, NewIssuers([]Issuer{s}, nil, nil)); err == nil {
		t.Error("NewDirectory with a tenant that no token is mapped to = no error; want one")
	}
}

// The metadata is also found where RFC 8414 has it.
func TestMetadataOfRFC8414(t *testing.T) {
	for _, path := range []string{"", "/realms/a"} {
		i := fakeissuer.Start(t, path)
		i.Behave(fakeissuer.NoOIDC)
		key := fakeissuer.NewKey(t, "k", jose.ES256)
		i.Publish(key)
		expect(t, "issuer with path "+path, trusting(t, nil, settingsOf(i)), key.Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil), time.Now(), "acme", OK)
	}
}

// New keys are found when a token needs them, and those that were taken back
// end to hold, for remembered tokens too.
func TestRotation(t *testing.T) {
	for _, named := range []bool{true, false} {
		i := fakeissuer.Start(t, "")
		first, second := fakeissuer.NewKey(t, "1", jose.ES256), fakeissuer.NewKey(t, "2", jose.ES256)
		if !named {
			first.ID, second.ID = "", ""
		}
		i.Publish(first)
		d, now := trusting(t, nil, settingsOf(i)), time.Now()
		alien := fakeissuer.NewKey(t, second.ID, jose.ES256).Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil)
		claims := i.Claims(resource, "ahp_tenant", "acme", "exp", now.Unix()+7200)
		old, young := first.Sign(t, claims, nil), second.Sign(t, claims, nil)
		expect(t, "first key", d, old, now, "acme", OK)
		// Somebody else has the issuer asked in vain, right before the new key.
		expect(t, "a key that nobody has", d, alien, now.Add(time.Second), "", Refused)
		if named {
			i.Publish(first, second)
		} else {
			i.Publish(second) // of two without a name none could be picked
		}
		expect(t, "second key, too early", d, young, now.Add(9*time.Second), "", Refused)
		expect(t, "second key", d, young, now.Add(11*time.Second), "acme", OK)
		if named {
			expect(t, "first key beside the second", d, old, now.Add(12*time.Second), "acme", OK)
			i.Publish(second)
			// The keys are old enough to be asked for again, in the background.
			expect(t, "first key, not known to be gone", d, old, now.Add(16*time.Minute), "acme", OK)
			settle(d)
		}
		expect(t, "first key, taken back", d, old, now.Add(16*time.Minute+time.Second), "", Refused)
		expect(t, "second key alone", d, young, now.Add(17*time.Minute), "acme", OK)
	}
}

// settle waits until no issuer is being asked.
func settle(d *Directory[string]) {
	for _, i := range d.issuers.list {
		i.keys.mu.Lock()
		done := i.keys.asking
		i.keys.mu.Unlock()
		if done != nil {
			<-done
		}
	}
}

// Tokens with keys that nobody has do not become requests to the issuer.
func TestFloodOfUnknownKeys(t *testing.T) {
	i := fakeissuer.Start(t, "")
	key, alien := fakeissuer.NewKey(t, "k", jose.ES256), fakeissuer.NewKey(t, "", jose.ES256)
	i.Publish(key)
	d, now := trusting(t, nil, settingsOf(i)), time.Now()
	flood := func(now time.Time) {
		var all sync.WaitGroup
		for n := range 200 {
			alien := *alien
			alien.ID = fmt.Sprint("unknown", n%100)
			token := alien.Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil)
			all.Go(func() { expect(t, "unknown key", d, token, now, "", Refused) })
		}
		all.Wait()
	}
	good := key.Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil)
	expect(t, "known key", d, good, now, "acme", OK)
	if got := i.Requests(); got != 2 {
		t.Fatalf("%d requests for the first token; want 2, metadata and keys", got)
	}
	// Two askings in ten seconds, of two requests each.
	for n, at := range []time.Duration{1, 2, 9, 10, 10, 11, 11, 19, 20} {
		at *= time.Second
		flood(now.Add(at))
		if got, want := i.Requests(), []int{4, 4, 4, 6, 6, 8, 8, 8, 10}[n]; got != want {
			t.Errorf("%d requests after a flood at %v; want %d", got, at, want)
		}
	}
	expect(t, "known key after the flood", d, good, now.Add(20*time.Second), "acme", OK)
}

// An issuer that cannot be asked: what is not known is not admitted, and is not
// called bad either; what is known goes on to hold, for a while.
func TestIssuerThatFails(t *testing.T) {
	for manner, why := range map[fakeissuer.Manner]string{
		fakeissuer.Down:           "metadata: it cannot be reached",
		fakeissuer.Hanging:        "metadata: it did not answer in time",
		fakeissuer.Failing:        "metadata: status 500",
		fakeissuer.NoMetadata:     "metadata: there is none at the well-known places",
		fakeissuer.WrongIssuer:    "metadata: it is that of another issuer",
		fakeissuer.PlainKeys:      "metadata: jwks_uri is no https URL",
		fakeissuer.HugeKeys:       "keys: more than 1048576 bytes",
		fakeissuer.RedirectedKeys: "keys: status 302",
		fakeissuer.BrokenKeys:     "keys: not the JSON that was asked for",
	} {
		t.Run(string(manner), func(t *testing.T) {
			t.Parallel() // some of them are waited for
			i := fakeissuer.Start(t, "")
			key, next := fakeissuer.NewKey(t, "k", jose.ES256), fakeissuer.NewKey(t, "n", jose.ES256)
			i.Publish(key)
			i.Behave(manner)
			now := time.Now()
			claims := i.Claims(resource, "ahp_tenant", "acme", "exp", now.Unix()+90000)
			good, unknown := key.Sign(t, claims, nil), next.Sign(t, claims, nil)
			reports := make(chan error, 16)
			issuers := NewIssuers([]Issuer{settingsOf(i)}, nil, func(issuer string, err error) {
				if issuer != i.URL {
					t.Errorf("report of %s; want %s", issuer, i.URL)
				}
				reports <- err
			})
			d, err := NewDirectory([]Entry{keyed("acme", "acme-key")}, []string{"acme"}, issuers)
			if err != nil {
				t.Fatal(err)
			}

			// Down at the start.
			_, v := show(d, good, now)
			if v.Result != Unavailable || v.RetryAfter < time.Second || v.RetryAfter > renewEvery {
				t.Errorf("token before the issuer was ever reached = %+v; want unavailable, and a time to wait", v)
			}
			settle(d)
			report(t, reports, why)
			if s := issuers.States(); len(s) != 1 || s[0].Failure == "" || s[0].Keys != 0 || !s[0].Fetched.IsZero() {
				t.Errorf("States() = %+v; want the failure", s)
			}
			before := i.Requests()
			if _, v := show(d, good, now.Add(time.Second)); v.Result != Unavailable || v.RetryAfter != 9*time.Second {
				t.Errorf("token a second later = %+v; want unavailable for 9s", v)
			}
			if got := i.Requests(); got != before {
				t.Errorf("%d requests a second later; want none", got-before)
			}
			expect(t, "key of ours", d, "acme-key", now, "acme", OK)
			// What is refused anyhow is refused, not put off.
			expect(t, "wrong audience", d, key.Sign(t, i.Claims("x", "ahp_tenant", "acme"), nil), now, "", Refused)

			// Up again.
			i.Behave(fakeissuer.Up)
			now = now.Add(10 * time.Second)
			expect(t, "token after the issuer came back", d, good, now, "acme", OK)
			report(t, reports, "")
			if s := issuers.States(); s[0].Failure != "" || s[0].Keys != 1 || s[0].Fetched.IsZero() {
				t.Errorf("States() = %+v; want one key and no failure", s)
			}

			// Down later.
			i.Behave(manner)
			_, v = show(d, unknown, now.Add(10*time.Second))
			if want := map[bool]Result{false: Refused, true: Unavailable}[manner == fakeissuer.Hanging]; v.Result != want {
				t.Errorf("token with an unknown key while the issuer is down = %v; want %v", v.Result, want)
			}
			settle(d)
			report(t, reports, why)
			expect(t, "unknown key soon after", d, unknown, now.Add(11*time.Second), "", Refused)
			again, err := NewDirectory([]Entry{keyed("acme", "acme-key")}, []string{"acme"}, NewIssuers([]Issuer{settingsOf(i)}, issuers, nil))
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range []*Directory[string]{d, again} { // a reload forgets no keys
				expect(t, "known key, issuer down", d, good, now.Add(11*time.Second), "acme", OK)
			}
			late := now.Add(23 * time.Hour)
			expect(t, "known key, issuer down for long", again, good, late, "acme", OK)
			settle(again)
			if _, v := show(d, good, now.Add(24*time.Hour)); v.Result != Unavailable {
				t.Errorf("known key, issuer down for too long = %+v; want unavailable", v)
			}
			settle(d)
		})
	}
}

// report fails the test unless the next report is want, or nil for "".
func report(t *testing.T, reports <-chan error, want string) {
	t.Helper()
	select {
	case err := <-reports:
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("report = %v; want %q", err, want)
		}
	case <-time.After(10 * time.Second): // only a test that fails gets there
		t.Fatalf("no report; want %q", want)
	}
}

// A key is for the signatures that it is published for, and for no others.
func TestKeyFits(t *testing.T) {
	p256, p384 := fakeissuer.NewKey(t, "", jose.ES256).Private.Public(), fakeissuer.NewKey(t, "", jose.ES384).Private.Public()
	ed, rsa := fakeissuer.NewKey(t, "", jose.EdDSA).Private.Public(), fakeissuer.NewKey(t, "", jose.RS256).Private.Public()
	for _, c := range []struct {
		key       jose.JSONWebKey
		algorithm string
		want      bool
	}{
		{jose.JSONWebKey{Key: p256}, "ES256", true},
		{jose.JSONWebKey{Key: p256, Use: "sig", Algorithm: "ES256"}, "ES256", true},
		{jose.JSONWebKey{Key: p256, Use: "enc"}, "ES256", false},
		{jose.JSONWebKey{Key: p256}, "ES384", false},
		{jose.JSONWebKey{Key: p384}, "ES384", true},
		{jose.JSONWebKey{Key: p384}, "ES256", false},
		{jose.JSONWebKey{Key: rsa}, "PS512", true},
		{jose.JSONWebKey{Key: rsa, Algorithm: "RS256"}, "PS256", false},
		{jose.JSONWebKey{Key: rsa}, "HS256", false},
		{jose.JSONWebKey{Key: rsa}, "EdDSA", false},
		{jose.JSONWebKey{Key: ed}, "EdDSA", true},
		{jose.JSONWebKey{Key: ed}, "ES256", false},
		{jose.JSONWebKey{Key: []byte("secret")}, "HS256", false},
	} {
		if got := fits(&c.key, c.algorithm); got != c.want {
			t.Errorf("fits(%T for %q %q, %s) = %t; want %t", c.key.Key, c.key.Use, c.key.Algorithm, c.algorithm, got, c.want)
		}
	}
}

// Keys that could not be told apart, or are too weak, verify nothing.
func TestUnusableKeys(t *testing.T) {
	i := fakeissuer.Start(t, "")
	a, b := fakeissuer.NewKey(t, "same", jose.ES256), fakeissuer.NewKey(t, "same", jose.ES256)
	i.Publish(a, b)
	now := time.Now()
	for _, key := range []*fakeissuer.Key{a, b} {
		expect(t, "two keys with one name", trusting(t, nil, settingsOf(i)), key.Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil), now, "", Refused)
	}
	for size, want := range map[int]bool{1024: false, 2048: true} {
		key := weak(t, size)
		if got := isUsable(&jose.JSONWebKey{Key: key.Public()}); got != want {
			t.Errorf("isUsable(RSA of %d bits) = %t; want %t", size, got, want)
		}
		if isUsable(&jose.JSONWebKey{Key: key}) {
			t.Error("isUsable(private key) = true; want false")
		}
	}
}

// A key that is listed twice is one key.
func TestKeyListedTwice(t *testing.T) {
	i := fakeissuer.Start(t, "")
	a, b := fakeissuer.NewKey(t, "a", jose.ES256), fakeissuer.NewKey(t, "b", jose.ES256)
	i.Publish(a, b, a)
	token := a.Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil)
	expect(t, "key that is listed twice", trusting(t, nil, settingsOf(i)), token, time.Now(), "acme", OK)
}

// A list without a key that could verify anything is a mistake of the issuer's:
// the keys from before go on to hold, for as long as if it were down.
func TestListWithoutKeys(t *testing.T) {
	i := fakeissuer.Start(t, "")
	key, young := fakeissuer.NewKey(t, "k", jose.ES256), fakeissuer.NewKey(t, "young", jose.ES256)
	claims := i.Claims(resource, "ahp_tenant", "acme", "exp", time.Now().Add(48*time.Hour).Unix())
	good := key.Sign(t, claims, nil)
	d, now := trusting(t, nil, settingsOf(i)), time.Now()
	expect(t, "token of an issuer without keys", d, good, now, "", Unavailable)
	if s := d.issuers.States(); s[0].Failure != "keys: none that can be used here" {
		t.Errorf("States() = %+v; want that no key can be used", s)
	}
	i.Publish(key)
	now = now.Add(10 * time.Second)
	expect(t, "token after the key has come", d, good, now, "acme", OK)
	i.Publish()
	expect(t, "token of an unknown key", d, young.Sign(t, claims, nil), now.Add(time.Second), "", Refused)
	expect(t, "token after the list was emptied", d, good, now.Add(2*time.Second), "acme", OK)
	expect(t, "token long after that", d, good, now.Add(24*time.Hour), "", Unavailable)
}

// New keys are found at once where the issuer answered a short time ago, and
// before them.
func TestKeysRightAfterAsking(t *testing.T) {
	i := fakeissuer.Start(t, "")
	first, second := fakeissuer.NewKey(t, "1", jose.ES256), fakeissuer.NewKey(t, "2", jose.ES256)
	i.Publish(first)
	d, now := trusting(t, nil, settingsOf(i)), time.Now()
	claims := i.Claims(resource, "ahp_tenant", "acme")
	expect(t, "first key", d, first.Sign(t, claims, nil), now, "acme", OK)
	i.Publish(first, second)
	expect(t, "second key", d, second.Sign(t, claims, nil), now.Add(time.Millisecond), "acme", OK)
}

func TestSecureURL(t *testing.T) {
	for raw, want := range map[string]bool{
		"https://idp.example": true, "https://idp.example:8443/a/b": true, "http://127.0.0.1:1/x": true, "http://[::1]/": true, "http://localhost": true,
		"http://idp.example": false, "http://127.0.0.1.example": false, "ftp://idp.example": false, "https://": false, "https:idp": false, "/x": false,
		"": false, "https://a:b@idp.example": false, "https://idp.example/#f": false, "http://169.254.169.254/": false, "file:///etc/passwd": false,
	} {
		if got := isSecureURL(raw); got != want {
			t.Errorf("isSecureURL(%q) = %t; want %t", raw, got, want)
		}
	}
}

// Errors of the network quote what they are about; ours do not.
func TestTransportFault(t *testing.T) {
	if got := transportFault(errors.New(strings.Repeat("x", 1000))); got != "it cannot be reached" {
		t.Errorf("transportFault = %q; want words of ours", got)
	}
}

func BenchmarkAuthenticateToken(b *testing.B) {
	i := fakeissuer.Start(b, "")
	key := fakeissuer.NewKey(b, "k", jose.RS256)
	i.Publish(key)
	d, now := trusting(b, nil, settingsOf(i)), time.Now()
	header := []byte("Bearer " + key.Sign(b, i.Claims(resource, "ahp_tenant", "acme"), nil))
	b.ReportAllocs()
	for b.Loop() {
		if _, v := d.Authenticate(Request{Authorization: header, Now: now}); v.Result != OK {
			b.Fatal(v.Result)
		}
	}
}

func weak(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// FuzzToken: whatever a token looks like, nothing panics, and nobody is taken
// for a tenant that the issuer has not signed for.
func FuzzToken(f *testing.F) {
	i := fakeissuer.Start(f, "")
	key := fakeissuer.NewKey(f, "k", jose.ES256)
	i.Publish(key)
	d, now := trusting(f, nil, settingsOf(i)), time.Now()
	good := key.Sign(f, i.Claims(resource, "ahp_tenant", "acme"), nil)
	for _, seed := range []string{good, good[:len(good)-1], strings.Replace(good, ".", "..", 1), "eyJ.eyJ.eyJ", "eyJhbGciOiJub25lIn0.e30.", "..", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if tenant, v := show(d, token, now); v.Result == OK && tenant != "acme" || v.Result != OK && tenant != "" {
			t.Errorf("Authenticate(%q) = %q, %v; want acme or nobody", token, tenant, v.Result)
		}
	})
}
