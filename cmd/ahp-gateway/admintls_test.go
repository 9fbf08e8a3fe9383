package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// clientPair returns, in PEM, a new client certificate of an email address that
// is its own root, and its key.
func clientPair(t testing.TB, email string) (cert, key string) {
	t.Helper()
	return selfSigned(t, &x509.Certificate{Subject: pkix.Name{CommonName: email}, EmailAddresses: []string{email},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// Over TLS, a certificate that is named does what a key does, and is recorded
// by its name; one that is not named opens the listener and not the API.
func TestTenantByCertificate(t *testing.T) {
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	t.Setenv("WRONG_KEY", canaryKey)
	backend := fakebackend.Start(t)
	cert, key := certificate(t)
	named, namedKey := clientPair(t, "ops@acme.example")
	stranger, strangerKey := clientPair(t, "guest@acme.example")
	unknown, unknownKey := clientPair(t, "ops@acme.example")
	dir := folder(t, "tls.crt", cert, "tls.key", key, "clients.pem", named+stranger,
		"named.crt", named, "named.key", namedKey, "stranger.crt", stranger, "stranger.key", strangerKey, "unknown.crt", unknown, "unknown.key", unknownKey,
		"tenants/steady.yml", tenantFile("steady", backend.URL),
		"gateway.yaml", `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
adminTLS: {certFile: tls.crt, keyFile: tls.key, clientCAFile: clients.pem, names: [{email: ops@acme.example}]}
tenantsDir: tenants
adminApi: {trustDocuments: true, keys: [{env: AHP_ADMIN_KEY}]}
audit: {file: audit.jsonl}
`)
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	admin := p.stderr.await(t, `admin on (https://127\.0\.0\.1:\d+)`, 1)[1]
	document := "id: acme\nregistration: " + onePolicy(backend.URL) + "\n"
	tenant := func(who, keyEnv, stdin string, args ...string) result {
		t.Helper()
		all := []string{"tenant", "--admin", admin, "--ca-file", filepath.Join(dir, "tls.crt"), "--key-env", keyEnv}
		if who != "" {
			all = append(all, "--cert-file", filepath.Join(dir, who+".crt"), "--key-file", filepath.Join(dir, who+".key"))
		}
		return call(t, stdin, append(all, args...)...)
	}
	for _, c := range []struct {
		who, keyEnv string
		code        int
		stderr      string
	}{
		{"named", "UNSET_KEY", 0, ""},
		{"named", "AHP_ADMIN_KEY", 0, ""},
		{"stranger", "AHP_ADMIN_KEY", 0, ""},
		{"named", "WRONG_KEY", 1, "HTTP 401"}, // a key that is not good is not passed over
		{"stranger", "UNSET_KEY", 1, "HTTP 401"},
		{"", "AHP_ADMIN_KEY", 1, "HTTP 403"},
		{"unknown", "AHP_ADMIN_KEY", 1, "no answer"},
		{"", "UNSET_KEY", 2, "UNSET_KEY"},
	} {
		if r := tenant(c.who, c.keyEnv, "", "list"); r.code != c.code || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("tenant list with certificate %q and key of %s = %+v; want %d, %s", c.who, c.keyEnv, r, c.code, c.stderr)
		}
	}
	if r := tenant("named", "UNSET_KEY", document, "add"); r.code != 0 {
		t.Errorf("tenant add = %+v; want 0", r)
	}
	for args, want := range map[string]string{
		"--cert-file " + filepath.Join(dir, "named.crt"):                                                       "--cert-file and --key-file are needed together",
		"--cert-file " + filepath.Join(dir, "named.crt") + " --key-file " + filepath.Join(dir, "stranger.key"): "no usable pair",
	} {
		if r := call(t, "", append([]string{"tenant", "list"}, strings.Fields(args)...)...); r.code == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("tenant list %s = %+v; want %s", args, r, want)
		}
	}
	p.quit()
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil || !strings.Contains(string(log), `"action":"create","by":"email:ops@acme.example"`) {
		t.Errorf("audit log = %s, %v; want the change by its certificate's name", log, err)
	}
}
