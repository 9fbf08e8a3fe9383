package fakebackend

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// exchange is one request whose connection has been taken over, or one
// connection of a server that reads no requests.
type exchange struct {
	server  *Server
	conn    net.Conn
	message Message
}

// dripInterval is how often the slow behaviours write one byte.
const dripInterval = 5 * time.Millisecond

// wire are the behaviours that write to the connection by hand. Whatever they
// leave undone, the connection is closed after them.
var wire = map[string]func(*exchange){
	// Silence and loss.
	"hang":              func(x *exchange) { x.hold() },
	"late":              func(x *exchange) { x.hold(); x.good() },
	"reset":             func(x *exchange) { x.reset() },
	"close-before-byte": func(*exchange) {},
	"reset-mid-head":    func(x *exchange) { x.write("HTTP/1.1 200 OK\r\nContent-Ty"); x.reset() },
	"close-mid-head":    func(x *exchange) { x.write("HTTP/1.1 200 OK\r\nContent-Ty") },
	"reset-mid-body": func(x *exchange) {
		body := x.body()
		x.head("Content-Length: " + length(body))
		x.write(body[:len(body)/2])
		x.reset()
	},
	"truncated": func(x *exchange) {
		// The shorter body is a whole JSON document: only the length tells.
		body := x.body()
		x.head("Content-Length: " + length(body+"    "))
		x.write(body)
	},
	"pass-then-close": func(x *exchange) { x.good() },

	// Too slow or without end.
	"slow-drip":      func(x *exchange) { x.head("Content-Length: 100000"); x.drip(" ") },
	"slow-drip-head": func(x *exchange) { x.write("HTTP/1.1 200 OK\r\nX-Slow: "); x.drip("a") },
	"slow-drip-chunks": func(x *exchange) {
		x.head("Transfer-Encoding: chunked")
		x.drip("1\r\n \r\n")
	},
	"1xx-flood":    func(x *exchange) { x.flood("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") },
	"header-flood": func(x *exchange) { x.write("HTTP/1.1 200 OK\r\n"); x.flood("X-More: of the same\r\n") },
	"body-flood":   func(x *exchange) { x.head("Transfer-Encoding: chunked"); x.flood("4\r\n    \r\n") },
	"1xx-drip":     func(x *exchange) { x.drip("HTTP/1.1 100 Continue\r\n\r\n") },
	"trailer-flood": func(x *exchange) {
		x.head("Transfer-Encoding: chunked")
		x.write(chunk(x.body()) + "0\r\n")
		x.flood("X-More: of the same\r\n")
	},
	"huge-headers": func(x *exchange) {
		x.head("X-Huge: "+strings.Repeat("a", 64<<10), "Content-Length: "+length(x.body()))
		x.write(x.body())
	},
	"hang-after-head": func(x *exchange) { x.head("Content-Length: " + length(x.body())); x.hold() },
	"hang-mid-body": func(x *exchange) {
		body := x.body()
		x.head("Content-Length: " + length(body))
		x.write(body[:len(body)/2])
		x.hold()
	},

	// Unusual, yet unambiguous and complete.
	"1xx-then-pass": func(x *exchange) {
		x.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
		x.good()
	},
	"chunked": func(x *exchange) {
		body := x.body()
		x.head("Transfer-Encoding: chunked")
		x.write(chunk(body[:10]) + chunk(body[10:]) + "0\r\n\r\n")
	},
	"chunked-trailer": func(x *exchange) {
		x.head("Transfer-Encoding: Chunked", "Trailer: X-Checksum")
		x.write(chunk(x.body()) + "0\r\nX-Checksum: 1\r\n\r\n")
	},
	"http10-length": func(x *exchange) {
		body := x.body()
		x.write("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + length(body) + "\r\n\r\n" + body)
	},
	"extra-bytes": func(x *exchange) { x.good(); x.good() },

	// Ambiguous or broken HTTP.
	"cl-te": func(x *exchange) {
		x.head("Content-Length: "+length(x.body()), "Transfer-Encoding: chunked")
		x.write(chunk(x.body()) + "0\r\n\r\n")
	},
	"te-cl": func(x *exchange) {
		x.head("Transfer-Encoding: chunked", "Content-Length: "+length(x.body()))
		x.write(chunk(x.body()) + "0\r\n\r\n")
	},
	"te-gzip":        func(x *exchange) { x.head("Transfer-Encoding: gzip, chunked"); x.write("0\r\n\r\n") },
	"two-te":         func(x *exchange) { x.chunked("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") },
	"http10-chunked": func(x *exchange) { x.status("HTTP/1.0 200 OK", "Transfer-Encoding: chunked") },
	"two-cl": func(x *exchange) {
		x.head("Content-Length: "+length(x.body()), "Content-Length: 5")
		x.write(x.body())
	},
	"two-cl-same":      func(x *exchange) { x.lengths("Content-Length: %d", "Content-Length: %d") },
	"cl-list":          func(x *exchange) { x.lengths("Content-Length: %[1]d, %[1]d") },
	"cl-plus":          func(x *exchange) { x.lengths("Content-Length: +%d") },
	"cl-negative":      func(x *exchange) { x.lengths("Content-Length: -%d") },
	"cl-hex":           func(x *exchange) { x.lengths("Content-Length: 0x%x") },
	"cl-empty":         func(x *exchange) { x.head("Content-Length:"); x.write(x.body()) },
	"cl-huge":          func(x *exchange) { x.head("Content-Length: 99999999999999999999"); x.write(x.body()) },
	"two-content-type": func(x *exchange) { x.lengths("Content-Type: text/html", "Content-Length: %d") },
	"http10-eof":       func(x *exchange) { x.status("HTTP/1.0 200 OK"); x.write(x.body()) },
	"eof":              func(x *exchange) { x.head("Connection: close"); x.write(x.body()) },
	"http12":           func(x *exchange) { x.status("HTTP/1.2 200 OK", "Content-Length: "+length(x.body())); x.write(x.body()) },
	"http2": func(x *exchange) {
		x.write("\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80\x00\x04\x00\x01\x00\x00\x00\x05\x00\xff\xff\xff")
	},
	"garbage":          func(x *exchange) { x.write("hello\r\n\r\n") },
	"bad-status":       func(x *exchange) { x.status("HTTP/1.1 2x0 OK", "Content-Length: 0") },
	"status-line-only": func(x *exchange) { x.write("HTTP/1.1 200\r\n\r\n") },
	"leading-crlf":     func(x *exchange) { x.write("\r\n"); x.good() },
	"folded-header":    func(x *exchange) { x.lengths("X-Folded: a", " b", "Content-Length: %d") },
	"space-colon":      func(x *exchange) { x.lengths("Content-Length : %d") },
	"no-colon":         func(x *exchange) { x.lengths("Content-Length: %d", "nonsense") },
	"nul-header":       func(x *exchange) { x.lengths("Content-Length: %d", "X-Nul: a\x00b") },
	"cr-header":        func(x *exchange) { x.lengths("Content-Length: %d", "X-Cr: a\rb") },
	"bare-lf":          func(x *exchange) { x.write("HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 2\n\n{}") },
	"switching": func(x *exchange) {
		x.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	},
	"chunked-broken": func(x *exchange) {
		x.head("Transfer-Encoding: chunked")
		x.write("zz\r\n" + x.body() + "\r\n0\r\n\r\n")
	},
	"chunked-short": func(x *exchange) { x.head("Transfer-Encoding: chunked"); x.write(chunk(x.body())) },
	"chunked-oversize": func(x *exchange) {
		x.head("Transfer-Encoding: chunked")
		x.write(chunk(x.body()) + chunk(strings.Repeat(" ", 2<<20)) + "0\r\n\r\n")
	},
	"chunked-claim":   func(x *exchange) { x.head("Transfer-Encoding: chunked"); x.write("7fffffffffffffff\r\n"); x.drip(" ") },
	"204-with-length": func(x *exchange) { x.status("HTTP/1.1 204 No Content", "Content-Length: 2"); x.write("{}") },
	"202-then-eof":    func(x *exchange) { x.status("HTTP/1.1 202 Accepted") },
	"202-eof-body":    func(x *exchange) { x.status("HTTP/1.1 202 Accepted"); x.write("{}") },
	"202-chunked-empty": func(x *exchange) {
		x.status("HTTP/1.1 202 Accepted", "Transfer-Encoding: chunked")
		x.write("0\r\n\r\n")
	},
}

// connectionBehaviour is how a server treats every connection, before and
// without any request.
type connectionBehaviour struct {
	refuse bool
	tls    bool
	flaw   certificateFlaw
	serve  func(*exchange)
}

var connectionBehaviours = map[string]connectionBehaviour{
	"refuse":         {refuse: true},
	"tls-bad-cert":   {tls: true, flaw: unknownAuthority},
	"tls-wrong-host": {tls: true, flaw: wrongHost},
	"tls-expired":    {tls: true, flaw: expired},
	"tls-hang":       {tls: true, serve: func(x *exchange) { x.hold() }},
	"tls-close":      {tls: true, serve: func(x *exchange) { x.readSome() }},
	"tls-plain":      {tls: true, serve: func(x *exchange) { x.readSome(); x.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") }},
	"never-read":     {serve: func(x *exchange) { x.holdUnread() }},
	"answer-early-then-hang": {serve: func(x *exchange) {
		x.readSome()
		x.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		x.holdUnread()
	}},
	"answer-early-then-close": {serve: func(x *exchange) {
		x.readSome()
		x.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	}},
}

func length(body string) string { return fmt.Sprint(len(body)) }

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// body is a good answer to the request.
func (x *exchange) body() string {
	return string(newTemplate(answers["pass"].text).append(nil, x.message))
}

func (x *exchange) write(s string) { _, _ = io.WriteString(x.conn, s) }

// status writes a status line and header lines, with the media type of a good
// answer among them.
func (x *exchange) status(line string, headers ...string) {
	x.write(line + "\r\nContent-Type: application/json\r\n" + strings.Join(append(headers, "", ""), "\r\n"))
}

func (x *exchange) head(headers ...string) { x.status("HTTP/1.1 200 OK", headers...) }

// lengths writes a whole good answer under header lines in which each verb
// stands for the body's length.
func (x *exchange) lengths(headers ...string) {
	body := x.body()
	for i, h := range headers {
		if strings.Contains(h, "%") {
			headers[i] = fmt.Sprintf(h, len(body))
		}
	}
	x.head(headers...)
	x.write(body)
}

func (x *exchange) chunked(headers ...string) {
	x.head(headers...)
	x.write(chunk(x.body()) + "0\r\n\r\n")
}

// good writes a whole good answer.
func (x *exchange) good() { x.lengths("Content-Length: %d") }

// hold waits until the server is released or closed or the other side has
// closed the connection.
func (x *exchange) hold() {
	gone := make(chan struct{})
	x.server.serving.Go(func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, x.conn)
	})
	select {
	case <-gone:
	case <-x.server.release:
	case <-x.server.closed:
	}
}

// holdUnread waits until the server is released or closed and reads nothing.
func (x *exchange) holdUnread() {
	select {
	case <-x.server.release:
	case <-x.server.closed:
	}
}

// readSome reads whatever comes first.
func (x *exchange) readSome() { _, _ = x.conn.Read(make([]byte, 1024)) }

// flood writes s until the connection fails.
func (x *exchange) flood(s string) {
	s = strings.Repeat(s, 16)
	for {
		if _, err := io.WriteString(x.conn, s); err != nil {
			return
		}
	}
}

// drip writes s again and again, slowly, until the connection fails or the
// server is closed.
func (x *exchange) drip(s string) {
	tick := time.NewTicker(dripInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := io.WriteString(x.conn, s); err != nil {
				return
			}
		case <-x.server.closed:
			return
		}
	}
}

// reset ends the connection with a TCP reset.
func (x *exchange) reset() {
	conn := x.conn
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	conn.(*trackedConn).reset()
}
