package gateway

import (
	"bufio"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// The private listener has so many connections, and whoever gives one back has
// the next one served.
func TestPrivateConnections(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	ask := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", strings.TrimPrefix(r.AdminURL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		return c
	}
	answered := func(c net.Conn, patience time.Duration) error {
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		_, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err
	}
	var held []net.Conn
	for n := range privateConnections {
		held = append(held, ask())
		if err := answered(held[n], 10*time.Second); err != nil {
			t.Fatalf("connection %d: %v; want it served", n+1, err)
		}
	}
	more := ask()
	if err := answered(more, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("connection %d: %v; want it to wait", privateConnections+1, err)
	}
	held[0].Close()
	if err := answered(more, 10*time.Second); err != nil {
		t.Errorf("connection %d, after another was closed: %v; want it served", privateConnections+1, err)
	}
}

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
