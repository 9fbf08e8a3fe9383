package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
	"github.com/ahp-gateway/ahp-gateway/internal/fakeissuer"
)

const resourceURL = "https://gateway.example/hooks"

// trusting is a gateway file with tenants acme and beta, of whom beta has no
// key, and an auth section.
func trusting(docA, docB, auth string) string {
	return "auth: " + auth + "\n" + many(tenantEntry("acme", docA, []string{"acme-key"}), "  - {id: beta, registration: "+docB+"}\n")
}

// The challenge of a 401 to a token, and to none.
const (
	invalidToken = `Bearer realm="ahp-gateway", error="invalid_token", resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/hooks"`
	noToken      = `Bearer realm="ahp-gateway", resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/hooks"`
)

// AHP-AUTH-001: a request without authority is refused before its event is
// looked at, whatever is wrong with its credential or its message.
func TestUnauthorizedBeforeEvent(t *testing.T) {
	a, docA := denies(t, "acme")
	b, docB := denies(t, "beta")
	i := fakeissuer.Start(t, "")
	key, unknown := fakeissuer.NewKey(t, "k", jose.ES256), fakeissuer.NewKey(t, "u", jose.ES256)
	i.Publish(key)
	r := start(t, trusting(docA, docB, fmt.Sprintf(`{resource: %q, issuers: [{issuer: %q, tenantClaim: ahp_tenant, scopes: [ahp.intercept]}]}`, resourceURL, i.URL)))
	sign := func(k *fakeissuer.Key, more ...any) string {
		return "Bearer " + k.Sign(t, i.Claims(resourceURL, append([]any{"ahp_tenant", "acme", "scope", "ahp.intercept"}, more...)...), nil)
	}
	for n, c := range []struct {
		name, path, authorization string
		status                    int
		challenge                 string
		want                      string
	}{
		{"token", "/hooks", sign(key), 200, "", "deny: acme"},
		{"token and path", "/t/acme/hooks", sign(key), 200, "", "deny: acme"},
		{"token of a tenant without keys", "/hooks", sign(key, "ahp_tenant", "beta"), 200, "", "deny: beta"},
		{"key", "/hooks", "Bearer acme-key", 200, "", "deny: acme"},
		{"audience of the tenant's endpoint", "/t/beta/hooks", sign(key, "ahp_tenant", "beta", "aud", "https://gateway.example/t/beta/hooks"), 200, "", "deny: beta"},
		{"audience of another tenant's endpoint", "/hooks", sign(key, "aud", "https://gateway.example/t/beta/hooks"), 401, invalidToken, ""},
		{"path of another tenant", "/t/beta/hooks", sign(key), 403, "", ""},
		{"path of nobody", "/t/nobody/hooks", sign(key), 403, "", ""},
		{"expired", "/hooks", sign(key, "exp", 1), 401, invalidToken, ""},
		{"unknown key", "/hooks", sign(unknown), 401, invalidToken, ""},
		{"unknown tenant", "/hooks", sign(key, "ahp_tenant", "nobody"), 401, invalidToken, ""},
		{"no JSON Web Token", "/hooks", "Bearer wrong", 401, invalidToken, ""},
		{"malformed", "/hooks", "Bearer a b", 401, invalidToken, ""},
		{"without the scope", "/hooks", sign(key, "scope", "x"), 403,
			`Bearer realm="ahp-gateway", error="insufficient_scope", scope="ahp.intercept", resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/hooks"`, ""},
		{"none", "/hooks", "", 401, noToken, ""},
		{"another scheme", "/hooks", "Basic YTpi", 401, noToken, ""},
		{"none, on a tenant's path", "/t/beta/hooks", "", 401, strings.Replace(noToken, "resource/hooks", "resource/t/beta/hooks", 1), ""},
		{"none, on nobody's path", "/t/nobody/hooks", "", 401, strings.Replace(noToken, "resource/hooks", "resource/t/nobody/hooks", 1), ""},
		{"none, on a path that is no tenant's", "/t/A'B/hooks", "", 401, noToken, ""},
	} {
		var header []string
		if c.authorization != "" {
			header = []string{"Authorization: " + c.authorization}
		}
		before := a.Count() + b.Count()
		got := r.post(c.path, event01(fmt.Sprint("e", n)), header...)
		if got.status != c.status || got.header.Get("WWW-Authenticate") != c.challenge || c.status == 200 && got.decision() != c.want {
			t.Errorf("%s = %d, %s, challenge %s; want %d, %s, challenge %s", c.name, got.status, got.decision(), got.header.Get("WWW-Authenticate"), c.status, c.want, c.challenge)
		}
		if c.status == 200 {
			continue
		}
		// What is wrong with the message makes no difference.
		for _, body := range []string{"", "{", `{"jsonrpc":"2.0","method":"hooks/observe"}`} {
			if broken := r.post(c.path, body, header...); broken.status != got.status || broken.body != got.body {
				t.Errorf("%s with the message %q = %d %q; want %d %q", c.name, body, broken.status, broken.body, got.status, got.body)
			}
		}
		if called := a.Count() + b.Count() - before; called != 0 {
			t.Errorf("%s: %d backends were called; want none", c.name, called)
		}
	}
	for _, q := range append(a.Requests(), b.Requests()...) {
		if got := q.Header.Get("Authorization"); got != "" {
			t.Errorf("a backend was sent the caller's credential %.20q…; want none", got)
		}
	}
}

