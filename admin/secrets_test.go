package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/sealed"
)

const (
	storingFile = "tenantsDir: tenants\nadminApi: {keys: [{env: ADMIN_KEY}], secretsKey: {env: SECRETS_KEY}}\n"
	secretValue = "the-secret-of-a-tenant"
	asText      = "Content-Type: text/plain; charset=utf-8"
)

// storing is a rig that stores secrets, with the tenants acme and globex, of which
// acme refers to one.
func storing(t testing.TB) *rig {
	t.Helper()
	r := newRig(t, "gateway.yaml", storingFile)
	referring := strings.Replace(registration, `"subscriptions"`, `"authentication": {"type": "bearer", "tokenRef": "token"}, "subscriptions"`, 1)
	a := r.do("POST", "tenants", `{"id": "acme", "secrets": {"stored": true}, "registration": `+referring+`}`)
	if a.status != http.StatusCreated || len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0].What, "stored") {
		t.Fatalf("POST of a tenant that refers to a secret = %d %s; want 201, and a warning that there is none", a.status, a.body)
	}
	r.create("globex")
	return r
}

// expect fails the test unless the tenant's secret is what the gateway file's
// keys open.
func (r *rig) expect(what, id, name, want string) {
	r.t.Helper()
	got, err := r.secrets(r.file).Open(id, name)
	if got != want || (want == "") != errors.Is(err, sealed.ErrAbsent) {
		r.t.Errorf("%s: secret %s of %s = %q, %v; want %q", what, name, id, got, err, want)
	}
}

func (r *rig) listSecrets(id string) []admin.Secret {
	r.t.Helper()
	a := r.do("GET", "tenants/"+id+"/secrets", "")
	var list admin.SecretList
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.status != 200 || list.Secrets == nil {
		r.t.Fatalf("GET of secrets of %s = %d %s; want a list", id, a.status, a.body)
	}
	return list.Secrets
}

func TestSecretsComeChangeAndGo(t *testing.T) {
	r := storing(t)
	began := time.Now().Add(-2 * time.Second)
	put := r.do("PUT", "tenants/acme/secrets/token", secretValue, asText)
	if put.status != 200 || put.Generation != 4 || put.Result.Secret == nil || put.Result.Secret.Name != "token" || len(put.Warnings) != 0 {
		t.Fatalf("PUT = %d %s; want 200, generation 4, the secret and no warning", put.status, put.body)
	}
	r.expect("after PUT", "acme", "token", secretValue)
	list := r.listSecrets("acme")
	if len(list) != 1 || list[0] != *put.Result.Secret || list[0].Set.Before(began) || len(list[0].Digest) != 8 || list[0].Unusable {
		t.Errorf("list = %+v; want what PUT answered, %+v", list, put.Result.Secret)
	}
	again := r.do("PUT", "tenants/acme/secrets/token", "another", "Content-Type: application/octet-stream")
	if again.status != 200 || again.Result.Secret.Digest == list[0].Digest {
		t.Errorf("PUT of another value = %d %s; want another digest", again.status, again.body)
	}
	if len(r.listSecrets("globex")) != 0 {
		t.Error("globex has a secret; want none")
	}
	if a := r.do("DELETE", "tenants/globex/secrets/token", ""); a.status != 404 || a.word() != "no-such-secret" {
		t.Errorf("DELETE of a secret that is not there = %d %s; want 404", a.status, a.body)
	}
	if a := r.do("DELETE", "tenants/acme/secrets/token", ""); a.status != 200 || len(a.Warnings) != 1 || a.Result.Secret != nil {
		t.Errorf("DELETE = %d %s; want 200, and a warning that one is missing", a.status, a.body)
	}
	r.expect("after DELETE", "acme", "token", "")

	// Nothing of a value is where it is not sealed.
	r.do("PUT", "tenants/acme/secrets/token", secretValue, asText)
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secretValue) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*reply{put, r.do("GET", "tenants/acme", ""), r.do("GET", "tenants/acme/secrets", "")} {
		if strings.Contains(a.body, secretValue) {
			t.Errorf("answer %s shows the secret", a.body)
		}
	}
	for _, rec := range r.records {
		text := fmt.Sprintf("%+v", *rec.Change)
		if strings.Contains(text, secretValue) || strings.Contains(text, put.Result.Secret.Digest) {
			t.Errorf("record %s shows the secret or its digest", text)
		}
	}
	last := r.records[len(r.records)-1]
	if last.Tenant != "acme" || last.Change.Action != "put-secret" || last.Change.Secret != "token" || last.Change.Status != 200 || last.Generation == 0 {
		t.Errorf("record = %+v of %s; want put-secret of token", last.Change, last.Tenant)
	}

	// A removed tenant leaves nothing to another of its id.
	if a := r.do("DELETE", "tenants/acme", "", "If-Match: *"); a.status != 200 {
		t.Fatalf("DELETE of the tenant = %d %s; want 200", a.status, a.body)
	}
	r.expect("after the tenant is removed", "acme", "token", "")
	r.create("acme")
	r.expect("of a new tenant", "acme", "token", "")
}

