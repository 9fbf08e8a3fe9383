package gateway

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// failureCase is one line of testdata/failures/classes.json: what a backend
// does and which failure class that is.
type failureCase struct {
	Behaviour string
	Class     classes
	TimeoutMs int
	Version   string // default: draft
	Setup     string // what else makes it fail, see arrange
	Uncalled  bool   // the backend gets no message at all
}

// classes is one class, or several where it depends on timing which one is first.
type classes []string

func (c *classes) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(c))
	}
	*c = make(classes, 1)
	return json.Unmarshal(b, &(*c)[0])
}

// outcomeCase is one line of testdata/failures/outcomes.json: what a failure at
// a place in a chain of three decides, and the audit record it leaves.
type outcomeCase struct {
	Policy, Position, Decision string
	Called                     []int
	Audit                      struct {
		Verdict   string
		Synthetic bool
		DeniedBy  string `json:"denied_by"`
		Reason    string
		Code      string
		Steps     []string
	}
}

func load[T any](t *testing.T, name string) []T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "failures", name))
	if err != nil {
		t.Fatal(err)
	}
	var cases []T
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return cases
}

// TestFailureMatrix runs every operational failure class under every policy at
// every place of a chain of three (AHP-FAIL-001, AHP-FAIL-002, AHP-COMP-001).
func TestFailureMatrix(t *testing.T) {
	outcomes := load[outcomeCase](t, "outcomes.json")
	for _, c := range load[failureCase](t, "classes.json") {
		name := strings.Trim(strings.Join([]string{c.Behaviour, c.Setup, c.Version}, " "), " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range outcomes {
				t.Run(o.Policy+" "+o.Position, func(t *testing.T) { runFailure(t, c, o) })
			}
		})
	}
}

func runFailure(t *testing.T, c failureCase, o outcomeCase) {
	if c.Version == "" {
		c.Version = "draft"
	}
	if o.Policy == "managed" && c.Version == "0.1" {
		return // 0.1 has no managed subscriptions
	}
	if c.TimeoutMs == 0 {
		c.TimeoutMs = 5000
	}
	position := slices.Index([]string{"first", "middle", "last"}, o.Position)
	var hooks []string
	var servers []*fakebackend.Server
	extra := ""
	for i := range 3 {
		id := fmt.Sprintf("com.example.hook%d", i+1)
		if i != position {
			servers = append(servers, fakebackend.Start(t))
			hooks = append(hooks, hook(id, servers[i].URL, intercepts(c.Version, "fail-open", 5000)))
			continue
		}
		var h string
		b := fakebackend.Start(t, behave(c)...)
		servers = append(servers, b)
		policy := o.Policy
		if policy == "managed" { // which overrules a fail-open
			policy = "fail-open"
		}
		subscription := intercepts(c.Version, policy, c.TimeoutMs)
		if o.Policy == "managed" {
			subscription += `,"scope":"managed","disableable":false`
		}
		h, extra = arrange(c, id, b, subscription)
		hooks = append(hooks, h)
	}
	f := parse(t, open(registration(c.Version, hooks...), extra))
	if c.Setup == "blocked-address" {
		// As if its name had resolved to that: a URL with the address itself
		// would be a mistake in the configuration.
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(strings.TrimSuffix(servers[position].URL, "/hooks"), "http://"))
		f.Tenants[0].Registrations[0].Hooks[position].URL = "https://0.0.0.0:" + port + "/hooks"
	}
	r := startFile(t, f)
	spend(r, c, fmt.Sprintf("com.example.hook%d", position+1), servers[position])

	a := r.post("/hooks", event(c.Version, "the-event"))
	if a.decision() != o.Decision {
		t.Errorf("decision = %s; want %s", a.decision(), o.Decision)
	}
	record := r.audit.await(1)[0]
	if record["verdict"] != o.Audit.Verdict || truth(record["synthetic"]) != o.Audit.Synthetic ||
		str(record["denied_by"]) != o.Audit.DeniedBy || str(record["reason"]) != o.Audit.Reason || str(record["code"]) != o.Audit.Code {
		t.Errorf("audit record = %v; want %+v", record, o.Audit)
	}
	steps, _ := record["steps"].([]any)
	var got []string
	for i, s := range steps {
		step := s.(map[string]any)
		got = append(got, str(step["outcome"]))
		class := str(step["failure"])
		if i == position && !slices.Contains(c.Class, class) {
			t.Errorf("failure class = %s (%v); want %s", class, step["detail"], strings.Join(c.Class, " or "))
		}
		if i != position && class != "" {
			t.Errorf("step %d has failure class %s; want none", i+1, class)
		}
	}
	if !slices.Equal(got, o.Audit.Steps) {
		t.Errorf("audit steps = %v; want %v", got, o.Audit.Steps)
	}
	// A late answer changes nothing any more.
	for _, b := range servers {
		b.Release()
	}
	r.stop()
	if n := len(r.audit.await(1)); n != 1 {
		t.Errorf("%d audit records; want 1", n)
	}
	for i, b := range servers {
		asked := 0
		for _, q := range b.Requests() {
			if q.RPCMethod == "hooks/intercept" && q.EventID == "the-event" {
				asked++
			}
		}
		want := o.Called[i]
		if i == position && (c.Uncalled || unseen[c.Behaviour]) {
			want = 0
		}
		// A connection that closes before the first byte is tried once more, and
		// on a busy machine a short deadline ends before the request is read.
		again := i == position && asked == want+1 && slices.Contains(c.Class, "reset")
		never := i == position && asked == 0 && slices.Contains(c.Class, "deadline")
		if asked != want && !again && !never {
			t.Errorf("backend %d was asked %d times; want %d", i+1, asked, want)
		}
	}
}

