package backend

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// The tests of this file run on a fake clock: the issuer is a real one whose
// network is a pipe in memory.

// pipeListener accepts the far ends of pipes.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

// pipeIssuer is an issuer on a fake clock.
type pipeIssuer struct {
	tokens *tokens
	life   atomic.Int64 // seconds that tokens live
	delay  atomic.Int64 // of the token endpoint, a duration
	dead   atomic.Bool  // connections are refused
	dials  atomic.Int64
	issued atomic.Int64
}

func newPipeIssuer(t *testing.T) *pipeIssuer {
	t.Helper()
	p := new(pipeIssuer)
	p.life.Store(100)
	mux := http.NewServeMux()
	const base = "http://127.0.0.1:8080"
	mux.Handle(wellKnown, says(200, `{"issuer":%q,"token_endpoint":%q}`, base, base+"/token"))
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(p.delay.Load()))
		says(200, `{"access_token":"token-%d","token_type":"bearer","expires_in":%d}`, p.issued.Add(1), p.life.Load())(w, r)
	})
	listener := &pipeListener{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: mux, ErrorLog: discard}
	go func() { _ = server.Serve(listener) }()
	var err error
	p.tokens, err = newTokens(OAuth{Issuer: base, Resource: "urn:r", ClientID: "c", ClientSecret: "s"}, nil,
		func(token string) (requestHead, error) { return requestHead{lines: token}, nil })
	if err != nil {
		t.Fatal(err)
	}
	p.tokens.issuer.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		p.dials.Add(1)
		if p.dead.Load() {
			return nil, &dialError{ahp.Failure{Class: ahp.FailConnect, Detail: "connection refused"}}
		}
		near, far := net.Pipe()
		listener.conns <- far
		return near, nil
	}
	// The bubble's clock stops when its test returns.
	t.Cleanup(func() {
		_ = server.Close()
		time.Sleep(time.Minute)
	})
	return p
}

// get returns the token that a call gets now, or the failure.
func (p *pipeIssuer) get() string {
	tok, f := p.tokens.get(time.Now().Add(time.Second))
	if !f.OK() {
		return f.String()
	}
	return tok.head.lines
}

// A token is used until it expires; from its refresh on, another one is
// obtained beside the calls, once, and these do not wait for it.
func TestTokenIsRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeIssuer(t)
		at := func(after time.Duration, want string, issued int64) {
			t.Helper()
			time.Sleep(after)
			began := time.Now()
			got := p.get()
			took := time.Since(began)
			p.get() // a second one starts nothing
			synctest.Wait()
			if got != want || took != 0 || p.issued.Load() != issued {
				t.Errorf("token = %s after %v with %d issued; want %s at once with %d", got, took, p.issued.Load(), want, issued)
			}
		}
		at(0, "token-1", 1)
		at(69*time.Second, "token-1", 1)
		at(time.Second, "token-1", 2) // 70 s of 100
		at(0, "token-2", 2)
		at(69*time.Second, "token-2", 2)

		// While the issuer is slow, the old one is used; it is not asked twice.
		p.delay.Store(int64(8 * time.Second))
		at(time.Second, "token-2", 2)
		at(7*time.Second, "token-2", 2)
		time.Sleep(time.Second)
		synctest.Wait()
		at(0, "token-3", 3)
	})
}

// An idle client obtains nothing; its next call waits for a new token.
func TestTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeIssuer(t)
		if got := p.get(); got != "token-1" {
			t.Fatalf("token = %s; want token-1", got)
		}
		time.Sleep(99 * time.Second)
		p.delay.Store(int64(500 * time.Millisecond))
		if got := p.get(); got != "token-1" {
			t.Errorf("token after 99 of 100 s = %s; want token-1", got)
		}
		time.Sleep(10 * time.Second) // the refresh that that call began
		p.delay.Store(0)
		time.Sleep(200 * time.Second)
		if p.issued.Load() != 2 {
			t.Errorf("%d tokens were obtained; want 2", p.issued.Load())
		}
		if got := p.get(); got != "token-3" {
			t.Errorf("token after its end = %s; want token-3", got)
		}
	})
}

