package samplepolicy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testdata(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func post(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func demoRules(t testing.TB) http.Handler {
	t.Helper()
	rules, err := DefaultRules()
	if err != nil {
		t.Fatal(err)
	}
	return Rules(rules)
}

// send returns status and body of the answer to one message.
func send(h http.Handler, body string) (int, string) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, post(body))
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

func TestAnswers(t *testing.T) {
	const deny = `[{"type":"deny","reason":"A force push can destroy the work of others.","code":"io.ahp-gateway.demo.force_push"}]`
	for file, want := range map[string]string{
		"denied-0.1.json":   `{"jsonrpc":"2.0","id":"evt-1","result":{"protocolVersion":"0.1","effects":` + deny + `}}`,
		"passed-0.1.json":   `{"jsonrpc":"2.0","id":"evt-1","result":{"protocolVersion":"0.1","effects":[]}}`,
		"denied-draft.json": `{"jsonrpc":"2.0","id":"evt-2","result":{"protocolVersion":"draft","effects":` + deny + `}}`,
		"passed-draft.json": `{"jsonrpc":"2.0","id":"evt-2","result":{"protocolVersion":"draft","effects":[]}}`,
	} {
		rec := httptest.NewRecorder()
		r := post(testdata(t, file))
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		demoRules(t).ServeHTTP(rec, r)
		got, mediaType := strings.TrimSpace(rec.Body.String()), rec.Header().Get("Content-Type")
		if rec.Code != 200 || mediaType != "application/json" || got != want {
			t.Errorf("POST %s = %d %s %s; want 200 application/json %s", file, rec.Code, mediaType, got, want)
		}
	}
}

// Each case changes one thing in a message that is denied otherwise.
func TestErrors(t *testing.T) {
	h := demoRules(t)
	for _, tt := range []struct {
		file, old, new string
		want           string // the id and code of the error
	}{
		{"denied-0.1.json", `{"jsonrpc"`, "\ufeff" + `{"jsonrpc"`, "null -32700"},
		{"denied-0.1.json", `{"jsonrpc"`, `{"jsonrpc`, "null -32700"},
		{"denied-0.1.json", `}}}}}`, `}}}}} {}`, "null -32700"},
		{"denied-0.1.json", `"Bash"`, "\"B\xff\"", "null -32700"},
		{"denied-0.1.json", `"input": {`, `"input": {"command": "ls", `, "null -32700"},
		{"denied-0.1.json", `"input": {`, `"input": {"\u0063ommand": "ls", `, "null -32700"},
		{"denied-0.1.json", `"git push --force"`, strings.Repeat("[", 200) + strings.Repeat("]", 200), "null -32700"},
		{"denied-0.1.json", `{"jsonrpc"`, `[{"jsonrpc"`, "null -32700"},
		{"denied-0.1.json", `"id": "evt-1", "method"`, `"id": null, "method"`, "null -32600"},
		{"denied-0.1.json", `"id": "evt-1", "method"`, `"id": {}, "method"`, "null -32600"},
		{"denied-0.1.json", `"2.0"`, `"1.0"`, `"evt-1" -32600`},
		{"denied-0.1.json", `"hooks/intercept"`, `1`, `"evt-1" -32600`},
		{"denied-0.1.json", `"hooks/intercept"`, `"hooks/observe"`, `"evt-1" -32600`},
		{"denied-0.1.json", `"hooks/intercept"`, `"hooks/configuration"`, `"evt-1" -32601`},
		{"denied-0.1.json", `"id": "evt-1", "method": "hooks/intercept"`, `"id": 7, "method": "x"`, "7 -32601"},
		{"denied-0.1.json", `"0.1"`, `"0.2"`, `"evt-1" -32001`},
		{"denied-0.1.json", `"0.1"`, `1`, `"evt-1" -32602`},
		{"denied-0.1.json", `"params"`, `"Params"`, `"evt-1" -32602`},
		{"denied-0.1.json", `"id": "evt-1", "method"`, `"id": "evt-2", "method"`, `"evt-2" -32602`},
		{"denied-0.1.json", `"id": "evt-1", "method"`, `"id": 1, "method"`, `1 -32602`},
		{"denied-0.1.json", `["deny"]`, `"deny"`, `"evt-1" -32602`},
		{"denied-0.1.json", `["deny"]`, `[{}]`, `"evt-1" -32602`},
		{"denied-0.1.json", `"tool.before"`, `"tool.after"`, `"evt-1" -32002`},
		{"denied-0.1.json", `"tool.before"`, `"tool.between"`, `"evt-1" -32002`},
		{"denied-0.1.json", `"tool.before"`, `null`, `"evt-1" -32602`},
		{"denied-0.1.json", `"callId"`, `"x"`, `"evt-1" -32602`},
		{"denied-0.1.json", `"shell"`, `"Shell"`, `"evt-1" -32602`},
		{"denied-0.1.json", `"session"`, `"x"`, `"evt-1" -32602`},
		{"denied-0.1.json", `{"command": "git push --force"}`, `"git push --force"`, `"evt-1" -32602`},
		{"denied-0.1.json", `"input"`, `"Input"`, `"evt-1" -32602`},
		{"denied-draft.json", `"draft"`, `"0.1"`, `"evt-2" -32602`},
		{"denied-draft.json", `"call"`, `"x"`, `"evt-2" -32602`},
		{"denied-draft.json", `"origin"`, `"x"`, `"evt-2" -32602`},
		{"denied-draft.json", `"path"`, `"x"`, `"evt-2" -32602`},
		{"denied-draft.json", `"harness"`, `"x"`, `"evt-2" -32602`},
		{"denied-draft.json", `"tool.before"`, `"turn.start"`, `"evt-2" -32002`},
	} {
		body := testdata(t, tt.file)
		if !strings.Contains(body, tt.old) {
			t.Fatalf("%s holds no %s", tt.file, tt.old)
		}
		status, got := send(h, strings.Replace(body, tt.old, tt.new, 1))
		var ans struct {
			ID     json.RawMessage
			Result json.RawMessage
			Error  struct {
				Code    json.Number
				Message string
				Data    json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(got), &ans); err != nil {
			t.Errorf("%s with %.60s = %s; want JSON", tt.file, tt.new, got)
			continue
		}
		if is := string(ans.ID) + " " + ans.Error.Code.String(); status != 200 || is != tt.want || ans.Result != nil || ans.Error.Message == "" {
			t.Errorf("%s with %.60s = %d %s; want 200 and id and code %s", tt.file, tt.new, status, got, tt.want)
		}
		data := ""
		if ans.Error.Code == "-32001" {
			data = `{"supported":["0.1","draft"]}`
		}
		if string(ans.Error.Data) != data {
			t.Errorf("%s with %.60s: data = %s; want %s", tt.file, tt.new, ans.Error.Data, data)
		}
	}
	for _, body := range []string{`[]`, `1`, `{}`, `"x"`, `{"jsonrpc": "2.0"}`, `{"method": "hooks/observe"}`} {
		if status, got := send(h, body); status != 200 || !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`) {
			t.Errorf("POST %s = %d %s; want 200 and -32600 with id null", body, status, got)
		}
	}
}

// Unknown members are ignored, also those whose names differ in case only.
func TestUnknownMembers(t *testing.T) {
	for _, file := range []string{"denied-0.1.json", "denied-draft.json"} {
		body := strings.Replace(testdata(t, file), `"name": "Bash"`, `"name": "Bash", "Input": {"command": "ls"}, "INPUT": {}`, 1)
		if _, got := send(demoRules(t), body); !strings.Contains(got, `"type":"deny"`) {
			t.Errorf("POST %s with Input and INPUT beside input = %s; want a denial", file, got)
		}
	}
}

// Kinds that only draft has say nothing, so that they cannot hide a call.
func TestDraftKinds(t *testing.T) {
	for kind, want := range map[string]bool{"shell": true, "terminal": true, "file_write": false} {
		body := strings.Replace(testdata(t, "denied-draft.json"), `"name": "Bash"`, `"name": "Bash", "kind": "`+kind+`"`, 1)
		if _, got := send(demoRules(t), body); strings.Contains(got, `"type":"deny"`) != want {
			t.Errorf("POST with kind %s = %s; want denied %v", kind, got, want)
		}
	}
}

func TestNotifications(t *testing.T) {
	for _, body := range []string{
		`{"jsonrpc": "2.0", "method": "hooks/observe", "params": {"protocolVersion": "0.1", "event": {"id": "e", "type": "tool.after"}}}`,
		`{"jsonrpc": "2.0", "method": "hooks/observe", "params": {"protocolVersion": "draft", "event": {"id": "e", "type": "turn.start"}}}`,
		`{"jsonrpc": "2.0", "method": "hooks/observe", "params": {"protocolVersion": "9"}}`,
		`{"jsonrpc": "2.0", "method": "hooks/observe"}`,
		`{"jsonrpc": "2.0", "method": "nothing/known", "params": []}`,
		strings.Replace(testdata(t, "denied-0.1.json"), `"id": "evt-1", "method"`, `"method"`, 1),
	} {
		if status, got := send(Secrets(), body); status != http.StatusNoContent || got != "" {
			t.Errorf("POST %s = %d %q; want 204 without body", body, status, got)
		}
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestHTTPStatuses(t *testing.T) {
	body := testdata(t, "denied-0.1.json")
	for name, tt := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"GET":            {func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"PUT":            {func(r *http.Request) { r.Method = http.MethodPut }, 405},
		"no media type":  {func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"text":           {func(r *http.Request) { r.Header.Set("Content-Type", "text/json") }, 415},
		"bad media type": {func(r *http.Request) { r.Header.Set("Content-Type", "application/json;") }, 200},
		"encoded":        {func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, 415},
		"limit": {func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(body + strings.Repeat(" ", maxBody-len(body))))
		}, 200},
		"above the limit": {func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(body + strings.Repeat(" ", maxBody-len(body)+1)))
		}, 413},
		"broken": {func(r *http.Request) { r.Body = io.NopCloser(brokenBody{}) }, 400},
	} {
		r, rec := post(body), httptest.NewRecorder()
		tt.change(r)
		demoRules(t).ServeHTTP(rec, r)
		if rec.Code != tt.want {
			t.Errorf("%s: status = %d; want %d", name, rec.Code, tt.want)
		}
		if allow := rec.Header().Get("Allow"); (allow == "POST") != (tt.want == 405) {
			t.Errorf("%s: Allow = %q; want POST with 405 only", name, allow)
		}
	}
}

func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, demoRules(t)) }()
	resp, err := http.Post("http://"+l.Addr().String()+"/any/path", "application/json", strings.NewReader(testdata(t, "denied-draft.json")))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	if !strings.Contains(string(got), `"type":"deny"`) {
		t.Errorf("POST denied-draft.json = %s; want a denial", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve after cancel = %v; want nil", err)
	}
	if err := Serve(t.Context(), l, demoRules(t)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve(closed listener) = %v; want %v", err, net.ErrClosed)
	}
}

// Whatever is posted, the answer is a 204 or one JSON-RPC response.
func FuzzServeHTTP(f *testing.F) {
	for _, file := range []string{"denied-0.1.json", "passed-0.1.json", "denied-draft.json", "passed-draft.json"} {
		f.Add(testdata(f, file))
	}
	rules := demoRules(f)
	f.Fuzz(func(t *testing.T, body string) {
		for _, h := range []http.Handler{rules, Secrets()} {
			status, got := send(h, body)
			if status == http.StatusNoContent && got == "" {
				continue
			}
			var ans map[string]any
			if err := json.Unmarshal([]byte(got), &ans); err != nil || status != 200 || len(ans) != 3 {
				t.Errorf("POST %q = %d %s; want 204 or a response", body, status, got)
			}
		}
	})
}
