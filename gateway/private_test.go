package gateway

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// What net/http says of the private listener quotes no caller.
func TestPrivateLog(t *testing.T) {
	const canary = "Bearer canary-0123456789"
	var text lockedBuffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b := fakebackend.Start(t)
	api := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		panic(r.Header.Get("Authorization") + "\n\ngoroutine 1 [running]:\n" + canary)
	})
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))),
		func(o *Options) { o.AdminAPI, o.Logger = api, log })
	req, err := http.NewRequest(http.MethodPost, r.AdminURL()+"/admin/v1/tenants", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", canary)
	if resp, err := r.client.Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("a handler that panics = %s; want no answer", resp.Status)
	}
	r.stop() // the log is complete
	newPrivateLog(log).Printf("http: TLS handshake error from 192.0.2.1:1: %s", canary)
	newPrivateLog(log).Print(canary)
	got := text.String()
	if strings.Contains(got, "canary-") {
		t.Errorf("the log quotes what a caller sent:\n%s", got)
	}
	for _, want := range []string{"a handler panicked", "TestPrivateLog", `message="TLS handshake (the rest is withheld)"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %q:\n%s", want, got)
		}
	}
}