// A dead issuer is asked less and less often, and calls meanwhile fail at once.
func TestDeadIssuerIsNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeIssuer(t)
		p.dead.Store(true)
		const refused = "credential: no token from the OAuth issuer: it cannot be reached: connection refused"
		for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			before := p.dials.Load()
			for range 3 {
				if got := p.get(); got != refused {
					t.Fatalf("token = %s; want %s", got, refused)
				}
			}
			time.Sleep(pause*time.Second - time.Nanosecond)
			if got := p.get(); got != refused {
				t.Fatalf("token = %s; want %s", got, refused)
			}
			if n := p.dials.Load() - before; n != 1 {
				t.Errorf("the issuer was dialled %d times in %d s; want once", n, pause)
			}
			time.Sleep(time.Nanosecond)
		}
		p.dead.Store(false)
		if got := p.get(); got != "token-1" {
			t.Errorf("token of an issuer that is back = %s; want token-1", got)
		}
		// It has been forgiven: the next pause is short again.
		time.Sleep(100 * time.Second)
		p.dead.Store(true)
		p.get()
		before := p.dials.Load()
		time.Sleep(time.Second)
		p.get()
		if n := p.dials.Load() - before; n != 1 {
			t.Errorf("the issuer was dialled %d times after a second; want once", n)
		}
	})
}

// A refresh that fails does not touch the token that there is.
func TestFailedRefreshKeepsTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeIssuer(t)
		p.get()
		p.dead.Store(true)
		time.Sleep(70 * time.Second)
		before := p.dials.Load()
		for range 29 {
			if got := p.get(); got != "token-1" {
				t.Errorf("token = %s; want token-1", got)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := p.dials.Load() - before; n != 5 { // at 0, 1, 3, 7 and 15 s
			t.Errorf("the issuer was dialled %d times; want 5", n)
		}
		time.Sleep(time.Second)
		if got := p.get(); !strings.HasPrefix(got, "credential: ") {
			t.Errorf("token after its end = %s; want none", got)
		}
	})
}

// A call waits until its deadline and no longer. What it began goes on, for the
// next one.
func TestSlowIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeIssuer(t)
		p.delay.Store(int64(3 * time.Second))
		const late = "credential: no token from the OAuth issuer: it does not answer in time"
		for range 2 {
			began := time.Now()
			if got := p.get(); got != late || time.Since(began) != time.Second {
				t.Errorf("token of a slow issuer = %s after %v; want %s after 1s", got, time.Since(began), late)
			}
		}
		if _, f := p.tokens.get(time.Now()); f != noTime {
			t.Errorf("token at the deadline = %v; want %v", f, noTime)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		began := time.Now()
		if got := p.get(); got != "token-1" || time.Since(began) != 0 {
			t.Errorf("token afterwards = %s after %v; want token-1 at once", got, time.Since(began))
		}

		// An attempt itself has an end.
		p.delay.Store(int64(time.Hour))
		time.Sleep(200 * time.Second)
		began = time.Now()
		if _, f := p.tokens.get(began.Add(time.Hour)); f.String() != late || time.Since(began) != maxObtain {
			t.Errorf("token of an issuer that hangs = %v after %v; want %s after %v", f, time.Since(began), late, maxObtain)
		}
		p.delay.Store(0)
		time.Sleep(time.Hour) // until the issuer has seen that nobody waits
	})
}

// A rejected token is dropped, but not one after the other.
func TestRejectedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeIssuer(t)
		current := func() *token {
			t.Helper()
			tok, f := p.tokens.get(time.Now().Add(time.Second))
			if !f.OK() {
				t.Fatal(f)
			}
			return tok
		}
		first := current()
		if !p.tokens.rejected(first) {
			t.Error("rejected(first) = false; want another token")
		}
		if !p.tokens.rejected(first) {
			t.Error("rejected(first) of a second call = false; want it to share the other token")
		}
		second := current()
		if second == first || p.issued.Load() != 2 {
			t.Errorf("token after a rejection is %s of %d; want the second of 2", second.head.lines, p.issued.Load())
		}
		if !p.tokens.rejected(first) {
			t.Error("rejected(first) after that = false; want the second token")
		}
		time.Sleep(rejectionPause - time.Nanosecond)
		if p.tokens.rejected(second) || current() != second {
			t.Error("rejected(second) within the pause dropped it; want it kept")
		}
		time.Sleep(time.Nanosecond)
		if !p.tokens.rejected(second) || current() == second {
			t.Error("rejected(second) after the pause kept it; want it dropped")
		}
	})
}

// A call with a token that is at hand costs no allocation and takes no lock.
func TestTokenAtHandIsFree(t *testing.T) {
	held := new(tokens)
	held.current.Store(&token{refresh: time.Now().Add(time.Hour), expires: time.Now().Add(time.Hour)})
	held.mu.Lock()
	deadline := time.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(100, func() { _, _ = held.get(deadline) }); n != 0 {
		t.Errorf("get of a token at hand allocates %v times; want 0", n)
	}
}
