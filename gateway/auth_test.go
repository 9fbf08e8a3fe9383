package gateway

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// tenantEntry is one entry of a tenants section; more are further lines of it.
func tenantEntry(id, doc string, keys []string, more ...string) string {
	s := "  - id: " + id + "\n    keys:\n"
	for _, k := range keys {
		s += fmt.Sprintf("      - sha256: \"%x\"\n", sha256.Sum256([]byte(k)))
	}
	for _, m := range more {
		s += "    " + m + "\n"
	}
	return s + "    registration: " + doc + "\n"
}

// many is a gateway file with a tenants section.
func many(entries ...string) string { return "tenants:\n" + strings.Join(entries, "") }

// denies starts a backend that denies everything in its own name, and returns
// its 0.1 document.
func denies(t testing.TB, reason string) (*fakebackend.Server, string) {
	b := fakebackend.Start(t, fakebackend.Behave("deny:"+reason))
	return b, registration("0.1", hook("com.example."+reason, b.URL, intercepts("0.1", "fail-closed", 5000)))
}

// AHP-SEC-001: no credential, no decision; and a credential decides whose
// backends are asked.
func TestCredentials(t *testing.T) {
	a, docA := denies(t, "acme")
	b, docB := denies(t, "beta")
	r := start(t, many(
		tenantEntry("acme", docA, []string{"acme-key-1", "acme-key-2"}),
		tenantEntry("beta", docB, []string{"beta-key-1"})))
	const (
		acme = "deny: acme"
		beta = "deny: beta"
		none = "HTTP 401"
		not  = "HTTP 403"
	)
	for i, c := range []struct{ name, path, authorization, want string }{
		{"first key", "/hooks", "Bearer acme-key-1", acme},
		{"second key", "/hooks", "Bearer acme-key-2", acme},
		{"another tenant's key", "/hooks", "Bearer beta-key-1", beta},
		{"scheme in lower case", "/hooks", "bearer acme-key-1", acme},
		{"scheme in upper case", "/hooks", "BEARER acme-key-1", acme},
		{"key and path", "/t/acme/hooks", "Bearer acme-key-2", acme},
		{"key and path of another", "/t/beta/hooks", "Bearer beta-key-1", beta},

		{"key of a tenant on the path of another", "/t/beta/hooks", "Bearer acme-key-1", not},
		{"and the other way round", "/t/acme/hooks", "Bearer beta-key-1", not},
		{"key on the path of nobody", "/t/nobody/hooks", "Bearer acme-key-1", not},
		{"key on the path of the open tenant there is not", "/t/default/hooks", "Bearer acme-key-1", not},
		{"key on the path in another case", "/t/Acme/hooks", "Bearer acme-key-1", not},

		{"none", "/hooks", "", none},
		{"none, with a path", "/t/acme/hooks", "", none},
		{"none, with the path of nobody", "/t/nobody/hooks", "", none},
		{"wrong key", "/hooks", "Bearer acme-key-3", none},
		{"wrong key, with a path", "/t/acme/hooks", "Bearer acme-key-3", none},
		{"wrong key, with the path of nobody", "/t/nobody/hooks", "Bearer acme-key-3", none},
		{"key cut short", "/hooks", "Bearer acme-key-", none},
		{"key with more behind it", "/hooks", "Bearer acme-key-11", none},
		{"key in another case", "/hooks", "Bearer ACME-KEY-1", none},
		{"the digest itself", "/hooks", fmt.Sprintf("Bearer %x", sha256.Sum256([]byte("acme-key-1"))), none},
		{"scheme alone", "/hooks", "Bearer", none},
		{"scheme alone in lower case", "/hooks", "bearer", none},
		{"no scheme", "/hooks", "acme-key-1", none},
		{"two spaces", "/hooks", "Bearer  acme-key-1", none},
		{"tab", "/hooks", "Bearer\tacme-key-1", none},
		{"two keys", "/hooks", "Bearer acme-key-1 acme-key-2", none},
		{"two keys with comma", "/hooks", "Bearer acme-key-1,Bearer acme-key-2", none},
		{"quoted", "/hooks", `Bearer "acme-key-1"`, none},
		{"Basic", "/hooks", "Basic YWNtZTphY21lLWtleS0x", none},
		{"Basic with the key", "/hooks", "Basic acme-key-1", none},
		{"another scheme that begins like it", "/hooks", "BearerX acme-key-1", none},
		{"10 KB", "/hooks", "Bearer " + strings.Repeat("k", 10<<10), none},
		{"key in the query", "/hooks?access_token=acme-key-1", "", none},
	} {
		before := a.Count() + b.Count()
		var header []string
		if c.authorization != "" {
			header = []string{"Authorization: " + c.authorization}
		}
		got := r.post(c.path, event01(fmt.Sprintf("e%d", i)), header...)
		if got.decision() != c.want {
			t.Errorf("%s = %s; want %s", c.name, got.decision(), c.want)
		}
		if h := got.header.Get("WWW-Authenticate"); strings.HasPrefix(h, "Bearer") != (c.want == none) {
			t.Errorf("%s: WWW-Authenticate %q; want a Bearer challenge with 401 and only there", c.name, h)
		}
		called := a.Count() + b.Count() - before
		if want := map[bool]int{true: 1, false: 0}[strings.HasPrefix(c.want, "deny")]; called != want {
			t.Errorf("%s: %d backends were called; want %d", c.name, called, want)
		}
	}

	// A trailing space is not sent by package http, and none is meant by HTTP.
	w := dial(t, r, "trailing space")
	defer w.conn.Close()
	w.send(raw("$PAuthorization: Bearer acme-key-1 \t\r\nContent-Length: $L\r\n\r\n$E", "trailing"))
	if got := w.answer(); got == nil || got.status != 200 || !strings.Contains(got.body, "acme") {
		t.Errorf("trailing space around the whole value = %+v; want a decision", got)
	}
}

