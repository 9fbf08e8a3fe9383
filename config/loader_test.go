package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// surroundings are a folder and an environment that a Loader reads from.
type surroundings struct {
	t   *testing.T
	dir string
	env map[string]string
	*Loader
}

// surround puts files, by name, into a folder, together with a gateway file
// whose further lines are more, and returns a Loader of that.
func surround(t *testing.T, files map[string]string, more ...string) *surroundings {
	t.Helper()
	s := &surroundings{t: t, dir: t.TempDir(), env: make(map[string]string)}
	s.gateway(more...)
	for name, text := range files {
		s.put(name, text)
	}
	s.Loader = NewLoader(filepath.Join(s.dir, "gateway.yaml"), s.environ)
	return s
}

func (s *surroundings) environ(name string) (string, bool) {
	v, ok := s.env[name]
	return v, ok
}

func (s *surroundings) gateway(more ...string) {
	s.put("gateway.yaml", "tenantsDir: tenants\n"+strings.Join(more, "\n"))
}

func (s *surroundings) path(name string) string { return filepath.Join(s.dir, name) }

func (s *surroundings) put(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *surroundings) remove(name string) {
	s.t.Helper()
	if err := os.Remove(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

// load loads with s's Loader, and checks that the outcome is that of Load.
func (s *surroundings) load() (*File, error) {
	s.t.Helper()
	f, warnings, err := s.Load()
	fresh, freshWarnings, freshErr := Load(s.path("gateway.yaml"), s.environ)
	if fmt.Sprint(err) != fmt.Sprint(freshErr) || !slices.Equal(warnings, freshWarnings) {
		s.t.Errorf("Loader.Load = %v, warnings %v; want those of Load, %v, %v", err, warnings, freshErr, freshWarnings)
	}
	if err != nil || freshErr != nil {
		return f, err
	}
	plain := *f
	plain.Tenants = slices.Clone(f.Tenants)
	for i := range plain.Tenants {
		plain.Tenants[i].read = nil
	}
	if !reflect.DeepEqual(&plain, fresh) {
		s.t.Errorf("Loader.Load = %+v; want what Load returns, %+v", &plain, fresh)
	}
	return f, nil
}

func (s *surroundings) mustLoad() *File {
	s.t.Helper()
	f, err := s.load()
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// changed returns the ids of the tenants of f that before has not got, or that
// were read again since.
func changed(f, before *File) []string {
	ids := []string{}
	for i := range f.Tenants {
		if !slices.ContainsFunc(before.Tenants, func(b Tenant) bool { return f.Tenants[i].Unchanged(&b) }) {
			ids = append(ids, f.Tenants[i].ID)
		}
	}
	return ids
}

// What a tenant's file is read again for is what the reading depends on, and
// nothing else.
func TestLoaderReadsAgainWhatHasChanged(t *testing.T) {
	ca, key := certificate(t)
	document := func(hook string) string {
		return `{"protocolVersion": "0.1", "hooks": [{"id": "com.example.policy", "transport": {"type": "http", "url": "http://127.0.0.1:9000"}` + hook + `,
			"subscriptions": [{"events": ["tool.after"], "mode": "observe"}]}]}`
	}
	one := func(id, keys, more string) string {
		return "id: " + id + "\nkeys: [" + keys + "]\n" + more
	}
	digest := func(c string) string { return `{sha256: "` + strings.Repeat(c, 64) + `"}` }
	s := surround(t, map[string]string{
		"tenants/a.yaml": one("a", digest("a"), "registration: "+minimalRegistration),
		"tenants/b.yaml": one("b", "{file: ../b.key}", "registration: ../shared.json"),
		"tenants/c.yaml": one("c", "{env: C_KEY}", "registration: ../shared.json"),
		"tenants/d.yaml": one("d", digest("d"), "secrets: {envPrefix: D_}\nregistration: "+document(`, "authentication": {"type": "bearer", "tokenEnv": "D_TOKEN"}`)),
		"tenants/e.yaml": one("e", digest("e"), "secrets: {dir: ../secrets}\nregistration: "+document(`, "authentication": {"type": "bearer", "tokenRef": "token"}`)),
		"tenants/f.yaml": one("f", digest("f"), "backends: {com.example.policy: {caFile: ../ca.pem}}\nregistration: "+document("")),
		"b.key":          "0123456789abcdef0123456789abcde1\n",
		"shared.json":    minimalRegistration,
		"ca.pem":         ca,
		"key.pem":        key,
		"secrets/other":  "x",
	})
	s.env["C_KEY"], s.env["UNRELATED"] = "0123456789abcdef0123456789abcde2", "1"
	before := s.mustLoad()
	for _, step := range []struct {
		what   string
		change func()
		want   []string
	}{
		{"nothing", func() {}, []string{}},
		{"a tenant's file", func() { s.put("tenants/a.yaml", one("a", digest("a"), "rate: 5\nregistration: "+minimalRegistration)) }, []string{"a"}},
		{"a tenant's file, to the same", func() { s.put("tenants/a.yaml", one("a", digest("a"), "rate: 5\nregistration: "+minimalRegistration)) }, []string{}},
		{"a key's file", func() { s.put("b.key", "0123456789abcdef0123456789abcde3\n") }, []string{"b"}},
		{"a shared document", func() { s.put("shared.json", strings.Replace(minimalRegistration, "750", "800", 1)) }, []string{"b", "c"}},
		{"a key in the environment", func() { s.env["C_KEY"] = "0123456789abcdef0123456789abcde4" }, []string{"c"}},
		{"something else in the environment", func() { s.env["UNRELATED"] = "2" }, []string{}},
		{"a secret in the environment, which was not there", func() { s.env["D_TOKEN"] = "hunter2" }, []string{"d"}},
		{"a secret's file, which was not there", func() { s.put("secrets/token", "hunter2") }, []string{"e"}},
		{"the content of a secret", func() { s.put("secrets/token", "hunter3") }, []string{}},
		{"trust roots", func() { s.put("ca.pem", ca+"\n") }, []string{"f"}},
		{"a new tenant", func() { s.put("tenants/0.json", tenantText("zero", "0")) }, []string{"zero"}},
		{"the end of one", func() { s.remove("tenants/0.json") }, []string{}},
		{"a default", func() { s.gateway("limits: {rate: 7}") }, []string{"b", "c", "d", "e", "f"}},
		{"a setting of every backend", func() { s.gateway("limits: {rate: 7}", "backend: {retry: false}") }, []string{"a", "b", "c", "d", "e", "f"}},
		{"what is none of a tenant's defaults", func() { s.gateway("limits: {rate: 7, body: 2MiB}", "backend: {retry: false}", "log: {level: warn}") }, []string{}},
		{"what every backend is shown", func() { s.gateway("backend: {clientCertFile: ca.pem, clientKeyFile: key.pem}") }, []string{"a", "b", "c", "d", "e", "f"}},
		{"the content of these", func() { s.put("ca.pem", ca) }, []string{"a", "b", "c", "d", "e", "f"}},
		{"defaults once more", func() { s.gateway("limits: {rate: 7}", "backend: {retry: false}") }, []string{"a", "b", "c", "d", "e", "f"}},
		{"a comment", func() { s.gateway("limits: {rate: 7}", "backend: {retry: false}", "# no more") }, []string{}},
	} {
		step.change()
		f := s.mustLoad()
		if got := changed(f, before); !slices.Equal(got, step.want) {
			t.Errorf("after a change of %s: read again %q; want %q", step.what, got, step.want)
		}
		before = f
	}
	if other := s.mustLoad(); !before.SameButTenants(other) || before.SameButTenants(new(File)) {
		t.Error("SameButTenants = false of a file and itself, or true of it and another")
	}
}

// A tenant's file that is read again to the same end is unchanged: after a change
// of it was refused, and after defaults went and came back that it takes over.
func TestLoaderReadsAgainToTheSameEnd(t *testing.T) {
	s := surround(t, map[string]string{"tenants/a.json": tenantText("a", "a"), "tenants/b.json": tenantText("b", "b")})
	first := s.mustLoad()
	if _, _, err := s.LoadWith(Change{s.path("tenants/a.json"), []byte("{}")}); err == nil {
		t.Fatal("LoadWith an empty tenant = no error; want one")
	}
	if got := changed(s.mustLoad(), first); len(got) > 0 {
		t.Errorf("after a change that was refused %q are changed; want none", got)
	}
	s.gateway("limits: {rate: 7}")
	if got := changed(s.mustLoad(), first); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after a change of a default %q are changed; want both", got)
	}
	s.gateway()
	last := s.mustLoad()
	if got := changed(last, first); len(got) > 0 {
		t.Errorf("after the default is what it was %q are changed; want none", got)
	}
	if last.Tenants[0].Unchanged(&last.Tenants[1]) || last.Tenants[0].Unchanged(new(Tenant)) {
		t.Error("Unchanged = true of two tenants; want false")
	}
}

// Mistakes are found again each time, also between a tenant that was kept and
// one that was read, and what is mended is read.
func TestLoaderFindsMistakesAgain(t *testing.T) {
	s := surround(t, map[string]string{
		"tenants/a.json": tenantText("a", "a"),
		"tenants/b.json": tenantText("b", "b"),
		"tenants/c.json": `{"id": "c", "keys": [{"sha256": "` + strings.Repeat("c", 64) + `"}], "registration": "../shared.json"}`,
		"tenants/d.json": `{"id": "d", "keys": [{"sha256": "` + strings.Repeat("d", 64) + `"}], "registration": "../shared.json"}`,
		"shared.json":    minimalRegistration,
	})
	before := s.mustLoad()
	for _, step := range []struct{ what, name, bad, good, want string }{
		{"an id that another one has", "tenants/b.json", tenantText("a", "b"), tenantText("b", "b"), `is the id of the tenant in "a.json" too`},
		{"a key that another one has", "tenants/a.json", tenantText("a", "b"), tenantText("a", "a"), `is the same key as keys[0] in "a.json"`},
		{"a mistake in a tenant's file", "tenants/b.json", "{", tenantText("b", "b"), "not valid JSON"},
		{"a mistake in a shared document", "shared.json", "{", minimalRegistration, "shared.json:1:2: not valid JSON"},
	} {
		s.put(step.name, step.bad)
		for range 2 {
			if _, err := s.load(); err == nil || strings.Count(err.Error(), step.want) != 1 {
				t.Errorf("after %s: Load = %v; want %q, once", step.what, err, step.want)
			}
		}
		s.put(step.name, step.good)
		f := s.mustLoad()
		if len(f.Tenants) != len(before.Tenants) {
			t.Errorf("after %s was mended: %d tenants; want %d", step.what, len(f.Tenants), len(before.Tenants))
		}
	}
}

// However files come, change and go, a Loader says what Load does: load
// compares them.
func TestLoaderIsLoad(t *testing.T) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := surround(t, map[string]string{"tenants/0.json": tenantText("start", "f"), "shared.yaml": minimalRegistration}, "limits: {rate: 3}")
		pick := func(from ...string) string { return from[random.IntN(len(from))] }
		for range 60 {
			name := fmt.Sprintf("tenants/%d.%s", random.IntN(6), pick("json", "yaml", "yml"))
			digit := fmt.Sprint(random.IntN(8))
			switch random.IntN(8) {
			case 0:
				_ = os.Remove(s.path(name))
			case 1:
				s.put("shared.yaml", pick(minimalRegistration, minimalRegistration+" ", "{", "- x"))
			case 2:
				s.gateway(pick("", "limits: {rate: 3}", "limits: {rate: x}", "breaker: {probes: 5}"))
			case 3:
				s.env["K"+digit] = pick("0123456789abcdef", "0123456789abcdee", "short")
			case 4:
				s.put(name, `{"id": "t`+digit+`", "keys": [{"env": "K`+digit+`"}], "registration": "../shared.yaml"}`)
			case 5:
				s.put(name, `{"id": "t`+digit+`", "keys": [{"sha256": "`+strings.Repeat(digit, 64)+`"}], "registration": "../shared.yaml"}`)
			default:
				s.put(name, tenantText("t"+digit, digit))
			}
			_, _ = s.load()
		}
	}
}

