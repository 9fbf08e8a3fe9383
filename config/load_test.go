package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

const minimalRegistration = `{"protocolVersion": "0.1", "hooks": [{"id": "com.example.policy",
  "transport": {"type": "http", "url": "http://127.0.0.1:9000"},
  "subscriptions": [{"id": "gate", "events": ["tool.before"], "mode": "intercept", "timeoutMs": 750, "failurePolicy": "fail-closed"}]}]}`

// write makes files below a new folder and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpenTenantDefaults(t *testing.T) {
	f, warnings, err := Parse("gateway.yaml", []byte("registration: "+minimalRegistration), testEnv)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Parse = %v, %v; want no mistakes", warnings, err)
	}
	settings := DefaultBackend()
	settings.AllowPrivate = true
	want := Default()
	want.Sources = f.Sources
	want.Tenants = []Tenant{{
		ID: "default", Open: true, InFlight: 1024, Weight: 1, Secrets: Grant{AnyEnv: true},
		Backends: map[string]BackendSettings{"com.example.policy": settings},
		Registrations: []*Registration{{Version: ahp.V01, Hooks: []Hook{{
			ID: "com.example.policy", URL: "http://127.0.0.1:9000",
			Subscriptions: []Subscription{{
				ID: "gate", Selectors: []string{"tool.before"}, Mode: Intercept,
				Timeout: 750 * time.Millisecond, FailClosed: true,
			}},
		}}}},
	}}
	if !reflect.DeepEqual(*f, want) {
		t.Errorf("Parse = %+v; want %+v", *f, want)
	}
}

func TestTenantsOverLimits(t *testing.T) {
	f, _, err := Load("testdata/valid/gateway-tenants.yaml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tenants) != 2 {
		t.Fatalf("Load found %d tenants; want 2", len(f.Tenants))
	}
	a, b := f.Tenants[0], f.Tenants[1]
	if a.Quota != (Quota{Day: 1000, Month: 20000}) || a.Weight != 1 {
		t.Errorf("tenant 0 quota, weight = %+v, %d; want the limits' 1000 and 20000, and 1", a.Quota, a.Weight)
	}
	if b.Quota != (Quota{Day: 0, Month: 5}) || b.Weight != 1000 {
		t.Errorf("tenant 1 quota, weight = %+v, %d; want its own 0 and 5, and 1000", b.Quota, b.Weight)
	}
	if f.Metrics.Tenants != 0 {
		t.Errorf("metrics.tenants = %d; want 0", f.Metrics.Tenants)
	}
	if a.Rate != 10 || a.Burst != 20 || a.InFlight != 1024 || a.Open || len(a.Keys) != 2 {
		t.Errorf("tenant 0 = %+v; want the limits' rate 10, burst 20, in flight 1024, closed, two keys", a)
	}
	if b.Rate != 0 || b.Burst != 0 || b.InFlight != 5 {
		t.Errorf("tenant 1 rate, burst, in flight = %v, %v, %v; want 0, 0, 5", b.Rate, b.Burst, b.InFlight)
	}
	policy, scanner := a.Backends["com.example.policy"], a.Backends["com.example.scanner"]
	if policy.Retry || !policy.Breaker.Disabled || policy.InFlight != 7 || !policy.AllowHTTP || policy.AllowPrivate {
		t.Errorf("settings of policy = %+v; want its own over the defaults of the file", policy)
	}
	if !scanner.Retry || scanner.Breaker.Disabled || scanner.Breaker.Ratio != 1 || scanner.Breaker.Volume != 20 {
		t.Errorf("settings of scanner = %+v; want the defaults of the file", scanner)
	}
	for i, sub := range a.Registrations[0].Hooks[0].Subscriptions {
		if !sub.Shadow {
			t.Errorf("subscription %d of policy is not in shadow; want all", i)
		}
	}
	if a.Registrations[0].Hooks[1].Subscriptions[0].Shadow {
		t.Error("a subscription of scanner is in shadow; want none")
	}
}

