package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// guest is a connection to the private listener.
type guest struct {
	t  testing.TB
	c  net.Conn
	in *bufio.Reader
}

func visit(t testing.TB, address net.Addr, from string) *guest {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &guest{t, c, bufio.NewReader(c)}
}

// say sends text. The connection may have been closed.
func (g *guest) say(text string) { _, _ = io.WriteString(g.c, text) }

// hears returns the status of the answer, or why there is none.
func (g *guest) hears() string {
	g.t.Helper()
	// Only a test that fails gets there.
	if err := g.c.SetReadDeadline(time.Now().Add(4 * time.Second)); err != nil {
		return err.Error()
	}
	resp, err := http.ReadResponse(g.in, nil)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "nothing"
	case err != nil:
		return "closed"
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return fmt.Sprint(resp.StatusCode)
}

const probe = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

// Whatever those do who have taken all places of the private listener, a probe
// is answered at once: for less than the five seconds after which the server
// closes a connection without a request.
func TestProbesFindAPlace(t *testing.T) {
	b := fakebackend.Start(t)
	doc := open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))))
	dir := t.TempDir()
	ca := newAuthority(t)
	ca.write(dir, "clients.pem")
	secure := fmt.Sprintf("adminTLS: {certFile: %[1]s/server.crt, keyFile: %[1]s/server.key, clientCAFile: %[1]s/clients.pem}\n", dir)
	for _, c := range []struct {
		what, file string
		take       func(*guest) // what those do who take the places
		waiting    bool         // until the API has been reached by all
	}{
		{what: "connections that send nothing"},
		{what: "connections without a handshake", file: secure},
		{what: "half a request each", take: func(g *guest) { g.say(probe[:20]) }},
		{what: "connections kept after a request", take: func(g *guest) {
			g.say(probe)
			if got := g.hears(); got != "200" {
				t.Errorf("a connection kept after a request: %s; want 200", got)
			}
		}},
		{what: "requests under way", waiting: true, take: func(g *guest) {
			g.say("POST /admin/v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\n")
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			reached := make(chan struct{}, 2*privateConnections)
			r := start(t, c.file+doc, func(o *Options) {
				o.AdminAPI = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					reached <- struct{}{}
					_, _ = io.ReadAll(r.Body)
				})
			})
			taken := make([]*guest, 0, privateConnections)
			for range privateConnections {
				g := visit(t, r.admin.Addr(), "127.0.0.1")
				if c.take != nil {
					c.take(g)
				}
				taken = append(taken, g)
			}
			if c.waiting {
				for range privateConnections {
					<-reached
				}
			}
			for range 10 {
				if c.file != "" {
					client := ca.with(nil)
					client.Timeout = 4 * time.Second
					if got := askPrivate(t, client, r.AdminURL()+"/healthz"); got != http.StatusOK {
						t.Errorf("probe = %d; want 200", got)
					}
					client.CloseIdleConnections()
					continue
				}
				g := visit(t, r.admin.Addr(), "127.0.0.1")
				g.say(probe)
				if got := g.hears(); got != "200" {
					t.Errorf("probe = %s; want 200", got)
				}
			}
			if got := taken[0].hears(); got != "closed" {
				t.Errorf("the first of those who took all places: %s; want its connection closed", got)
			}
		})
	}
}

// greeter is a private server of which a test knows what it does.
type greeter struct {
	*lobby
	t       testing.TB
	entered chan struct{} // a request for anything but health has come, and waits
	leave   chan struct{} // for this
	idle    chan struct{} // a connection has become idle
}

func greet(t testing.TB, places int) *greeter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &greeter{newLobby(listener, places), t, make(chan struct{}, 100), make(chan struct{}), make(chan struct{}, 1000)}
	server := &http.Server{
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" {
				g.entered <- struct{}{}
				<-g.leave
			}
		}),
		ConnState: func(c net.Conn, state http.ConnState) {
			g.follow(c, state)
			if state == http.StateIdle {
				g.idle <- struct{}{}
			}
		},
	}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(g) })
	t.Cleanup(func() {
		close(g.leave)
		server.Close()
		done.Wait()
	})
	return g
}

// probed asks for health on a connection, until that is idle again.
func (g *greeter) probed(v *guest) *guest {
	g.t.Helper()
	v.say(probe)
	if got := v.hears(); got != "200" {
		g.t.Fatalf("GET /healthz = %s; want 200", got)
	}
	<-g.idle
	return v
}

// occupied has a request wait on a connection.
func (g *greeter) occupied(v *guest) *guest {
	v.say("GET /busy HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	<-g.entered
	return v
}

// The one that goes is the one on which nothing has happened for longest. A
// place is free once the server has let go of it.
func TestWhoGivesAPlace(t *testing.T) {
	g := greet(t, 3)
	comes := func() *guest { return g.probed(visit(t, g.Addr(), "127.0.0.1")) }
	first, second, third := comes(), comes(), comes()
	g.probed(first)
	fourth := comes()
	if got := second.hears(); got != "closed" {
		t.Errorf("the one that was idle for longest: %s; want closed", got)
	}
	for _, v := range []*guest{third, first, fourth} {
		g.occupied(v)
	}
	// The server is busy with all of them, and does not let go for a while.
	late := visit(t, g.Addr(), "127.0.0.1")
	late.say(probe)
	for _, v := range []*guest{third, first, fourth} {
		if got := v.hears(); got != "closed" {
			t.Errorf("a request under way beside a newcomer: %s; want closed", got)
		}
	}
	g.mu.Lock()
	if len(g.open) != 3 {
		t.Errorf("%d places are taken; want all 3 while the server is busy", len(g.open))
	}
	g.mu.Unlock()
	g.leave <- struct{}{}
	if got := late.hears(); got != "200" {
		t.Errorf("the newcomer = %s; want 200 once the server has let go", got)
	}
}

// There are never more than so many, whoever comes.
func TestPlacesAreBounded(t *testing.T) {
	const places = 8
	g := greet(t, places)
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for range 50 {
				c, err := net.Dial("tcp", g.Addr().String())
				if err != nil {
					t.Errorf("dial: %v", err)
					return
				}
				defer c.Close()
				if n%2 == 0 {
					_, _ = io.WriteString(c, probe)
					_, _ = http.ReadResponse(bufio.NewReader(c), nil)
				}
				g.mu.Lock()
				if len(g.open) > places {
					t.Errorf("%d connections are open; want at most %d", len(g.open), places)
				}
				g.mu.Unlock()
			}
		})
	}
	all.Wait()
	v := visit(t, g.Addr(), "127.0.0.1")
	v.say(probe)
	if got := v.hears(); got != "200" {
		t.Errorf("a request after the crowd = %s; want 200", got)
	}
}

// Who waits for a place is let go when the listener is closed.
func TestNobodyWaitsForAClosedListener(t *testing.T) {
	g := greet(t, 1)
	g.occupied(visit(t, g.Addr(), "127.0.0.1"))
	late := visit(t, g.Addr(), "127.0.0.1")
	for taken := false; !taken; { // until the newcomer waits
		g.mu.Lock()
		for v := range g.open {
			taken = v.sent
		}
		g.mu.Unlock()
	}
	_ = g.Close() // the server may do so first, when it is told
	if got := late.hears(); got != "closed" {
		t.Errorf("who waited for a place: %s; want closed", got)
	}
}
