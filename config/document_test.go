package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// tenantTexts returns the paths of valid documents of tenants in the corpus.
func tenantTexts(t testing.TB) []string {
	t.Helper()
	paths, err := TenantFiles("testdata/valid/tenants-dir")
	if err != nil || len(paths) == 0 {
		t.Fatalf("TenantFiles = %q, %v; want some", paths, err)
	}
	return paths
}

// The JSON of a document means what the document means, whatever it was written in.
func TestTenantDocumentMeansTheSame(t *testing.T) {
	for _, path := range tenantTexts(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := ParseTenant(path, data)
		if err != nil {
			t.Errorf("ParseTenant(%s) = %v; want a document", path, err)
			continue
		}
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := Load("testdata/valid/gateway-tenants-dir.yaml", testEnv)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := NewLoader("testdata/valid/gateway-tenants-dir.yaml", testEnv).LoadWith(Change{path, d.JSON()})
		if err == nil {
			for i := range got.Tenants {
				got.Tenants[i].read = nil
			}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("with the JSON of %s in its place: %v\n%s\nwant the same\n%s", path, err, got.Print(), want.Print())
		}
		again, err := ParseTenant(path, d.JSON())
		if err != nil || !bytes.Equal(again.JSON(), d.JSON()) {
			t.Errorf("the JSON of the JSON of %s = %s, %v; want the same bytes", path, again.JSON(), err)
		}
	}
}

func TestLoadWith(t *testing.T) {
	dir := write(t, map[string]string{
		"gateway.yaml":      "tenantsDir: tenants\n",
		"tenants/b.yaml":    tenantText("b", "1"),
		"tenants/docs.json": tenantText("c", "2"),
		"elsewhere/a.yaml":  tenantText("a", "3"),
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	l := NewLoader(at("gateway.yaml"), testEnv)
	for _, c := range []struct {
		what   string
		change Change
		want   string // ids, or a part of the mistake
	}{
		{"no change", Change{}, "b c"},
		{"a new file", Change{at("tenants/a.yaml"), []byte(tenantText("a", "4"))}, "a b c"},
		{"another document", Change{at("tenants/b.yaml"), []byte(tenantText("d", "4"))}, "d c"},
		{"the end of one", Change{at("tenants/b.yaml"), nil}, "c"},
		{"the end of none", Change{at("tenants/x.yaml"), nil}, "b c"},
		{"a file that is no tenant's", Change{at("tenants/.hidden.yaml"), []byte("{")}, "b c"},
		{"a file elsewhere", Change{at("elsewhere/a.yaml"), []byte("{")}, "b c"},
		{"a mistake", Change{at("tenants/a.yaml"), []byte("id: a")}, "tenants/a.yaml:1:1: keys: is missing"},
		{"another's key", Change{at("tenants/a.yaml"), []byte(tenantText("a", "1"))}, "is the same key as"},
		{"too much", Change{at("tenants/a.yaml"), bytes.Repeat([]byte("\n"), maxTenantFile+1)}, "too large"},
	} {
		f, _, err := l.LoadWith(c.change)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("LoadWith %s = %v; want %s", c.what, err, c.want)
			}
			continue
		}
		var ids []string
		for _, tenant := range f.Tenants {
			ids = append(ids, tenant.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("LoadWith %s = %s; want %s", c.what, got, c.want)
		}
	}
	// What a change was read as holds until it is made, and no longer than that.
	change := Change{at("tenants/a.yaml"), []byte(tenantText("a", "5"))}
	proposed, _, err := l.LoadWith(change)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what string
		do   func() error
		want string
	}{
		{"not made", func() error { return nil }, "b c"},
		{"made otherwise", func() error { return os.WriteFile(change.Path, []byte(tenantText("a", "6")), 0o600) }, "a b c"},
		{"made", func() error { return os.WriteFile(change.Path, change.Data, 0o600) }, "a b c"},
		{"undone", func() error { return os.Remove(change.Path) }, "b c"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		f, _, err := l.Load()
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, tenant := range f.Tenants {
			ids = append(ids, tenant.ID)
		}
		if got := strings.Join(ids, " "); got != step.want {
			t.Errorf("Load with the change %s = %s; want %s", step.what, got, step.want)
		}
		if f.Tenants[0].ID == "a" && (f.Tenants[0].Keys[0] == proposed.Tenants[0].Keys[0]) != (step.what == "made") {
			t.Errorf("Load with the change %s has the key of the change %t", step.what, step.what != "made")
		}
	}
	if got, err := os.ReadDir(at("tenants")); err != nil || len(got) != 2 {
		t.Errorf("the folder holds %v, %v; want what it held", got, err)
	}
}

// Where a mistake is in the JSON of a document is found again in the document.
func TestLocate(t *testing.T) {
	for _, path := range []string{"h-members.yaml", "j-secrets.yaml", "b-same-key.yaml"} {
		path, err := filepath.Abs(filepath.Join("testdata/invalid/tenants-dir", path))
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Load("testdata/invalid/gateway-tenants-dir.yaml", testEnv)
		want := ownMistakes(err, path)
		d, err := ParseTenant("", data)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = NewLoader("testdata/invalid/gateway-tenants-dir.yaml", testEnv).LoadWith(Change{path, d.JSON()})
		got := ownMistakes(err, path)
		for i := range got {
			got[i] = d.Locate(got[i])
		}
		for i := range want {
			want[i].File = ""
		}
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("mistakes of %s =\n%v\nwant\n%v", path, Mistakes(got), Mistakes(want))
		}
	}
}

