package examples

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const token = "token-of-the-examples"

// example is one policy backend.
type example struct {
	name     string
	folder   string   // of examples
	versions []string // snapshots that it speaks
	programs []string // that have to be there
}

var examples = []example{
	{"go", "backend-go", []string{"0.1", "draft"}, nil},
	{"opa", "opa", []string{"0.1", "draft"}, nil},
	{"python", "backend-python", []string{"draft"}, []string{"python3"}},
	{"typescript", "backend-typescript", []string{"0.1", "draft"}, []string{"node", "npm"}},
}

// script returns the lines of the README's first commands: what installs the
// example, and what starts it with a token.
func (e example) script(t *testing.T) (install []string, start string) {
	t.Helper()
	blocks := shell(read(t, filepath.Join(root, "examples", e.folder, "README.md")))
	if len(blocks) != 1 {
		t.Fatalf("the README of %s has %d sh blocks; want one", e.folder, len(blocks))
	}
	last := len(blocks[0]) - 1
	start, ok := strings.CutPrefix(blocks[0][last], "POLICY_TOKEN=change-me ")
	if !ok || !strings.Contains(start, "127.0.0.1:9001") {
		t.Fatalf("the README of %s starts it with %q", e.folder, blocks[0][last])
	}
	return blocks[0][:last], strings.Replace(start, "127.0.0.1:9001", "127.0.0.1:0", 1)
}

// shell returns the lines of the sh blocks of a document.
func shell(markdown string) (blocks [][]string) {
	for {
		_, rest, ok := strings.Cut(markdown, "```sh\n")
		if !ok {
			return blocks
		}
		block, rest, _ := strings.Cut(rest, "```")
		blocks, markdown = append(blocks, strings.Split(strings.TrimSpace(block), "\n")), rest
	}
}

// install returns the folder that the example can be started in: its own, or
// where its README has something to install a copy under .cache, which is made
// anew whenever a file of the example changes.
func (e example) install(t *testing.T) string {
	t.Helper()
	for _, program := range e.programs {
		need(t, program)
	}
	source := filepath.Join(root, "examples", e.folder)
	lines, _ := e.script(t)
	if len(lines) == 0 {
		return source
	}
	files := strings.Fields(command(t, source, "", "git", "ls-files", "--cached", "--others", "--exclude-standard"))
	var content strings.Builder
	for _, name := range files {
		fmt.Fprintf(&content, "%s %q\n", name, read(t, filepath.Join(source, name)))
	}
	return installed(t, e.name, content.String(), func(folder string) {
		for _, name := range files {
			to := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, to, read(t, filepath.Join(source, name)))
		}
		command(t, folder, "", "sh", "-ec", strings.Join(lines, "\n"))
	})
}

// serve starts an example and returns it with its URL.
func (e example) serve(t *testing.T) (*process, string) {
	t.Helper()
	folder := e.install(t)
	_, line := e.script(t)
	// go run would not pass signals on: what TestMain has built takes its place.
	line = strings.Replace(line, "go run .", filepath.Join(programs, e.folder), 1)
	p := start(t, folder, []string{"POLICY_TOKEN=" + token, "PYTHONDONTWRITEBYTECODE=1"}, strings.Fields(line)...)
	return p, p.wait(t, "listening on ") + "/ahp"
}

// gateway serves examples/gateway.yaml in front of a backend, as changed by
// edit, and returns the URL to post to and the audit file.
func gateway(t *testing.T, backend, token string, edit func(string) string) (url, audit string) {
	t.Helper()
	folder := t.TempDir()
	text := strings.NewReplacer("127.0.0.1:8787", "127.0.0.1:0", "127.0.0.1:8788", "127.0.0.1:0", "http://127.0.0.1:9001/ahp", backend).
		Replace(edit(read(t, filepath.Join(root, "examples/gateway.yaml"))))
	file := filepath.Join(folder, "gateway.yaml")
	write(t, file, text)
	p := start(t, folder, []string{"POLICY_TOKEN=" + token}, filepath.Join(programs, "ahp-gateway"), "serve", "--config", file)
	return p.wait(t, "listening on ") + "/hooks", filepath.Join(folder, "audit.jsonl")
}

// spoken cuts examples/gateway.yaml to what an example speaks, as its README says.
func (e example) spoken(text string) string {
	if !slices.Contains(e.versions, "0.1") {
		text, _, _ = strings.Cut(text, "  - protocolVersion: \"0.1\"\n")
	}
	return text
}

