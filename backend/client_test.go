package backend

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/egress"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// soon is the deadline of calls that are expected to reach it, ample that of
// the others.
const (
	soon  = 150 * time.Millisecond
	ample = 30 * time.Second
)

// newCall returns an intercept of snapshot 0.1.
func newCall(id string, timeout time.Duration) *ahp.Call {
	body := []byte(`{"jsonrpc":"2.0","id":"` + id + `","method":"hooks/intercept","params":{"protocolVersion":"0.1","event":{"id":"` + id + `","type":"tool.before"}}}`)
	start := bytes.Index(body, []byte(`"`+id+`"`))
	return &ahp.Call{
		Body:     body,
		ID:       body[start : start+len(id)+2],
		Version:  ahp.V01,
		Deadline: time.Now().Add(timeout),
	}
}

func newNotification(timeout time.Duration) *ahp.Call {
	return &ahp.Call{
		Body:     []byte(`{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"0.1","event":{"id":"e1","type":"tool.after"}}}`),
		Version:  ahp.V01,
		Deadline: time.Now().Add(timeout),
	}
}

func loopback(url string, roots *x509.CertPool) Config {
	return Config{ID: "com.example.policy", URL: url, Roots: roots, Retry: true, Dial: egress.Policy{AllowLoopback: true}}
}

func newTestClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// outcomes says of every behaviour of the fake backend what an intercept of
// snapshot 0.1 makes of it. ahp.NoFailure means that the answer is well formed;
// whether its effects can be accepted is decided elsewhere.
var outcomes = map[string]ahp.FailureClass{
	"pass": ahp.NoFailure, "deny": ahp.NoFailure, "deny-code": ahp.NoFailure, "deny-extensions": ahp.NoFailure,
	"allow": ahp.NoFailure, "ask": ahp.NoFailure, "pass-charset": ahp.NoFailure, "pass-spaced": ahp.NoFailure,
	"pass-unknown": ahp.NoFailure, "pass-close": ahp.NoFailure, "pass-then-close": ahp.NoFailure,
	"1xx-then-pass": ahp.NoFailure, "chunked": ahp.NoFailure, "chunked-trailer": ahp.NoFailure,
	"http10-length": ahp.NoFailure, "extra-bytes": ahp.NoFailure, "observe-200": ahp.NoFailure,
	"unknown-effect": ahp.NoFailure, "unknown-field": ahp.NoFailure, "unadvertised": ahp.NoFailure,
	"effect-no-type": ahp.NoFailure, "effect-string": ahp.NoFailure, "deny-no-reason": ahp.NoFailure,
	"deny-empty-reason": ahp.NoFailure, "deny-number-reason": ahp.NoFailure, "deny-bad-code": ahp.NoFailure,
	"deny-bad-extensions": ahp.NoFailure, "two-denies": ahp.NoFailure, "deny-and-unknown": ahp.NoFailure,

	"status-201": ahp.FailStatus, "status-202": ahp.FailStatus, "status-202-body": ahp.FailStatus,
	"status-204": ahp.FailStatus, "status-400": ahp.FailStatus, "status-429": ahp.FailStatus,
	"status-500": ahp.FailStatus, "status-500-pass": ahp.FailStatus, "status-503": ahp.FailStatus,
	"status-401": ahp.FailUnauthorized, "status-403": ahp.FailUnauthorized, "redirect": ahp.FailRedirect,
	"202-then-eof": ahp.FailStatus, "202-eof-body": ahp.FailStatus, "202-chunked-empty": ahp.FailStatus,
	"204-with-length": ahp.FailStatus,
	"media-type-text": ahp.FailMediaType, "media-type-missing": ahp.FailMediaType,
	"media-type-problem": ahp.FailMediaType, "media-type-list": ahp.FailMediaType, "gzip": ahp.FailMediaType,
	"oversize": ahp.FailOversize, "chunked-oversize": ahp.FailOversize, "cl-huge": ahp.FailOversize,
	"huge-headers": ahp.FailOversize, "header-flood": ahp.FailOversize, "body-flood": ahp.FailOversize,
	"trailer-flood": ahp.FailOversize,

	"empty": ahp.FailMalformedJSON, "bad-utf8": ahp.FailMalformedJSON, "lone-surrogate": ahp.FailMalformedJSON,
	"bom": ahp.FailMalformedJSON, "bad-json": ahp.FailMalformedJSON, "dup-member": ahp.FailMalformedJSON,
	"trailing-bytes": ahp.FailMalformedJSON, "deep": ahp.FailMalformedJSON,
	"array": ahp.FailMalformedRPC, "string": ahp.FailMalformedRPC, "no-jsonrpc": ahp.FailMalformedRPC,
	"jsonrpc-1.0": ahp.FailMalformedRPC, "no-id": ahp.FailMalformedRPC, "result-and-error": ahp.FailMalformedRPC,
	"neither": ahp.FailMalformedRPC, "error-no-code": ahp.FailMalformedRPC, "result-null": ahp.FailMalformedRPC,
	"answer-early-then-hang": ahp.FailMalformedRPC,
	"id-mismatch":            ahp.FailIDMismatch, "id-number": ahp.FailIDMismatch, "id-null": ahp.FailIDMismatch,
	"rpc-error": ahp.FailRPCError, "rpc-error-32003": ahp.FailRPCError, "rpc-error-32004": ahp.FailRPCError,
	"rpc-error-null-id": ahp.FailRPCError, "rpc-error-32601": ahp.FailRPCError,
	"rpc-error-32001": ahp.FailVersionUnsupported, "rpc-error-32002": ahp.FailEventUnsupported,
	"version-mismatch": ahp.FailVersionUnsupported, "no-version": ahp.FailMissingResult,
	"no-effects": ahp.FailMissingResult, "effects-null": ahp.FailMissingResult, "effects-object": ahp.FailMissingResult,
	"configuration": ahp.FailMissingResult, "configuration-empty": ahp.FailMissingResult,
	"configuration-effects": ahp.NoFailure, "configuration-null": ahp.FailMissingResult,
	"configuration-version": ahp.FailMissingResult, "configuration-other-id": ahp.FailIDMismatch,
	"configuration-status-201": ahp.FailStatus, "configuration-with-upload": ahp.FailMissingResult,
	"configuration-bad-timeout": ahp.FailMissingResult, "configuration-inapplicable": ahp.FailMissingResult,

	"hang": ahp.FailDeadline, "late": ahp.FailDeadline, "slow-drip": ahp.FailDeadline,
	"slow-drip-head": ahp.FailDeadline, "slow-drip-chunks": ahp.FailDeadline, "1xx-drip": ahp.FailMalformedHTTP,
	"chunked-claim": ahp.FailDeadline, "hang-after-head": ahp.FailDeadline, "hang-mid-body": ahp.FailDeadline,
	"never-read": ahp.FailDeadline, "tls-hang": ahp.FailDeadline,
	"refuse": ahp.FailConnect,
	"reset":  ahp.FailReset, "close-before-byte": ahp.FailReset, "reset-mid-head": ahp.FailReset,
	"close-mid-head": ahp.FailReset, "reset-mid-body": ahp.FailReset, "truncated": ahp.FailReset,
	"chunked-short": ahp.FailReset,
	"tls-bad-cert":  ahp.FailTLS, "tls-wrong-host": ahp.FailTLS, "tls-expired": ahp.FailTLS,
	"tls-close": ahp.FailTLS, "tls-plain": ahp.FailTLS,
	"answer-early-then-close": ahp.FailStatus,

	"1xx-flood": ahp.FailMalformedHTTP, "cl-te": ahp.FailMalformedHTTP, "te-cl": ahp.FailMalformedHTTP,
	"te-gzip": ahp.FailMalformedHTTP, "two-te": ahp.FailMalformedHTTP, "http10-chunked": ahp.FailMalformedHTTP,
	"two-cl": ahp.FailMalformedHTTP, "two-cl-same": ahp.FailMalformedHTTP, "cl-list": ahp.FailMalformedHTTP,
	"cl-plus": ahp.FailMalformedHTTP, "cl-negative": ahp.FailMalformedHTTP, "cl-hex": ahp.FailMalformedHTTP,
	"cl-empty": ahp.FailMalformedHTTP, "two-content-type": ahp.FailMalformedHTTP, "http10-eof": ahp.FailMalformedHTTP,
	"eof": ahp.FailMalformedHTTP, "http12": ahp.FailMalformedHTTP, "http2": ahp.FailMalformedHTTP,
	"garbage": ahp.FailMalformedHTTP, "bad-status": ahp.FailMalformedHTTP, "status-line-only": ahp.FailMediaType,
	"leading-crlf": ahp.FailMalformedHTTP, "folded-header": ahp.FailMalformedHTTP, "space-colon": ahp.FailMalformedHTTP,
	"no-colon": ahp.FailMalformedHTTP, "nul-header": ahp.FailMalformedHTTP, "cr-header": ahp.FailMalformedHTTP,
	"bare-lf": ahp.FailMalformedHTTP, "switching": ahp.FailMalformedHTTP, "chunked-broken": ahp.FailMalformedHTTP,
}

