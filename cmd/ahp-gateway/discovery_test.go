package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// discoveredPolicy is a draft registration document of one backend that lists
// no subscriptions.
func discoveredPolicy(url string) string {
	return fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":%q},"authentication":{"type":"bearer","tokenEnv":"TEST_TOKEN"}}]}`, url)
}

// A SIGHUP asks a backend again, even if the file has not changed, and one that
// cannot be asked changes nothing.
func TestReloadDiscovers(t *testing.T) {
	backend := fakebackend.Start(t, fakebackend.Advertise("configuration", "configuration", "rpc-error-32601"))
	dir := folder(t, "gateway.yaml", openFile(discoveredPolicy(backend.URL)))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, admin := p.urls()
	p.stderr.await(t, `subscriptions discovered" tenant=default backend=com\.example\.policy intercept=\[tool\.before\] observe=\[\]`, 1)
	p.signal(syscall.SIGHUP)
	p.stderr.await(t, `configuration reloaded" cause=hangup`, 1)
	p.stderr.await(t, `subscriptions discovered`, 2)
	p.signal(syscall.SIGHUP)
	p.stderr.await(t, `configuration refused, the running one stays in use" .*tenant default: backend com\.example\.policy: rpc_error: JSON-RPC error -32601`, 1)
	if got, want := get(t, admin+"/metrics"), `ahp_gateway_discovery_skipped{ahp_tenant="default"} 0`; !strings.Contains(got, want) {
		t.Errorf("/metrics has no line %s; it is\n%.3000s", want, got)
	}
	expect(t, public, `-32001`) // a 0.1 event, of which there is no document
	if got := len(backend.Requests()); got != 3 {
		t.Errorf("the backend got %d requests; want one for each load", got)
	}
	p.quit()
}

func TestServeRefusesWhatItCannotDiscover(t *testing.T) {
	backend := fakebackend.Start(t, fakebackend.Behave("status-503"))
	dir := folder(t, "gateway.yaml", openFile(discoveredPolicy(backend.URL)))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	if code := p.exit(); code != 1 || p.stdout.String() != "" {
		t.Errorf("serve = %d, %q; want 1 without serving", code, p.stdout)
	}
	if want := "tenant default: backend com.example.policy: status: "; !strings.Contains(p.stderr.String(), want) {
		t.Errorf("serve says %s; want %s", p.stderr, want)
	}
}

// A signal to end does not wait for a backend, neither at start nor at a reload.
func TestSIGTERMWhileDiscovering(t *testing.T) {
	backend := fakebackend.Start(t, fakebackend.Advertise("hang"))
	dir := folder(t, "gateway.yaml", openFile(discoveredPolicy(backend.URL), "discovery: {timeout: 1h}"))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	backend.Await(1)
	p.quit()
	if p.stdout.String() != "" || !strings.Contains(p.stderr.String(), "ended before anything was served") {
		t.Errorf("serve that is ended while it starts wrote %q, %s; want that it ended before it served", p.stdout, p.stderr)
	}
}

func TestSIGTERMWhileReloading(t *testing.T) {
	backend := fakebackend.Start(t, fakebackend.Advertise("configuration", "hang"))
	dir := folder(t, "gateway.yaml", openFile(discoveredPolicy(backend.URL), "discovery: {timeout: 1h}"))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, _ := p.urls()
	p.signal(syscall.SIGHUP)
	backend.Await(2)
	expect(t, public, `-32001`)
	p.quit()
	if got := p.stderr.String(); !strings.Contains(got, "reload given up") || !strings.Contains(got, "draining") || strings.Contains(got, "refused") {
		t.Errorf("serve that is ended while it reloads says %s; want that the reload is given up, and a drain", got)
	}
}
