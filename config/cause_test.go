package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wholeFile is a good gateway file with every section whose mistake another
// section could be blamed for.
const wholeFile = `
listen: 0.0.0.0:8787
admin: 0.0.0.0:8788
tls: {certFile: server.crt, keyFile: server.key, clientCAFile: server.crt, clientAuth: required}
adminTLS: {certFile: server.crt, keyFile: server.key, clientCAFile: server.crt, names: [{uri: "spiffe://ops"}]}
log: {level: warn, format: json}
limits: {body: 2MiB, budget: 20s, rate: 5, burst: 7, quotaDay: 5}
dedupe: {entries: 5, bytes: 1MiB, ttl: 1m}
failClosed: {reason: Not now., code: com.example.no}
audit: {stdout: true, overflow: block}
discovery: {timeout: 2s, onFailure: skip}
metrics: {tenants: 5}
shared: {redis: {url: "rediss://127.0.0.1:6379/0", username: gateway, passwordEnv: GOOD_KEY, caFile: server.crt, timeout: 20ms, prefix: ahp}, onFailure: refuse}
auth:
  resource: https://gateway.example/hooks
  issuers:
    - {issuer: "https://idp.example", tenants: {"client-1": tokens, "client-2": both}, mappingClaim: client_id, scopes: [ahp], clockSkew: 5s}
    - {issuer: "https://other.example", tenantClaim: tenant, audience: [a], algorithms: [RS256], allowAddresses: [10.0.0.0/8]}
breaker: {enabled: true, window: 30s, buckets: 10, volume: 20, ratio: 0.5, openFor: 5s, probes: 3}
backend: {inFlight: 5, connections: 5, retry: false, allowAddresses: [10.0.0.0/8]}
tenantsDir: tenants
adminApi: {keys: [{env: GOOD_KEY}], trustDocuments: true, store: redis, secretsKeys: [{env: SECRETS_KEY}, {env: OLD_SECRETS_KEY}], secretsDir: secrets}
tenants:
  - {id: tokens, registration: registration.json}
  - {id: both, keys: [{sha256: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}], certificates: [{uri: "spiffe://both"}], registration: registration.json}
  - id: names
    certificates: [{dns: agent.example}]
    rate: 5
    burst: 10
    quota: {day: 5, month: 5}
    weight: 5
    secrets: {envPrefix: ACME_, stored: true}
    backends: {com.example.policy: {shadow: [gate], inFlight: 5, clientCertFile: server.crt, clientKeyFile: server.key, caFile: server.crt, allowAddresses: [10.0.0.0/8]}}
    registration:
      protocolVersion: draft
      hooks:
        - {id: com.example.policy, transport: {type: http, url: "https://policy.example.com"},
           authentication: {type: bearer, tokenRef: token},
           subscriptions: [{id: gate, events: [tool.before], mode: intercept, timeoutMs: 750, failurePolicy: fail-closed, content: {default: omit}}]}
`

// openText is one for an open tenant.
const openText = `
admin: "off"
registration:
  - registration.json
  - protocolVersion: draft
    hooks:
      - {id: com.example.draft, transport: {type: http, url: "https://policy.example.com", headers: {X-Key: {valueRef: key}}},
         subscriptions: [{id: gate, events: [tool.before], mode: intercept, timeoutMs: 750, failurePolicy: fail-closed, content: {default: omit}}]}
backends: {com.example.policy: {shadow: [gate]}, com.example.draft: {shadow: [gate], breaker: {window: 10s, buckets: 10}}}
secrets: {dir: secrets}
`

// folderText is one whose tenants are all elsewhere.
const folderText = `
tls: {certFile: server.crt, keyFile: server.key, clientCAFile: server.crt}
shared: {redis: {url: "redis://127.0.0.1:6379/0"}}
discovery: {onFailure: skip}
auth: {issuers: [{issuer: "https://idp.example", audience: [a], tenants: {x: beta}}]}
tenantsDir: tenants
adminApi: {keys: [{env: GOOD_KEY}], store: redis, secretsKey: {env: SECRETS_KEY}}
`

