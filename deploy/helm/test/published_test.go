package chart_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// The minors of Kubernetes that the chart is held against, as modules with the
// schemas that they publish. The sums are those of go.sum.
var minors = []published{
	{"k8s.io/kubernetes", "v1.35.8", "h1:nqVTiKGbHuwTNjCn1dvK2tjOFie7J7SUMyZWDNsNHgA="},
	{"k8s.io/kubernetes", "v1.36.3", "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o="},
	{"k8s.io/kubernetes", "v1.37.2", "h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE="},
}

// The custom resources whose definitions come with their modules. Those of the
// Prometheus operator do not: its objects are decoded strictly, in objects.
var definitions = map[string]published{
	"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml": {"sigs.k8s.io/gateway-api", "v1.6.1", "h1:mock6phZbI6rvZerwrVNk7hVNymQgHo+6sJ81Ia7ftY="},
	"deploy/crds/cert-manager.io_certificates.yaml":                 {"github.com/cert-manager/cert-manager", "v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68="},
}

// published is a module that is downloaded for what is in it beside Go.
type published struct{ module, version, sum string }

// dir returns the folder of the module.
func (p published) dir(t testing.TB) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", p.module+"@"+p.version)
	cmd.Dir = scratch // the module of the tests has nothing to say in it
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod download %s@%s: %v\n%s", p.module, p.version, err, out)
	}
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.Sum != p.sum {
		t.Fatalf("%s@%s has the sum %s; want %s", p.module, p.version, got.Sum, p.sum)
	}
	return got.Dir
}

// closed makes a schema refuse members that it does not name, but for objects that
// are open on purpose.
func closed(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		_, named := s["properties"].(map[string]any)
		_, rest := s["additionalProperties"]
		if open, _ := s["x-kubernetes-preserve-unknown-fields"].(bool); named && !rest && !open {
			s["additionalProperties"] = false
		}
		for _, v := range s {
			closed(v)
		}
	case []any:
		for _, v := range s {
			closed(v)
		}
	}
}

// kind names the type of an object.
type kind struct{ group, version, kind string }

func kindOf(t testing.TB, doc map[string]any) kind {
	t.Helper()
	api, _ := doc["apiVersion"].(string)
	name, _ := doc["kind"].(string)
	group, version, found := strings.Cut(api, "/")
	if !found {
		group, version = "", api
	}
	return kind{group, version, name}
}

// schemas returns the schema of a kind, or nil.
type schemas func(k kind) *jsonschema.Schema

// schemasOf returns the schemas of one minor.
func schemasOf(t testing.TB, minor published) schemas {
	t.Helper()
	dir := filepath.Join(minor.dir(t), "api/openapi-spec/v3")
	compiler := jsonschema.NewCompiler()
	known := make(map[kind]*jsonschema.Schema)
	loaded := make(map[string]map[string]any)
	return func(k kind) *jsonschema.Schema {
		if s, ok := known[k]; ok {
			return s
		}
		file := "api__" + k.version + "_openapi.json"
		if k.group != "" {
			file = "apis__" + k.group + "__" + k.version + "_openapi.json"
		}
		if loaded[file] == nil {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return nil
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			closed(doc)
			if err := compiler.AddResource("https://schemas.example/"+file, doc); err != nil {
				t.Fatal(err)
			}
			loaded[file] = doc.(map[string]any)
		}
		all := loaded[file]["components"].(map[string]any)["schemas"].(map[string]any)
		for name, schema := range all {
			marks, _ := schema.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
			for _, mark := range marks {
				m := mark.(map[string]any)
				if m["group"] != k.group || m["version"] != k.version || m["kind"] != k.kind || len(marks) > 1 {
					continue // DeleteOptions has many
				}
				s, err := compiler.Compile("https://schemas.example/" + file + "#/components/schemas/" + name)
				if err != nil {
					t.Fatal(err)
				}
				known[k] = s
				return s
			}
		}
		return nil
	}
}

// defined returns the schemas of the custom resources.
func defined(t testing.TB) schemas {
	t.Helper()
	known := make(map[kind]*jsonschema.Schema)
	for file, module := range definitions {
		data, err := os.ReadFile(filepath.Join(module.dir(t), file))
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema any }
				}
			}
		}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatal(err)
		}
		for _, v := range crd.Spec.Versions {
			closed(v.Schema.OpenAPIV3Schema)
			compiler := jsonschema.NewCompiler()
			if err := compiler.AddResource("https://schemas.example/crd", v.Schema.OpenAPIV3Schema); err != nil {
				t.Fatal(err)
			}
			s, err := compiler.Compile("https://schemas.example/crd")
			if err != nil {
				t.Fatal(err)
			}
			known[kind{crd.Spec.Group, v.Name, crd.Spec.Names.Kind}] = s
		}
	}
	return func(k kind) *jsonschema.Schema { return known[k] }
}

// Every object is one that three minors of Kubernetes, or the definition of its
// custom resource, describe, down to the last member.
func TestPublishedSchemas(t *testing.T) {
	rendered := make(map[string][]object)
	for name, values := range cases(t) {
		rendered[name] = objects(t, template(t, name, values))
	}
	crds := defined(t)
	custom := 0
	for _, minor := range minors {
		t.Run(minor.version, func(t *testing.T) {
			builtin := schemasOf(t, minor)
			checked := make(map[string]int)
			for name, all := range rendered {
				for _, o := range all {
					doc := plain(t, o.source)
					k := kindOf(t, doc)
					s := builtin(k)
					if s == nil {
						if s = crds(k); s != nil {
							custom++
						}
					}
					if s == nil {
						if k.group != "monitoring.coreos.com" {
							t.Errorf("%s: there is no schema of %v", name, k)
						}
						continue
					}
					checked[k.kind]++
					if err := s.Validate(doc); err != nil {
						t.Errorf("%s, %v: %v", name, k, err)
					}
				}
			}
			t.Logf("%s: %v", minor.version, checked)
			for _, want := range []string{"ConfigMap", "Secret", "Service", "ServiceAccount", "Deployment", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy", "Ingress", "HTTPRoute", "Certificate", "Pod"} {
				if checked[want] == 0 {
					t.Errorf("no %s was checked", want)
				}
			}
			if s := builtin(kind{"apps", "v1", "Deployment"}); s.Validate(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replica": json.Number("1"), "selector": map[string]any{}, "template": map[string]any{}}}) == nil {
				t.Error("a Deployment with a misspelled member is valid; want it to be refused")
			}
		})
	}
}

// plain returns a document as JSON has it.
func plain(t testing.TB, source []byte) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict(source)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	m, ok := doc.(map[string]any)
	if !ok {
		t.Fatal(fmt.Errorf("%.60q is not an object", source))
	}
	return m
}
