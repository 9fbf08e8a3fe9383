package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

const schemaBase = "https://github.com/ahp-gateway/ahp-gateway/config/schema/"

func schemas(t *testing.T) (gateway, registration *jsonschema.Schema) {
	t.Helper()
	c := jsonschema.NewCompiler()
	for name, data := range map[string][]byte{"gateway": GatewaySchema(), "registration": RegistrationSchema()} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s schema: %v", name, err)
		}
		if err := c.AddResource(schemaBase+name+".schema.json", doc); err != nil {
			t.Fatalf("%s schema: %v", name, err)
		}
	}
	gateway, err := c.Compile(schemaBase + "gateway.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	registration, err = c.Compile(schemaBase + "registration.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return gateway, registration
}

// value returns a tree as the schema library wants it.
func value(n *node) any {
	switch n.kind {
	case kindBool:
		return n.text == "true"
	case kindNumber:
		return json.Number(n.text)
	case kindString:
		return n.text
	case kindObject:
		m := make(map[string]any)
		for _, f := range n.fields {
			m[f.key] = value(f.value)
		}
		return m
	case kindList:
		l := make([]any, 0, len(n.items))
		for _, item := range n.items {
			l = append(l, value(item))
		}
		return l
	default:
		return nil
	}
}

// accepts reports what a schema says of a file, and whether the file is a
// document at all, which a schema presupposes.
func accepts(t *testing.T, path string, gateway, registration *jsonschema.Schema) (accepted, document bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(path, testEnv)
	root := r.parse(r.source(path), data)
	if root == nil || len(r.mistakes) > 0 {
		return false, false
	}
	schema := gateway
	if strings.HasPrefix(filepath.Base(path), "registration-") {
		schema = registration
	}
	err = schema.Validate(value(root))
	if err != nil {
		t.Logf("%s: %v", path, err)
	}
	return err == nil, true
}