// sent runs the lines of a README that send an event, at one gateway for each
// address that they name, and compares their exit codes with what they say.
func sent(t *testing.T, readme string, want int, environment []string, urls map[string]string) {
	t.Helper()
	count := 0
	for _, block := range shell(read(t, filepath.Join(root, "examples", readme))) {
		for _, line := range block {
			words, code, ok := strings.Cut(line, "# exit code ")
			if !ok {
				continue
			}
			for from, to := range urls {
				words = strings.Replace(words, from, to, 1)
			}
			_, words, _ = strings.Cut(words, "bin/ahp-gateway ")
			cmd := exec.Command("sh", "-c", `exec "$0" `+words, filepath.Join(programs, "ahp-gateway"))
			cmd.Dir = filepath.Join(root, "examples", filepath.Dir(readme))
			cmd.Env = append(os.Environ(), environment...)
			out, _ := cmd.CombinedOutput()
			if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != code[:1] {
				t.Errorf("%s exits %s; want %s\n%s", line, got, code, out)
			}
			count++
		}
	}
	if count != want {
		t.Errorf("%s sends %d events; want %d", readme, count, want)
	}
}

type object = map[string]any

// event returns a tool.before of a shell, or with method hooks/observe a
// tool.after, as a harness would send it.
func event(version, id, method string, input any, effects ...string) object {
	tool := object{"name": "Bash", "kind": "shell", "input": input}
	e := object{
		"id": id, "source": "urn:example:harness", "type": "tool.before", "time": "2026-01-02T03:04:05Z",
		"session": object{"id": "session-1"}, "tool": tool,
	}
	capabilities := object{"effects": effects}
	params := object{"protocolVersion": version, "event": e, "capabilities": capabilities}
	message := object{"jsonrpc": "2.0", "id": id, "method": method, "params": params}
	if version == "0.1" {
		tool["callId"] = "call-1"
	} else {
		tool["origin"], e["path"], e["call"] = "native", "native", object{"id": "call-1"}
		e["harness"] = object{"name": "example", "version": "1"}
		params["state"] = object{"permission": "none", "candidate": nil}
		if slices.Contains(effects, "modify") {
			capabilities["modify"] = object{"input": object{"replace": true, "merge": true}}
		}
	}
	if method == "hooks/observe" {
		delete(message, "id")
		delete(params, "capabilities")
		delete(params, "state")
		e["type"] = "tool.after"
		if version == "0.1" {
			tool["output"] = "done"
		} else {
			e["outcome"], e["execution"], e["items"] = "ok", object{"status": "executed"}, []any{}
		}
	}
	return message
}

// post sends a message and returns the status and the answer, nil if there is no body.
func post(t *testing.T, url, token string, message any) (*http.Response, object) {
	t.Helper()
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return postText(t, url, token, "application/json", string(text))
}

var client = http.Client{Timeout: patience}

func postText(t *testing.T, url, token, media, text string) (*http.Response, object) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", media)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer := body(t, resp.Body)
	var decoded object
	if resp.Header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal([]byte(answer), &decoded); err != nil {
			t.Fatalf("answer %s: %v", answer, err)
		}
	} else if answer != "" && resp.StatusCode < 300 {
		t.Errorf("the answer to %.200s is %q; want a JSON answer or no body", text, answer)
	}
	return resp, decoded
}

// effects returns the effects of an answer, and its code if it is an error.
func effects(answer object) any {
	if e, ok := answer["error"].(object); ok {
		return e["code"]
	}
	result, _ := answer["result"].(object)
	return result["effects"]
}

// decision is one event and what every example has to say of it.
type decision struct {
	input   any
	effects []string // advertised
	want    []any
}

var all = []string{"deny", "ask", "modify"}

func denied(reason, code string) []any {
	return []any{object{"type": "deny", "reason": reason, "code": code}}
}

var forcePush = denied("Force pushes are not allowed.", "com.example.force_push")

// decisions are of both snapshots, except that 0.1 has no effect but deny.
var decisions = map[string]decision{
	"passed":          {object{"command": "git push"}, all, []any{}},
	"passed words":    {object{"command": []any{"git", "push"}, "timeout": 60000}, all, []any{}},
	"no force":        {object{"command": "git push --force-with-lease"}, all, []any{}},
	"force push":      {object{"command": "git push --force"}, all, forcePush},
	"force in a line": {object{"command": "cd x && git -C y push origin -f"}, all, forcePush},
	"force in words":  {object{"command": []any{"git", "push", "-f"}}, all, forcePush},
	"other case":      {object{"Command": "git push", "command": "git push -f"}, all, forcePush},
	"unreadable":      {object{"command": 7}, all, denied("The command cannot be read.", "com.example.unreadable")},
	"no command":      {object{}, all, denied("The command cannot be read.", "com.example.unreadable")},
	"mixed words":     {object{"command": []any{"git", 7}}, all, denied("The command cannot be read.", "com.example.unreadable")},
	"ask":             {object{"command": "kubectl delete pod x"}, all, []any{object{"type": "ask"}}},
	"cannot ask": {object{"command": "kubectl delete pod x"}, []string{"deny", "modify"},
		denied("Deleting in a cluster needs somebody's consent.", "com.example.cluster_delete")},
	"modify": {object{"command": "make", "timeout": 90000}, all,
		[]any{object{"type": "modify", "target": "input", "operation": "merge", "value": object{"timeout": 60000.0}}}},
	"cannot modify": {object{"command": "make", "timeout": 90000}, []string{"deny", "ask"},
		denied("Use a timeout of at most 60000 ms.", "com.example.timeout")},
	"modify and ask": {object{"command": "kubectl delete pod x", "timeout": 90000}, all, []any{
		object{"type": "modify", "target": "input", "operation": "merge", "value": object{"timeout": 60000.0}}, object{"type": "ask"}}},
}

