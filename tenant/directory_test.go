package tenant

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"
)

func digest(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// keyed is an entry with the digests of tokens.
func keyed(id string, tokens ...string) Entry {
	e := Entry{ID: id}
	for _, token := range tokens {
		e.Keys = append(e.Keys, Key{Digest: digest(token)})
	}
	return e
}

func directory(t testing.TB, entries ...Entry) *Directory[string] {
	t.Helper()
	payload := make([]string, len(entries))
	for i, e := range entries {
		payload[i] = "payload of " + e.ID
	}
	d, err := NewDirectory(entries, payload, nil)
	if err != nil {
		t.Fatalf("NewDirectory(%v) = %v; want no error", entries, err)
	}
	return d
}

func TestAuthenticate(t *testing.T) {
	d := directory(t, keyed("acme", "old-key", "new-key"), keyed("globex", "other-key"))
	for _, c := range []struct {
		authorization, path string
		wantTenant          string
		want                Result
	}{
		{"Bearer old-key", "", "acme", OK},
		{"Bearer new-key", "", "acme", OK},
		{"bearer new-key", "acme", "acme", OK},
		{"BEARER other-key", "globex", "globex", OK},
		{"Bearer other-key", "", "globex", OK},

		// A good credential and another tenant's path, existing or not: the same.
		{"Bearer new-key", "globex", "", WrongTenant},
		{"Bearer new-key", "nobody", "", WrongTenant},
		{"Bearer new-key", "ACME", "", WrongTenant},
		{"Bearer new-key", "acme ", "", WrongTenant},

		// No credential or nobody's: the path makes no difference.
		{"", "", "", Unauthenticated},
		{"", "acme", "", Unauthenticated},
		{"", "nobody", "", Unauthenticated},
		{"Bearer unknown", "acme", "", Refused},
		{"Bearer unknown", "nobody", "", Refused},
		{"Bearer OLD-KEY", "", "", Refused},
		{"Bearer old-key=", "", "", Refused},
		{"Bearer old-ke", "", "", Refused},
		{"Bearer", "", "", Refused},
		{"Bearerold-key", "", "", Unauthenticated},
		{"Basic old-key", "", "", Unauthenticated},
		{"old-key", "", "", Unauthenticated},
		{"Bearer  old-key", "", "", Refused},
		{"Bearer old-key ", "", "", Refused},
		{" Bearer old-key", "", "", Unauthenticated},
		{"Bearer\told-key", "", "", Refused},
		{"Bearer old-key, Bearer old-key", "", "", Refused},
		// The digest is no credential.
		{fmt.Sprintf("Bearer %x", digest("old-key")), "", "", Refused},
	} {
		wantPayload := ""
		if c.want == OK {
			wantPayload = "payload of " + c.wantTenant
		}
		payload, v := d.Authenticate(Request{Authorization: []byte(c.authorization), Path: c.path, Now: time.Now()})
		got := v.Result
		if got != c.want || payload != wantPayload {
			t.Errorf("Authenticate(%q, %q) = %q, %v; want %q, %v", c.authorization, c.path, payload, got, wantPayload, c.want)
		}
	}
}

func TestOpenTenant(t *testing.T) {
	d := directory(t, Entry{ID: "default", Open: true})
	for _, authorization := range []string{"", "Bearer whatever", "Basic x", strings.Repeat("x", 1<<16)} {
		for path, want := range map[string]Result{"": OK, "default": OK, "other": WrongTenant} {
			payload, v := d.Authenticate(Request{Authorization: []byte(authorization), Path: path, Now: time.Now()})
			got := v.Result
			if got != want || (payload == "payload of default") != (want == OK) {
				t.Errorf("Authenticate(%.20q, %q) = %q, %v; want %v", authorization, path, payload, got, want)
			}
		}
	}
}

func TestBearerToken(t *testing.T) {
	longest := strings.Repeat("a", maxAuthorization-len("Bearer "))
	for _, c := range []struct {
		in, want string
		ok       bool
	}{
		{"Bearer a", "a", true},
		{"bEaReR a", "a", true},
		{"Bearer azAZ09-._~+/", "azAZ09-._~+/", true},
		{"Bearer YQ==", "YQ==", true},
		{"Bearer a" + strings.Repeat("=", 9), "a=========", true},
		{"Bearer " + longest, longest, true},
		{"Bearer " + longest + "a", "", false},
		{"", "", false},
		{"Bearer", "", false},
		{"Bearer ", "", false},
		{"Bearer =", "", false},
		{"Bearer a=b", "", false},
		{"Bearer a b", "", false},
		{"Bearer a,b", "", false},
		{"Bearer a\x00", "", false},
		{"Bearer a\r\n", "", false},
		{"Bearer \xc3\xa9", "", false},
		{"Bearer \"a\"", "", false},
		{"Bearer  a", "", false},
		{"Bearera", "", false},
		{"Bearer\xa0a", "", false},
		{"\xe2earer a", "", false},
		{"Bearer\ta", "", false},
	} {
		got, ok := bearerToken([]byte(c.in))
		if string(got) != c.want || ok != c.ok {
			t.Errorf("bearerToken(%.40q) = %.40q, %v; want %.40q, %v", c.in, got, ok, c.want, c.ok)
		}
	}
	for b := range 256 {
		want := strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/", byte(b)) >= 0
		if _, got := bearerToken([]byte{'B', 'e', 'a', 'r', 'e', 'r', ' ', byte(b), 'a'}); got != want {
			t.Errorf("bearerToken with byte %#02x is a token = %v; want %v", b, got, want)
		}
	}
}

func TestNewDirectoryRefuses(t *testing.T) {
	open := Entry{ID: "default", Open: true}
	for _, c := range []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"no id", []Entry{keyed("", "a")}, "tenant: tenant 0 has no id"},
		{"id twice", []Entry{keyed("acme", "a"), keyed("acme", "b")}, `tenant: "acme" appears twice`},
		{"no keys", []Entry{keyed("acme")}, `tenant: "acme" has no keys and is not open`},
		{"open with keys", []Entry{{ID: "acme", Open: true, Keys: keyed("", "a").Keys}}, `tenant: "acme" is open and has keys`},
		{"open beside another", []Entry{keyed("acme", "a"), open}, `tenant: "default" is open and not the only one`},
		{"another beside open", []Entry{open, keyed("acme", "a")}, `tenant: "default" is open and not the only one`},
		{"two tenants, one key", []Entry{keyed("acme", "a", "b"), keyed("globex", "b")}, `tenant: "acme" and "globex" have a key in common`},
		{"one tenant, one key twice", []Entry{keyed("acme", "a", "a")}, `tenant: "acme" and "acme" have a key in common`},
	} {
		d, err := NewDirectory(c.entries, make([]int, len(c.entries)), nil)
		if d != nil || err == nil || err.Error() != c.want {
			t.Errorf("%s: NewDirectory = %v, %v; want nil, %s", c.name, d, err, c.want)
		}
	}
	if _, err := NewDirectory([]Entry{open}, []int{}, nil); err == nil {
		t.Error("NewDirectory with one tenant and no payload = no error; want one")
	}
}