// Who sets a secret that nothing reads is told so, and why.
func TestSecretsThatNothingReads(t *testing.T) {
	r := storing(t)
	for _, c := range []struct{ path, what string }{
		{"acme/secrets/token", ""},
		{"acme/secrets/tokem", "nothing in the tenant's documents refers to a secret of this name"},
		{"globex/secrets/token", "nothing reads the secret, because the tenant's document does not say that it has stored secrets"},
	} {
		a := r.do("PUT", "tenants/"+c.path, secretValue, asText)
		what := ""
		for _, w := range a.Warnings {
			if w.What != "no such secret of the tenant is stored" {
				what += w.What
			}
			if !w.Warning || w.Instead == "" {
				t.Errorf("PUT %s: warning %+v; want one that says what to write", c.path, w)
			}
		}
		if a.status != 200 || what != c.what || a.Result.Secret == nil {
			t.Errorf("PUT %s = %d %s; want 200 and %q", c.path, a.status, a.body, c.what)
		}
	}
	if a := r.do("DELETE", "tenants/globex/secrets/token", ""); a.status != 200 || len(a.Warnings) != 0 {
		t.Errorf("DELETE of what nothing reads = %d %s; want 200 and no warning", a.status, a.body)
	}
}

// No tenant is made that would find the secrets of another of its id: of one whose
// file was removed by hand, or that went while no secrets could be removed. Nor
// are they removed for it.
func TestSecretsLeftByAnother(t *testing.T) {
	r := storing(t)
	r.do("PUT", "tenants/acme/secrets/token", secretValue, asText)
	r.do("PUT", "tenants/acme/secrets/other", secretValue, asText)
	if a := r.do("GET", "tenants/late/secrets", ""); a.status != 404 {
		t.Errorf("GET of secrets of a tenant that there never was = %d %s; want 404", a.status, a.body)
	}
	byHand := r.read("tenants/acme.yaml")
	if err := os.Remove(r.tenants("acme.yaml")); err != nil {
		t.Fatal(err)
	}
	r.use()
	anew := `{"id": "acme", "secrets": {"stored": true}, "registration": ` + registration + `}`
	for range 2 {
		if a := r.do("POST", "tenants", anew); a.status != 409 || a.word() != "secrets-left" || strings.Contains(a.body, secretValue) {
			t.Fatalf("POST of a tenant of an id with secrets = %d %s; want 409", a.status, a.body)
		}
		r.expect("after a tenant was not made", "acme", "token", secretValue)
	}
	if a := r.do("PUT", "tenants/acme/secrets/token", "hunter2", asText); a.status != 404 {
		t.Errorf("PUT of a secret of no tenant = %d %s; want 404", a.status, a.body)
	}
	if a := r.do("POST", "tenants/acme/secrets:reseal", "{}"); a.status != 404 {
		t.Errorf("reseal of secrets of no tenant = %d %s; want 404", a.status, a.body)
	}

	// Its file may come back, with what it had.
	r.write("tenants/acme.yaml", byHand)
	r.use()
	r.expect("after the file is back", "acme", "token", secretValue)
	if err := os.Remove(r.tenants("acme.yaml")); err != nil {
		t.Fatal(err)
	}
	r.use()

	if list := r.listSecrets("acme"); len(list) != 2 {
		t.Errorf("secrets that are left = %+v; want the two", list)
	}
	for _, name := range []string{"token", "other"} {
		if a := r.do("DELETE", "tenants/acme/secrets/"+name, ""); a.status != 200 {
			t.Errorf("DELETE of a secret that is left = %d %s; want 200", a.status, a.body)
		}
	}
	if a := r.do("GET", "tenants/acme/secrets", ""); a.status != 404 {
		t.Errorf("GET of secrets once none is left = %d %s; want 404", a.status, a.body)
	}
	if a := r.do("POST", "tenants", anew); a.status != http.StatusCreated {
		t.Errorf("POST once no secret is left = %d %s; want 201", a.status, a.body)
	}
	r.expect("of the new tenant", "acme", "token", "")
}

