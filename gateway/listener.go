package gateway

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// entrance is the public listener. It bounds the connections of one address,
// and hands the server only bytes that are framed beyond doubt.
type entrance struct {
	net.Listener
	tls *tls.Config // nil without TLS
	max int         // connections of one address

	bodies   *bodies
	rejected *atomic.Int64 // connections over max
	log      *slog.Logger
	closed   chan struct{}
	close    sync.Once
	mu       sync.Mutex
	open     map[netip.Addr]*origin
}

// newEntrance returns l with at most max connections of one address. Those over
// it are added to rejected.
func newEntrance(l net.Listener, config *tls.Config, b *bodies, rejected *atomic.Int64, max int, log *slog.Logger) *entrance {
	return &entrance{Listener: l, tls: config, max: max, bodies: b, rejected: rejected, log: log,
		closed: make(chan struct{}), open: make(map[netip.Addr]*origin)}
}

// Close closes the listener. Connections live on.
func (e *entrance) Close() error {
	e.close.Do(func() { close(e.closed) })
	return e.Listener.Close()
}

// pause reports whether an error of Accept may pass, and waits before the next
// try: out of file descriptors or memory, a listener that gives up would turn
// a flood of connections into an outage.
func (e *entrance) pause(err error, tries int) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	var passing interface{ Temporary() bool }
	if (!errors.As(err, &passing) || !passing.Temporary()) && !errors.Is(err, syscall.ENOBUFS) && !errors.Is(err, syscall.ENOMEM) {
		return false
	}
	if tries == 0 {
		e.log.Warn("connections cannot be accepted for now", "error", err)
	}
	wait := time.NewTimer(min(5*time.Millisecond<<min(tries, 8), time.Second))
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-e.closed:
		return false
	}
}

// Accept returns the next connection whose address is within its limit.
func (e *entrance) Accept() (net.Conn, error) {
	for tries := 0; ; {
		c, err := e.Listener.Accept()
		if err != nil {
			if e.pause(err, tries) {
				tries++
				continue
			}
			return nil, err
		}
		tries = 0
		from := e.enter(originOf(c))
		if from == nil {
			e.rejected.Add(1)
			e.reject(c)
			continue
		}
		if e.tls == nil {
			return &strictConn{Conn: c, entrance: e, from: from}, nil
		}
		secure := tls.Server(c, e.tls)
		return &strictTLSConn{strictConn: strictConn{Conn: secure, entrance: e, from: from}, secure: secure}, nil
	}
}

// enter counts a connection from an address, or returns nil if it has too many.
func (e *entrance) enter(from netip.Addr) *origin {
	e.mu.Lock()
	defer e.mu.Unlock()
	o := e.open[from]
	if o == nil {
		o = &origin{address: from}
		e.open[from] = o
	}
	if o.connections >= e.max {
		return nil
	}
	o.connections++
	return o
}

func (e *entrance) leave(from *origin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if from.connections--; from.connections == 0 {
		delete(e.open, from.address)
	}
}

// reject closes a connection. Without TLS it says why: that fits the empty send
// buffer, so nobody can hold up those who are accepted behind it. With TLS it
// would take a handshake.
func (e *entrance) reject(c net.Conn) {
	defer c.Close()
	if e.tls != nil {
		return
	}
	if c.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		const why = "too many connections from this address\n"
		_, _ = io.WriteString(c, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\n"+
			"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 39\r\n\r\n"+why)
	}
}

// errBusy ends a connection whose request finds no room.
var errBusy = errors.New("no room for the request's body")

// errFraming ends a connection on which framing found a fault.
var errFraming = errors.New("ambiguous framing")

// strictConn reads no further than its requests are framed beyond doubt.
type strictConn struct {
	net.Conn
	entrance *entrance
	from     *origin
	closed   atomic.Bool
	framing  framing
	fault    error        // what ends the connection
	held     atomic.Int64 // of the room for bodies
}

func (c *strictConn) Read(p []byte) (int, error) {
	if c.fault != nil {
		return 0, c.fault
	}
	n, err := c.Conn.Read(p)
	good := c.framing.pass(p[:n])
	if c.framing.body > freeBody && !c.hold(c.framing.body) {
		c.fault = errBusy
		return 0, c.fault
	}
	if good < n {
		c.fault = errFraming
		if good == 0 {
			return 0, c.fault
		}
		return good, nil
	}
	return n, err
}

// hold reserves room for a body of n bytes in all, and reports whether there is.
func (c *strictConn) hold(n uint64) bool {
	b := c.entrance.bodies
	held := c.held.Load()
	more := int64(min(n, uint64(b.each))) - held
	if more <= 0 {
		return true
	}
	if !b.take(&c.from.held, held, more) {
		return false
	}
	c.held.Add(more)
	return true
}

// release gives the room back.
func (c *strictConn) release() {
	if n := c.held.Swap(0); n > 0 {
		c.entrance.bodies.give(&c.from.held, n)
	}
}

// Write writes an answer. With it a request that has been read whole is done with.
func (c *strictConn) Write(p []byte) (int, error) {
	if c.framing.state == framingRequest {
		c.release()
	}
	return c.Conn.Write(p)
}

