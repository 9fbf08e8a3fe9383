package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// certified is a gateway whose two listeners ask for certificates of one root.
func certified(t testing.TB, change ...func(*Options)) (r *rig, ca *authority, dir, text string) {
	t.Helper()
	_, doc := denies(t, "acme")
	dir, ca = t.TempDir(), newAuthority(t)
	ca.write(dir, "clients.pem")
	text = mutual(dir, "optional", doc, doc) +
		fmt.Sprintf("adminTLS: {certFile: %[1]s/server.crt, keyFile: %[1]s/server.key, clientCAFile: %[1]s/clients.pem}\n", dir)
	return start(t, text, change...), ca, dir, text
}

// settings returns how a client that shows a certificate dials.
func settings(client *http.Client) *tls.Config {
	return client.Transport.(*http.Transport).TLSClientConfig
}

// onOne returns a client that has one connection and makes no other: whatever it
// is answered, that was on the connection of its first request.
func onOne(t testing.TB, client *http.Client) *http.Client {
	t.Helper()
	dialled := false
	client.Transport.(*http.Transport).DialTLSContext = func(_ context.Context, network, address string) (net.Conn, error) {
		if dialled {
			return nil, fmt.Errorf("a second connection to %s", address)
		}
		dialled = true
		return tls.Dial(network, address, settings(client))
	}
	return client
}

// A certificate that ends while its connection is open says nothing from then on.
func TestCertificateEndsDuringAConnection(t *testing.T) {
	r, ca, _, _ := certified(t)
	ends := time.Now().Add(2 * time.Second).Truncate(time.Second)
	soon := func(c *x509.Certificate) { c.NotBefore, c.NotAfter = ends.Add(-time.Hour), ends }
	agent := ca.client("spiffe://acme/agent", soon)
	public, private := onOne(t, ca.with(agent)), onOne(t, ca.with(agent))
	if got := askAs(r, public, "e1", ""); got != "deny: acme" {
		t.Errorf("an event before the end = %s; want a decision", got)
	}
	if got := askPrivate(t, private, r.AdminURL()+"/admin/backends"); got != 200 {
		t.Errorf("GET before the end = %d; want 200", got)
	}
	time.Sleep(time.Until(ends) + time.Millisecond) // what is waited for is the time itself
	if got := askAs(r, public, "e2", ""); got != "HTTP 401" {
		t.Errorf("an event after the end = %s; want HTTP 401", got)
	}
	if got := askPrivate(t, private, r.AdminURL()+"/healthz"); got != 200 {
		t.Errorf("GET of health after the end = %d; want 200", got)
	}
	if got := askPrivate(t, private, r.AdminURL()+"/admin/backends"); got != 403 {
		t.Errorf("GET after the end = %d; want 403", got)
	}
}

// Where a certificate is required, a key is nothing without one that holds. In
// either case the connection ends with the refusal, so that a client that has a
// newer certificate shows it.
func TestRefusedConnectionsEnd(t *testing.T) {
	_, doc := denies(t, "acme")
	for mode, want := range map[string]string{"optional": "HTTP 401", "required": "HTTP 403"} {
		dir, before, after := t.TempDir(), newAuthority(t), newAuthority(t)
		before.write(dir, "clients.pem")
		text := mutual(dir, mode, doc, doc) +
			fmt.Sprintf("adminTLS: {certFile: %[1]s/server.crt, keyFile: %[1]s/server.key, clientCAFile: %[1]s/clients.pem}\n", dir)
		r := start(t, text)
		mine := before.client("spiffe://acme/agent")
		client, keyed := before.with(nil), onOne(t, before.with(mine))
		settings(client).GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return mine, nil }
		if got := askAs(r, client, "e1", ""); got != "deny: acme" {
			t.Errorf("%s: certificate = %s; want a decision", mode, got)
		}
		if got := askAs(r, keyed, "e2", "Bearer acme-key"); got != "deny: acme" {
			t.Errorf("%s: certificate and key = %s; want a decision", mode, got)
		}
		if got := askPrivate(t, client, r.AdminURL()+"/admin/backends"); got != 200 {
			t.Errorf("%s: GET = %d; want 200", mode, got)
		}
		mine = after.client("spiffe://acme/agent")
		save(t, dir, "clients.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: after.cert.Raw})))
		if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
			t.Fatal(err)
		}
		for n, want := range []string{want, "deny: acme"} {
			if got := askAs(r, client, fmt.Sprint("e3", n), ""); got != want {
				t.Errorf("%s: request %d of a client with a newer certificate = %s; want %s", mode, n+1, got, want)
			}
		}
		for n, want := range []int{403, 200} {
			if got := askPrivate(t, client, r.AdminURL()+"/admin/backends"); got != want {
				t.Errorf("%s: GET %d by a client with a newer certificate = %d; want %d", mode, n+1, got, want)
			}
		}
		want := map[string][]string{"optional": {"deny: acme", "deny: acme"}, "required": {"HTTP 403", "no connection"}}[mode]
		for n, want := range want {
			if got := askAs(r, keyed, fmt.Sprint("e4", n), "Bearer acme-key"); got != want {
				t.Errorf("%s: request %d with a key, beside a certificate that does not hold = %s; want %s", mode, n+1, got, want)
			}
		}
	}
}

