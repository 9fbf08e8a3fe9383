package ahp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ahp-gateway/ahp-gateway/ahp/schema"
)

// The decoder and the schemas say the same of every text, except for these
// rules, which a schema cannot state:
//
//   - the text is strict JSON: unique member names, valid UTF-8, no lone
//     surrogate, no byte order mark, nothing behind the value, at most MaxDepth
//     deep;
//   - the id of hooks/intercept equals params.event.id, that of an answer the
//     call's id;
//   - error.code is written without fraction and exponent, where a schema's
//     integer may be -32001.0;
//   - what effects an answer has is not DecodeResponse's business but that of
//     package decision: here they are replaced by none before a schema looks.

// format makes one of a schema's formats from the grammar in format_test.go.
// The library's own are looser: its uri is whatever net/url parses, its
// date-time takes signs for digits.
func format(name string, matches func(string) bool) *jsonschema.Format {
	return &jsonschema.Format{Name: name, Validate: func(v any) error {
		if s, ok := v.(string); ok && !matches(s) {
			return errors.New("is no " + name)
		}
		return nil
	}}
}

// schemas compiles the snapshot's schemas once.
var schemas = sync.OnceValue(func() map[string]*jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.RegisterFormat(format("uri", uriShape.MatchString))
	c.RegisterFormat(format("date-time", matchesDateTime))
	c.AssertFormat()
	files, err := fs.Glob(schema.FS, "0.1/*.schema.json")
	if err != nil {
		panic(err)
	}
	var ids []string
	for _, file := range files {
		text, err := schema.FS.ReadFile(file)
		if err != nil {
			panic(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			panic(file + ": " + err.Error())
		}
		id := doc.(map[string]any)["$id"].(string)
		if err := c.AddResource(id, doc); err != nil {
			panic(file + ": " + err.Error())
		}
		ids = append(ids, id)
	}
	compiled := make(map[string]*jsonschema.Schema, len(ids))
	for _, id := range ids {
		compiled[strings.TrimPrefix(id, "urn:ahp-gateway:schema:0.1:")] = c.MustCompile(id)
	}
	return compiled
})

// allowed reports whether a schema accepts a text, for which it must be JSON.
func allowed(t testing.TB, name string, text []byte) bool {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("UnmarshalJSON(%q) = %v; want nil", text, err)
	}
	return schemas()[name].Validate(doc) == nil
}

// TestSchemaFiles checks what the files say of themselves.
func TestSchemaFiles(t *testing.T) {
	ofSchemas := jsonschema.NewCompiler().MustCompile("https://json-schema.org/draft/2020-12/schema")
	var names []string
	for name := range schemas() {
		names = append(names, name)
		text, err := schema.FS.ReadFile("0.1/" + name + ".schema.json")
		if err != nil {
			t.Errorf("ReadFile(%s) = %v; want the schema whose $id ends so", name, err)
			continue
		}
		doc, err := parseTree(text)
		if err != nil {
			t.Errorf("parseTree(%s) = %v; want nil", name, err)
			continue
		}
		if got := doc.get("$schema"); got == nil || got.text != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("$schema of %s = %+v; want 2020-12", name, got)
		}
		if err := ofSchemas.Validate(mustAny(t, text)); err != nil {
			t.Errorf("%s is no schema: %v", name, err)
		}
	}
	slices.Sort(names)
	want := []string{"common", "effect", "event", "intercept-request", "intercept-response", "observe-notification"}
	if !slices.Equal(names, want) {
		t.Errorf("schemas of 0.1 = %q; want %q", names, want)
	}
}

func mustAny(t testing.TB, text []byte) any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("UnmarshalJSON(%s) = %v; want nil", text, err)
	}
	return doc
}

func TestSchemasAccept(t *testing.T) {
	for pattern, name := range map[string]string{
		"0.1/requests/intercept*.json": "intercept-request",
		"0.1/requests/observe*.json":   "observe-notification",
		"0.1/answers/*.json":           "intercept-response",
	} {
		for path, text := range messages(t, pattern) {
			if err := schemas()[name].Validate(mustAny(t, text)); err != nil {
				t.Errorf("%s refuses %s: %v", name, path, err)
			}
		}
	}
}

