package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// rig is a gateway that serves a configuration for one test, and the records
// its audit log got.
type rig struct {
	*Gateway
	t      testing.TB
	client *http.Client
	audit  *journal
}

// start serves the configuration text on free ports until the test ends.
func start(t testing.TB, text string, change ...func(*Options)) *rig {
	t.Helper()
	return startFile(t, parse(t, text), change...)
}

// startFile is start for a configuration that has been read.
func startFile(t testing.TB, f *config.File, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, audit: newJournal(), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	o := Options{Version: "test", Stdout: r.audit, Environ: environ}
	for _, c := range change {
		c(&o)
	}
	g, err := New(t.Context(), f, o)
	if err != nil {
		t.Fatalf("New(%s) = %v; want a gateway", f.Print(), err)
	}
	r.Gateway = g
	if err := g.Start(); err != nil {
		t.Fatalf("Start() = %v; want none", err)
	}
	t.Cleanup(r.stop)
	return r
}

var stopping sync.Map // *Gateway → struct{}, those already shut down

// stop shuts the gateway down, once.
func (r *rig) stop() {
	if _, done := stopping.LoadOrStore(r.Gateway, struct{}{}); done {
		return
	}
	r.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		r.t.Errorf("Shutdown() = %v; want none", err)
	}
}

// parse reads a configuration for a test: on free ports, with the audit log on.
func parse(t testing.TB, text string) *config.File {
	t.Helper()
	f, _, err := config.Parse("test.yaml", []byte(text), environ)
	if err != nil {
		t.Fatalf("config.Parse(%s) = %v; want a file", text, err)
	}
	f.Listen, f.Admin = "127.0.0.1:0", "127.0.0.1:0"
	f.Audit.Stdout = true
	return f
}

func environ(name string) (string, bool) {
	v, ok := environment[name]
	return v, ok
}

// environment stands in for the process's.
var environment = map[string]string{"AHP_TOKEN": "token-from-environment", "ACME_TOKEN": "acme-token"}

// answer is an HTTP answer and what it says in JSON-RPC, if it does.
type reply struct {
	status int
	header http.Header
	body   string
	ID     json.RawMessage
	Result *struct {
		ProtocolVersion string
		Effects         []map[string]any
	}
	Error *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// decision is "pass", "deny: reason (code)", "error CODE" or "HTTP STATUS".
func (r *reply) decision() string {
	switch {
	case r.status != http.StatusOK:
		return fmt.Sprintf("HTTP %d", r.status)
	case r.Error != nil:
		return fmt.Sprintf("error %d", r.Error.Code)
	case r.Result == nil:
		return "nothing"
	case len(r.Result.Effects) == 0:
		return "pass"
	}
	e := r.Result.Effects[0]
	if code, ok := e["code"]; ok {
		return fmt.Sprintf("%v: %v (%v)", e["type"], e["reason"], code)
	}
	return fmt.Sprintf("%v: %v", e["type"], e["reason"])
}

// post sends body to path with optional header lines "Name: value".
func (r *rig) post(path, body string, headers ...string) *reply {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.URL()+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return r.do(req)
}

func (r *rig) do(req *http.Request) *reply {
	r.t.Helper()
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Errorf("%s %s failed: %v", req.Method, req.URL, err)
		return &reply{}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Errorf("%s %s: answer cut off: %v", req.Method, req.URL, err)
	}
	a := &reply{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if len(b) > 0 && resp.Header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(b, a); err != nil {
			r.t.Errorf("answer %s is no JSON-RPC: %v", b, err)
		}
	}
	return a
}

// peer returns the backend with that id of whatever tenant has it.
func (r *rig) peer(id string) *peer {
	r.t.Helper()
	for _, p := range r.current.Load().parties {
		for _, b := range p.peers {
			if b.id == id {
				return b
			}
		}
	}
	r.t.Fatalf("no backend %s", id)
	return nil
}

// get reads an endpoint of the private listener.
func (r *rig) get(path string) (status int, body string) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.AdminURL()+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	a := r.do(req)
	return a.status, a.body
}

// event01 is a 0.1 hooks/intercept of tool.before; more goes into the event.
func event01(id string, more ...string) string {
	return `{"jsonrpc":"2.0","id":"` + id + `","method":"hooks/intercept","params":{"protocolVersion":"0.1","event":{"id":"` + id +
		`","source":"urn:example:harness","type":"tool.before","time":"2026-01-02T03:04:05Z","session":{"id":"session-1"},` +
		`"tool":{"callId":"call-1","name":"Bash","kind":"shell","input":{"command":"git status"}}` + strings.Join(more, "") +
		`},"capabilities":{"effects":["deny"]}}}`
}

// eventDraft is a draft hooks/intercept of tool.before.
func eventDraft(id string, more ...string) string {
	return `{"jsonrpc":"2.0","id":"` + id + `","method":"hooks/intercept","params":{"protocolVersion":"draft","event":{"id":"` + id +
		`","source":"urn:example:harness","type":"tool.before","time":"2026-01-02T03:04:05Z","harness":{"name":"h","version":"1"},` +
		`"call":{"id":"call-1"},"path":"native","tool":{"name":"Bash","origin":"native","input":{"command":"git status"}}` + strings.Join(more, "") +
		`},"capabilities":{"effects":["deny"]},"state":{"permission":"none","candidate":null}}}`
}

// hook is one hook of a registration with one subscription.
func hook(id, url, subscription string) string {
	return `{"id":"` + id + `","transport":{"type":"http","url":"` + url + `"},"subscriptions":[{` + subscription + `}]}`
}

// intercepts is an intercept subscription to tool.before.
func intercepts(v, policy string, timeoutMs int) string {
	s := fmt.Sprintf(`"events":["tool.before"],"mode":"intercept","timeoutMs":%d,"failurePolicy":"%s"`, timeoutMs, policy)
	if v == "draft" {
		s += `,"content":{"default":"metadata"}`
	}
	return s
}

// registration is a document with the given hooks.
func registration(v string, hooks ...string) string {
	return `{"protocolVersion":"` + v + `","hooks":[` + strings.Join(hooks, ",") + `]}`
}

// open is a gateway file with one open tenant; more are further lines of it.
func open(doc string, more ...string) string {
	return "registration: " + doc + "\n" + strings.Join(more, "\n") + "\n"
}

// journal collects audit records.
type journal struct {
	mu      sync.Mutex
	grown   *sync.Cond
	partial []byte
	records []map[string]any
}

func newJournal() *journal {
	j := &journal{}
	j.grown = sync.NewCond(&j.mu)
	return j
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.partial = append(j.partial, p...)
	for {
		i := bytes.IndexByte(j.partial, '\n')
		if i < 0 {
			break
		}
		record := map[string]any{}
		if err := json.Unmarshal(j.partial[:i], &record); err != nil {
			record["broken"] = string(j.partial[:i])
		}
		j.records = append(j.records, record)
		j.partial = j.partial[i+1:]
	}
	j.grown.Broadcast()
	return len(p), nil
}

// await returns the records once there are n of them.
func (j *journal) await(n int) []map[string]any {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.records) < n {
		j.grown.Wait()
	}
	return j.records
}
