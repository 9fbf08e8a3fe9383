package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/gateway"
)

// examples are documents for validate, in one folder.
func examples(t testing.TB) string {
	return folder(t,
		"good.yaml", `
limits: {budget: 10s}
registration:
  - protocolVersion: "0.1"
    hooks:
      - {id: com.example.one, transport: {type: http, url: "http://127.0.0.1:9000/"}, subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 2000, failurePolicy: fail-closed}]}
      - {id: com.example.two, transport: {type: http, url: "http://127.0.0.1:9001/"}, subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 750, failurePolicy: fail-open}, {events: [tool.after], mode: observe}]}
  - draft.yaml
backends: {com.example.shadowed: {shadow: "*"}}
`,
		"draft.yaml", `
protocolVersion: draft
hooks:
  - {id: com.example.one, transport: {type: http, url: "http://127.0.0.1:9000/"}, subscriptions: [{events: [tool.before, turn.start], mode: intercept, timeoutMs: 9000, failurePolicy: fail-closed, content: {default: metadata}}]}
  - {id: com.example.shadowed, transport: {type: http, url: "http://127.0.0.1:9001/"}, subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 5000, failurePolicy: fail-closed, content: {default: metadata}}]}
  - {id: com.example.two, transport: {type: http, url: "http://127.0.0.1:9002/"}, subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 5000, failurePolicy: fail-closed, content: {default: metadata}}]}
`,
		"observer.yaml", `
protocolVersion: "0.1"
hooks:
  - {id: com.example.o, x: 1, transport: {type: http, url: "http://127.0.0.1:9000/"}, subscriptions: [{events: [tool.after], mode: observe}]}
`,
		"discovered.yaml", `
protocolVersion: draft
hooks:
  - {id: com.example.one, transport: {type: http, url: "http://127.0.0.1:9/"}}
  - {id: com.example.two, transport: {type: http, url: "http://127.0.0.1:9002/"}, subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 5000, failurePolicy: fail-closed, content: {default: metadata}}]}
`,
		"asked.yaml", `
registration:
  protocolVersion: draft
  hooks: [{id: com.example.one, transport: {type: http, url: "http://127.0.0.1:9/"}}]
`,
		"bad.yaml", "registration:\n  protocolVersion: \"0.1\"\n  hooks:\n    - id: policy\n      x: 1\n      transport: {type: http, url: \"http://example.com/\"}\n      subscriptions: []\nlimitz: 1\n",
		"broken.yaml", "{",
	)
}

