package config

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const storedTenant = `{"id": "acme", "keys": [{"sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}], "secrets": {"stored": true},
  "registration": {"protocolVersion": "0.1", "hooks": [{"id": "com.example.policy", "transport": {"type": "http", "url": "https://policy.example.com"},
  "authentication": {"type": "bearer", "tokenRef": "token"}, "subscriptions": [{"events": ["tool.after"], "mode": "observe"}]}]}}`

// A stored secret that comes or goes changes the warnings of the tenant's file,
// also where nothing else did. The loader takes no secret for a tenant.
func TestStoredSecretsComeAndGo(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := strings.Repeat("5e", 32)
	write("key", key+"\n")
	write("gateway.yaml", "tenantsDir: tenants\nadminApi: {keys: [{env: GOOD_KEY}], secretsKey: {file: key}}\n")
	write("tenants/acme.yaml", storedTenant)
	l := NewLoader(filepath.Join(dir, "gateway.yaml"), testEnv)
	load := func(warnings int) *File {
		t.Helper()
		f, found, err := l.Load()
		if err != nil || len(f.Tenants) != 1 || len(found) != warnings {
			t.Fatalf("Load = %v, warnings %v; want one tenant and %d warnings", err, found, warnings)
		}
		return f
	}
	f := load(1)
	if want := filepath.Join(dir, "tenants", ".secrets"); f.AdminAPI.SecretsDir != want || !f.Tenants[0].Secrets.Stored {
		t.Errorf("folder = %q, grant %+v; want %q and stored secrets", f.AdminAPI.SecretsDir, f.Tenants[0].Secrets, want)
	}
	if !slices.Contains(f.Sources, filepath.Join(dir, "key")) {
		t.Errorf("sources = %q; want the key's file among them", f.Sources)
	}
	secrets, err := f.AdminAPI.Secrets(testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Put("acme", "token.yaml", "of another name", time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	load(1)
	if _, err := secrets.Put("acme", "token", "hunter2", time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	load(0)
	if _, err := secrets.Delete("acme", "token"); err != nil {
		t.Fatal(err)
	}
	f = load(1)

	for _, text := range [][]byte{f.Print(), f.PrintWhole()} {
		if bytes.Contains(text, []byte(key)) || !bytes.Contains(text, []byte("stored: true")) {
			t.Errorf("printed configuration = %s; want the grant, and the key by reference alone", text)
		}
	}
	whole, _, err := ParseWhole("/elsewhere/last-good.yaml", f.PrintWhole(), testEnv)
	if err != nil || whole.AdminAPI.SecretsDir != f.AdminAPI.SecretsDir || !whole.Tenants[0].Secrets.Stored {
		t.Errorf("ParseWhole = %v; want the folder and the grant again", err)
	}
	if _, err := ParsePrinted("printed", f.Print()); err != nil {
		t.Errorf("ParsePrinted = %v; want no look at the key", err)
	}
	// Who refers to a secret and has no grant is told of this one.
	write("tenants/acme.yaml", strings.Replace(storedTenant, `"secrets": {"stored": true},`, "", 1))
	if _, _, err := l.Load(); err == nil || !strings.Contains(err.Error(), "write secrets: {stored: true}") {
		t.Errorf("Load without a grant = %v; want a mistake that says what to write", err)
	}
	write("tenants/acme.yaml", storedTenant)
	// A key that is gone is a mistake, and never no key.
	write("key", "5e5e")
	if _, _, err := l.Load(); err == nil || strings.Contains(err.Error(), "5e5e") {
		t.Errorf("Load with a short key = %v; want a mistake that does not show it", err)
	}
	if _, err := f.AdminAPI.Secrets(testEnv); err == nil || strings.Contains(err.Error(), "5e5e") {
		t.Errorf("Secrets with a short key = %v; want an error that does not show it", err)
	}
}

// Of secrets, a document that is not trusted may have the tenant's own alone.
func TestStoredSecretsNeedNoTrust(t *testing.T) {
	for grant, want := range map[string][]string{
		`{"stored": true}`:                     nil,
		`{"stored": false}`:                    nil,
		`{}`:                                   nil,
		`{"stored": true, "envPrefix": "A_"}`:  {"secrets.envPrefix"},
		`{"dir": "/etc"}`:                      {"secrets.dir"},
		`{"dir": "/etc", "future": "unknown"}`: {"secrets.dir", "secrets.future"},
		`"all"`:                                {"secrets"},
	} {
		d, err := ParseTenant("", []byte(strings.Replace(storedTenant, `{"stored": true}`, grant, 1)))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range d.OperatorOnly() {
			got = append(got, m.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("OperatorOnly with secrets %s = %q; want %q", grant, got, want)
		}
	}
}
