package ahp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const (
	intercept01     = "testdata/0.1/requests/intercept.json"
	interceptFull01 = "testdata/0.1/requests/intercept-full.json"
	toolAfter01     = "testdata/0.1/requests/observe-tool-after.json"
	toolError01     = "testdata/0.1/requests/observe-tool-error.json"
	sessionStart01  = "testdata/0.1/requests/observe-session-start.json"
	sessionEnd01    = "testdata/0.1/requests/observe-session-end.json"
	interceptDraft  = "testdata/draft/requests/intercept.json"
	fullDraft       = "testdata/draft/requests/intercept-full.json"
	toolAfterDraft  = "testdata/draft/requests/observe-tool-after.json"
	capabilities    = "testdata/draft/requests/capabilities.json"
	configuration   = "testdata/draft/requests/configuration.json"
)

// deepDraft are messages whose payload is held against a shape.
var deepDraft = []string{
	"testdata/draft/requests/intercept-turn-start.json",
	"testdata/draft/requests/intercept-tool-after.json",
	"testdata/draft/requests/intercept-model-request.json",
	"testdata/draft/requests/observe-turn-progress.json",
	"testdata/draft/requests/observe-session-start.json",
}

// describe writes what Decode made of a message on one line.
func describe(m *Message) string {
	e := &m.Event
	s := fmt.Sprintf("%v %v id=%s notification=%v event=%v %s@%s session=%s call=%s tool=%s input=%s native=%v content=%v effects=%b only=%v halted=%v state=%s",
		m.Version, m.Method, m.ID, m.Notification, e.Type, e.ID, e.Source, e.SessionID, e.CallID, e.ToolName, e.Input,
		e.native.present(), e.hasContent, m.Capabilities.Effects, m.Capabilities.DenyOnly, m.Halted, m.State)
	return s
}

func TestDecodeAccepts(t *testing.T) {
	tests := []struct{ path, want string }{
		{intercept01, `0.1 hooks/intercept id="evt-1" notification=false event=tool.before evt-1@urn:example:harness session=s-1 call=c-1 tool=run input={"command":"ls -la"} native=false content=false effects=10 only=true halted=false state=`},
		{interceptFull01, `0.1 hooks/intercept id="evt-2" notification=false event=tool.before evt-2@https://user@harness.example:8443/a/b?c=d#e session=s-2 call=c-2 tool=query "it" 😀 input={"q": "caf\u00e9", "deep": {"er": [[{}]]}} native=true content=false effects=10 only=false halted=false state=`},
		{toolAfter01, `0.1 hooks/observe id= notification=true event=tool.after evt-3@urn:example:harness session=s-1 call=c-1 tool=run input={"command":"ls"} native=true content=false effects=0 only=false halted=false state=`},
		{toolError01, `0.1 hooks/observe id= notification=true event=tool.error evt-4@urn:example:harness session=s-1 call=c-1 tool=run input={} native=false content=false effects=0 only=false halted=false state=`},
		{sessionStart01, `0.1 hooks/observe id= notification=true event=session.start evt-5@urn:example:harness session=s-1 call= tool= input= native=false content=false effects=0 only=false halted=false state=`},
		{sessionEnd01, `0.1 hooks/observe id= notification=true event=session.end evt-6@urn:example:harness session=s-1 call= tool= input= native=false content=false effects=0 only=false halted=false state=`},
		{interceptDraft, `draft hooks/intercept id="evt-1" notification=false event=tool.before evt-1@urn:example:harness session=s-1 call=c-1 tool=run input={"command":"ls -la"} native=false content=false effects=10 only=true halted=false state={"permission":"none","candidate":null}`},
		{fullDraft, `draft hooks/intercept id="evt-2" notification=false event=tool.before evt-2@urn:example:harness session=s-2 call=c-2 tool=query input={} native=true content=true effects=111111110 only=false halted=false state={"permission": "ask", "candidate": {"value": {"x": 1}}, "flow": "continue", "instructions": ["be brief"], "injections": []}`},
		{toolAfterDraft, `draft hooks/observe id= notification=true event=tool.after evt-3@urn:example:harness session= call=c-1 tool=run input={} native=false content=true effects=0 only=false halted=false state=`},
		{capabilities, `draft hooks/capabilities id=7 notification=false event=unknown @ session= call= tool= input= native=false content=false effects=0 only=false halted=false state=`},
		{configuration, `draft hooks/configuration id="cfg" notification=false event=unknown @ session= call= tool= input= native=false content=false effects=0 only=false halted=false state=`},
	}
	for _, test := range tests {
		body := message(t, test.path)
		kept := bytes.Clone(body)
		var m Message
		if err := Decode(body, &m); err != nil {
			t.Errorf("Decode(%s) = %v %v; want nil", test.path, err.Code, err)
			continue
		}
		if got := describe(&m); got != test.want {
			t.Errorf("Decode(%s)\n got %s\nwant %s", test.path, got, test.want)
		}
		if !bytes.Equal(body, kept) || !bytes.Equal(m.Body, kept) {
			t.Errorf("Decode(%s) changed the body", test.path)
		}
		if m.Event.Raw != nil {
			event, err := parseTree(m.Event.Raw)
			if err != nil {
				t.Errorf("Decode(%s).Event.Raw = %s; want JSON: %v", test.path, m.Event.Raw, err)
				continue
			}
			if want := base(t, test.path).get("params.event").render(nil); !bytes.Equal(event.render(nil), want) {
				t.Errorf("Decode(%s).Event.Raw = %s; want %s", test.path, m.Event.Raw, want)
			}
		}
	}
}

