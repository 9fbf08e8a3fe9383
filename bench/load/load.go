package load

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"
)

// Target is what requests are sent to, and which.
type Target struct {
	// Address is the host and port to connect to, and TLS how, or nil.
	Address string
	TLS     *tls.Config
	// Templates are taken in turn.
	Templates []*Template
	// Connections are open throughout. Default: 32.
	Connections int
	// Precise makes each connection a thread of the operating system with a
	// blocking socket, so that neither the runtime's poller nor its timers,
	// which are coarse, stand between the clock and the wire. It is for open
	// loops; as many requests as possible take less of the machine without.
	Precise bool
	// Accept reports whether an answer is what was asked for.
	Accept func(status int, body []byte) bool
}

// Plan is one run.
type Plan struct {
	// ID returns the event id of the n-th request, counted from 0. Default: n.
	ID func(n uint64) uint64
	// First is where among the templates the run begins.
	First uint64
	// Rate is in requests per second; 0 is a closed loop.
	Rate float64
	// The run ends after Requests of them, or, if that is 0, after Duration.
	Requests uint64
	Duration time.Duration
}

// Result is what a run has measured.
type Result struct {
	Requests uint64 // answered, accepted or not
	Errors   uint64 // not accepted, not answered, or not sent
	First    string // of the errors
	Elapsed  time.Duration
	// Latency is in nanoseconds: from when a request was due in an open loop,
	// and from when it was sent in a closed one.
	Latency *hdrhistogram.Histogram
	// Lag is, in nanoseconds, how late an open loop sent what it had time to
	// wait for: what the generator itself adds.
	Lag *hdrhistogram.Histogram
}

// Add adds another result of the same target; r may be the zero Result.
func (r *Result) Add(o *Result) {
	if r.Latency == nil {
		r.Latency, r.Lag = newHistogram(), newHistogram()
	}
	r.Requests += o.Requests
	r.Errors += o.Errors
	r.Elapsed += o.Elapsed
	if r.First == "" {
		r.First = o.First
	}
	r.Latency.Merge(o.Latency)
	r.Lag.Merge(o.Lag)
}

// PerSecond returns the answers per second.
func (r *Result) PerSecond() float64 { return float64(r.Requests) / r.Elapsed.Seconds() }

// timeout bounds one request, within a factor of two.
const timeout = 30 * time.Second

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(3*timeout), 3)
}

// Session holds the connections to a target over several runs. Its methods are
// called one at a time.
type Session struct {
	target Target
	conns  []*conn
}

// Open connects to a target.
func Open(t Target) (*Session, error) {
	if t.Connections == 0 {
		t.Connections = 32
	}
	s := &Session{target: t}
	for range t.Connections {
		c, err := t.connect()
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("load: %w", err)
		}
		s.conns = append(s.conns, c)
	}
	return s, nil
}

// Close closes the connections.
func (s *Session) Close() {
	for _, c := range s.conns {
		c.Close()
	}
}

// Run sends requests over the session's connections, as p says.
func (s *Session) Run(p Plan) *Result {
	if p.ID == nil {
		p.ID = func(n uint64) uint64 { return n }
	}
	r := &run{Target: s.target, Plan: p}
	r.start = time.Now()
	r.end = r.start.Add(p.Duration)
	if r.Precise {
		// A thread that sleeps keeps its processor for up to 10 ms, as the
		// runtime sees it, and one that wakes waits for it.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(len(s.conns) + runtime.NumCPU()))
	}
	var all sync.WaitGroup
	for _, c := range s.conns {
		all.Go(func() {
			if r.Precise {
				runtime.LockOSThread() // and never unlocked: the thread's timer slack goes with it
				precise()
			}
			r.work(c)
		})
	}
	all.Wait()
	r.result.Elapsed = time.Since(r.start)
	if begun := r.next.Load(); begun < r.Requests { // no connection is left
		r.result.Errors += r.Requests - begun
	}
	return &r.result
}

// Run opens a session for one run.
func Run(t Target, p Plan) (*Result, error) {
	s, err := Open(t)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Run(p), nil
}

// run is one run under way.
type run struct {
	Target
	Plan
	start  time.Time
	end    time.Time // of a run of some duration
	next   atomic.Uint64
	mu     sync.Mutex
	result Result
}

// conn is one connection.
type conn struct {
	net.Conn
	r       *bufio.Reader
	answer  fasthttp.Response
	expires time.Time
	request []byte // made from of
	of      *Template
}

func (t *Target) connect() (*conn, error) {
	plain, err := net.DialTimeout("tcp", t.Address, timeout)
	if err != nil {
		return nil, err
	}
	switch {
	case t.TLS != nil:
		plain = tls.Client(plain, t.TLS)
	case t.Precise:
		if plain, err = blocking(plain); err != nil {
			return nil, err
		}
	}
	return &conn{Conn: plain, r: bufio.NewReaderSize(plain, 16<<10)}, nil
}

// work sends requests until the run is over.
func (r *run) work(c *conn) {
	latency, lag := newHistogram(), newHistogram()
	var answered, failed uint64
	var first error
	for {
		n := r.next.Add(1) - 1
		if r.Requests > 0 && n >= r.Requests {
			break
		}
		var due time.Time
		if r.Rate > 0 {
			due = r.start.Add(time.Duration(float64(n) / r.Rate * float64(time.Second)))
			if r.Requests == 0 && due.After(r.end) {
				break
			}
			if wait := time.Until(due); wait > 0 {
				if r.Precise {
					pause(wait)
				} else {
					time.Sleep(wait)
				}
				_ = lag.RecordValue(int64(max(0, time.Since(due))))
			}
		} else if due = time.Now(); r.Requests == 0 && due.After(r.end) {
			break
		}
		if err := r.exchange(c, n); err != nil {
			failed++
			if first == nil {
				first = err
			}
			if errors.As(err, new(*refusal)) {
				answered++
			} else {
				c.Close()
				again, err := r.connect()
				if err != nil {
					break
				}
				c.Conn, c.r, c.expires = again.Conn, again.r, again.expires
			}
			continue
		}
		answered++
		_ = latency.RecordValue(int64(time.Since(due))) // which timeout bounds
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	own := Result{Requests: answered, Errors: failed, Latency: latency, Lag: lag}
	if first != nil {
		own.First = first.Error()
	}
	r.result.Add(&own)
}

// refusal is an answer that was not accepted.
type refusal struct {
	status int
	body   []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %.200s", r.status, r.body) }

// exchange sends the n-th request and reads the answer.
func (r *run) exchange(c *conn, n uint64) error {
	if t := r.Templates[(r.First+n)%uint64(len(r.Templates))]; t != c.of {
		c.request, c.of = append(c.request[:0], t.raw...), t
	}
	c.of.identify(c.request, r.ID(n))
	if now := time.Now(); now.After(c.expires.Add(-timeout)) { // a deadline is not free
		c.expires = now.Add(2 * timeout)
		if err := c.SetDeadline(c.expires); err != nil {
			return err
		}
	}
	if _, err := c.Write(c.request); err != nil {
		return err
	}
	if err := c.answer.Read(c.r); err != nil {
		return err
	}
	if r.Accept != nil && !r.Accept(c.answer.StatusCode(), c.answer.Body()) {
		return &refusal{c.answer.StatusCode(), bytes.Clone(c.answer.Body())}
	}
	return nil
}
