package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// storingGateway is a gateway file whose key of secrets is in a file.
const storingGateway = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\n" +
	"adminApi: {trustDocuments: true, keys: [{env: AHP_ADMIN_KEY}], secretsKeys: [KEYS]}\n"

// keysOf returns storingGateway with the keys in these files.
func keysOf(names ...string) string {
	return strings.Replace(storingGateway, "KEYS", "{file: "+strings.Join(names, "}, {file: ")+"}", 1)
}

// referring is a document whose backend needs the stored secret token.
func referring(id, url string) string {
	return "id: " + id + "\nsecrets: {stored: true}\nregistration: " + onePolicy(url, `,"authentication":{"type":"bearer","tokenRef":"token"}`) + "\n"
}

// Secrets under a key that is replaced are sealed anew for all tenants with one
// command, which goes on where one does not open; validate tells of those.
func TestResealAll(t *testing.T) {
	backend := fakebackend.Start(t)
	old, now := strings.Repeat("5e", 32), strings.Repeat("a7", 32)
	p, dir, _, tenant := hosted(t, backend.URL, "gateway.yaml", keysOf("old"), "old", old, "new", now)
	path := filepath.Join(dir, "gateway.yaml")
	for _, id := range []string{"a", "b", "c", "none"} {
		if r := tenant(referring(id, backend.URL), "add"); r.code != 0 {
			t.Fatalf("tenant add = %+v; want 0", r)
		}
		if id == "none" {
			continue
		}
		if r := tenant(canaryToken, "secret", "set", id, "token"); r.code != 0 || r.stderr != "" {
			t.Fatalf("tenant secret set = %+v; want 0 and no warning", r)
		}
	}
	if r := tenant("", "secret", "reseal", "--all"); r.code != 0 || r.stdout != "tenants looked at: 4; encrypted under the first key just now: those of 0\n" {
		t.Errorf("reseal --all of what is under the first key = %+v; want nothing done", r)
	}
	put(t, path, keysOf("new", "old"))
	p.stderr.await(t, `configuration reloaded" cause="a file has changed"`, 1)
	put(t, filepath.Join(dir, "tenants/.secrets/b/token"), "not sealed")
	p.stderr.await(t, `configuration reloaded`, 7)
	r := tenant("", "secret", "reseal", "--all")
	if r.code != 1 || r.stdout != "tenants looked at: 4; encrypted under the first key just now: those of 2\n" ||
		!strings.Contains(r.stderr, "tenant b: secret token does not open; write the key that has sealed it into adminApi.secretsKeys too, set it again, or remove it\n") || !strings.Contains(r.stderr, "tenants with secrets that are not under the first key: 1; keep the other keys") {
		t.Errorf("reseal --all = %+v; want two done, and b named", r)
	}
	if r := tenant("", "secret", "list", "c"); !strings.Contains(r.stdout, "good") || strings.Contains(r.stdout, "older") {
		t.Errorf("secret list after reseal --all = %+v; want good", r)
	}
	var came resealed
	r = tenant("", "secret", "reseal", "--all", "--format", "json")
	if err := json.Unmarshal([]byte(r.stdout), &came); err != nil || r.code != 1 || came.Tenants != 4 || len(came.Resealed) != 0 || len(came.Failed) != 1 {
		t.Errorf("reseal --all --format json = %+v, %v; want nothing left to do but b", r, err)
	}
	const warned = "warning: secrets: the stored secret token of tenant b cannot be used, it is no sealed secret: "
	r = call(t, "", "validate", "--config", path)
	if r.code != 0 || strings.Count(r.stderr, warned) != 1 || !strings.Contains(r.stderr, "tenant secret set b token") || strings.Contains(r.stderr, "of tenant a") || !strings.Contains(r.stderr, "no such secret of the tenant is stored") {
		t.Errorf("validate = %+v; want a warning of b's secret, one of none's missing one, and none of a's", r)
	}
	p.quit()
	// Without the key that has sealed them they do not open, and all are told of.
	put(t, path, keysOf("old"))
	var v validation
	r = call(t, "", "validate", "--config", path, "--format", "json")
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || len(v.Warnings) != 4 {
		t.Errorf("validate with the old key = %+v, %v; want four warnings", r, err)
	}
	if !strings.Contains(r.stdout, "the stored secret token of tenant a cannot be used, it is sealed by a key that is not given") {
		t.Errorf("validate with the old key = %s; want why a's does not open", r.stdout)
	}
	checkInstead(t, v.Warnings)
}