// A directory of nobody is one, and admits nobody.
func TestEmptyDirectory(t *testing.T) {
	d := directory(t)
	for _, path := range []string{"", "acme"} {
		if _, got := d.Authenticate(Request{Authorization: []byte("Bearer key"), Path: path, Now: time.Now()}); got.Result != Refused {
			t.Errorf("Authenticate(Bearer key, %q) = %v; want %v", path, got.Result, Refused)
		}
	}
}

// What the caller does to its entries afterwards changes nobody's rights.
func TestDirectoryIsImmutable(t *testing.T) {
	e := keyed("acme", "a")
	d := directory(t, e)
	e.Keys[0].Digest = digest("b")
	for token, want := range map[string]Result{"a": OK, "b": Refused} {
		if _, got := d.Authenticate(Request{Authorization: []byte("Bearer " + token), Now: time.Now()}); got.Result != want {
			t.Errorf("Authenticate(Bearer %s) = %v; want %v", token, got.Result, want)
		}
	}
}

func TestAuthenticateAllocatesNothing(t *testing.T) {
	entry := keyed("acme", "a-key-of-usual-length-0123456789abcdef")
	entry.Names = []Name{NewName(NameURI, "spiffe://acme/agent")}
	d, names, now := directory(t, entry), entry.Names, time.Now()
	for _, authorization := range []string{"Bearer a-key-of-usual-length-0123456789abcdef", "Bearer unknown", ""} {
		header := []byte(authorization)
		if got := testing.AllocsPerRun(100, func() {
			d.Authenticate(Request{Authorization: header, Names: names, Path: "acme", Now: now})
		}); got != 0 {
			t.Errorf("allocations of Authenticate(%q) = %v; want 0", authorization, got)
		}
	}
}

func TestNames(t *testing.T) {
	for r, want := range map[Result]string{Unauthenticated: "unauthenticated", OK: "ok", WrongTenant: "wrong_tenant", Refused: "refused",
		TwoTenants: "two_tenants", InsufficientScope: "insufficient_scope", Unavailable: "unavailable", 9: "unknown"} {
		if got := r.String(); got != want {
			t.Errorf("Result(%d).String() = %q; want %q", r, got, want)
		}
	}
	for d, want := range map[Denied]string{Admitted: "admitted", DeniedInFlight: "in_flight", DeniedRate: "rate", DeniedQuota: "quota", DeniedShare: "share", DeniedBodies: "bodies", DeniedPlaces: "places", 9: "unknown"} {
		if got := d.String(); got != want {
			t.Errorf("Denied(%d).String() = %q; want %q", d, got, want)
		}
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	const tenants = 10_000
	var entries []Entry
	for i := range tenants {
		entries = append(entries, keyed(fmt.Sprint("tenant", i), fmt.Sprintf("key-%032d", i)))
	}
	d := directory(b, entries...)
	header := []byte("Bearer " + fmt.Sprintf("key-%032d", tenants/2))
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		d.Authenticate(Request{Authorization: header, Path: "tenant5000", Now: now})
	}
}