func TestValidateText(t *testing.T) {
	dir := examples(t)
	for _, c := range []struct {
		flag, file     string
		code           int
		stdout, stderr []string
	}{
		{"--config", "good.yaml", 0, []string{
			"good.yaml is valid\n",
			"tenant default: 0.1 tool.before: 2 calls in turn, 2750 ms at worst: set timeoutMs to at least 3000 in the harness\n",
			"tenant default: draft tool.before: 2 calls in turn, 10000 ms at worst (capped by limits.budget): set timeoutMs to at least 10250 in the harness\n",
			"tenant default: draft turn.start: 1 call, 9000 ms at worst: set timeoutMs to at least 9250 in the harness\n",
			"tenant default: draft: a harness that does not ask hooks/configuration needs these subscriptions:\n" +
				`  {"events":["tool.before"],"mode":"intercept","timeoutMs":10250,"failurePolicy":"fail-closed","content":{"default":"metadata"}}` + "\n" +
				`  {"events":["turn.start"],"mode":"intercept","timeoutMs":9250,"failurePolicy":"fail-closed","content":{"default":"metadata"}}` + "\n",
		}, nil},
		{"--registration", "draft.yaml", 0, []string{
			"draft.yaml is valid\n",
			"draft tool.before: 3 calls in turn, 19000 ms at worst: set timeoutMs to at least 19250 in the harness\n",
		}, nil},
		{"--registration", "observer.yaml", 0, []string{"no event is intercepted\n"}, []string{"observer.yaml:4:25: warning: hooks[0].x: "}},
		// Port 9 is where nobody listens, and nobody is called.
		{"--registration", "discovered.yaml", 0, []string{
			"discovered.yaml is valid\n",
			"draft tool.before: 1 call, 5000 ms at worst: set timeoutMs to at least 5250 in the harness (incomplete: without what is discovered)\n",
			"draft: a harness that does not ask hooks/configuration needs these subscriptions (incomplete: without what is discovered):\n  {",
			"draft com.example.one: its subscriptions are discovered at load by hooks/configuration; ",
		}, nil},
		{"--config", "asked.yaml", 0, []string{"asked.yaml is valid\ntenant default: draft com.example.one: its subscriptions are discovered at load"}, nil},
		{"--config", "bad.yaml", 1, nil, []string{
			"bad.yaml:4:11: registration.hooks[0].id: ",
			"bad.yaml:5:7: warning: registration.hooks[0].x: ",
			"bad.yaml:7:22: registration.hooks[0].subscriptions: is an empty list",
			"bad.yaml:8:1: limitz: unknown key",
		}},
		{"--config", "draft.yaml", 1, nil, []string{"draft.yaml:2:1: is a registration document, not a gateway file: check it with validate --registration, or put it under registration\n"}},
		{"--registration", "asked.yaml", 1, nil, []string{"asked.yaml:2:1: is a gateway file, not a registration document: check it with validate --config, or write protocolVersion and hooks\n"}},
		{"--registration", "broken.yaml", 1, nil, []string{"broken.yaml:1:"}},
		{"--registration", "absent.yaml", 1, nil, []string{"absent.yaml: cannot be read"}},
		{"--config", "", 1, nil, []string{"not a regular file"}},
	} {
		r := call(t, "", "validate", c.flag, filepath.Join(dir, c.file))
		if r.code != c.code || (len(c.stdout) == 0) != (r.stdout == "") || (len(c.stderr) == 0) != (r.stderr == "") {
			t.Errorf("validate %s %s = %d, stdout %q, stderr %q; want %d, %q, %q", c.flag, c.file, r.code, r.stdout, r.stderr, c.code, c.stdout, c.stderr)
		}
		for _, want := range c.stdout {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("validate %s %s prints\n%swant\n%s", c.flag, c.file, r.stdout, want)
			}
		}
		for _, want := range c.stderr {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("validate %s %s says\n%swant\n%s", c.flag, c.file, r.stderr, want)
			}
		}
	}
}

func TestValidateJSON(t *testing.T) {
	dir := examples(t)
	for _, c := range []struct {
		flag, file                                        string
		code                                              int
		valid                                             bool
		mistakes, warnings, chains, discovered, harnesses int
	}{
		{"--config", "good.yaml", 0, true, 0, 0, 3, 0, 1},
		{"--registration", "observer.yaml", 0, true, 0, 1, 0, 0, 0},
		{"--registration", "discovered.yaml", 0, true, 0, 0, 1, 1, 1},
		{"--config", "bad.yaml", 1, false, 4, 1, 0, 0, 0},
		{"--registration", "absent.yaml", 1, false, 1, 0, 0, 0, 0},
	} {
		r := call(t, "", "validate", c.flag, filepath.Join(dir, c.file), "--format", "json")
		var v struct {
			Valid                                             *bool
			Mistakes, Warnings, Chains, Discovered, Harnesses *[]map[string]any
		}
		dec := json.NewDecoder(strings.NewReader(r.stdout))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&v); err != nil || v.Valid == nil || v.Mistakes == nil || v.Warnings == nil || v.Chains == nil || v.Discovered == nil || v.Harnesses == nil {
			t.Errorf("validate %s = %v: %s; want one document with all six members", c.file, err, r.stdout)
			continue
		}
		got := []any{r.code, *v.Valid, len(*v.Mistakes), len(*v.Warnings), len(*v.Chains), len(*v.Discovered), len(*v.Harnesses), r.stderr}
		if want := []any{c.code, c.valid, c.mistakes, c.warnings, c.chains, c.discovered, c.harnesses, ""}; !reflect.DeepEqual(got, want) {
			t.Errorf("validate %s: code, valid, mistakes, warnings, chains, discovered, harnesses, stderr = %v; want %v\n%s", c.file, got, want, r.stdout)
		}
	}
	r := call(t, "", "validate", "--config", filepath.Join(dir, "good.yaml"), "--format", "json")
	var v validation
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatal(err)
	}
	want := chain{Tenant: "default", ProtocolVersion: "draft", Event: "tool.before", Backends: 2,
		WorstCaseMs: 10000, TimeoutMs: 10250, CappedByBudget: true}
	if v.Chains[1] != want {
		t.Errorf("second chain = %+v; want %+v", v.Chains[1], want)
	}
	r = call(t, "", "validate", "--config", filepath.Join(dir, "asked.yaml"), "--format", "json")
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatal(err)
	}
	if want := (discovered{"default", "draft", "com.example.one"}); len(v.Discovered) != 1 || v.Discovered[0] != want {
		t.Errorf("discovered = %+v; want %+v", v.Discovered, want)
	}
	if want := (harness{"default", "draft", []gateway.Subscription{}, true}); len(v.Harnesses) != 1 || !reflect.DeepEqual(v.Harnesses[0], want) {
		t.Errorf("harnesses = %+v; want %+v", v.Harnesses, want)
	}
	r = call(t, "", "validate", "--registration", filepath.Join(dir, "discovered.yaml"), "--format", "json")
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatal(err)
	}
	if !v.Chains[0].Incomplete || !v.Harnesses[0].Incomplete {
		t.Errorf("validate of a document with a backend to discover = %s; want its chain and its harness incomplete", r.stdout)
	}
}

