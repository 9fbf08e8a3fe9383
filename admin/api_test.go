package admin_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/config"
)

func digest(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key))) }

// holds reports whether the configuration that is served knows the key as the tenant's.
func (r *rig) holds(id, key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.file.Tenants {
		if t.ID == id && slices.Contains(t.Keys, config.Key{SHA256: sha256.Sum256([]byte(key))}) {
			return true
		}
	}
	return false
}

func TestDescriptionIsValid(t *testing.T) {
	r := newRig(t)
	if err := r.loadSpec().Validate(context.Background()); err != nil {
		t.Errorf("openapi.yaml: %v", err)
	}
}

func TestTenantsComeChangeAndGo(t *testing.T) {
	r := newRig(t)
	key, etag := r.create("acme")
	if !regexp.MustCompile(`^ahp_acme_[0-9A-Za-z]{43}$`).MatchString(key) || !r.holds("acme", key) {
		t.Errorf("key = %s, served %t; want one of acme that is served", key, r.holds("acme", key))
	}
	stored := r.read("tenants/acme.yaml")
	if strings.Contains(stored, key) || !strings.Contains(stored, digest(key)) {
		t.Errorf("stored document = %s; want the key's digest and not the key", stored)
	}
	if info, err := os.Stat(r.tenants("acme.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the document = %v, %v; want 0600", info.Mode(), err)
	}

	got := r.do("GET", "tenants/acme", "")
	if got.status != 200 || got.header.Get("ETag") != etag || got.body != stored || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("GET = %d %q %s; want the stored document under %s", got.status, got.header, got.body, etag)
	}
	// YAML is taken, and stored as JSON.
	yaml := "# a comment\nid: acme\nrate: 5\nkeys:\n  - sha256: \"" + digest("second-key-of-acme") + "\"\nregistration: " + registration + "\n"
	put := r.do("PUT", "tenants/acme", yaml, "Content-Type: application/yaml; charset=utf-8", "If-Match: "+etag)
	if put.status != 200 || put.Generation != 3 || r.holds("acme", key) || !r.holds("acme", "second-key-of-acme") {
		t.Errorf("PUT = %d %s; want 200, generation 3, and the new key served alone", put.status, put.body)
	}
	var tenant struct{ Rate float64 }
	if err := json.Unmarshal([]byte(r.do("GET", "tenants/acme", "").body), &tenant); err != nil || tenant.Rate != 5 {
		t.Errorf("GET after PUT = %+v, %v; want rate 5", tenant, err)
	}
	if a := r.do("PUT", "tenants/acme", document("acme", "third-key-of-acme"), "If-Match: "+etag); a.status != 412 {
		t.Errorf("PUT with an old ETag = %d; want 412", a.status)
	}
	gone := r.do("DELETE", "tenants/acme", "", "If-Match: "+put.ETag)
	if gone.status != 200 || gone.Generation != 4 || r.holds("acme", "second-key-of-acme") || r.listing() != "" {
		t.Errorf("DELETE = %d %s; want 200 and nothing left in %s", gone.status, gone.body, r.listing())
	}
	if a := r.do("GET", "tenants/acme", ""); a.status != 404 {
		t.Errorf("GET of a removed tenant = %d; want 404", a.status)
	}
}

func TestKeys(t *testing.T) {
	r := newRig(t)
	first, _ := r.create("acme")
	second := r.do("POST", "tenants/acme/keys", "{}").Key
	if !r.holds("acme", first) || !r.holds("acme", second) {
		t.Fatal("after a second key: one of the two is not served")
	}
	if a := r.do("POST", "tenants/acme/keys", ""); a.status != 409 || a.word() != "too-many-keys" {
		t.Errorf("POST of a third key = %d %s; want 409", a.status, a.body)
	}
	rotated := r.do("POST", "tenants/acme/keys:rotate", "{}")
	want := []string{digest(second)[:8], digest(rotated.Key)[:8]}
	if r.holds("acme", first) || !r.holds("acme", second) || !r.holds("acme", rotated.Key) || !slices.Equal(rotated.Result.Keys, want) {
		t.Errorf("rotate = %s; want the oldest key gone and %q left", rotated.body, want)
	}
	if a := r.do("DELETE", "tenants/acme/keys/"+digest(second)[:8], "", "If-Match: "+rotated.ETag); a.status != 200 || r.holds("acme", second) {
		t.Errorf("DELETE of a key = %d %s; want it gone", a.status, a.body)
	}
	if a := r.do("DELETE", "tenants/acme/keys/"+digest(second), ""); a.status != 404 || a.word() != "no-such-key" {
		t.Errorf("DELETE of a key that is gone = %d %s; want 404", a.status, a.body)
	}
	if a := r.do("DELETE", "tenants/acme/keys/"+digest(rotated.Key), ""); a.status != 409 || a.word() != "only-key" {
		t.Errorf("DELETE of the only key = %d %s; want 409", a.status, a.body)
	}
	if a := r.do("POST", "tenants/acme/keys", "", "If-Match: "+rotated.ETag); a.status != 412 {
		t.Errorf("POST of a key with an old ETag = %d; want 412", a.status)
	}
}

func TestPages(t *testing.T) {
	r := newRig(t, "tenants/by-hand.yml", document("c", "key-of-c-by-hand-0"))
	for _, id := range []string{"d", "a", "b"} {
		r.create(id)
	}
	var ids []string
	cursor := ""
	for range 3 {
		a := r.do("GET", "tenants?limit=2"+cursor, "")
		for _, row := range a.Page.Tenants {
			ids = append(ids, row.ID)
			if managed := row.ID != "listed" && row.ID != "c"; row.Managed != managed || row.Keys != 1 {
				t.Errorf("row = %+v; want managed %t and one key", row, managed)
			}
			if got := r.do("GET", "tenants/"+row.ID, "").header.Get("ETag"); got != row.ETag {
				t.Errorf("ETag of %s = %s; want that of the list, %s", row.ID, got, row.ETag)
			}
		}
		if cursor = "&cursor=" + a.Next; a.Next == "" {
			break
		}
	}
	if want := []string{"a", "b", "c", "d", "listed"}; !slices.Equal(ids, want) {
		t.Errorf("pages have %q; want %q", ids, want)
	}
	for _, query := range []string{"limit=0", "limit=501", "limit=x", "limit=1&limit=2", "cursor=..%2f", "cursor=", "order=id", "limit=1;cursor=a", "limit=%zz"} {
		if a := r.do("GET", "tenants?"+query, ""); a.status != 400 {
			t.Errorf("GET tenants?%s = %d; want 400", query, a.status)
		}
	}
}