func ownMistakes(err error, path string) (own []Mistake) {
	for _, m := range AsMistakes(err) {
		if m.File == path {
			own = append(own, m)
		}
	}
	return own
}

func TestWithKeys(t *testing.T) {
	d, err := ParseTenant("", []byte(`{"id": "acme", "rate": 1, "keys": [{"sha256": "`+strings.Repeat("A", 64)+`"}, {"env": "X"}, 7]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.KeyDigests(), []string{strings.Repeat("a", 64), "", ""}; !slices.Equal(got, want) {
		t.Errorf("KeyDigests() = %q; want %q", got, want)
	}
	before := string(d.JSON())
	if got, want := d.WithKeys([]int{2, 0}, "01").KeyDigests(), []string{"", strings.Repeat("a", 64), "01"}; !slices.Equal(got, want) || string(d.JSON()) != before {
		t.Errorf("WithKeys(2, 0; 01).KeyDigests() = %q; want %q, and the document as it was", got, want)
	}
	// What is kept is kept as it is.
	if got := string(d.WithKeys([]int{1}).JSON()); !strings.Contains(got, `"env": "X"`) || strings.Contains(got, "sha256") {
		t.Errorf("WithKeys(1).JSON() = %s; want the reference alone", got)
	}
	d, err = ParseTenant("", []byte(`{"registration": "x", "id": "acme", "rate": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = "{\n  \"registration\": \"x\",\n  \"id\": \"acme\",\n  \"keys\": [\n    {\n      \"sha256\": \"01\"\n    }\n  ],\n  \"rate\": 1\n}\n"
	if got := string(d.WithKeys(nil, "01").JSON()); got != want {
		t.Errorf("WithKeys(01).JSON() = %s; want %s", got, want)
	}
}

// FuzzParseTenant: what is read can be written, and is read as the same again.
func FuzzParseTenant(f *testing.F) {
	for _, path := range tenantTexts(f) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("id: acme\nregistration: [{protocolVersion: 0.1, hooks: [{transport: {url: 'http://a?token=b', headers: {X-Key: c}}}]}]\nkeys: [{env: A}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ParseTenant("fuzz.yaml", data)
		if err != nil {
			for _, m := range AsMistakes(err) {
				checkMistakeForm(t, m)
			}
			return
		}
		again, err := ParseTenant("fuzz.yaml", d.JSON())
		if err != nil || !bytes.Equal(again.JSON(), d.JSON()) || again.ID() != d.ID() || !slices.Equal(again.KeyDigests(), d.KeyDigests()) {
			t.Fatalf("ParseTenant(JSON) = %v; want the same as\n%s", err, d.JSON())
		}
		if hidden := d.Redacted(); len(hidden.LiteralCredentials()) != len(d.LiteralCredentials()) || !bytes.Equal(hidden.Redacted().JSON(), hidden.JSON()) {
			t.Fatalf("Redacted() = %s of\n%s\nwant it to hide all that is refused, and only once", hidden.JSON(), d.JSON())
		}
		d.OperatorOnly()
		if got := d.WithKeys(nil, "00").KeyDigests(); !slices.Equal(got, []string{"00"}) {
			t.Fatalf("WithKeys(00).KeyDigests() = %q; want 00", got)
		}
	})
}

// Of all that YAML would take for something else without quotes, a key's expires
// alone may stand so: it is read as the same time.
func TestExpiresWithoutQuotes(t *testing.T) {
	const text = "id: acme\nkeys: [{sha256: aa00000000000000000000000000000000000000000000000000000000000001, expires: %s}]\n"
	bare, err := ParseTenant("acme.yaml", fmt.Appendf(nil, text, "2036-01-01T00:00:00Z"))
	if err != nil {
		t.Fatalf("ParseTenant without quotes = %v; want a document", err)
	}
	quoted, err := ParseTenant("acme.yaml", fmt.Appendf(nil, text, `"2036-01-01T00:00:00Z"`))
	if err != nil || !bytes.Equal(bare.JSON(), quoted.JSON()) {
		t.Errorf("JSON without quotes = %s, with %s, %v; want the same", bare.JSON(), quoted.JSON(), err)
	}
	for _, other := range []string{"id: 2036-01-01T00:00:00Z\n", "id: acme\nexpires: 2036-01-01T00:00:00Z\n", "id: acme\nkeys: [{sha256: 2036-01-01T00:00:00Z}]\n"} {
		if _, err := ParseTenant("acme.yaml", []byte(other)); err == nil {
			t.Errorf("ParseTenant(%q) = no error; want quotes asked for", other)
		}
	}
}

func TestLiveKeys(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string][]int{
		`{"id": "acme"}`: nil,
		`{"keys": [{"sha256": "a"}, {"sha256": "b", "expires": "2026-05-01T00:00:01Z"}, {"sha256": "c", "expires": "2026-05-01T00:00:00Z"}]}`:                      {0, 1},
		`{"keys": [{"sha256": "a", "expires": "2026-05-01T01:00:00+01:00"}, {"env": "B", "expires": "soon"}, {"sha256": "c", "expires": "2027-01-01T00:00:00Z"}]}`: {1, 2},
	} {
		d, err := ParseTenant("", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.LiveKeys(now); !slices.Equal(got, want) {
			t.Errorf("LiveKeys(%s) = %v; want %v", text, got, want)
		}
	}
}
