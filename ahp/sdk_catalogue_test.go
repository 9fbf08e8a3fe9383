//go:build interop

package ahp

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// sdkReader walks the SDK's schemas as data.
type sdkReader struct {
	t    *testing.T
	docs map[string]map[string]any
}

func newSDKReader(t *testing.T) *sdkReader {
	t.Helper()
	r := &sdkReader{t: t, docs: map[string]map[string]any{}}
	for _, doc := range sdkDocs() {
		d := doc.(map[string]any)
		r.docs[strings.TrimPrefix(d["$id"].(string), sdkBase)] = d
	}
	return r
}

// resolve returns what a reference in a file means, and the file that is in.
func (r *sdkReader) resolve(file, ref string) (string, map[string]any) {
	name, fragment, _ := strings.Cut(ref, "#")
	if name != "" {
		file = strings.TrimPrefix(name, sdkBase)
	}
	var at any = r.docs[file]
	for step := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
		switch v := at.(type) {
		case map[string]any:
			if step != "" {
				at = v[step]
			}
		case []any:
			at = v[step[0]-'0']
		}
	}
	s, ok := at.(map[string]any)
	if !ok {
		r.t.Fatalf("resolve(%s, %s) = %v; want a schema", file, ref, at)
	}
	return file, s
}

// paths notes every member that a schema knows below prefix. Conditions are
// left out: what they know, the schema itself does too.
func (r *sdkReader) paths(into map[string]memberPath, file string, s map[string]any, prefix string) {
	if ref, ok := s["$ref"].(string); ok {
		if strings.HasSuffix(ref, "content-item.schema.json") || strings.HasSuffix(ref, "#/$defs/textPart") {
			p := into[prefix]
			p.part = true
			into[prefix] = p
		}
		to, target := r.resolve(file, ref)
		r.paths(into, to, target, prefix)
	}
	for _, word := range []string{"allOf", "oneOf", "anyOf"} {
		branches, _ := s[word].([]any)
		for _, b := range branches {
			r.paths(into, file, b.(map[string]any), prefix)
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		r.paths(into, file, items, prefix+".*")
	}
	properties, _ := s["properties"].(map[string]any)
	for name, of := range properties {
		p := into[prefix+"."+name]
		required, _ := s["required"].([]any)
		p.required = p.required || slices.Contains(required, any(name))
		into[prefix+"."+name] = p
		if of, ok := of.(map[string]any); ok {
			r.paths(into, file, of, prefix+"."+name)
		}
	}
}

func (r *sdkReader) event(e EventType) (string, map[string]any) {
	switch e {
	case ToolBefore, ToolAfter, SessionStart, SessionEnd:
		file := strings.ReplaceAll(e.String(), ".", "-") + ".schema.json"
		return file, r.docs[file]
	}
	return r.resolve("catalogue-event.schema.json", "#/$defs/"+e.String())
}

// ruledOut are members that the SDK's schemas know and rule out again by a
// condition that shapes do not have.
var ruledOut = map[string]bool{
	"model.response.after.execution.detail":    true,
	"model.error.execution.detail":             true,
	"model.error.execution.reason":             true,
	"context.compact.after.execution.detail":   true,
	"context.compact.before.tokenCounts.after": true,
}

// comparePaths holds the members that a shape knows against a schema's.
func comparePaths(t *testing.T, what string, got, want map[string]memberPath) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[path]; !ok {
			if !ruledOut[what+path] {
				t.Errorf("%s: the shape lacks %s", what, path)
			}
		} else if top := strings.Count(path, ".") == 1; g.part != want[path].part || top && g.required != want[path].required {
			t.Errorf("%s: %s is %+v; want %+v", what, path, g, want[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[path]; !ok {
			t.Errorf("%s: the SDK's schema lacks %s", what, path)
		}
	}
}

// TestSDKMembers compares the members that shapes know, at every depth, with
// the SDK's: a mutation cannot try a member that nobody told it of. It compares
// where content stands too.
func TestSDKMembers(t *testing.T) {
	r := newSDKReader(t)
	for e := EventUnknown + 1; e < EventTypeCount; e++ {
		if !e.In(Draft) {
			continue
		}
		got, want := map[string]memberPath{}, map[string]memberPath{}
		pathsOf(got, eventShapes[e], "")
		file, s := r.event(e)
		r.paths(want, file, s, "")
		comparePaths(t, e.String(), got, want)
		var parts []string
		for path, p := range want {
			if p.part {
				parts = append(parts, strings.TrimPrefix(path, "."))
			}
		}
		var table []string
		for _, path := range contentPaths[e] {
			table = append(table, strings.Join(path, "."))
		}
		slices.Sort(parts)
		slices.Sort(table)
		if !slices.Equal(table, parts) {
			t.Errorf("content paths of %v = %q; want %q", e, table, parts)
		}
	}
	for name, s := range map[string]*shape{
		"#/$defs/MessagesState":     stateShapes[ModelRequestBefore],
		"#/$defs/TextState":         stateShapes[ContextCompactBefore],
		"#/$defs/ElicitResultState": stateShapes[UserElicitationRequest],
		"#/$defs/ToolState":         stateShapes[ToolBefore],
	} {
		got, want := map[string]memberPath{}, map[string]memberPath{}
		pathsOf(got, s, "")
		file, of := r.resolve("intercept-request.schema.json", name)
		r.paths(want, file, of, "")
		comparePaths(t, name, got, want)
	}
	got, want := map[string]memberPath{}, map[string]memberPath{}
	pathsOf(got, anyCapabilities, "")
	r.paths(want, "capabilities.schema.json", r.docs["capabilities.schema.json"], "")
	comparePaths(t, "capabilities", got, want)
}

// TestSDKCatalogue compares the catalogue with the SDK's.
func TestSDKCatalogue(t *testing.T) {
	r := newSDKReader(t)
	names := func(def string) []string {
		_, s := r.resolve("registration.schema.json", "#/$defs/"+def)
		enum := s["properties"].(map[string]any)["events"].(map[string]any)["items"].(map[string]any)["anyOf"].([]any)[0].(map[string]any)["enum"].([]any)
		return texts(enum)
	}
	interceptable, observable := names("interceptSubscription"), names("observeSubscription")
	for e := EventUnknown + 1; e < EventTypeCount; e++ {
		if got, want := e.Interceptable(Draft), slices.Contains(interceptable, e.String()); got != want {
			t.Errorf("%v.Interceptable(draft) = %v; want %v", e, got, want)
		}
		if got, want := e.Observable(Draft), slices.Contains(observable, e.String()); got != want {
			t.Errorf("%v.Observable(draft) = %v; want %v", e, got, want)
		}
		if !e.Interceptable(Draft) {
			continue
		}
		_, s := r.resolve("capabilities.schema.json", "#/$defs/"+e.String())
		own := s["allOf"].([]any)[1].(map[string]any)["properties"].(map[string]any)
		b := e.Bounds()
		got, want := effectNamesOf(b.Effects), texts(own["effects"].(map[string]any)["items"].(map[string]any)["enum"].([]any))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("effects of %v = %q; want %q", e, got, want)
		}
		target := ""
		if m, ok := own["modify"].(map[string]any); ok {
			target = strings.Join(texts(m["propertyNames"].(map[string]any)["enum"].([]any)), " ")
		}
		if b.Target != target {
			t.Errorf("target of %v = %q; want %q", e, b.Target, target)
		}
		goesOn := false
		if f, ok := own["flow"].(map[string]any); ok {
			goesOn = slices.Contains(texts(f["properties"].(map[string]any)["operations"].(map[string]any)["items"].(map[string]any)["enum"].([]any)), "continue")
		}
		if b.Continue != goesOn {
			t.Errorf("continue at %v = %v; want %v", e, b.Continue, goesOn)
		}
	}
	for _, list := range [][]string{interceptable, observable} {
		for _, name := range list {
			if _, ok := LookupEvent(Draft, name); !ok {
				t.Errorf("LookupEvent(draft, %s) = false; want true", name)
			}
		}
	}
}

func texts(list []any) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.(string))
	}
	return out
}