// While the last good configuration is served its tenants are shown, none is
// changed, and every refusal says what to do.
func TestLastGood(t *testing.T) {
	r := newRig(t)
	r.create("acme")
	before := r.listing()
	// It was kept as one file, without the folder, or is one without a tenant.
	printed, _, err := config.ParseWhole("last-good.yaml", r.file.PrintWhole(), environ)
	if err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]admin.Store{"without a folder": nil, "with a folder": r.store} {
		if err := r.api.Use(printed, store, nil, true); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ method, path, body string }{
			{"POST", "tenants", document("new", "key-of-new-0123456")}, {"PUT", "tenants/acme", document("acme", "new-key-0123456789")},
			{"DELETE", "tenants/acme", ""}, {"DELETE", "tenants/listed", ""}, {"DELETE", "tenants/absent", ""},
			{"POST", "tenants/acme/keys", ""}, {"POST", "tenants/acme/keys:rotate", ""}, {"DELETE", "tenants/acme/keys/0123456789", ""},
		} {
			a := r.do(c.method, c.path, c.body, "If-Match: *")
			if a.status != 409 || a.word() != "not-managed" || a.Detail != "The last good configuration is served: correct the file first." {
				t.Errorf("%s: %s %s = %d %s; want 409 that says what is served", name, c.method, c.path, a.status, a.body)
			}
		}
		var page admin.Page
		if a := r.do("GET", "tenants", ""); a.status != 200 || json.Unmarshal([]byte(a.body), &page) != nil || !page.LastGood || len(page.Tenants) != 2 {
			t.Errorf("%s: GET tenants = %d %s; want two, of the last good configuration", name, a.status, a.body)
		}
		if a := r.do("GET", "tenants/acme", ""); a.status != 200 {
			t.Errorf("%s: GET tenants/acme = %d %s; want it shown", name, a.status, a.body)
		}
	}
	if got := r.listing(); got != before {
		t.Errorf("the folder holds %s; want it unchanged, %s", got, before)
	}
	r.use() // the file is corrected
	if a := r.do("GET", "tenants", ""); strings.Contains(a.body, "lastGood") {
		t.Errorf("GET tenants of the present configuration = %s; want nothing of lastGood", a.body)
	}
	r.create("other")
}

// Tenants of the operator are shown without secrets, and not changed.
func TestTenantsOfTheOperator(t *testing.T) {
	r := newRig(t,
		"tenants/by-hand.yml", document("named", "key-of-named-0123"),
		"tenants/other.yaml", document("different", "key-of-different-0"),
		"tenants/referring.yaml", `{"id": "referring", "keys": [{"env": "ACME_KEY"}], "registration": `+registration+`}`,
		"tenants/literal.yaml", strings.Replace(document("literal", "key-of-literal-01"), `"url": "https://policy.example.com"`,
			`"url": "https://policy.example.com?access_token=hunter2", "headers": {"X-Key": "hunter2", "X-Team": "platform"}`, 1),
		"elsewhere.yaml", document("linked", "key-of-linked-0123"))
	if err := os.Symlink("../elsewhere.yaml", r.tenants("linked.yaml")); err != nil {
		t.Fatal(err)
	}
	r.use()
	before := r.listing()
	for id, where := range map[string]string{"listed": "gateway file", "named": "by-hand.yml", "different": "other.yaml", "linked": "linked.yaml"} {
		shown := r.do("GET", "tenants/"+id, "")
		if shown.status != 200 || strings.Contains(shown.body, "hunter2") {
			t.Errorf("GET of %s = %d %s; want it without secrets", id, shown.status, shown.body)
		}
		for _, c := range []struct{ method, path, body string }{
			{"PUT", "", document(id, "new-key-0123456789")}, {"DELETE", "", ""}, {"POST", "/keys", ""}, {"POST", "/keys:rotate", ""},
			{"DELETE", "/keys/0123456789", ""},
		} {
			a := r.do(c.method, "tenants/"+id+c.path, c.body, "If-Match: *")
			if a.status != 409 || a.word() != "not-managed" || !strings.Contains(a.Detail, where) {
				t.Errorf("%s tenants/%s%s = %d %s; want 409 that names %s", c.method, id, c.path, a.status, a.body, where)
			}
		}
		if a := r.do("POST", "tenants", document(id, "new-key-0123456789")); a.status != 409 {
			t.Errorf("POST of tenant %s = %d; want 409", id, a.status)
		}
	}
	managed := make(map[string]bool)
	for _, row := range r.do("GET", "tenants", "").Tenants {
		managed[row.ID] = row.Managed
	}
	if want := map[string]bool{"listed": false, "named": false, "different": false, "linked": false, "referring": true, "literal": true}; !maps.Equal(managed, want) {
		t.Errorf("managed are %v; want %v, as changes are accepted", managed, want)
	}
	// A file of its name holds another tenant.
	if a := r.do("POST", "tenants", document("other", "new-key-0123456789")); a.status != 409 || a.word() != "not-managed" {
		t.Errorf("POST of a tenant whose file holds another = %d %s; want 409", a.status, a.body)
	}
	shown := r.do("GET", "tenants/literal", "")
	if strings.Contains(shown.body, "hunter2") || strings.Count(shown.body, "redacted") != 2 || !strings.Contains(shown.body, "platform") {
		t.Errorf("GET of a document with credentials = %s; want two redacted", shown.body)
	}
	if a := r.do("PUT", "tenants/literal", shown.body, "If-Match: "+shown.header.Get("ETag")); a.status != 422 || len(a.Mistakes) != 2 {
		t.Errorf("PUT of what was shown = %d %s; want both redacted places refused", a.status, a.body)
	}
	if r.listing() != before {
		t.Errorf("the folder holds\n%s\nwant it unchanged\n%s", r.listing(), before)
	}

	// A key by reference stays what it is, as long as it stays.
	for _, want := range []struct {
		path      string
		reference bool
	}{{"keys", true}, {"keys:rotate", false}} {
		a := r.do("POST", "tenants/referring/"+want.path, "")
		if a.status != 200 || !r.holds("referring", a.Key) || r.holds("referring", "0123456789abcdef") != want.reference {
			t.Errorf("POST %s of a tenant with a key by reference = %d %s; want 200, and the reference kept %t", want.path, a.status, a.body, want.reference)
		}
	}
}

