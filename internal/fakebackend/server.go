package fakebackend

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
)

// Request is one request as the server received it.
type Request struct {
	Method string
	// Path is the request target: path and query.
	Path   string
	Header http.Header
	Body   []byte
	Message
}

// Script chooses the behaviour for the n-th request of a server, counted from
// 0 in order of arrival. It may be called from many goroutines at once. req is
// valid until the script returns.
type Script func(n int, req *Request) string

// Server is a running fake backend. Its methods are safe for concurrent use.
type Server struct {
	// URL is where the server takes messages, for example
	// "http://127.0.0.1:40001/hooks". It has the scheme https when the server
	// was started with TLS.
	URL string

	script   Script
	record   bool
	report   func(format string, args ...any)
	roots    *x509.CertPool
	listener *trackedListener
	http     *fasthttp.Server
	compiled sync.Map // behaviour name → *behaviour
	count    atomic.Int64
	serving  sync.WaitGroup

	mu       sync.Mutex
	arrived  sync.Cond // signalled when requests grows
	requests []Request

	release     chan struct{}
	releaseOnce sync.Once
	closed      chan struct{}
	closeOnce   sync.Once
}

// Option changes how a server is started.
type Option func(*options)

type options struct {
	script    Script
	names     []string
	advertise []string
	tls       bool
	silent    bool
}

// Behave makes the server behave by the given names, one request after the
// other; the last one stays. Without Behave and WithScript every request
// passes. A name that concerns whole connections, such as "refuse", must stand
// alone.
func Behave(names ...string) Option {
	return func(o *options) { o.names = names }
}

// WithScript makes the server ask s what to do with each request.
func WithScript(s Script) Option {
	return func(o *options) { o.script = s }
}

// Advertise makes the server answer hooks/configuration requests by the given
// names, one after the other; the last one stays. They do not count for Behave
// and WithScript, which then see the other requests alone.
func Advertise(names ...string) Option {
	return func(o *options) { o.advertise = names }
}

// WithTLS serves https with a certificate that Roots verifies.
func WithTLS() Option {
	return func(o *options) { o.tls = true }
}

// WithoutRecording keeps no requests: for benchmarks. The Request that a script
// sees then has no Header.
func WithoutRecording() Option {
	return func(o *options) { o.silent = true }
}

// Start starts a server that is closed when the test ends. A behaviour that
// does not exist fails the test.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s, err := Listen(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	s.report = tb.Errorf
	tb.Cleanup(s.Close)
	return s
}

// Listen starts a server outside of a test. The caller closes it.
func Listen(opts ...Option) (*Server, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if len(o.names) == 0 {
		o.names = []string{"pass"}
	}
	s := &Server{
		script:  o.script,
		record:  !o.silent,
		report:  func(string, ...any) {},
		release: make(chan struct{}),
		closed:  make(chan struct{}),
	}
	s.arrived.L = &s.mu

	whole := connectionBehaviour{}
	if s.script == nil {
		var err error
		if whole, err = s.sequence(o.names); err != nil {
			return nil, fmt.Errorf("fakebackend: %w", err)
		}
	}
	if len(o.advertise) > 0 {
		if err := s.advertise(o.advertise); err != nil {
			return nil, fmt.Errorf("fakebackend: %w", err)
		}
	}
	if err := s.listen(whole, o.tls || whole.tls); err != nil {
		return nil, fmt.Errorf("fakebackend: %w", err)
	}
	return s, nil
}

// sequence checks names and makes them the script, unless the first one
// concerns whole connections, which it then returns.
func (s *Server) sequence(names []string) (connectionBehaviour, error) {
	if whole, ok := connectionBehaviours[names[0]]; ok && len(names) == 1 {
		s.script = func(int, *Request) string { return "pass" }
		return whole, nil
	}
	for _, name := range names {
		if _, err := s.behaviour(name); err != nil {
			return connectionBehaviour{}, err
		}
	}
	s.script = func(n int, _ *Request) string { return names[min(n, len(names)-1)] }
	return connectionBehaviour{}, nil
}

// advertise puts the answers to hooks/configuration before the script.
func (s *Server) advertise(names []string) error {
	for _, name := range names {
		if _, err := s.behaviour(name); err != nil {
			return err
		}
	}
	script := s.script
	var asked, others atomic.Int64
	s.script = func(_ int, req *Request) string {
		if req.RPCMethod == "hooks/configuration" {
			return names[min(int(asked.Add(1)), len(names))-1]
		}
		return script(int(others.Add(1))-1, req)
	}
	return nil
}

