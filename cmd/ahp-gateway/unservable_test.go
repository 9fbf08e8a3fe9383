//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// asking is the file of a tenant whose backend is asked for its subscriptions, and
// is not there.
func asking(t testing.TB, id string) string {
	return strings.Replace(tenantFile(id, "X"), onePolicy("X"), `{"protocolVersion":"draft","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":"http://127.0.0.1:1"}}]}`, 1)
}

// Files that have no mistake, and cannot be served all the same, keep no change from
// what is in the store.
func TestChangesBesideFilesThatCannotBeServed(t *testing.T) {
	server := redistest.Start(t)
	pass, _ := pair(t)
	a := newReplica(t, server.Address, pass.URL)
	gatewayFile := filepath.Join(a.dir, "gateway.yaml")
	put(t, gatewayFile, strings.Replace(contentOf(t, gatewayFile), "onFailure: skip", "onFailure: refuse", 1))
	a.stderr.await(t, "configuration reloaded", 1)
	a.add("acme", pass.URL)
	put(t, filepath.Join(a.dir, "tenants/late.yaml"), asking(t, "late"))
	a.stderr.await(t, "configuration refused", 1)
	if r := a.tenant("", "remove", "acme"); r.code != 0 {
		t.Errorf("tenant remove beside files that cannot be served = %+v; want 0", r)
	}
	if got := with(t, a.public, tenantKey("acme")); !strings.Contains(got, "HTTP 401") {
		t.Errorf("answer to a tenant that was removed = %s; want 401", got)
	}
	if r := a.tenant(asking(t, "own"), "add"); r.code != 1 || !strings.Contains(r.stderr, "com.example.policy") {
		t.Errorf("tenant add of one that cannot be served = %+v; want 1 and why", r)
	}
	if err := os.Remove(filepath.Join(a.dir, "tenants/late.yaml")); err != nil {
		t.Fatal(err)
	}
	a.isReady()
}

// A corrected file that names another server, and cannot be served, has the last
// good configuration follow its own server still.
func TestLastGoodKeepsItsServer(t *testing.T) {
	first, second := redistest.Start(t), redistest.Start(t)
	pass, deny := pair(t)
	state := filepath.Join(t.TempDir(), "state")
	a := newReplica(t, first.Address, pass.URL, "--state-dir", state)
	a.add("acme", pass.URL)
	other := newReplica(t, second.Address, pass.URL)
	other.add("beta", deny.URL)
	b := newReplica(t, first.Address, pass.URL, "x: 1", "--state-dir", state, "--fallback", "last-good")
	b.serves(tenantKey("acme"), passed)
	gatewayFile := filepath.Join(b.dir, "gateway.yaml")
	bad := contentOf(t, gatewayFile)
	corrected := strings.NewReplacer("x: 1\n", "", first.Address, second.Address, "onFailure: skip", "onFailure: refuse").Replace(bad)
	put(t, filepath.Join(b.dir, "tenants/late.yaml"), asking(t, "late"))
	put(t, gatewayFile, corrected)
	b.stderr.await(t, "discover", 1)
	b.stderr.await(t, "configuration refused", 1)
	if got := with(t, b.public, tenantKey("beta")); !strings.Contains(got, "HTTP 401") {
		t.Errorf("answer to a tenant of the server of a file that is not served = %s; want 401", got)
	}
	if r := a.tenant("", "remove", "acme"); r.code != 0 {
		t.Fatalf("tenant remove = %+v; want 0", r)
	}
	b.serves(tenantKey("acme"), "HTTP 401")
	b.reports("ready, with the last good configuration")

	if err := os.Remove(filepath.Join(b.dir, "tenants/late.yaml")); err != nil {
		t.Fatal(err)
	}
	b.serves(tenantKey("beta"), denied)
}

// What changes in the store does not wait for the backends of tenants that it is
// not about.
func TestStoreNewsWaitForNoBackend(t *testing.T) {
	server := redistest.Start(t)
	pass, _ := pair(t)
	hung := fakebackend.Start(t, fakebackend.Advertise("configuration", "configuration", "hang"))
	a, b := newReplica(t, server.Address, pass.URL), newReplica(t, server.Address, pass.URL)
	put(t, filepath.Join(b.dir, "tenants/slow.yaml"), strings.Replace(tenantFile("slow", "X"), onePolicy("X"), discoveredPolicy(hung.URL), 1)+"secrets: {envPrefix: TEST_}\n")
	b.stderr.await(t, "subscriptions discovered", 1)
	gatewayFile := filepath.Join(b.dir, "gateway.yaml") // listed tenants are no different
	put(t, gatewayFile, contentOf(t, gatewayFile)+"tenants:\n  - "+strings.ReplaceAll(tenantFile("listed", pass.URL), "\n", "\n    ")+"\n")
	b.serves(tenantKey("listed"), passed)
	a.add("acme", pass.URL)
	b.serves(tenantKey("acme"), passed)
	if r := a.tenant("", "remove", "acme"); r.code != 0 {
		t.Fatalf("tenant remove = %+v; want 0", r)
	}
	began := time.Now()
	b.serves(tenantKey("acme"), "HTTP 401")
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("a tenant that was removed is served for %v; want about a second at most", took)
	}
	if got := hung.Count(); got > 2 {
		t.Errorf("the backend of another tenant was asked %d times; want once for each change of the files", got)
	}
}
