package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

func TestSendDecisions(t *testing.T) {
	for _, c := range []struct {
		behaviour, version string
		code               int
		want               string
	}{
		{"pass", "0.1", 0, "pass\n"},
		{"pass", "draft", 0, "pass\n"},
		{"no-effects", "draft", 0, "pass\n"},
		{"allow", "draft", 0, "pass (and allowed)\n"},
		{"deny", "0.1", 2, "deny: denied by the fake backend\n"},
		{"deny-code", "draft", 2, "deny: denied by the fake backend (com.example.denied)\n"},
		{"ask", "draft", 3, "ask\n"},
		{`effects:[{"type":"modify","target":"input","operation":"merge","value":{}},{"type":"message","text":"m"}]`, "draft", 3, "changed: input changed, message\n"},
		{`effects:[{"type":"modify","target":"input"},{"type":"ask","reason":"sure?"},{"type":"modify","target":"input"}]`, "draft", 3, "ask (and input changed): sure?\n"},
		{`effects:[{"type":"ask"},{"type":"flow","operation":"stop","reason":"r"},{"type":"inject"},{"type":"return","value":1}]`, "draft", 3, "ask (and flow stop, inject, return)\n"},
		{`effects:[{"type":"ask"},{"type":"deny","reason":"no"},{"type":"allow"}]`, "draft", 2, "deny: no\n"},
		{`effects:[{"type":"deny","reason":"r\u001b[2J\n\u202eX"}]`, "0.1", 2, "deny: r\uFFFD[2J\uFFFD\uFFFDX\n"},
		{`effects:[{"Type":"allow","type":"deny","reason":"exact names","Reason":"other"}]`, "0.1", 2, "deny: exact names\n"},

		{"unknown-effect", "draft", 1, "error: the answer has an unknown effect\n"},
		{"ask", "0.1", 1, "error: the answer has an unknown effect\n"},
		{"effect-string", "0.1", 1, "error: the answer has an unknown effect\n"},
		{"deny-empty-reason", "0.1", 1, "error: the answer has a deny without a reason\n"},
		{"no-effects", "0.1", 1, "error: result.effects is missing\n"},
		{"rpc-error-32003", "0.1", 1, "error -32003: the fake backend's error\n"},
		{"rpc-error-32001", "draft", 1, "error -32001: the fake backend's error\n"},
		{"rpc-error-null-id", "0.1", 1, "error -32700: the fake backend's error\n"},
		{"error-no-code", "0.1", 1, "error: error has no code and message\n"},
		{"version-mismatch", "0.1", 1, "error: result.protocolVersion is not the request's\n"},
		{"id-mismatch", "0.1", 1, "error: the answer's id is not the request's\n"},
		{"dup-member", "0.1", 1, "error: the answer is no strict JSON\n"},
		{"array", "0.1", 1, "error: the answer is no JSON-RPC 2.0 response\n"},
		{"media-type-text", "0.1", 1, "error: the answer is not application/json\n"},
		{"media-type-missing", "0.1", 1, "error: the answer is not application/json\n"},
		{"status-401", "0.1", 1, "error: HTTP 401 Unauthorized\n"},
		{"status-503", "0.1", 1, "error: HTTP 503 Service Unavailable\n"},
		{"redirect", "0.1", 1, "error: HTTP 307 Temporary Redirect\n"},
	} {
		b := fakebackend.Start(t, fakebackend.Behave(c.behaviour))
		r := call(t, "", "send", "--url", b.URL, "--protocol-version", c.version, "--command", "git status")
		if r.code != c.code || r.stdout != c.want || r.stderr != "" {
			t.Errorf("send to a backend with %s = %d, %q, %q; want %d, %q", c.behaviour, r.code, r.stdout, r.stderr, c.code, c.want)
		}
		if n := b.Count(); n != 1 {
			t.Errorf("send to a backend with %s made %d requests; want 1", c.behaviour, n)
		}
	}
}