// No session is taken up again, so that each connection shows its certificate.
// In either version of TLS: they do it differently.
func TestNoSessionIsTakenUpAgain(t *testing.T) {
	r, ca, dir, text := certified(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		agent := ca.client("spiffe://acme/agent")
		for listener, address := range map[string]net.Addr{"public": r.listener.Addr(), "private": r.admin.Addr()} {
			sessions := tls.NewLRUClientSessionCache(10)
			for n := range 3 {
				config := settings(ca.with(agent)).Clone()
				config.ClientSessionCache, config.MinVersion, config.MaxVersion, config.ServerName = sessions, version, version, "127.0.0.1"
				c, err := tls.Dial("tcp", address.String(), config)
				if err != nil {
					t.Fatalf("%s listener, %s: %v", listener, tls.VersionName(version), err)
				}
				// Tickets come in front of the first answer.
				client := &http.Client{Transport: &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}}
				resp, err := client.Get("https://127.0.0.1/healthz")
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if c.ConnectionState().DidResume {
					t.Errorf("%s listener, %s: connection %d took a session up again", listener, tls.VersionName(version), n+1)
				}
				c.Close()
			}
		}
	}

	// Nor does one reach over a change of the roots.
	sessions := tls.NewLRUClientSessionCache(10)
	client := func() *http.Client {
		c := ca.with(ca.client("spiffe://acme/agent"))
		settings(c).ClientSessionCache = sessions
		return c
	}
	if got := askAs(r, client(), "e1", ""); got != "deny: acme" {
		t.Errorf("an event = %s; want a decision", got)
	}
	if got := askPrivate(t, client(), r.AdminURL()+"/admin/backends"); got != 200 {
		t.Errorf("GET = %d; want 200", got)
	}
	save(t, dir, "clients.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: newAuthority(t).cert.Raw})))
	if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
	if got := askAs(r, client(), "e2", ""); got != "no connection" {
		t.Errorf("an event with the session of a root that is gone = %s; want no connection", got)
	}
	if got := askPrivate(t, client(), r.AdminURL()+"/admin/backends"); got != 0 {
		t.Errorf("GET with the session of a root that is gone = %d; want no connection", got)
	}
}

// A request that was let in is not admitted any more once its root is gone.
func TestAdmittedUntilTheRootGoes(t *testing.T) {
	var r *rig // which the handler is part of
	entered, leave, admitted := make(chan bool), make(chan struct{}), make(chan bool)
	var ca *authority
	var dir, text string
	r, ca, dir, text = certified(t, func(o *Options) {
		o.AdminAPI = http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			entered <- r.Admits(req)
			<-leave
			admitted <- r.Admits(req)
		})
	})
	done := make(chan int)
	go func() { done <- askPrivate(t, ca.with(ca.client("spiffe://acme/agent")), r.AdminURL()+"/admin/v1/") }()
	if !<-entered {
		t.Error("Admits of a request with a good certificate = false; want true")
	}
	save(t, dir, "clients.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: newAuthority(t).cert.Raw})))
	if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
	close(leave)
	if <-admitted {
		t.Error("Admits of a request whose root is gone since = true; want false")
	}
	<-done
	if plain := start(t, open(registration("0.1", hook("com.example.b", fakebackend.Start(t).URL, intercepts("0.1", "fail-open", 5000))))); !plain.Admits(new(http.Request)) {
		t.Error("Admits where no certificates are asked for = false; want true")
	}
}

// A new certificate whose key is not there yet changes nothing, on either
// listener, and once it is, both are used from the next connection on.
func TestHalfAPair(t *testing.T) {
	r, ca, dir, text := certified(t)
	shown := func(address net.Addr) string {
		t.Helper()
		c, err := tls.Dial("tcp", address.String(), settings(ca.with(nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := shown(r.listener.Addr())
	fresh := t.TempDir()
	ca.write(fresh, "clients.pem")
	copyOf := func(name string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(fresh, name))
		if err != nil {
			t.Fatal(err)
		}
		save(t, dir, name, string(data))
	}
	f := parse(t, text)
	copyOf("server.crt")
	if _, err := r.Reload(t.Context(), f); err == nil || !strings.Contains(err.Error(), "private key does not match") {
		t.Errorf("Reload with a certificate without its key = %v; want it refused", err)
	}
	for what, address := range map[string]net.Addr{"public": r.listener.Addr(), "private": r.admin.Addr()} {
		if got := shown(address); got != before {
			t.Errorf("%s listener after half a pair = certificate %s; want %s as before", what, got, before)
		}
	}
	copyOf("server.key")
	if _, err := r.Reload(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	for what, address := range map[string]net.Addr{"public": r.listener.Addr(), "private": r.admin.Addr()} {
		if got := shown(address); got == before {
			t.Errorf("%s listener after the whole pair = certificate %s as before; want the new one", what, got)
		}
	}
}
