package load

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// echo answers with what it is sent and remembers the ids.
type echo struct {
	mu  sync.Mutex
	ids map[string]int
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.ids[string(body[1:len(body)-1])]++
	e.mu.Unlock()
	_, _ = w.Write(body)
}

func TestTemplate(t *testing.T) {
	tmpl := NewTemplate("host:1", "/hooks", []byte(`"`+Placeholder+`" "`+Placeholder+`"`), "X-A: b")
	request := bytes.Clone(tmpl.raw)
	for id, want := range map[uint64]string{0: "000000000000", 7: "000000000007", 123456789012: "123456789012", 5123456789012: "512345678901"} {
		tmpl.identify(request, id)
		if got := string(request); got != "POST /hooks HTTP/1.1\r\nHost: host:1\r\nContent-Type: application/json\r\nContent-Length: 29\r\nX-A: b\r\n\r\n"+`"`+want+`" "`+want+`"` {
			t.Errorf("request %d = %q; want both ids %s", id, got, want)
		}
	}
}

// Every request is sent once, with its own id, and is counted once, in both
// kinds of loop and over TLS.
func TestRun(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, rate := range []float64{0, 1e6, -1e6} { // the last is precise
			e := &echo{ids: make(map[string]int)}
			s := httptest.NewUnstartedServer(e)
			if secure {
				s.StartTLS()
			} else {
				s.Start()
			}
			o := Target{Address: s.Listener.Addr().String(), Connections: 4, Precise: rate < 0,
				Accept: func(status int, body []byte) bool { return status == 200 && len(body) == len(Placeholder)+2 }}
			if secure {
				o.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
				o.TLS.ServerName = "example.com"
			}
			for range 2 {
				o.Templates = append(o.Templates, NewTemplate(o.Address, "/", []byte(`"`+Placeholder+`"`)))
			}
			r, err := Run(o, Plan{Rate: math.Abs(rate), Requests: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if r.Requests != 1000 || r.Errors != 0 || r.Latency.TotalCount() != 1000 || r.Latency.Max() <= 0 {
				t.Errorf("Run(TLS %v, rate %g) = %d requests, %d errors (%s), %d latencies; want 1000, 0, 1000", secure, rate, r.Requests, r.Errors, r.First, r.Latency.TotalCount())
			}
			for n := range 1000 {
				if id := fmt.Sprintf("%012d", n); e.ids[id] != 1 {
					t.Errorf("TLS %v, rate %g: id %s was sent %d times; want once", secure, rate, id, e.ids[id])
				}
			}
			s.Close()
		}
	}
}

// What is refused, and what is not answered at all, are errors, and the run
// goes on after either.
func TestRunCountsErrors(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) % 4 {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("not now"))
		case 2:
			panic(http.ErrAbortHandler)
		}
	}))
	s.Config.ErrorLog = nil
	defer s.Close()
	address := s.Listener.Addr().String()
	r, err := Run(Target{Address: address, Connections: 1, Templates: []*Template{NewTemplate(address, "/", nil)},
		Accept: func(status int, _ []byte) bool { return status == 200 }}, Plan{Requests: 100})
	if err != nil {
		t.Fatal(err)
	}
	if r.Errors != 50 || r.Requests != 75 || r.Latency.TotalCount() != 50 || !strings.Contains(r.First, "status 503: not now") {
		t.Errorf("Run = %d answered, %d errors, first %q, %d latencies; want 75, 50, a 503, 50", r.Requests, r.Errors, r.First, r.Latency.TotalCount())
	}
}

// An open loop charges a server that stalls for every request that was due
// meanwhile, not only for the one that it held.
func TestOpenLoopCountsFromWhenARequestWasDue(t *testing.T) {
	const stall, rate = 200 * time.Millisecond, 1000
	release := make(chan struct{})
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			time.AfterFunc(stall, func() { close(release) })
			<-release
		}
	}))
	defer s.Close()
	address := s.Listener.Addr().String()
	r, err := Run(Target{Address: address, Connections: 1, Templates: []*Template{NewTemplate(address, "/", nil)}}, Plan{Rate: rate, Requests: 100})
	if err != nil {
		t.Fatal(err)
	}
	// The last was due 99 ms after the first and was sent when that was over.
	if least := r.Latency.ValueAtQuantile(1); least < int64(stall-100*time.Millisecond)*99/100 {
		t.Errorf("the least latency behind a stall of %s = %s; want at least %s", stall, time.Duration(least), stall-100*time.Millisecond)
	}
}

// The runs of a session have its connections.
func TestSession(t *testing.T) {
	var opened atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	address := s.Listener.Addr().String()
	session, err := Open(Target{Address: address, Connections: 3, Templates: []*Template{NewTemplate(address, "/", nil)}})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for range 5 {
		if r := session.Run(Plan{Requests: 50}); r.Requests != 50 || r.Errors != 0 {
			t.Errorf("Run = %d requests, %d errors (%s); want 50, 0", r.Requests, r.Errors, r.First)
		}
	}
	if n := opened.Load(); n != 3 {
		t.Errorf("%d connections were opened; want 3", n)
	}
}

// Requests that cannot be sent any more, because the server has gone, are errors.
func TestRunCountsWhatWasNotSent(t *testing.T) {
	var s *httptest.Server
	var n atomic.Int64
	s = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n.Add(1) == 10 {
			s.Listener.Close()
			panic(http.ErrAbortHandler)
		}
	}))
	s.Config.ErrorLog = nil
	defer s.Close()
	address := s.Listener.Addr().String()
	r, err := Run(Target{Address: address, Connections: 1, Templates: []*Template{NewTemplate(address, "/", nil)}}, Plan{Requests: 100})
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != 9 || r.Errors != 91 {
		t.Errorf("Run = %d answered, %d errors; want 9 and all others", r.Requests, r.Errors)
	}
}

func TestRunCannotConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := Run(Target{Address: l.Addr().String(), Templates: []*Template{NewTemplate("h", "/", nil)}}, Plan{Requests: 1}); err == nil {
		t.Error("Run without a server = nil; want an error")
	}
}
