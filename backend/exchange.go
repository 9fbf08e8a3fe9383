package backend

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// reader takes the answer from a connection on which its first byte has
// arrived. Failures of the connection and of the answer are alike to it.
// reusable says that the answer was read to its end.
type reader func(br *bufio.Reader) (f ahp.Failure, reusable bool)

// do sends the call and hands the answer to read.
func (c *Client) do(call *ahp.Call, read reader) (f ahp.Failure) {
	if c.credentialError != "" {
		return ahp.Failure{Class: ahp.FailCredential, Detail: c.credentialError}
	}
	if c.tokens == nil {
		f = c.attempt(call, &c.head, read)
	} else {
		f = c.authorized(call, read)
	}
	if c.closed.Load() {
		c.pool.CloseIdleConnections()
	}
	return f
}

// unauthorized is the answer by which a token is rejected.
var unauthorized = statusFailure(401)

// authorized is attempt with a token, and once more with another one if that is
// rejected: then the call has been answered, but nobody has looked at it.
func (c *Client) authorized(call *ahp.Call, read reader) ahp.Failure {
	tok, f := c.tokens.get(call.Deadline)
	if !f.OK() {
		return f
	}
	began := time.Now()
	f = c.attempt(call, &tok.head, read)
	if f != unauthorized || !c.tokens.rejected(tok) {
		return f
	}
	if tok, f = c.tokens.get(call.Deadline); !f.OK() {
		return f
	}
	f, _ = c.exchange(call, &tok.head, read, began)
	return f
}

// attempt sends the call, on a second connection when the first one turned out
// to have been closed before the answer began.
func (c *Client) attempt(call *ahp.Call, head *requestHead, read reader) ahp.Failure {
	began := time.Now()
	f, stale := c.exchange(call, head, read, time.Time{})
	if stale && c.retry {
		// What lost one idle connection, a restart say, has likely lost the
		// others that were idle: only those used since are trusted.
		f, _ = c.exchange(call, head, read, began)
	}
	return f
}

var noTime = ahp.Failure{Class: ahp.FailDeadline, Detail: "no time left to send the request"}

// exchange sends the call once, on a new connection or on one last used since
// the given time. stale says that it used an old connection, which ended before
// the first byte of an answer: only then may the call be repeated.
func (c *Client) exchange(call *ahp.Call, head *requestHead, read reader, since time.Time) (f ahp.Failure, stale bool) {
	for {
		left := time.Until(call.Deadline)
		if left <= 0 {
			return noTime, false
		}
		conn, err := c.pool.AcquireConn(left, false)
		if err != nil {
			return acquireFailure(err), false
		}
		used := conn.LastUseTime()
		if !used.IsZero() && used.Before(since) {
			c.pool.CloseConn(conn)
			continue
		}

		// One absolute deadline for writing and reading: no trickle of bytes
		// prolongs it.
		err = conn.Conn().SetDeadline(call.Deadline)
		if err == nil {
			w := writers.Get().(*bufio.Writer)
			w.Reset(conn.Conn())
			err = send(w, head, call)
			w.Reset(nil)
			writers.Put(w)
		}
		r := readers.Get().(*bufio.Reader)
		r.Reset(conn.Conn())
		sent := err
		if !isTimeout(err) {
			// Even after a failed write an answer may lie ready, and then the
			// call must not be repeated.
			_, err = r.Peek(1)
		}
		reusable := false
		switch {
		case err != nil:
			f = connFailure(err, "no answer")
			stale = !used.IsZero() && isClosed(err)
		case sent != nil:
			f = ahp.Failure{Class: ahp.FailReset, Detail: "request not sent completely"}
		default:
			f, reusable = read(r)
			// Bytes after an answer would be read as the next one.
			reusable = reusable && r.Buffered() == 0
		}
		r.Reset(nil)
		readers.Put(r)
		if reusable {
			c.pool.ReleaseConn(conn)
		} else {
			c.pool.CloseConn(conn)
		}
		return f, stale
	}
}