// An issuer that cannot be reached keeps nobody from starting, and turns no
// token into a bad one; keys go on to work.
func TestIssuerIsDown(t *testing.T) {
	_, docA := denies(t, "acme")
	_, docB := denies(t, "beta")
	i := fakeissuer.Start(t, "")
	key := fakeissuer.NewKey(t, "k", jose.RS256)
	i.Publish(key)
	i.Behave(fakeissuer.Down)
	auth := fmt.Sprintf(`{issuers: [{issuer: %q, audience: [a], tenantClaim: ahp_tenant}]}`, i.URL)
	r := start(t, trusting(docA, docB, auth))
	token := "Authorization: Bearer " + key.Sign(t, i.Claims("a", "ahp_tenant", "beta"), nil)
	for n := range 2 {
		got := r.post("/hooks", event01(fmt.Sprint("down", n)), token)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || got.header.Get("WWW-Authenticate") != "" {
			t.Errorf("token = %d, %v; want 503 with Retry-After", got.status, got.header)
		}
	}
	if got := r.post("/hooks", event01("key"), "Authorization: Bearer acme-key").decision(); got != "deny: acme" {
		t.Errorf("key = %s; want a decision", got)
	}
	_, body := r.get("/admin/credentials")
	if !strings.Contains(body, `"failure":"metadata: it cannot be reached"`) {
		t.Errorf("/admin/credentials = %s; want the failure", body)
	}
	// Without auth.resource there is no metadata, and nothing is said of it.
	for _, path := range []string{wellKnown, wellKnown + "/hooks"} {
		req, err := http.NewRequest(http.MethodGet, r.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.do(req); got.status != http.StatusNotFound {
			t.Errorf("GET %s = %d; want 404", path, got.status)
		}
	}
	if got := r.post("/hooks", event01("x"), "Authorization: Bearer x").header.Get("WWW-Authenticate"); got != `Bearer realm="ahp-gateway", error="invalid_token"` {
		t.Errorf("challenge = %s; want one without metadata", got)
	}
}

// What was learned of an issuer outlives a reload, also one in which it is
// down; who is trusted does not.
func TestIssuersFollowReload(t *testing.T) {
	_, docA := denies(t, "acme")
	_, docB := denies(t, "beta")
	i := fakeissuer.Start(t, "")
	key := fakeissuer.NewKey(t, "k", jose.EdDSA)
	i.Publish(key)
	auth := `{issuers: [{issuer: %q, audience: [%s], tenantClaim: ahp_tenant}]}`
	r := start(t, trusting(docA, docB, fmt.Sprintf(auth, i.URL, "a")))
	token := "Authorization: Bearer " + key.Sign(t, i.Claims("a", "ahp_tenant", "beta"), nil)
	try := func(id, want string) {
		t.Helper()
		if got := r.post("/hooks", event01(id), token).decision(); got != want {
			t.Errorf("token = %s; want %s", got, want)
		}
	}
	reload := func(text string) {
		t.Helper()
		if restart, err := r.Reload(t.Context(), parse(t, text)); err != nil || len(restart) > 0 {
			t.Fatalf("Reload() = %v, %v; want none", restart, err)
		}
	}
	try("e1", "deny: beta")
	i.Behave(fakeissuer.Down)
	reload(trusting(docA, docB, fmt.Sprintf(auth, i.URL, "a")))
	try("e2", "deny: beta")
	reload(trusting(docA, docB, fmt.Sprintf(auth, i.URL, "b")))
	try("e2", "HTTP 401")
	reload(many(tenantEntry("acme", docA, []string{"acme-key"}), tenantEntry("beta", docB, []string{"beta-key"})))
	try("e2", "HTTP 401")
}

// The metadata of RFC 9728 can be had without a credential, in the form that
// the client's own URL leads to.
func TestProtectedResourceMetadata(t *testing.T) {
	b := fakebackend.Start(t)
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))
	for _, c := range []struct {
		resource string
		want     map[string]string // path to resource, or "" for none
	}{
		{"https://gateway.example/hooks", map[string]string{
			"": "https://gateway.example/hooks", "/hooks": "https://gateway.example/hooks",
			"/t/acme/hooks": "https://gateway.example/t/acme/hooks", "/t/nobody/hooks": "https://gateway.example/t/nobody/hooks",
			"/": "", "/t/A/hooks": "", "/t//hooks": "", "/t/acme": "", "/other": "", "hooks": "", "/t/acme/hooks/": "", "/hooks?a=b": "https://gateway.example/hooks",
		}},
		{"https://example.com:8443/ahp/hooks", map[string]string{
			"": "https://example.com:8443/ahp/hooks", "/ahp/hooks": "https://example.com:8443/ahp/hooks",
			"/ahp/t/acme/hooks": "https://example.com:8443/ahp/t/acme/hooks", "/hooks": "", "/t/acme/hooks": "",
		}},
		{"https://gateway.example", map[string]string{"": "https://gateway.example", "/hooks": "", "/t/acme/hooks": ""}},
	} {
		r := start(t, trusting(doc, doc, fmt.Sprintf(
			`{resource: %q, issuers: [{issuer: "https://a.example", tenantClaim: t, scopes: [s1, s2]}, {issuer: "https://b.example/", tenantClaim: t, scopes: [s2]}]}`, c.resource)))
		for path, want := range c.want {
			req, err := http.NewRequest(http.MethodGet, r.URL()+wellKnown+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := r.do(req)
			if want == "" {
				if got.status != http.StatusNotFound && got.status != http.StatusBadRequest {
					t.Errorf("%s: GET %s = %d %s; want none", c.resource, path, got.status, got.body)
				}
				continue
			}
			text := fmt.Sprintf(`{"resource":%q,"authorization_servers":["https://a.example","https://b.example/"],"bearer_methods_supported":["header"],"scopes_supported":["s1","s2"]}`, want)
			if got.status != http.StatusOK || got.body != text || got.header.Get("Content-Type") != "application/json" ||
				got.header.Get("Cache-Control") != "public, max-age=3600" || !json.Valid([]byte(got.body)) {
				t.Errorf("%s: GET %s = %d %v %s; want %s", c.resource, path, got.status, got.header, got.body, text)
			}
		}
	}
}