// unseen are behaviours of whole connections: no request is ever read.
var unseen = map[string]bool{"refuse": true}

// behave returns how the failing backend is started.
func behave(c failureCase) []fakebackend.Option {
	o := []fakebackend.Option{fakebackend.Behave(c.Behaviour)}
	switch c.Setup {
	case "tls":
		o = append(o, fakebackend.WithTLS())
	case "breaker-open":
		o = []fakebackend.Option{fakebackend.Behave("status-500")}
	case "bulkhead-full", "pool-exhausted":
		o = []fakebackend.Option{fakebackend.Behave("hang")}
	}
	return o
}

// arrange returns the failing hook and what else of the gateway file it needs.
func arrange(c failureCase, id string, b *fakebackend.Server, subscription string) (h, file string) {
	h = hook(id, b.URL, subscription)
	settings := func(s string) string { return fmt.Sprintf("backends: {%s: {%s}}", id, s) }
	switch c.Setup {
	case "no-credential":
		h = strings.Replace(h, `"subscriptions"`, `"authentication":{"type":"bearer","tokenEnv":"NOT_SET"},"subscriptions"`, 1)
	case "blocked-address":
		file = settings("allowPrivate: false")
	case "dns":
		h = hook(id, "https://no-such-host.invalid/hooks", subscription)
	case "breaker-open":
		file = settings("breaker: {volume: 1, ratio: 1, openFor: 1h}")
	case "bulkhead-full":
		h = strings.Replace(h, `"timeoutMs":5000`, `"timeoutMs":300`, 1)
		file = settings("inFlight: 1")
	case "pool-exhausted":
		h = strings.Replace(h, `"timeoutMs":5000`, `"timeoutMs":300`, 1)
		file = settings("connections: 1")
	}
	return h, file
}

// spend brings the gateway into the state that the case begins with, by a call
// of its own: what fails next must not have reached the backend.
func spend(r *rig, c failureCase, id string, b *fakebackend.Server) {
	p := r.peer(id)
	version, _ := ahp.ParseVersion(c.Version)
	call := &ahp.Call{Body: []byte(event(c.Version, "earlier")), ID: []byte(`"earlier"`), Version: version, Deadline: time.Now().Add(time.Minute)}
	switch c.Setup {
	case "breaker-open":
		p.breaker.Intercept(call, new(ahp.Response))
	case "bulkhead-full":
		go p.breaker.Intercept(call, new(ahp.Response))
		b.Await(1)
	case "pool-exhausted":
		go p.client.Intercept(call, new(ahp.Response))
		b.Await(1)
	}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func truth(v any) bool {
	b, _ := v.(bool)
	return b
}