// A call needs its buffers only while it lasts, so all clients share them: of
// many backends few are called at once.
var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}
)

// send writes one request.
func send(w *bufio.Writer, head *requestHead, call *ahp.Call) error {
	if _, err := w.Write(head.appendCall(w.AvailableBuffer(), call)); err != nil {
		return err
	}
	if _, err := w.Write(call.Body); err != nil {
		return err
	}
	return w.Flush()
}

// acquireFailure classifies why the pool gave no connection. What is not a
// failed dial is that none became free in time.
func acquireFailure(err error) ahp.Failure {
	var dial *dialError
	if errors.As(err, &dial) {
		return dial.failure
	}
	return ahp.Failure{Class: ahp.FailPoolExhausted, Detail: "no connection became free in time"}
}

// readDecision reads the answer to hooks/intercept into resp.
func (c *Client) readDecision(br *bufio.Reader, call *ahp.Call, resp *ahp.Response) (ahp.Failure, bool) {
	return c.readResponse(br, &resp.Body, func() ahp.Failure { return ahp.DecodeResponse(call, resp) })
}

// readResponse reads the answer to a request, of which there is one kind:
// status 200 and a JSON body, which it puts in body for decode.
func (c *Client) readResponse(br *bufio.Reader, body *[]byte, decode func() ahp.Failure) (ahp.Failure, bool) {
	var a answer
	if f := readAnswer(br, &a); !f.OK() {
		return f, false
	}
	if a.status != 200 {
		return statusFailure(a.status), a.skipBuffered(br)
	}
	if a.coded {
		return ahp.Failure{Class: ahp.FailMediaType, Detail: "a content coding that was not asked for"}, a.skipBuffered(br)
	}
	if !a.json {
		return ahp.Failure{Class: ahp.FailMediaType, Detail: "not application/json"}, a.skipBuffered(br)
	}
	var f ahp.Failure
	if *body, f = a.readBody(br, c.maxResponse, *body); !f.OK() {
		return f, false
	}
	f = decode()
	// An answer to something else means that the connection holds one answer
	// too many: every later call on it would be off by one.
	return f, a.keepAlive && f.Class != ahp.FailIDMismatch
}

// readReceipt reads the answer to hooks/observe: 202 or 204 without a body.
func readReceipt(br *bufio.Reader) (ahp.Failure, bool) {
	var a answer
	if f := readAnswer(br, &a); !f.OK() {
		return f, false
	}
	switch {
	case a.status == 204 && a.length == 0:
		return ahp.Failure{}, a.keepAlive
	case a.status == 204:
		return malformed("status 204 with a body"), false
	case a.status != 202:
		return statusFailure(a.status), a.skipBuffered(br)
	case a.length == lengthNone:
		// Only the end of the connection shows that there is no body.
		_, err := br.Peek(1)
		switch {
		case err == nil:
			return ahp.Failure{Class: ahp.FailStatus, Detail: "status 202 with a body"}, false
		case errors.Is(err, io.EOF):
			return ahp.Failure{}, false
		default:
			return connFailure(err, "body of the answer incomplete"), false
		}
	}
	_, f := a.readBody(br, 0, nil)
	if f.Class == ahp.FailOversize {
		return ahp.Failure{Class: ahp.FailStatus, Detail: "status 202 with a body"}, a.skipBuffered(br)
	}
	return f, f.OK() && a.keepAlive
}

// skipBuffered skips the body of an answer that nobody wants, if it has
// arrived, and reports whether the connection can carry another request. So a
// backend that answers 500 to everything does not cost a connection each time.
func (a *answer) skipBuffered(br *bufio.Reader) bool {
	if !a.keepAlive || a.length < 0 || a.length > br.Buffered() {
		return false
	}
	_, err := br.Discard(a.length)
	return err == nil
}
