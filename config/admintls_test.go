package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestAdminTLS(t *testing.T) {
	cert, key := certificate(t)
	const rest = "\ntenantsDir: tenants\nadminApi: {keys: [{env: GOOD_KEY}]}\n"
	const pair = "adminTLS: {certFile: server.crt, keyFile: server.key"
	dir := write(t, map[string]string{
		"server.crt": cert, "server.key": key, "tenants/acme.yaml": "id: acme\nkeys: [{sha256: \"" + strings.Repeat("a", 64) + "\"}]\nregistration: " + minimalRegistration,
		"plain.yaml":    "admin: 0.0.0.0:8788" + rest,
		"server.yaml":   "admin: 0.0.0.0:8788\n" + pair + "}" + rest,
		"clients.yaml":  "admin: 0.0.0.0:8788\n" + pair + ", clientCAFile: server.crt, names: [{uri: 'spiffe://acme/Deploy'}, {email: Ops@Acme.Example}]}" + rest,
		"off.yaml":      "admin: off\n" + pair + "}\ntenantsDir: tenants\n",
		"roots.yaml":    pair + ", clientCAFile: server.key}" + rest,
		"nameless.yaml": pair + ", names: [{dns: a.example}]}" + rest,
		"twice.yaml":    pair + ", clientCAFile: server.crt, names: [{dns: a.example}, {dns: A.example}]}" + rest,
		"half.yaml":     "adminTLS: {certFile: server.crt}" + rest,
		"wrong.yaml":    "adminTLS: {certFile: server.crt, keyFile: server.crt, clientAuth: required}" + rest,
	})
	for name, want := range map[string]struct {
		tls      AdminTLS
		warnings []string
	}{
		"plain":  {AdminTLS{}, []string{"admin", "adminApi"}},
		"server": {AdminTLS{CertFile: filepath.Join(dir, "server.crt"), KeyFile: filepath.Join(dir, "server.key")}, []string{"admin"}},
		"clients": {AdminTLS{
			CertFile: filepath.Join(dir, "server.crt"), KeyFile: filepath.Join(dir, "server.key"), ClientCAFile: filepath.Join(dir, "server.crt"),
			Names: []CertificateName{{"uri", "spiffe://acme/Deploy"}, {"email", "Ops@acme.example"}},
		}, nil},
	} {
		f, warnings, err := Load(filepath.Join(dir, name+".yaml"), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range warnings {
			got = append(got, w.Path)
		}
		if !reflect.DeepEqual(f.AdminTLS, want.tls) || !reflect.DeepEqual(got, want.warnings) {
			t.Errorf("%s: %+v, warnings about %q; want %+v, %q", name, f.AdminTLS, got, want.tls, want.warnings)
		}
		again, err := reload(f)
		if err != nil {
			t.Fatalf("what Print makes of %s is refused: %v\n%s", name, err, f.Print())
		}
		if !reflect.DeepEqual(again.AdminTLS, f.AdminTLS) {
			t.Errorf("what Print makes of %s loads as %+v; want %+v", name, again.AdminTLS, f.AdminTLS)
		}
	}
	for name, want := range map[string]string{
		"off":      "adminTLS: there is no private listener to secure",
		"roots":    "adminTLS.clientCAFile: holds no certificate",
		"nameless": "adminTLS.names: no client certificate is asked for",
		"twice":    "adminTLS.names[1]: is the same name as adminTLS.names[0]",
		"half":     "adminTLS.keyFile: is missing",
		"wrong":    "adminTLS: the certificate and the key are not a usable pair",
	} {
		if _, _, err := Load(filepath.Join(dir, name+".yaml"), testEnv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load of %s = %v; want %s", name, err, want)
		}
	}
}
