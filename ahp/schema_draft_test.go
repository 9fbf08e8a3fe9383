package ahp

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp/schema"
)

var update = flag.Bool("update", false, "write the draft schemas anew from the shapes")

// schemaWriter makes the draft schemas from the shapes, so that the two cannot
// drift apart.
type schemaWriter struct {
	defs map[string]map[string]*tree // by file and name
}

// object makes a tree of alternating names and values: trees, strings, numbers
// and booleans.
func obj(pairs ...any) *tree {
	t := &tree{kind: KindObject}
	for i := 0; i < len(pairs); i += 2 {
		t.add(pairs[i].(string), toTree(pairs[i+1]))
	}
	return t
}

func toTree(v any) *tree {
	switch v := v.(type) {
	case *tree:
		return v
	case []*tree:
		return &tree{kind: KindArray, members: v}
	case []string:
		t := &tree{kind: KindArray}
		for _, s := range v {
			t.members = append(t.members, str(s))
		}
		return t
	case string:
		return str(v)
	default:
		return mustTree(fmt.Sprint(v))
	}
}

const (
	draftURN     = "urn:ahp-gateway:schema:draft:"
	dottedText   = `^(?:[A-Za-z][A-Za-z0-9_-]*\.)+[A-Za-z][A-Za-z0-9_-]*$`
	noAttachment = `^(?:[Tt][Ee][Xx][Tt]/|[^/]+/(?:[^;]+\+)?[Jj][Ss][Oo][Nn](?:;|$))`
)

// fileOf says which file a named shape is defined in.
func fileOf(name string) string {
	first, _, _ := strings.Cut(name, ".")
	switch {
	case strings.HasSuffix(first, "Effect"):
		return "effect"
	case first == "capabilities" || first == "operations" || strings.HasSuffix(first, "Capability"):
		return "capabilities"
	case first == "state":
		return "state"
	case strings.Contains(name, "."):
		return "event"
	default:
		return "common"
	}
}

// ref returns a reference to a named shape, which it defines, or the schema of
// one that has no name.
func (w *schemaWriter) ref(s *shape) *tree {
	if s.name == "" {
		return w.schema(s)
	}
	file := fileOf(s.name)
	if w.defs[file] == nil {
		w.defs[file] = map[string]*tree{}
	}
	if w.defs[file][s.name] == nil {
		w.defs[file][s.name] = obj() // there is no recursion
		w.defs[file][s.name] = w.schema(s)
	}
	return refTo(file, s.name)
}

func refTo(file, name string) *tree {
	return obj("$ref", draftURN+file+"#/$defs/"+name)
}

func (w *schemaWriter) schema(s *shape) *tree {
	switch s.kind {
	case shapeAny:
		return toTree(true)
	case shapeNever:
		return toTree(false)
	case shapeNull:
		return obj("type", "null")
	case shapeText:
		return obj("type", "string")
	case shapeFilled:
		return obj("type", "string", "minLength", 1)
	case shapeEnum:
		if s.open {
			return obj("type", "string", "minLength", 1)
		}
		return obj("enum", s.values)
	case shapeScheme:
		return obj("type", "string", "pattern", "^(?:(?:"+strings.Join(s.values, "|")+")$|_.)")
	case shapeDotted:
		own := obj("type", "string", "pattern", dottedText)
		if len(s.values) > 0 {
			return obj("anyOf", []*tree{obj("enum", s.values), own})
		}
		return own
	case shapeURI:
		return obj("type", "string", "format", "uri")
	case shapeHTTPURL:
		return obj("type", "string", "format", "uri", "pattern", "^https?://")
	case shapeDateTime:
		return obj("type", "string", "format", "date-time")
	case shapeCurrency:
		return obj("type", "string", "pattern", "^[A-Z]{3}$")
	case shapeSHA256:
		return obj("type", "string", "pattern", "^[a-f0-9]{64}$")
	case shapeMedia:
		return obj("type", "string", "minLength", 1, "anyOf", []*tree{obj("const", "text/plain"), obj("not", obj("pattern", noAttachment))})
	case shapeBool:
		return obj("type", "boolean")
	case shapeTrue:
		return obj("const", true)
	case shapeWhole:
		return obj("type", "integer", "minimum", s.atLeast)
	case shapeAnyWhole:
		return obj("type", "integer")
	case shapeNumber:
		return obj("type", "number", "minimum", 0)
	case shapeAnyNumber:
		return obj("type", "number")
	case shapeChoice:
		var any []*tree
		for _, c := range s.choices {
			any = append(any, w.ref(c))
		}
		return obj("anyOf", any)
	case shapeList:
		t := obj("type", "array", "items", w.ref(s.elem))
		if s.atLeast > 0 {
			t.add("minItems", toTree(s.atLeast))
		}
		if s.unique {
			t.add("uniqueItems", toTree(true))
		}
		return t
	}
	return w.object(s)
}