func TestSchemasAcceptValidFiles(t *testing.T) {
	gateway, registration := schemas(t)
	printed := filepath.Join(t.TempDir(), "printed.yaml")
	f, _, err := Load("testdata/valid/gateway-open.json", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(printed, f.Print(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(corpus(t, "valid"), "example.yaml", printed) {
		if ok, _ := accepts(t, path, gateway, registration); !ok {
			t.Errorf("schema refuses %s; want it accepted", path)
		}
	}
}

// beyondSchema are the invalid files that break only rules that a schema
// cannot state, and why it cannot.
var beyondSchema = map[string]string{
	"gateway-stored-nowhere.yaml":      "whether there is a folder for secrets",
	"gateway-admin-same.yaml":          "compares two members",
	"gateway-ca.yaml":                  "looks into a file",
	"gateway-client-files.yaml":        "looks into files",
	"gateway-http.yaml":                "depends on the host and on another section",
	"gateway-literal.yaml":             "what an address is takes more than a pattern",
	"gateway-oauth.yaml":               "depends on the grant, and on what an address is",
	"gateway-open-listen.yaml":         "loopback is more than a pattern",
	"gateway-open-ref.yaml":            "depends on the grant",
	"gateway-registration-twice.yaml":  "looks into a file",
	"gateway-shared-ca.yaml":           "looks into a file",
	"gateway-shared-port.yaml":         "ports are a range",
	"gateway-tenant-grants.yaml":       "depends on the grant",
	"gateway-tenants-dir.yaml":         "looks into files",
	"gateway-tls-missing.yaml":         "looks into files",
	"registration-twice-01.yaml":       "compares subscriptions",
	"registration-version-float.yaml":  "to a schema 0.10 is the number 0.1",
	"registration-version-number.json": "a schema cannot tell JSON from YAML",
}

func TestSchemasRefuseInvalidFiles(t *testing.T) {
	gateway, registration := schemas(t)
	seen := make(map[string]bool)
	for _, path := range corpus(t, "invalid") {
		name := filepath.Base(path)
		accepted, document := accepts(t, path, gateway, registration)
		if !document {
			continue
		}
		seen[name] = true
		if _, beyond := beyondSchema[name]; accepted != beyond {
			t.Errorf("schema accepts %s = %t; want %t", name, accepted, beyond)
		}
	}
	for name, why := range beyondSchema {
		if !seen[name] {
			t.Errorf("beyondSchema lists %s (%s), which is no document of the corpus", name, why)
		}
	}
}

// TestRegistrationSchemaEvents compares the names in the schema with the catalogue.
func TestRegistrationSchemaEvents(t *testing.T) {
	var doc struct {
		Defs map[string]struct {
			AllOf []struct {
				If struct {
					Properties struct{ Mode struct{ Const string } }
				}
				Then struct {
					Properties struct {
						Events struct{ Items struct{ Enum []string } }
					}
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(RegistrationSchema(), &doc); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for def, v := range map[string]ahp.Version{"subscription01": ahp.V01, "draftSubscription": ahp.Draft} {
		for _, branch := range doc.Defs[def].AllOf {
			mode := map[string]Mode{"intercept": Intercept, "observe": Observe}[branch.If.Properties.Mode.Const]
			if mode == 0 {
				continue
			}
			checked++
			want := strings.Split(eventNames(v, mode, ""), ", ")
			if v == ahp.Draft {
				for _, f := range strings.Split(families(v), ", ") {
					f = strings.Trim(f, `"`)
					if eventNames(v, mode, strings.TrimSuffix(f, "*")) != "" {
						want = append(want, f)
					}
				}
				want = append(want, "*")
			}
			got := branch.Then.Properties.Events.Items.Enum
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("events of %s, mode %s = %v; want %v", def, mode, got, want)
			}
		}
	}
	if checked != 4 {
		t.Errorf("checked %d branches; want 4", checked)
	}
}

// TestGatewaySchemaDefaults loads a file made of the schema's defaults and
// compares it with one that leaves everything out.
func TestGatewaySchemaDefaults(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(GatewaySchema(), &doc); err != nil {
		t.Fatal(err)
	}
	defs := doc["$defs"].(map[string]any)
	full := defaultsOf(doc, defs).(map[string]any)
	if len(full) < 8 {
		t.Fatalf("schema has defaults for %d sections only", len(full))
	}
	full["registration"] = json.RawMessage(minimalRegistration)
	data, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := Parse("defaults.json", data, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := Parse("defaults.json", []byte(`{"registration": `+minimalRegistration+`}`), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if g, w := string(got.Print()), string(want.Print()); g != w {
		t.Errorf("the schema's defaults give\n%s\nwant\n%s", g, w)
	}
}

// defaultsOf collects the default members of an object schema.
func defaultsOf(schema, defs map[string]any) any {
	if d, ok := schema["default"]; ok {
		return d
	}
	if ref, ok := schema["$ref"].(string); ok {
		if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
			return defaultsOf(defs[name].(map[string]any), defs)
		}
	}
	props, ok := schema["properties"].(map[string]any)
	if !ok {
		return nil
	}
	found := make(map[string]any)
	for name, p := range props {
		if d := defaultsOf(p.(map[string]any), defs); d != nil {
			found[name] = d
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// TestExampleHasEveryKey looks for every key of the schema in the example,
// in a comment or not.
func TestExampleHasEveryKey(t *testing.T) {
	text, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(GatewaySchema(), &doc); err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]bool)
	collectKeys(doc, keys)
	if len(keys) < 50 {
		t.Fatalf("schema has %d keys only", len(keys))
	}
	for key := range keys {
		if !regexp.MustCompile(`(?m)[\s{]` + key + `:`).Match(text) {
			t.Errorf("example.yaml does not show the key %s", key)
		}
	}
}

func collectKeys(v any, keys map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if props, ok := v["properties"].(map[string]any); ok {
			for name := range props {
				keys[name] = true
			}
		}
		for _, child := range v {
			collectKeys(child, keys)
		}
	case []any:
		for _, child := range v {
			collectKeys(child, keys)
		}
	}
}