// Two changes within the time that file systems cannot tell apart are both
// noticed; one that keeps an old time, size and file is once it is asked for.
func TestDigests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	d := NewDigests()
	sum := d.Of(path)
	if sum != [32]byte{} {
		t.Errorf("Of(no file) = %x; want zero", sum)
	}
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	now, old := time.Now(), time.Now().Add(-time.Hour)
	for _, step := range []struct {
		what  string
		do    func()
		moved bool
	}{
		{"written", func() { write("1", now) }, true},
		{"written in the same instant", func() { write("2", now) }, true},
		{"left alone", func() {}, false},
		{"given an old time", func() { write("3", old) }, true},
		{"written behind that time's back", func() { write("4", old) }, false},
		{"asked for anew", d.Forget, true},
		{"made larger", func() { write("44", old) }, true},
		{"replaced by another of the same time and size", func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+".other", []byte("other"), 0o600); err != nil { // takes the freed inode, if there is such a thing
				t.Fatal(err)
			}
			write("55", old)
		}, true},
		{"removed", func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		step.do()
		now := d.Of(path)
		if moved := now != sum; moved != step.moved {
			t.Errorf("%s: the digest changed = %t; want %t", step.what, moved, step.moved)
		}
		sum = now
	}
	if got := d.Of(filepath.Dir(path)); got != [32]byte{} {
		t.Errorf("Of(a folder) = %x; want zero", got)
	}
}