// TestDraftRegistration looks at what a draft document with every member means.
func TestDraftRegistration(t *testing.T) {
	reg, warnings, err := LoadRegistration("testdata/valid/registration-draft.yaml")
	if err != nil || len(warnings) > 0 {
		t.Fatalf("LoadRegistration = %v, %v; want no mistakes", warnings, err)
	}
	want := &Registration{Version: ahp.Draft, Hooks: []Hook{
		{
			ID: "com.example.policy", URL: "https://policy.example.com/ahp",
			Headers: []Header{
				{Name: "X-Environment", Value: "production"},
				{Name: "Authorization", Secret: &SecretRef{Env: "ACME_AUTHORIZATION"}},
			},
			Subscriptions: []Subscription{
				{
					ID: "everything", Selectors: []string{"*"}, Mode: Intercept, Timeout: 30 * time.Second,
					FailClosed: true, Managed: true,
					Content: ahp.ContentSelection{Default: ahp.SelectMetadata, Categories: map[string]ahp.Selection{
						"text": ahp.SelectBody, "com.example.custom": ahp.SelectOmit,
					}},
				},
				{
					Selectors: []string{"tool.*", "user.attention"}, Mode: Observe,
					Content: ahp.ContentSelection{Default: ahp.SelectOmit},
				},
			},
		},
		{
			ID: "com.example.scanner", URL: "https://scanner.example.com", Bearer: &SecretRef{Env: "ACME_SCANNER_TOKEN"},
			Subscriptions: []Subscription{{
				Selectors: []string{"tool.before", "turn.*"}, Mode: Intercept, Timeout: 5 * time.Second, FailClosed: true,
				IncludeNative: true, Content: ahp.ContentSelection{Default: ahp.SelectBody},
			}},
		},
	}}
	if !reflect.DeepEqual(reg, want) {
		t.Errorf("LoadRegistration = %+v; want %+v", reg, want)
	}
}