// One mistake makes one line: whatever one value of a good file is replaced by,
// and whichever key is misspelt or left empty, no rule elsewhere is blamed for it.
func TestOneMistakeOneLine(t *testing.T) {
	cert, key := certificate(t)
	dir := write(t, map[string]string{
		"server.crt": cert, "server.key": key, "registration.json": minimalRegistration,
		"tenants/beta.yaml":   "id: beta\ncertificates: [{dns: beta.example}]\nsecrets: {stored: true}\nregistration: ../registration.json\n",
		"secrets/names/token": "", "secrets/beta/.keep": "", "secrets/key": "",
	})
	path := filepath.Join(dir, "gateway.yaml")
	for _, text := range []string{wholeFile, openText, folderText} {
		mistakesOf(t, path, text)
	}
}

func mistakesOf(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := func(change func(root *node)) (mistakes, warnings []string) {
		t.Helper()
		r := newReader(path, testEnv)
		root := r.parse(r.source(path), []byte(text))
		change(root)
		r.file(spot{node: root})
		doubts, err := r.result()
		for _, m := range AsMistakes(err) {
			mistakes = append(mistakes, m.String())
		}
		for _, m := range doubts {
			warnings = append(warnings, m.String())
		}
		return mistakes, warnings
	}
	mistakes, warnings := lines(func(*node) {})
	if len(mistakes) > 0 {
		t.Fatalf("the file as it is has mistakes: %q", mistakes)
	}
	usual := strings.Join(warnings, "\n")
	check := func(what string, least int, change func(root *node)) {
		t.Helper()
		found, doubts := lines(change)
		for _, w := range doubts {
			if !strings.Contains(usual, w) {
				found = append(found, w)
			}
		}
		if len(found) > 1 || len(found) < least {
			t.Errorf("%s: %d lines; want one:\n  %s", what, len(found), strings.Join(found, "\n  "))
		}
	}
	// at finds the same node in another tree by the same way.
	var walk func(n *node, path string, at func(root *node) *node)
	walk = func(n *node, path string, at func(root *node) *node) {
		replace := func(what string, least int, by node) {
			check(path+" "+what, least, func(root *node) {
				n := at(root)
				by.src, by.line, by.col = n.src, n.line, n.col
				*n = by
			})
		}
		if path != "" {
			wrong := node{kind: kindList}
			if n.kind == kindList {
				wrong = node{kind: kindNumber, text: "7"}
			}
			replace("of another kind", 1, wrong)
			replace("left empty", 1, node{kind: kindNull})
			if n.kind == kindString { // some may be anything
				replace("of another value", 0, node{kind: kindString, text: "?/?"})
			}
		}
		for i, f := range n.fields {
			walk(f.value, joinKey(path, f.key), func(root *node) *node { return at(root).fields[i].value })
			if strings.Contains(path, "registration") || strings.HasSuffix(path, "].tenants") || strings.HasSuffix(path, "backends") {
				continue // of portable documents unknown keys are doubtful only; some keys are names
			}
			check(joinKey(path, f.key)+" misspelt", 1, func(root *node) { at(root).fields[i].key += "x" })
		}
		for i, item := range n.items {
			walk(item, path+"["+itoa(i)+"]", func(root *node) *node { return at(root).items[i] })
		}
	}
	r := newReader(path, testEnv)
	walk(r.parse(r.source(path), []byte(text)), "", func(root *node) *node { return root })
}

