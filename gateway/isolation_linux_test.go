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

// One address that announces large bodies and never sends them, with a key or
// without, leaves room for the bodies of another. It runs where all of 127/8 is
// the machine's own.
func TestBodiesNeverSent(t *testing.T) {
	b := fakebackend.Start(t)
	m, measure := measured(t)
	r := start(t, "limits: {bodyBytes: 8MiB, readTimeout: 30s}\n"+pair(policy(b), policy(b)), measure)
	const flood = 20
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	refused := make(chan int, flood)
	for i := range flood {
		conn, err := from.DialContext(t.Context(), "tcp", r.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// Only a test that fails gets there.
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		w := &wire{t: t, name: fmt.Sprint("body ", i), conn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}
		w.send("POST /hooks HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 1048576\r\n\r\n{")
		go func() {
			if resp, err := http.ReadResponse(w.in, nil); err == nil { // or the test is over
				refused <- resp.StatusCode
			}
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
	m.want("in_flight", flood-4)
	large := event01("large", `,"unknown":"`+strings.Repeat("x", 1000<<10)+`"`)
	for i := range 10 {
		passed(t, []*reply{r.post("/hooks", strings.Replace(large, "large", fmt.Sprint("large", i), 2), neighbour)})
	}
}
