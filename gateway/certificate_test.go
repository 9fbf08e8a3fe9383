package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// authority is a root that signs certificates for tests.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	return a
}

// sign returns a certificate of a new key; without a parent it signs itself.
func (a *authority) sign(c, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotBefore.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	signer := a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// client returns a client certificate with a URI, changed as change does.
func (a *authority) client(uri string, change ...func(*x509.Certificate)) *tls.Certificate {
	u, err := url.Parse(uri)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{URIs: []*url.URL{u}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, f := range change {
		f(c)
	}
	made, key := a.sign(c, a.cert)
	return &tls.Certificate{Certificate: [][]byte{made.Raw}, PrivateKey: key}
}

// write writes PEM files of the authority and of a server certificate.
func (a *authority) write(dir, roots string) {
	a.t.Helper()
	server, key := a.sign(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, a.cert)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"server.crt": {Type: "CERTIFICATE", Bytes: server.Raw}, "server.key": {Type: "PRIVATE KEY", Bytes: der}, roots: {Type: "CERTIFICATE", Bytes: a.cert.Raw},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}

// with returns a client that shows a certificate, or none for nil.
func (a *authority) with(c *tls.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	config := &tls.Config{RootCAs: roots}
	if c != nil {
		// Shown whatever the server says that it accepts.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
	}
	transport := &http.Transport{TLSClientConfig: config}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// askAs sends one event and returns its decision, or "no connection".
func askAs(r *rig, client *http.Client, id, authorization string) string {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.URL()+"/hooks", strings.NewReader(event01(id)))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "no connection"
	}
	defer resp.Body.Close()
	a := &reply{status: resp.StatusCode}
	if a.status == http.StatusOK {
		if err := json.NewDecoder(resp.Body).Decode(a); err != nil {
			r.t.Errorf("the answer is no JSON-RPC: %v", err)
		}
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is kept
	return a.decision()
}

// mutual is a gateway file that asks for client certificates.
func mutual(dir, mode, docA, docB string) string {
	return fmt.Sprintf("tls: {certFile: %[1]s/server.crt, keyFile: %[1]s/server.key, clientCAFile: %[1]s/clients.pem, clientAuth: %[2]s}\n", dir, mode) +
		many(tenantEntry("acme", docA, []string{"acme-key"}, "certificates: [{uri: 'spiffe://acme/agent'}, {dns: agent.acme.example}]"),
			tenantEntry("beta", docB, []string{"beta-key"}))
}

// A client certificate that verifies speaks for the tenant that has its name.
func TestClientCertificates(t *testing.T) {
	_, docA := denies(t, "acme")
	_, docB := denies(t, "beta")
	dir := t.TempDir()
	ca, other := newAuthority(t), newAuthority(t)
	ca.write(dir, "clients.pem")
	const refused = "no connection"
	mine := ca.client("spiffe://acme/agent")
	optional, required := start(t, mutual(dir, "optional", docA, docB)), start(t, mutual(dir, "required", docA, docB))
	for _, c := range []struct {
		name          string
		certificate   *tls.Certificate
		authorization string
		optional      string
		required      string
	}{
		{"certificate", mine, "", "deny: acme", "deny: acme"},
		{"certificate by host name", ca.client("spiffe://x/y", func(c *x509.Certificate) { c.DNSNames = []string{"Agent.acme.example"} }), "", "deny: acme", "deny: acme"},
		{"certificate and the same tenant's key", mine, "Bearer acme-key", "deny: acme", "deny: acme"},
		{"certificate and another tenant's key", mine, "Bearer beta-key", "HTTP 403", "HTTP 403"},
		{"certificate and a wrong key", mine, "Bearer wrong", "HTTP 401", "HTTP 401"},
		{"certificate of nobody", ca.client("spiffe://nobody"), "", "HTTP 401", "HTTP 401"},
		{"certificate of nobody and a key", ca.client("spiffe://nobody"), "Bearer beta-key", "deny: beta", "deny: beta"},
		{"none", nil, "", "HTTP 401", refused},
		{"none and a key", nil, "Bearer beta-key", "deny: beta", refused},
		{"another root", other.client("spiffe://acme/agent"), "", refused, refused},
		{"for servers", ca.client("spiffe://acme/agent", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), "", refused, refused},
		{"expired", ca.client("spiffe://acme/agent", func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		}), "", refused, refused},
	} {
		client := ca.with(c.certificate)
		for r, want := range map[*rig]string{optional: c.optional, required: c.required} {
			if got := askAs(r, client, "e", c.authorization); got != want {
				t.Errorf("%s, %s = %s; want %s", c.name, r.started.TLS.ClientAuth, got, want)
			}
		}
		client.CloseIdleConnections()
	}
}

// A certificate holds only as long as it is valid and its root is trusted, also
// on a connection that is kept.
func TestClientTrustFollowsReload(t *testing.T) {
	_, docA := denies(t, "acme")
	_, docB := denies(t, "beta")
	dir := t.TempDir()
	ca, next := newAuthority(t), newAuthority(t)
	ca.write(dir, "clients.pem")
	text := mutual(dir, "optional", docA, docB)
	r := start(t, text)
	client := ca.with(ca.client("spiffe://acme/agent"))
	if got := askAs(r, client, "e1", ""); got != "deny: acme" {
		t.Fatalf("certificate = %s; want a decision", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "clients.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: next.cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if restart, err := r.Reload(t.Context(), parse(t, text)); err != nil || len(restart) > 0 {
		t.Fatalf("Reload() = %v, %v; want none", restart, err)
	}
	// The connection of before is still open, and its root is not trusted now.
	r.client = client
	if got := r.post("/hooks", event01("e1")).decision(); got != "HTTP 401" {
		t.Errorf("certificate of the root before = %s; want HTTP 401", got)
	}
	fresh := ca.with(next.client("spiffe://acme/agent")) // the server's own is of ca
	if got := askAs(r, fresh, "e2", ""); got != "deny: acme" {
		t.Errorf("certificate of the new root = %s; want a decision", got)
	}
	if got := askAs(r, ca.with(ca.client("spiffe://acme/agent")), "e3", ""); got != "no connection" {
		t.Errorf("new connection with the root before = %s; want none", got)
	}

	// A bundle that cannot be read changes nothing.
	f := parse(t, text)
	if err := os.WriteFile(filepath.Join(dir, "clients.pem"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reload(t.Context(), f); err == nil || !strings.Contains(err.Error(), "clientCAFile") {
		t.Errorf("Reload with a broken bundle = %v; want an error", err)
	}
	r.client = fresh
	if got := r.post("/hooks", event01("e4")).decision(); got != "deny: acme" {
		t.Errorf("certificate after a refused reload = %s; want a decision", got)
	}
}

// A root that was taken away is gone also where another setting of tls, which
// takes a restart, was changed with it; what cannot be read then changes nothing.
func TestClientTrustWhileARestartIsPending(t *testing.T) {
	_, docA := denies(t, "acme")
	_, docB := denies(t, "beta")
	dir := t.TempDir()
	ca, next := newAuthority(t), newAuthority(t)
	ca.write(dir, "clients.pem")
	r := start(t, mutual(dir, "optional", docA, docB))
	if got := askAs(r, ca.with(ca.client("spiffe://acme/agent")), "e1", ""); got != "deny: acme" {
		t.Fatalf("certificate = %s; want a decision", got)
	}
	save(t, dir, "clients.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: next.cert.Raw})))
	if restart, err := r.Reload(t.Context(), parse(t, mutual(dir, "required", docA, docB))); err != nil || !slices.Equal(restart, []string{"tls"}) {
		t.Fatalf("Reload() = %v, %v; want tls to take a restart", restart, err)
	}
	if got := askAs(r, ca.with(ca.client("spiffe://acme/agent")), "e2", ""); got != "no connection" {
		t.Errorf("new connection with the root before = %s; want none", got)
	}
	if got := askAs(r, ca.with(next.client("spiffe://acme/agent")), "e3", ""); got != "deny: acme" {
		t.Errorf("certificate of the new root = %s; want a decision", got)
	}
	f := parse(t, mutual(dir, "required", docA, docB))
	save(t, dir, "clients.pem", "nothing")
	if _, err := r.Reload(t.Context(), f); err != nil {
		t.Errorf("Reload() = %v; want none, since these files are not those of its configuration", err)
	}
	if got := askAs(r, ca.with(next.client("spiffe://acme/agent")), "e4", ""); got != "deny: acme" {
		t.Errorf("certificate once its root cannot be read = %s; want what was read before to hold", got)
	}
}

// A chain ends with the first of its certificates.
func TestIdentityEnds(t *testing.T) {
	ca := newAuthority(t)
	trust := &clientTrust{roots: x509.NewCertPool()}
	trust.roots.AddCert(ca.cert)
	leaf, err := x509.ParseCertificate(ca.client("spiffe://acme/agent").Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if who := verifiedClient([]*x509.Certificate{leaf}, trust, now); len(who.names) != 1 || !who.until.Equal(leaf.NotAfter) && !who.until.Equal(ca.cert.NotAfter) || who.until.After(leaf.NotAfter) {
		t.Errorf("verifiedClient(good) = %+v; want one name until %v", who, leaf.NotAfter)
	}
	for name, who := range map[string]clientIdentity{
		"expired": verifiedClient([]*x509.Certificate{leaf}, trust, now.Add(2*time.Hour)), "none": verifiedClient(nil, trust, now),
		"of another root": verifiedClient([]*x509.Certificate{leaf}, &clientTrust{roots: x509.NewCertPool()}, now),
	} {
		if len(who.names) > 0 || !who.until.IsZero() {
			t.Errorf("verifiedClient(%s) = %+v; want nobody", name, who)
		}
	}
	if (&Gateway{}).clientNames(nil, now) != nil {
		t.Error("names of a connection without TLS; want none")
	}
}

// The names of a connection are looked for once, and end with its certificate.
func TestClientNamesOfConnection(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	ca.write(dir, "clients.pem")
	b := fakebackend.Start(t)
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))
	r := start(t, mutual(dir, "optional", doc, doc))
	trust, now := r.clients.Load(), time.Now()
	leaf, err := x509.ParseCertificate(ca.client("spiffe://acme/agent").Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	c := &strictTLSConn{client: verifiedClient([]*x509.Certificate{leaf}, trust, now)}
	if got := testing.AllocsPerRun(100, func() {
		if len(r.clientNames(c, now)) != 1 {
			t.Error("no names; want one")
		}
	}); got != 0 {
		t.Errorf("allocations of clientNames = %v; want 0", got)
	}
	if names := r.clientNames(c, now.Add(2*time.Hour)); names != nil {
		t.Errorf("names of a certificate that has ended since = %v; want none", names)
	}
}
