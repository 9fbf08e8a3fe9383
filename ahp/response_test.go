package ahp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const (
	empty01     = "testdata/0.1/answers/empty.json"
	deny01      = "testdata/0.1/answers/deny.json"
	error01     = "testdata/0.1/answers/error.json"
	absentDraft = "testdata/draft/answers/absent.json"
	denyDraft   = "testdata/draft/answers/deny.json"
)

func callOf(path string) *Call {
	call := &Call{ID: []byte(`"evt-1"`), Version: V01}
	if strings.Contains(path, "/draft/") {
		call.Version = Draft
	}
	return call
}

func TestDecodeResponseAccepts(t *testing.T) {
	for path, want := range map[string]string{
		empty01:     `[]`,
		deny01:      string(base(t, deny01).get("result.effects").render(nil)),
		absentDraft: ``,
		denyDraft:   `[{"type":"deny","reason":"No."}]`,
	} {
		r := Response{Body: message(t, path), Effects: []byte("left over")}
		kept := bytes.Clone(r.Body)
		if f := DecodeResponse(callOf(path), &r); !f.OK() || string(r.Effects) != want {
			t.Errorf("DecodeResponse(%s) = %v, %s; want no failure, %s", path, f, r.Effects, want)
		}
		if (r.Effects == nil) != (want == "") {
			t.Errorf("DecodeResponse(%s) has nil effects: %v; want %v", path, r.Effects == nil, want == "")
		}
		if !bytes.Equal(r.Body, kept) {
			t.Errorf("DecodeResponse(%s) changed the body", path)
		}
		r.Reset()
		if len(r.Body) != 0 || cap(r.Body) == 0 || r.Effects != nil {
			t.Errorf("Reset() left %q, %q; want an empty buffer that is kept", r.Body, r.Effects)
		}
	}
}

// TestDecodeResponseEdits changes one good answer at a time.
func TestDecodeResponseEdits(t *testing.T) {
	tests := []struct {
		path  string
		want  FailureClass
		edits []string
	}{
		{deny01, NoFailure, []string{`more=1`, `method="x"`, `result.more=1`, `id="evt\u002d1"`, `result.effects=[1,null,{"type":"allow"}]`, `result.manifest=1`, `result.configuration=1`, `result.extensions={"a":1}`, `result.extensions=null`}},
		{deny01, FailMalformedRPC, []string{`-jsonrpc`, `jsonrpc="1.0"`, `jsonrpc=2`, `-id`, `-result`, `error=null`, `error={"code":1,"message":"m"}`, `result=null`, `result=[]`, `result="x"`}},
		{deny01, FailIDMismatch, []string{`id=null`, `id="evt-2"`, `id=1`, `id=""`, `id=["evt-1"]`, `id=true`, `id={}`}},
		{deny01, FailMissingResult, []string{`-result.protocolVersion`, `result.protocolVersion=null`, `result.protocolVersion=0.1`, `-result.effects`, `result.effects=null`, `result.effects={}`, `result.effects="[]"`}},
		{deny01, FailVersionUnsupported, []string{`result.protocolVersion="draft"`, `result.protocolVersion=""`, `result.protocolVersion="0.10"`}},

		{error01, FailVersionUnsupported, []string{`more=1`, `error.code=-32001`, `error.more=1`, `-error.data`, `id=null`, `error.message=""`}},
		{error01, FailEventUnsupported, []string{`error.code=-32002`}},
		{error01, FailRPCError, []string{`error.code=-32003`, `error.code=-32004`, `error.code=-32700`, `error.code=-32601`, `error.code=0`, `error.code=7`, `error.code=99999999999999999999`}},
		{error01, FailMalformedRPC, []string{`-error`, `error=null`, `error="x"`, `error=[]`, `-error.code`, `-error.message`, `error.message=null`, `error.message={}`, `error.code="-32001"`, `error.code=-32001.0`, `error.code=1e3`, `error.code=null`, `result={}`, `-id`, `jsonrpc="2"`}},
		{error01, FailIDMismatch, []string{`id="evt-2"`, `id=7`, `id=[]`, `id=false`}},

		{denyDraft, NoFailure, []string{`-result.effects`, `-result.extensions`, `result.more=1`, `result.extensions={}`}},
		{denyDraft, FailMissingResult, []string{`-result.protocolVersion`, `result.effects=null`, `result.effects={}`}},
		{denyDraft, FailVersionUnsupported, []string{`result.protocolVersion="0.1"`}},
		{denyDraft, FailMalformedRPC, []string{`result.manifest={}`, `result.manifest=null`, `result.configuration={}`, `result.extensions=null`, `result.extensions={"a":1}`, `result.extensions=[]`}},
	}
	for _, test := range tests {
		good := base(t, test.path)
		for _, edit := range test.edits {
			r := Response{Body: good.edited(edit)}
			if f := DecodeResponse(callOf(test.path), &r); f.Class != test.want {
				t.Errorf("DecodeResponse(%s with %s) = %v; want %v", test.path, edit, f, test.want)
			} else if !f.OK() && f.Detail == "" {
				t.Errorf("DecodeResponse(%s with %s) = %v; want a detail", test.path, edit, f)
			}
		}
	}
}