// TestDecodeForgets decodes into a Message that was in use before.
func TestDecodeForgets(t *testing.T) {
	var used, fresh Message
	for _, path := range []string{fullDraft, intercept01, sessionStart01, capabilities} {
		if err := Decode(message(t, path), &used); err != nil {
			t.Fatalf("Decode(%s) = %v; want nil", path, err)
		}
		fresh = Message{}
		if err := Decode(message(t, path), &fresh); err != nil {
			t.Fatalf("Decode(%s) = %v; want nil", path, err)
		}
		if got, want := describe(&used), describe(&fresh); got != want {
			t.Errorf("Decode(%s) into a used message\n got %s\nwant %s", path, got, want)
		}
	}
	if err := Decode([]byte("x"), &used); err == nil || used.Event.Raw != nil || used.Method != MethodUnknown {
		t.Errorf("Decode(x) = %v and left %s; want an error and nothing", err, describe(&used))
	}
}

// TestDecodeEdits changes one good message at a time. A code of 0 is acceptance.
func TestDecodeEdits(t *testing.T) {
	tests := []struct {
		path string
		code Code
		text string // a part of the error's message
		// Each edit on its own, not all together.
		edits []string
	}{
		{intercept01, CodeInvalidRequest, "jsonrpc", []string{`-jsonrpc`, `jsonrpc="1.0"`, `jsonrpc=2.0`, `jsonrpc=null`, `jsonrpc=["2.0"]`}},
		{intercept01, CodeInvalidRequest, "method", []string{`-method`, `method=1`, `method=null`, `method={}`}},
		{intercept01, CodeInvalidRequest, "id", []string{`id=true`, `id=false`, `id=[]`, `id={}`, `id=["evt-1"]`, `id=1.0`, `id=1e2`, `id=1E2`}},
		{intercept01, CodeMethodNotFound, "", []string{`method=""`, `method="hooks/Intercept"`, `method="hooks/intercept "`, `method="tools/call"`}},
		{intercept01, CodeMethodNotFound, "", []string{`method="hooks/capabilities"`, `method="hooks/configuration"`}},
		{intercept01, CodeUnsupportedVersion, "", []string{`params.protocolVersion=""`, `params.protocolVersion="0.2"`, `params.protocolVersion="Draft"`, `params.protocolVersion="0.1.0"`}},
		{intercept01, CodeInvalidParams, "protocolVersion", []string{`-params.protocolVersion`, `params.protocolVersion=0.1`, `params.protocolVersion=null`, `params.protocolVersion=["0.1"]`}},
		{intercept01, CodeInvalidParams, "params is no object", []string{`-params`, `params=null`, `params=[]`, `params="{}"`, `params=[{"protocolVersion":"0.1"}]`}},
		{intercept01, CodeInvalidParams, "params.event is no object", []string{`-params.event`, `params.event=null`, `params.event=[]`, `params.event="{}"`}},
		{intercept01, CodeInvalidParams, "params.event.id", []string{`-params.event.id`, `params.event.id=""`, `params.event.id=1`, `params.event.id=null`}},
		{intercept01, CodeInvalidParams, "source", []string{`-params.event.source`, `params.event.source=""`, `params.event.source="harness"`, `params.event.source="/a"`, `params.event.source=1`, `params.event.source="urn:a b"`}},
		{intercept01, CodeInvalidParams, "type", []string{`-params.event.type`, `params.event.type=null`, `params.event.type=["tool.before"]`}},
		{intercept01, CodeInvalidParams, "time", []string{`-params.event.time`, `params.event.time=""`, `params.event.time=1772359200`, `params.event.time="2026-03-01"`, `params.event.time="2026-02-29T10:00:00Z"`}},
		{intercept01, CodeInvalidParams, "session has no id", []string{`-params.event.session`, `params.event.session=null`, `params.event.session=[]`, `params.event.session={}`, `params.event.session.id=1`, `params.event.session="s-1"`}},
		{intercept01, CodeInvalidParams, "session.id", []string{`params.event.session.id=""`}},
		{intercept01, CodeInvalidParams, "cwd", []string{`params.event.session.cwd=null`, `params.event.session.cwd=1`}},
		{intercept01, CodeInvalidParams, "model", []string{`params.event.session.model=null`, `params.event.session.model={}`}},
		{intercept01, CodeInvalidParams, "workspaceRoots", []string{`params.event.session.workspaceRoots="/"`, `params.event.session.workspaceRoots=["/",1]`, `params.event.session.workspaceRoots={}`, `params.event.session.workspaceRoots=[null]`}},
		{intercept01, CodeInvalidParams, "agent", []string{`params.event.session.agent=null`, `params.event.session.agent={}`, `params.event.session.agent={"id":""}`, `params.event.session.agent={"id":1}`, `params.event.session.agent={"id":"a","type":1}`}},
		{intercept01, CodeInvalidParams, "extensions", []string{`params.event.extensions=null`, `params.event.extensions=[]`, `params.event.extensions={"a":1}`, `params.event.extensions={"com.example.a":1,"b":2}`, `params.event.extensions={"":1}`}},
		{intercept01, CodeInvalidParams, "native", []string{`params.event.native=null`, `params.event.native={}`, `params.event.native={"provider":"p","eventName":"e"}`, `params.event.native={"provider":1,"eventName":"e","payload":1}`, `params.event.native={"provider":"p","payload":1}`}},
		{intercept01, CodeInvalidParams, "hooks/intercept is a request", []string{`-id`}},
		{intercept01, CodeInvalidParams, "id is not params.event.id", []string{`id="evt-2"`, `id=null`, `id=1`, `id=""`, `params.event.id="evt-1 "`}},
		{intercept01, CodeInvalidParams, "effects is no list", []string{`-params.capabilities`, `params.capabilities=null`, `params.capabilities=["deny"]`, `params.capabilities={}`, `params.capabilities.effects="deny"`, `params.capabilities.effects=null`, `params.capabilities.effects={"deny":true}`}},
		{intercept01, CodeInvalidParams, "no list of strings", []string{`params.capabilities.effects=["deny",1]`, `params.capabilities.effects=[["deny"]]`, `params.capabilities.effects=[null]`}},
		{intercept01, CodeInvalidParams, "unknown effect", []string{`params.capabilities.effects=["deny","allow"]`, `params.capabilities.effects=["Deny"]`, `params.capabilities.effects=[""]`, `params.capabilities.effects=["deny","unknown"]`}},
		{intercept01, CodeInvalidParams, "twice", []string{`params.capabilities.effects=["deny","deny"]`}},
		{intercept01, CodeInvalidParams, "lacks deny", []string{`params.capabilities.effects=[]`, `params.capabilities.effects=["com.example.deny"]`}},
		{intercept01, CodeUnsupportedEvent, "", []string{`params.event.type=""`, `params.event.type="tool.after"`, `params.event.type="session.start"`, `params.event.type="turn.start"`, `params.event.type="Tool.before"`, `params.event.type="tool.before\u0000"`, `params.event.type="unknown"`}},
		{intercept01, CodeInvalidParams, "tool is no object", []string{`-params.event.tool`, `params.event.tool=null`, `params.event.tool=[]`}},
		{intercept01, CodeInvalidParams, "callId", []string{`-params.event.tool.callId`, `params.event.tool.callId=""`, `params.event.tool.callId=4`}},
		{intercept01, CodeInvalidParams, "tool.name", []string{`-params.event.tool.name`, `params.event.tool.name=""`, `params.event.tool.name=null`}},
		{intercept01, CodeInvalidParams, "tool.input", []string{`-params.event.tool.input`, `params.event.tool.input="{}"`, `params.event.tool.input=[]`, `params.event.tool.input=null`}},
		{intercept01, CodeInvalidParams, "tool.mcp", []string{`params.event.tool.mcp=null`, `params.event.tool.mcp="s"`}},
		{intercept01, CodeInvalidParams, "tool.kind", []string{`-params.event.tool.kind`, `params.event.tool.kind=""`, `params.event.tool.kind="Shell"`, `params.event.tool.kind="file_delete"`, `params.event.tool.kind=1`}},
		{intercept01, CodeInvalidParams, "tool.output", []string{`params.event.tool.output=null`}},
		{intercept01, CodeInvalidParams, "tool.error", []string{`params.event.tool.error={"message":"m"}`}},
		{intercept01, 0, "", []string{
			`params.event.tool.kind="file_read"`, `params.event.tool.kind="file_write"`, `params.event.tool.kind="file_edit"`, `params.event.tool.kind="search"`,
			`params.event.tool.kind="fetch"`, `params.event.tool.kind="task"`, `params.event.tool.kind="mcp"`, `params.event.tool.kind="other"`,
			`params.event.tool.more=1`, `params.event.more=1`, `params.more=1`, `more=1`, `params.event.session.more=1`, `params.capabilities.more=1`,
			`params.event.items=1`, `params.event.harness=1`, `params.event.call=1`, `params.event.path=1`, `params.event.outcome=1`, `params.state=1`, `params.extensions={"a":1}`,
			`params.capabilities.effects=["com.example.a","deny","com.example.a"]`, `params.event.native={"provider":"","eventName":"","payload":null,"more":1}`,
			`params.event.extensions={}`, `params.event.session.cwd=""`, `result=1`, `error=1`,
		}},

		{toolAfter01, CodeInvalidParams, "notification", []string{`id="evt-3"`, `id=3`, `id=null`}},
		{toolAfter01, CodeInvalidRequest, "id", []string{`id=true`}},
		{toolAfter01, CodeUnsupportedEvent, "", []string{`params.event.type="tool.before"`, `params.event.type="turn.end"`, `params.event.type="x"`}},
		{toolAfter01, CodeInvalidParams, "tool.error", []string{`params.event.tool.error={"message":"m"}`}},
		{toolAfter01, 0, "", []string{`-params.event.tool.output`, `params.event.tool.output=null`, `-params.event.native`, `params.capabilities=1`}},
		{toolError01, CodeInvalidParams, "tool.error has no message", []string{`-params.event.tool.error`, `params.event.tool.error=null`, `params.event.tool.error="m"`, `params.event.tool.error={}`}},
		{toolError01, CodeInvalidParams, "tool.output", []string{`params.event.tool.output=1`}},
		{toolError01, 0, "", []string{`params.event.tool.error={"message":{"text":"m"}}`, `params.event.tool.error.more=1`}},
		{sessionStart01, CodeInvalidParams, "about no tool", []string{`params.event.tool={}`, `params.event.tool=null`}},
		{sessionStart01, 0, "", []string{`params.event.outcome="won"`}},
		{sessionEnd01, CodeInvalidParams, "outcome", []string{`params.event.outcome="won"`, `params.event.outcome=null`, `params.event.outcome=1`, `params.event.outcome=""`}},
		{sessionEnd01, CodeInvalidParams, "about no tool", []string{`params.event.tool={}`}},
		{sessionEnd01, 0, "", []string{`-params.event.outcome`, `params.event.outcome="cancelled"`, `params.event.outcome="error"`, `params.event.outcome="unknown"`}},

		{interceptDraft, CodeInvalidParams, "session has no id", []string{`params.event.session=null`, `params.event.session={}`}},
		{interceptDraft, CodeInvalidParams, "harness", []string{`-params.event.harness`, `params.event.harness=null`, `params.event.harness.name=""`, `params.event.harness.version=1`, `-params.event.harness.name`, `-params.event.harness.version`, `params.event.harness.more=1`}},
		{interceptDraft, CodeInvalidParams, "params.extensions", []string{`params.extensions=null`, `params.extensions={"a":1}`}},
		{interceptDraft, CodeInvalidParams, "unknown effect", []string{`params.capabilities.effects=["deny","permit"]`}},
		{interceptDraft, CodeInvalidParams, "params.capabilities.effects[1] is none of deny, allow", []string{`params.capabilities.effects=["deny","com.example.a"]`}},
		{interceptDraft, CodeInvalidParams, "twice", []string{`params.capabilities.effects=["ask","deny","ask"]`}},
		{interceptDraft, CodeInvalidParams, "params.state is no object", []string{`params.state=null`, `params.state=[]`}},
		{interceptDraft, CodeInvalidParams, "params.state.candidate.value is missing", []string{`params.state.candidate={}`}},
		{interceptDraft, CodeInvalidParams, "params.state.candidate", []string{`-params.state.candidate`, `params.state.candidate=1`, `params.state.candidate=[]`}},
		{interceptDraft, CodeInvalidParams, "permission", []string{`-params.state.permission`, `params.state.permission="maybe"`, `params.state.permission=null`}},
		{interceptDraft, CodeInvalidParams, "flow", []string{`params.state.flow="go"`, `params.state.flow=null`}},
		{interceptDraft, CodeInvalidParams, "instructions", []string{`params.state.instructions=[1]`, `params.state.instructions="x"`}},
		{interceptDraft, CodeInvalidParams, "injections", []string{`params.state.injections={}`}},
		{interceptDraft, CodeUnsupportedEvent, "", []string{`params.event.type="tool.error"`, `params.event.type="session.end"`, `params.event.type="tool.progress"`}},
		{interceptDraft, CodeInvalidParams, "params.event.call", []string{`-params.event.call`, `params.event.call="c"`, `params.event.call={}`, `params.event.call.id=""`, `params.event.call.more=1`}},
		{interceptDraft, CodeInvalidParams, "synthesized", []string{`params.event.call.synthesized="yes"`, `params.event.call.synthesized=null`}},
		{interceptDraft, CodeInvalidParams, "path", []string{`-params.event.path`, `params.event.path=""`, `params.event.path=[]`}},
		{interceptDraft, CodeInvalidParams, "params.event.tool is ", []string{`-params.event.tool`, `params.event.tool=[]`}},
		{interceptDraft, CodeInvalidParams, "tool has an unknown member", []string{`params.event.tool.more=1`, `params.event.tool.callId="c"`, `params.event.tool.output=1`, `params.event.tool.error={}`}},
		{interceptDraft, CodeInvalidParams, "tool.name", []string{`-params.event.tool.name`, `params.event.tool.name=""`}},
		{interceptDraft, CodeInvalidParams, "tool.input", []string{`-params.event.tool.input`, `params.event.tool.input=[]`}},
		{interceptDraft, CodeInvalidParams, "tool.kind", []string{`params.event.tool.kind=""`, `params.event.tool.kind=1`}},
		{interceptDraft, CodeInvalidParams, "tool.origin", []string{`-params.event.tool.origin`, `params.event.tool.origin="remote"`, `params.event.tool.origin=1`}},
		{interceptDraft, CodeInvalidParams, "params.event.tool.mcp is missing", []string{`params.event.tool.origin="mcp"`}},
		{interceptDraft, CodeInvalidParams, "params.event.tool.mcp.server is missing", []string{`params.event.tool.mcp={}`}},
		{interceptDraft, CodeInvalidParams, "params.event.items", []string{`params.event.items={}`, `params.event.items=null`, `params.event.items=[{}]`, `params.event.items=[{"id":"m","role":"user","parts":[]}]`}},
		{interceptDraft, CodeInvalidParams, "does not belong there", []string{`params.event.outcome="x"`, `params.event.execution=1`, `params.event.durationMs=1`, `params.event.fileChanges=[]`}},
		{interceptDraft, 0, "", []string{
			`-params.event.session`, `-params.state`, `params.event.native=null`, `params.event.tool.kind="anything"`, `params.event.items=[]`, `params.capabilities.effects=[]`,
			`params.event.more=1`, `params.more=1`, `params.event.call.synthesized=false`, `params.state.flow="none"`,
			`params.state.candidate={"value":null,"provenance":{}}`, `params.state.permission="allow"`, `params.state.instructions=[]`, `params.extensions={}`,
		}},
		{interceptDraft, CodeInvalidParams, "", []string{`params.event.type="tool.after"`, `params.event.type="turn.start"`, `params.event.type="session.start"`}},
		{toolAfterDraft, CodeInvalidParams, "params.event.execution", []string{`-params.event.execution`}},
		{toolAfterDraft, CodeInvalidParams, "params.event.outcome", []string{`-params.event.outcome`}},
		{toolAfterDraft, CodeInvalidParams, "harness", []string{`-params.event.harness`}},

		{capabilities, CodeInvalidParams, "more than protocolVersion", []string{`params.event={}`, `params.capabilities={}`, `params.state={}`, `params.extensions={}`, `params.more=1`}},
		{capabilities, CodeInvalidParams, "id is empty", []string{`id=null`, `id=""`}},
		{capabilities, CodeMethodNotFound, "", []string{`params.protocolVersion="0.1"`}},
		{capabilities, CodeUnsupportedVersion, "", []string{`params.protocolVersion="1"`}},
		{capabilities, CodeInvalidParams, "there is no id", []string{`-id`}},
		{capabilities, 0, "", []string{`id="x"`, `id=-3`, `more=1`}},
		{configuration, CodeInvalidParams, "more than protocolVersion", []string{`params.more=1`}},
		{configuration, CodeInvalidParams, "params is no object", []string{`params=[]`}},
	}
	for _, test := range tests {
		good := base(t, test.path)
		for _, edit := range test.edits {
			body := good.edited(edit)
			var m Message
			err := Decode(body, &m)
			switch {
			case err == nil && test.code != 0:
				t.Errorf("Decode(%s with %s) = nil; want %d with %q", test.path, edit, test.code, test.text)
			case err != nil && (err.Code != test.code || !strings.Contains(err.Message, test.text)):
				t.Errorf("Decode(%s with %s) = %d %q; want %d with %q", test.path, edit, err.Code, err, test.code, test.text)
			}
			if err != nil && (err.Code == CodeInvalidRequest || err.Code == CodeParse) && (m.ID != nil || m.Notification) {
				t.Errorf("Decode(%s with %s) id = %s, notification %v; want no id and false", test.path, edit, m.ID, m.Notification)
			}
		}
	}
}

