package gateway

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// dialAway is dial from another address: all of 127/8 is the machine's own.
func dialAway(t testing.TB, r *rig, name string) *wire {
	t.Helper()
	away := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := away.DialContext(t.Context(), "tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// Only a test that fails gets there.
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &wire{t: t, name: name, conn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}
}

// One address that announces large bodies and never sends them, with a key or
// without, leaves room for the bodies of another.
func TestBodiesNeverSent(t *testing.T) {
	b := fakebackend.Start(t)
	m, measure := measured(t)
	r := start(t, "limits: {bodyBytes: 8MiB, readTimeout: 30s}\n"+pair(policy(b), policy(b)), measure)
	const flood = 20
	refused := make(chan int, flood)
	for i := range flood {
		w := dialAway(t, r, fmt.Sprint("body ", i))
		defer w.conn.Close()
		w.send("POST /hooks HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 1048576\r\n\r\n{")
		go func() {
			status := 0 // none: the test is over, or has failed
			if resp, err := http.ReadResponse(w.in, nil); err == nil {
				status = resp.StatusCode
			}
			refused <- status
		}()
	}
	for range flood - 4 { // half of the room is four of them
		if status := <-refused; status != http.StatusServiceUnavailable {
			t.Errorf("a body over the address's share = %d; want 503", status)
		}
	}
	if got := r.bodies.used.Load(); got != 4<<20 {
		t.Errorf("%d bytes are held; want 4 MiB, half of the room", got)
	}
	m.want("bodies", flood-4)
	large := event01("large", `,"unknown":"`+strings.Repeat("x", 1000<<10)+`"`)
	for i := range 10 {
		passed(t, []*reply{r.post("/hooks", strings.Replace(large, "large", fmt.Sprint("large", i), 2), neighbour)})
	}
}

// An address that opens all the connections that it may takes none of another's.
func TestConnectionsOfAddresses(t *testing.T) {
	b := fakebackend.Start(t)
	m, measure := measured(t)
	r := start(t, "limits: {connectionsPerIP: 5, connections: 20}\n"+pair(policy(b), policy(b)), measure)
	for range 5 {
		defer dialAway(t, r, "held").conn.Close()
	}
	for range 30 {
		w := dialAway(t, r, "over the limit")
		if a := w.answer(); a == nil || a.status != http.StatusTooManyRequests {
			t.Errorf("a connection over the limit = %+v; want 429", a)
		}
		w.conn.Close()
	}
	passed(t, []*reply{r.post("/hooks", event01("e"), neighbour)})
	if n := m.value("ahp.gateway.connections.rejected", ""); n != 30 {
		t.Errorf("ahp.gateway.connections.rejected = %d; want 30", n)
	}
}