// What is refused, with every mistake and its place in what was sent.
func TestRefusedDocuments(t *testing.T) {
	r := newRig(t)
	r.create("taken")
	before := r.listing()
	hook := func(transport, more string) string {
		return `{"id": "acme", "keys": [{"sha256": "` + digest("a key of acme") + `"}], "registration": {"protocolVersion": "0.1", "hooks": [{"id": "com.example.policy",` +
			` "transport": {"type": "http", "url": ` + transport + `}, "subscriptions": [{"events": ["tool.after"], "mode": "observe"}]` + more + `}]}}`
	}
	for _, c := range []struct {
		name, body string
		want       []string // of every mistake, the path and what stands where it is
	}{
		{"nothing", "", []string{""}},
		{"a list", "[]", []string{" []"}},
		{"a comma too many", "{\n  \"id\": \"acme\",\n}", []string{" ,"}},
		{"a member twice", "{\n  \"id\": \"acme\",\n  \"id\" : \"acme\"}", []string{"id \"id\" :"}},
		{"no id", `{"registration": ` + registration + `}`, []string{"id {"}},
		{"a bad id", `{"id": "../acme", "registration": ` + registration + `}`, []string{`id "../acme"`}},
		{"no registration", `{"id": "acme"}`, []string{"registration {"}},
		{"an unknown member", "{\"id\": \"acme\",\n \"ratee\": 1, \"rate\": -1, \"registration\": " + registration + "}", []string{`ratee "ratee"`, "rate -1"}},
		{"an unknown member of a hook", hook(`"https://policy.example.com"`, `, "x": 1`), []string{`registration.hooks[0].x "x": 1`}},
		{"references", `{"id": "acme", "keys": [{"env": "A"}, {"file": "/etc/passwd"}], "secrets": {"dir": "/"}, "backends": {"com.example.policy": {"caFile": "/x", "allowHTTP": false, "allowPrivate": true, "allowAddresses": ["10.0.0.0/8"], "clientCertFile": "/c", "clientKeyFile": "/k", "issuerCAFile": "/i", "retry": false, "inFlight": 7, "shadow": "*", "breaker": {"probes": 2}, "connections": 3}}, "registration": ["hooks.json"]}`,
			[]string{`keys[0].env "A"`, `keys[1].file "/etc/passwd"`, `secrets.dir "/"}`, `backends["com.example.policy"].caFile "/x"`, `backends["com.example.policy"].allowPrivate true`, `backends["com.example.policy"].allowAddresses ["10.0.0.0/8"]`,
				`backends["com.example.policy"].clientCertFile "/c"`, `backends["com.example.policy"].clientKeyFile "/k"`, `backends["com.example.policy"].issuerCAFile "/i"`, `registration[0] "hooks.json"`}},
		{"a registration by path", `{"id": "acme", "registration": "hooks.json"}`, []string{`registration "hooks.json"`}},
		{"a URL of the gateway's machine", hook(`"http://127.0.0.1:9000"`, ""), []string{`registration.hooks[0].transport.url "http://127.0.0.1:9000"`}},
		{"a name of the gateway's machine", hook(`"https://LOCALHOST/x"`, ""), []string{`registration.hooks[0].transport.url "https://LOCALHOST/x"`}},
		{"an issuer on the gateway's machine", hook(`"https://policy.example.com"`, `, "authentication": {"type": "oauth", "issuer": "http://[::1]:9", "resource": "https://policy.example.com", "clientId": "c", "flow": "client_credentials"}`), []string{`registration.hooks[0].authentication.issuer "http://[::1]:9"`}},
		{"a credential in a URL", hook(`"https://policy.example.com?token=x"`, ""), []string{`registration.hooks[0].transport.url "https:`}},
		{"a credential in a header", hook(`"https://policy.example.com", "headers": {"X-Token": "xyz"}`, ""), []string{`registration.hooks[0].transport.headers.X-Token "xyz"`}},
		{"a reference without a grant", hook(`"https://policy.example.com"`, `, "authentication": {"type": "bearer", "tokenEnv": "AWS_SECRET"}`), []string{`registration.hooks[0].authentication.tokenEnv "AWS_SECRET"`}},
		{"three keys", `{"id": "acme", "keys": [{"sha256": "` + digest("1") + `"}, {"sha256": "` + digest("2") + `"}, {"sha256": "` + digest("3") + `"}], "registration": ` + registration + `}`, []string{`keys [{"sha256`}},
		{"no keys", `{"id": "acme", "keys": [], "registration": ` + registration + `}`, []string{"keys []"}},
		{"a literal key", `{"id": "acme", "keys": ["ahp_acme_secret"], "registration": ` + registration + `}`, []string{`keys[0] "ahp_acme_secret"`}},
	} {
		var want []string
		for _, w := range c.want {
			path, there, _ := strings.Cut(w, " ")
			want = append(want, place(t, c.body, there)+" "+path)
		}
		a := r.do("POST", "tenants", c.body)
		var got []string
		for _, m := range a.Mistakes {
			got = append(got, fmt.Sprintf("%d:%d %s", m.Line, m.Col, m.Path))
			if m.File != "" || m.What == "" || m.Instead == "" {
				t.Errorf("%s: mistake %+v; want it about the request's document, with what and instead", c.name, m)
			}
		}
		if a.status != 422 || !slices.Equal(got, want) || strings.Contains(a.body, "ahp_acme_secret") {
			t.Errorf("POST of %s = %d %q; want 422 %q\n%s", c.name, a.status, got, want, a.body)
		}
	}
	// What is wrong with the configuration as a whole names where.
	for name, body := range map[string]string{"an admin's key": document("acme", adminKey), "another's key": strings.Replace(document("acme", "x"), digest("x"), strings.Repeat("1", 64), 1)} {
		if a := r.do("POST", "tenants", body); a.status != 422 || len(a.Mistakes) != 1 {
			t.Errorf("POST of a tenant with %s = %d %s; want 422 and one mistake", name, a.status, a.body)
		}
	}
	if a := r.do("PUT", "tenants/taken", document("acme", "another-key-0123"), "If-Match: *"); a.status != 422 || a.Mistakes[0].Path != "id" {
		t.Errorf("PUT of another id = %d %s; want 422 at id", a.status, a.body)
	}
	if got := r.listing(); got != before {
		t.Errorf("the folder holds %s; want it unchanged", got)
	}
}

