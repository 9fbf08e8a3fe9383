package ahp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ahp-gateway/ahp-gateway/ahp/schema"
)

// The decoder and schemas of draft say the same of every message, whether the
// schemas are this project's or the official SDK's. The decoder is stricter in
// these points, and nowhere more lenient:
//
//   - the text is strict JSON: unique member names, valid UTF-8, no lone
//     surrogate, no byte order mark, nothing behind the value, at most MaxDepth
//     deep;
//   - the id of hooks/intercept equals params.event.id, and that of an answer
//     the call's id;
//   - an id that is a number, and an error's code, are written without fraction
//     and exponent;
//   - a number that a shape speaks of has no exponent beyond 400;
//   - formats are asserted: a uri and a date-time are what RFC 3986 and RFC 3339
//     say.

// draftCompiler has the draft schemas of this project.
var draftCompiler = sync.OnceValue(func() *jsonschema.Compiler {
	var docs []any
	files, err := fs.Glob(schema.FS, "draft/*.schema.json")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		text, err := schema.FS.ReadFile(file)
		if err != nil {
			panic(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			panic(file + ": " + err.Error())
		}
		docs = append(docs, doc)
	}
	return compilerOf(docs)
})

// compilerOf returns a compiler that knows some schemas and checks formats.
func compilerOf(docs []any) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.RegisterFormat(format("uri", uriShape.MatchString))
	c.RegisterFormat(format("date-time", matchesDateTime))
	c.AssertFormat()
	for _, doc := range docs {
		if err := c.AddResource(doc.(map[string]any)["$id"].(string), doc); err != nil {
			panic(err)
		}
	}
	return c
}

func compiled(t *testing.T, c *jsonschema.Compiler, id string) *jsonschema.Schema {
	t.Helper()
	s, err := c.Compile(id)
	if err != nil {
		t.Fatalf("Compile(%s) = %v; want nil", id, err)
	}
	return s
}

func ofDraft(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	return compiled(t, draftCompiler(), draftURN+name)
}

// tally counts the verdicts on one kind of message.
type tally [notStrict + 1]int

func (n *tally) String() string {
	return fmt.Sprintf("%d cases: %d accepted, %d refused, %d refused by a stricter rule, %d no strict JSON", n.total(), n[bothAccept], n[bothRefuse], n[onlySchema], n[notStrict])
}

func (n *tally) add(o tally) {
	for i := range o {
		n[i] += o[i]
	}
}

func (n *tally) total() int { return n[bothAccept] + n[bothRefuse] + n[onlySchema] + n[notStrict] }

// stricter reports whether a message that the schemas accept breaks one of the
// rules that are ours alone.
func stricter(doc any) bool {
	object, ok := doc.(map[string]any)
	if !ok {
		return false
	}
	if id, ok := object["id"].(json.Number); ok && strings.ContainsAny(id.String(), ".eE") {
		return true
	}
	if _, ok := object["result"]; ok && object["method"] == nil {
		return object["id"] != "e-1"
	}
	if params, ok := object["params"].(map[string]any); ok && object["method"] == "hooks/intercept" {
		if event, ok := params["event"].(map[string]any); ok {
			return object["id"] != event["id"]
		}
	}
	return false
}

// compare holds a verdict of ours against a schema's.
func compare(t *testing.T, text []byte, s *jsonschema.Schema, got bool, why any) verdict {
	t.Helper()
	if !otherReader(text) || depth(text) > MaxDepth {
		if got {
			t.Fatalf("%s is accepted; want it refused, it is no strict JSON", text)
		}
		return notStrict
	}
	doc := mustAny(t, text)
	err := s.Validate(doc)
	switch want := err == nil; {
	case want && stricter(doc):
		if got {
			t.Fatalf("%s is accepted; want it refused by a stricter rule", text)
		}
		return onlySchema
	case got != want:
		t.Fatalf("%s\naccepted %v: %v\nthe schema: %v", text, got, why, err)
		return 0
	case got:
		return bothAccept
	default:
		return bothRefuse
	}
}

// compareMessages runs n cases of one kind: one in four as generated, the
// others changed in one to three places.
func compareMessages(t *testing.T, r *sampler, n int, s *jsonschema.Schema, sample func() *tree, decide func(text []byte) (bool, any)) tally {
	t.Helper()
	var counts tally
	for i := range n {
		c := sample()
		if i%4 > 0 {
			for range 1 + r.IntN(3) {
				r.mutateDraft(c)
			}
		}
		var style *rand.Rand
		if i%8 == 0 {
			style = r.Rand
		}
		text := c.render(style)
		got, why := decide(text)
		v := compare(t, text, s, got, why)
		if i%4 == 0 && v != bothAccept {
			t.Fatalf("%s: verdict %d, %v; want it accepted as it was generated", text, v, why)
		}
		counts[v]++
	}
	return counts
}

func decodesAs(method Method) func(text []byte) (bool, any) {
	return func(text []byte) (bool, any) {
		var m Message
		err := Decode(text, &m)
		return err == nil && m.Version == Draft && m.Method == method, err
	}
}

// compareAnswers does the same with answers at an event.
func compareAnswers(t *testing.T, r *sampler, n int, s *jsonschema.Schema, e EventType) tally {
	t.Helper()
	call := &Call{ID: []byte(`"e-1"`), Version: Draft}
	return compareMessages(t, r, n, s, func() *tree { return r.answer(e) }, func(text []byte) (bool, any) {
		resp := Response{Body: text}
		if f := DecodeResponse(call, &resp); !f.OK() {
			return false, f
		}
		for effect := range Elements(resp.Effects) {
			if _, wrong := e.CheckEffect(effect); wrong != "" {
				return false, wrong
			}
		}
		return true, nil
	})
}

// memberPath is one path of members through objects and lists.
type memberPath struct {
	required bool
	part     bool // a content part stands there
}

// pathsOf notes every member that a shape knows below prefix.
func pathsOf(into map[string]memberPath, s *shape, prefix string) {
	if s == nil {
		return
	}
	if s.part {
		p := into[prefix]
		p.part = true
		into[prefix] = p
	}
	pathsOf(into, s.elem, prefix+".*")
	for _, c := range s.choices {
		pathsOf(into, c, prefix)
	}
	for _, m := range s.members {
		if m.shape.kind != shapeNever {
			p := into[prefix+"."+m.name]
			p.required = p.required || m.required
			into[prefix+"."+m.name] = p
			pathsOf(into, m.shape, prefix+"."+m.name)
		}
	}
}