func (s *Server) listen(whole connectionBehaviour, withTLS bool) error {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.listener = newTrackedListener(tcp)
	s.URL = "http://" + tcp.Addr().String() + "/hooks"

	var config *tls.Config
	if withTLS {
		s.URL = "https://" + tcp.Addr().String() + "/hooks"
		if config, s.roots, err = newCertificate(whole.flaw); err != nil {
			tcp.Close()
			return err
		}
	}
	switch {
	case whole.refuse:
		return s.refuse()
	case whole.serve != nil:
		s.serving.Go(func() { s.serveRaw(whole.serve) })
		return nil
	}

	var listener net.Listener = s.listener
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	s.http = &fasthttp.Server{
		Handler:               s.handle,
		NoDefaultServerHeader: true,
		NoDefaultDate:         true,
		ReadBufferSize:        64 << 10,
		MaxRequestBodySize:    64 << 20,
		Logger:                discard{},
		ConnState:             s.connState,
	}
	s.serving.Go(func() { _ = s.http.Serve(listener) })
	return nil
}

// refuse moves the URL to a port where nobody listens and which nobody else
// can take while the server lives: the near end of a connection of its own.
func (s *Server) refuse() error {
	held, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		return err
	}
	s.URL = "http://" + held.LocalAddr().String() + "/hooks"
	s.listener.track(held)
	return nil
}

// serveRaw gives each connection to serve, which needs no request.
func (s *Server) serveRaw(serve func(*exchange)) {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() {
			defer c.Close()
			serve(&exchange{conn: c, server: s})
		})
	}
}

// Roots verify the server's certificate, unless it was started with a bad one.
// Nil without TLS.
func (s *Server) Roots() *x509.CertPool { return s.roots }

// Requests returns the requests received so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Count returns how many requests were received so far.
func (s *Server) Count() int { return int(s.count.Load()) }

// Await blocks until at least n requests were received and recorded, or the
// server is closed, and returns those received so far.
func (s *Server) Await(n int) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.requests) < n && !s.isClosed() {
		s.arrived.Wait()
	}
	return append([]Request(nil), s.requests...)
}

// Connections returns how many connections were accepted so far, and how many
// of them are open.
func (s *Server) Connections() (accepted, open int) { return s.listener.counts() }

// Release lets every request that "hang" or "late" holds go on, and those that
// come later too: "late" answers, "hang" closes the connection.
func (s *Server) Release() { s.releaseOnce.Do(func() { close(s.release) }) }

// CloseConnections closes every open connection, as a restart would, and goes
// on listening.
func (s *Server) CloseConnections() { s.listener.closeConnections() }

// Close stops listening, closes every connection and waits until nothing of
// the server runs any more.
func (s *Server) Close() {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		close(s.closed)
		s.arrived.Broadcast()
		s.mu.Unlock()
		s.listener.Close()
		s.listener.closeConnections()
	})
	s.serving.Wait()
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// handle reads one request and answers it, or takes the connection over.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	req := Request{
		Method: string(ctx.Method()),
		Path:   string(ctx.RequestURI()),
		Body:   ctx.Request.Body(),
	}
	if s.record {
		req.Body = append([]byte(nil), req.Body...)
		req.Header = make(http.Header)
		for key, value := range ctx.Request.Header.All() {
			req.Header.Add(string(key), string(value))
		}
	}
	req.Message = readMessage(req.Body)

	n := s.arrive(&req)
	name := s.script(n, &req)
	b, err := s.behaviour(name)
	if err != nil {
		s.report("fakebackend: request %d: %v", n, err)
		ctx.SetStatusCode(http.StatusInternalServerError)
		return
	}
	if b.raw == nil {
		b.answer(ctx, req.Message)
		return
	}

	x := &exchange{server: s, message: req.Message.clone()}
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		defer s.serving.Done() // that of connState
		x.conn = c.(interface{ UnsafeConn() net.Conn }).UnsafeConn()
		defer x.conn.Close()
		b.raw(x)
	})
}

// connState counts the connections that are served. One that is taken over is
// counted until its behaviour has ended.
func (s *Server) connState(_ net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateNew:
		s.serving.Add(1)
	case fasthttp.StateClosed:
		s.serving.Done()
	}
}

// arrive counts and records a request.
func (s *Server) arrive(req *Request) int {
	if !s.record {
		return int(s.count.Add(1)) - 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, *req)
	s.arrived.Broadcast()
	return int(s.count.Add(1)) - 1
}

// discard is a logger that says nothing: a test that misbehaves on purpose
// must not fill the output.
type discard struct{}

func (discard) Printf(string, ...any) {}