func (w *schemaWriter) object(s *shape) *tree {
	t := obj()
	if s.about != "" {
		t.add("description", str(s.about))
	}
	t.add("type", str("object"))
	var required []string
	properties := obj()
	for _, m := range s.members {
		if m.required {
			required = append(required, m.name)
		}
		properties.add(m.name, w.ref(m.shape))
	}
	if required != nil {
		t.add("required", toTree(required))
	}
	if len(properties.names) > 0 {
		t.add("properties", properties)
	}
	switch {
	case s.closed:
		t.add("additionalProperties", toTree(false))
	case s.others != nil:
		t.add("additionalProperties", w.ref(s.others))
	}
	if s.dotted {
		t.add("propertyNames", obj("pattern", dottedText))
	}
	if s.filled {
		t.add("minProperties", toTree(1))
	}
	var rules []*tree
	for _, r := range s.rules {
		rule := obj()
		if len(r.when) > 0 {
			rule.add("if", all(w.conds(s, r.when)))
		}
		then := w.conds(s, r.must)
		if r.need != nil {
			then = append(then, obj("required", r.need))
		}
		if r.ban != nil {
			none := obj()
			for _, name := range r.ban {
				none.add(name, toTree(false))
			}
			then = append(then, obj("properties", none))
		}
		if r.one != nil {
			var one []*tree
			for _, name := range r.one {
				one = append(one, obj("required", []string{name}))
			}
			then = append(then, obj("oneOf", one))
		}
		if r.as != nil {
			then = append(then, obj("properties", obj(r.asOf, w.ref(r.as))))
		}
		rule.add("then", all(then))
		rules = append(rules, rule)
	}
	if rules != nil {
		t.add("allOf", toTree(rules))
	}
	return t
}

func all(of []*tree) *tree {
	if len(of) == 1 {
		return of[0]
	}
	return obj("allOf", of)
}

func (w *schemaWriter) conds(s *shape, conds []cond) []*tree {
	var all []*tree
	for _, c := range conds {
		t := obj("required", []string{c.member})
		if c.bits != 0 {
			t.add("properties", obj(c.member, bitsOf(s.members[s.index(c.member)].shape, c.bits)))
		}
		if c.not {
			t = obj("not", t)
		}
		all = append(all, t)
	}
	return all
}

// bitsOf returns the schema of the values of s that have one of some bits.
func bitsOf(s *shape, bits uint64) *tree {
	switch s.kind {
	case shapeEnum, shapeScheme, shapeDotted:
		var values []string
		for i, v := range s.values {
			if bits>>(int(s.shift)+i)&1 != 0 {
				values = append(values, v)
			}
		}
		if bits&bitOther != 0 {
			if values != nil {
				return toTree(true)
			}
			return obj("not", obj("enum", s.values))
		}
		return obj("enum", values)
	case shapeBool:
		return obj("const", bits&bitTrue != 0)
	case shapeMedia:
		if bits&bitPlain != 0 {
			return obj("const", "text/plain")
		}
		return obj("not", obj("pattern", noAttachment))
	case shapeList:
		return obj("contains", bitsOf(s.elem, bits))
	case shapeObject:
		var any []*tree
		for _, m := range s.members {
			of := m.shape
			if of.kind == shapeList {
				of = of.elem
			}
			mine := uint64(0)
			for i := range of.values {
				mine |= 1 << (int(of.shift) + i)
			}
			if m.shown && bits&mine != 0 {
				any = append(any, obj("required", []string{m.name}, "properties", obj(m.name, bitsOf(m.shape, bits))))
			}
		}
		if len(any) == 1 {
			return any[0]
		}
		return obj("anyOf", any)
	}
	panic("no bits")
}