// TestDecodeState covers the states in which a harness calls no interceptor.
func TestDecodeState(t *testing.T) {
	for edit, want := range map[string]bool{
		`params.state.permission="deny"`:  true,
		`params.state.permission="allow"`: false,
		`params.state.flow="stop"`:        true,
		`params.state.flow="continue"`:    false,
		`-params.state`:                   false,
	} {
		var m Message
		if err := Decode(base(t, interceptDraft).edited(edit), &m); err != nil || m.Halted != want {
			t.Errorf("Decode(%s) = %v, halted %v; want nil, %v", edit, err, m.Halted, want)
		}
	}
}

// TestDecodeOrder puts every set of faults into a message: the first of them,
// in the order of the design, decides. A later one never hides an earlier one.
func TestDecodeOrder(t *testing.T) {
	type fault struct {
		name string
		code Code
		edit string // empty: bytes behind the message
	}
	faults := func(event, payload string) []fault {
		return []fault{
			{"parse", CodeParse, ""},
			{"envelope", CodeInvalidRequest, `jsonrpc="1.0"`},
			{"method", CodeMethodNotFound, `method="hooks/decide"`},
			{"version", CodeUnsupportedVersion, `params.protocolVersion="9"`},
			{"params", CodeInvalidParams, `-params.capabilities`},
			{"event", CodeUnsupportedEvent, event},
			{"payload", CodeInvalidParams, payload},
		}
	}
	for path, faults := range map[string][]fault{
		intercept01:    faults(`params.event.type="turn.start"`, `-params.event.tool`),
		interceptDraft: faults(`params.event.type="tool.error"`, `-params.event.path`),
	} {
		good := base(t, path)
		for set := 1; set < 1<<len(faults); set++ {
			var names, edits []string
			var want Code
			trailing := ""
			for i, f := range faults {
				if set>>i&1 == 0 {
					continue
				}
				if want == 0 {
					want = f.code
				}
				names = append(names, f.name)
				if f.edit == "" {
					trailing = " x"
				} else {
					edits = append(edits, f.edit)
				}
			}
			var m Message
			err := Decode(append(good.edited(edits...), trailing...), &m)
			if err == nil || err.Code != want {
				t.Errorf("Decode(%s with faults %v) = %+v; want code %d", path, names, err, want)
				continue
			}
			if unread := want == CodeParse || want == CodeInvalidRequest; unread != (m.ID == nil) {
				t.Errorf("Decode(%s with faults %v) id = %s; want none only below the envelope", path, names, m.ID)
			}
		}
	}
}