// beyondSocketBuffers is a size of requests that no socket buffer holds.
const beyondSocketBuffers = 16 << 20

func TestInterceptOutcomes(t *testing.T) {
	for _, name := range fakebackend.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, listed := outcomes[name]
			if !listed {
				t.Fatalf("outcomes[%q] is missing", name)
			}
			s := fakebackend.Start(t, fakebackend.Behave(name))
			c := newTestClient(t, loopback(s.URL, s.Roots()))
			timeout := ample
			if want == ahp.FailDeadline {
				timeout = soon
			}
			call := newCall("e1", timeout)
			var resp ahp.Response
			f := c.Intercept(call, &resp)
			if f.Class != want {
				t.Errorf("Intercept of %s = %v; want %v", name, f, want)
			}
			if want == ahp.NoFailure && !bytes.Contains(resp.Body, []byte(`"e1"`)) {
				t.Errorf("Intercept of %s left the body %q; want the answer", name, resp.Body)
			}
			if n := s.Count(); n > 1 {
				t.Errorf("Intercept of %s sent the request %d times; want once", name, n)
			}
			if idle, all := c.pool.IdleConnsCount(), c.pool.ConnsCount(); idle != all {
				t.Errorf("after Intercept of %s %d connections are in use; want none", name, all-idle)
			}
		})
	}
	if names := fakebackend.Names(); len(names) != len(outcomes) {
		t.Errorf("outcomes lists %d behaviours; want all %d and no other", len(outcomes), len(names))
	}
}

func TestObserveOutcomes(t *testing.T) {
	for name, want := range map[string]ahp.FailureClass{
		"pass": ahp.NoFailure, "status-202": ahp.NoFailure, "status-204": ahp.NoFailure,
		"202-then-eof": ahp.NoFailure, "202-chunked-empty": ahp.NoFailure,
		"observe-200": ahp.FailStatus, "status-202-body": ahp.FailStatus, "202-eof-body": ahp.FailStatus,
		"status-500": ahp.FailStatus, "status-401": ahp.FailUnauthorized, "redirect": ahp.FailRedirect,
		"204-with-length": ahp.FailMalformedHTTP, "cl-te": ahp.FailMalformedHTTP, "garbage": ahp.FailMalformedHTTP,
		"1xx-flood": ahp.FailMalformedHTTP, "refuse": ahp.FailConnect, "reset": ahp.FailReset,
		"hang": ahp.FailDeadline, "huge-headers": ahp.FailOversize, "tls-bad-cert": ahp.FailTLS,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakebackend.Start(t, fakebackend.Behave(name))
			c := newTestClient(t, loopback(s.URL, s.Roots()))
			timeout := ample
			if want == ahp.FailDeadline {
				timeout = soon
			}
			if f := c.Observe(newNotification(timeout)); f.Class != want {
				t.Errorf("Observe of %s = %v; want %v", name, f, want)
			}
		})
	}
}

// A request that the backend does not read ends with the deadline, and an
// answer to half a request is none.
func TestUnreadRequestEndsWithTheDeadline(t *testing.T) {
	for _, name := range []string{"never-read", "answer-early-then-hang"} {
		s := fakebackend.Start(t, fakebackend.Behave(name))
		c := newTestClient(t, loopback(s.URL, s.Roots()))
		call := newCall("e1", soon)
		call.Body = append(call.Body, bytes.Repeat([]byte(" "), beyondSocketBuffers)...)
		var resp ahp.Response
		if f := c.Intercept(call, &resp); f.OK() {
			t.Errorf("Intercept of a large request to %s = success; want a failure", name)
		}
	}
}

