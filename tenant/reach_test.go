package tenant

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestReach(t *testing.T) {
	for _, c := range []struct {
		issuer, host, allow string
		want                string // kinds of addresses that may be dialled
	}{
		{"https://idp.example/realm", "idp.example", "", "public private"},
		{"https://idp.example:8443", "IDP.example", "", "public private"},
		{"https://idp.example", "keys.example", "", "public"},
		{"https://idp.example", "idp.example.", "", "public"},
		{"https://idp.example", "127.0.0.1", "", "public"},
		{"https://idp.example", "keys.example", "10.0.0.0/8", "public private"},
		{"https://idp.example", "idp.example", "127.0.0.0/8", "public private loopback"},
		{"https://10.0.0.1", "10.0.0.1", "", "public private"},
		{"https://127.0.0.1:9000", "127.0.0.1", "", "public private loopback"},
		{"http://localhost:9000", "127.0.0.1", "", "public loopback"},
		{"http://[::1]:9000", "::1", "", "public private loopback"},
		{"https://idp.example", "idp.example", "169.254.0.0/16", "public private"},
	} {
		var allow []netip.Prefix
		if c.allow != "" {
			allow = append(allow, netip.MustParsePrefix(c.allow))
		}
		var got []string
		policy := newReach(c.issuer, allow).of(c.host)
		for _, a := range [][2]string{{"public", "8.8.8.8"}, {"private", "10.0.0.1"}, {"loopback", "127.0.0.1"}, {"metadata", "169.254.169.254"}} {
			if policy.Check(netip.MustParseAddr(a[1])) == nil {
				got = append(got, a[0])
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("issuer %s that allows %q: at %s may be dialled %q; want %q", c.issuer, c.allow, c.host, got, c.want)
		}
	}
}

// An issuer of the public network cannot have a service asked that only the
// gateway can reach, by the address or a name, unless the operator allows it.
func TestKeysElsewhere(t *testing.T) {
	var asked atomic.Int64
	inner := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"keys":[]}`)
	}))
	defer inner.Close()
	_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var keys string
	public := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":"https://example.com","jwks_uri":%q}`, keys)
	}))
	defer public.Close()
	for _, c := range []struct {
		host  string
		allow []netip.Prefix
		want  string
	}{
		{"127.0.0.1", nil, "keys: it cannot be reached: loopback address not allowed"},
		{"localhost", nil, "keys: it cannot be reached: loopback address not allowed"},
		{"[::ffff:127.0.0.1]", nil, "keys: it cannot be reached: loopback address not allowed"},
		{"169.254.169.254", nil, "keys: it cannot be reached: link-local address not allowed"},
		{"10.255.255.255", nil, "keys: it cannot be reached: private address not allowed"},
		{"127.0.0.1", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "keys: none that can be used here"},
	} {
		keys = "https://" + c.host + ":" + port + "/internal"
		ring := newKeyring("https://example.com", c.allow, nil)
		transport := ring.client.Transport.(*http.Transport)
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AddCert(inner.Certificate())
		transport.TLSClientConfig.RootCAs.AddCert(public.Certificate())
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "example.com:443" { // which stands for the public network
				return (&net.Dialer{}).DialContext(ctx, network, public.Listener.Addr().String())
			}
			return dial(ctx, network, address)
		}
		asked.Store(0)
		_, err := ring.ask(time.Now())
		if err == nil || err.Error() != c.want || (asked.Load() != 0) != (c.allow != nil) {
			t.Errorf("keys at %s: %v after %d requests; want %s", keys, err, asked.Load(), c.want)
		}
	}
}

// A reload that changes what may be dialled forgets no keys, and dials by the
// new settings from then on.
func TestReachOfAReload(t *testing.T) {
	settings := Issuer{URL: "https://idp.example", TenantClaim: "t"}
	first := NewIssuers([]Issuer{settings}, nil, nil)
	ring := first.list[0].keys
	ring.began = time.Now()
	ring.set.Store(&keySet{fetched: ring.began})
	if same := NewIssuers([]Issuer{settings}, first, nil).list[0].keys; same != ring {
		t.Error("an issuer with the same addresses has another keyring; want the same")
	}
	settings.Allow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	next := NewIssuers([]Issuer{settings}, first, nil).list[0].keys
	if next == ring || next.set.Load() != ring.set.Load() || next.began != ring.began {
		t.Error("an issuer with other addresses has not a keyring of its own with the same keys")
	}
}
