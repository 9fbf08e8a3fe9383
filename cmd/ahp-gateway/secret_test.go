package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// A tenant that may name nothing of the gateway's machine gets a credential for
// its backend: it is set, used, replaced, kept over a restart, and removed.
func TestSecretLife(t *testing.T) {
	t.Setenv("AHP_SECRETS_KEY", strings.Repeat("5e", 32))
	backend := fakebackend.Start(t)
	const gateway = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\naudit: {file: audit.jsonl}\n" +
		"adminApi: {trustDocuments: true, keys: [{env: AHP_ADMIN_KEY}], secretsKey: {env: AHP_SECRETS_KEY}}\n"
	p, dir, public, tenant := hosted(t, backend.URL, "gateway.yaml", gateway)
	key := tenant("id: acme\nsecrets: {stored: true}\nregistration: "+
		onePolicy(backend.URL, `,"authentication":{"type":"bearer","tokenRef":"token"}`)+"\n", "add").stdout
	expect := func(what, public, want string) {
		t.Helper()
		calls := backend.Count()
		got := with(t, public, key)
		if want == "" {
			if !strings.Contains(got, "unavailable") || backend.Count() != calls {
				t.Errorf("%s: answer = %s, %d calls; want fail-closed without a call", what, got, backend.Count()-calls)
			}
			return
		}
		requests := backend.Requests()
		if sent := requests[len(requests)-1].Header.Get("Authorization"); !strings.Contains(got, passed) || sent != "Bearer "+want {
			t.Errorf("%s: answer = %s, sent %q; want a pass with %s", what, got, sent, want)
		}
	}
	set := func(value string) result {
		t.Helper()
		return tenant(value, "secret", "set", "acme", "token")
	}
	expect("before it is set", public, "")
	r := set(canaryToken + "\n")
	if r.code != 0 || !regexp.MustCompile(`^tenant acme has secret token, digest [0-9a-f]{8}, served by generation 3\n$`).MatchString(r.stdout) {
		t.Errorf("tenant secret set = %+v; want what was done", r)
	}
	expect("after it is set", public, canaryToken)
	list := tenant("", "secret", "list", "acme")
	if list.code != 0 || !regexp.MustCompile(`(?m)^token +20\S+Z +[0-9a-f]{8} +good$`).MatchString(list.stdout) {
		t.Errorf("tenant secret list = %+v; want token", list)
	}
	if r := set(canaryHeader); r.code != 0 {
		t.Errorf("tenant secret set = %+v; want 0", r)
	}
	expect("after it is replaced", public, canaryHeader)

	// While the files could not be served, no secret is changed.
	put(t, filepath.Join(dir, "gateway.yaml"), gateway+"limitz: {}\n")
	if r := set(canaryToken); r.code != 1 || !strings.Contains(r.stderr, "HTTP 422") {
		t.Errorf("tenant secret set beside a mistake = %+v; want 1", r)
	}
	put(t, filepath.Join(dir, "gateway.yaml"), gateway)
	expect("after what was refused", public, canaryHeader)

	if r := tenant("", "secret", "reseal", "acme"); r.code != 0 {
		t.Errorf("tenant secret reseal = %+v; want 0", r)
	}
	if r := tenant("", "secret", "set", "acme", "token"); r.code != 1 || !strings.Contains(r.stderr, "standard input is empty") {
		t.Errorf("tenant secret set of nothing = %+v; want 1", r)
	}
	if r := tenant("x", "secret", "set", "acme", "../token"); r.code != 1 || !strings.Contains(r.stderr, "HTTP 400: This cannot be the name of a secret. Write 1 to 64 lower-case letters") {
		t.Errorf("tenant secret set of a bad name = %+v; want 1", r)
	}

	p.quit()
	p = launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, private := p.urls()
	expect("after a restart", public, canaryHeader)

	// Another replica that has the folder too changes it: this one notices.
	f, _, err := config.Load(filepath.Join(dir, "gateway.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := f.AdminAPI.Secrets(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Put("acme", "token", canaryToken, time.Now()); err != nil {
		t.Fatal(err)
	}
	p.stderr.await(t, `configuration reloaded`, 1)
	expect("after another replica's change", public, canaryToken)

	remove := call(t, "", "tenant", "--admin", private, "secret", "remove", "acme", "token")
	if remove.code != 0 || !strings.Contains(remove.stdout, "has no secret token any more") || !strings.Contains(remove.stderr, "no such secret") {
		t.Errorf("tenant secret remove = %+v; want 0 and a warning", remove)
	}
	expect("after it is removed", public, "")
	if r := call(t, canaryToken, "tenant", "--admin", private, "secret", "set", "acme", "token", "--format", "json"); r.code != 0 {
		t.Errorf("tenant secret set = %+v; want 0", r)
	} else {
		var result admin.Result
		if err := json.Unmarshal([]byte(r.stdout), &result); err != nil || result.Secret == nil {
			t.Errorf("tenant secret set --format json = %s, %v; want the secret", r.stdout, err)
		}
	}
	if r := call(t, "", "tenant", "--admin", private, "remove", "acme"); r.code != 0 {
		t.Errorf("tenant remove = %+v; want 0", r)
	}
	if _, err := os.Stat(filepath.Join(dir, "tenants", ".secrets", "acme")); !os.IsNotExist(err) {
		t.Errorf("the secrets of a removed tenant: %v; want them gone", err)
	}
	p.quit()
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	checkSecrets(t, "the audit log", string(log))
	for _, want := range []string{
		`"outcome":"done","status":200,"action":"put-secret","by":"` + sum(adminTestKey)[:8] + `","secret":"token"}`,
		`"outcome":"refused","status":422,"action":"put-secret"`, `"action":"reseal-secrets"`, `"action":"delete-secret"`,
	} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the audit log has no record with %s", want)
		}
	}
}