func TestRequestOnTheWire(t *testing.T) {
	s := fakebackend.Start(t, fakebackend.WithTLS())
	cfg := loopback(s.URL, s.Roots())
	cfg.Bearer = "t0ken"
	cfg.Headers = []Header{{"X-Tenant", "acme"}}
	c := newTestClient(t, cfg)
	call := newCall("e1", ample)
	call.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	var resp ahp.Response
	if f := c.Intercept(call, &resp); !f.OK() {
		t.Fatalf("Intercept = %v; want success", f)
	}
	r := s.Requests()[0]
	if !bytes.Equal(r.Body, call.Body) {
		t.Errorf("body on the wire = %s; want the call's bytes", r.Body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer t0ken", "X-Tenant": "acme", "Content-Type": "application/json",
		"Accept": "application/json", "User-Agent": "ahp-gateway", "Traceparent": call.Traceparent,
		"Host": strings.TrimSuffix(strings.TrimPrefix(s.URL, "https://"), "/hooks"), "Accept-Encoding": "", "Cookie": "",
	} {
		if got := strings.Join(r.Header[name], "|"); got != want {
			t.Errorf("header %s = %q; want %q", name, got, want)
		}
	}
	if r.Method != "POST" || r.Path != "/hooks" {
		t.Errorf("request = %s %s; want POST /hooks", r.Method, r.Path)
	}
}

func TestNoCallWithoutItsCredential(t *testing.T) {
	s := fakebackend.Start(t)
	cfg := loopback(s.URL, nil)
	cfg.CredentialError = "environment variable TOKEN is not set"
	c := newTestClient(t, cfg)
	var resp ahp.Response
	want := ahp.Failure{Class: ahp.FailCredential, Detail: cfg.CredentialError}
	if f := c.Intercept(newCall("e1", ample), &resp); f != want {
		t.Errorf("Intercept = %v; want %v", f, want)
	}
	if f := c.Observe(newNotification(ample)); f != want {
		t.Errorf("Observe = %v; want %v", f, want)
	}
	if accepted, _ := s.Connections(); accepted != 0 {
		t.Errorf("the backend saw %d connections; want none", accepted)
	}
}

func TestBlockedAddressIsNotDialled(t *testing.T) {
	s := fakebackend.Start(t)
	for _, url := range []string{s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), strings.Replace(s.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		c := newTestClient(t, Config{URL: url, Dial: egress.Policy{AllowPrivate: true}})
		var resp ahp.Response
		want := ahp.Failure{Class: ahp.FailBlockedAddress, Detail: "loopback address not allowed"}
		if f := c.Intercept(newCall("e1", ample), &resp); f != want {
			t.Errorf("Intercept(%s) = %v; want %v", url, f, want)
		}
	}
	if accepted, _ := s.Connections(); accepted != 0 {
		t.Errorf("the backend saw %d connections; want none", accepted)
	}
}

func TestProxyVariablesPlayNoPart(t *testing.T) {
	s := fakebackend.Start(t)
	proxy := fakebackend.Start(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, strings.TrimSuffix(proxy.URL, "/hooks"))
	}
	c := newTestClient(t, loopback(s.URL, nil))
	var resp ahp.Response
	if f := c.Intercept(newCall("e1", ample), &resp); !f.OK() || s.Count() != 1 || proxy.Count() != 0 {
		t.Errorf("Intercept = %v, %d direct and %d proxied; want one direct", f, s.Count(), proxy.Count())
	}
}

func TestExpiredDeadlineSendsNothing(t *testing.T) {
	s := fakebackend.Start(t)
	c := newTestClient(t, loopback(s.URL, nil))
	var resp ahp.Response
	if f := c.Intercept(newCall("e1", -time.Nanosecond), &resp); f.Class != ahp.FailDeadline {
		t.Errorf("Intercept after its deadline = %v; want %v", f, ahp.FailDeadline)
	}
	if accepted, _ := s.Connections(); accepted != 0 {
		t.Errorf("the backend saw %d connections; want none", accepted)
	}
}