// A denial that is wanted is a success for who cannot look at exit codes.
func TestSendExpectations(t *testing.T) {
	for _, c := range []struct {
		behaviour, expect string
		code              int
	}{
		{"pass", "pass", 0}, {"pass", "deny", 1},
		{"deny", "deny", 0}, {"deny", "pass", 1}, {"deny", "ask", 1},
		{"ask", "ask", 0}, {"ask", "changed", 1}, {"ask", "deny", 1},
		{`effects:[{"type":"modify","target":"input"}]`, "changed", 0},
		{"status-401", "deny", 1}, {"rpc-error-32003", "pass", 1}, {"refuse", "pass", 1}, {"refuse", "deny", 1},
	} {
		b := fakebackend.Start(t, fakebackend.Behave(c.behaviour))
		r := call(t, "", "send", "--url", b.URL, "--protocol-version", "draft", "--command", "x", "--expect", c.expect)
		if r.code != c.code || r.stdout == "" {
			t.Errorf("send --expect %s to a backend with %s = %d, %q; want %d and the decision", c.expect, c.behaviour, r.code, r.stdout, c.code)
		}
	}
	for _, expect := range []string{"error", "Deny", "allow"} {
		r := call(t, "", "send", "--url", "http://127.0.0.1:1", "--command", "x", "--expect", expect)
		if want := "want pass, deny, ask or changed"; r.code != 1 || !strings.Contains(r.stderr, want) {
			t.Errorf("send --expect %s = %d, %q; want 1, %q", expect, r.code, r.stderr, want)
		}
	}
}

func TestSendWithoutAnAnswer(t *testing.T) {
	for behaviour, want := range map[string]string{
		"refuse": "error: no answer: ",
		"hang":   "error: no answer: context deadline exceeded",
	} {
		b := fakebackend.Start(t, fakebackend.Behave(behaviour))
		r := call(t, "", "send", "--url", b.URL, "--command", "x", "--timeout", "200ms")
		if r.code != 1 || !strings.HasPrefix(r.stdout, want) {
			t.Errorf("send to a backend that does %s = %d, %q; want 1, %q", behaviour, r.code, r.stdout, want)
		}
	}
	big := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(make([]byte, maxAnswer+1))
	}))
	defer big.Close()
	if r := call(t, "", "send", "--url", big.URL); r.code != 1 || !strings.Contains(r.stdout, "the answer is larger than") {
		t.Errorf("send with an endless answer = %d, %q; want 1 and why", r.code, r.stdout)
	}
}

// raw is a list of one effect.
func raw(effect string) []json.RawMessage { return []json.RawMessage{json.RawMessage(effect)} }

func TestSendJSON(t *testing.T) {
	for behaviour, want := range map[string]verdict{
		"pass":      {Decision: "pass"},
		"deny-code": {Decision: "deny", Reason: "denied by the fake backend", Code: "com.example.denied", Effects: raw(`{"type":"deny","reason":"denied by the fake backend","code":"com.example.denied"}`)},
		"effects:[ {\"type\":\"message\", \"text\":\"<b>\u202e\"} ]": {Decision: "changed", Effects: raw("{\"type\":\"message\",\"text\":\"<b>\\u202e\"}")},
		"rpc-error-32004": {Decision: "error", ErrorCode: -32004, Message: "the fake backend's error"},
		"status-403":      {Decision: "error", Status: 403},
		"bad-json":        {Decision: "error", Message: "the answer is no strict JSON"},
	} {
		b := fakebackend.Start(t, fakebackend.Behave(behaviour))
		r := call(t, "", "send", "--url", b.URL, "--command", "x", "--format", "json", "--protocol-version", "draft")
		var got verdict
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Errorf("send to a backend with %s prints %q; want JSON", behaviour, r.stdout)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || r.code != want.exitCode() {
			t.Errorf("send to a backend with %s = %d, %+v; want %d, %+v", behaviour, r.code, got, want.exitCode(), want)
		}
	}
}