// The metadata is the only thing that can be got, and got only.
func TestMetadataFraming(t *testing.T) {
	b := fakebackend.Start(t)
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))
	r := start(t, trusting(doc, doc, `{resource: "https://gateway.example/hooks", issuers: [{issuer: "https://a.example", tenantClaim: t}]}`))
	const path = wellKnown + "/hooks"
	for _, c := range []struct {
		name, request string
		status        int
		open          bool // the connection, for another request
	}{
		{"GET", "GET " + path + " HTTP/1.1\r\nHost: g\r\n\r\n", 200, true},
		{"GET with an empty body", "GET " + path + " HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n", 200, true},
		{"GET with a body", "GET " + path + " HTTP/1.1\r\nHost: g\r\nContent-Length: 1\r\n\r\nx", 400, false},
		{"GET in chunks", "GET " + path + " HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, false},
		{"POST", raw("POST "+path+" HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E", "e"), 405, false},
		{"DELETE", "DELETE " + path + " HTTP/1.1\r\nHost: g\r\n\r\n", 405, false},
		{"OPTIONS", "OPTIONS " + path + " HTTP/1.1\r\nHost: g\r\n\r\n", 405, false},
		{"two hosts", "GET " + path + " HTTP/1.1\r\nHost: g\r\nHost: h\r\n\r\n", 400, false},
		{"not in normal form", "GET /x/.." + path + " HTTP/1.1\r\nHost: g\r\n\r\n", 400, false},
		{"encoded", "GET /%2ewell-known/oauth-protected-resource HTTP/1.1\r\nHost: g\r\n\r\n", 400, false},
		{"GET of the endpoint", "GET /hooks HTTP/1.1\r\nHost: g\r\n\r\n", 405, false},
		{"GET of something else", "GET /.well-known/other HTTP/1.1\r\nHost: g\r\n\r\n", 404, false},
	} {
		w := dial(t, r, c.name)
		w.send(c.request)
		got := w.answer()
		if got == nil || got.status != c.status {
			t.Errorf("%s = %+v; want %d", c.name, got, c.status)
		} else if want := map[bool]string{true: "GET, HEAD", false: got.header.Get("Allow")}[c.status == 405 && !strings.HasPrefix(c.request, "GET")]; got.header.Get("Allow") != want {
			t.Errorf("%s: Allow %q; want %q", c.name, got.header.Get("Allow"), want)
		}
		if c.open {
			w.send(raw("POST /hooks HTTP/1.1\r\n$HAuthorization: Bearer acme-key\r\nContent-Length: $L\r\n\r\n$E", c.name))
			if got := w.answer(); got == nil || got.status != 200 {
				t.Errorf("%s: the event behind it = %+v; want 200", c.name, got)
			}
		} else if got := w.answer(); got != nil {
			t.Errorf("%s: another answer %+v; want a closed connection", c.name, got)
		}
		w.conn.Close()
	}
	req, err := http.NewRequest(http.MethodHead, r.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.do(req); got.status != 200 || got.body != "" || got.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD = %d %v %q; want the header of the GET alone", got.status, got.header, got.body)
	}
}

