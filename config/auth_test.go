package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAuth(t *testing.T) {
	f, warnings, err := Load("testdata/valid/gateway-auth.yaml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := Auth{Resource: "https://gateway.example/hooks", Issuers: []Issuer{
		{URL: "https://idp.example", Algorithms: algorithms, TenantClaim: "ahp_tenant", ClockSkew: 30 * time.Second, KeysMaxAge: 24 * time.Hour},
		{URL: "https://login.example/realms/a/", Audience: []string{"https://gateway.example/hooks", "ahp"}, Algorithms: []string{"EdDSA", "RS256"},
			MappingClaim: "sub", Tenants: map[string]string{"client-1": "acme", "agent 2": "acme"}, ClockSkew: 5 * time.Minute, KeysMaxAge: time.Minute,
			Scopes: []string{"ahp.intercept", "urn:x"}, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16"), netip.MustParsePrefix("fd00:1::/64")}},
		{URL: "http://127.0.0.1:9000", Algorithms: algorithms, MappingClaim: "client_id", Tenants: map[string]string{"on": "beta"},
			ClockSkew: 30 * time.Second, KeysMaxAge: 24 * time.Hour},
	}}
	if !reflect.DeepEqual(f.Auth, want) {
		t.Errorf("Auth = %+v; want %+v", f.Auth, want)
	}
	keys := f.Tenants[0].Keys
	if want := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC); len(keys) != 2 || keys[0].Expires != want {
		t.Errorf("first key expires at %v; want %v", keys[0].Expires, want)
	}
	if want := time.Date(2020, 2, 29, 21, 59, 59, 5e8, time.UTC); keys[1].Expires != want {
		t.Errorf("second key expires at %v; want %v", keys[1].Expires, want)
	}
	if len(f.Tenants[1].Keys) != 0 {
		t.Errorf("beta has keys %v; want none", f.Tenants[1].Keys)
	}
	if len(warnings) != 1 || warnings[0].Path != "tenants[0].keys[1].expires" {
		t.Errorf("warnings = %v; want one about the expired key", warnings)
	}
}

// A resource that no harness posts to is doubtful.
func TestResourceWarning(t *testing.T) {
	for resource, want := range map[string]int{"https://gateway.example/hooks": 0, "https://gateway.example/ahp/hooks": 0, "https://gateway.example": 1, "https://gateway.example/ahp": 1} {
		_, warnings, err := Parse("gateway.yaml", fmt.Appendf(nil, "auth: {resource: %q, issuers: [{issuer: 'https://idp.example', tenantClaim: t}]}\ntenants: [{id: a, registration: %s}]\n",
			resource, minimalRegistration), testEnv)
		if err != nil || len(warnings) != want {
			t.Errorf("resource %s: warnings %v, %v; want %d", resource, warnings, err, want)
		}
	}
}

// Who keeps keys is told in time that one ends.
func TestExpiryWarnings(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		end  time.Time
		want string // what the warning says, or ""
	}{
		{now.Add(-time.Hour), "has expired"},
		{now, "has expired"},
		{now.Add(time.Second), "expires within 14 days"},
		{now.Add(14 * 24 * time.Hour), "expires within 14 days"},
		{now.Add(14*24*time.Hour + time.Second), ""},
	} {
		r := newReader("gateway.yaml", testEnv)
		r.now = func() time.Time { return now }
		_, warnings, err := r.gateway("gateway.yaml", fmt.Appendf(nil, "tenants: [{id: a, keys: [{env: GOOD_KEY, expires: %s}], registration: %s}]\n",
			c.end.Format(time.RFC3339), minimalRegistration))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(warnings) == 1 {
			got = warnings[0].What
		}
		if len(warnings) > 1 || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("a key that ends at %v: warnings %v; want %q", c.end, warnings, c.want)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	cert, key := certificate(t)
	const tenants = "\ntenants: [{id: a, certificates: [{uri: 'spiffe://acme/Agent'}, {dns: Agent.ACME.example}, {email: Agent@Acme.Example}], registration: " + minimalRegistration + "}]\n"
	dir := write(t, map[string]string{
		"server.crt": cert, "server.key": key,
		"default.yaml":  "tls: {certFile: server.crt, keyFile: server.key, clientCAFile: server.crt}" + tenants,
		"required.yaml": "tls: {certFile: server.crt, keyFile: server.key, clientCAFile: server.crt, clientAuth: required}" + tenants,
		"wrong.yaml":    "tls: {certFile: server.crt, keyFile: server.key, clientCAFile: server.key}" + tenants,
	})
	for name, want := range map[string]string{"default": "optional", "required": "required"} {
		f, _, err := Load(filepath.Join(dir, name+".yaml"), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		if f.TLS.ClientAuth != want || f.TLS.ClientCAFile != filepath.Join(dir, "server.crt") {
			t.Errorf("%s: TLS = %+v; want clientAuth %s", name, f.TLS, want)
		}
		names := []CertificateName{{"uri", "spiffe://acme/Agent"}, {"dns", "agent.acme.example"}, {"email", "Agent@acme.example"}}
		if got := f.Tenants[0].Certificates; !reflect.DeepEqual(got, names) {
			t.Errorf("%s: certificates = %v; want %v", name, got, names)
		}
		again, err := reload(f)
		if err != nil {
			t.Fatalf("what Print makes of %s is refused: %v\n%s", name, err, f.Print())
		}
		again.Sources = f.Sources
		if !reflect.DeepEqual(again, f) {
			t.Errorf("what Print makes of %s loads as %+v; want %+v", name, again, f)
		}
	}
	if _, _, err := Load(filepath.Join(dir, "wrong.yaml"), testEnv); err == nil || !strings.Contains(err.Error(), "tls.clientCAFile: holds no certificate") {
		t.Errorf("Load with a key for roots = %v; want a mistake", err)
	}
}
