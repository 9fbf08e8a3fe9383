package config

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// reload parses what Print wrote, with the digests that it shortened put back.
func reload(f *File) (*File, error) {
	out := f.Print()
	keys := f.AdminAPI.Keys
	for _, t := range f.Tenants {
		keys = slices.Concat(keys, t.Keys)
	}
	for _, k := range keys {
		out = bytes.Replace(out, []byte(new(printer).digest(k.SHA256)), []byte(hex.EncodeToString(k.SHA256[:])), 1)
	}
	again, _, err := Parse("/printed.yaml", out, testEnv)
	return again, err
}

func TestPrintLoadsAgain(t *testing.T) {
	for _, path := range append(corpus(t, "valid"), "example.yaml") {
		if strings.HasPrefix(filepath.Base(path), "registration-") {
			continue
		}
		f, _, err := Load(path, testEnv)
		if err != nil {
			t.Fatal(err)
		}
		again, err := reload(f)
		if err != nil {
			t.Errorf("what Print makes of %s is refused: %v\n%s", path, err, f.Print())
			continue
		}
		again.Sources, again.TenantsDir = f.Sources, f.TenantsDir // whose tenants are printed in place
		for i := range again.Tenants {
			again.Tenants[i].File = f.Tenants[i].File
		}
		if !reflect.DeepEqual(again, f) {
			t.Errorf("what Print makes of %s loads as %+v; want %+v", path, again, f)
		}
		if got := again.Print(); !bytes.Equal(got, f.Print()) {
			t.Errorf("Print of the printed %s = %s; want the same bytes", path, got)
		}
	}
}