// draftSchemas returns the text of every draft schema by name.
func draftSchemas() map[string][]byte {
	w := &schemaWriter{defs: map[string]map[string]*tree{}}
	events := func(which func(EventType) bool) (list []EventType) {
		for e := EventUnknown + 1; e < EventTypeCount; e++ {
			if which(e) {
				list = append(list, e)
			}
		}
		return list
	}
	observable := events(func(e EventType) bool { return e.Observable(Draft) })
	interceptable := events(func(e EventType) bool { return e.Interceptable(Draft) })

	var anyEvent []*tree
	for _, e := range observable {
		anyEvent = append(anyEvent, w.ref(eventShapes[e]))
	}
	// What goes with an event goes by its type.
	var byEvent, anyIntercepted []*tree
	answers := obj()
	var anyEffect []*tree
	for _, e := range interceptable {
		anyIntercepted = append(anyIntercepted, w.ref(eventShapes[e]))
		byEvent = append(byEvent, obj(
			"if", obj("properties", obj("event", obj("properties", obj("type", obj("const", e.String()))))),
			"then", obj("properties", obj("capabilities", w.ref(capabilityShapes[e]), "state", w.ref(stateShapes[e]))),
		))
		var effects []*tree
		for _, s := range effectShapes[e] {
			if s == nil {
				continue
			}
			of := w.ref(s)
			effects = append(effects, of)
			if !slices.ContainsFunc(anyEffect, func(t *tree) bool { return t.members[0].text == of.members[0].text }) {
				anyEffect = append(anyEffect, of)
			}
		}
		answers.add(e.String(), result("The answer at "+e.String()+".", obj("anyOf", effects), w.ref(extensions)))
	}
	version := obj("const", "draft")
	id := obj("anyOf", []*tree{obj("type", "string", "minLength", 1), obj("type", "integer")})
	request := func(about, method string, params *tree) *tree {
		return obj("title", about, "type", "object", "required", []string{"jsonrpc", "id", "method", "params"}, "properties", obj(
			"jsonrpc", obj("const", "2.0"), "id", id, "method", obj("const", method), "params", params))
	}
	bare := obj("type", "object", "required", []string{"protocolVersion"}, "properties", obj("protocolVersion", version), "additionalProperties", false)
	roots := map[string]*tree{
		"common":       obj("title", "What messages of draft are made of"),
		"event":        obj("title", "The events of draft", "oneOf", anyEvent),
		"capabilities": obj("title", "What a harness of draft lets an answer do"),
		"state":        obj("title", "What a boundary of draft has settled so far"),
		"effect":       obj("title", "The effects of draft", "anyOf", anyEffect),
		"intercept-request": request("hooks/intercept of draft", "hooks/intercept", obj(
			"type", "object", "required", []string{"protocolVersion", "event", "capabilities"},
			"properties", obj("protocolVersion", version, "event", obj("oneOf", anyIntercepted), "extensions", w.ref(extensions)),
			"allOf", byEvent)),
		"observe-notification": obj("title", "hooks/observe of draft", "type", "object", "required", []string{"jsonrpc", "method", "params"}, "properties", obj(
			"jsonrpc", obj("const", "2.0"), "id", false, "method", obj("const", "hooks/observe"),
			"params", obj("type", "object", "required", []string{"protocolVersion", "event"}, "properties", obj("protocolVersion", version, "event", obj("$ref", draftURN+"event"))))),
		"capabilities-request":  request("hooks/capabilities of draft", "hooks/capabilities", bare),
		"configuration-request": request("hooks/configuration of draft", "hooks/configuration", bare),
		"intercept-response":    result("An answer to hooks/intercept of draft; what one event allows of it is under $defs.", obj("$ref", draftURN+"effect"), w.ref(extensions)),
	}
	w.defs["intercept-response"] = map[string]*tree{}
	for i, name := range answers.names {
		w.defs["intercept-response"][name] = answers.members[i]
	}
	texts := map[string][]byte{}
	for name, root := range roots {
		doc := obj("$schema", "https://json-schema.org/draft/2020-12/schema", "$id", draftURN+name)
		for i, n := range root.names {
			doc.add(n, root.members[i])
		}
		if defs := w.defs[name]; defs != nil {
			all := obj()
			for _, n := range sortedKeys(defs) {
				all.add(n, defs[n])
			}
			doc.add("$defs", all)
		}
		texts[name] = append(laidOut(nil, doc, ""), '\n')
	}
	return texts
}

