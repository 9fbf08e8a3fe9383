package gateway

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// issuer is a real issuer of tokens, each of which names the secret it was
// obtained with by its number.
func issuer(t *testing.T, secrets ...string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, s.URL, s.URL+"/token")
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, password, _ := r.BasicAuth()
		for i, secret := range secrets {
			if password == secret {
				fmt.Fprintf(w, `{"access_token":"access-token-%d","token_type":"Bearer","expires_in":3600}`, i)
				return
			}
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":"invalid_client","error_description":"not %s"}`, password)
	})
	return s
}

// lastAuthorization returns that of the last request that a backend got.
func lastAuthorization(b *fakebackend.Server) string {
	requests := b.Requests()
	return requests[len(requests)-1].Header.Get("Authorization")
}

// An OAuth client's secret is a file: when it changes, a reload obtains tokens
// with the new one; what has not changed keeps its token. Nothing of a secret or
// a token is told.
func TestOAuthToBackends(t *testing.T) {
	i := issuer(t, "first-secret", "second-secret")
	b := fakebackend.Start(t)
	dir := t.TempDir()
	save(t, dir, "client", "first-secret\n")
	save(t, dir, "roots.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})))
	h := strings.Replace(hook("com.example.policy", b.URL, intercepts("draft", "fail-closed", 5000)), `"subscriptions"`, oauthMember(i.URL)+`"subscriptions"`, 1)
	text := open(registration("draft", h), `secrets: {dir: "`+dir+`"}`, `backends: {com.example.policy: {issuerCAFile: "`+filepath.Join(dir, "roots.pem")+`"}}`)
	log := new(lockedBuffer)
	r := start(t, text, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})

	n := 0
	check := func(what, decision, authorization, failure string) {
		t.Helper()
		n++
		before := b.Count()
		if a := r.post("/hooks", eventDraft(fmt.Sprintf("e%d", n))); a.decision() != decision {
			t.Errorf("%s: %s; want %s", what, a.decision(), decision)
		}
		step := r.audit.await(n)[n-1]["steps"].([]any)[0].(map[string]any)
		if str(step["failure"]) != failure {
			t.Errorf("%s: failure %v (%v); want %q", what, step["failure"], step["detail"], failure)
		}
		switch called := b.Count() - before; {
		case authorization == "" && called != 0:
			t.Errorf("%s: the backend was called with %q; want no call", what, lastAuthorization(b))
		case authorization != "" && (called != 1 || lastAuthorization(b) != authorization):
			t.Errorf("%s: the backend was called %d times with %q; want once with %q", what, called, lastAuthorization(b), authorization)
		}
	}
	reload := func() {
		t.Helper()
		if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	const closed = "deny: Required policy backend unavailable. (io.ahp-gateway.fail_closed)"
	check("at first", "pass", "Bearer access-token-0", "")
	kept := r.peer("com.example.policy")
	reload()
	if r.peer("com.example.policy") != kept {
		t.Error("a reload that changes nothing replaced the backend and its token")
	}
	save(t, dir, "client", "second-secret\n")
	reload()
	check("with another secret", "pass", "Bearer access-token-1", "")
	save(t, dir, "client", "wrong-secret")
	reload()
	check("with a wrong secret", closed, "", "credential")
	save(t, dir, "client", "\n")
	reload()
	check("with an empty secret", closed, "", "credential")
	save(t, dir, "client", "first-secret")
	reload()
	check("with the first one again", "pass", "Bearer access-token-0", "")

	_, shown := r.get("/admin/config")
	_, backends := r.get("/admin/backends")
	audited := fmt.Sprint(r.audit.await(n))
	for _, word := range []string{"first-secret", "second-secret", "wrong-secret", "access-token"} {
		for where, text := range map[string]string{"/admin/config": shown, "/admin/backends": backends, "the audit log": audited, "the log": log.String()} {
			if strings.Contains(text, word) {
				t.Errorf("%s tells %s", where, word)
			}
		}
	}
	if !strings.Contains(shown, "clientSecretRef: client\n") {
		t.Errorf("/admin/config = %s; want the reference to the secret", shown)
	}
}

// lockedBuffer is a buffer for a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// keyPair returns a client certificate that is its own root, and its key, in PEM.
func keyPair(t *testing.T, name int64) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(name), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(cert))
	return cert, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})), roots
}

// shownBackend is a backend that asks for a client certificate, beside a folder
// with its own root in roots.pem, and in c.pem and k.pem the first of two pairs.
type shownBackend struct {
	dir, url            string
	key                 string   // of the first pair
	renewed, renewedKey string   // the second pair
	serials             []string // of the certificates that it was shown
}

// startShown starts one that ends with the test.
func startShown(t *testing.T) *shownBackend {
	t.Helper()
	cert, key, roots := keyPair(t, 1)
	p := &shownBackend{dir: t.TempDir(), key: key}
	p.renewed, p.renewedKey, _ = keyPair(t, 2)
	roots.AppendCertsFromPEM([]byte(p.renewed))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.serials = append(p.serials, r.TLS.PeerCertificates[0].SerialNumber.String())
		new(trap).pass(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
	s.StartTLS()
	t.Cleanup(s.Close)
	p.url = s.URL
	save(t, p.dir, "roots.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	save(t, p.dir, "c.pem", cert)
	save(t, p.dir, "k.pem", key)
	return p
}

// A backend is shown the certificate of the gateway file, and after a reload
// that of the files as they are then.
func TestClientCertificatesToBackends(t *testing.T) {
	p := startShown(t)
	text := open(registration("draft", hook("com.example.policy", p.url, intercepts("draft", "fail-closed", 5000))),
		fmt.Sprintf("backend: {clientCertFile: %q, clientKeyFile: %q}", filepath.Join(p.dir, "c.pem"), filepath.Join(p.dir, "k.pem")),
		fmt.Sprintf("backends: {com.example.policy: {caFile: %q}}", filepath.Join(p.dir, "roots.pem")))
	r := start(t, text)
	decision := func(id string) {
		t.Helper()
		if a := r.post("/hooks", eventDraft(id)); a.decision() != "pass" {
			t.Errorf("%s: %s; want pass", id, a.decision())
		}
	}
	decision("e1")
	kept := r.peer("com.example.policy")
	for range 2 {
		if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
			t.Fatal(err)
		}
		if r.peer("com.example.policy") != kept {
			t.Error("a reload that changes nothing replaced the backend")
		}
	}
	save(t, p.dir, "c.pem", p.renewed)
	save(t, p.dir, "k.pem", p.renewedKey)
	if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
	decision("e2")
	if got := strings.Join(p.serials, " "); got != "1 2" {
		t.Errorf("the backend was shown certificates %s; want 1 2", got)
	}

	// Files that do not fit together are refused, and nothing changes.
	f := parse(t, text)
	save(t, p.dir, "k.pem", p.key)
	if _, err := r.Reload(t.Context(), f); err == nil || strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("Reload with the key of another certificate = %v; want an error", err)
	}
	decision("e3")
}
