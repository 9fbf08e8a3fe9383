package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// While all connections of the public listener are taken, those over the limit are
// turned away at once, whatever they do: over TLS nobody's handshake is waited
// for. A place that becomes free is the next one's.
func TestFullListenerWaitsForNobody(t *testing.T) {
	b := fakebackend.Start(t)
	doc := open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))))
	dir := t.TempDir()
	ca := newAuthority(t)
	ca.write(dir, "clients.pem")
	for what, prefix := range map[string]string{"plain": "", "TLS": fmt.Sprintf("tls: {certFile: %[1]s/server.crt, keyFile: %[1]s/server.key}\n", dir)} {
		r := start(t, "limits: {connections: 3, readTimeout: 60s, idleTimeout: 60s}\n"+prefix+doc)
		r.client = ca.with(nil)
		var taken []*wire
		for range 3 {
			w := dial(t, r, "within the limit")
			w.send("P")
			taken = append(taken, w)
		}
		for n := range 5 {
			w := dial(t, r, fmt.Sprintf("%s, connection %d over the limit", what, n+1))
			if a := w.answer(); (a == nil) != (what == "TLS") || a != nil && a.status != 503 {
				t.Errorf("%s = %+v; want it turned away, in plain with 503", w.name, a)
			}
			if a := w.answer(); a != nil {
				t.Errorf("%s: answer %+v; want it closed", w.name, a)
			}
			w.conn.Close()
		}
		taken[0].conn.Close()
		served := false
		for range 1000 { // the server forgets a connection a moment after its client
			if served = askAs(r, r.client, "after", "") == "pass"; served {
				break
			}
			r.client.CloseIdleConnections()
		}
		if !served {
			t.Errorf("%s: no connection was served after one had been closed", what)
		}
		for _, w := range taken {
			w.conn.Close()
		}
	}
}

// A connection that does not come to an end of its handshake, or to a request
// behind it, is closed after readTimeout, however often it sends something.
func TestSlowHandshake(t *testing.T) {
	b := fakebackend.Start(t)
	dir := t.TempDir()
	ca := newAuthority(t)
	ca.write(dir, "clients.pem")
	r := start(t, fmt.Sprintf("limits: {readTimeout: 300ms, idleTimeout: 60s}\ntls: {certFile: %[1]s/server.crt, keyFile: %[1]s/server.key}\n", dir)+
		open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	// closed waits until the gateway has closed a connection, over which trickle
	// sends something meanwhile.
	closed := func(what string, c net.Conn, trickle []byte) {
		t.Helper()
		defer c.Close()
		var err error
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
			if len(trickle) > 0 {
				if _, err = c.Write(trickle[:1]); err != nil {
					return
				}
				trickle = trickle[1:]
			}
			if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, err = c.Read(make([]byte, 4096)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
		}
		t.Errorf("%s: %v after five seconds; want it closed", what, err)
	}
	hello := append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, make([]byte, 200)...) // the head of a ClientHello, and too little of the rest
	closed("no handshake", dial(t, r, "silent").conn, nil)
	closed("a handshake a byte at a time", dial(t, r, "slow").conn, hello)
	config := settings(ca.with(nil)).Clone()
	config.ServerName = "127.0.0.1"
	secure := tls.Client(dial(t, r, "a request a byte at a time").conn, config)
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, secure) // the 408, and the end
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, c := range []byte(raw(good, "slow")) {
		_, _ = secure.Write([]byte{c})
		select {
		case <-tick.C:
			continue
		case <-ended:
		}
		break
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("a request a byte at a time goes on; want it closed")
	}
	secure.Close()
	if n := b.Count(); n != 0 {
		t.Errorf("the backend was called %d times; want never", n)
	}
}
