package config

import (
	"encoding/hex"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// publicRegistration is one that a document of the store may have: its backend is
// not on the gateway's machine.
var publicRegistration = strings.Replace(minimalRegistration, "http://127.0.0.1:9000", "https://policy.example.com", 1)

func storedText(id, digit string) string {
	return strings.Replace(tenantText(id, digit), minimalRegistration, publicRegistration, 1)
}

// storing surrounds a gateway file whose tenants are also in a store.
func storing(t *testing.T, more string, documents map[string]string) *surroundings {
	t.Helper()
	s := surround(t, map[string]string{"tenants/filed.yaml": storedText("filed", "f")},
		"shared: {redis: {url: redis://127.0.0.1}}", "discovery: {onFailure: skip}",
		`adminApi: {store: redis, keys: [{sha256: "`+strings.Repeat("e", 64)+`"}]`+more+"}")
	s.store(documents)
	return s
}

// store has the loader find those documents.
func (s *surroundings) store(documents map[string]string) {
	s.Stored = make(map[string][]byte)
	for id, text := range documents {
		s.Stored[id] = []byte(text)
	}
}

func (s *surroundings) text(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// serves loads with a change, of which only none is served, and checks which
// tenants there are.
func (s *surroundings) serves(c Change, want ...string) *File {
	s.t.Helper()
	f, _, err := s.LoadWith(c)
	if err != nil {
		s.t.Fatalf("LoadWith(%s) = %v; want no mistake", c.Path, err)
	}
	ids := []string{}
	for i := range f.Tenants {
		ids = append(ids, f.Tenants[i].ID)
		if id := f.Tenants[i].ID; id != "filed" && f.Tenants[i].File != StoredName(id) {
			s.t.Errorf("File of tenant %s = %s; want %s", id, f.Tenants[i].File, StoredName(id))
		}
	}
	if !slices.Equal(ids, want) {
		s.t.Errorf("LoadWith(%s) found tenants %v; want %v", c.Path, ids, want)
	}
	if c.Path == "" {
		s.Served()
	}
	return f
}

// leaves checks what was left out.
func (s *surroundings) leaves(want ...string) {
	s.t.Helper()
	got := []string{}
	for _, l := range s.LeftOut {
		text := l.Mistake.String()
		if l.Earlier {
			text += " (earlier)"
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("left out were\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What is wrong with one document is no mistake of the others.
func TestStoredTenants(t *testing.T) {
	s := storing(t, "", map[string]string{
		"acme": storedText("acme", "a"), "beta": storedText("beta", "b"),
		"admin": storedText("admin", "e"), "broken": "{", "copied": storedText("acme", "c"), "filed": storedText("filed", "0"),
		"greedy": strings.Replace(storedText("greedy", "1"), "{", `{"secrets": {"envPrefix": "AHP_"}, `, 1),
		"nosy":   `{"id": "nosy", "keys": [{"file": "/etc/hostname"}], "registration": ` + publicRegistration + `}`,
		"twin":   storedText("twin", "b"), "UPPER\n": storedText("upper", "2"), "zoo": storedText("zoo", "f"),
	})
	s.Stored["large"] = nil
	before := s.serves(Change{}, "filed", "acme", "beta")
	s.leaves(
		`redis:"UPPER\n": is not under the id of a tenant: remove it from the store`,
		`redis:admin:1:26: keys[0]: is the same key as adminApi.keys[0]: write another key: one key names one tenant, once`,
		`redis:broken:1:2: not valid JSON, unexpected EOF: correct the syntax there`,
		`redis:copied:1:1: is under the id copied (found "acme"): write that as its id`,
		`redis:filed:1:8: id: is the id of the tenant in "filed.yaml" too (found "filed"): write another id`,
		`redis:greedy:1:27: secrets.envPrefix: names what is on the gateway's machine, which is for those who may write there: remove it, or write stored: true where secrets are stored`,
		`redis:large: is too large: write one tenant of at most 1 MiB`,
		`redis:nosy:1:34: keys[0].file: names what is on the gateway's machine, which is for those who may write there: write {sha256: …} with 64 hexadecimal digits`,
		`redis:twin:1:25: keys[0]: is the same key as keys[0] in "redis:beta": write another key: one key names one tenant, once`,
		`redis:zoo:1:24: keys[0]: is the same key as keys[0] in "filed.yaml": write another key: one key names one tenant, once`,
	)

	// A tenant whose document goes bad stays as it was, and one that is removed goes.
	documents := map[string]string{"acme": "id: acme", "beta": storedText("beta", "3")}
	s.store(documents)
	after := s.serves(Change{}, "filed", "acme", "beta")
	s.leaves(`redis:acme:1:1: keys: is missing: write one or two keys, such as [{sha256: …}]: a tenant without a key cannot be reached (earlier)`)
	if got, want := changed(after, before), []string{"beta"}; !slices.Equal(got, want) {
		t.Errorf("tenants that were read again = %v; want %v", got, want)
	}
	delete(documents, "acme")
	s.store(documents)
	s.serves(Change{}, "filed", "beta")
	s.leaves()
	s.store(map[string]string{"acme": "id: acme", "beta": storedText("beta", "3")})
	s.serves(Change{}, "filed", "beta")

	// Without the setting nobody looks.
	s.put("gateway.yaml", "tenantsDir: tenants\n")
	s.serves(Change{}, "filed")
	s.leaves()
}

// Trusted documents may name files, from the gateway file's folder, which are
// watched; and what they name decides whether they are read again.
func TestTrustedStoredTenants(t *testing.T) {
	s := storing(t, ", trustDocuments: true", map[string]string{"acme": "id: acme\nkeys: [{file: acme.key}]\nregistration: " + publicRegistration})
	s.serves(Change{}, "filed")
	if key := s.path("acme.key"); !slices.Contains(s.Sources, key) {
		t.Errorf("Sources = %v; want %s, whose coming mends the document", s.Sources, key)
	}
	s.put("acme.key", "0123456789abcdef")
	before := s.serves(Change{}, "filed", "acme")
	if key := s.path("acme.key"); !slices.Contains(before.Sources, key) {
		t.Errorf("Sources = %v; want %s", before.Sources, key)
	}
	s.put("acme.key", "0123456789abcdef-another")
	if got, want := changed(s.serves(Change{}, "filed", "acme"), before), []string{"acme"}; !slices.Equal(got, want) {
		t.Errorf("tenants that were read again = %v; want %v", got, want)
	}
	// What was read in trust does not outlive it.
	s.put("gateway.yaml", strings.Replace(s.text("gateway.yaml"), ", trustDocuments: true", "", 1))
	s.serves(Change{}, "filed")
}

// A change of a stored document is refused for what would leave it out, also
// where another document would be left out instead.
func TestChangesOfStoredTenants(t *testing.T) {
	s := storing(t, "", map[string]string{"acme": storedText("acme", "a"), "zoo": storedText("zoo", "c"), "bad": "{"})
	s.serves(Change{}, "filed", "acme", "zoo")
	documents := maps.Clone(s.Stored)
	s.serves(Change{StoredName("beta"), []byte(storedText("beta", "b"))}, "filed", "acme", "beta", "zoo")
	s.serves(Change{StoredName("acme"), []byte(storedText("acme", "b"))}, "filed", "acme", "zoo")
	s.serves(Change{StoredName("acme"), nil}, "filed", "zoo")
	s.serves(Change{StoredName("bad"), []byte(storedText("bad", "b"))}, "filed", "acme", "bad", "zoo")
	for id, text := range map[string]string{
		"beta": storedText("beta", "c"), "gamma": storedText("gamma", "e"), "filed": storedText("filed", "b"),
		"acme": "id: acme", "delta": storedText("delta", "f"), "nosy": "{id: nosy, keys: [{env: GOOD_KEY}], registration: " + publicRegistration + "}",
	} {
		_, _, err := s.LoadWith(Change{StoredName(id), []byte(text)})
		if ms := AsMistakes(err); len(ms) == 0 || ms[0].File != StoredName(id) {
			t.Errorf("LoadWith(%s) = %v; want mistakes in %s", text, err, StoredName(id))
		}
	}
	if !maps.EqualFunc(documents, s.Stored, func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Error("a change has changed what is stored")
	}
	s.serves(Change{}, "filed", "acme", "zoo")

	// A proposal is not good for later, until it was made.
	s.store(map[string]string{"acme": "{", "zoo": storedText("zoo", "c")})
	if f := s.serves(Change{}, "filed", "acme", "zoo"); f.Tenants[1].Keys[0].SHA256[0] != 0xaa {
		t.Errorf("acme has key %x; want that of its last good document", f.Tenants[1].Keys[0].SHA256)
	}
	s.Stored = documents
	made := Change{StoredName("acme"), []byte(storedText("acme", "b"))}
	s.serves(made, "filed", "acme", "zoo")
	s.Served()
	s.store(map[string]string{"acme": "{", "zoo": storedText("zoo", "c")})
	if f := s.serves(Change{}, "filed", "acme", "zoo"); f.Tenants[1].Keys[0].SHA256[0] != 0xbb {
		t.Errorf("acme has key %x; want that of the change that was made", f.Tenants[1].Keys[0].SHA256)
	}
	s.store(map[string]string{"acme": storedText("acme", "b"), "zoo": storedText("zoo", "c")})
	s.serves(Change{StoredName("acme"), nil}, "filed", "zoo")
	s.Served()
	s.store(map[string]string{"acme": "{", "zoo": storedText("zoo", "c")})
	s.serves(Change{}, "filed", "zoo")
}

// A token may be for a tenant that is yet to come, and one that goes keeps no
// other from being served.
func TestTokensOfStoredTenants(t *testing.T) {
	s := storing(t, "", nil)
	s.put("gateway.yaml", s.text("gateway.yaml")+"\nauth: {issuers: [{issuer: https://idp.example, audience: [x], tenants: {build: acme}}]}\n")
	_, warnings, err := s.LoadWith(Change{})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].What, "no tenant has this id") {
		t.Errorf("LoadWith = %v, %v; want a warning about acme", warnings, err)
	}
}

// What is kept of a configuration has the tenants of the store in it, and needs
// no store to be served.
func TestStoredTenantsArePrinted(t *testing.T) {
	s := storing(t, "", map[string]string{"acme": storedText("acme", "a")})
	f := s.serves(Change{}, "filed", "acme")
	again, _, err := ParseWhole(s.path("kept.yaml"), f.PrintWhole(), s.environ)
	if err != nil {
		t.Fatalf("ParseWhole of what PrintWhole has written = %v; want no mistake", err)
	}
	if got := again.Tenants; len(got) != 2 || got[1].ID != "acme" || !slices.Equal(got[1].Keys, f.Tenants[1].Keys) || again.AdminAPI.Store != "redis" {
		t.Errorf("ParseWhole of what PrintWhole has written has tenants %+v; want those of before", got)
	}
	// With none at all it is a configuration too.
	s.remove("tenants/filed.yaml")
	s.put("gateway.yaml", strings.Replace(s.text("gateway.yaml"), "tenantsDir: tenants\n", "", 1))
	s.store(nil)
	f = s.serves(Change{})
	if _, _, err := ParseWhole(s.path("kept.yaml"), f.PrintWhole(), s.environ); err != nil {
		t.Errorf("ParseWhole of what has no tenant = %v; want no mistake", err)
	}
}

// A document of the store may refer to the secrets of its tenant that are stored.
func TestStoredTenantsHaveSecrets(t *testing.T) {
	document := strings.Replace(storedText("acme", "a"), "{", `{"secrets": {"stored": true}, `, 1)
	s := storing(t, `, secretsDir: secrets, secretsKey: {env: SECRETS_KEY}`, map[string]string{"acme": document})
	s.env["SECRETS_KEY"] = strings.Repeat("5e", 32)
	f, _, err := s.Load()
	if err != nil || len(f.Tenants) != 2 || !f.Tenants[1].Secrets.Stored {
		t.Errorf("Load() = %+v, %v, left out %v; want acme with stored secrets", f, err, s.LeftOut)
	}
}

// Of two documents that claim the same the one that had it before has it still,
// wherever its id sorts.
func TestStoredTenantsKeepTheirClaims(t *testing.T) {
	for _, c := range []struct {
		what          string
		before, after map[string]string // id to the digit of its key, or a whole document
		want          map[string]string
		out           int
	}{
		{"a newcomer", map[string]string{"zoo": "a"}, map[string]string{"acme": "a", "zoo": "a"}, map[string]string{"zoo": "a"}, 1},
		{"one that changes", map[string]string{"acme": "a", "zoo": "b"}, map[string]string{"acme": "b", "zoo": "b"}, map[string]string{"acme": "a", "zoo": "b"}, 1},
		{"a key that moves on", map[string]string{"acme": "a", "zoo": "b"}, map[string]string{"acme": "b", "zoo": "c"}, map[string]string{"acme": "b", "zoo": "c"}, 0},
		{"keys that change places", map[string]string{"acme": "a", "zoo": "b"}, map[string]string{"acme": "b", "zoo": "a"}, map[string]string{"acme": "b", "zoo": "a"}, 0},
		{"a newcomer for a key that is given up", map[string]string{"zoo": "b"}, map[string]string{"acme": "b", "zoo": "c"}, map[string]string{"acme": "b", "zoo": "c"}, 0},
		{"a key of one whose document breaks", map[string]string{"acme": "a", "zoo": "b"}, map[string]string{"acme": "b", "zoo": "{"}, map[string]string{"acme": "a", "zoo": "b"}, 2},
		{"a key of one that cannot have another's", map[string]string{"acme": "a", "mid": "c", "zoo": "b"}, map[string]string{"acme": "b", "mid": "c", "zoo": "c"}, map[string]string{"acme": "a", "mid": "c", "zoo": "b"}, 2},
		{"two newcomers", nil, map[string]string{"acme": "a", "zoo": "a"}, map[string]string{"acme": "a"}, 1},
		{"a key of the file's", map[string]string{"acme": "a"}, map[string]string{"acme": "f"}, map[string]string{"acme": "a"}, 1},
	} {
		s := storing(t, "", nil)
		put := func(digits map[string]string) {
			documents := make(map[string]string)
			for id, digit := range digits {
				if documents[id] = digit; digit != "{" {
					documents[id] = storedText(id, digit)
				}
			}
			s.store(documents)
		}
		put(c.before)
		s.serves(Change{}, append([]string{"filed"}, slices.Sorted(maps.Keys(c.before))...)...)
		put(c.after)
		f := s.serves(Change{}, append([]string{"filed"}, slices.Sorted(maps.Keys(c.want))...)...)
		for _, tenant := range f.Tenants[1:] {
			if got, want := hex.EncodeToString(tenant.Keys[0].SHA256[:]), strings.Repeat(c.want[tenant.ID], 64); got != want {
				t.Errorf("%s: %s has key %.4s; want %.4s", c.what, tenant.ID, got, want)
			}
		}
		if len(s.LeftOut) != c.out {
			t.Errorf("%s: left out were %v; want %d", c.what, s.LeftOut, c.out)
		}
		again := s.serves(Change{}, append([]string{"filed"}, slices.Sorted(maps.Keys(c.want))...)...)
		if got := changed(again, f); len(got) > 0 {
			t.Errorf("%s: tenants that differ the next time = %v; want none", c.what, got)
		}
	}
}

// While a file has a mistake the documents are followed, on what was served.
func TestStoredTenantsUnderMistakes(t *testing.T) {
	s := storing(t, "", map[string]string{"acme": storedText("acme", "a"), "beta": storedText("beta", "b")})
	s.put("gateway.yaml", s.text("gateway.yaml")+"\nlimits: {rate: 7}\ntenants: [{id: listed, keys: [{sha256: \""+strings.Repeat("1", 64)+"\"}], registration: "+publicRegistration+"}]\n")
	good := s.text("gateway.yaml")
	before, _, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	s.Served()
	stored := func(documents map[string]string, want ...string) *File {
		t.Helper()
		if documents != nil {
			s.store(documents)
		}
		f, _, err := s.LoadStored(Change{})
		if err != nil {
			t.Fatalf("LoadStored = %v; want no mistake", err)
		}
		if got := idsOf(f); !slices.Equal(got, want) {
			t.Errorf("LoadStored found tenants %v; want %v", got, want)
		}
		return f
	}
	for what, breakIt := range map[string]func(){
		"the gateway file":                  func() { s.put("gateway.yaml", strings.Replace(good, "rate: 7", "rate: 9, x: 1", 1)) },
		"a gateway file that is no store's": func() { s.put("gateway.yaml", "tenantsDir: tenants\nlimits: {x: 1}\n") },
		"no gateway file":                   func() { s.remove("gateway.yaml") },
		"a tenant's file":                   func() { s.put("tenants/late.yaml", "{") },
	} {
		breakIt()
		if _, _, err := s.Load(); err == nil {
			t.Fatalf("Load of %s = no mistake; want some", what)
		}
		f := stored(map[string]string{"acme": storedText("acme", "c"), "gamma": storedText("gamma", "d"), "bad": "{", "thief": storedText("thief", "1")}, "listed", "filed", "acme", "gamma")
		if got, want := changed(f, before), []string{"acme", "gamma"}; !slices.Equal(got, want) {
			t.Errorf("%s: tenants that differ = %v; want %v", what, got, want)
		}
		if !f.SameButTenants(before) || f.Tenants[2].Rate != 7 {
			t.Errorf("%s: the rest of what LoadStored found, or a tenant's rate of %v, differs from what was served", what, f.Tenants[2].Rate)
		}
		if len(s.LeftOut) != 2 {
			t.Errorf("%s: left out were %v; want bad and thief", what, s.LeftOut)
		}
		if !slices.Equal(f.Sources, before.Sources) {
			t.Errorf("%s: Sources = %v; want %v", what, f.Sources, before.Sources)
		}
		s.put("gateway.yaml", good)
		if err := os.RemoveAll(s.path("tenants/late.yaml")); err != nil {
			t.Fatal(err)
		}
		s.store(map[string]string{"acme": storedText("acme", "a"), "beta": storedText("beta", "b")})
		if before, _, err = s.Load(); err != nil {
			t.Fatal(err)
		}
		s.Served()
	}

	// A change is checked on what is served, too.
	s.put("gateway.yaml", "x: 1")
	made := Change{StoredName("acme"), []byte(storedText("acme", "d"))}
	for _, c := range []struct {
		change Change
		want   string
	}{
		{made, ""}, {Change{StoredName("acme"), nil}, ""},
		{Change{StoredName("late"), []byte(storedText("late", "b"))}, `redis:late:1:25: keys[0]: is the same key as keys[0] in "redis:beta"`},
		{Change{StoredName("late"), []byte(storedText("late", "1"))}, `redis:late:1:25: keys[0]: is the same key as tenants[0].keys[0]`},
		{Change{StoredName("late"), []byte(storedText("late", "e"))}, `redis:late:1:25: keys[0]: is the same key as adminApi.keys[0]`},
	} {
		_, _, err := s.LoadStored(c.change)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("LoadStored(%s) = %v; want %q", c.change.Path, err, c.want)
		}
	}

	// What is served under a mistake is the last good one from then on.
	s.put("gateway.yaml", "x: 1")
	stored(map[string]string{"acme": storedText("acme", "c")}, "listed", "filed", "acme")
	s.Served()
	f := stored(map[string]string{"acme": "{"}, "listed", "filed", "acme")
	if got := f.Tenants[2].Keys[0].SHA256[0]; got != 0xcc {
		t.Errorf("acme has key %x; want that of its last good document", got)
	}
	// A load that is not served is nothing to go by.
	s.put("gateway.yaml", strings.Replace(good, "rate: 7", "rate: 8", 1))
	if _, _, err := s.Load(); err != nil {
		t.Fatal(err)
	}
	if f := stored(nil, "listed", "filed", "acme"); f.Tenants[2].Rate != 7 {
		t.Errorf("acme's rate = %v; want 7, as served", f.Tenants[2].Rate)
	}
}

// idsOf returns the ids of tenants in order.
func idsOf(f *File) (ids []string) {
	for i := range f.Tenants {
		ids = append(ids, f.Tenants[i].ID)
	}
	return ids
}

// What was kept of a gateway file gives documents of the store the same as the file
// did, whatever that is by now.
func TestStoredTenantsOfAKeptFile(t *testing.T) {
	for _, settings := range []string{
		"limits: {}",
		"limits: {rate: 7, burst: 9, inFlightPerTenant: 11, quotaDay: 13, quotaMonth: 17, budget: 2s}\n" +
			"backend: {allowHTTP: true, allowPrivate: true, allowAddresses: [10.0.0.0/8], inFlight: 19, connections: 23, retry: false}\n" +
			"breaker: {window: 40s, buckets: 20, volume: 3, ratio: 0.25, openFor: 7s, probes: 2}\n" +
			"auth: {resource: https://gateway.example/hooks, issuers: [{issuer: https://idp.example, tenantClaim: t}]}",
		"limits: {rate: 7}\nbackend: {allowAddresses: [10.0.0.0/8]}\nbreaker: {enabled: false}",
	} {
		own := strings.Replace(storedText("own", "b"), "{", `{"rate": 1000, `, 1)
		inside := strings.Replace(storedText("inside", "c"), "https://policy.example.com", "https://10.1.2.3", 1)
		s := storing(t, "", map[string]string{"acme": storedText("acme", "a"), "own": own, "inside": inside, "zoo": storedText("zoo", "d")})
		s.put("gateway.yaml", s.text("gateway.yaml")+"\n"+settings+"\n")
		f, _, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		s.Served()
		kept, good := f.WithoutStored().PrintWhole(), s.Good()
		if strings.Contains(string(kept), "id: acme") {
			t.Errorf("WithoutStored has a tenant of the store:\n%s", kept)
		}
		s.put("gateway.yaml", "x: 1")
		later := NewLoader(s.path("gateway.yaml"), s.environ)
		later.Stored, later.Earlier = s.Stored, good
		again, _, err := later.LoadKept(s.path("state/last-good.yaml"), kept)
		if err != nil {
			t.Fatalf("LoadKept = %v; want no mistake in\n%s", err, kept)
		}
		if got, want := string(again.Print()), string(f.Print()); got != want {
			t.Errorf("LoadKept with %s =\n%s\nwant\n%s", settings, got, want)
		}
		// What was good before the start is so after it.
		later.Served()
		later.Stored = map[string][]byte{"acme": []byte("{"), "beta": []byte(storedText("beta", "a"))}
		if again, _, err = later.LoadStored(Change{}); err != nil {
			t.Fatal(err)
		}
		if got, want := idsOf(again), []string{"filed", "acme"}; !slices.Equal(got, want) {
			t.Errorf("LoadStored after LoadKept found %v; want %v", got, want)
		}
	}
}

// A loader goes by documents that were good before it was made, until it knows better.
func TestEarlierDocuments(t *testing.T) {
	s := storing(t, "", map[string]string{"acme": "{", "beta": storedText("beta", "a")})
	s.Earlier = map[string][]byte{"acme": []byte(storedText("acme", "a"))}
	s.serves(Change{}, "filed", "acme")
	s.serves(Change{}, "filed", "acme")
	s.store(nil)
	s.serves(Change{}, "filed")
	s.store(map[string]string{"acme": "{"})
	s.serves(Change{}, "filed")
	if _, _, err := NewLoader(s.path("gateway.yaml"), s.environ).LoadStored(Change{}); err == nil {
		t.Error("LoadStored of a loader that nothing is served of = no error; want one")
	}
}
