package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// edit replaces each old by new in a message; it panics on an old that is not
// there, so that a case cannot test something else by accident.
func edit(message string, oldnew ...string) string {
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(message, oldnew[i]) {
			panic("no " + oldnew[i] + " in " + message)
		}
		message = strings.Replace(message, oldnew[i], oldnew[i+1], 1)
	}
	return message
}

// AHP-RPC-001, AHP-VER-001: what is wrong with a message, as code and id. Where
// several things are, the first check decides: parse, envelope, method,
// version, params, event.
func TestMessageErrors(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open("["+registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))+", "+
		registration("draft", hook("com.example.b", b.URL, intercepts("draft", "fail-closed", 5000)))+"]"))
	const unchanged = `"id":"e","method"`
	for _, c := range []struct {
		name, body string
		code       int
		id         string
	}{
		{"nothing", "", -32700, "null"},
		{"blanks", " \n", -32700, "null"},
		{"half an object", `{"jsonrpc":"2.0","id":"e"`, -32700, "null"},
		{"trailing bytes", event01("e") + "x", -32700, "null"},
		{"two messages", event01("e") + event01("e"), -32700, "null"},
		{"trailing comma", edit(event01("e"), `"deny"]}}}`, `"deny"]},}}`), -32700, "null"},
		{"byte order mark", "\xef\xbb\xbf" + event01("e"), -32700, "null"},
		{"invalid UTF-8", edit(event01("e"), "git status", "git \xff"), -32700, "null"},
		{"overlong UTF-8", edit(event01("e"), "git status", "git \xc0\xaf"), -32700, "null"},
		{"lone surrogate", edit(event01("e"), "git status", `git \ud800`), -32700, "null"},
		{"duplicate member", edit(event01("e"), `"id":"e","method"`, `"id":"e","id":"e","method"`), -32700, "null"},
		{"duplicate member, escaped", edit(event01("e"), `"name":"Bash"`, `"name":"Bash","n\u0061me":"Ls"`), -32700, "null"},
		{"duplicate member in opaque input", edit(event01("e"), `"command":"git status"`, `"a":1,"a":2`), -32700, "null"},
		{"NaN", edit(event01("e"), `"git status"`, `NaN`), -32700, "null"},
		{"comment", "// c\n" + event01("e"), -32700, "null"},
		{"too deep", edit(event01("e"), `"git status"`, strings.Repeat("[", 200)+strings.Repeat("]", 200)), -32700, "null"},
		{"much too deep", strings.Repeat("[", 100_000), -32700, "null"},

		{"batch", "[" + event01("e") + "]", -32600, "null"},
		{"empty batch", "[]", -32600, "null"},
		{"string", `"hooks/intercept"`, -32600, "null"},
		{"null", "null", -32600, "null"},
		{"empty object", "{}", -32600, "null"},
		{"no jsonrpc", edit(event01("e"), `"jsonrpc":"2.0",`, ``), -32600, "null"},
		{"jsonrpc 1.0", edit(event01("e"), `"2.0"`, `"1.0"`), -32600, "null"},
		{"jsonrpc a number", edit(event01("e"), `"2.0"`, `2.0`), -32600, "null"},
		{"id a fraction", edit(event01("e"), unchanged, `"id":1.5,"method"`), -32600, "null"},
		{"id an object", edit(event01("e"), unchanged, `"id":{},"method"`), -32600, "null"},
		{"id a boolean", edit(event01("e"), unchanged, `"id":true,"method"`), -32600, "null"},
		{"no method", edit(event01("e"), `"method":"hooks/intercept",`, ``), -32600, "null"},
		{"method a number", edit(event01("e"), `"hooks/intercept"`, `1`), -32600, "null"},
		{"envelope before method and version", edit(event01("e"), `"2.0"`, `"1.0"`, "hooks/intercept", "x", `"0.1"`, `"9"`), -32600, "null"},

		{"unknown method", edit(event01("e"), "hooks/intercept", "hooks/other"), -32601, `"e"`},
		{"method in another case", edit(event01("e"), "hooks/intercept", "hooks/Intercept"), -32601, `"e"`},
		{"unknown method, integer id", edit(event01("e"), unchanged, `"id":7,"method"`, "hooks/intercept", "x"), -32601, `7`},
		{"unknown method, null id", edit(event01("e"), unchanged, `"id":null,"method"`, "hooks/intercept", "x"), -32601, `null`},
		{"method before version", edit(event01("e"), "hooks/intercept", "x", `"0.1"`, `"9"`), -32601, `"e"`},
		{"capabilities in 0.1", `{"jsonrpc":"2.0","id":"c","method":"hooks/capabilities","params":{"protocolVersion":"0.1"}}`, -32601, `"c"`},
		{"configuration in 0.1", `{"jsonrpc":"2.0","id":"c","method":"hooks/configuration","params":{"protocolVersion":"0.1"}}`, -32601, `"c"`},

		{"unknown version", edit(event01("e"), `"0.1"`, `"0.2"`), -32001, `"e"`},
		{"version of a patch", edit(event01("e"), `"0.1"`, `"0.1.0"`), -32001, `"e"`},
		{"version empty", edit(event01("e"), `"0.1"`, `""`), -32001, `"e"`},
		{"version before params", edit(event01("e"), `"0.1"`, `"9"`, `"event"`, `"evt"`), -32001, `"e"`},

		{"no params", `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept"}`, -32602, `"e"`},
		{"params a list", `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":[]}`, -32602, `"e"`},
		{"no version", edit(event01("e"), `"protocolVersion":"0.1",`, ``), -32602, `"e"`},
		{"version a number", edit(event01("e"), `"0.1"`, `0.1`), -32602, `"e"`},
		{"no event", edit(event01("e"), `"event"`, `"evt"`), -32602, `"e"`},
		{"id is not the event's", edit(event01("e"), unchanged, `"id":"f","method"`), -32602, `"f"`},
		{"id a number where the event's is a string", edit(event01("7"), `"id":"7","method"`, `"id":7,"method"`), -32602, `7`},
		{"id null", edit(event01("e"), unchanged, `"id":null,"method"`), -32602, `null`},
		{"event id empty", edit(event01("e"), `"event":{"id":"e"`, `"event":{"id":""`), -32602, `"e"`},
		{"source relative", edit(event01("e"), "urn:example:harness", "harness"), -32602, `"e"`},
		{"time no time", edit(event01("e"), "2026-01-02T03:04:05Z", "yesterday"), -32602, `"e"`},
		{"no session in 0.1", edit(event01("e"), `"session":{"id":"session-1"},`, ``), -32602, `"e"`},
		{"no capabilities", edit(event01("e"), `"capabilities"`, `"cap"`), -32602, `"e"`},
		{"no deny", edit(event01("e"), `["deny"]`, `[]`), -32602, `"e"`},
		{"unknown kind", edit(event01("e"), `"shell"`, `"teapot"`), -32602, `"e"`},
		{"input a string", edit(event01("e"), `{"command":"git status"}`, `"git status"`), -32602, `"e"`},
		{"observe with an id", edit(event01("e"), "hooks/intercept", "hooks/observe"), -32602, `"e"`},
		{"draft without harness", edit(eventDraft("e"), `"harness":{"name":"h","version":"1"},`, ``), -32602, `"e"`},
		{"draft with bad state", edit(eventDraft("e"), `"permission":"none"`, `"permission":"maybe"`), -32602, `"e"`},
		{"params before event", edit(event01("e"), `["deny"]`, `[]`, "tool.before", "x"), -32602, `"e"`},

		{"unknown event", edit(event01("e"), "tool.before", "tool.sideways"), -32002, `"e"`},
		{"event that 0.1 observes only", edit(event01("e"), "tool.before", "tool.after"), -32002, `"e"`},
		{"event that draft observes only", edit(eventDraft("e"), "tool.before", "session.end"), -32002, `"e"`},
	} {
		a := r.post("/hooks", c.body)
		switch {
		case a.status != http.StatusOK || a.header.Get("Content-Type") != "application/json":
			t.Errorf("%s = %d %s %s; want a JSON-RPC error with status 200", c.name, a.status, a.header.Get("Content-Type"), a.body)
		case a.Error == nil || a.Error.Code != c.code || string(a.ID) != c.id || a.Result != nil || a.Error.Message == "":
			t.Errorf("%s = %s; want error %d and id %s", c.name, a.body, c.code, c.id)
		case (a.Error.Data != nil) != (c.code == -32001):
			t.Errorf("%s = %s; want data with -32001 and only there", c.name, a.body)
		}
	}
	if n := b.Count(); n != 0 {
		t.Errorf("the backend was called %d times by invalid messages; want 0", n)
	}
}