// What send makes of flags is a valid event, with what the flags say in it.
func TestSendEvent(t *testing.T) {
	b := fakebackend.Start(t)
	for _, c := range []struct {
		args  string
		tool  string
		input string
	}{
		{"--command <b>&\"\u00e9\\ --protocol-version 0.1", "Bash", `{"command":"<b>&\"é\\"}`},
		{"--protocol-version draft", "Bash", `{}`},
		{`--input {"path":"/x","n":1.0e2} --tool Write --kind file_write --session s-1 --event-id e-1 --source urn:x:y`, "Write", `{"path":"/x","n":1.0e2}`},
		{`--input {"path":"/x"} --tool Write --kind file_write --protocol-version draft --session s-1 --event-id e-1 --source urn:x:y`, "Write", `{"path":"/x"}`},
	} {
		before := b.Count()
		if r := call(t, "", append([]string{"send", "--url", b.URL}, strings.Fields(c.args)...)...); r.code != 0 {
			t.Errorf("send %s = %d, %s%s; want 0", c.args, r.code, r.stdout, r.stderr)
			continue
		}
		req := b.Requests()[before]
		var m ahp.Message
		if err := ahp.Decode(req.Body, &m); err != nil {
			t.Errorf("send %s posts %s; want a valid message, not %v", c.args, req.Body, err)
			continue
		}
		if string(m.Event.ToolName) != c.tool || string(m.Event.Input) != c.input || len(m.Event.CallID) == 0 {
			t.Errorf("send %s posts %s; want tool %s and input %s", c.args, req.Body, c.tool, c.input)
		}
		if strings.Contains(c.args, "--event-id") && (string(m.Event.ID) != "e-1" || string(m.Event.SessionID) != "s-1" || string(m.Event.Source) != "urn:x:y") {
			t.Errorf("send %s posts %s; want the ids of the flags", c.args, req.Body)
		}
		if req.Path != "/hooks" || req.Header.Get("Content-Type") != "application/json" || req.Header.Get("Authorization") != "" {
			t.Errorf("send %s posts to %s with %v; want /hooks, JSON and no credential", c.args, req.Path, req.Header)
		}
	}
	ids := make(map[string]bool)
	for _, req := range b.Requests() {
		ids[req.EventID] = true
	}
	if len(ids) != 3 {
		t.Errorf("four events have the ids %v; want a new one for each that was given none", ids)
	}
}

// Without --effects an event of flags advertises all that a backend may answer it
// with, so that none fails for an effect that its snapshot has.
func TestSendEffects(t *testing.T) {
	every := ahp.ToolBefore.Bounds().Effects
	deny := ahp.EffectSet(0).With(ahp.EffectDeny)
	b := fakebackend.Start(t)
	for _, c := range []struct {
		args string
		want ahp.EffectSet
	}{
		{"--protocol-version 0.1", deny},
		{"--protocol-version 0.1 --effects deny", deny},
		{"--protocol-version draft", every},
		{"--protocol-version draft --effects deny", deny},
		{"--protocol-version draft --effects ask,modify,ask", ahp.EffectSet(0).With(ahp.EffectAsk).With(ahp.EffectModify)},
	} {
		before := b.Count()
		if r := call(t, "", append([]string{"send", "--url", b.URL}, strings.Fields(c.args)...)...); r.code != 0 {
			t.Errorf("send %s = %d, %s%s; want 0", c.args, r.code, r.stdout, r.stderr)
			continue
		}
		body := b.Requests()[before].Body
		var m ahp.Message
		if err := ahp.Decode(body, &m); err != nil || m.Capabilities.Effects != c.want {
			t.Errorf("send %s posts %s, %v; want the effects %b", c.args, body, err, c.want)
		}
		if modify := strings.Contains(string(body), `"modify":{"input":{"merge":true,"replace":true}}`); modify != c.want.Has(ahp.EffectModify) {
			t.Errorf("send %s posts %s; want both operations on the input: %t", c.args, body, !modify)
		}
	}
}