// place returns the line and column of the last of what stands in a text.
func place(t *testing.T, text, what string) string {
	t.Helper()
	i := strings.LastIndex(text, what)
	if what == "{" || what == "" {
		i = 0
	}
	if i < 0 {
		t.Fatalf("%s does not stand in %s", what, text)
	}
	before := text[:i]
	return fmt.Sprintf("%d:%d", 1+strings.Count(before, "\n"), i-strings.LastIndexByte(before, '\n'))
}

// A key that has expired counts as none: what is rotated keeps one that can be
// used, and the last of those cannot be removed. The expired one can.
func TestExpiredKeys(t *testing.T) {
	r := newRig(t)
	const live, expired = "the-live-key-of-acme-01", "the-expired-key-of-acme"
	tenant := fmt.Sprintf(`{"id": "acme", "keys": [{"sha256": %q}, {"sha256": %q, "expires": "2020-01-01T00:00:00Z"}], "registration": %s}`, digest(live), digest(expired), registration)
	if a := r.do("POST", "tenants", tenant); a.status != 201 {
		t.Fatalf("POST = %d %s; want 201", a.status, a.body)
	}
	if a := r.do("DELETE", "tenants/acme/keys/"+digest(live)[:8], ""); a.status != 409 || a.word() != "only-key" || !r.holds("acme", live) {
		t.Errorf("DELETE of the only key that has not expired = %d %s; want 409", a.status, a.body)
	}
	rotated := r.do("POST", "tenants/acme/keys:rotate", "{}")
	if want := []string{digest(live)[:8], digest(rotated.Key)[:8]}; !r.holds("acme", live) || !r.holds("acme", rotated.Key) || !slices.Equal(rotated.Result.Keys, want) {
		t.Errorf("rotate = %d %s; want the expired key gone and %q left", rotated.status, rotated.body, want)
	}
	if a := r.do("PUT", "tenants/acme", tenant, "If-Match: *"); a.status != 200 {
		t.Fatalf("PUT = %d %s; want 200", a.status, a.body)
	}
	if a := r.do("DELETE", "tenants/acme/keys/"+digest(expired)[:8], ""); a.status != 200 || !r.holds("acme", live) {
		t.Errorf("DELETE of the expired key = %d %s; want it gone", a.status, a.body)
	}
}

// YAML bodies get the positions of YAML, and no value is taken for another one
// on the way to JSON.
func TestYAMLBodies(t *testing.T) {
	r := newRig(t)
	post := func(body string) *reply { return r.do("POST", "tenants", body, "Content-Type: application/yaml") }
	const good = `id: acme
registration:
  protocolVersion: 0.1
  hooks:
    - id: com.example.policy
      transport: {type: http, url: "https://policy.example.com"}
      subscriptions: [{events: [tool.after], mode: observe}]
`
	for more, want := range map[string]string{
		"rate: 0x10":          "8:7 rate",
		"rate: 1_000":         "8:7 rate",
		"backends: {a: yes}":  "8:15 backends.a",
		"inFlight: ~":         "8:11 inFlight",
		"burst: &x 1":         "8:8 ",
		"secretz: 2026-01-01": "8:10 secretz",
	} {
		a := post(good + more + "\n")
		if a.status != 422 || len(a.Mistakes) == 0 || fmt.Sprintf("%d:%d %s", a.Mistakes[0].Line, a.Mistakes[0].Col, a.Mistakes[0].Path) != want {
			t.Errorf("POST with %s = %d %s; want a mistake at %s", more, a.status, a.body, want)
		}
	}
	// A time may stand without quotes, here and in what was written by hand.
	dated := func(id string) string {
		return strings.Replace(good, "id: acme", "id: "+id, 1) + `keys: [{sha256: "` + digest("key-of-"+id) + `", expires: 2036-01-01T00:00:00Z}]` + "\n"
	}
	if a := post(dated("dated")); a.status != 201 || !strings.Contains(r.read("tenants/dated.yaml"), `"expires": "2036-01-01T00:00:00Z"`) {
		t.Errorf("POST with a time without quotes = %d %s, stored as %s; want 201 and a text", a.status, a.body, r.read("tenants/dated.yaml"))
	}
	r.write("tenants/byhand.yaml", dated("byhand"))
	r.use()
	if a := r.do("POST", "tenants/byhand/keys:rotate", "{}"); a.status != 200 || len(a.Result.Keys) != 2 {
		t.Errorf("rotate of a key whose time has no quotes = %d %s; want 200 and two keys", a.status, a.body)
	}
	if a := post(good); a.status != 201 {
		t.Errorf("POST of YAML = %d %s; want 201", a.status, a.body)
	}
}