// AHP-VER-001: an unsupported version is told the tenant's, not the gateway's.
func TestSupportedVersions(t *testing.T) {
	b := fakebackend.Start(t)
	doc := func(v string) string {
		return registration(v, hook("com.example.b", b.URL, intercepts(v, "fail-closed", 5000)))
	}
	for _, c := range []struct {
		name, docs, body, want string
	}{
		{"only 0.1, asked in draft", doc("0.1"), eventDraft("e"), `{"supported":["0.1"]}`},
		{"only draft, asked in 0.1", doc("draft"), event01("e"), `{"supported":["draft"]}`},
		{"only 0.1, asked in another", doc("0.1"), edit(event01("e"), `"0.1"`, `"1.0"`), `{"supported":["0.1"]}`},
		{"both, asked in another", "[" + doc("draft") + "," + doc("0.1") + "]", edit(event01("e"), `"0.1"`, `"1.0"`), `{"supported":["0.1","draft"]}`},
	} {
		r := start(t, open(c.docs))
		a := r.post("/hooks", c.body)
		if a.Error == nil || a.Error.Code != -32001 || string(a.Error.Data) != c.want || string(a.ID) != `"e"` {
			t.Errorf("%s = %s; want -32001 with data %s", c.name, a.body, c.want)
		}
		r.stop()
	}
}

