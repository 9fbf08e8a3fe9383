package ahp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestAppendResult(t *testing.T) {
	deny := []byte(`{"type":"deny","reason":"r"}`)
	for _, test := range []struct {
		id      []byte
		v       Version
		effects [][]byte
		want    string
	}{
		{[]byte(`"a\u0062"`), V01, nil, `{"jsonrpc":"2.0","id":"a\u0062","result":{"protocolVersion":"0.1","effects":[]}}`},
		{[]byte(`7`), Draft, [][]byte{deny}, `{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"r"}]}}`},
		{nil, V01, [][]byte{deny, []byte(`{}`)}, `{"jsonrpc":"2.0","id":null,"result":{"protocolVersion":"0.1","effects":[{"type":"deny","reason":"r"},{}]}}`},
	} {
		if got := string(AppendResult([]byte("x"), test.id, test.v, test.effects...)); got != "x"+test.want {
			t.Errorf("AppendResult(x, %s, %v, %s) = %s; want x%s", test.id, test.v, test.effects, got, test.want)
		}
	}
}

func TestAppendError(t *testing.T) {
	for _, test := range []struct {
		id        []byte
		err       Error
		supported []Version
		want      string
	}{
		{nil, Error{CodeParse, "Parse error"}, nil, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`},
		{[]byte(`"e"`), Error{CodeInvalidRequest, `jsonrpc is not "2.0"`}, nil, `{"jsonrpc":"2.0","id":"e","error":{"code":-32600,"message":"jsonrpc is not \"2.0\""}}`},
		{[]byte(`"e"`), Error{CodeUnsupportedVersion, "v"}, Versions[:], `{"jsonrpc":"2.0","id":"e","error":{"code":-32001,"message":"v","data":{"supported":["0.1","draft"]}}}`},
		{[]byte(`"e"`), Error{CodeUnsupportedVersion, "v"}, []Version{V01}, `{"jsonrpc":"2.0","id":"e","error":{"code":-32001,"message":"v","data":{"supported":["0.1"]}}}`},
		{[]byte(`1`), Error{CodeUnavailable, "u"}, Versions[:], `{"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"u"}}`},
	} {
		if got := string(AppendError([]byte("x"), test.id, &test.err, test.supported...)); got != "x"+test.want {
			t.Errorf("AppendError(x, %s, %+v, %v) = %s; want x%s", test.id, test.err, test.supported, got, test.want)
		}
		if got := test.err.Error(); got != test.err.Message {
			t.Errorf("Error() of %+v = %s; want its message", test.err, got)
		}
	}
}

func TestAppendDeny(t *testing.T) {
	for _, test := range []struct{ reason, code, want string }{
		{"No.", "", `{"type":"deny","reason":"No."}`},
		{"No.", "com.example.no", `{"type":"deny","reason":"No.","code":"com.example.no"}`},
		{"a\"b\\c\n\x00\x1f\x7fé😀\u2028</script>", "", `{"type":"deny","reason":"a\"b\\c\u000a\u0000\u001f` + "\x7fé😀\u2028</script>\"}"},
	} {
		if got := string(AppendDeny([]byte("x"), test.reason, test.code)); got != "x"+test.want {
			t.Errorf("AppendDeny(x, %q, %q) = %s; want x%s", test.reason, test.code, got, test.want)
		}
	}
}

// TestAppendText writes every character of two planes and reads it again.
func TestAppendText(t *testing.T) {
	var all strings.Builder
	for c := rune(0); c < 0x11000; c++ {
		if c < 0xD800 || c > 0xDFFF {
			all.WriteRune(c)
		}
	}
	quoted := append(appendText([]byte{'"'}, all.String()), '"')
	var got string
	if err := json.Unmarshal(quoted, &got); err != nil || got != all.String() {
		t.Errorf("Unmarshal(appendText(all)) = %v, equal %v; want nil, true", err, got == all.String())
	}
	if text := Text(quoted); !scans(quoted) || string(text) != all.String() {
		t.Errorf("Text(appendText(all)) is not what was written")
	}
}

// TestAnswersDecode reads what this package writes as a backend's answer.
func TestAnswersDecode(t *testing.T) {
	for _, v := range Versions {
		call := Call{ID: []byte(`"evt\u002d1"`), Version: v}
		r := Response{Body: AppendResult(nil, call.ID, v, AppendDeny(nil, "r", "com.example.c"))}
		if f := DecodeResponse(&call, &r); !f.OK() || string(r.Effects) != `[{"type":"deny","reason":"r","code":"com.example.c"}]` {
			t.Errorf("DecodeResponse(%s) = %v, %s; want no failure and the deny", r.Body, f, r.Effects)
		}
		r = Response{Body: AppendError(nil, call.ID, &Error{CodeUnsupportedEvent, "m"})}
		if f := DecodeResponse(&call, &r); f.Class != FailEventUnsupported {
			t.Errorf("DecodeResponse(%s) = %v; want %v", r.Body, f, FailEventUnsupported)
		}
	}
}

// TestAppendInterceptExact pins the bytes, where the property test only says
// what stays.
func TestAppendInterceptExact(t *testing.T) {
	const head = `{"jsonrpc":"2.0","id":"e","method":"hooks/intercept","params":{"protocolVersion":"0.1",`
	const rest = `"id":"e","source":"urn:x","type":"tool.before","time":"2026-03-01T10:00:00Z","session":{"id":"s"},"tool":{"callId":"c","name":"n","kind":"other","input":{}}`
	const native = `"native":{"provider":"p","eventName":"e","payload":{"items":[]}}`
	const items = `"items":[{"native":1}]`
	const all, none = `{"effects":["deny"]}`, `{"effects":["com.example.a","deny"],"x":1}`
	message := func(event, caps string) string { return head + `"event":{` + event + `},"capabilities":` + caps + `}}` }
	early := func(event, caps string) string {
		return `{"params":{"capabilities":` + caps + `,"protocolVersion":"0.1","event":{` + event + `}},"jsonrpc":"2.0","id":"e","method":"hooks/intercept"}`
	}
	for _, test := range []struct {
		body string
		v    View
		want string
	}{
		{message(rest, all), View{}, message(rest, all)},
		{message(native+`,`+rest, all), View{}, message(rest, all)},
		{message(rest+`,`+native, all), View{}, message(rest, all)},
		{message(native+`,`+items+`,`+rest, all), View{}, message(items+`,`+rest, all)},
		{message(rest+`,`+items+`,`+native, all), View{}, message(rest+`,`+items, all)},
		{message(items+`,`+native+`,`+rest, all), View{}, message(items+`,`+rest, all)},
		{message(items+`,`+rest+`,`+native, all), View{Native: true}, message(items+`,`+rest+`,`+native, all)},
		{message(" "+native+" , "+rest, all), View{}, message(" "+rest, all)},
		{message(rest+" , "+native+" ", all), View{}, message(rest+"  ", all)},
		{message(rest, none), View{}, message(rest, all)},
		{message(native+`,`+rest, none), View{}, message(rest, all)},
		{early(rest+`,`+native, none), View{}, early(rest, all)},
		{early(native+`,`+rest+`,`+items, none), View{}, early(rest+`,`+items, all)},
		{early(native+`,`+rest+`,`+items, none), View{Native: true}, early(native+`,`+rest+`,`+items, all)},
	} {
		var m Message
		if err := Decode([]byte(test.body), &m); err != nil {
			t.Fatalf("Decode(%s) = %v; want nil", test.body, err)
		}
		if got := string(m.AppendIntercept(nil, test.v)); got != test.want {
			t.Errorf("AppendIntercept(%+v) of %s\n got %s\nwant %s", test.v, test.body, got, test.want)
		}
		if got, want := m.Verbatim(test.v), test.body == test.want; got != want {
			t.Errorf("Verbatim(%+v) of %s = %v; want %v", test.v, test.body, got, want)
		}
	}
}

// TestAppendInterceptDraft: without deny in the harness's list none is offered.
func TestAppendInterceptDraft(t *testing.T) {
	for effects, want := range map[string]string{
		`["allow"]`:      `{"effects":[]}`,
		`[]`:             `{"effects":[]}`,
		`["deny"]`:       `{"effects":["deny"]}`,
		`["ask","deny"]`: `{"effects":["deny"]}`,
	} {
		good := base(t, interceptDraft)
		body := good.edited(`params.capabilities.effects=` + effects)
		var m Message
		if err := Decode(body, &m); err != nil {
			t.Fatalf("Decode(%s) = %v; want nil", body, err)
		}
		if got, want := m.AppendIntercept(nil, View{}), good.edited(`params.capabilities=`+want); !bytes.Equal(got, want) {
			t.Errorf("AppendIntercept() of effects %s\n got %s\nwant %s", effects, got, want)
		}
	}
}

func TestAppendObserve(t *testing.T) {
	for _, test := range []struct {
		path string
		v    View
		want string
	}{
		{toolAfter01, View{Native: true}, string(message(t, toolAfter01))},
		{toolAfter01, View{}, string(base(t, toolAfter01).edited(`-params.event.native`))},
		{toolAfterDraft, View{}, string(message(t, toolAfterDraft))},
		{interceptDraft, View{}, `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":` + string(base(t, interceptDraft).get("params.event").render(nil)) + `}}`},
	} {
		var m Message
		if err := Decode(message(t, test.path), &m); err != nil {
			t.Fatalf("Decode(%s) = %v; want nil", test.path, err)
		}
		got := m.AppendObserve([]byte("x"), test.v)
		if string(got) != "x"+test.want {
			t.Errorf("AppendObserve(x, %+v) of %s\n got %s\nwant x%s", test.v, test.path, got, test.want)
		}
		var again Message
		if err := Decode(got[1:], &again); err != nil || again.Method != MethodObserve || !again.Notification {
			t.Errorf("Decode(%s) = %v; want an observe notification", got[1:], err)
		}
	}
}

func TestWhole(t *testing.T) {
	metadata := ContentSelection{Default: SelectMetadata}
	for path, want := range map[string][3]bool{ // of no view, native, native and metadata
		interceptFull01: {false, true, true},
		toolAfter01:     {false, true, true},
		toolAfterDraft:  {true, true, false},
		intercept01:     {true, true, true},
	} {
		var m Message
		if err := Decode(message(t, path), &m); err != nil {
			t.Fatalf("Decode(%s) = %v; want nil", path, err)
		}
		got := [3]bool{m.Whole(View{}), m.Whole(View{Native: true}), m.Whole(View{Native: true, Content: metadata})}
		if got != want {
			t.Errorf("Whole() of %s = %v; want %v", path, got, want)
		}
	}
}