// TestEffectSchema states what the decoder leaves to package decision.
func TestEffectSchema(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"type":"deny","reason":"r"}`: true,
		`{"type":"deny","reason":"r","code":"com.example.c","extensions":{"com.example.x":[]},"more":1}`: true,
		`{"type":"deny"}`:                                   false,
		`{"type":"deny","reason":""}`:                       false,
		`{"type":"deny","reason":1}`:                        false,
		`{"type":"deny","reason":"r","code":""}`:            false,
		`{"type":"deny","reason":"r","code":"c"}`:           false,
		`{"type":"deny","reason":"r","extensions":{"x":1}}`: false,
		`{"type":"deny","reason":"r","extensions":null}`:    false,
		`{"type":"allow","reason":"r"}`:                     false,
		`{"type":"com.example.deny","reason":"r"}`:          false,
		`{"reason":"r"}`:                                    false,
		`"deny"`:                                            false,
	} {
		if got := allowed(t, "effect", []byte(raw)); got != want {
			t.Errorf("effect schema of %s = %v; want %v", raw, got, want)
		}
		answer := base(t, empty01).edited(`result.effects=[` + raw + `]`)
		if got := allowed(t, "intercept-response", answer); got != want {
			t.Errorf("intercept-response schema of %s = %v; want %v", answer, got, want)
		}
	}
	for effects, want := range map[string]bool{
		`[]`:                             true,
		`[{"type":"deny","reason":"r"}]`: true,
		`[{"type":"deny","reason":"r"},{"type":"deny","reason":"r"}]`: false,
		`null`: false,
		`{}`:   false,
	} {
		answer := base(t, empty01).edited(`result.effects=` + effects)
		if got := allowed(t, "intercept-response", answer); got != want {
			t.Errorf("intercept-response schema of %s = %v; want %v", answer, got, want)
		}
	}
}

// verdict is what came of comparing the decoder and the schemas.
type verdict uint8

const (
	bothRefuse verdict = iota
	bothAccept
	onlySchema // the decoder has a reason that a schema cannot state
	notStrict
)

// compareRequest holds Decode of 0.1 against the schemas.
func compareRequest(t *testing.T, text []byte) verdict {
	t.Helper()
	var m Message
	err := Decode(text, &m)
	if !otherReader(text) || depth(text) > MaxDepth {
		if err == nil || err.Code != CodeParse {
			t.Fatalf("Decode(%q) = %+v; want code %d", text, err, CodeParse)
		}
		return notStrict
	}
	if err != nil && err.Code == CodeParse {
		t.Fatalf("Decode(%q) = %+v; want another code, the text is strict JSON", text, err)
	}
	result := bothRefuse
	for name, method := range map[string]Method{"intercept-request": MethodIntercept, "observe-notification": MethodObserve} {
		got := err == nil && m.Version == V01 && m.Method == method
		want := allowed(t, name, text)
		switch {
		case want && method == MethodIntercept && !idIsEventID(t, text):
			if got {
				t.Fatalf("Decode(%q) = nil; want an error: id is not params.event.id", text)
			}
			result = onlySchema
		case got != want:
			t.Fatalf("Decode(%q) accepts %v: %v, %+v; the schema says %v: %v", text, method, got, err, want, schemas()[name].Validate(mustAny(t, text)))
		case got:
			result = bothAccept
		}
	}
	return result
}

// idIsEventID says what a schema cannot, of a request that a schema accepts.
func idIsEventID(t *testing.T, text []byte) bool {
	t.Helper()
	request := mustAny(t, text).(map[string]any)
	event := request["params"].(map[string]any)["event"].(map[string]any)
	return request["id"] == event["id"]
}

// compareResponse holds DecodeResponse of 0.1 against the schemas.
func compareResponse(t *testing.T, text []byte) verdict {
	t.Helper()
	call := Call{ID: []byte(`"evt-1"`), Version: V01}
	r := Response{Body: text}
	f := DecodeResponse(&call, &r)
	if !otherReader(text) || depth(text) > MaxDepth {
		if f.Class != FailMalformedJSON {
			t.Fatalf("DecodeResponse(%q) = %v; want %v", text, f, FailMalformedJSON)
		}
		return notStrict
	}
	if f.Class == FailMalformedJSON {
		t.Fatalf("DecodeResponse(%q) = %v; want another class, the text is strict JSON", text, f)
	}
	doc := mustAny(t, text)
	want, sameCall, plainCode := false, false, true
	if object, ok := doc.(map[string]any); ok {
		if result, ok := object["result"].(map[string]any); ok {
			if effects, ok := result["effects"].([]any); ok {
				if f.OK() && !reflect.DeepEqual(mustAny(t, r.Effects), any(effects)) {
					t.Fatalf("DecodeResponse(%q) has effects %s; want %v", text, r.Effects, effects)
				}
				result["effects"] = []any{}
			}
		}
		want = schemas()["intercept-response"].Validate(doc) == nil
		_, isError := object["error"]
		sameCall = object["id"] == "evt-1" || isError && object["id"] == nil
		if e, ok := object["error"].(map[string]any); ok {
			if code, ok := e["code"].(json.Number); ok {
				plainCode = !strings.ContainsAny(code.String(), ".eE")
			}
		}
	}
	var got bool
	switch f.Class {
	case NoFailure, FailRPCError, FailEventUnsupported:
		got = true
	case FailVersionUnsupported: // an error that says so, or a result of another version
		object := doc.(map[string]any)
		_, got = object["error"]
	}
	if want && (!sameCall || !plainCode) {
		if got {
			t.Fatalf("DecodeResponse(%q) = %v; want an answer to another call or a code with a fraction refused", text, f)
		}
		return onlySchema
	}
	if got != want {
		t.Fatalf("DecodeResponse(%q) = %v; the schema says %v: %v", text, f, want, schemas()["intercept-response"].Validate(doc))
	}
	if got {
		return bothAccept
	}
	return bothRefuse
}

// TestDecodeMutated changes good messages at random and compares decoder and
// schemas on each. The counts say that the changes were neither all harmless
// nor all fatal.
func TestDecodeMutated(t *testing.T) {
	for _, test := range []struct {
		pattern string
		cases   int
		compare func(*testing.T, []byte) verdict
	}{
		{"0.1/requests/*.json", 20000, compareRequest},
		{"0.1/answers/*.json", 5000, compareResponse},
	} {
		var good []*tree
		texts := messages(t, test.pattern)
		for _, path := range slices.Sorted(maps.Keys(texts)) {
			good = append(good, base(t, path))
		}
		r := rand.New(rand.NewPCG(4, 4))
		var counts [notStrict + 1]int
		for i := range test.cases {
			c := good[i%len(good)].clone()
			for range 1 + r.IntN(3) {
				mutate(r, c)
			}
			var style *rand.Rand
			if i%8 == 0 {
				style = r
			}
			counts[test.compare(t, c.render(style))]++
		}
		t.Logf("%s: %d accepted by both, %d refused by both, %d by the decoder alone, %d no strict JSON",
			test.pattern, counts[bothAccept], counts[bothRefuse], counts[onlySchema], counts[notStrict])
		for v, n := range counts {
			if n < test.cases/1000 {
				t.Errorf("%s: %d of %d cases came to verdict %d; want at least 1 in 1000", test.pattern, n, test.cases, v)
			}
		}
	}
}

func FuzzDecodeSchema(f *testing.F) {
	for _, text := range messages(f, "*/requests/*.json") {
		f.Add(text)
	}
	for _, test := range strictTexts {
		if len(test.text) < 1000 {
			f.Add([]byte(test.text))
		}
	}
	r := rand.New(rand.NewPCG(5, 5))
	texts := messages(f, "0.1/requests/*.json")
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		for range 20 {
			c := base(f, path)
			mutate(r, c)
			f.Add(c.render(nil))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) { compareRequest(t, text) })
}

func FuzzDecodeResponse(f *testing.F) {
	for _, text := range messages(f, "*/answers/*.json") {
		f.Add(text)
	}
	r := rand.New(rand.NewPCG(6, 6))
	texts := messages(f, "0.1/answers/*.json")
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		for range 20 {
			c := base(f, path)
			mutate(r, c)
			f.Add(c.render(nil))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		compareResponse(t, text)
		// The other snapshot has no schema here: it must only hold together.
		draft := Response{Body: text}
		if f := DecodeResponse(&Call{ID: []byte(`"evt-1"`), Version: Draft}, &draft); f.OK() {
			for effect := range Elements(draft.Effects) {
				if !otherReader(effect) {
					t.Errorf("Elements(%q) has %q; want a value", draft.Effects, effect)
				}
			}
		}
	})
}