func checkInstead(t *testing.T, all []config.Mistake) {
	t.Helper()
	for _, m := range all {
		if !m.Warning || m.What == "" || m.Instead == "" || strings.Contains(m.String(), canaryToken) {
			t.Errorf("warning %+v; want one that says what to do", m)
		}
	}
}

// Where no secrets are stored, reseal --all says so once.
func TestResealAllWithoutAKey(t *testing.T) {
	backend := fakebackend.Start(t)
	_, _, _, tenant := hosted(t, backend.URL)
	for _, id := range []string{"a", "b"} {
		if r := tenant("id: "+id+"\nregistration: "+onePolicy(backend.URL), "add"); r.code != 0 {
			t.Fatalf("tenant add = %+v; want 0", r)
		}
	}
	if r := tenant("", "secret", "reseal", "--all"); r.code != 1 || r.stdout != "" || strings.Count(r.stderr, "adminApi.secretsKey") != 1 {
		t.Errorf("reseal --all without a key = %+v; want 1 and one line that names it", r)
	}
}

// Who sets a secret that nothing reads is told.
func TestSecretSetThatNothingReads(t *testing.T) {
	backend := fakebackend.Start(t)
	_, _, _, tenant := hosted(t, backend.URL, "gateway.yaml", keysOf("old"), "old", strings.Repeat("5e", 32))
	if r := tenant("id: acme\nregistration: "+onePolicy(backend.URL), "add"); r.code != 0 {
		t.Fatalf("tenant add = %+v; want 0", r)
	}
	if r := tenant("value", "secret", "set", "acme", "token"); r.code != 0 || !strings.Contains(r.stderr, "nothing reads the secret") || !strings.Contains(r.stderr, "write secrets: {stored: true}") {
		t.Errorf("tenant secret set for a tenant without stored secrets = %+v; want 0 and a warning", r)
	}
}

// diff asks a private listener that wants a client certificate.
func TestDiffOverTLS(t *testing.T) {
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	backend := fakebackend.Start(t)
	cert, key := certificate(t)
	named, namedKey := clientPair(t, "ops@acme.example")
	dir := folder(t, "tls.crt", cert, "tls.key", key, "clients.pem", named, "me.crt", named, "me.key", namedKey,
		"tenants/steady.yml", tenantFile("steady", backend.URL), "gateway.yaml", `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
adminTLS: {certFile: tls.crt, keyFile: tls.key, clientCAFile: clients.pem}
tenantsDir: tenants
`)
	at := func(name string) string { return filepath.Join(dir, name) }
	p := launch(t, "serve", "--config", at("gateway.yaml"))
	admin := p.stderr.await(t, `admin on (https://127\.0\.0\.1:\d+)`, 1)[1]
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--ca-file " + at("tls.crt") + " --cert-file " + at("me.crt") + " --key-file " + at("me.key"), "no difference\n", 0},
		{"--ca-file " + at("tls.crt"), "answers 403, and says: ", 1},
		{"", "write --ca-file with the roots", 1},
		{"--cert-file " + at("me.crt") + " --key-file " + at("tls.key"), "no usable pair", 1},
	} {
		r := call(t, "", append([]string{"diff", "--config", at("gateway.yaml"), "--against-running", admin}, strings.Fields(c.args)...)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) || c.code != 0 && r.stdout != "" {
			t.Errorf("diff %s = %+v; want %d and %s", c.args, r, c.code, c.want)
		}
	}
	p.quit()
}