// severalDenials breaks every rule where nothing but a deny is advertised. Which
// one is given is the example's, but it has to be one alone: 0.1 allows no more.
var severalDenials = object{"command": "kubectl delete pod x; git push -f", "timeout": 90000}

// TestBackends runs every example behind the gateway and by itself.
func TestBackends(t *testing.T) {
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			backend, direct := e.serve(t)
			url, audit := gateway(t, direct, token, e.spoken)
			for _, version := range e.versions {
				e.decide(t, version, direct, url)
				e.denyOnce(t, version, direct)
				resp, _ := post(t, url, "", event(version, "observed-"+version, "hooks/observe", object{"command": "ls"}))
				if resp.StatusCode != http.StatusNoContent {
					t.Errorf("hooks/observe of %s = %d; want 204", version, resp.StatusCode)
				}
				backend.wait(t, `observed "tool.after"`)
			}
			if e.name == "go" {
				sent(t, "README.md", 3, nil, map[string]string{"http://127.0.0.1:8787": strings.TrimSuffix(url, "/hooks")})
			}
			e.refuse(t, direct)
			e.failClosed(t, direct)
			if records := read(t, audit); strings.Contains(records, "failed_") {
				t.Errorf("the audit log says that the backend failed:\n%s", records)
			}
			e.drain(t, backend, direct)
		})
	}
}

// decide tries every decision directly and through the gateway. The answers
// are the same, because the gateway has one backend.
func (e example) decide(t *testing.T, version, direct, url string) {
	t.Helper()
	for name, d := range decisions {
		advertised := d.effects
		if version == "0.1" {
			if advertised = []string{"deny"}; len(d.want) > 0 && d.want[0].(object)["type"] != "deny" {
				continue
			}
		}
		id := version + " " + name
		for way, to := range map[string]string{"directly": direct, "through the gateway": url} {
			resp, answer := post(t, to, token, event(version, id, "hooks/intercept", d.input, advertised...))
			if got := effects(answer); !reflect.DeepEqual(got, any(d.want)) || answer["id"] != id || resp.ContentLength < 0 {
				t.Errorf("%s of %s, %s = %v with %d bytes; want %v", name, version, way, answer, resp.ContentLength, d.want)
			}
		}
	}
}

// denyOnce looks for one deny where there are reasons for several.
func (e example) denyOnce(t *testing.T, version, url string) {
	t.Helper()
	_, answer := post(t, url, token, event(version, "several-"+version, "hooks/intercept", severalDenials, "deny"))
	if got, _ := effects(answer).([]any); len(got) != 1 || got[0].(object)["type"] != "deny" {
		t.Errorf("several reasons to deny, %s = %v; want one deny", version, answer)
	}
}

