package chart_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// value is one value of values.yaml with its text.
type value struct {
	path, text string
	def        string // as JSON
}

// documented returns the values of values.yaml that have a text, in order. Each
// value has one itself, or all that is in it does.
func documented(t testing.TB) []value {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	var all []value
	var walk func(n *yaml.Node, prefix string)
	walk = func(n *yaml.Node, prefix string) {
		for i := 0; i < len(n.Content); i += 2 {
			key, val := n.Content[i], n.Content[i+1]
			path := prefix + key.Value
			_, text, found := strings.Cut("\n"+key.HeadComment, "\n# -- ")
			switch {
			case found:
				text = strings.ReplaceAll(text, "\n# ", " ")
				var v any
				if err := val.Decode(&v); err != nil {
					t.Fatal(err)
				}
				var def bytes.Buffer
				enc := json.NewEncoder(&def)
				enc.SetEscapeHTML(false)
				if err := enc.Encode(v); err != nil {
					t.Fatal(err)
				}
				all = append(all, value{path: path, text: text, def: strings.TrimSpace(def.String())})
			case val.Kind == yaml.MappingNode && len(val.Content) > 0:
				walk(val, path+".")
			default:
				t.Errorf("values.yaml: %s has no text", path)
			}
		}
	}
	walk(doc.Content[0], "")
	return all
}

// load reads a JSON or YAML file.
func load(t testing.TB, path string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := make(map[string]any)
	if err := sigsyaml.UnmarshalStrict(data, &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if doc == nil { // a file of comments
		doc = make(map[string]any)
	}
	return doc
}

// rewritten calls f for every object of a schema, from the inside, and returns
// what f makes of it.
func rewritten(schema any, f func(map[string]any) any) any {
	switch s := schema.(type) {
	case map[string]any:
		for k, v := range s {
			s[k] = rewritten(v, f)
		}
		return f(s)
	case []any:
		for i, v := range s {
			s[i] = rewritten(v, f)
		}
	}
	return schema
}

// valuesSchema makes values.schema.json: what is written by hand, the texts of
// values.yaml, and the gateway's own schemas.
func valuesSchema(t testing.TB) []byte {
	t.Helper()
	schema := load(t, "testdata/values.schema.yaml")
	texts := make(map[string]string)
	for _, v := range documented(t) {
		texts[v.path] = strings.ReplaceAll(v.text, "`", "")
	}
	var describe func(s map[string]any, prefix string)
	describe = func(s map[string]any, prefix string) {
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			if text := texts[prefix+name]; text != "" {
				p.(map[string]any)["description"] = text
			}
			describe(p.(map[string]any), prefix+name+".")
		}
	}
	describe(schema, "")

	embed := func(file, at string) map[string]any {
		s := load(t, filepath.Join(root, "config/schema", file))
		delete(s, "$schema")
		delete(s, "$id") // references are to be read from the top
		rewritten(s, func(o map[string]any) any {
			if ref, ok := o["$ref"].(string); ok {
				ref = strings.Replace(ref, "registration.schema.json#", "#/$defs/registration", 1)
				if strings.HasPrefix(ref, "#/") && !strings.HasPrefix(ref, "#/$defs/registration/") {
					ref = at + ref[1:]
				}
				if ref == "#/$defs/registration" || ref == "registration.schema.json" {
					ref = "#/$defs/registration"
				}
				o["$ref"] = ref
			}
			return o
		})
		return s
	}
	gateway := embed("gateway.schema.json", "#/$defs/gateway")
	registration := embed("registration.schema.json", "#/$defs/registration")

	// The members of an object as references to where they are, but for some.
	members := func(of map[string]any, at string, except ...string) map[string]any {
		refs := make(map[string]any)
		for name, member := range of {
			if !slices.Contains(except, name) {
				ref := map[string]any{"$ref": at + name}
				if text, ok := member.(map[string]any)["description"]; ok {
					ref["description"] = text
				}
				refs[name] = ref
			}
		}
		return refs
	}
	file := gateway["properties"].(map[string]any)
	tenant := gateway["$defs"].(map[string]any)["tenant"].(map[string]any)["properties"].(map[string]any)
	var alerts []any
	for _, a := range alertNames(t) {
		alerts = append(alerts, a)
	}
	rewritten(schema, func(o map[string]any) any {
		switch {
		case o["$gateway"] != nil:
			delete(o, "$gateway")
			o["type"], o["additionalProperties"] = "object", false
			o["properties"] = members(file, "#/$defs/gateway/properties/",
				"listen", "admin", "tls", "adminTLS", "tenants", "tenantsDir", "registration", "backends", "secrets")
		case o["$tenant"] != nil:
			delete(o, "$tenant")
			o["type"], o["additionalProperties"], o["required"] = "object", false, []any{"registration"}
			o["properties"] = members(tenant, "#/$defs/gateway/$defs/tenant/properties/", "id")
		case o["$alert"] != nil:
			return map[string]any{"enum": alerts}
		}
		return o
	})
	defs := schema["$defs"].(map[string]any)
	// What is said of a whole file is not for a part of one.
	for _, rule := range []string{"oneOf", "anyOf", "if", "then", "title", "required"} {
		delete(gateway, rule)
	}
	defs["gateway"], defs["registration"] = gateway, registration
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(schema); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// current holds a generated file against what it is made of.
func current(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not current: run go test . -update\n%s", path, firstDifference(string(want), string(got)))
	}
}