func TestRetry(t *testing.T) {
	tests := map[string]struct {
		behaviours []string
		retry      bool
		want       []ahp.FailureClass
		requests   int
	}{
		"idle connection closed as the request arrives": {
			[]string{"pass", "close-before-byte", "deny"}, true,
			[]ahp.FailureClass{ahp.NoFailure, ahp.NoFailure}, 3},
		"idle connection reset as the request arrives": {
			[]string{"pass", "reset", "deny"}, true,
			[]ahp.FailureClass{ahp.NoFailure, ahp.NoFailure}, 3},
		"only once": {
			[]string{"pass", "close-before-byte", "close-before-byte", "deny"}, true,
			[]ahp.FailureClass{ahp.NoFailure, ahp.FailReset}, 3},
		"not when switched off": {
			[]string{"pass", "close-before-byte", "deny"}, false,
			[]ahp.FailureClass{ahp.NoFailure, ahp.FailReset}, 2},
		"not on a new connection": {
			[]string{"close-before-byte", "deny"}, true,
			[]ahp.FailureClass{ahp.FailReset}, 1},
		"not after a first byte": {
			[]string{"pass", "close-mid-head", "pass"}, true,
			[]ahp.FailureClass{ahp.NoFailure, ahp.FailReset}, 2},
		"not after half an answer": {
			[]string{"pass", "truncated", "pass"}, true,
			[]ahp.FailureClass{ahp.NoFailure, ahp.FailReset}, 2},
		"not after a status": {
			[]string{"pass", "status-503", "pass"}, true,
			[]ahp.FailureClass{ahp.NoFailure, ahp.FailStatus}, 2},
		"not after an answer that is wrong": {
			[]string{"pass", "id-mismatch", "pass"}, true,
			[]ahp.FailureClass{ahp.NoFailure, ahp.FailIDMismatch}, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakebackend.Start(t, fakebackend.Behave(tt.behaviours...))
			cfg := loopback(s.URL, nil)
			cfg.Retry = tt.retry
			c := newTestClient(t, cfg)
			for i, want := range tt.want {
				var resp ahp.Response
				if f := c.Intercept(newCall(fmt.Sprint("e", i), ample), &resp); f.Class != want {
					t.Errorf("Intercept %d = %v; want %v", i, f, want)
				}
			}
			if n := s.Count(); n != tt.requests {
				t.Errorf("the backend got %d requests; want %d", n, tt.requests)
			}
		})
	}
}

// A restart of the backend loses every idle connection at once: one retry must
// not try another of them.
func TestRetryAfterRestartUsesANewConnection(t *testing.T) {
	const n = 8
	// The first calls wait for each other, so each has its own connection.
	var together sync.WaitGroup
	together.Add(n)
	s := fakebackend.Start(t, fakebackend.WithScript(func(i int, _ *fakebackend.Request) string {
		if i < n {
			together.Done()
			together.Wait()
		}
		return "pass"
	}))
	c := newTestClient(t, loopback(s.URL, nil))
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			var resp ahp.Response
			if f := c.Intercept(newCall(fmt.Sprint("e", i), ample), &resp); !f.OK() {
				t.Errorf("Intercept %d = %v; want success", i, f)
			}
		})
	}
	calls.Wait()
	if got := c.pool.IdleConnsCount(); got != n {
		t.Fatalf("%d connections are idle; want %d", got, n)
	}
	s.CloseConnections()
	var resp ahp.Response
	if f := c.Intercept(newCall("after", ample), &resp); !f.OK() {
		t.Errorf("Intercept after the restart = %v; want success", f)
	}
	if got := c.pool.ConnsCount(); got != 1 {
		t.Errorf("%d connections are left; want the new one only", got)
	}
}

// An answer that comes after its call's deadline is never read, in particular
// not as the answer to the next call.
func TestLateAnswerIsNeverRead(t *testing.T) {
	s := fakebackend.Start(t, fakebackend.Behave("pass", "late", "deny"))
	c := newTestClient(t, loopback(s.URL, nil))
	var resp ahp.Response
	if f := c.Intercept(newCall("first", ample), &resp); !f.OK() {
		t.Fatalf("first Intercept = %v; want success", f)
	}
	if f := c.Intercept(newCall("second", soon), &resp); f.Class != ahp.FailDeadline {
		t.Fatalf("Intercept of a late answer = %v; want %v", f, ahp.FailDeadline)
	}
	s.Release()
	if f := c.Intercept(newCall("third", ample), &resp); !f.OK() || !bytes.Contains(resp.Body, []byte(`"third"`)) {
		t.Errorf("Intercept after a late answer = %v, %s; want its own answer", f, resp.Body)
	}
}

func TestConnectionReuse(t *testing.T) {
	for name, want := range map[string]int{
		"pass": 1, "deny": 1, "status-500": 1, "status-204": 1, "redirect": 1, "media-type-text": 1, "bad-json": 1,
		"pass-close": 3, "id-mismatch": 3, "truncated": 3,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakebackend.Start(t, fakebackend.Behave(name))
			c := newTestClient(t, loopback(s.URL, nil))
			for i := range 3 {
				var resp ahp.Response
				c.Intercept(newCall(fmt.Sprint("e", i), ample), &resp)
			}
			if accepted, _ := s.Connections(); accepted != want {
				t.Errorf("three calls to %s took %d connections; want %d", name, accepted, want)
			}
		})
	}
}