// Whether a tenant exists cannot be found out with the key of another, nor
// without a key: the answers are the same byte for byte.
func TestTenantsAreNotEnumerable(t *testing.T) {
	_, docA := denies(t, "acme")
	_, docB := denies(t, "beta")
	r := start(t, many(tenantEntry("acme", docA, []string{"acme-key"}), tenantEntry("beta", docB, []string{"beta-key"})))
	for _, authorization := range []string{"Bearer acme-key", "Bearer wrong", "Basic x"} {
		exists := r.post("/t/beta/hooks", event01("e"), "Authorization: "+authorization)
		not := r.post("/t/gamma/hooks", event01("e"), "Authorization: "+authorization)
		for _, a := range []*reply{exists, not} {
			a.header.Del("Date")
		}
		if exists.status != not.status || exists.body != not.body || fmt.Sprint(exists.header) != fmt.Sprint(not.header) {
			t.Errorf("%s: existing tenant %d %q %v, no tenant %d %q %v; want no difference", authorization,
				exists.status, exists.body, exists.header, not.status, not.body, not.header)
		}
	}
}

// A credential is looked at before the message: without one nothing is told
// about it.
func TestCredentialBeforeMessage(t *testing.T) {
	_, doc := denies(t, "acme")
	r := start(t, many(tenantEntry("acme", doc, []string{"acme-key"})))
	for _, body := range []string{"", "{", "[]", `{"jsonrpc":"2.0","method":"hooks/observe"}`, strings.Replace(event01("e"), `"0.1"`, `"9"`, 1)} {
		if a := r.post("/hooks", body); a.status != http.StatusUnauthorized {
			t.Errorf("body %.40s without a credential = %d; want 401", body, a.status)
		}
	}
}