func TestPrintHidesSecrets(t *testing.T) {
	const file = `
tenants:
  - id: acme
    keys: [{env: GOOD_KEY}]
    secrets: {envPrefix: ACME_}
    registration:
      protocolVersion: "0.1"
      hooks:
        - id: com.example.policy
          transport:
            type: http
            url: https://policy.example.com/ahp?version=3&access_token=hunter2&code=ghp_hunter2hunter2
            headers:
              X-Team: platform
              X-Team-Token: hunter2
              X-Other: sk-hunter2
              X-Random: hunter2a8f7e6d5c4b3a29180716253
              X-Reference: {valueEnv: ACME_REFERENCE}
          authentication: {type: bearer, tokenEnv: ACME_TOKEN}
          subscriptions: [{events: [tool.after], mode: observe}]
`
	f, _, err := Parse("gateway.yaml", []byte(file), func(name string) (string, bool) {
		if name == "GOOD_KEY" {
			return testEnv(name)
		}
		return "hunter2", true
	})
	if err != nil {
		t.Fatal(err)
	}
	out := string(f.Print())
	key := f.Tenants[0].Keys[0].SHA256
	for _, secret := range []string{"hunter2", "0123456789abcdef", hex.EncodeToString(key[:5])} {
		if strings.Contains(out, secret) {
			t.Errorf("Print shows %s:\n%s", secret, out)
		}
	}
	for _, want := range []string{
		"sha256: \"" + hex.EncodeToString(key[:4]) + "…\"", "X-Team: platform\n", "X-Team-Token: redacted\n", "X-Other: redacted\n",
		"X-Random: redacted\n", "valueEnv: ACME_REFERENCE\n", "tokenEnv: ACME_TOKEN\n",
		`"https://policy.example.com/ahp?version=3&access_token=redacted&code=redacted"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("Print does not show %s:\n%s", want, out)
		}
	}
}

func TestYAMLText(t *testing.T) {
	for in, want := range map[string]string{
		"info": "info", "com.example.policy": "com.example.policy", "": `""`, "off": `"off"`, "No": `"No"`, "TRUE": `"TRUE"`,
		"null": `"null"`, "0.1": `"0.1"`, "~": `"~"`, "a b": `"a b"`, "a: b": `"a: b"`, "*": `"*"`, "é\n": `"é\n"`, "\u0085\u2028\ufeff": `"\u0085\u2028\ufeff"`,
	} {
		if got := yamlText(in); got != want {
			t.Errorf("yamlText(%q) = %s; want %s", in, got, want)
		}
	}
}

func seeds(f *testing.F, prefix string) {
	f.Helper()
	for _, path := range slices.Concat(corpus(f, "valid"), corpus(f, "invalid"), []string{"example.yaml"}) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if name := filepath.Base(path); strings.HasPrefix(name, prefix) || name == "example.yaml" {
			f.Add(data)
		}
	}
}

// FuzzParse: no input panics, mistakes are bounded and on one line, and what
// loads is printed as something that loads again as the same.
func FuzzParse(f *testing.F) {
	seeds(f, "gateway-")
	f.Fuzz(func(t *testing.T, data []byte) {
		got, warnings, err := Parse("testdata/valid/fuzz.yaml", data, testEnv)
		for _, m := range append(AsMistakes(err), warnings...) {
			checkMistakeForm(t, m)
		}
		if err != nil {
			return
		}
		again, err := reload(got)
		if err != nil {
			t.Fatalf("Parse(Print) = %v; want no mistake in\n%s", err, got.Print())
		}
		if a, b := got.Print(), again.Print(); !bytes.Equal(a, b) {
			t.Fatalf("Print of the printed = %s; want %s", b, a)
		}
	})
}

// FuzzParseRegistration: as FuzzParse, for a document by itself.
func FuzzParseRegistration(f *testing.F) {
	seeds(f, "registration-")
	f.Fuzz(func(t *testing.T, data []byte) {
		reg, warnings, err := ParseRegistration("fuzz.yaml", data)
		for _, m := range append(AsMistakes(err), warnings...) {
			checkMistakeForm(t, m)
		}
		if err != nil {
			return
		}
		p := new(printer)
		p.registration(reg)
		again, _, err := ParseRegistration("fuzz.yaml", p.out)
		if err != nil {
			t.Fatalf("ParseRegistration(printed) = %v; want no mistake in\n%s", err, p.out)
		}
		q := new(printer)
		q.registration(again)
		if !bytes.Equal(p.out, q.out) {
			t.Fatalf("printed again = %s; want %s", q.out, p.out)
		}
	})
}

func checkMistakeForm(t *testing.T, m Mistake) {
	t.Helper()
	if s := m.String(); strings.ContainsAny(s, "\r\n\x00") || len(m.Value) > maxShown || m.What == "" || m.Instead == "" {
		t.Fatalf("mistake %q is not one bounded line with a remedy", s)
	}
}

// What Print wrote is read again without the keys that it shortened and without
// the files that it names, and printing that gives the same text.
func TestParsePrinted(t *testing.T) {
	ca, _ := certificate(t)
	dir := write(t, map[string]string{
		"ca.pem":         ca,
		"gateway.yaml":   "tenantsDir: tenants\n",
		"tenants/a.yaml": "id: a\nkeys: [{sha256: \"" + strings.Repeat("a", 64) + "\"}]\nbackends: {com.example.policy: {caFile: ../ca.pem}}\nregistration: " + minimalRegistration,
		// Another key with the same beginning.
		"tenants/b.yaml": "id: b\nkeys: [{sha256: \"" + strings.Repeat("a", 63) + "b\"}]\nsecrets: {dir: ../secrets}\nregistration: " + minimalRegistration,
		"empty.yaml":     "tenantsDir: none\n",
		"none/README":    "",
	})
	for _, path := range append(corpus(t, "valid"), "example.yaml", filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "empty.yaml")) {
		if strings.HasPrefix(filepath.Base(path), "registration-") {
			continue
		}
		f, _, err := Load(path, testEnv)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(path) == dir {
			for _, name := range []string{"ca.pem", "none/README"} {
				_ = os.Remove(filepath.Join(dir, name))
			}
		}
		again, err := ParsePrinted("running", f.Print())
		if err != nil {
			t.Errorf("ParsePrinted of the printed %s = %v; want no mistake\n%s", path, err, f.Print())
			continue
		}
		if got := again.Print(); !bytes.Equal(got, f.Print()) {
			t.Errorf("Print of the printed %s = %s; want the same bytes\n%s", path, got, f.Print())
		}
	}
}

// What PrintWhole wrote is the configuration itself.
func TestPrintWhole(t *testing.T) {
	dir := write(t, map[string]string{"gateway.yaml": "tenantsDir: tenants\n", "tenants/README": ""})
	for _, path := range append(corpus(t, "valid"), "example.yaml", filepath.Join(dir, "gateway.yaml")) {
		if strings.HasPrefix(filepath.Base(path), "registration-") {
			continue
		}
		f, _, err := Load(path, testEnv)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(path) == dir { // who comes later is not in it
			if err := os.WriteFile(filepath.Join(dir, "tenants/late.json"), []byte(tenantText("late", "1")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again, _, err := ParseWhole("/kept.yaml", f.PrintWhole(), testEnv)
		if err != nil {
			t.Errorf("ParseWhole of %s = %v; want no mistake\n%s", path, err, f.PrintWhole())
			continue
		}
		again.Sources, again.TenantsDir = f.Sources, f.TenantsDir
		for i := range again.Tenants {
			again.Tenants[i].File = f.Tenants[i].File
		}
		if !reflect.DeepEqual(again, f) {
			t.Errorf("ParseWhole of %s = %+v; want %+v", path, again, f)
		}
	}
}

// The parts of Print are all of it.
func TestPrintInParts(t *testing.T) {
	f, _, err := Load("testdata/valid/gateway-tenants-dir.yaml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	parts := string(f.PrintSettings()) + "tenants:\n"
	for i := range f.Tenants {
		text := strings.TrimSuffix(string(f.Tenants[i].Print()), "\n")
		parts += "  - " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
	}
	if got := string(f.Print()); got != parts {
		t.Errorf("Print = %s; want the settings and the tenants, one after the other\n%s", got, parts)
	}
}
