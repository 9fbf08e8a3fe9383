package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// A gateway that could not start can be shut down, and leaves no port behind.
func TestFailedStart(t *testing.T) {
	b := fakebackend.Start(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	doc := open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-open", 5000))))
	for name, spoil := range map[string]func(g *Gateway){
		"listen":      func(g *Gateway) { g.started.Listen = taken.Addr().String() },
		"admin":       func(g *Gateway) { g.started.Admin = taken.Addr().String() },
		"certificate": func(g *Gateway) { g.started.TLS.CertFile, g.started.TLS.KeyFile = "missing.crt", "missing.key" },
	} {
		g, err := New(t.Context(), parse(t, doc), Options{Stdout: newJournal()})
		if err != nil {
			t.Fatal(err)
		}
		spoil(g)
		if err := g.Start(); err == nil {
			t.Errorf("Start() with a bad %s = nil; want an error", name)
		}
		if err := g.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown() after a Start that failed by its %s = %v; want none", name, err)
		}
	}
}

// starving is a listener that is out of file descriptors for a while.
type starving struct {
	net.Listener
	failures atomic.Int32
}

func (s *starving) Accept() (net.Conn, error) {
	if s.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return s.Listener.Accept()
}

// Out of file descriptors the listener waits; it does not give up.
func TestAcceptSurvivesExhaustion(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &starving{Listener: l}
	s.failures.Store(4)
	var log strings.Builder
	e := newEntrance(s, nil, new(bodies), new(atomic.Int64), 10, slog.New(slog.NewTextHandler(&log, nil)))
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := e.Accept()
	if err != nil {
		t.Fatalf("Accept() after exhaustion = %v; want the connection", err)
	}
	c.Close()
	if got := strings.Count(log.String(), "\n"); got != 1 {
		t.Errorf("exhaustion was logged %d times; want 1: %s", got, log.String())
	}
	e.Close()
	if _, err := e.Accept(); err == nil {
		t.Error("Accept() after Close = nil error; want one")
	}
}

// On loopback, the private listener answers to no other host's name.
func TestAdminHost(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-open", 5000)))))
	for host, want := range map[string]int{
		"": http.StatusOK, "localhost": http.StatusOK, "localhost:1": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:80": http.StatusOK,
		"rebound.example": http.StatusMisdirectedRequest, "localhost.example": http.StatusMisdirectedRequest, "10.0.0.1": http.StatusMisdirectedRequest,
	} {
		req, err := http.NewRequest(http.MethodGet, r.AdminURL()+"/admin/config", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		if got := r.do(req).status; got != want {
			t.Errorf("GET /admin/config with Host %q = %d; want %d", host, got, want)
		}
	}
}

// What takes a restart is said as long as it is so: it is measured against what
// the process was started with.
func TestPendingRestart(t *testing.T) {
	b := fakebackend.Start(t)
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))
	r := start(t, open(doc))
	for i, c := range []struct{ more, want string }{
		{"limits: {body: 2MiB}", "limits.body"},
		{"limits: {body: 2MiB, rate: 5}", "limits.body"},
		{"", ""},
	} {
		restart, err := r.Reload(t.Context(), parse(t, open(doc, c.more)))
		if got := strings.Join(restart, " "); err != nil || got != c.want {
			t.Errorf("reload %d with %q = %q, %v; want %q", i+1, c.more, got, err, c.want)
		}
	}
}

// A backend that fails does not hold the drain up: after its first failure a
// worker gives it nothing any more.
func TestDrainGivesUpFailingObserver(t *testing.T) {
	stats := newPeerStats("t", "b")
	r := &room{max: 1000}
	c := newCourier(stats, r, new(share), 100, slog.New(slog.DiscardHandler))
	r.closing.Store(true)
	release := make(chan struct{})
	for range 50 {
		c.send(parcel{size: 1, deliver: func() bool { <-release; return false }})
	}
	close(release)
	if err := r.drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if failed, dropped := stats.failed.Load(), stats.dropped.Load(); failed > courierWorkers || failed+dropped != 50 {
		t.Errorf("%d deliveries failed and %d were dropped; want at most %d failed, and 50 in all", failed, dropped, courierWorkers)
	}
}

// The bodies of all requests together are bounded, whoever sends them: what
// finds no room is told so at once, and what is answered makes room.
func TestBodiesAreBounded(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-open", 5000))), "limits: {bodyBytes: 1MiB}"))
	const size = 700 << 10
	body := event01("e1", `,"unknown":"`+strings.Repeat("x", size)+`"`)
	head := fmt.Sprintf("POST /hooks HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	dial := func() net.Conn {
		c, err := net.Dial("tcp", r.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	send := func(c net.Conn, text string) {
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(c net.Conn) *http.Response {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp
	}
	first, second := dial(), dial()
	send(first, head+body[:1])
	for r.bodies.used.Load() == 0 {
		time.Sleep(time.Millisecond) // until the first head has been read
	}
	send(second, head)
	if resp := answer(second); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("second body = %d; want 503 with Retry-After", resp.StatusCode)
	}
	send(first, body[1:])
	if resp := answer(first); resp.StatusCode != http.StatusOK {
		t.Errorf("first body = %d; want 200", resp.StatusCode)
	}
	if got := r.bodies.used.Load(); got != 0 {
		t.Errorf("%d bytes are held after the answer; want 0", got)
	}
	if a := r.post("/hooks", body); a.decision() != "pass" {
		t.Errorf("the next body = %s; want pass", a.body)
	}
	third := dial()
	send(third, head)
	for r.bodies.used.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	third.Close()
	for r.bodies.used.Load() != 0 {
		time.Sleep(time.Millisecond) // until the server has seen it go
	}
	large := dial()
	send(large, strings.Replace(head, fmt.Sprint(len(body)), "99999999", 1))
	if resp := answer(large); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body beyond limits.body = %d; want 413", resp.StatusCode)
	}
}