// What validate prints for a harness is what the gateway answers one that asks.
func TestValidateTellsHarnessesTheSame(t *testing.T) {
	path := filepath.Join(folder(t, "gateway.yaml", openFile("", `
  protocolVersion: draft
  hooks:
    - id: com.example.policy
      transport: {type: http, url: "http://127.0.0.1:9/"}
      subscriptions: [{events: [tool.before, user.elicitation.result], mode: intercept, timeoutMs: 700, failurePolicy: fail-closed, content: {default: metadata}}]
    - id: com.example.audit
      transport: {type: http, url: "http://127.0.0.1:9/other"}
      subscriptions: [{events: [tool.*], mode: observe, includeNative: true, content: {default: omit, text: body}}]`)), "gateway.yaml")
	r := call(t, "", "validate", "--config", path, "--format", "json")
	var v validation
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || len(v.Harnesses) != 1 {
		t.Fatalf("validate = %v, %s%s; want one harness", err, r.stdout, r.stderr)
	}
	p := launch(t, "serve", "--config", path)
	public, _ := p.urls()
	resp, err := once.Post(public+"/hooks", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"hooks/configuration","params":{"protocolVersion":"draft"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Result struct {
			Configuration struct{ Subscriptions []gateway.Subscription }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if got, want := v.Harnesses[0].Subscriptions, answer.Result.Configuration.Subscriptions; len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("validate prints the subscriptions %+v; want those that hooks/configuration is answered with, %+v", got, want)
	}
	p.quit()
}

// What a person put in the wrong place by mistake is not shown either.
func TestValidateShowsNoSecrets(t *testing.T) {
	dir := folder(t, "gateway.yaml", `
tenants:
  - id: acme
    keys: [{sha256: `+canaryKey+`}, {env: `+canaryKey+`}]
    registration:
      protocolVersion: "0.1"
      hooks:
        - id: com.example.policy
          transport:
            type: http
            url: https://user:`+canaryToken+`@policy.example.com/
            headers: {Authorization: Bearer `+canaryHeader+`, X-Api-Key: `+canaryHeader+`}
          authentication: {type: bearer, token: `+canaryToken+`, tokenEnv: `+canaryToken+`}
          subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 700, failurePolicy: fail-closed}]
`)
	for _, args := range [][]string{{"validate"}, {"validate", "--format", "json"}, {"config", "print"}, {"serve"}} {
		r := call(t, "", append(args, "--config", filepath.Join(dir, "gateway.yaml"))...) // which looks for the secrets
		if r.code != 1 || r.stdout+r.stderr == "" {
			t.Errorf("%q = %d, %q, %q; want 1 and the mistakes", args, r.code, r.stdout, r.stderr)
		}
	}
}