func TestDecodeNoObject(t *testing.T) {
	request := string(message(t, intercept01))
	for _, test := range []struct {
		body string
		want Code
	}{
		{`[` + request + `]`, CodeInvalidRequest},
		{` [` + request + `,` + request + `] `, CodeInvalidRequest},
		{`[]`, CodeInvalidRequest},
		{`null`, CodeInvalidRequest},
		{`1`, CodeInvalidRequest},
		{`"{}"`, CodeInvalidRequest},
		{` true`, CodeInvalidRequest},
		{`{}`, CodeInvalidRequest},
		{``, CodeParse},
		{` `, CodeParse},
		{request + request, CodeParse},
		{request + "\n" + request, CodeParse},
		{request + "\x00", CodeParse},
		{"\uFEFF" + request, CodeParse},
		{strings.Replace(request, `"evt-1"`, `"evt-1","id":"evt-1"`, 1), CodeParse},
		{strings.Replace(request, `"type"`, `"typ\u0065":"tool.before","type"`, 1), CodeParse},
		{strings.Replace(request, "ls -la", `\ud800`, 1), CodeParse},
		{strings.Replace(request, "ls -la", "\xff", 1), CodeParse},
		{strings.Replace(request, "ls -la", "a\nb", 1), CodeParse},
	} {
		var m Message
		if err := Decode([]byte(test.body), &m); err == nil || err.Code != test.want || m.ID != nil || m.Notification {
			t.Errorf("Decode(%q) = %+v, id %s, notification %v; want %d, no id, false", test.body, err, m.ID, m.Notification, test.want)
		}
	}
}

