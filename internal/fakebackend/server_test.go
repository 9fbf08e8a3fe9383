package fakebackend

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

const event = `{"jsonrpc":"2.0","id":"e1","method":"hooks/intercept","params":{"protocolVersion":"0.1","event":{"id":"e1","type":"tool.before"}}}`

// post sends body and returns the answer's status and body.
func post(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.Roots()}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post(s.URL, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatalf("Post(%s) = %v; want an answer", s.URL, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the answer of %s: %v", s.URL, err)
	}
	return resp.StatusCode, string(answer)
}

func TestSequenceEchoesAndRecords(t *testing.T) {
	s := Start(t, Behave("pass", "deny:be quiet", "status:418"))
	want := []struct {
		status int
		body   string
	}{
		{200, `{"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"0.1","effects":[]}}`},
		{200, `{"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"0.1","effects":[{"type":"deny","reason":"be quiet"}]}}`},
		{418, `{"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"0.1","effects":[]}}`},
		{418, `{"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"0.1","effects":[]}}`},
	}
	for i, w := range want {
		if status, body := post(t, s, event); status != w.status || body != w.body {
			t.Errorf("answer %d = %d %s; want %d %s", i, status, body, w.status, w.body)
		}
	}
	requests := s.Await(len(want))
	if len(requests) != len(want) || s.Count() != len(want) {
		t.Fatalf("recorded %d and counted %d requests; want %d", len(requests), s.Count(), len(want))
	}
	r := requests[0]
	if string(r.Body) != event || r.Method != "POST" || r.Path != "/hooks" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("Requests()[0] = %s %s %v %s; want the request as sent", r.Method, r.Path, r.Header, r.Body)
	}
	if r.EventID != "e1" || r.EventType != "tool.before" || r.RPCMethod != "hooks/intercept" || r.Version != "0.1" {
		t.Errorf("Requests()[0].Message = %+v; want that of the request", r.Message)
	}
}

func TestScriptSeesTheRequest(t *testing.T) {
	s := Start(t, WithTLS(), WithScript(func(n int, req *Request) string {
		if req.EventType == "tool.before" {
			return "deny"
		}
		return "pass"
	}))
	if _, body := post(t, s, event); !strings.Contains(body, "denied by the fake backend") {
		t.Errorf("answer to tool.before = %s; want a deny", body)
	}
	if _, body := post(t, s, strings.Replace(event, "tool.before", "tool.after", 1)); !strings.Contains(body, `"effects":[]`) {
		t.Errorf("answer to tool.after = %s; want no effects", body)
	}
}

func TestNotificationIsAcceptedWithoutBody(t *testing.T) {
	s := Start(t)
	status, body := post(t, s, `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"0.1"}}`)
	if status != http.StatusNoContent || body != "" {
		t.Errorf("answer to a notification = %d %q; want 204 without a body", status, body)
	}
}

func TestUnknownBehaviours(t *testing.T) {
	for _, names := range [][]string{{"psas"}, {"pass", "refuse"}, {"status:99"}, {"colour:red"}} {
		if s, err := Listen(Behave(names...)); err == nil {
			s.Close()
			t.Errorf("Listen(Behave(%q)) = nil error; want one", names)
		}
	}
}

// TestGoodAnswersAreJSON keeps the table honest: an answer that is not meant
// to be broken JSON is JSON.
func TestGoodAnswersAreJSON(t *testing.T) {
	// encoding/json lets invalid UTF-8 pass.
	broken := map[string]bool{"bom": true, "bad-json": true, "trailing-bytes": true}
	m := Message{ID: json.RawMessage(`"a\"b"`), Version: `odd"version`}
	for name, b := range answers {
		if b.text == "" {
			continue
		}
		body := newTemplate(b.text).append(nil, m)
		if valid := json.Valid(body); valid == broken[name] {
			t.Errorf("json.Valid(%s of %q) = %v; want %v", bytes.TrimSpace(body), name, valid, !broken[name])
		}
	}
}

func TestLateAnswersWhenReleased(t *testing.T) {
	s := Start(t, Behave("late"))
	answers := make(chan string)
	go func() {
		resp, err := http.Post(s.URL, "application/json", strings.NewReader(event))
		if err != nil {
			answers <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answers <- string(body)
	}()
	s.Await(1)
	select {
	case body := <-answers:
		t.Fatalf("answer before Release = %s; want none", body)
	default:
	}
	s.Release()
	if body := <-answers; !strings.Contains(body, `"id":"e1"`) {
		t.Errorf("answer after Release = %s; want one for e1", body)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	for _, name := range []string{"hang", "slow-drip", "1xx-flood", "never-read", "pass"} {
		t.Run(name, func(t *testing.T) {
			s, err := Listen(Behave(name))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				resp, err := http.Post(s.URL, "application/json", strings.NewReader(event))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}()
			if name != "never-read" {
				s.Await(1)
			}
			s.Close()
			<-done
			if _, open := s.Connections(); open != 0 {
				t.Errorf("Connections() after Close = %d open; want 0", open)
			}
		})
	}
}