func TestPoolExhausted(t *testing.T) {
	s := fakebackend.Start(t, fakebackend.Behave("hang"))
	cfg := loopback(s.URL, nil)
	cfg.Connections = 1
	c := newTestClient(t, cfg)
	held := make(chan ahp.Failure)
	go func() {
		var resp ahp.Response
		held <- c.Intercept(newCall("held", ample), &resp)
	}()
	s.Await(1)
	var resp ahp.Response
	if f := c.Intercept(newCall("e1", soon), &resp); f.Class != ahp.FailPoolExhausted {
		t.Errorf("Intercept without a free connection = %v; want %v", f, ahp.FailPoolExhausted)
	}
	s.Release()
	if f := <-held; f.Class != ahp.FailReset {
		t.Errorf("Intercept of the held request = %v; want %v", f, ahp.FailReset)
	}
}

func TestCloseLetsCallsInFlightFinish(t *testing.T) {
	proceed := make(chan struct{})
	s := fakebackend.Start(t, fakebackend.WithScript(func(n int, _ *fakebackend.Request) string {
		if n == 1 {
			<-proceed
		}
		return "pass"
	}))
	c := newTestClient(t, loopback(s.URL, nil))
	var first ahp.Response
	if f := c.Intercept(newCall("first", ample), &first); !f.OK() {
		t.Fatalf("Intercept = %v; want success", f)
	}
	done := make(chan ahp.Failure)
	go func() {
		var resp ahp.Response
		done <- c.Intercept(newCall("second", ample), &resp)
	}()
	s.Await(2)
	c.Close()
	close(proceed)
	if f := <-done; !f.OK() {
		t.Errorf("Intercept during Close = %v; want success", f)
	}
	if n := c.pool.ConnsCount(); n != 0 {
		t.Errorf("%d connections are open after Close and the last call; want none", n)
	}
}

// TestConcurrentCalls gives the race detector something to see and checks that
// nobody gets another's answer.
func TestConcurrentCalls(t *testing.T) {
	behaviours := []string{"pass", "deny", "status-500", "close-before-byte", "reset-mid-body", "chunked", "bad-json", "extra-bytes"}
	s := fakebackend.Start(t, fakebackend.WithScript(func(n int, _ *fakebackend.Request) string {
		return behaviours[n%len(behaviours)]
	}))
	cfg := loopback(s.URL, nil)
	cfg.Connections = 4
	c := newTestClient(t, cfg)
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			var resp ahp.Response
			for j := range 25 {
				id := fmt.Sprintf("e-%d-%d", i, j)
				f := c.Intercept(newCall(id, ample), &resp)
				switch f.Class {
				case ahp.NoFailure:
					if !bytes.Contains(resp.Body, []byte(`"`+id+`"`)) {
						t.Errorf("Intercept(%s) = %s; want its own answer", id, resp.Body)
					}
				case ahp.FailStatus, ahp.FailReset, ahp.FailMalformedJSON:
				case ahp.FailIDMismatch: // the second answer of extra-bytes, arrived after the first was read
				default:
					t.Errorf("Intercept(%s) = %v; want success or what the backend did", id, f)
				}
			}
		})
	}
	callers.Wait()
	if idle, all := c.pool.IdleConnsCount(), c.pool.ConnsCount(); idle != all || all > cfg.Connections {
		t.Errorf("%d of %d connections are idle; want all, and at most %d", idle, all, cfg.Connections)
	}
}

// No failure may show what was sent or answered.
func TestDetailsHoldNoContent(t *testing.T) {
	const secret = "s3cr3t"
	for _, name := range fakebackend.Names() {
		if outcomes[name] == ahp.FailDeadline {
			continue
		}
		s := fakebackend.Start(t, fakebackend.Behave(name))
		cfg := loopback(s.URL+"?key="+secret, s.Roots())
		cfg.Bearer, cfg.Headers = secret, []Header{{"X-Key", secret}}
		c := newTestClient(t, cfg)
		var resp ahp.Response
		f := c.Intercept(newCall(secret, ample), &resp)
		if strings.Contains(f.Detail, secret) || strings.Contains(f.Detail, "fake backend") || len(f.Detail) > 80 {
			t.Errorf("Intercept of %s = %q; want a short detail without content", name, f.Detail)
		}
	}
}