// A document that fits a request and not the file that it would be stored in is
// refused as what it is.
func TestStoredSize(t *testing.T) {
	r := newRig(t)
	before := r.listing()
	body := `{"id": "acme", "registration": ` + registration + `, "backends": {"com.example.policy": {"shadow": [` + strings.Repeat(`"s",`, 1<<17) + `"s"]}}}`
	a := r.do("POST", "tenants", body)
	if a.status != 413 || a.word() != "too-large" || !strings.Contains(a.Detail, "indented JSON") || !strings.Contains(a.Detail, "1048576") {
		t.Errorf("POST of %d bytes = %d %.300s; want 413 that says what is too large", len(body), a.status, a.body)
	}
	if r.listing() != before {
		t.Errorf("the folder holds %s; want it unchanged", r.listing())
	}
}

func TestTrustDocuments(t *testing.T) {
	r := newRig(t)
	r.write("gateway.yaml", strings.Replace(gatewayFile, "adminApi: {", "adminApi: {trustDocuments: true, ", 1))
	r.write("hooks.json", registration)
	r.use()
	a := r.do("POST", "tenants", `{"id": "acme", "keys": [{"env": "ACME_KEY"}], "secrets": {"envPrefix": "ACME_"}, "registration": "../hooks.json"}`)
	if a.status != 201 || a.Key != "" || !r.holds("acme", "0123456789abcdef") || !slices.Equal(a.Result.Keys, []string{""}) {
		t.Errorf("POST with references = %d %s; want 201 without a key", a.status, a.body)
	}
}

func TestWithoutAFolder(t *testing.T) {
	r := newRig(t)
	r.write("gateway.yaml", strings.Replace(gatewayFile, "tenantsDir: tenants", "", 1))
	r.store = nil
	r.use()
	if a := r.do("GET", "tenants", ""); a.status != 200 || len(a.Page.Tenants) != 1 {
		t.Errorf("GET tenants = %d %s; want the one of the list", a.status, a.body)
	}
	if a := r.do("POST", "tenants", document("acme", "key-of-acme-012345")); a.status != 409 || a.word() != "not-managed" {
		t.Errorf("POST = %d %s; want 409", a.status, a.body)
	}
	for _, c := range []string{"GET tenants/acme", "DELETE tenants/acme", "POST tenants/acme/keys"} {
		method, path, _ := strings.Cut(c, " ")
		if a := r.do(method, path, ""); a.status != 404 {
			t.Errorf("%s = %d %s; want 404", c, a.status, a.body)
		}
	}
}

func TestAuthentication(t *testing.T) {
	r := newRig(t)
	r.create("acme")
	tenantKey, _ := r.create("globex")
	before := r.listing()
	for _, path := range []string{"tenants", "tenants/acme", "tenants/acme/keys", "openapi.yaml", "nothing"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			for _, authorization := range []string{"", "Bearer nobody", "Bearer " + tenantKey, "Basic " + adminKey, "Bearer " + digest(adminKey)} {
				a := r.serve(request(method, "/admin/v1/"+path, "", "Authorization: "+authorization, "Content-Type: application/json"))
				if a.status != 401 || a.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s %s with %q = %d %s; want 401", method, path, authorization, a.status, a.body)
				}
			}
		}
	}
	req := request("GET", "/admin/v1/tenants", "")
	req.Header.Add("Authorization", "Bearer "+adminKey)
	if a := r.serve(req); a.status != 401 {
		t.Errorf("two Authorization headers = %d; want 401", a.status)
	}
	if a := r.do("GET", "tenants", "", "Authorization: Bearer "+otherKey); a.status != 200 {
		t.Errorf("the other admin's key = %d; want 200", a.status)
	}
	// A page in a browser gets nothing done.
	if a := r.do("POST", "tenants/acme/keys", "", "Origin: http://127.0.0.1:8788"); a.status != 403 {
		t.Errorf("POST with an Origin = %d; want 403", a.status)
	}
	for _, mediaType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json, text/plain"} {
		for _, path := range []string{"tenants", "tenants/acme/keys", "tenants/acme/keys:rotate"} {
			if a := r.do("POST", path, document("new", "key-of-new-0123456"), "Content-Type: "+mediaType); a.status != 415 {
				t.Errorf("POST %s with type %q = %d; want 415", path, mediaType, a.status)
			}
		}
	}
	if r.listing() != before {
		t.Errorf("the folder holds %s; want it unchanged", r.listing())
	}

	// Keys follow the configuration, and with the last of them the API goes.
	r.write("gateway.yaml", strings.Replace(gatewayFile, "{env: ADMIN_KEY}, ", "", 1))
	r.use()
	if a := r.do("GET", "tenants", ""); a.status != 401 {
		t.Errorf("a key that was removed = %d; want 401", a.status)
	}
	f := *r.file
	f.AdminAPI = config.AdminAPI{}
	if err := r.api.Use(&f, nil, nil, false); err != nil {
		t.Fatal(err)
	}
	if a := httpServe(r.api, request("GET", "/admin/v1/tenants", "")); a.Code != 404 || strings.Contains(a.Body.String(), "problem") {
		t.Errorf("without adminApi = %d %s; want a plain 404", a.Code, a.Body)
	}
	if a := httpServe(admin.New(admin.Options{}), request("GET", "/admin/v1/tenants", "")); a.Code != 404 {
		t.Errorf("before Use = %d; want 404", a.Code)
	}
}