// Through the gateway, too, what a backend changes comes out of send.
func TestSendThroughTheGateway(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave(`effects:[{"type":"ask"},{"type":"modify","target":"input","operation":"merge","value":{"command":"ls -l"}}]`))
	registration := fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":%q},
"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"metadata"}}]}]}`, b.URL)
	p := launch(t, "serve", "--config", filepath.Join(folder(t, "gateway.yaml", openFile(registration)), "gateway.yaml"))
	public, _ := p.urls()
	for args, want := range map[string]string{
		"":                    `^ask \(and input changed\)\n$`,
		"--format json":       `^{"decision":"ask","effects":\[.*"command":"ls -l".*\]}\n$`,
		"--effects deny,ask":  `^deny: .*fail_closed`,
		"--file draft.json":   `^ask \(and input changed\)\n$`,
		"--file 0.1.json":     `^error -32001: [^-]*: supported are draft\n$`,
		"--file asked.json":   `(?s)^{\n  "subscriptions": \[\n.*"timeoutMs": 5250.*}\n$`,
		"--file another.json": `(?s)^{\n.*"transports": \[\n.*}\n$`,
	} {
		dir := folder(t, "draft.json", string(newEvent(ahp.Draft).message()), "0.1.json", string(newEvent(ahp.V01).message()),
			"asked.json", `{"jsonrpc":"2.0","id":1,"method":"hooks/configuration","params":{"protocolVersion":"draft"}}`,
			"another.json", `{"jsonrpc":"2.0","id":1,"method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`)
		words := append([]string{"send", "--url", public}, strings.Fields(args)...)
		if i := slices.Index(words, "--file"); i > 0 {
			words[i+1] = filepath.Join(dir, words[i+1])
		} else {
			words = append(words, "--protocol-version", "draft", "--command", "ls")
		}
		if r := call(t, "", words...); !matches(want, r.stdout) {
			t.Errorf("send %s = %d, %q, %q; want %s", args, r.code, r.stdout, r.stderr, want)
		}
	}
	if r := call(t, "", "send", "--url", public); r.code != 1 || !strings.HasSuffix(r.stdout, ": supported are draft (--protocol-version)\n") {
		t.Errorf("send of a 0.1 event to a tenant of draft = %d, %q; want 1 and the flag", r.code, r.stdout)
	}
	p.quit()
}