// AHP-RPC-001: a notification is never answered, whatever is wrong with it.
func TestNotificationsAreNotAnswered(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, `"events":["tool.after"],"mode":"observe"`))))
	const tool = `,"session":{"id":"s"},"tool":{"callId":"c","name":"n","kind":"shell","input":{}}`
	for _, c := range []struct{ name, body string }{
		{"good", notification("0.1", "good", "tool.after", tool)},
		{"again", notification("0.1", "good", "tool.after", tool)},
		{"unknown method", edit(notification("0.1", "x", "tool.after", tool), "hooks/observe", "hooks/other")},
		{"intercept", edit(event01("e"), `"id":"e","method"`, `"method"`)},
		{"capabilities", `{"jsonrpc":"2.0","method":"hooks/capabilities","params":{"protocolVersion":"draft"}}`},
		{"configuration", `{"jsonrpc":"2.0","method":"hooks/configuration","params":{"protocolVersion":"draft"}}`},
		{"unknown version", notification("9", "x", "tool.after", tool)},
		{"version without a document", notification("draft", "x", "tool.after", tool+`,"harness":{"name":"h","version":"1"}`)},
		{"no params", `{"jsonrpc":"2.0","method":"hooks/observe"}`},
		{"no event", `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"0.1"}}`},
		{"unknown event", notification("0.1", "x", "tool.sideways", tool)},
		{"event that is not observed in 0.1", notification("0.1", "x", "tool.before", tool)},
		{"no tool", notification("0.1", "x", "tool.after", `,"session":{"id":"s"}`)},
	} {
		a := r.post("/hooks", c.body)
		if a.status != http.StatusNoContent || a.body != "" || a.header.Get("Content-Type") != "" {
			t.Errorf("%s = %d %q, Content-Type %q; want 204 without body and type", c.name, a.status, a.body, a.header.Get("Content-Type"))
		}
	}
	r.stop()
	if got := seen(b.Requests()); got != "observe good" {
		t.Errorf("the observer got %q; want the good notification once", got)
	}
}

