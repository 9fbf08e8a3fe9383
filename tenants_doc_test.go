package ahpgateway_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTenantsDocument validates the configurations that TENANTS.md shows, beside
// the files that they name.
func TestTenantsDocument(t *testing.T) {
	text, err := os.ReadFile("TENANTS.md")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "ahp-gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/ahp-gateway").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	const acme = "id: acme\nkeys: [{sha256: 5648bf763da03b47c4318a14ff7279d54bfb9f7d419572d78f3c461dc466d719}]\nregistration: ../registrations/acme.yaml\n"
	const registration = `{"protocolVersion": "0.1", "hooks": [{"id": "com.example.policy", "transport": {"type": "http", "url": "https://policy.example.com/ahp"},
 "subscriptions": [{"events": ["tool.before"], "mode": "intercept", "timeoutMs": 750, "failurePolicy": "fail-closed"}]}]}`
	certificate, key := pair(t)
	files := blocks(string(text), "yaml")
	if len(files) < 7 {
		t.Errorf("TENANTS.md has %d configurations; want at least 7", len(files))
	}
	for _, file := range files {
		dir := t.TempDir()
		for name, content := range map[string]string{
			"gateway.yaml": file, "tenants/acme.yaml": acme, "registrations/acme.yaml": registration, "secrets/acme/policy/client-secret": "secret",
			"tls/server.crt": certificate, "tls/server.key": key, "tls/gateway.crt": certificate, "tls/gateway.key": key,
			"tls/clients.pem": certificate, "tls/roots.pem": certificate,
		} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command(binary, "validate", "--config", filepath.Join(dir, "gateway.yaml")).CombinedOutput(); err != nil {
			t.Errorf("validate of a configuration in TENANTS.md: %v\n%s\n%s", err, out, file)
		}
	}
}

// pair returns a certificate that signs itself and its key, both as PEM.
func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}