// What the other side answers about itself is printed.
func TestSendQuestions(t *testing.T) {
	ask := func(method string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"hooks/` + method + `","params":{"protocolVersion":"draft"}}`
	}
	for _, c := range []struct {
		behaviour, method string
		code              int
		text, json        string
	}{
		{"configuration-empty", "configuration", 0, "{\n  \"subscriptions\": []\n}\n", `{"decision":"answered","answer":{"subscriptions":[]}}` + "\n"},
		{`configuration:{"a":"\u001b"}`, "configuration", 0, "{\n  \"a\": \"\\u001b\"\n}\n", `{"decision":"answered","answer":{"a":"\u001b"}}` + "\n"},
		{"configuration-null", "configuration", 1, "error: result.configuration is no object\n", `{"decision":"error","message":"result.configuration is no object"}` + "\n"},
		{"rpc-error-32601", "configuration", 1, "error -32601: the fake backend's error\n", `{"decision":"error","errorCode":-32601,"message":"the fake backend's error"}` + "\n"},
		{`result:{"protocolVersion":"draft","manifest":{"events":[]}}`, "capabilities", 0, "{\n  \"events\": []\n}\n", `{"decision":"answered","answer":{"events":[]}}` + "\n"},
		{"rpc-error-32601", "capabilities", 1, "error -32601: the fake backend's error\n", `{"decision":"error","errorCode":-32601,"message":"the fake backend's error"}` + "\n"},
		{"pass", "capabilities", 1, "error: the answer is no result with the request's id and a manifest\n", `{"decision":"error","message":"the answer is no result with the request's id and a manifest"}` + "\n"},
		{"id-mismatch", "capabilities", 1, "error: the answer is no result with the request's id and a manifest\n", `{"decision":"error","message":"the answer is no result with the request's id and a manifest"}` + "\n"},
		{"bad-json", "capabilities", 1, "error: the answer is no strict JSON object\n", `{"decision":"error","message":"the answer is no strict JSON object"}` + "\n"},
	} {
		for format, want := range map[string]string{"text": c.text, "json": c.json} {
			b := fakebackend.Start(t, fakebackend.Behave(c.behaviour))
			r := call(t, ask(c.method), "send", "--url", b.URL, "--file", "-", "--format", format)
			if r.code != c.code || r.stdout != want || r.stderr != "" {
				t.Errorf("send of hooks/%s to a backend with %s = %d, %q, %q; want %d, %q", c.method, c.behaviour, r.code, r.stdout, r.stderr, c.code, want)
			}
		}
	}
}

// What is wrong in a file's capabilities is answered with what they may be.
func TestSendSaysTheExpectedCapabilities(t *testing.T) {
	message := func(version, event, capabilities string) string {
		m := newEvent(ahp.Draft)
		if version == "0.1" {
			m = newEvent(ahp.V01)
		}
		form := string(marshal(m.capabilities()))
		return strings.NewReplacer(form, capabilities, `"tool.before"`, `"`+event+`"`).Replace(string(m.message()))
	}
	for _, c := range []struct{ message, want string }{
		{message("0.1", "tool.before", `{"effects":["ask"]}`), `; want params.capabilities to be all or some of {"effects":["deny"]}` + "\n"},
		{message("draft", "tool.before", `{"effects":["modify"]}`), `; want params.capabilities to be all or some of {"effects":["deny","allow",`},
		{message("draft", "tool.before", `{"effects":["modify"],"modify":true}`), `"modify":{"input":{"merge":true,"replace":true}}}` + "\n"},
		{message("draft", "turn.end", `{"effects":[1]}`), "params.capabilities.effects is no list of strings\n"},
		{message("draft", "tool.before", `{"effects":["deny"],"effects":1}`), "error: the message is not valid: Parse error\n"},
	} {
		r := call(t, c.message, "send", "--url", "http://127.0.0.1:9", "--file", "-")
		if r.code != 1 || !strings.HasPrefix(r.stdout, "error: the message is not valid: ") || !strings.Contains(r.stdout, c.want) {
			t.Errorf("send of %s = %d, %q, %q; want 1 and %q", c.message, r.code, r.stdout, r.stderr, c.want)
		}
	}
}

func TestSendFile(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("deny"))
	intercept := "\n" + string(newEvent(ahp.Draft).message()) + " \n"
	observe := `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"0.1","event":{"id":"e","source":"urn:x:y","type":"session.start","time":"2026-01-02T03:04:05Z","session":{"id":"s"}}}}`
	dir := folder(t, "intercept.json", intercept, "observe.json", observe,
		"broken.json", `{"jsonrpc":`)
	for _, c := range []struct {
		file, stdin string
		code        int
		stdout      string
		posted      string
	}{
		{"intercept.json", "", 2, "deny: denied by the fake backend\n", intercept},
		{"-", intercept, 2, "deny: denied by the fake backend\n", intercept},
		{"observe.json", "", 0, "accepted\n", observe},
		{"broken.json", "", 1, "error: the message is not valid: Parse error\n", ""},
		{"-", strings.Repeat(" ", maxMessage+1), 1, "", ""},
		{"absent.json", "", 1, "", ""},
	} {
		path := c.file
		if path != "-" {
			path = filepath.Join(dir, path)
		}
		before := b.Count()
		r := call(t, c.stdin, "send", "--url", b.URL, "--file", path)
		if r.code != c.code || r.stdout != c.stdout || (r.stdout == "") != (r.stderr != "") {
			t.Errorf("send --file %s = %d, %q, %q; want %d, %q", c.file, r.code, r.stdout, r.stderr, c.code, c.stdout)
		}
		posted := ""
		for _, req := range b.Requests()[before:] {
			posted += string(req.Body)
		}
		if posted != c.posted {
			t.Errorf("send --file %s posts %q; want %q, byte for byte", c.file, posted, c.posted)
		}
	}
	refusing := fakebackend.Start(t, fakebackend.Behave("observe-200"))
	if r := call(t, observe, "send", "--url", refusing.URL, "--file", "-"); r.code != 1 || r.stdout != "error: HTTP 200 OK\n" {
		t.Errorf("send of an observation that is answered with 200 = %d, %q; want 1 and the status", r.code, r.stdout)
	}
}

func TestSendUsage(t *testing.T) {
	b := fakebackend.Start(t)
	t.Setenv("SEND_KEY", canaryKey)
	t.Setenv("SEND_EMPTY", " ")
	t.Setenv("SEND_BROKEN", "canary\nkey")
	for _, c := range []struct{ args, want string }{
		{"", "--url is needed"},
		{"--url :", "--url is no URL"},
		{"--url localhost:1", `--url is "localhost:1", without a scheme; write http://localhost:1`},
		{"--url 127.0.0.1:8797/x", `write http://127.0.0.1:8797/x`},
		{"--url [::1]:8797", `write http://[::1]:8797`},
		{"--url u:" + canaryKey + "@127.0.0.1:1", "user name or password"},
		{"--url " + b.URL + " ls", "takes no arguments: write --command ls"},
		{"--url " + b.URL + " git push", "takes no arguments: write --command 'git push'"},
		{"--url " + b.URL + " --effects deny,ask", `--effects is "deny,ask"; want deny, the only one of 0.1`},
		{"--url " + b.URL + " --protocol-version draft --effects deny,x", `--effects has "x"; want some of deny,allow,ask,`},
		{"--url " + b.URL + " --file x --effects deny", "effects file"},
		{"--url ftp://127.0.0.1/", `--url is "ftp://127.0.0.1/"`},
		{"--url http:///hooks", `--url is "http:///hooks"`},
		{"--url http://u:" + canaryKey + "@127.0.0.1/", "user name or password"},
		{"--url http://u:" + canaryKey + "@[/", "--url is no URL"},
		{"--url " + b.URL + " --format xml", `--format is "xml"`},
		{"--url " + b.URL + " --timeout 0s", "--timeout is 0s"},
		{"--url " + b.URL + " --protocol-version 9", `--protocol-version is "9"`},
		{"--url " + b.URL + " --input {", "--input is no JSON"},
		{"--url " + b.URL + " --input {} --command x", "input command"},
		{"--url " + b.URL + " --file x --command x", "file command"},
		{"--url " + b.URL + " --key-env SEND_NOTHING", `"SEND_NOTHING", which --key-env names, is not set`},
		{"--url " + b.URL + " --key-env SEND_EMPTY", "is not set or empty"},
		{"--url " + b.URL + " --key-env SEND_BROKEN", "characters that a header cannot"},
		{"--url http://192.0.2.1 --key-env SEND_KEY", "plain http to another machine"},
		{"--url http://localhost.example.com --key-env SEND_KEY", "plain http to another machine"},
	} {
		r := call(t, "", append([]string{"send"}, strings.Fields(c.args)...)...)
		if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, c.want) || !strings.Contains(r.stderr, "Run 'ahp-gateway send --help'") {
			t.Errorf("send %s = %d, %q, %q; want 1 and %q", c.args, r.code, r.stdout, r.stderr, c.want)
		}
	}
	for _, c := range []struct{ args, want string }{
		{`--input []`, "params.event.tool.input is no object"},
		{`--kind nonsense`, "params.event.tool.kind is none of the snapshot's kinds"},
		{`--source nonsense`, "params.event.source is no absolute URI"},
		{`--ca-file /nowhere.pem`, "--ca-file: open /nowhere.pem"},
		{`--ca-file send_test.go`, "--ca-file holds no PEM certificate"},
	} {
		r := call(t, "", append([]string{"send", "--url", b.URL}, strings.Fields(c.args)...)...)
		if r.code != 1 || !strings.Contains(r.stdout, c.want) {
			t.Errorf("send %s = %d, %q, %q; want 1 and %q", c.args, r.code, r.stdout, r.stderr, c.want)
		}
	}
	if n := b.Count(); n != 0 {
		t.Errorf("the backend got %d requests; want none", n)
	}
}

