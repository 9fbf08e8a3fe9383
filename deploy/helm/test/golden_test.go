package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every value file makes exactly the objects that have been looked at.
func TestGolden(t *testing.T) {
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name+".yaml", template(t, name, values))
		})
	}
	files, err := filepath.Glob("testdata/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".yaml"), ".notes.txt"); cases(t)[name] == "" {
			t.Errorf("%s belongs to no file in testdata/values", file)
		}
	}
}

// golden compares text with a file in testdata/golden.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata/golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs from what is rendered now; look at it and run: go test . -run %s -update\n%s", path, strings.SplitN(t.Name(), "/", 2)[0], firstDifference(string(want), text))
	}
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return "want " + x + "\ngot  " + y
		}
	}
	return ""
}

func TestLint(t *testing.T) {
	for name, values := range cases(t) {
		if out, err := helm(t, "lint", "--strict", "--namespace", namespace, "--values", values, chart); err != nil {
			t.Errorf("helm lint --strict --values %s.yaml: %v\n%s", name, err, out)
		}
	}
}

// A name that YAML reads as a number, a truth or nothing stays a name.
func TestNamesStayText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "values.yaml")
	values := `
nameOverride: "1e3"
priorityClassName: "123"
runtimeClassName: "true"
serviceAccount: {create: false, name: "null"}
imagePullSecrets: [{name: "12"}]
certManager: {enabled: true, issuerRef: {name: "1"}}
tls: {enabled: true, clientCA: {name: "0", key: "1"}}
adminTLS: {enabled: true, secretName: "1", clientCA: {name: "null", kind: Secret, key: "2"}}
ingress: {enabled: true, className: "8", hosts: ["1.2"]}
service: {loadBalancerClass: "8: 9"}
monitoring: {kind: ServiceMonitor, tlsConfig: {serverName: "1"}}
networkPolicy: {ingress: {namespaces: ["null", "1234"]}, private: {namespaces: ["true"]}}
secretMounts: {"1": {secretName: "2"}}
tests: {enabled: true, keySecret: {name: "3", key: "4"}}
tenants:
  "1": {existingSecret: "5", existingSecretKey: "6", secretName: "7"}
`
	if err := os.WriteFile(path, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := helm(t, "template", "123", chart, "--namespace", "42", "--values", path)
	if err != nil {
		t.Fatalf("helm template 123 --values with%s: %v", values, err)
	}
	objects(t, out) // which are decoded strictly
	for _, name := range []string{"null", "1234", "true"} {
		if want := `kubernetes.io/metadata.name: "` + name + `"`; !strings.Contains(out, want) {
			t.Errorf("the NetworkPolicy has no %s", want)
		}
	}
}
