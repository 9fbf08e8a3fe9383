package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// askPrivate returns the status of an answer of the private listener, or 0
// where there is no connection.
func askPrivate(t testing.TB, client *http.Client, url string) int {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is kept
	return resp.StatusCode
}

// With roots of client certificates the private listener serves nothing but
// health without one, and goes by the roots and the certificate of the moment.
func TestPrivateTLS(t *testing.T) {
	b := fakebackend.Start(t)
	dir := t.TempDir()
	own, other := newAuthority(t), newAuthority(t)
	own.write(dir, "clients.pem")
	text := fmt.Sprintf("adminTLS: {certFile: %[1]s/server.crt, keyFile: %[1]s/server.key, clientCAFile: %[1]s/clients.pem}\n", dir) +
		open(registration("0.1", hook("com.example.policy", b.URL, intercepts("0.1", "fail-open", 5000))))
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.VerifiedChains) == 0 {
			t.Error("the API was asked without a verified certificate")
		}
		plain(w, http.StatusTeapot, "the API")
	})
	r := start(t, text, func(o *Options) { o.AdminAPI = api })
	url := r.AdminURL()
	if url[:8] != "https://" {
		t.Fatalf("AdminURL() = %s; want https", url)
	}
	if got := askPrivate(t, http.DefaultClient, "http"+url[5:]+"/healthz"); got == http.StatusOK {
		t.Errorf("GET over plain http = %d; want no answer of health", got)
	}
	past := func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	}
	forServers := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	good := own.with(own.client("spiffe://acme/deploy"))
	for _, c := range []struct {
		what         string
		client       *http.Client
		health, rest int
	}{
		{"a good certificate", good, 200, 200},
		{"no certificate", own.with(nil), 200, 403},
		{"another root's", own.with(other.client("spiffe://acme/deploy")), 0, 0},
		{"one that has ended", own.with(own.client("spiffe://acme/deploy", past)), 0, 0},
		{"one for servers", own.with(own.client("spiffe://acme/deploy", forServers)), 0, 0},
	} {
		for path, want := range map[string]int{
			"/healthz": c.health, "/readyz": c.health, "/admin/config": c.rest, "/admin/backends": c.rest, "/debug/pprof/symbol": c.rest,
			"/healthz/": map[int]int{200: 404, 403: 403}[c.rest], "/admin/v1/tenants": map[int]int{200: 418, 403: 403}[c.rest],
		} {
			if got := askPrivate(t, c.client, url+path); got != want {
				t.Errorf("%s: GET %s = %d; want %d", c.what, path, got, want)
			}
		}
	}

	// The roots are changed: the connection that is open is trusted no more.
	if got := askPrivate(t, good, url+"/admin/config"); got != 200 {
		t.Fatalf("GET = %d; want 200", got)
	}
	other.write(dir, "clients.pem")
	if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
	if got := askPrivate(t, good, url+"/admin/config"); got != 403 {
		t.Errorf("GET on an open connection whose root is trusted no more = %d; want 403", got)
	}
	now := other.with(other.client("spiffe://acme/deploy"))
	if got := askPrivate(t, now, url+"/admin/config"); got != 200 {
		t.Errorf("GET with a certificate of the new root, of a server of the new pair = %d; want 200", got)
	}
	if got := askPrivate(t, own.with(own.client("spiffe://acme/deploy")), url+"/healthz"); got != 0 {
		t.Errorf("GET with a certificate of the old root = %d; want no connection", got)
	}

	// Other files take a restart, other names do not.
	f := parse(t, text)
	f.AdminTLS.CertFile += "x"
	if restart, err := r.Reload(t.Context(), f); err != nil || len(restart) != 1 || restart[0] != "adminTLS" {
		t.Errorf("Reload with another file = %q, %v; want adminTLS to take a restart", restart, err)
	}
	old, err := tls.Dial("tcp", url[8:], &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11})
	if err == nil {
		old.Close()
		t.Error("a handshake of TLS 1.1 succeeded; want it refused")
	}
}