// Close closes the connection, once, and makes room for another one.
func (c *strictConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	defer c.entrance.leave(c.from)
	c.release()
	return c.Conn.Close()
}

// strictTLSConn is a strictConn that the server can see to be a TLS connection.
type strictTLSConn struct {
	strictConn
	secure *tls.Conn
	client clientIdentity // as far as it has been asked for
}

// Handshake and ConnectionState are those of the TLS connection.
func (c *strictTLSConn) Handshake() error { return c.secure.Handshake() }

// ConnectionState is what the handshake agreed on.
func (c *strictTLSConn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }

// framing follows the requests of one connection by their line ends and
// lengths, in the strictest reading of RFC 9112, next to the server's own
// parser, which takes a bare LF for a line end and hides it. It only ever ends a
// connection; whatever it lets through is still parsed and checked. The zero
// value waits for the first request.
type framing struct {
	state   framingState
	left    uint64 // bytes of the body or chunk that are still to come
	length  uint64 // of the body
	body    uint64 // bytes of the request's body that have been announced
	sized   bool   // Content-Length seen
	chunked bool   // Transfer-Encoding seen
	blank   bool   // an empty line in front of the request seen

	line  [96]byte // the beginning of the line under way: what is longer is none of ours
	kept  int
	total int
	last  byte // of the line under way
}

// framingState is what comes next.
type framingState uint8

const (
	framingRequest    framingState = iota // the request line
	framingHeader                         // a header line, or the empty one
	framingBody                           // left bytes
	framingChunkSize                      // the size line of a chunk
	framingChunk                          // left bytes
	framingChunkEnd                       // the line end behind a chunk
	framingTrailerEnd                     // the empty line behind the last chunk
)

// pass returns how many of the bytes that come next may be handed on: all, or
// those in front of the line end that breaks the rules, so that no reader can
// take the request for complete.
func (f *framing) pass(b []byte) int {
	for i := 0; i < len(b); {
		if f.state == framingBody || f.state == framingChunk {
			n := min(f.left, uint64(len(b)-i))
			f.left -= n
			i += int(n)
			if f.left == 0 && f.state == framingBody {
				f.next()
			} else if f.left == 0 {
				f.state = framingChunkEnd
			}
			continue
		}
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			f.keep(b[i:])
			return len(b)
		}
		f.keep(b[i : i+n])
		if i += n; f.total == 0 || f.last != '\r' || !f.end() {
			return i
		}
		f.kept, f.total, f.last = 0, 0, 0
		i++
	}
	return len(b)
}

// keep adds to the line under way.
func (f *framing) keep(part []byte) {
	if len(part) == 0 {
		return
	}
	f.kept += copy(f.line[f.kept:], part)
	f.total += len(part)
	f.last = part[len(part)-1]
}

// next waits for another request.
func (f *framing) next() {
	f.state, f.length, f.sized, f.chunked, f.blank = framingRequest, 0, false, false, false
}

// end takes a line that is complete, and reports whether it is good.
func (f *framing) end() bool {
	line := f.line[:f.kept]
	whole := f.kept == f.total
	if whole {
		line = line[:len(line)-1] // the CR
	}
	empty := len(line) == 0
	switch f.state {
	case framingRequest:
		if empty && f.blank {
			return false
		}
		if empty {
			f.blank = true
			return true
		}
		f.state, f.body = framingHeader, 0
		return true
	case framingHeader:
		if !empty {
			return f.header(line, whole)
		}
		switch {
		case f.sized && f.chunked:
			return false
		case f.chunked:
			f.state = framingChunkSize
		case f.length > 0:
			f.state, f.left, f.body = framingBody, f.length, f.length
		default:
			f.next()
		}
		return true
	case framingChunkSize:
		size, ok := chunkSize(line)
		if !ok || !whole {
			return false
		}
		f.body += size
		if f.state, f.left = framingChunk, size; size == 0 {
			f.state = framingTrailerEnd
		}
		return true
	case framingChunkEnd:
		f.state = framingChunkSize
		return empty
	default:
		f.next()
		return empty
	}
}

// header takes one header line.
func (f *framing) header(line []byte, whole bool) bool {
	colon := bytes.IndexByte(line, ':')
	if line[0] == ' ' || line[0] == '\t' || colon == 0 || colon < 0 && whole {
		return false
	}
	if colon < 0 {
		return true // a name longer than any that matters
	}
	name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
	switch {
	case fold(name, "content-length"):
		if f.sized || !whole || !isDigits(value) {
			return false
		}
		f.sized = true
		for _, c := range value {
			f.length = f.length*10 + uint64(c-'0')
		}
	case fold(name, "transfer-encoding"):
		if f.chunked || !whole || !fold(value, "chunked") {
			return false
		}
		f.chunked = true
	}
	return true
}

// chunkSize reads a chunk's size line, extensions and all.
func chunkSize(line []byte) (size uint64, ok bool) {
	digits := 0
	for _, c := range line {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return size, c == ';' && digits > 0
		}
		if digits++; digits > 15 {
			return 0, false
		}
		size = size<<4 | uint64(c)
	}
	return size, digits > 0
}