// What another replica does between a request and its turn: the secrets of a
// tenant that it made are not removed by one that makes a tenant of the same id,
// and a secret that was meant for the tenant of before is not left to another.
func TestSecretsBesideAnotherReplica(t *testing.T) {
	r := storing(t)
	other := r.secrets(r.file)
	late := `{"id": "late", "secrets": {"stored": true}, "registration": ` + registration + `}`
	for _, c := range []struct {
		what      string
		meanwhile func()
	}{
		{"makes it", func() { r.write("tenants/late.yaml", document("late", "key-of-late-012345")) }},
		{"makes it and sets a secret", func() {
			r.write("tenants/late.yaml", document("late", "key-of-late-012345"))
			if _, err := other.Put("late", "token", secretValue, time.Now()); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		r.meanwhile = c.meanwhile
		if a := r.do("POST", "tenants", late); a.status != 412 {
			t.Errorf("POST while another replica %s = %d %s; want 412", c.what, a.status, a.body)
		}
		r.meanwhile = nil
		if err := os.Remove(r.tenants("late.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	r.expect("that another replica has set", "late", "token", secretValue)

	// acme goes and another acme comes just before its turn to change.
	r.do("PUT", "tenants/acme/secrets/token", secretValue, asText)
	before := r.read("tenants/acme.yaml")
	for _, c := range []struct {
		what      string
		meanwhile func()
	}{
		{"removes the tenant", func() {
			if err := os.Remove(r.tenants("acme.yaml")); err != nil {
				t.Fatal(err)
			}
		}},
		{"makes another of its id", func() { r.write("tenants/acme.yaml", document("acme", "another-key-of-acme")) }},
	} {
		for _, o := range []struct{ method, path, body, mediaType string }{
			{"PUT", "token", "hunter2", "text/plain"}, {"PUT", "new", "hunter2", "text/plain"}, {"DELETE", "token", "", ""},
		} {
			r.write("tenants/acme.yaml", before)
			r.use()
			r.begun = c.meanwhile
			a := r.do(o.method, "tenants/acme/secrets/"+o.path, o.body, "Content-Type: "+o.mediaType)
			if a.status != 503 || a.word() != "busy" {
				t.Errorf("%s %s while another replica %s = %d %s; want 503", o.method, o.path, c.what, a.status, a.body)
			}
			r.begun = nil
			r.expect("while another replica "+c.what, "acme", "token", secretValue)
			r.expect("while another replica "+c.what, "acme", "new", "")
		}
	}
}

// counted is a store of which a test knows the next call but so many of Get.
type counted struct {
	admin.Store
	left int
	call func()
}

func (s *counted) Get(ctx context.Context, id string) ([]byte, error) {
	if s.left--; s.left == 0 {
		s.call()
	}
	return s.Store.Get(ctx, id)
}

// Taking a change of a secret back brings nothing back that another replica has
// removed with its tenant meanwhile, at whatever point that is.
func TestRemovedSecretsStayRemoved(t *testing.T) {
	for _, o := range []struct {
		method, body string
		refuse       bool // the gateway cannot be served with the change
	}{
		{"PUT", "hunter2", false}, {"PUT", "hunter2", true}, {"DELETE", "", false}, {"DELETE", "", true},
	} {
		for point := 1; ; point++ {
			r := storing(t)
			r.do("PUT", "tenants/acme/secrets/token", secretValue, asText)
			other, happened := r.secrets(r.file), false
			r.store = &counted{r.store, point, func() {
				happened = true
				if err := os.Remove(r.tenants("acme.yaml")); err != nil {
					t.Fatal(err)
				}
				if err := other.Clear("acme"); err != nil {
					t.Fatal(err)
				}
				r.write("tenants/acme.yaml", document("acme", "another-key-of-acme"))
			}}
			if err := r.api.Use(r.file, r.store, r.secrets(r.file), false); err != nil {
				t.Fatal(err)
			}
			if o.refuse {
				r.refuse = errors.New("it cannot be served")
			}
			a := r.do(o.method, "tenants/acme/secrets/token", o.body, asText)
			if !happened {
				if point < 4 {
					t.Errorf("%s reads the document %d times; want it looked at before and after", o.method, point-1)
				}
				break
			}
			got, err := other.Open("acme", "token")
			if got == secretValue || err != nil && !errors.Is(err, sealed.ErrAbsent) {
				t.Errorf("%s (refused %t), another tenant made at point %d: secret = %q, %v; want nothing of the tenant before", o.method, o.refuse, point, got, err)
			}
			// What is set before the first look is set for whoever is there then.
			if point > 1 && (got != "" || a.status == 200) {
				t.Errorf("%s (refused %t), another tenant made at point %d = %d %s, secret %q; want nothing changed", o.method, o.refuse, point, a.status, a.body, got)
			}
		}
	}
}

func TestSecretsThatAreRefused(t *testing.T) {
	r := storing(t)
	r.do("PUT", "tenants/acme/secrets/token", secretValue, asText)
	for _, c := range []struct {
		method, path, body, mediaType string
		status                        int
		word                          string
	}{
		{"PUT", "acme/secrets/token", "", "text/plain", 422, "bad-secret"},
		{"PUT", "acme/secrets/token", "hunter2\n", "text/plain", 422, "bad-secret"},
		{"PUT", "acme/secrets/token", "a\rb", "text/plain", 422, "bad-secret"},
		{"PUT", "acme/secrets/token", "a\x00b", "application/octet-stream", 422, "bad-secret"},
		{"PUT", "acme/secrets/token", strings.Repeat("v", sealed.MaxValue+1), "text/plain", 413, "too-large"},
		{"PUT", "acme/secrets/token", "{}", "application/json", 415, "media-type"},
		{"PUT", "acme/secrets/token", "hunter2", "", 415, "media-type"},
		{"PUT", "acme/secrets/Token", "hunter2", "text/plain", 400, "bad-secret-name"},
		{"PUT", "acme/secrets/..", "hunter2", "text/plain", 400, "bad-secret-name"},
		{"PUT", "acme/secrets/a%2fb", "hunter2", "text/plain", 400, "bad-secret-name"},
		{"PUT", "acme/secrets/.changed", "hunter2", "text/plain", 400, "bad-secret-name"},
		{"DELETE", "acme/secrets/Token", "", "", 400, "bad-secret-name"},
		{"DELETE", "acme/secrets/" + strings.Repeat("a", 65), "", "", 400, "bad-secret-name"},
		{"GET", "acme/secrets/Token", "", "", 405, "method-not-allowed"},
		{"PUT", "acme/secrets/", "hunter2", "text/plain", 404, "no-such-path"},
		{"PUT", "Acme/secrets/token", "hunter2", "text/plain", 404, "no-such-tenant"},
		{"PUT", "absent/secrets/token", "hunter2", "text/plain", 404, "no-such-tenant"},
		{"DELETE", "absent/secrets/token", "", "", 404, "no-such-tenant"},
		{"GET", "absent/secrets", "", "", 404, "no-such-tenant"},
		{"DELETE", "acme/secrets/token", "x", "", 400, "unexpected-body"},
		{"GET", "acme/secrets/token", "", "", 405, "method-not-allowed"},
		{"POST", "acme/secrets/token", "hunter2", "text/plain", 405, "method-not-allowed"},
		{"POST", "acme/secrets:reseal", "x", "application/json", 400, "unexpected-body"},
		{"POST", "acme/secrets:reseal", "", "text/plain", 415, "media-type"},
	} {
		a := r.do(c.method, "tenants/"+c.path, c.body, "Content-Type: "+c.mediaType)
		if a.status != c.status || a.word() != c.word || strings.Contains(a.body, "hunter2") {
			t.Errorf("%s %s %.20q = %d %s; want %d %s", c.method, c.path, c.body, a.status, a.body, c.status, c.word)
		}
		if c.word == "bad-secret-name" && !strings.Contains(a.Detail, "1 to 64 lower-case letters") {
			t.Errorf("%s %s = %s; want the rule of names", c.method, c.path, a.body)
		}
	}
	if a := r.do("PUT", "tenants/acme/secrets/token", "hunter2", asText, "Authorization: Bearer wrong-key"); a.status != 401 {
		t.Errorf("PUT without a good key = %d; want 401", a.status)
	}
	if a := r.do("PUT", "tenants/acme/secrets/token", "hunter2", asText, "Origin: http://127.0.0.1"); a.status != 403 {
		t.Errorf("PUT from a page = %d; want 403", a.status)
	}
	// What the gateway cannot be served with leaves what was there.
	r.refuse = config.Mistakes{{File: r.store.Place("acme"), What: "cannot be asked", Instead: "start it"}}
	if a := r.do("PUT", "tenants/acme/secrets/token", "hunter2", asText); a.status != 422 {
		t.Errorf("PUT that cannot be served = %d %s; want 422", a.status, a.body)
	}
	if a := r.do("PUT", "tenants/acme/secrets/new", "hunter2", asText); a.status != 422 {
		t.Errorf("PUT of a new one that cannot be served = %d %s; want 422", a.status, a.body)
	}
	if a := r.do("DELETE", "tenants/acme/secrets/token", ""); a.status != 422 {
		t.Errorf("DELETE that cannot be served = %d %s; want 422", a.status, a.body)
	}
	r.refuse = nil
	r.expect("after what was refused", "acme", "token", secretValue)
	r.expect("after what was refused", "acme", "new", "")
	for i := range sealed.MaxSecrets - 1 {
		if _, err := r.secrets(r.file).Put("acme", fmt.Sprint("s", i), "v", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if a := r.do("PUT", "tenants/acme/secrets/one-more", "hunter2", asText); a.status != 409 || a.word() != "too-many-secrets" {
		t.Errorf("PUT of one too many = %d %s; want 409", a.status, a.body)
	}
}

// Where no key is given no secret is stored, and the answer says what is missing.
func TestSecretsWithoutAKey(t *testing.T) {
	r := newRig(t)
	r.create("acme")
	for _, c := range []struct{ method, path, mediaType string }{
		{"PUT", "/token", "text/plain"}, {"DELETE", "/token", ""}, {"GET", "", ""}, {"POST", ":reseal", "application/json"},
	} {
		body := ""
		if c.method == "PUT" {
			body = "hunter2"
		}
		a := r.do(c.method, "tenants/acme/secrets"+c.path, body, "Content-Type: "+c.mediaType)
		if a.status != 409 || a.word() != "no-secrets" || !strings.Contains(a.Detail, "adminApi.secretsKey") {
			t.Errorf("%s secrets%s = %d %s; want 409 that names the missing key", c.method, c.path, a.status, a.body)
		}
	}
	if a := r.do("PUT", "tenants/listed/secrets/token", "hunter2", asText); a.status != 409 || a.word() != "not-managed" {
		t.Errorf("PUT for a tenant of the gateway file = %d %s; want 409", a.status, a.body)
	}
	if a := r.do("POST", "tenants", `{"id": "globex", "secrets": {"stored": true}, "registration": `+registration+`}`); a.status != 422 || !strings.Contains(a.body, "adminApi.secretsKey") {
		t.Errorf("POST of a tenant with stored secrets = %d %s; want 422 that names the missing key", a.status, a.body)
	}
}

// A key is replaced without a secret being set again.
func TestSecretsKeyRotation(t *testing.T) {
	r := storing(t)
	r.do("PUT", "tenants/acme/secrets/token", secretValue, asText)
	r.write("gateway.yaml", strings.Replace(storingFile, "secretsKey: {env: SECRETS_KEY}", "secretsKeys: [{env: NEW_SECRETS_KEY}, {env: SECRETS_KEY}]", 1))
	r.use()
	before := r.listSecrets("acme")[0]
	if !before.Outdated || before.Unusable {
		t.Errorf("secret under an older key = %+v; want it outdated and usable", before)
	}
	if a := r.do("POST", "tenants/acme/secrets:reseal", "{}"); a.status != 200 {
		t.Errorf("reseal = %d %s; want 200", a.status, a.body)
	}
	if after := r.listSecrets("acme")[0]; after.Outdated || after.Unusable || !after.Set.Equal(before.Set) {
		t.Errorf("secret after reseal = %+v; want it under the first key, set when it was", after)
	}
	r.write("gateway.yaml", strings.Replace(storingFile, "SECRETS_KEY", "NEW_SECRETS_KEY", 1))
	r.use()
	r.expect("without the old key", "acme", "token", secretValue)
	r.write("gateway.yaml", storingFile)
	r.use()
	if list := r.listSecrets("acme"); len(list) != 1 || !list[0].Unusable || list[0].Digest != "" {
		t.Errorf("list without the key = %+v; want one that is not usable", list)
	}
	if a := r.do("POST", "tenants/acme/secrets:reseal", ""); a.status != 500 {
		t.Errorf("reseal of what does not open = %d %s; want 500", a.status, a.body)
	}
	if a := r.do("PUT", "tenants/acme/secrets/token", secretValue, asText); a.status != 200 {
		t.Errorf("PUT over what does not open = %d %s; want 200", a.status, a.body)
	}
	r.expect("after PUT", "acme", "token", secretValue)
}

// everySecretAnswer has the API answer about secrets in every way that it can,
// and returns with which.
func everySecretAnswer(t testing.TB) map[string]bool {
	r := storing(t)
	refused := config.Mistakes{{File: r.store.Place("acme"), What: "cannot be asked", Instead: "start it"}}
	whole := r.store
	for _, o := range []struct{ method, path, mediaType, body string }{
		{"PUT", "tenants/acme/secrets/token", "text/plain", "hunter2"},
		{"GET", "tenants/acme/secrets", "", ""},
		{"POST", "tenants/acme/secrets:reseal", "application/json", "{}"},
		{"DELETE", "tenants/acme/secrets/token", "", ""},
	} {
		ask := func(body string, headers ...string) {
			r.do(o.method, o.path, body, append([]string{"Content-Type: " + o.mediaType}, headers...)...)
		}
		ask(o.body, "Authorization: ")
		ask(o.body, "Origin: http://127.0.0.1")
		ask(o.body, "Content-Encoding: gzip")
		ask(strings.Repeat("v", 1<<20+1))
		r.do(o.method, strings.Replace(o.path, "acme", "absent", 1), o.body, "Content-Type: "+o.mediaType)
		req := request(o.method, "/admin/v1/"+o.path, "")
		req.Body = io.NopCloser(&brokenBody{})
		req.Header.Set("Content-Type", o.mediaType)
		r.serve(req)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r.serve(request(o.method, "/admin/v1/"+o.path, o.body, "Content-Type: "+o.mediaType).WithContext(ctx))
		r.refuse = refused
		ask(o.body)
		r.refuse = nil
		r.store = failing{whole, errors.New("broken")}
		r.use()
		ask(o.body)
		r.store = failing{whole, fmt.Errorf("%w: it does not answer", admin.ErrUnavailable)}
		if err := r.api.Use(without(r.file, "acme"), r.store, r.secrets(r.file), false); err != nil {
			t.Fatal(err)
		}
		ask(o.body)
		r.store = whole
		if err := r.api.Use(r.file, r.store, nil, false); err != nil {
			t.Fatal(err)
		}
		ask(o.body)
		r.use()
		ask(o.body)
	}
	return r.seen
}
