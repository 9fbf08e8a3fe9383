package tenant

import (
	"crypto/x509"
	"net/url"
	"testing"
	"time"
)

// A key is good until the instant at which it expires, with no reload.
func TestKeyExpires(t *testing.T) {
	end := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	d := directory(t, Entry{ID: "acme", Keys: []Key{{Digest: digest("old"), Expires: end}, {Digest: digest("new")}}})
	for _, c := range []struct {
		token string
		now   time.Time
		want  Result
	}{
		{"old", end.Add(-time.Nanosecond), OK},
		{"old", end, Refused},
		{"old", end.Add(time.Hour), Refused},
		{"new", end.Add(time.Hour), OK},
	} {
		if _, got := d.Authenticate(Request{Authorization: []byte("Bearer " + c.token), Now: c.now}); got.Result != c.want {
			t.Errorf("Authenticate(%s at %v) = %v; want %v", c.token, c.now, got.Result, c.want)
		}
	}
}

// What keys were last used for is known to the second, and outlives a reload
// where the same tenant keeps the key.
func TestKeyUses(t *testing.T) {
	end := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	at := time.Date(2026, 5, 6, 7, 8, 9, 10, time.UTC)
	d := directory(t,
		Entry{ID: "acme", Keys: []Key{{Digest: digest("a"), Expires: end}, {Digest: digest("b")}}},
		Entry{ID: "beta", Keys: []Key{{Digest: digest("c"), Expires: at}}})
	for _, token := range []string{"a", "c", "unknown"} {
		d.Authenticate(Request{Authorization: []byte("Bearer " + token), Now: at})
	}
	check := func(d *Directory[string], want ...KeyUse) {
		t.Helper()
		got := d.KeyUses()
		if len(got) != len(want) {
			t.Fatalf("KeyUses() = %v; want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("KeyUses()[%d] = %v; want %v", i, got[i], want[i])
			}
		}
	}
	used := at.Truncate(time.Second)
	// The expired key of beta was shown, not used.
	check(d, KeyUse{"acme", "ca978112", end, used}, KeyUse{"acme", "3e23e816", time.Time{}, time.Time{}}, KeyUse{"beta", "2e7d2c03", at, time.Time{}})

	next := directory(t,
		Entry{ID: "acme", Keys: []Key{{Digest: digest("a")}}},
		Entry{ID: "gamma", Keys: []Key{{Digest: digest("b")}, {Digest: digest("d")}}})
	d.Authenticate(Request{Authorization: []byte("Bearer b"), Now: at})
	next.Resume(d)
	// b is another tenant's now: that it was used says nothing about gamma.
	check(next, KeyUse{"acme", "ca978112", time.Time{}, used}, KeyUse{"gamma", "3e23e816", time.Time{}, time.Time{}}, KeyUse{"gamma", "18ac3e73", time.Time{}, time.Time{}})
	// A request that is still with the directory before counts.
	later := at.Add(time.Minute)
	d.Authenticate(Request{Authorization: []byte("Bearer a"), Now: later})
	check(next, KeyUse{"acme", "ca978112", time.Time{}, later.Truncate(time.Second)}, KeyUse{"gamma", "3e23e816", time.Time{}, time.Time{}}, KeyUse{"gamma", "18ac3e73", time.Time{}, time.Time{}})
}

// A certificate speaks for the tenant that has one of its names, exactly, and
// never against a token.
func TestCertificates(t *testing.T) {
	acme, beta := keyed("acme", "acme-key"), keyed("beta", "beta-key")
	acme.Names = []Name{NewName(NameURI, "spiffe://acme/agent"), NewName(NameDNS, "Agent.ACME.example")}
	beta.Names = []Name{NewName(NameEmail, "agent@Beta.example")}
	d := directory(t, acme, beta, Entry{ID: "gamma", Names: []Name{NewName(NameURI, "spiffe://gamma/agent")}})
	uri := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, c := range []struct {
		name                string
		certificate         x509.Certificate
		authorization, path string
		tenant              string
		want                Result
	}{
		{name: "uri", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}}, tenant: "acme", want: OK},
		{name: "uri and path", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}}, path: "acme", tenant: "acme", want: OK},
		{name: "uri and another path", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}}, path: "beta", want: WrongTenant},
		{name: "uri below", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent/x")}}, want: Unauthenticated},
		{name: "uri in another case", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/Agent")}}, want: Unauthenticated},
		{name: "tenant without keys", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://gamma/agent")}}, tenant: "gamma", want: OK},
		{name: "dns in another case", certificate: x509.Certificate{DNSNames: []string{"agent.acme.EXAMPLE"}}, tenant: "acme", want: OK},
		{name: "dns wildcard", certificate: x509.Certificate{DNSNames: []string{"*.acme.example"}}, want: Unauthenticated},
		{name: "email", certificate: x509.Certificate{EmailAddresses: []string{"agent@beta.example"}}, tenant: "beta", want: OK},
		{name: "email of somebody else", certificate: x509.Certificate{EmailAddresses: []string{"Agent@beta.example"}}, want: Unauthenticated},
		{name: "uri as dns", certificate: x509.Certificate{DNSNames: []string{"spiffe://acme/agent"}}, want: Unauthenticated},
		{name: "nobody's", certificate: x509.Certificate{DNSNames: []string{"other.example"}}, want: Unauthenticated},
		{name: "nobody's and a key", certificate: x509.Certificate{DNSNames: []string{"other.example"}}, authorization: "Bearer beta-key", tenant: "beta", want: OK},
		{name: "two names of one", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}, DNSNames: []string{"agent.acme.example", "x"}}, tenant: "acme", want: OK},
		{name: "names of two", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}, EmailAddresses: []string{"agent@beta.example"}}, want: Unauthenticated},
		{name: "the same key", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}}, authorization: "Bearer acme-key", tenant: "acme", want: OK},
		{name: "another's key", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}}, authorization: "Bearer beta-key", want: TwoTenants},
		{name: "names of two, beside a third's key", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://gamma/agent")}, EmailAddresses: []string{"agent@beta.example"}}, authorization: "Bearer acme-key", want: TwoTenants},
		{name: "names of two, beside the key of one", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}, EmailAddresses: []string{"agent@beta.example"}}, authorization: "Bearer acme-key", want: TwoTenants},
		{name: "names of two, and a wrong key", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}, EmailAddresses: []string{"agent@beta.example"}}, authorization: "Bearer wrong", want: Refused},
		{name: "a wrong key", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}}, authorization: "Bearer wrong", want: Refused},
		{name: "a malformed key", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}}, authorization: "Bearer a b", want: Refused},
		{name: "another scheme", certificate: x509.Certificate{URIs: []*url.URL{uri("spiffe://acme/agent")}}, authorization: "Basic YTpi", want: Unauthenticated},
	} {
		want := ""
		if c.want == OK {
			want = "payload of " + c.tenant
		}
		got, v := d.Authenticate(Request{Authorization: []byte(c.authorization), Names: CertificateNames(&c.certificate), Path: c.path, Now: time.Now()})
		if v.Result != c.want || got != want {
			t.Errorf("%s: Authenticate = %q, %v; want %q, %v", c.name, got, v.Result, want, c.want)
		}
	}
	beta.Names = acme.Names[1:]
	if _, err := NewDirectory([]Entry{acme, beta}, make([]int, 2), nil); err == nil {
		t.Error("NewDirectory with a name of two tenants = no error; want one")
	}
}