// Two mistakes are two lines, however close they are; one of another file, or of
// nothing that decides, hides none.
func TestTwoMistakesTwoLines(t *testing.T) {
	reg := "registration: " + minimalRegistration + "}\n"
	for name, c := range map[string]struct {
		text string
		want []string // the paths of what is reported
	}{
		"a list that is misspelt":              {"tenantz: [{id: a, " + reg + "]\n", []string{"tenantz"}},
		"a store that is none":                 {"adminApi: {keys: [{env: GOOD_KEY}], store: rediss}\n", []string{"adminApi.store"}},
		"nothing at all":                       {"log: {}\n", []string{"registration"}},
		"a member that decides nothing":        {"auth: {issuers: [{issuer: 'https://a.example', audience: [a], tenants: {x: b}, clockSkew: 1}]}\ntenants: [{id: a, " + reg + ", {id: b, " + reg + "]\n", []string{"auth.issuers[0].clockSkew", "tenants[0].keys"}},
		"a misspelt key that decides nothing":  {"adminTLS: {certFile: a, keyFile: b, frobnicate: 1, names: [{dns: a.example}]}\n" + reg[:len(reg)-2] + "\n", []string{"adminTLS.certFile", "adminTLS.keyFile", "adminTLS.names", "adminTLS.frobnicate"}},
		"another tenant's hooks":               {"tenants: [{id: a, keys: [{env: GOOD_KEY}], registration: []}, {id: b, keys: [{sha256: '" + strings.Repeat("a", 64) + "'}], backends: {com.example.x: {}}, " + reg + "]\n", []string{"tenants[0].registration", `tenants[1].backends["com.example.x"]`}},
		"two of what one is needed of":         {"tenants: [{id: a, keys: [{env: GOOD_KEY, file: x, sha25: y}], " + reg + "]\n", []string{"tenants[0].keys[0]", "tenants[0].keys[0].sha25"}},
		"a consequence that is a mistake here": {"tenants: [{id: a, certificates: [{dns: a.example}], " + reg + "]\n", []string{"tenants[0].certificates"}},
		"a grant that is there and another":    {"adminApi: {keys: [{env: GOOD_KEY}]}\ntenants: [{id: a, keys: [{env: ACME_AUTHORIZATION}], secrets: {stored: true}, " + reg + "]\n", []string{"tenants[0].keys[0].env", "tenants[0].secrets.stored"}},
	} {
		_, _, err := Parse("gateway.yaml", []byte(c.text), testEnv)
		got := make(map[string]int)
		for _, m := range AsMistakes(err) {
			got[m.Path]++
		}
		want := make(map[string]int)
		for _, path := range c.want {
			want[path]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: Parse = %v; want mistakes at %q", name, err, c.want)
		}
	}
}

// More warnings and mistakes than are kept may all come of one mistake.
func TestManyOfOneMistake(t *testing.T) {
	var text strings.Builder
	text.WriteString("tenantsDir: tenants\nadminApi: {keys: [{env: GOOD_KEY}], secretsKey: {env: SECRETS_KEY}, secretsDirx: secrets}\ntenants:\n")
	for i := range maxMistakes + 5 {
		id := "t" + itoa(i)
		text.WriteString("  - " + strings.NewReplacer("\n", "", `"acme"`, `"`+id+`"`, strings.Repeat("a", 64), strings.Repeat("0", 60-len(itoa(i)))+itoa(i)+"aaaa").Replace(storedTenant) + "\n")
	}
	dir := write(t, map[string]string{"gateway.yaml": text.String(), "tenants/.keep": ""})
	_, warnings, err := Load(filepath.Join(dir, "gateway.yaml"), testEnv)
	if ms := AsMistakes(err); len(ms) != 1 || ms[0].Path != "adminApi.secretsDirx" || len(warnings) != 0 {
		t.Errorf("Load = %d warnings, %v; want the misspelt key alone", len(warnings), err)
	}
	// So may mistakes, the last of which is the one that all come of.
	many := "zzz: 1\n" + strings.Replace(text.String(), "secretsDirx: secrets", "secretsDir: secrets", 1)
	many = strings.NewReplacer("adminApi: {", "adminApix: {").Replace(many)
	dir = write(t, map[string]string{"gateway.yaml": many, "tenants/.keep": ""})
	_, _, err = Load(filepath.Join(dir, "gateway.yaml"), testEnv)
	ms := AsMistakes(err)
	if len(ms) != 3 || ms[0].Path != "zzz" || ms[1].Path != "adminApix" || !strings.Contains(ms[2].What, "more like these") {
		t.Errorf("Load = %d mistakes, %.300v; want the unknown keys, and that there were more", len(ms), err)
	}
}