// A tenant that comes by tokens alone gets no key, where it is said so.
func TestTenantWithoutAKey(t *testing.T) {
	r := newRig(t)
	body := `{"id": "acme", "registration": ` + registration + `}`
	if a := r.do("POST", "tenants?key=none", body); a.status != 422 || len(a.Mistakes) != 1 || a.Mistakes[0].Path != "keys" || r.listing() != "" {
		t.Errorf("POST without a key of a tenant that nothing reaches = %d %s; want 422 about keys, and nothing left", a.status, a.body)
	}
	r.write("gateway.yaml", gatewayFile+"auth: {resource: 'https://gateway.example/hooks', issuers: [{issuer: 'https://idp.example', tenantClaim: tenant}]}\n")
	r.use()
	for _, query := range []string{"key=", "key=some", "key=none&key=none", "key=none&limit=1", "limit=1", "key=none;", "%zz"} {
		if a := r.do("POST", "tenants?"+query, body); a.status != 400 || a.word() != "bad-query" {
			t.Errorf("POST tenants?%s = %d %s; want 400", query, a.status, a.body)
		}
	}
	if a := r.do("POST", "tenants?key=none", document("acme", "key-of-acme-012345")); a.status != 400 || a.word() != "bad-query" {
		t.Errorf("POST without a key of a document with one = %d %s; want 400", a.status, a.body)
	}
	a := r.do("POST", "tenants?key=none", body)
	if a.status != 201 || a.Key != "" || len(a.Result.Keys) != 0 || strings.Contains(r.read("tenants/acme.yaml"), "keys") {
		t.Errorf("POST without a key = %d %s, stored %s; want 201 and no key", a.status, a.body, r.read("tenants/acme.yaml"))
	}
	// One can be made for it later.
	if a := r.do("POST", "tenants/acme/keys", ""); a.status != 200 || !r.holds("acme", a.Key) {
		t.Errorf("POST of its first key = %d %s; want 200", a.status, a.body)
	}
	if key, _ := r.create("globex"); !r.holds("globex", key) {
		t.Error("a tenant that tokens reach got no key; want one unless it is said otherwise")
	}
}

func TestPathTricks(t *testing.T) {
	r := newRig(t)
	r.create("acme")
	r.write("secret.yaml", document("secret", "key-of-secret-0123"))
	before := r.listing()
	for _, id := range []string{
		"", ".", "..", "..%2f", "..%2fsecret", "%2e%2e%2fsecret", "..%5csecret", "%2fetc%2fpasswd", "ACME", "Acme", "%41cme", "%61cme", "acme%00", "acme.yaml",
		"acme%2f", "-acme", "acme ", "acme%20", "..;", "acme;x", "a_b", "é", "%c3%a9", strings.Repeat("a", 64), "acme/keys/../..", "acme/keys/",
		"acme/", "acme/keys:rotate/", "acme//keys", "/acme",
	} {
		for _, method := range []string{"GET", "PUT", "DELETE", "POST"} {
			req := request(method, "/", document("acme", "key-of-acme-012345"), "If-Match: *")
			req.URL.RawPath, req.URL.Path = "/admin/v1/tenants/"+id, ""
			path, err := unescape(req.URL.RawPath)
			if err != nil {
				t.Fatal(err)
			}
			req.URL.Path = path
			if a := r.serve(req); a.status != 404 {
				t.Errorf("%s of id %q = %d %s; want 404", method, id, a.status, a.body)
			}
		}
	}
	for _, start := range []string{"0123456", "0123456G", "0123456F", strings.Repeat("0", 65)} {
		if a := r.do("DELETE", "tenants/acme/keys/"+start, ""); a.status != 400 || a.word() != "bad-digest" || !strings.Contains(a.Detail, "8 to 64") {
			t.Errorf("DELETE of key %s = %d %s; want 400 and what to write", start, a.status, a.body)
		}
	}
	if a := r.do("GET", "tenants/Acme", ""); a.word() != "no-such-tenant" || !strings.Contains(a.Detail, "lower-case") {
		t.Errorf("GET of tenant Acme = %d %s; want what an id is", a.status, a.body)
	}
	if r.listing() != before || r.read("secret.yaml") != document("secret", "key-of-secret-0123") {
		t.Errorf("the folder holds %s; want it unchanged", r.listing())
	}
}

func TestMethods(t *testing.T) {
	r := newRig(t)
	for path, allow := range map[string]string{
		"tenants": "GET, POST", "tenants/acme": "DELETE, GET, PUT", "tenants/acme/keys": "POST", "tenants/acme/keys:rotate": "POST",
		"tenants/acme/keys/01234567": "DELETE", "openapi.yaml": "GET",
	} {
		for _, method := range []string{"HEAD", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "X"} {
			a := r.do(method, path, "")
			if a.status != 405 || a.header.Get("Allow") != allow {
				t.Errorf("%s %s = %d, Allow %q; want 405, %s", method, path, a.status, a.header.Get("Allow"), allow)
			}
		}
	}
}

func TestIfMatch(t *testing.T) {
	r := newRig(t)
	_, etag := r.create("acme")
	body := document("acme", "key-of-acme-012345")
	for match, want := range map[string]int{
		"": 428, `"0"`: 412, "W/" + etag: 412, strings.Trim(etag, `"`): 400, `*, ` + etag: 400, `"a`: 400, `"a"b"`: 400, ",": 400,
	} {
		for _, method := range []string{"PUT", "DELETE"} {
			text := body
			if method == "DELETE" {
				text = ""
			}
			if a := r.do(method, "tenants/acme", text, "If-Match: "+match); a.status != want {
				t.Errorf("%s with If-Match %s = %d %s; want %d", method, match, a.status, a.body, want)
			}
		}
	}
	for method, text := range map[string]string{"PUT": document("absent", "key-of-absent-0123"), "DELETE": ""} {
		if a := r.do(method, "tenants/absent", text, "If-Match: *"); a.status != 412 {
			t.Errorf("%s of an absent tenant with If-Match = %d; want 412", method, a.status)
		}
		if a := r.do(method, "tenants/absent", text); a.status != 404 {
			t.Errorf("%s of an absent tenant = %d; want 404", method, a.status)
		}
	}
	if a := r.do("PUT", "tenants/acme", body, `If-Match: "0", `+etag); a.status != 200 {
		t.Errorf("PUT with the right tag among others = %d; want 200", a.status)
	}
	if a := r.do("DELETE", "tenants/acme", "", "If-Match: *"); a.status != 200 {
		t.Errorf("DELETE with * = %d; want 200", a.status)
	}
}

