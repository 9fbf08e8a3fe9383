package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// The file of a client secret is followed as that of a bearer token is: calls
// after a change come with tokens that the new secret has obtained.
func TestReloadOnRotatedClientSecret(t *testing.T) {
	mux := http.NewServeMux()
	issuer := httptest.NewServer(mux)
	t.Cleanup(issuer.Close)
	answer := func(format string, args ...any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, format, args...)
		}
	}
	mux.HandleFunc("/.well-known/openid-configuration", answer(`{"issuer":%q,"token_endpoint":%q}`, issuer.URL, issuer.URL+"/token"))
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		token := map[string]string{canaryToken: "first", canaryHeader: "second"}
		_, secret, _ := r.BasicAuth()
		answer(`{"access_token":%q,"token_type":"bearer"}`, token[secret])(w, r)
	})
	backend := fakebackend.Start(t)
	dir := folder(t, "secrets/client", canaryToken, "gateway.yaml", openFile(`
  protocolVersion: draft
  hooks:
    - id: com.example.policy
      transport: {type: http, url: "`+backend.URL+`"}
      authentication: {type: oauth, flow: client_credentials, issuer: "`+issuer.URL+`", resource: "urn:policy", clientId: gateway, clientSecretRef: client}
      subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 5000, failurePolicy: fail-closed, content: {default: omit}}]`,
		"secrets: {dir: secrets}"))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, _ := p.urls()
	passes := func() {
		t.Helper()
		if r := call(t, "", "send", "--url", public, "--protocol-version", "draft"); r.code != 0 {
			t.Fatalf("send = %d, %q, %q; want a pass", r.code, r.stdout, r.stderr)
		}
	}
	passes()
	put(t, filepath.Join(dir, "secrets/client"), canaryHeader)
	p.stderr.await(t, `configuration reloaded`, 1)
	passes()
	requests := backend.Await(2)
	for i, want := range []string{"Bearer first", "Bearer second"} {
		if got := requests[i].Header.Get("Authorization"); got != want {
			t.Errorf("request %d came with Authorization %q; want %q", i, got, want)
		}
	}
	p.quit()
}
