package backend

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// The tests of this file run on a fake clock: the network is a pipe in memory,
// whose deadlines follow it, and durations are exact.

// pipeClient returns a client each of whose connections is served by serve.
func pipeClient(t *testing.T, config *tls.Config, serve func(net.Conn)) *Client {
	t.Helper()
	c, err := New(Config{ID: "com.example.policy", URL: "http://policy.example/", Retry: true})
	if err != nil {
		t.Fatal(err)
	}
	d := &dialer{tls: config, connect: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			serve(far)
		}()
		return near, nil
	}}
	c.pool.DialTimeout = d.dial
	// A bubble's clock stops when its test returns, so the goroutines that the
	// clock ends must be given their time before.
	t.Cleanup(func() {
		c.Close()
		time.Sleep(time.Minute)
	})
	return c
}

// answerAfter serves one connection and answers each request well, after the
// delays in turn.
func answerAfter(delays ...time.Duration) func(net.Conn) {
	return func(conn net.Conn) {
		br := bufio.NewReader(conn)
		for _, delay := range delays {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			time.Sleep(delay)
			if _, err := io.WriteString(conn, goodHead+"Content-Length: 75\r\n\r\n"+goodBody); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, br)
	}
}

// dripping reads a request, writes prefix and then s again and again.
func dripping(prefix, s string, every time.Duration) func(net.Conn) {
	return func(conn net.Conn) {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		for _, err := io.WriteString(conn, prefix); err == nil; _, err = io.WriteString(conn, s) {
			time.Sleep(every)
		}
	}
}

func TestDeadlineHoldsInEveryPhase(t *testing.T) {
	const timeout = 200 * time.Millisecond
	swallow := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	tests := map[string]struct {
		tls    *tls.Config
		serve  func(net.Conn)
		detail string
	}{
		"handshake":    {&tls.Config{ServerName: "policy.example"}, swallow, "no TLS handshake in time"},
		"hello unread": {&tls.Config{ServerName: "policy.example"}, func(net.Conn) { time.Sleep(time.Minute) }, "no TLS handshake in time"},
		"send":         {nil, func(net.Conn) { time.Sleep(time.Minute) }, "no answer"},
		"wait":         {nil, swallow, "no answer"},
		"head":         {nil, dripping("HTTP/1.1 200 OK\r\nX: ", "a", 7*time.Millisecond), "head of the answer incomplete"},
		"fields":       {nil, dripping("HTTP/1.1 200 OK\r\n", "X: a\r\n", 7*time.Millisecond), "head of the answer incomplete"},
		"interim":      {nil, dripping("", "HTTP/1.1 100 Continue\r\n\r\n", 20*time.Millisecond), "head of the answer incomplete"},
		"body":         {nil, dripping(goodHead+"Content-Length: 75\r\n\r\n", " ", 7*time.Millisecond), "body of the answer incomplete"},
		"chunks":       {nil, dripping(goodHead+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n", 7*time.Millisecond), "body of the answer incomplete"},
		"inside chunk": {nil, dripping(goodHead+"Transfer-Encoding: chunked\r\n\r\n80\r\n", " ", 7*time.Millisecond), "body of the answer incomplete"},
		"chunk size":   {nil, dripping(goodHead+"Transfer-Encoding: chunked\r\n\r\n1;", "a", 7*time.Millisecond), "body of the answer incomplete"},
		"trailer":      {nil, dripping(goodHead+"Transfer-Encoding: chunked\r\n\r\n4b\r\n"+goodBody+"\r\n0\r\n", "X: a\r\n", 7*time.Millisecond), "head of the answer incomplete"},
		"end of body":  {nil, dripping(goodHead+"Content-Length: 76\r\n\r\n"+goodBody, "", 7*time.Millisecond), "body of the answer incomplete"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := pipeClient(t, tt.tls, tt.serve)
				began := time.Now()
				var resp ahp.Response
				want := ahp.Failure{Class: ahp.FailDeadline, Detail: tt.detail}
				if f := c.Intercept(newCall("e1", timeout), &resp); f != want {
					t.Errorf("Intercept = %v; want %v", f, want)
				}
				if took := time.Since(began); took != timeout {
					t.Errorf("Intercept took %v; want %v", took, timeout)
				}
			})
		})
	}
}

func TestDeadlineHoldsWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipeClient(t, nil, func(net.Conn) {})
		d := &dialer{connect: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}}
		c.pool.DialTimeout = d.dial
		const timeout = 300 * time.Millisecond
		began := time.Now()
		var resp ahp.Response
		want := ahp.Failure{Class: ahp.FailDeadline, Detail: "no connection in time"}
		if f := c.Intercept(newCall("e1", timeout), &resp); f != want {
			t.Errorf("Intercept = %v; want %v", f, want)
		}
		if took := time.Since(began); took != timeout {
			t.Errorf("Intercept took %v; want %v", took, timeout)
		}

		// A dial that nobody waits for is bounded too.
		began = time.Now()
		if conn, err := d.dial("", 0); err == nil {
			conn.Close()
			t.Error("dial without a timeout = nil error; want one")
		}
		if took := time.Since(began); took != maxDial {
			t.Errorf("dial without a timeout took %v; want %v", took, maxDial)
		}
	})
}

// A short deadline does not stay on the connection for a long one, nor the
// other way round.
func TestEachCallKeepsItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		serve := answerAfter(40*time.Millisecond, 4900*time.Millisecond, 60*time.Millisecond)
		c := pipeClient(t, nil, func(conn net.Conn) {
			dials++
			serve(conn)
		})
		for i, step := range []struct {
			timeout, took time.Duration
			want          ahp.FailureClass
		}{
			{50 * time.Millisecond, 40 * time.Millisecond, ahp.NoFailure},
			{5 * time.Second, 4900 * time.Millisecond, ahp.NoFailure},
			{50 * time.Millisecond, 50 * time.Millisecond, ahp.FailDeadline},
		} {
			began := time.Now()
			var resp ahp.Response
			if f := c.Intercept(newCall("e1", step.timeout), &resp); f.Class != step.want {
				t.Errorf("Intercept %d = %v; want %v", i, f, step.want)
			}
			if took := time.Since(began); took != step.took {
				t.Errorf("Intercept %d took %v; want %v", i, took, step.took)
			}
		}
		if dials != 1 {
			t.Errorf("three calls used %d connections; want one", dials)
		}
	})
}

// The one retry lives inside the first deadline.
func TestRetryKeepsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		dials := 0
		c := pipeClient(t, nil, func(conn net.Conn) {
			dials++
			if dials > 1 {
				_, _ = io.Copy(io.Discard, conn)
				return
			}
			br := bufio.NewReader(conn)
			for i := range 2 {
				req, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				if i == 0 {
					_, _ = io.WriteString(conn, goodHead+"Content-Length: 75\r\n\r\n"+goodBody)
				}
			}
			time.Sleep(300 * time.Millisecond)
		})
		var resp ahp.Response
		if f := c.Intercept(newCall("e1", timeout), &resp); !f.OK() {
			t.Fatalf("first Intercept = %v; want success", f)
		}
		began := time.Now()
		if f := c.Intercept(newCall("e1", timeout), &resp); f.Class != ahp.FailDeadline {
			t.Errorf("Intercept whose retry hangs = %v; want %v", f, ahp.FailDeadline)
		}
		if took := time.Since(began); took != timeout || dials != 2 {
			t.Errorf("Intercept took %v and %d connections; want %v and 2", took, dials, timeout)
		}
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipeClient(t, nil, answerAfter(0, 0))
		var resp ahp.Response
		if f := c.Intercept(newCall("e1", time.Second), &resp); !f.OK() {
			t.Fatalf("Intercept = %v; want success", f)
		}
		if n := c.pool.ConnsCount(); n != 1 {
			t.Errorf("%d connections are open after a call; want 1", n)
		}
		time.Sleep(2*idle + time.Second)
		if n := c.pool.ConnsCount(); n != 0 {
			t.Errorf("%d connections are open after twice the idle time; want none", n)
		}
	})
}

// deaf is a connection that ignores deadlines, as if the last byte had arrived
// just in time and the process had then been held up.
type deaf struct{ net.Conn }

func (deaf) SetDeadline(time.Time) error { return nil }

func TestAnswerCompleteAfterTheDeadlineIsLate(t *testing.T) {
	for delay, want := range map[time.Duration]ahp.FailureClass{
		time.Second - 1: ahp.NoFailure,
		time.Second:     ahp.FailLate,
		time.Second + 1: ahp.FailLate,
	} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := pipeClient(t, nil, nil)
				c.pool.DialTimeout = func(string, time.Duration) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						defer far.Close()
						answerAfter(delay)(far)
					}()
					return deaf{near}, nil
				}
				var resp ahp.Response
				if f := c.Intercept(newCall("e1", time.Second), &resp); f.Class != want {
					t.Errorf("Intercept answered after %v of 1s = %v; want %v", delay, f, want)
				}
			})
		})
	}
}
