package backend

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

func TestConfiguration(t *testing.T) {
	s := fakebackend.Start(t, fakebackend.Behave("configuration"), fakebackend.WithTLS())
	cfg := loopback(s.URL, s.Roots())
	cfg.Bearer, cfg.Headers = "token", []Header{{"X-Team", "platform"}}
	c := newTestClient(t, cfg)
	ids := make(map[string]bool)
	for range 2 {
		got, f := c.Configuration(time.Now().Add(ample))
		if !f.OK() || !strings.HasPrefix(string(got), `{"subscriptions":[{"events":["tool.before"]`) || !json.Valid(got) {
			t.Errorf("Configuration() = %s, %v; want what the backend advertises", got, f)
		}
	}
	for _, r := range s.Requests() {
		want := `{"jsonrpc":"2.0","id":` + string(r.ID) + `,"method":"hooks/configuration","params":{"protocolVersion":"draft"}}`
		if string(r.Body) != want || r.Header.Get("Authorization") != "Bearer token" || r.Header.Get("X-Team") != "platform" {
			t.Errorf("Configuration() sent %v %s; want the credential, the header and %s", r.Header, r.Body, want)
		}
		ids[string(r.ID)] = true
	}
	if accepted, _ := s.Connections(); len(ids) != 2 || accepted != 1 {
		t.Errorf("two calls of Configuration() had %d ids on %d connections; want 2 on 1", len(ids), accepted)
	}
}

// TestConfigurationOutcomes: every way to answer an intercept wrongly is one to
// answer this wrongly, and what was read of it is never returned.
func TestConfigurationOutcomes(t *testing.T) {
	special := map[string]ahp.FailureClass{
		"configuration": ahp.NoFailure, "configuration-empty": ahp.NoFailure, "configuration-with-upload": ahp.NoFailure,
		"configuration-bad-timeout": ahp.NoFailure, "configuration-inapplicable": ahp.NoFailure,
		"configuration-effects": ahp.FailMalformedRPC, "configuration-version": ahp.FailVersionUnsupported,
		"no-effects": ahp.FailMissingResult,
	}
	for _, name := range fakebackend.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, listed := special[name]
			if !listed {
				// A decision is no answer to this request.
				if want = outcomes[name]; want == ahp.NoFailure {
					want = ahp.FailMalformedRPC
				}
			}
			s := fakebackend.Start(t, fakebackend.Behave(name))
			c := newTestClient(t, loopback(s.URL, s.Roots()))
			timeout := ample
			if want == ahp.FailDeadline {
				timeout = soon
			}
			got, f := c.Configuration(time.Now().Add(timeout))
			if !listed && want == ahp.FailMissingResult && f.Class == ahp.FailMalformedRPC {
				want = ahp.FailMalformedRPC // the effects are of the wrong kind, and out of place
			}
			if f.Class != want || (got == nil) != (want != ahp.NoFailure) {
				t.Errorf("Configuration of %s = %s, %v; want %v", name, got, f, want)
			}
			if idle, all := c.pool.IdleConnsCount(), c.pool.ConnsCount(); idle != all {
				t.Errorf("after Configuration of %s %d connections are in use; want none", name, all-idle)
			}
		})
	}
}

func TestConfigurationNeedsItsCredential(t *testing.T) {
	s := fakebackend.Start(t, fakebackend.Behave("configuration"))
	cfg := loopback(s.URL, nil)
	cfg.CredentialError = "environment variable TOKEN is not set"
	if _, f := newTestClient(t, cfg).Configuration(time.Now().Add(ample)); f.Class != ahp.FailCredential || s.Count() != 0 {
		t.Errorf("Configuration without the credential = %v after %d requests; want %v after none", f, s.Count(), ahp.FailCredential)
	}
}

func TestConfigurationAfterItsDeadlineSendsNothing(t *testing.T) {
	s := fakebackend.Start(t, fakebackend.Behave("configuration"))
	if _, f := newTestClient(t, loopback(s.URL, nil)).Configuration(time.Now().Add(-time.Second)); f.Class != ahp.FailDeadline || s.Count() != 0 {
		t.Errorf("Configuration after its deadline = %v, %d requests; want %v, none", f, s.Count(), ahp.FailDeadline)
	}
}

func TestConfigurationCompleteAfterTheDeadlineIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipeClient(t, nil, nil)
		c.pool.DialTimeout = func(string, time.Duration) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				r, err := http.ReadRequest(bufio.NewReader(far))
				if err != nil {
					return
				}
				var m struct{ ID string }
				_ = json.NewDecoder(r.Body).Decode(&m)
				time.Sleep(time.Second)
				body := `{"jsonrpc":"2.0","id":"` + m.ID + `","result":{"protocolVersion":"draft","configuration":{}}}`
				fmt.Fprintf(far, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			}()
			return deaf{near}, nil
		}
		if got, f := c.Configuration(time.Now().Add(time.Second)); f.Class != ahp.FailLate || got != nil {
			t.Errorf("Configuration answered after 1s of 1s = %s, %v; want %v", got, f, ahp.FailLate)
		}
		if got, f := c.Configuration(time.Now().Add(2 * time.Second)); !f.OK() || string(got) != "{}" {
			t.Errorf("Configuration answered after 1s of 2s = %s, %v; want {}", got, f)
		}
	})
}