func TestSchemaIsCurrent(t *testing.T) {
	current(t, filepath.Join(chart, "values.schema.json"), valuesSchema(t))
}

// The README's table is that of values.yaml.
func TestReadmeIsCurrent(t *testing.T) {
	path := filepath.Join(chart, "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- made of values.yaml by the tests -->\n", "<!-- end -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table", path)
	}
	var b strings.Builder
	b.WriteString("| Value | Default | |\n|---|---|---|\n")
	for _, v := range documented(t) {
		def := "`" + strings.ReplaceAll(v.def, "|", `\|`) + "`"
		if len(def) > 80 {
			def = "see values.yaml"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.path, def, strings.ReplaceAll(v.text, "|", `\|`))
	}
	current(t, path, []byte(before+begin+b.String()+end+after))
}

// open reports whether an object may have members that it does not name.
func open(schema map[string]any) bool {
	rest, ok := schema["additionalProperties"].(bool)
	return !ok || rest
}

// Every value has a place in the schema, and the other way round; and no object
// of the schema takes a member that it does not name, but those of Kubernetes.
func TestSchemaIsClosed(t *testing.T) {
	schema := load(t, filepath.Join(chart, "values.schema.json"))
	var inSchema []string
	var openAt []string
	var collect func(s map[string]any, path string)
	collect = func(s map[string]any, path string) {
		if ref, ok := s["$ref"].(string); ok && (strings.HasSuffix(ref, "/clientCA") || strings.HasSuffix(ref, "/peers")) {
			s = schema["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		properties, _ := s["properties"].(map[string]any)
		if s["type"] == "object" && open(s) && path != "global" {
			openAt = append(openAt, path)
		}
		if len(properties) == 0 || path == "config" || path == "resources" || path == "autoscaling.behavior" {
			if path != "global" && path != "enabled" {
				inSchema = append(inSchema, path)
			}
			return
		}
		for name, p := range properties {
			collect(p.(map[string]any), strings.TrimPrefix(path+"."+name, "."))
		}
	}
	collect(schema, "")
	var inValues []string
	for _, v := range documented(t) {
		inValues = append(inValues, v.path)
	}
	slices.Sort(inSchema)
	slices.Sort(inValues)
	if !slices.Equal(inSchema, inValues) {
		for _, v := range inValues {
			if !slices.Contains(inSchema, v) {
				t.Errorf("%s is in values.yaml and not in the schema", v)
			}
		}
		for _, v := range inSchema {
			if !slices.Contains(inValues, v) {
				t.Errorf("%s is in the schema and not in values.yaml", v)
			}
		}
	}
	if len(openAt) > 0 {
		t.Errorf("objects of the schema that take unknown members: %q", openAt)
	}
}

// An unknown member is refused wherever a value file has an object that is not
// passed on to Kubernetes. Registration documents are portable: the gateway
// ignores what it does not know in one, as the protocol wants it, and warns.
func TestUnknownValuesAreRefused(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	data, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("https://schemas.example/values", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("https://schemas.example/values")
	if err != nil {
		t.Fatal(err)
	}
	passedOn := []string{
		"podSecurityContext", "securityContext", "affinity", "tolerations", "nodeSelector", "topologySpreadConstraints", "resources.",
		"podLabels", "podAnnotations", "commonLabels", "commonAnnotations", "annotations", "labels", "alertLabels", "metricRelabelings",
		"initContainers", "extraContainers", "extraEnv", "extraVolumes", "extraVolumeMounts", "extraObjects", "extraRules", "tlsConfig",
		"networkPolicy.egress.", ".from", "autoscaling.metrics", "autoscaling.behavior",
		"issuers.0.tenants", ".registration.",
	}
	tried := make(map[string]bool)
	all := maps.Clone(cases(t))
	all["values"] = filepath.Join(chart, "values.yaml")
	for name, path := range all {
		values := load(t, path)
		var walk func(v any, at string)
		walk = func(v any, at string) {
			switch v := v.(type) {
			case map[string]any:
				for k, member := range v {
					walk(member, strings.TrimPrefix(at+"."+k, "."))
				}
				if slices.ContainsFunc(passedOn, func(s string) bool { return strings.Contains(at+".", s) }) {
					return
				}
				tried[at] = true
				v["unknownMember"] = "x"
				if schema.Validate(normal(t, values)) == nil {
					t.Errorf("%s: an unknown member of %q is taken; want it to be refused", name, at)
				}
				delete(v, "unknownMember")
			case []any:
				for i, member := range v {
					walk(member, fmt.Sprintf("%s.%d", at, i))
				}
			}
		}
		if err := schema.Validate(normal(t, values)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		walk(values, "")
	}
	if len(tried) < 50 {
		t.Errorf("%d objects were tried; want at least 50", len(tried))
	}
}

// normal returns v with the numbers of JSON.
func normal(t testing.TB, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