// Operators see which keys are in use and which have ended; a key that has
// ended is refused without a reload.
func TestCredentialsListing(t *testing.T) {
	_, doc := denies(t, "acme")
	r := start(t, many(strings.Replace(strings.Replace(tenantEntry("acme", doc, []string{"live-key", "dead-key"}),
		"      - sha256: ", "      - expires: 2099-01-01T00:00:00Z\n        sha256: ", 1),
		"\n      - sha256: ", "\n      - expires: 2020-01-01T00:00:00Z\n        sha256: ", 1)))
	began := time.Now().Truncate(time.Second)
	for key, want := range map[string]string{"live-key": "deny: acme", "dead-key": "HTTP 401"} {
		if got := r.post("/hooks", event01(key), "Authorization: Bearer "+key).decision(); got != want {
			t.Errorf("%s = %s; want %s", key, got, want)
		}
	}
	for range 2 { // before a reload and after it
		status, body := r.get("/admin/credentials")
		var got struct {
			Generation uint64
			Keys       []struct {
				Tenant, SHA256 string
				Expires        time.Time
				Expired        bool
				LastUsed       time.Time `json:"last_used"`
			}
			Issuers []any
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
			t.Fatalf("/admin/credentials = %d %s", status, body)
		}
		if len(got.Keys) != 2 || got.Issuers == nil || got.Generation == 0 {
			t.Fatalf("/admin/credentials = %s; want two keys and no issuers", body)
		}
		live, dead := got.Keys[0], got.Keys[1]
		if live.Tenant != "acme" || len(live.SHA256) != 8 || live.Expired || live.Expires.Year() != 2099 || live.LastUsed.Before(began) || live.LastUsed.After(time.Now()) {
			t.Errorf("live key = %+v; want it used since %v", live, began)
		}
		if !dead.Expired || dead.Expires.Year() != 2020 || !dead.LastUsed.IsZero() {
			t.Errorf("dead key = %+v; want it expired and never used", dead)
		}
		if _, err := r.Reload(t.Context(), r.current.Load().file); err != nil {
			t.Fatal(err)
		}
	}
}
