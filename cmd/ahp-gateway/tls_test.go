package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// certificate returns a new certificate of 127.0.0.1 that is its own root, and
// its key, in PEM.
func certificate(t testing.TB) (cert, key string) {
	t.Helper()
	return selfSigned(t, &x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}

// selfSigned returns, in PEM, a certificate that is its own root, holds for an hour
// and otherwise is what template says, and its key.
func selfSigned(t testing.TB, template *x509.Certificate) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.IsCA, template.BasicConstraintsValid = big.NewInt(1), true, true
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// With tenants and TLS, as on a network: send with the key passes, without it
// or with another it does not.
func TestServeTLSAndTenants(t *testing.T) {
	t.Setenv("TEST_KEY", canaryKey)
	t.Setenv("OTHER_KEY", canaryToken)
	backend := fakebackend.Start(t)
	cert, key := certificate(t)
	dir := folder(t, "tls.crt", cert, "tls.key", key, "gateway.yaml", `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
tls: {certFile: tls.crt, keyFile: tls.key}
tenants:
  - id: acme
    keys: [{env: TEST_KEY}]
    registration: `+onePolicy(backend.URL)+"\n")
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	url := p.stdout.await(t, `(?m)^listening on (https://127\.0\.0\.1:\d+)$`, 1)[1]
	for _, c := range []struct {
		path, keyEnv string
		code         int
		want         string
	}{
		{"", "TEST_KEY", 0, "pass\n"},
		{"/t/acme/hooks", "TEST_KEY", 0, "pass\n"},
		{"/t/other/hooks", "TEST_KEY", 1, "error: HTTP 403 Forbidden: the credential is not for this tenant\n"},
		{"", "OTHER_KEY", 1, "error: HTTP 401 Unauthorized: a valid bearer credential is required\n"},
		{"", "", 1, "error: HTTP 401 Unauthorized: a valid bearer credential is required\n"},
	} {
		args := []string{"send", "--url", url + c.path, "--ca-file", filepath.Join(dir, "tls.crt")}
		if c.keyEnv != "" {
			args = append(args, "--key-env", c.keyEnv)
		}
		if r := call(t, "", args...); r.code != c.code || r.stdout != c.want {
			t.Errorf("send to %s with the key of %s = %d, %q, %q; want %d, %q", c.path, c.keyEnv, r.code, r.stdout, r.stderr, c.code, c.want)
		}
	}

	// A new pair is shown to new connections, without a restart.
	cert, key = certificate(t)
	put(t, filepath.Join(dir, "tls.crt"), cert)
	put(t, filepath.Join(dir, "tls.key"), key)
	p.stderr.await(t, `configuration reloaded`, 1)
	if r := call(t, "", "send", "--url", url, "--ca-file", filepath.Join(dir, "tls.crt"), "--key-env", "TEST_KEY"); r.code != 0 {
		t.Errorf("send that trusts the new certificate alone = %d, %q; want 0", r.code, r.stderr)
	}
	p.quit()
}

// A certificate that is written before its key is refused and logged, on either
// listener; once its key is there too, both are taken up, without a SIGHUP.
func TestCertificateBeforeItsKey(t *testing.T) {
	t.Setenv("TEST_KEY", canaryKey)
	backend := fakebackend.Start(t)
	cert, key := certificate(t)
	dir := folder(t, "tls.crt", cert, "tls.key", key, "admin.crt", cert, "admin.key", key, "roots.pem", cert, "gateway.yaml", `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
tls: {certFile: tls.crt, keyFile: tls.key}
adminTLS: {certFile: admin.crt, keyFile: admin.key}
tenantsDir: tenants
adminApi: {keys: [{env: TEST_KEY}]}
`, "tenants/steady.yml", tenantFile("steady", backend.URL))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	url := p.stderr.await(t, `admin on (https://127\.0\.0\.1:\d+)`, 1)[1]
	list := func() int {
		return call(t, "", "tenant", "list", "--admin", url, "--key-env", "TEST_KEY", "--ca-file", filepath.Join(dir, "roots.pem")).code
	}
	if got := list(); got != 0 {
		t.Fatalf("tenant list = %d; want 0", got)
	}
	cert, key = certificate(t)
	for n, name := range []string{"tls", "admin"} {
		put(t, filepath.Join(dir, name+".crt"), cert)
		p.stderr.await(t, `configuration mistake" .*`+name+`\.(crt|key)`, 1)
		p.stderr.await(t, `configuration refused, the running one stays in use`, n+1)
		if got := list(); got != 0 {
			t.Errorf("tenant list with the certificate of before, while %s.crt has no key = %d; want 0", name, got)
		}
		put(t, filepath.Join(dir, name+".key"), key)
		p.stderr.await(t, `configuration reloaded`, n+1)
	}
	if got := list(); got == 0 {
		t.Error("tenant list that trusts the certificate of before alone = 0; want it refused")
	}
	put(t, filepath.Join(dir, "roots.pem"), cert)
	if got := list(); got != 0 {
		t.Errorf("tenant list that trusts the new certificate = %d; want 0", got)
	}
	p.quit()
}