// TestDecodeEscapes writes names and strings with escapes: they mean the same.
func TestDecodeEscapes(t *testing.T) {
	body := `{"\u006asonrpc":"\u0032.0","\u0069d":"evt\u002d1","meth\u006fd":"hooks\/intercept","param\u0073":{"protocol\u0056ersion":"0\u002e1",
	"\u0065vent":{"\u0069d":"\u0065vt-1","sourc\u0065":"urn:\u0065xample","typ\u0065":"tool\u002ebefore","tim\u0065":"2026-03-01T10:00:00\u005a","\u0073ession":{"i\u0064":"\u0073"},
	"too\u006c":{"callI\u0064":"c\"\\","nam\u0065":"\ud83d\ude00","kin\u0064":"\u0073hell","inpu\u0074":{}}},"capabilitie\u0073":{"effect\u0073":["\u0064eny"]}}}`
	var m Message
	if err := Decode([]byte(body), &m); err != nil {
		t.Fatalf("Decode(%s) = %v; want nil", body, err)
	}
	const want = `0.1 hooks/intercept id="evt\u002d1" notification=false event=tool.before evt-1@urn:example session=s call=c"\ tool=😀 input={} native=false content=false effects=10 only=true halted=false state=`
	if got := describe(&m); got != want {
		t.Errorf("Decode(%s)\n got %s\nwant %s", body, got, want)
	}
}

