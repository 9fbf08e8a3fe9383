package tenant

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"
)

// accessToken obtains an access token as a client does: with an authorization
// code, which the issuer gives its default user for.
func accessToken(t *testing.T, m *mockoidc.MockOIDC) string {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	asked, err := client.Get(m.AuthorizationEndpoint() + "?" + url.Values{
		"client_id": {m.ClientID}, "response_type": {"code"}, "scope": {"openid"}, "state": {"s"}, "redirect_uri": {"http://127.0.0.1/back"},
	}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	asked.Body.Close()
	back, err := asked.Location()
	if err != nil {
		t.Fatal(err)
	}
	answered, err := client.PostForm(m.TokenEndpoint(), url.Values{
		"client_id": {m.ClientID}, "client_secret": {m.ClientSecret}, "grant_type": {"authorization_code"}, "code": {back.Query().Get("code")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer answered.Body.Close()
	var got struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(answered.Body).Decode(&got); err != nil || got.AccessToken == "" {
		t.Fatalf("the issuer answered %s without an access token: %v", answered.Status, err)
	}
	return got.AccessToken
}

// The tokens of an OpenID Connect provider that somebody else has written are
// accepted from its discovery document on, after it has changed its key those of the
// new one, and for as long as they last.
func TestForeignIssuer(t *testing.T) {
	m, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Shutdown() }()
	of := func(audience string, tenants map[string]string) *Directory[string] {
		return trusting(t, nil, Issuer{URL: m.Issuer(), Audiences: []string{audience}, Algorithms: []string{"RS256"},
			MappingClaim: "sub", Tenants: tenants, KeysMaxAge: time.Hour})
	}
	user := mockoidc.DefaultUser().ID()
	now := time.Now()
	first := accessToken(t, m)
	d := of(m.ClientID, map[string]string{user: "acme", "another": "beta"})
	expect(t, "a token", d, first, now, "acme", OK)
	expect(t, "a token that has expired", d, first, now.Add(m.AccessTTL+time.Second), "", Refused)
	expect(t, "a token for another resource", of(resource, map[string]string{user: "acme", "another": "beta"}), first, now, "", Refused)
	expect(t, "a token of nobody's", of(m.ClientID, map[string]string{"somebody": "acme", "another": "beta"}), first, now, "", Refused)

	if m.Keypair, err = mockoidc.RandomKeypair(2048); err != nil {
		t.Fatal(err)
	}
	second := accessToken(t, m)
	later := now.Add(time.Minute) // unknown keys are not asked for all the time
	expect(t, "a token of the new key", d, second, later, "acme", OK)
	expect(t, "a token of a key that was withdrawn", d, first, later, "", Refused)
	if err := m.Shutdown(); err != nil {
		t.Fatal(err)
	}
	expect(t, "a token whose issuer is down", d, second, later, "acme", OK)
}
