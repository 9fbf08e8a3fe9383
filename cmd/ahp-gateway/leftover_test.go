//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// Replicas that share tenants and a folder of secrets make no tenant that would
// find the secrets of one whose document is gone from the store.
func TestSecretsOutliveADocumentInRedis(t *testing.T) {
	t.Setenv("AHP_SECRETS_KEY", strings.Repeat("5e", 32))
	server := redistest.Start(t)
	pass, _ := pair(t)
	secrets := filepath.Join(t.TempDir(), "secrets")
	a, b := newReplica(t, server.Address, pass.URL), newReplica(t, server.Address, pass.URL)
	for _, r := range []*replica{a, b} {
		path := filepath.Join(r.dir, "gateway.yaml")
		put(t, path, strings.Replace(contentOf(t, path), "store: redis}", "store: redis, secretsKey: {env: AHP_SECRETS_KEY}, secretsDir: "+secrets+"}", 1))
		r.stderr.await(t, `configuration reloaded`, 1)
	}
	document := "id: acme\nsecrets: {stored: true}\nregistration: " +
		onePolicy(pass.URL, `,"authentication":{"type":"bearer","tokenRef":"token"}`) + "\n"
	if got := a.tenant(document, "add"); got.code != 0 {
		t.Fatalf("tenant add = %+v; want 0", got)
	}
	present := func(r *replica, want string) {
		t.Helper()
		awaited(t, "tenant list", want, func() string {
			if got := r.tenant("", "list").stdout; !strings.Contains(got, "acme") {
				return "absent"
			}
			return "present"
		})
	}
	present(b, "present")
	if got := b.tenant(canaryToken, "secret", "set", "acme", "token"); got.code != 0 {
		t.Fatalf("tenant secret set = %+v; want 0", got)
	}
	server.Command("HDEL", "ahp:tenants", "acme")
	for _, r := range []*replica{a, b} {
		r.signal(syscall.SIGHUP)
		present(r, "absent")
	}
	for _, r := range []*replica{a, b} {
		if got := r.tenant(document, "add"); got.code != 1 || !strings.Contains(got.stderr, "Secrets of an earlier tenant of this id are stored") {
			t.Errorf("tenant add beside the secrets of another = %+v; want it refused", got)
		}
		if got := r.tenant("", "secret", "list", "acme"); got.code != 0 || !strings.Contains(got.stdout, "token") {
			t.Errorf("tenant secret list = %+v; want what is left", got)
		}
	}
	if got := a.tenant("", "secret", "remove", "acme", "token"); got.code != 0 {
		t.Errorf("tenant secret remove = %+v; want 0", got)
	}
	if got := b.tenant(document, "add"); got.code != 0 {
		t.Errorf("tenant add once nothing is left = %+v; want 0", got)
	}
	if got := b.tenant("", "secret", "list", "acme"); got.code != 0 || strings.Contains(got.stdout, "token") {
		t.Errorf("tenant secret list of the new tenant = %+v; want none", got)
	}
	a.quit()
	b.quit()
}