func TestDecodeResponseText(t *testing.T) {
	answer := string(message(t, deny01))
	for _, test := range []struct {
		body string
		want FailureClass
	}{
		{``, FailMalformedJSON},
		{`OK`, FailMalformedJSON},
		{`<html>`, FailMalformedJSON},
		{answer[:len(answer)-1], FailMalformedJSON},
		{answer + answer, FailMalformedJSON},
		{answer + "\x00", FailMalformedJSON},
		{"\uFEFF" + answer, FailMalformedJSON},
		{strings.Replace(answer, `"effects"`, `"effects":[],"effects"`, 1), FailMalformedJSON},
		{strings.Replace(answer, `"effects"`, `"effect\u0073":[],"effects"`, 1), FailMalformedJSON},
		{strings.Replace(answer, `"result"`, `"result":{},"result"`, 1), FailMalformedJSON},
		{strings.Replace(answer, `"deny"`, `"deny","type":"deny"`, 1), FailMalformedJSON},
		{strings.Replace(answer, "Not", `\udc00`, 1), FailMalformedJSON},
		{strings.Replace(answer, "Not", "\xe9", 1), FailMalformedJSON},
		{strings.Replace(answer, "7", nest(MaxDepth, "[", "", "]"), 1), FailMalformedJSON},
		{`[` + answer + `]`, FailMalformedRPC},
		{`[]`, FailMalformedRPC},
		{`{}`, FailMalformedRPC},
		{`null`, FailMalformedRPC},
		{`"` + strings.ReplaceAll(answer, `"`, `\"`) + `"`, FailMalformedRPC},
		{" \n" + answer + "\r\n\t ", NoFailure},
	} {
		r := Response{Body: []byte(test.body)}
		if f := DecodeResponse(callOf(deny01), &r); f.Class != test.want {
			t.Errorf("DecodeResponse(%q) = %v; want %v", test.body, f, test.want)
		}
	}
}

// TestDecodeResponseDetail: what a backend says in an error, or as an id or a
// version, is not quoted.
func TestDecodeResponseDetail(t *testing.T) {
	const secret = "s3cr3t"
	for path, edits := range map[string][]string{
		error01: {`error.message="s3cr3t"`, `error.data="s3cr3t"`, `id="s3cr3t"`, `error.code="s3cr3t"`},
		deny01:  {`id="s3cr3t"`, `result.protocolVersion="s3cr3t"`, `result.effects="s3cr3t"`, `jsonrpc="s3cr3t"`},
	} {
		for _, edit := range edits {
			r := Response{Body: base(t, path).edited(edit)}
			if f := DecodeResponse(callOf(path), &r); f.OK() || strings.Contains(f.String(), secret) {
				t.Errorf("DecodeResponse(%s with %s) = %v; want a failure without the backend's text", path, edit, f)
			}
		}
	}
}

func TestSameID(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`"a"`, `"a"`, true},
		{`"a"`, `"\u0061"`, true},
		{`"\ud83d\ude00"`, `"😀"`, true},
		{`1`, `1`, true},
		{`""`, `""`, true},
		{`"a"`, `"A"`, false},
		{`"1"`, `1`, false},
		{`1`, `1.0`, false},
		{`null`, `"null"`, false},
		{`""`, `null`, false},
		{`"a"`, `["a"]`, false},
	} {
		if got := sameID([]byte(test.a), []byte(test.b)); got != test.want {
			t.Errorf("sameID(%s, %s) = %v; want %v", test.a, test.b, got, test.want)
		}
		if got := sameID([]byte(test.b), []byte(test.a)); got != test.want {
			t.Errorf("sameID(%s, %s) = %v; want %v", test.b, test.a, got, test.want)
		}
	}
}

func TestFailureClasses(t *testing.T) {
	// The names are labels of metrics and fields of audit records: they stay.
	const want = "deadline+ budget- late+ dns+ connect+ reset+ tls+ blocked_address- credential- unauthorized+ redirect+ status+ media_type- oversize- " +
		"malformed_http+ malformed_json- malformed_rpc- id_mismatch- rpc_error- version_unsupported- event_unsupported- missing_result- effect_unknown- " +
		"effect_malformed- effect_unadvertised- effect_conflict- configuration- breaker_open- bulkhead_full- pool_exhausted- internal-"
	var got []string
	for _, c := range FailureClasses() {
		trips := "-"
		if c.TripsBreaker() {
			trips = "+"
		}
		got = append(got, c.String()+trips)
	}
	if got := strings.Join(got, " "); got != want {
		t.Errorf("FailureClasses() = %s; want %s", got, want)
	}
	if s := NoFailure.String(); s != "none" || NoFailure.TripsBreaker() {
		t.Errorf("NoFailure = %s, trips %v; want none, false", s, NoFailure.TripsBreaker())
	}
	if s := FailureClassCount.String(); s != "unknown" || FailureClassCount.TripsBreaker() {
		t.Errorf("a class beyond the last = %s, trips %v; want unknown, false", s, FailureClassCount.TripsBreaker())
	}
	for f, want := range map[Failure]string{
		{}:                             "none",
		{FailDNS, ""}:                  "dns",
		{FailDNS, "no such host"}:      "dns: no such host",
		{Class: FailureClassCount + 1}: "unknown",
	} {
		if got := fmt.Sprint(f); got != want || f.OK() != (f.Class == NoFailure) {
			t.Errorf("Failure(%d, %q) = %s, ok %v; want %s", f.Class, f.Detail, got, f.OK(), want)
		}
	}
}