// A key counts until a reload takes it out, and one that comes with a reload
// counts from then on.
func TestKeysFollowReload(t *testing.T) {
	_, doc := denies(t, "acme")
	r := start(t, many(tenantEntry("acme", doc, []string{"old", "new"})))
	try := func(id, key, want string) {
		t.Helper()
		if got := r.post("/hooks", event01(id), "Authorization: Bearer "+key).decision(); got != want {
			t.Errorf("key %s = %s; want %s", key, got, want)
		}
	}
	try("e1", "old", "deny: acme")
	try("e2", "new", "deny: acme")
	try("e3", "newer", "HTTP 401")
	if _, err := r.Reload(t.Context(), parse(t, many(tenantEntry("acme", doc, []string{"new", "newer"})))); err != nil {
		t.Fatalf("Reload() = %v; want none", err)
	}
	// The same connection, and an answer that had been remembered.
	try("e1", "old", "HTTP 401")
	try("e4", "new", "deny: acme")
	try("e5", "newer", "deny: acme")
}

// Invariant 5: the same event of two tenants is two events, each decided by its
// own tenant's backends, remembered answers included.
func TestTenantsShareNothing(t *testing.T) {
	a, docA := denies(t, "acme")
	b := fakebackend.Start(t)
	docB := registration("0.1", hook("com.example.acme", b.URL, intercepts("0.1", "fail-closed", 5000)))
	r := start(t, many(tenantEntry("acme", docA, []string{"acme-key"}), tenantEntry("beta", docB, []string{"beta-key"})))
	for range 3 {
		for _, c := range []struct{ key, want string }{{"acme-key", "deny: acme"}, {"beta-key", "pass"}} {
			if got := r.post("/hooks", event01("same"), "Authorization: Bearer "+c.key).decision(); got != c.want {
				t.Errorf("the same event with %s = %s; want %s", c.key, got, c.want)
			}
		}
	}
	if a.Count() != 1 || b.Count() != 1 {
		t.Errorf("backends were called %d and %d times; want once each, then remembered", a.Count(), b.Count())
	}
	for _, q := range append(a.Requests(), b.Requests()...) {
		if got := q.Header.Get("Authorization"); got != "" {
			t.Errorf("a backend was sent the caller's credential %q; want none", got)
		}
	}
	tenants := map[any]int{}
	for _, record := range r.audit.await(6) {
		tenants[record["tenant"]]++
	}
	if tenants["acme"] != 3 || tenants["beta"] != 3 {
		t.Errorf("audit records by tenant = %v; want three each", tenants)
	}
}

// Nothing that admits callers without a key stands beside tenants with keys.
func TestNoOpenTenantBesideTenants(t *testing.T) {
	_, doc := denies(t, "acme")
	r := start(t, many(tenantEntry("acme", doc, []string{"acme-key"})))
	for _, path := range []string{"/hooks", "/t/default/hooks", "/t/acme/hooks"} {
		if a := r.post(path, event01("e")); a.status != http.StatusUnauthorized {
			t.Errorf("POST %s without a key = %d; want 401", path, a.status)
		}
	}
}

// Nothing of the private listener is on the public one, with or without a key.
func TestPublicListenerHasNoAdmin(t *testing.T) {
	_, doc := denies(t, "acme")
	r := start(t, many(tenantEntry("acme", doc, []string{"acme-key"})))
	for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/admin/config", "/admin/backends", "/debug/pprof/", "/favicon.ico"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req, err := http.NewRequest(method, r.URL()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer acme-key")
			if a := r.do(req); a.status != http.StatusNotFound {
				t.Errorf("%s %s on the public listener = %d; want 404", method, path, a.status)
			}
		}
	}
}

// Operators read the configuration without its keys.
func TestAdminTellsNoKey(t *testing.T) {
	_, doc := denies(t, "acme")
	r := start(t, many(tenantEntry("acme", doc, []string{"acme-key"})))
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("acme-key")))
	for _, path := range []string{"/admin/config", "/admin/backends", "/metrics", "/readyz", "/healthz"} {
		if _, body := r.get(path); strings.Contains(body, digest) || strings.Contains(body, "acme-key") {
			t.Errorf("GET %s of the private listener tells a key: %s", path, body)
		}
	}
}