// Of changes of one document at the same time one is made, and the others learn
// that it is another one by now.
func TestConcurrentPuts(t *testing.T) {
	r := newRig(t)
	_, etag := r.create("acme")
	r.loadSpec()
	const clients = 16
	var won, lost atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			req := request("PUT", "/admin/v1/tenants/acme", document("acme", fmt.Sprintf("key-%016d", i)), "If-Match: "+etag)
			switch w := httpServe(r.api, req); w.Code {
			case 200:
				won.Add(1)
			case 412:
				lost.Add(1)
			default:
				t.Errorf("PUT = %d %s; want 200 or 412", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || lost.Load() != clients-1 {
		t.Errorf("of %d changes %d were made and %d refused; want exactly one made", clients, won.Load(), lost.Load())
	}
}

// A change by other means in the last moment is not overwritten.
func TestChangedByHandMeanwhile(t *testing.T) {
	r := newRig(t)
	_, etag := r.create("acme")
	byHand := document("acme", "key-by-hand-0123456")
	r.meanwhile = func() { r.write("tenants/acme.yaml", byHand) }
	if a := r.do("PUT", "tenants/acme", document("acme", "key-of-acme-012345"), "If-Match: "+etag); a.status != 412 {
		t.Errorf("PUT = %d %s; want 412", a.status, a.body)
	}
	if a := r.do("DELETE", "tenants/acme", "", "If-Match: "+etag); a.status != 412 {
		t.Errorf("DELETE = %d %s; want 412", a.status, a.body)
	}
	if got := r.read("tenants/acme.yaml"); got != byHand {
		t.Errorf("document = %s; want that which was written by hand", got)
	}
}

func TestRecords(t *testing.T) {
	r := newRig(t)
	key, etag := r.create("acme")
	r.do("PUT", "tenants/acme", document("acme", "key-of-acme-012345"), "If-Match: "+etag)
	after := strings.Trim(r.do("GET", "tenants/acme", "").header.Get("ETag"), `"`)
	r.do("PUT", "tenants/acme", "{}", "If-Match: "+etag)
	r.do("POST", "tenants/acme/keys", "", "Authorization: Bearer nobody-knows-this-key")
	r.do("POST", "tenants/..%2f"+key, "")
	r.do("DELETE", "tenants/acme", "", "If-Match: *", "Authorization: Bearer "+otherKey)
	before := strings.Trim(etag, `"`)
	us, them := digest(adminKey)[:8], digest(otherKey)[:8]
	want := []string{
		`{"tenant":"acme","generation":2,"change":{"outcome":"done","status":201,"action":"create","by":"` + us + `","after":"` + before + `"}}`,
		`{"tenant":"acme","generation":3,"change":{"outcome":"done","status":200,"action":"put","by":"` + us + `","before":"` + before + `","after":"` + after + `"}}`,
		`{"tenant":"acme","change":{"outcome":"refused","status":422,"action":"put","by":"` + us + `"}}`,
		`{"change":{"outcome":"refused","status":401,"action":"unknown"}}`,
		`{"change":{"outcome":"refused","status":404,"action":"unknown","by":"` + us + `"}}`,
		`{"tenant":"acme","generation":4,"change":{"outcome":"done","status":200,"action":"delete","by":"` + them + `","before":"` + after + `"}}`,
	}
	duration, at := regexp.MustCompile(`,"duration_us":[0-9]+`), regexp.MustCompile(`"time":"[^"]*",?`)
	for i, rec := range r.records {
		line := string(audit.AppendJSON(nil, rec))
		got := strings.TrimSpace(at.ReplaceAllString(duration.ReplaceAllString(line, ""), ""))
		if i >= len(want) || got != want[i] {
			t.Errorf("record %d = %s; want %s", i, got, want[min(i, len(want)-1)])
		}
		if strings.Contains(line, key) || strings.Contains(line, "nobody-knows") {
			t.Errorf("record %d holds a key: %s", i, line)
		}
	}
	if len(r.records) != len(want) {
		t.Errorf("%d records; want %d", len(r.records), len(want))
	}
}

// Requests without a good key are recorded, and not without end.
func TestRecordsOfStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, want := range []int{10, 20} {
			for range 100 {
				r.do("POST", "tenants/acme/keys", "", "Authorization: Bearer nobody-knows-this-key")
			}
			if len(r.records) != want {
				t.Errorf("records = %d; want %d", len(r.records), want)
			}
			time.Sleep(time.Second)
		}
		r.do("POST", "tenants/acme/keys", "")
		if last := r.records[len(r.records)-1].Change; last.By == "" {
			t.Errorf("last record = %+v; want that of a good key", last)
		}
	})
}

// failing is a store that fails as a full or broken disk does.
type failing struct {
	admin.Store
	err error
}

func (s failing) Get(context.Context, string) ([]byte, error)       { return nil, s.err }
func (s failing) Put(context.Context, string, []byte, string) error { return s.err }
func (s failing) Delete(context.Context, string, string) error      { return s.err }

// A store that cannot be had is no fault of the API's: it asks to come again.
func TestStoreUnavailable(t *testing.T) {
	r := newRig(t)
	_, etag := r.create("acme")
	gone := fmt.Errorf("%w: timeout; nothing was changed", admin.ErrUnavailable)
	expect := func(when string, a *reply) {
		t.Helper()
		if a.status != 503 || a.word() != "store-unavailable" || a.header.Get("Retry-After") == "" || !strings.Contains(a.Detail, "nothing was changed") {
			t.Errorf("%s = %d %s; want 503 that says why, and Retry-After", when, a.status, a.body)
		}
	}
	whole := r.store
	r.failure = gone
	expect("DELETE that Apply refuses", r.do("DELETE", "tenants/acme", "", "If-Match: "+etag))
	r.failure = nil
	if err := r.api.Use(r.file, putless{failing{whole, gone}}, nil, false); err != nil {
		t.Fatal(err)
	}
	expect("DELETE that cannot be stored", r.do("DELETE", "tenants/acme", "", "If-Match: "+etag))
	if err := r.api.Use(r.file, failing{whole, gone}, nil, false); err != nil {
		t.Fatal(err)
	}
	expect("DELETE of what cannot be read", r.do("DELETE", "tenants/acme", "", "If-Match: "+etag))
	expect("GET", r.do("GET", "tenants/absent", ""))
	expect("GET of all", r.do("GET", "tenants", ""))
	if got := r.read("tenants/acme.yaml"); !strings.Contains(got, "acme") {
		t.Errorf("document = %s; want what it was", got)
	}
}