// TestSameDocumentInBothSyntaxes reads JSON with the JSON reader and, behind a
// comment that hides the brace, with the YAML reader.
func TestSameDocumentInBothSyntaxes(t *testing.T) {
	for _, path := range corpus(t, "valid") {
		if filepath.Ext(path) != ".json" || strings.HasPrefix(filepath.Base(path), "registration-") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, _, err := Parse(path, data, testEnv)
		if err != nil {
			t.Fatal(err)
		}
		asYAML, _, err := Parse(path, append([]byte("# comment\n"), data...), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(asJSON, asYAML) {
			t.Errorf("%s read as YAML = %+v; want as in JSON, %+v", path, asYAML, asJSON)
		}
	}
}

func TestKeysFromElsewhere(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	dir := write(t, map[string]string{
		"keys/crlf":   key + "1\r\n",
		"gateway.yml": "tenants:\n- {id: a, keys: [{env: GOOD_KEY}, {file: keys/crlf}], registration: hooks.json}\n",
		"hooks.json":  minimalRegistration,
	})
	f, _, err := Load(filepath.Join(dir, "gateway.yml"), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := []Key{{SHA256: sha256.Sum256([]byte(key))}, {SHA256: sha256.Sum256([]byte(key + "1"))}}
	if !reflect.DeepEqual(f.Tenants[0].Keys, want) {
		t.Errorf("keys = %v; want the digests of the keys without line ends, %x", f.Tenants[0].Keys, want)
	}
	var sources []string
	for _, name := range []string{"gateway.yml", "keys/crlf", "hooks.json"} {
		sources = append(sources, filepath.Join(dir, name))
	}
	if !reflect.DeepEqual(f.Sources, sources) {
		t.Errorf("sources = %q; want %q", f.Sources, sources)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	dir := write(t, map[string]string{
		"large.yaml":     strings.Repeat("#", maxFile+1),
		"key":            strings.Repeat("k", maxKey+1),
		"large-key.yaml": "tenants: [{id: a, keys: [{file: key}], registration: x.json}]\n",
		"pipe-key.yaml":  "tenants: [{id: a, keys: [{file: pipe}], registration: x.json}]\n",
		"x.json":         minimalRegistration,
	})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"large.yaml":     "too large",
		"absent.yaml":    "no such file",
		"pipe":           "not a regular file",
		".":              "not a regular file",
		"large-key.yaml": "too large",
		"pipe-key.yaml":  "not a regular file",
	} {
		_, _, err := Load(filepath.Join(dir, name), testEnv)
		if ms := AsMistakes(err); len(ms) != 1 || !strings.Contains(ms[0].What, want) {
			t.Errorf("Load(%s) = %v; want one mistake with %q", name, err, want)
		}
	}
	_, _, err := LoadRegistration(filepath.Join(dir, "absent.json"))
	if ms := AsMistakes(err); len(ms) != 1 || ms[0].Line != 0 || !strings.Contains(ms[0].What, "no such file") {
		t.Errorf("LoadRegistration(absent.json) = %v; want one mistake without a position", err)
	}
}

func TestSharedDocumentIsReadAndReportedOnce(t *testing.T) {
	dir := write(t, map[string]string{
		"gateway.yaml": "tenants:\n" +
			"- {id: a, keys: [{sha256: aa00000000000000000000000000000000000000000000000000000000000001}], registration: hooks.json}\n" +
			"- {id: b, keys: [{sha256: aa00000000000000000000000000000000000000000000000000000000000002}], registration: ./hooks.json}\n",
		"hooks.json": strings.Replace(minimalRegistration, "750", "0", 1),
	})
	_, _, err := Load(filepath.Join(dir, "gateway.yaml"), testEnv)
	if ms := AsMistakes(err); len(ms) != 1 || ms[0].File != filepath.Join(dir, "hooks.json") {
		t.Errorf("Load = %v; want the one mistake of hooks.json", err)
	}
}

func TestSecretReferencesThatDoNotResolve(t *testing.T) {
	dir := write(t, map[string]string{
		"gateway.yaml": "secrets: {envPrefix: B_, dir: secrets}\nregistration: hooks.json\n",
		"hooks.json": strings.Replace(minimalRegistration, `"http://127.0.0.1:9000"`, `"http://127.0.0.1:9000", "headers": {
			"A": {"valueEnv": "B_TOKEN"}, "B": {"valueEnv": "B_UNSET"},
			"C": {"valueRef": "policy/token"}, "D": {"valueRef": "policy"}, "E": {"valueRef": "absent"},
			"F": {"valueRef": "inside"}, "G": {"valueRef": "outside"}}`, 1),
		"secrets/policy/token": "x",
		"outside":              "x",
	})
	for link, to := range map[string]string{"inside": "policy/token", "outside": "../outside"} {
		if err := os.Symlink(to, filepath.Join(dir, "secrets", link)); err != nil {
			t.Fatal(err)
		}
	}
	f, warnings, err := Load(filepath.Join(dir, "gateway.yaml"), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		if !w.Warning {
			t.Errorf("%v is among the warnings and not marked as one", w)
		}
		got = append(got, strings.TrimPrefix(w.Path, "hooks[0].transport.headers."))
	}
	if want := []string{"B.valueEnv", "D.valueRef", "E.valueRef", "G.valueRef"}; !reflect.DeepEqual(got, want) {
		t.Errorf("warnings are about %q; want %q", got, want)
	}
	want := Grant{EnvPrefix: "B_", Dir: filepath.Join(dir, "secrets")}
	if got := f.Tenants[0].Secrets; got != want {
		t.Errorf("grant = %+v; want %+v", got, want)
	}
}

func TestWarnings(t *testing.T) {
	open := func(top, from, to string) string {
		return top + "registration: " + strings.Replace(minimalRegistration, from, to, 1)
	}
	tenants := func(a, b string) string {
		return "tenants:\n" +
			"- {id: a, keys: [{sha256: aa00000000000000000000000000000000000000000000000000000000000001}], registration: " + minimalRegistration + ", " + a + "}\n" +
			"- {id: b, keys: [{sha256: aa00000000000000000000000000000000000000000000000000000000000002}], registration: " + minimalRegistration + ", " + b + "}\n"
	}
	for _, c := range []struct{ name, file, path, what string }{
		{"admin not on loopback", open("admin: 0.0.0.0:8788\n", "", ""), "admin", "not loopback"},
		{"short timeout", open("", "750", "99"), "registration.hooks[0].subscriptions[0].timeoutMs", "outside the range"},
		{"long timeout", open("", "750", "30001"), "registration.hooks[0].subscriptions[0].timeoutMs", "outside the range"},
		{"timeout beyond the budget", open("limits: {budget: 700ms}\n", "", ""), "registration.hooks[0].subscriptions[0].timeoutMs", "longer than limits.budget"},
		{"unknown member", open("", `"timeoutMs"`, `"timeoutMS": 1, "timeoutMs"`), "registration.hooks[0].subscriptions[0].timeoutMS", "unknown key"},
		{"content in 0.1", open("", `"timeoutMs"`, `"content": {}, "timeoutMs"`), "registration.hooks[0].subscriptions[0].content", "unknown key"},
		{"receiver in 0.1", open("", `"transport"`, `"contentReceiver": {}, "transport"`), "registration.hooks[0].contentReceiver", "unknown key"},
		{"managed in shadow", open("backends: {com.example.policy: {shadow: [gate]}}\n", `"timeoutMs"`, `"disableable": false, "timeoutMs"`), `backends["com.example.policy"].shadow`, "in shadow"},
		{"credential in a query", open("", "9000", "9000/?api_key=hunter2"), "registration.hooks[0].transport.url", "credential"},
		{"literal that looks like a credential", open("", `9000"`, `9000", "headers": {"X-Team-Token": "hunter2"}`), "registration.hooks[0].transport.headers.X-Team-Token", "looks like a credential"},
		{"authentication under a header", open("", `9000"}`, `9000", "headers": {"authorization": {"valueEnv": "B_TOKEN"}}}, "authentication": {"type": "bearer", "tokenEnv": "B_TOKEN"}`), "registration.hooks[0].authentication", "is replaced"},
		{"burst without rate", tenants("burst: 5", "rate: 1"), "tenants[0].burst", "no effect"},
		{"overlapping prefixes", tenants("secrets: {envPrefix: A_}", "secrets: {envPrefix: A_B_}"), "tenants[1]", "granted to tenants[0] too"},
		{"overlapping folders", tenants("secrets: {dir: s/t}", "secrets: {dir: s}"), "tenants[0]", "granted to tenants[1] too"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, warnings, err := Parse("gateway.yaml", []byte(c.file), testEnv)
			if err != nil {
				t.Fatal(err)
			}
			if len(warnings) != 1 || warnings[0].Path != c.path || !strings.Contains(warnings[0].What, c.what) || !warnings[0].Warning {
				t.Fatalf("Parse warns of %v; want %s: %s", warnings, c.path, c.what)
			}
			checkMistake(t, warnings[0])
		})
	}
}

func TestFoldersThatOnlyShareAName(t *testing.T) {
	file := "tenants:\n" +
		"- {id: a, keys: [{sha256: aa00000000000000000000000000000000000000000000000000000000000001}], secrets: {dir: s/acme}, registration: " + minimalRegistration + "}\n" +
		"- {id: b, keys: [{sha256: aa00000000000000000000000000000000000000000000000000000000000002}], secrets: {dir: s/acme-eu}, registration: " + minimalRegistration + "}\n"
	_, warnings, err := Parse("gateway.yaml", []byte(file), testEnv)
	if err != nil || len(warnings) > 0 {
		t.Errorf("Parse = %v, %v; want neither mistakes nor warnings", warnings, err)
	}
}

func TestPermissionForPlainHTTP(t *testing.T) {
	reg := strings.Replace(minimalRegistration, "127.0.0.1:9000", "policy.example.com", 1)
	for _, c := range []struct {
		file string
		ok   bool
	}{
		{"registration: " + reg, false},
		{"backend: {allowHTTP: true}\nregistration: " + reg, true},
		{"backends: {com.example.policy: {allowHTTP: true}}\nregistration: " + reg, true},
		{"backend: {allowHTTP: true}\nbackends: {com.example.policy: {allowHTTP: false}}\nregistration: " + reg, false},
	} {
		if _, _, err := Parse("gateway.yaml", []byte(c.file), testEnv); (err == nil) != c.ok {
			t.Errorf("Parse(%s) = %v; want accepted %t", c.file, err, c.ok)
		}
	}
	for _, host := range []string{"localhost:1", "LOCALHOST", "127.255.0.1", "[::1]:9000"} {
		doc := strings.Replace(minimalRegistration, "127.0.0.1:9000", host, 1)
		if _, _, err := ParseRegistration("hooks.json", []byte(doc)); err != nil {
			t.Errorf("ParseRegistration with http to %s = %v; want accepted", host, err)
		}
	}
}

// TestPrivateAddresses: the open tenant may reach private addresses, tenants
// of a list only where the file says so.
func TestPrivateAddresses(t *testing.T) {
	tenants := "tenants: [{id: a, keys: [{env: GOOD_KEY}], registration: " + minimalRegistration + "}]\n"
	for _, c := range []struct {
		file string
		want bool
	}{
		{"registration: " + minimalRegistration, true},
		{"backend: {allowPrivate: false}\nregistration: " + minimalRegistration, false},
		{tenants, false},
		{"backend: {allowPrivate: true}\n" + tenants, true},
	} {
		f, _, err := Parse("gateway.yaml", []byte(c.file), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Tenants[0].Backends["com.example.policy"].AllowPrivate; got != c.want {
			t.Errorf("AllowPrivate of %s = %t; want %t", c.file, got, c.want)
		}
	}
}

func TestBurst(t *testing.T) {
	for _, c := range []struct {
		limits, tenant string
		want           int
	}{
		{"{}", "", 0},
		{"{rate: 10}", "", 20},
		{"{rate: 0.2}", "", 1},
		{"{rate: 10, burst: 3}", "", 3},
		{"{rate: 10}", "rate: 50, ", 100},
		{"{rate: 10, burst: 3}", "rate: 50, ", 3},
		{"{burst: 3}", "rate: 50, burst: 7, ", 7},
		{"{rate: 1073741824}", "", maxCount},
	} {
		file := "limits: " + c.limits + "\ntenants: [{id: a, " + c.tenant + "keys: [{env: GOOD_KEY}], registration: " + minimalRegistration + "}]\n"
		f, _, err := Parse("gateway.yaml", []byte(file), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Tenants[0].Burst; got != c.want {
			t.Errorf("burst of limits %s, tenant {%s} = %d; want %d", c.limits, c.tenant, got, c.want)
		}
	}
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	_, other := certificate(t)
	dir := write(t, map[string]string{
		"server.crt": cert, "server.key": key, "other.key": other,
		"good.yaml":  "tls: {certFile: server.crt, keyFile: server.key}\nbackends: {com.example.policy: {caFile: server.crt}}\nregistration: " + minimalRegistration,
		"wrong.yaml": "tls: {certFile: server.crt, keyFile: other.key}\nregistration: " + minimalRegistration,
	})
	f, _, err := Load(filepath.Join(dir, "good.yaml"), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := TLS{CertFile: filepath.Join(dir, "server.crt"), KeyFile: filepath.Join(dir, "server.key")}
	if f.TLS != want {
		t.Errorf("TLS = %+v; want %+v", f.TLS, want)
	}
	if got := f.Tenants[0].Backends["com.example.policy"].CAFile; got != want.CertFile {
		t.Errorf("CAFile = %s; want %s", got, want.CertFile)
	}
	if len(f.Sources) != 3 {
		t.Errorf("sources = %q; want the gateway file, the certificate and the key", f.Sources)
	}
	_, _, err = Load(filepath.Join(dir, "wrong.yaml"), testEnv)
	if ms := AsMistakes(err); len(ms) != 1 || ms[0].Path != "tls" {
		t.Errorf("Load with another certificate's key = %v; want one mistake about tls", err)
	}
}

func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

func TestMistakesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 3 * maxMistakes {
		b.WriteString("k" + itoa(i) + ": 1\n")
	}
	_, _, err := Parse("gateway.yaml", []byte(b.String()), testEnv)
	ms := AsMistakes(err)
	if len(ms) != maxMistakes+1 || !strings.HasPrefix(ms[maxMistakes].What, "2001 more") {
		t.Errorf("Parse reports %d mistakes, the last %v; want %d and one that counts the rest", len(ms), ms[len(ms)-1], maxMistakes)
	}
}

func TestTooManyValues(t *testing.T) {
	file := `{"log": [` + strings.Repeat("1,", maxNodes) + `1]}`
	_, _, err := Parse("x.json", []byte(file), testEnv)
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 values") {
		t.Errorf("Parse of %d values = %v; want a mistake about their number", maxNodes+1, err)
	}
}

func TestNilEnvironIsTheProcess(t *testing.T) {
	t.Setenv("AHP_GATEWAY_TEST_KEY", "0123456789abcdef")
	file := "tenants: [{id: a, keys: [{env: AHP_GATEWAY_TEST_KEY}], registration: " + minimalRegistration + "}]\n"
	if _, _, err := Parse("gateway.yaml", []byte(file), nil); err != nil {
		t.Errorf("Parse = %v; want the process environment read", err)
	}
}

func TestAsMistakes(t *testing.T) {
	if ms := AsMistakes(errors.New("other")); ms != nil {
		t.Errorf("AsMistakes(another error) = %v; want nil", ms)
	}
}

func TestMistakeString(t *testing.T) {
	m := Mistake{File: "f", Line: 2, Col: 3, Path: "a.b", Value: "7", What: "is wrong", Instead: "write 8", Warning: true}
	if got, want := m.String(), "f:2:3: warning: a.b: is wrong (found 7): write 8"; got != want {
		t.Errorf("String = %q; want %q", got, want)
	}
	m = Mistake{File: "f", What: "is wrong"}
	if got, want := m.String(), "f: is wrong"; got != want {
		t.Errorf("String = %q; want %q", got, want)
	}
}

func TestShown(t *testing.T) {
	for _, s := range []string{"", "a\nb", strings.Repeat("x", 200), strings.Repeat("\x00", 200), strings.Repeat("\U0010ffff", 50), strings.Repeat("é", 79)} {
		got := shown(s)
		if len(got) > maxShown || !strings.HasPrefix(got, `"`) || strings.ContainsAny(got, "\n\x00") {
			t.Errorf("shown(%q) = %q (%d bytes); want at most %d bytes in quotes on one line", s, got, len(got), maxShown)
		}
	}
}

func TestExample(t *testing.T) {
	f, warnings, err := Load("example.yaml", func(string) (string, bool) { return "hunter2hunter2", true })
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		if !strings.Contains(w.Path, "tokenRef") { // the example's secret file does not exist
			t.Errorf("example.yaml: %v; want no other warning", w)
		}
	}
	// What the example shows as defaults are the defaults.
	want := Default()
	want.Tenants, want.Sources = f.Tenants, f.Sources
	if !reflect.DeepEqual(*f, want) {
		t.Errorf("example.yaml = %+v; want the defaults, %+v", *f, want)
	}
}

func TestAdminAPIBeyondLoopback(t *testing.T) {
	for admin, want := range map[string]int{"127.0.0.1:8788": 0, "0.0.0.0:8788": 1} {
		_, warnings, err := Parse("testdata/valid/gateway.yaml", []byte("admin: "+admin+"\ntenantsDir: tenants-dir\nadminApi: {keys: [{env: GOOD_KEY}]}"), testEnv)
		got := 0
		for _, w := range warnings {
			if w.Path == "adminApi" {
				got++
			}
		}
		if err != nil || got != want {
			t.Errorf("admin %s: %v, warnings %v; want %d about adminApi", admin, err, warnings, want)
		}
	}
}