// TestDecodeRequiredPayload takes each required member from each event of draft.
func TestDecodeRequiredPayload(t *testing.T) {
	r := &sampler{Rand: rand.New(rand.NewPCG(2, 2))}
	for e := EventUnknown + 1; e < EventTypeCount; e++ {
		if !e.In(Draft) {
			continue
		}
		good := r.observation(e)
		var m Message
		if err := Decode(good.render(nil), &m); err != nil || m.Event.Type != e {
			t.Errorf("Decode(%s) = %v, %v; want nil, %v", good.render(nil), err, m.Event.Type, e)
		}
		for _, name := range requiredOf(e) {
			less := good.edited("-params.event." + name)
			if err := Decode(less, &m); err == nil || err.Code != CodeInvalidParams || !strings.Contains(err.Message, "params.event."+name) {
				t.Errorf("Decode(%s) = %v; want an error about %s", less, err, name)
			}
		}
	}
}

// TestDecodeEvents reads the smallest sensible event of each type, observed and
// where that can be intercepted.
func TestDecodeEvents(t *testing.T) {
	for e := EventUnknown + 1; e < EventTypeCount; e++ {
		if !e.In(Draft) {
			continue
		}
		path := "testdata/draft/events/" + e.String() + ".json"
		event := message(t, path)
		var m Message
		if err := Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":%s}}`, event), &m); err != nil || m.Event.Type != e {
			t.Errorf("Decode(hooks/observe of %s) = %v, %v; want nil, %v", path, err, m.Event.Type, e)
		}
		err := Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"evt-1","method":"hooks/intercept","params":{"protocolVersion":"draft","event":%s,"capabilities":{"effects":["message"]}}}`, event), &m)
		if e.Interceptable(Draft) != (err == nil) || err != nil && err.Code != CodeUnsupportedEvent {
			t.Errorf("Decode(hooks/intercept of %s) = %v; want nil: %v", path, err, e.Interceptable(Draft))
		}
	}
}

// requiredOf returns the members that draft requires of an event beyond those
// that all events have.
func requiredOf(e EventType) []string {
	var names []string
	for _, m := range eventShapes[e].members {
		if m.required && !m.read {
			names = append(names, m.name)
		}
	}
	return names
}

func TestMethodNames(t *testing.T) {
	var names []string
	for m := MethodUnknown; m <= MethodConfiguration; m++ {
		names = append(names, m.String())
		if got := parseMethod([]byte(m.String())); got != m {
			t.Errorf("parseMethod(%v) = %v; want the same", m, got)
		}
	}
	want := []string{"unknown", "hooks/intercept", "hooks/observe", "hooks/capabilities", "hooks/configuration"}
	if !slices.Equal(names, want) {
		t.Errorf("method names = %q; want %q", names, want)
	}
}