// The checks before there is a message: path, method, media type.
func TestHTTPErrors(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	for i, c := range []struct {
		method, path, mediaType string
		want                    int
	}{
		{"POST", "/", "application/json", 404},
		{"GET", "/", "", 404},
		{"POST", "/hook", "application/json", 404},
		{"POST", "/hooks/", "application/json", 404},
		{"POST", "/hooks/default", "application/json", 404},
		{"POST", "/t/default", "application/json", 404},
		{"POST", "/t/hooks", "application/json", 404},
		{"POST", "/x/t/default/hooks", "application/json", 404},
		{"GET", "/hooks", "application/json", 405},
		{"HEAD", "/hooks", "", 405},
		{"PUT", "/hooks", "application/json", 405},
		{"PATCH", "/t/default/hooks", "application/json", 405},
		{"DELETE", "/hooks", "", 405},
		{"OPTIONS", "/hooks", "", 405},
		{"POST", "/hooks", "", 415},
		{"POST", "/hooks", "text/plain", 415},
		{"POST", "/hooks", "application/jsonx", 415},
		{"POST", "/hooks", "application/json-rpc", 415},
		{"POST", "/hooks", "application/problem+json", 415},
		{"POST", "/hooks", "application", 415},
		{"POST", "/hooks", "application/*", 415},
		{"POST", "/hooks", "application/json, application/json", 415},
		{"POST", "/hooks", "application/x-www-form-urlencoded", 415},
		{"POST", "/hooks", "multipart/form-data; boundary=x", 415},
		{"POST", "/hooks", "application/json;charset=utf-8", 200},
		{"POST", "/hooks", "application/json ; charset=\"utf-8\"", 200},
		{"POST", "/hooks", "Application/Json", 200},
		{"POST", "/hooks?trace=1", "application/json", 200},
	} {
		req, err := http.NewRequest(c.method, r.URL()+c.path, strings.NewReader(event01(fmt.Sprint("e", i))))
		if err != nil {
			t.Fatal(err)
		}
		if c.method != "POST" {
			req.Body, req.ContentLength = nil, 0
		}
		if c.mediaType != "" {
			req.Header.Set("Content-Type", c.mediaType)
		}
		a := r.do(req)
		if a.status != c.want {
			t.Errorf("%s %s as %q = %d; want %d", c.method, c.path, c.mediaType, a.status, c.want)
		}
		if got := a.header.Get("Allow"); (got == "POST") != (c.want == 405) {
			t.Errorf("%s %s: Allow %q; want POST with 405 and only there", c.method, c.path, got)
		}
		if c.want != 200 && (a.Error != nil || strings.Contains(a.body, "jsonrpc")) {
			t.Errorf("%s %s: %s; want no JSON-RPC outside of 200", c.method, c.path, a.body)
		}
	}
}

// An event with an id that needs escapes is answered with the same bytes.
func TestIDIsEchoed(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	for _, id := range []string{`é`, `\u00e9\/\"`, `😀`, `\ud83d\ude00`, `a\u0000b`, strings.Repeat("x", 10_000)} {
		a := r.post("/hooks", event01(id))
		if a.decision() != "pass" || string(a.ID) != `"`+id+`"` {
			t.Errorf("id %.20s = %.200s; want pass with the id byte for byte", id, a.body)
		}
	}
}