// The key goes where it is meant to and nowhere else, whatever the other side
// does with it.
func TestSendKey(t *testing.T) {
	t.Setenv("SEND_KEY", canaryKey+"\n")
	for _, behaviour := range []string{
		"pass",
		"deny:no entry for " + canaryKey,
		`effects:[{"type":"deny","reason":"x","code":"com.example.` + canaryKey + `"}]`,
		`error:{"code":-32603,"message":"Bearer ` + canaryKey + `"}`,
		`effects:[{"type":"deny","reason":"x","extensions":{"com.example.note":["\"","` + canaryKey + `","\u0063` + canaryKey[1:] + `"]}}]`,
		"redirect",
	} {
		for _, format := range []string{"text", "json"} {
			b := fakebackend.Start(t, fakebackend.Behave(behaviour))
			call(t, "", "send", "--url", b.URL, "--key-env", "SEND_KEY", "--format", format)
			reqs := b.Requests()
			if len(reqs) != 1 || reqs[0].Header.Get("Authorization") != "Bearer "+canaryKey {
				t.Errorf("%s: backend got %d requests, the first with %q; want one with the key", behaviour, len(reqs), reqs[0].Header.Get("Authorization"))
			}
		}
	}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
	}))
	defer echo.Close()
	if r := call(t, "", "send", "--url", echo.URL, "--key-env", "SEND_KEY"); r.stdout != "error: HTTP 401 Unauthorized: Bearer [key]\n" {
		t.Errorf("send to a server that echoes the key prints %q; want it replaced", r.stdout)
	}
}

func TestSendTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m ahp.Message
		_ = ahp.Decode(body, &m)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(ahp.AppendResult(nil, m.ID, m.Version))
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	dir := folder(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	if r := call(t, "", "send", "--url", server.URL, "--ca-file", filepath.Join(dir, "ca.pem")); r.code != 0 || r.stdout != "pass\n" {
		t.Errorf("send with the server's root = %d, %q; want a pass", r.code, r.stdout)
	}
	if r := call(t, "", "send", "--url", server.URL); r.code != 1 || !strings.Contains(r.stdout, "certificate") {
		t.Errorf("send without the server's root = %d, %q; want a refusal", r.code, r.stdout)
	}
}

// Whatever a server answers, there is a verdict, and it fits on a line.
func FuzzJudge(f *testing.F) {
	event := newEvent(ahp.Draft)
	event.id = "e"
	body := event.message()
	for _, answer := range []string{
		``, `{}`, `[]`, `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"r\u0000"}]}}`,
		`{"jsonrpc":"2.0","id":"e","error":{"code":-32003,"message":"m"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":99999999999999999999,"message":"m"}}`,
		` {"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[1,null,{},{"type":"ask"}]}}`,
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		var m ahp.Message
		if err := ahp.Decode(body, &m); err != nil {
			t.Fatal(err)
		}
		v := judge(&m, &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}}, answer)
		if text := string(v.text()); text == "" || strings.ContainsAny(text, "\n\r\x1b\x00") || len(text) > 2*maxPrinted {
			t.Errorf("verdict on %q = %q; want one printable line", answer, text)
		}
		if deny := v.exitCode() == exitDeny; deny != (v.Decision == "deny") || deny && v.Reason == "" {
			t.Errorf("verdict on %q = %+v; want exit code 2 for a deny with a reason alone", answer, v)
		}
	})
}