// putless can be read alone.
type putless struct{ failing }

func (s putless) Get(ctx context.Context, id string) ([]byte, error) { return s.Store.Get(ctx, id) }

// Every answer that the description has is one that is given.
func TestEveryAnswer(t *testing.T) {
	r := newRig(t)
	_, etag := r.create("acme")
	document := document("acme", "key-of-acme-012345")
	match := "If-Match: " + etag
	large := `{"id": "` + strings.Repeat("a", 1<<20) + `"}`
	operations := []struct{ method, path, body string }{
		{"GET", "openapi.yaml", ""}, {"GET", "tenants", ""}, {"POST", "tenants", document},
		{"GET", "tenants/acme", ""}, {"PUT", "tenants/acme", document}, {"DELETE", "tenants/acme", ""},
		{"POST", "tenants/acme/keys", ""}, {"POST", "tenants/acme/keys:rotate", ""}, {"DELETE", "tenants/acme/keys/01234567", ""},
	}
	everywhere := func(headers ...string) {
		for _, o := range operations {
			r.do(o.method, o.path, o.body, append([]string{match}, headers...)...)
		}
	}
	everywhere("Authorization: ")
	everywhere("Origin: http://127.0.0.1")
	everywhere("Content-Encoding: gzip")
	everywhere("If-Match: x")
	everywhere(`If-Match: "x"`)
	for _, o := range operations {
		r.do(o.method, o.path, large, match)
		if o.path != "tenants" {
			r.do(o.method, strings.Replace(o.path, "acme", "absent", 1), strings.Replace(o.body, "acme", "absent", 1))
		}
		r.do(o.method, strings.Replace(o.path, "acme", "listed", 1), strings.Replace(o.body, "acme", "listed", 1))
		req := request(o.method, "/admin/v1/"+o.path, "", match)
		req.Body = io.NopCloser(&brokenBody{})
		req.Header.Set("Content-Type", "application/json")
		r.serve(req)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		body := o.body
		if o.path == "tenants" {
			body = strings.Replace(body, "acme", "late", 1)
		}
		r.serve(request(o.method, "/admin/v1/"+o.path, body, "If-Match: *").WithContext(ctx))
	}
	r.do("GET", "tenants?limit=x", "")
	r.do("POST", "tenants", "{}")
	r.do("PUT", "tenants/acme", "{}")
	r.do("PUT", "tenants/acme", document)
	r.do("DELETE", "tenants/acme", "")

	second := digest(r.do("POST", "tenants/acme/keys", "").Key)[:8]
	deletion := "tenants/acme/keys/" + second
	// A configuration that cannot be served refuses whatever is asked.
	r.write("gateway.yaml", gatewayFile+"limitz: {}\n")
	r.do("POST", "tenants/acme/keys:rotate", "")
	r.do("DELETE", deletion, "")
	r.do("DELETE", "tenants/acme", "", "If-Match: *")
	r.write("gateway.yaml", gatewayFile)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.serve(request("DELETE", "/admin/v1/"+deletion, "").WithContext(ctx))
	r.do("POST", "tenants/acme/keys:rotate", "")
	r.do("DELETE", deletion, "")
	r.write("gateway.yaml", gatewayFile+"limitz: {}\n")
	r.do("POST", "tenants/acme/keys", "")
	r.write("gateway.yaml", gatewayFile)
	r.do("PUT", "tenants/acme", document, "If-Match: *")
	// In the last moment, somebody else makes the document.
	r.meanwhile = func() { r.write("tenants/late.yaml", "{}") }
	r.do("POST", "tenants", `{"id": "late", "registration": `+registration+`}`)
	r.meanwhile = nil
	if err := os.Remove(r.tenants("late.yaml")); err != nil {
		t.Fatal(err)
	}
	r.write("tenants/acme.yaml", "{")
	if err := r.api.Use(without(r.file, "acme"), r.store, nil, false); err != nil {
		t.Fatal(err)
	}
	r.do("GET", "tenants/acme", "")
	r.write("tenants/acme.yaml", document)
	r.use()
	whole := r.store
	r.store = failing{whole, admin.ErrUnavailable}
	r.use()
	r.do("GET", "tenants/unstored", "")
	r.do("GET", "tenants", "")
	r.store = failing{whole, errors.New("broken")}
	r.use()
	r.do("GET", "tenants/unstored", "")
	r.do("POST", "tenants", `{"id": "unstored", "registration": `+registration+`}`)
	for _, o := range operations {
		r.do(o.method, o.path, o.body, "If-Match: *")
	}
	r.store = whole
	r.use()
	r.do("DELETE", "tenants/acme", "", "If-Match: *")
	maps.Copy(r.seen, everySecretAnswer(t))

	for path, item := range r.spec.Paths.Map() {
		for _, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				if pair := operation.OperationID + " " + status; !r.seen[pair] {
					t.Errorf("%s %s: no test was answered with it", path, pair)
				}
			}
		}
	}
}

// without returns f without a tenant.
func without(f *config.File, id string) *config.File {
	g := *f
	g.Tenants = slices.DeleteFunc(slices.Clone(f.Tenants), func(t config.Tenant) bool { return t.ID == id })
	return &g
}

type brokenBody struct{}

func (*brokenBody) Read([]byte) (int, error) { return 0, errors.New("broken off") }

var _ http.Handler = (*admin.API)(nil)