// refuse sends what an example has to refuse.
func (e example) refuse(t *testing.T, url string) {
	t.Helper()
	intercept := func(edit func(message, params, event object)) object {
		m := event("draft", "evt-1", "hooks/intercept", object{"command": "ls"}, all...)
		edit(m, m["params"].(object), m["params"].(object)["event"].(object))
		return m
	}
	for name, tt := range map[string]struct {
		message any
		want    any // the error's code
	}{
		"no object":         {[]any{}, -32600.0},
		"no jsonrpc":        {intercept(func(m, _, _ object) { delete(m, "jsonrpc") }), -32600.0},
		"no method":         {intercept(func(m, _, _ object) { delete(m, "method") }), -32600.0},
		"id no string":      {intercept(func(m, _, _ object) { m["id"] = object{} }), -32600.0},
		"unknown method":    {intercept(func(m, _, _ object) { m["method"] = "hooks/other" }), -32601.0},
		"unknown version":   {intercept(func(_, p, _ object) { p["protocolVersion"] = "9" }), -32001.0},
		"unsupported event": {intercept(func(_, _, e object) { e["type"] = "session.start" }), nil},
		"other id":          {intercept(func(_, _, e object) { e["id"] = "evt-2" }), -32602.0},
		"no tool":           {intercept(func(_, _, e object) { delete(e, "tool") }), -32602.0},
		"no capabilities":   {intercept(func(_, p, _ object) { delete(p, "capabilities") }), -32602.0},
		"no params":         {intercept(func(m, _, _ object) { delete(m, "params") }), nil},
	} {
		resp, answer := post(t, url, token, tt.message)
		code, isNumber := effects(answer).(float64)
		if resp.StatusCode != http.StatusOK || !isNumber || tt.want != nil && code != tt.want {
			t.Errorf("%s = %d, %v; want the error %v", name, resp.StatusCode, answer, tt.want)
		}
	}
	if _, answer := postText(t, url, token, "application/json", "{"); effects(answer) != -32700.0 {
		t.Errorf("no JSON = %v; want the error -32700", answer)
	}
	message, _ := json.Marshal(intercept(func(_, _, _ object) {}))
	large := strings.Replace(string(message), `"ls"`, `"`+strings.Repeat("x", 2<<20)+`"`, 1)
	for name, tt := range map[string]struct {
		url, token, media, text string
		want                    int
	}{
		"with its parameters":  {url, token, "application/json; charset=utf-8", string(message), 200},
		"no token":             {url, "", "application/json", string(message), 401},
		"wrong token":          {url, token + "x", "application/json", string(message), 401},
		"other media type":     {url, token, "text/plain", string(message), 415},
		"too large":            {url, token, "application/json", large, 413},
		"other path":           {url + "/x", token, "application/json", string(message), 404},
		"wrong notification":   {url, token, "application/json", `{"jsonrpc":"2.0","method":"hooks/observe"}`, 204},
		"unknown notification": {url, token, "application/json", `{"jsonrpc":"2.0","method":"x"}`, 204},
	} {
		resp, _ := postText(t, tt.url, tt.token, tt.media, tt.text)
		if resp.StatusCode != tt.want || (tt.want == 401) != (resp.Header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s = %d, %v; want %d", name, resp.StatusCode, resp.Header, tt.want)
		}
	}
	req, _ := http.NewRequest(http.MethodGet, url, nil)
	req.Header.Set("Authorization", "Bearer "+token)
	for _, tt := range []struct {
		path string
		want int
	}{{"/ahp", 405}, {"/healthz", 200}} {
		req.URL.Path = tt.path
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != tt.want {
			t.Errorf("GET %s = %d; want %d", tt.path, resp.StatusCode, tt.want)
		}
		req.Header.Del("Authorization") // health needs no token
	}
}

// failClosed has the gateway come with a wrong token: its harness is denied.
func (e example) failClosed(t *testing.T, direct string) {
	t.Helper()
	url, audit := gateway(t, direct, "wrong", func(text string) string {
		subscriptions := "subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 30000, failurePolicy: fail-closed, content: {default: omit}}]\n"
		bearer := "authentication: {type: bearer, tokenEnv: POLICY_TOKEN}\n"
		return strings.Replace(e.spoken(text), bearer, bearer+"        "+subscriptions, 1)
	})
	for _, version := range e.versions {
		_, answer := post(t, url, "", event(version, "wrong-"+version, "hooks/intercept", object{"command": "ls"}, "deny"))
		want := denied("Required policy backend unavailable.", "io.ahp-gateway.fail_closed")
		if got := effects(answer); !reflect.DeepEqual(got, any(want)) {
			t.Errorf("with a wrong token, %s = %v; want %v", version, got, want)
		}
	}
	deadline := time.Now().Add(patience)
	for strings.Count(read(t, audit), `"failed_closed"`) < len(e.versions) {
		if time.Now().After(deadline) {
			t.Fatalf("the audit log has not %d times failed_closed:\n%s", len(e.versions), read(t, audit))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// drain ends an example while a message is on its way: that is answered, nobody
// else is let in, and then it ends by itself.
func (e example) drain(t *testing.T, backend *process, url string) {
	t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/ahp")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	message, _ := json.Marshal(event("draft", "last", "hooks/intercept", object{"command": "git push -f"}, "deny"))
	fmt.Fprintf(conn, "POST /ahp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		token, len(message))
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("the head of a message is answered %q, %v; want 100", line, err)
	}
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	backend.terminate(t)
	for deadline := time.Now().Add(patience); ; {
		c, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		c.Close()
		if time.Now().After(deadline) {
			t.Fatal("after SIGTERM it still accepts connections")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := conn.Write(message); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("what was begun before SIGTERM: %v; want its answer", err)
	}
	if got := body(t, resp.Body); !strings.Contains(got, "com.example.force_push") {
		t.Errorf("what was begun before SIGTERM = %s; want the deny", got)
	}
	// uvicorn ends by the signal that it was sent, after the orderly end.
	if code := backend.ended(t); code != 0 && (e.name != "python" || code != -1) {
		t.Errorf("after SIGTERM it ends with %d; want 0", code)
	}
}
