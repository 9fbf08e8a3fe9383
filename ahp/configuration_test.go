package ahp

import (
	"bytes"
	"strings"
	"testing"
)

const toolsDraft = "testdata/draft/configurations/tools.json"

func TestAppendConfigurationRequest(t *testing.T) {
	const want = `{"jsonrpc":"2.0","id":"a","method":"hooks/configuration","params":{"protocolVersion":"draft"}}`
	got := AppendConfigurationRequest([]byte("before "), []byte(`"a"`))
	if string(got) != "before "+want {
		t.Errorf("AppendConfigurationRequest(%q) = %s; want %s", `"a"`, got, want)
	}
	var m Message
	if err := Decode([]byte(want), &m); err != nil || m.Method != MethodConfiguration || m.Version != Draft || string(m.ID) != `"a"` {
		t.Errorf("Decode(%s) = %v, %+v; want a request of hooks/configuration", want, err, m)
	}
}

func TestDecodeConfigurationAccepts(t *testing.T) {
	want := string(base(t, toolsDraft).get("result.configuration").render(nil))
	for _, edit := range []string{
		`more=1`, `method="x"`, `id="evt\u002d1"`, `result.more=1`, `result.extensions=null`, `result.extensions={"a":1}`,
	} {
		body := base(t, toolsDraft).edited(edit)
		kept := bytes.Clone(body)
		got, f := DecodeConfiguration(callOf(toolsDraft), body)
		if !f.OK() || string(got) != want {
			t.Errorf("DecodeConfiguration(with %s) = %s, %v; want %s", edit, got, f, want)
		}
		if !bytes.Equal(body, kept) {
			t.Errorf("DecodeConfiguration(with %s) changed the body", edit)
		}
	}
	// What an object holds is for package config.
	if got, f := DecodeConfiguration(callOf(toolsDraft), base(t, toolsDraft).edited(`result.configuration={}`)); !f.OK() || string(got) != `{}` {
		t.Errorf("DecodeConfiguration(empty object) = %s, %v; want {}", got, f)
	}
}

func TestDecodeConfigurationRefuses(t *testing.T) {
	good := base(t, toolsDraft)
	for _, test := range []struct {
		want  FailureClass
		edits []string
	}{
		{FailMalformedRPC, []string{`-jsonrpc`, `jsonrpc="1.0"`, `-id`, `-result`, `result=[]`, `result=null`, `error={"code":1,"message":"m"}`,
			`result.effects=[]`, `result.effects=null`, `result.manifest={}`, `result.manifest=null`}},
		{FailIDMismatch, []string{`id="evt-2"`, `id=1`, `id=null`}},
		{FailVersionUnsupported, []string{`result.protocolVersion="0.1"`, `result.protocolVersion=""`}},
		{FailMissingResult, []string{`-result.protocolVersion`, `result.protocolVersion=1`, `-result.configuration`, `result.configuration=null`,
			`result.configuration=[]`, `result.configuration="s3cr3t"`}},
	} {
		for _, edit := range test.edits {
			got, f := DecodeConfiguration(callOf(toolsDraft), good.edited(edit))
			if f.Class != test.want || got != nil || f.Detail == "" || strings.Contains(f.Detail, "s3cr3t") {
				t.Errorf("DecodeConfiguration(with %s) = %s, %v; want %v with a detail of our own", edit, got, f, test.want)
			}
		}
	}
	for body, want := range map[string]FailureClass{
		``:                              FailMalformedJSON,
		string(good.render(nil)) + `{}`: FailMalformedJSON,
		strings.Replace(string(good.render(nil)), `"mode"`, `"mode":"observe","mode"`, 1): FailMalformedJSON,
		`[` + string(good.render(nil)) + `]`:                                              FailMalformedRPC,
		`{"jsonrpc":"2.0","id":"evt-1","error":{"code":-32601,"message":"s3cr3t"}}`:       FailRPCError,
		`{"jsonrpc":"2.0","id":"evt-1","error":{"code":-32001,"message":"s3cr3t"}}`:       FailVersionUnsupported,
		`{"jsonrpc":"2.0","id":"evt-2","error":{"code":-32601,"message":"s3cr3t"}}`:       FailIDMismatch,
	} {
		got, f := DecodeConfiguration(callOf(toolsDraft), []byte(body))
		if f.Class != want || got != nil || strings.Contains(f.Detail, "s3cr3t") {
			t.Errorf("DecodeConfiguration(%s) = %s, %v; want %v", body, got, f, want)
		}
	}
}