// What a caller writes is repeated nowhere but in the id of the answer and,
// cut to a bound, in the audit record: not in answers, the process log or what
// operators read.
func TestCallerTextStaysOut(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	b := fakebackend.Start(t, fakebackend.WithScript(func(n int, _ *fakebackend.Request) string {
		return []string{"pass", "deny:no", "status-500", "bad-json"}[n%4]
	}))
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))),
		func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
	canary := "canary" + strings.Repeat("y", 600)
	// The id is another word: it is the one thing that is echoed.
	planted := edit(event01("e"), "urn:example:harness", "urn:"+canary, "session-1", canary, "call-1", canary, "Bash", canary,
		"git status", canary, `"input":{`, `"`+canary+`":"`+canary+`","input":{"`+canary+`":1,`,
		`"capabilities"`, `"`+canary+`":[],"capabilities"`)
	var bodies []string
	for i := range 4 {
		bodies = append(bodies, edit(planted, `"id":"e","method"`, fmt.Sprintf(`"id":"e%d","method"`, i), `"event":{"id":"e"`, fmt.Sprintf(`"event":{"id":"e%d"`, i)))
	}
	decided := len(bodies)
	for _, c := range [][2]string{
		{"hooks/intercept", canary}, {`"0.1"`, `"` + canary + `"`}, {`"2.0"`, `"` + canary + `"`}, {"tool.before", canary},
		{"2026-01-02T03:04:05Z", canary}, {"urn:example:harness", canary}, {`"shell"`, `"` + canary + `"`},
		{`["deny"]`, `["deny","` + canary + `"]`}, {`"session":{"id"`, `"session":{"` + canary + `"`}, {`"tool":{`, `"tool":"` + canary + `","t":{`},
		{`{"jsonrpc"`, canary + `{"jsonrpc"`}, {`"params":{`, `"params":{"` + canary + `":1,"` + canary + `":2,`},
	} {
		bodies = append(bodies, edit(event01("e"), c[0], c[1]))
	}
	for i, body := range bodies {
		a := r.post("/hooks?"+canary, body, "X-Canary: "+canary, "Authorization: "+canary, "User-Agent: "+canary, "traceparent: "+canary)
		if a.status != http.StatusOK || strings.Contains(a.body+fmt.Sprint(a.header), "canary") {
			t.Errorf("answer to message %d = %d %s; want 200 and nothing of the caller's", i, a.status, a.body)
		}
		if (a.Error == nil) != (i < decided) {
			t.Errorf("answer to message %d = %s; want a decision for the first %d and errors for the others", i, a.body, decided)
		}
	}
	for _, path := range []string{"/t/" + canary + "/hooks", "/" + canary} {
		if a := r.post(path, event01("e"), "Content-Type: "+canary); a.status < 400 || strings.Contains(a.body+fmt.Sprint(a.header), "canary") {
			t.Errorf("POST %.20s = %d %s; want an error and nothing of the caller's", path, a.status, a.body)
		}
	}
	for _, path := range []string{"/admin/config", "/admin/backends", "/readyz"} {
		if _, body := r.get(path); strings.Contains(body, "canary") {
			t.Errorf("GET %s quotes a caller: %s", path, body)
		}
	}

	for _, record := range r.audit.await(decided) {
		if record["event_id"] == nil || record["tool"] == nil {
			t.Errorf("audit record %v; want the event's own words", record)
		}
		if record["input"] != nil {
			t.Errorf("audit record %v; want no input unless it is asked for", record)
		}
		for name, value := range record {
			if s, ok := value.(string); ok && len(s) > 256 {
				t.Errorf("audit record: %s has %d bytes; want at most 256", name, len(s))
			}
		}
		whole, err := json.Marshal(record)
		if err != nil || len(whole) > 4<<10 {
			t.Errorf("audit record of %d bytes, %v; want at most 4 KiB", len(whole), err)
		}
	}
	r.stop()
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(log.String(), "canary") {
		t.Errorf("the log quotes a caller: %s", log.String())
	}
}
