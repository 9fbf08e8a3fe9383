package config

import (
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Ranges stand in place of all private addresses, wherever the one or the other
// is written.
func TestAllowAddresses(t *testing.T) {
	f, _, err := Load("testdata/valid/gateway-oauth.yaml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	ranges := func(texts ...string) (all []netip.Prefix) {
		for _, s := range texts {
			all = append(all, netip.MustParsePrefix(s))
		}
		return all
	}
	for id, want := range map[string]struct {
		private bool
		ranges  []netip.Prefix
	}{
		"com.example.policy": {false, ranges("10.20.0.0/16", "fd00:1::/64")},
		"com.example.inside": {false, ranges("192.168.7.0/24")},
		"com.example.both":   {true, ranges("10.20.0.0/16", "fd00:1::/64")},
		"com.example.none":   {false, nil},
	} {
		got := f.Tenants[0].Backends[id]
		if got.AllowPrivate != want.private || !slices.Equal(got.AllowAddresses, want.ranges) {
			t.Errorf("%s: AllowPrivate %t, AllowAddresses %v; want %t, %v", id, got.AllowPrivate, got.AllowAddresses, want.private, want.ranges)
		}
	}
	for text, want := range map[string]bool{
		"registration: " + minimalRegistration:                                                                                     true,
		"backend: {allowAddresses: [10.0.0.0/8]}\nregistration: " + minimalRegistration:                                            false,
		"backend: {allowAddresses: [10.0.0.0/8], allowPrivate: true}\nregistration: " + minimalRegistration:                        true,
		"backends: {com.example.policy: {allowAddresses: [10.0.0.0/8]}}\nregistration: " + minimalRegistration:                     false,
		"backends: {com.example.policy: {allowPrivate: true, allowAddresses: [10.0.0.0/8]}}\nregistration: " + minimalRegistration: true,
	} {
		f, _, err := Parse("gateway.yaml", []byte(text), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Tenants[0].Backends["com.example.policy"].AllowPrivate; got != want {
			t.Errorf("AllowPrivate of %s = %t; want %t", text, got, want)
		}
	}
}

// What is said here of a URL's host is what is dialled later.
func TestEgress(t *testing.T) {
	own := BackendSettings{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"localhost.": false, "a.localhost": false, "localhost.example.com": false, "policy.example.com": false, "10.0.0.1": false, "": false,
	} {
		got := own.Egress(host)
		if got.AllowLoopback != want || got.AllowPrivate || !slices.Equal(got.Allow, own.AllowAddresses) {
			t.Errorf("Egress(%q) = %+v; want AllowLoopback %t and the ranges", host, got, want)
		}
	}
	if got := (&BackendSettings{AllowPrivate: true}).Egress("policy.example.com"); !got.AllowLoopback || !got.AllowPrivate {
		t.Errorf("Egress with AllowPrivate = %+v; want both", got)
	}
}

func TestOAuthClient(t *testing.T) {
	f, _, err := Load("testdata/valid/gateway-oauth.yaml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := &OAuth{
		Issuer: "https://id.example.com/tenant1", Resource: "https://10.20.1.1/ahp", ClientID: "ahp gateway",
		Scopes: []string{"policy.decide", "policy:observe"}, ClientSecret: &SecretRef{Ref: "policy/client"},
	}
	if h := f.Tenants[0].Registrations[0].Hooks[0]; !reflect.DeepEqual(h.OAuth, want) || h.Bearer != nil {
		t.Errorf("OAuth = %+v, Bearer %v; want %+v alone", h.OAuth, h.Bearer, want)
	}
}

// Whoever names a host has the default certificate shown to it: with tenants that
// is doubtful, under one backend it is meant.
func TestClientCertificateOfEveryTenant(t *testing.T) {
	cert, key := certificate(t)
	const pair = "clientCertFile: c.pem, clientKeyFile: k.pem"
	const keys = "keys: [{sha256: aa00000000000000000000000000000000000000000000000000000000000001}]"
	acme := "id: acme, " + keys + ", registration: " + minimalRegistration
	dir := write(t, map[string]string{
		"c.pem": cert, "k.pem": key, "tenants/acme.yaml": "id: acme\n" + keys + "\nregistration: " + minimalRegistration + "\n",
		"listed.yaml": "backend: {" + pair + "}\ntenants:\n- {" + acme + "}\n",
		"folder.yaml": "backend: {" + pair + "}\ntenantsDir: tenants\n",
		"own.yaml":    "tenants:\n- {" + acme + ", backends: {com.example.policy: {" + pair + "}}}\n",
	})
	for name, want := range map[string]int{"listed.yaml": 1, "folder.yaml": 1, "own.yaml": 0} {
		_, warnings, err := Load(filepath.Join(dir, name), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		if len(warnings) != want {
			t.Errorf("Load(%s) warns of %v; want %d", name, warnings, want)
			continue
		}
		for _, w := range warnings {
			if w.Path != "backend.clientCertFile" || !w.Warning || !strings.Contains(w.What, "identify itself to a host of its choice") {
				t.Errorf("Load(%s) warns of %v; want backend.clientCertFile", name, w)
			}
			checkMistake(t, w)
		}
	}
}

// A client certificate and an issuer's roots are files that a watcher has to
// know; printed, they load again.
func TestClientCertificate(t *testing.T) {
	cert, key := certificate(t)
	other, _ := certificate(t)
	dir := write(t, map[string]string{
		"tls/c.pem": cert, "tls/k.pem": key, "tls/other.pem": other,
		"good.yaml": "backend: {clientCertFile: tls/c.pem, clientKeyFile: tls/k.pem}\nregistration: " + minimalRegistration +
			"\nbackends: {com.example.policy: {issuerCAFile: tls/other.pem}}\n",
		"bad.yaml": "backend: {clientCertFile: tls/other.pem, clientKeyFile: tls/k.pem}\nregistration: " + minimalRegistration,
	})
	f, warnings, err := Load(filepath.Join(dir, "good.yaml"), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	own := f.Tenants[0].Backends["com.example.policy"]
	files := []string{filepath.Join(dir, "tls/c.pem"), filepath.Join(dir, "tls/k.pem"), filepath.Join(dir, "tls/other.pem")}
	if got := []string{own.ClientCertFile, own.ClientKeyFile, own.IssuerCAFile}; !slices.Equal(got, files) {
		t.Errorf("files = %q; want %q", got, files)
	}
	for _, file := range files {
		if !slices.Contains(f.Sources, file) {
			t.Errorf("Sources = %q; want %s among them", f.Sources, file)
		}
	}
	if len(warnings) > 0 {
		t.Errorf("Load of an open tenant warns of %v; want nothing, since its operator names the hosts", warnings)
	}
	again, err := reload(f)
	if err != nil {
		t.Fatal(err)
	}
	again.Sources = f.Sources
	if !reflect.DeepEqual(again, f) {
		t.Errorf("printed and loaded = %+v; want %+v", again, f)
	}
	if _, _, err := Load(filepath.Join(dir, "bad.yaml"), testEnv); err == nil {
		t.Error("Load with a key of another certificate = nil; want a mistake")
	}
}