// What is not used any more is forgotten.
func TestDigestsForget(t *testing.T) {
	s := surround(t, map[string]string{"tenants/a.json": tenantText("a", "a"), "tenants/b.json": tenantText("b", "b")})
	s.mustLoad()
	s.remove("tenants/b.json")
	for range unused + 2 {
		s.mustLoad()
	}
	if got := len(s.Digests.known); got != 2 {
		t.Errorf("%d files are known; want 2, the gateway file and one tenant's", got)
	}
}

// After a mistake, Sources name every file whose change can mend it, and the
// folder of tenants in place of the files in it.
func TestLoaderSourcesAfterAMistake(t *testing.T) {
	s := surround(t, map[string]string{
		"tenants/a.json": `{"id": "a", "keys": [{"file": "../a.key"}], "registration": "../shared.json"}`,
		"tenants/b.json": "{",
		"shared.json":    "{",
	})
	if _, err := s.load(); err == nil {
		t.Fatal("Load = no mistake; want some")
	}
	got := slices.Sorted(slices.Values(s.Sources))
	var want []string
	for _, name := range []string{"a.key", "gateway.yaml", "shared.json", "tenants"} {
		want = append(want, s.path(name))
	}
	if !slices.Equal(got, want) {
		t.Errorf("Sources = %q; want %q", got, want)
	}
	s.remove("gateway.yaml")
	if _, err := s.load(); err == nil || !slices.Equal(s.Sources, want[1:2]) {
		t.Errorf("without a gateway file, Load = %v and Sources = %q; want a mistake and %q", err, s.Sources, want[1:2])
	}
}

// What is said of a key that ends changes while its file does not.
func TestLoaderWarnsOfKeysInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(30 * 24 * time.Hour).UTC()
		s := surround(t, map[string]string{"tenants/a.yaml": "id: a\nkeys: [{sha256: \"" + strings.Repeat("a", 64) + "\", expires: " + end.Format(time.RFC3339) + "}]\nregistration: " + minimalRegistration})
		for _, step := range []struct {
			wait time.Duration
			want string
		}{
			{0, ""},
			{15 * 24 * time.Hour, ""},
			{2 * 24 * time.Hour, "the key expires within 14 days"},
			{14 * 24 * time.Hour, "the key has expired and is refused"},
			{time.Hour, "the key has expired and is refused"},
		} {
			time.Sleep(step.wait)
			_, warnings, err := s.Load()
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(warnings) > 0 {
				got = warnings[0].What
			}
			if got != step.want || len(warnings) > 1 {
				t.Errorf("%s before the end: warnings %v; want %q", time.Until(end), warnings, step.want)
			}
		}
	})
}