// laidOut appends t with as much on a line as can be read at a glance.
func laidOut(out []byte, t *tree, indent string) []byte {
	line := t.render(nil)
	if len(line) < 100 || t.kind != KindObject && t.kind != KindArray {
		return append(out, spaced(line)...)
	}
	brackets := "[]"
	if t.kind == KindObject {
		brackets = "{}"
	}
	out = append(out, brackets[0])
	for i, m := range t.members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, "\n"+indent+"  "...)
		if t.kind == KindObject {
			out = append(append(out, str(t.names[i]).render(nil)...), ": "...)
		}
		out = laidOut(out, m, indent+"  ")
	}
	return append(out, "\n"+indent+brackets[1:]...)
}

// spaced puts a blank behind every comma and colon of a line of JSON that is
// not in a string.
func spaced(line []byte) []byte {
	var out []byte
	quoted := false
	for i, c := range line {
		out = append(out, c)
		switch {
		case c == '"' && line[max(0, i-1)] != '\\':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// result is a JSON-RPC result of hooks/intercept.
func result(about string, effect, extensions *tree) *tree {
	return obj("description", about, "type", "object", "required", []string{"jsonrpc", "id", "result"}, "properties", obj(
		"jsonrpc", obj("const", "2.0"),
		"id", obj("anyOf", []*tree{obj("type", "string", "minLength", 1), obj("type", "integer"), obj("type", "null")}),
		"error", false,
		"result", obj("type", "object", "required", []string{"protocolVersion"}, "properties", obj(
			"protocolVersion", obj("const", "draft"),
			"effects", obj("type", "array", "items", effect),
			"extensions", extensions,
			"manifest", false,
			"configuration", false,
		)),
	))
}

// TestDraftSchemaFiles: the files are what the shapes say. With -update it
// writes them.
func TestDraftSchemaFiles(t *testing.T) {
	texts := draftSchemas()
	if *update {
		for name, text := range texts {
			if err := os.WriteFile(filepath.Join("schema", "draft", name+".schema.json"), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return // what is embedded is as old as this binary
	}
	files, err := schema.FS.ReadDir("draft")
	if err != nil || len(files) != len(texts) {
		t.Errorf("ReadDir(draft) = %d files, %v; want %d", len(files), err, len(texts))
	}
	for name, want := range texts {
		got, err := os.ReadFile(filepath.Join("schema", "draft", name+".schema.json"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("schema/draft/%s.schema.json is not what the shapes say (%v); run go test ./ahp -update", name, err)
		}
	}
}

// TestDraftSchemas holds the decoder against our own schemas, as TestSDKRequests
// does against the SDK's.
func TestDraftSchemas(t *testing.T) {
	var sum tally
	for e := EventUnknown + 1; e < EventTypeCount; e++ {
		r := &sampler{Rand: rand.New(rand.NewPCG(9, uint64(e)))}
		if e.Observable(Draft) {
			sum.add(compareMessages(t, r, 32, ofDraft(t, "observe-notification"), func() *tree { return r.observation(e) }, decodesAs(MethodObserve)))
		}
		if e.Interceptable(Draft) {
			sum.add(compareMessages(t, r, 32, ofDraft(t, "intercept-request"), func() *tree { return r.interception(e) }, decodesAs(MethodIntercept)))
			sum.add(compareAnswers(t, r, 32, ofDraft(t, "intercept-response#/$defs/"+e.String()), e))
		}
	}
	for _, method := range []Method{MethodCapabilities, MethodConfiguration} {
		r := &sampler{Rand: rand.New(rand.NewPCG(9, uint64(method)))}
		name := strings.TrimPrefix(method.String(), "hooks/") + "-request"
		sum.add(compareMessages(t, r, 200, ofDraft(t, name), func() *tree { return r.question(method) }, decodesAs(method)))
	}
	t.Log(&sum)
	for v, n := range sum {
		if n < 3 {
			t.Errorf("%d of %d cases came to verdict %d; want at least 3", n, sum.total(), v)
		}
	}
}
