//go:build interop

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// What this gateway refuses in a draft registration that the SDK's schema
// allows, by what its mistakes say. Everything else is refused by both, and
// nothing that it accepts is refused by the schema.
var stricterRules = []string{
	// What this gateway does not do.
	"this gateway speaks HTTP only",
	"is not supported yet", // content upload
	"needs a person who consents",
	"is missing", // subscriptions, which a harness would discover
	"is plain http to a host that is not loopback",
	"is out of range", // a timeoutMs beyond ten minutes
	// What would be ambiguous, never called, or a leak.
	"is the id of ",
	"is not a reverse-DNS name of at most 253 bytes",
	`is empty, "*", longer than 128 bytes, or holds control characters`,
	"must be a string", // a subscription's id, of which the schema knows nothing
	"is no family of events",
	"has no event for mode intercept, so it would never be called",
	"is not the name of a category",
	"holds user information",
	"has a fragment (#)",
	"has no usable host and port",
	"holds characters that a URL may not hold",
	"a credential may not stand in the document",
	"names the host, which is that of the url",
	"frames the message, which is the gateway's to do",
	"holds a line break, a NUL or a character that is not Latin-1",
	"obtains a token in vain",
	// What no issuer could be asked for.
	"is not an absolute URI without a fragment",
	"is longer than 1024 bytes, or holds characters that are not printable ASCII",
	"is not one scope of at most 256 bytes",
	"has a query, which an issuer identifier has not",
}

// documents makes draft registrations at random: always such as the SDK's schema
// allows, and mostly such as this gateway does.
type documents struct {
	*rand.Rand
	n int
}

func (r *documents) some(p float64) bool { return r.Float64() < p }

func pick[T any](r *documents, from ...T) T { return from[r.IntN(len(from))] }

func (r *documents) document() map[string]any {
	var hooks []any
	for range 1 + r.IntN(2) {
		hooks = append(hooks, r.hook())
	}
	return map[string]any{"protocolVersion": "draft", "hooks": hooks}
}

func (r *documents) hook() map[string]any {
	r.n++
	transport := map[string]any{"type": "http", "url": pick(r, "https://policy.example/ahp", "http://127.0.0.1:8080/", "http://[::1]:1/x?y=z", "https://a.example:8443")}
	if r.some(.05) {
		transport["url"] = pick(r, "https://u:p@x/", "https://x:99999/", "https://x:port/", "https://x/#f", "http://x/", "https://x/%zz", "https://é.example/", "https://", "https://x/[1]", "https://[::1")
	}
	if r.some(.3) {
		transport["headers"] = map[string]any{pick(r, "X-Team", "x_1", "Accept-Language"): pick[any](r, "a", "", map[string]any{"valueEnv": "NAME_1"}, map[string]any{"valueRef": "file"})}
	}
	if r.some(.01) {
		r.n-- // the same id twice in a document, or in two
	}
	h := map[string]any{"id": fmt.Sprintf("com.example.p%d", r.n), "transport": transport}
	if r.some(.005) {
		h["id"] = "com.example." + strings.Repeat("x", 250)
	}
	if r.some(.03) {
		h["transport"] = map[string]any{"type": "stdio", "command": "policy", "lifecycle": pick(r, "persistent", "per_event"), "args": []any{"-v"}, "env": map[string]any{"A": "b"}}
	} else if r.some(.3) {
		h["authentication"] = pick(r,
			map[string]any{"type": "bearer", "tokenEnv": "TOKEN"},
			map[string]any{"type": "bearer", "tokenRef": "token"},
		)
		if r.some(.1) {
			h["authentication"] = map[string]any{
				"type": "oauth", "resource": pick(r, "https://policy.example", "urn:x:y", "r"), "issuer": pick(r, "https://idp.example", "https://idp.example/t?x"), "clientId": pick(r, "c", "é"),
				"flow": pick(r, "client_credentials", "client_credentials", "authorization_code_pkce"), "scopes": pick(r, []any{"a", "b"}, []any{"a b"}),
			}
			if r.some(.8) {
				h["authentication"].(map[string]any)["clientSecretRef"] = "secret"
			}
		}
	}
	if r.some(.97) {
		var subs []any
		for range 1 + r.IntN(2) {
			subs = append(subs, r.subscription())
		}
		h["subscriptions"] = subs
	}
	return h
}

func (r *documents) subscription() map[string]any {
	s := map[string]any{
		"mode":    "observe",
		"events":  pick(r, []any{"tool.*", "session.end"}, []any{"*"}, []any{"file.changed", "hook.failure", "tool.before"}),
		"content": pick(r, map[string]any{"default": "metadata"}, map[string]any{"default": "omit", "text": "body", "skills": "metadata"}),
	}
	if r.some(.6) {
		s["mode"], s["timeoutMs"], s["failurePolicy"] = "intercept", pick(r, 750, 1, 600000), pick(r, "fail-open", "fail-closed")
		s["events"] = pick(r, []any{"tool.before"}, []any{"*"}, []any{"turn.start", "workspace.change.before", "context.*"})
	}
	if r.some(.1) {
		s["id"] = pick[any](r, "a", "b", "*", 1)
	}
	if r.some(.3) {
		s["includeNative"] = r.some(.5)
	}
	if r.some(.3) {
		s["filters"] = map[string]any{"toolKinds": []any{"shell", "x"}, "paths": []any{"/root/*"}}
	}
	if r.some(.3) {
		s["scope"] = pick(r, "managed", "project", "user")
		s["disableable"] = false
	}
	if r.some(.03) {
		s["upload"] = map[string]any{"endpoint": pick(r, "https://up.example/x", "http://localhost:1/"), "timeoutMs": 5, "maxBytes": 0}
	}
	return s
}

var registrationValues = []string{
	`null`, `true`, `false`, `0`, `1`, `-1`, `1.0`, `1.5`, `1e3`, `100000000`, `""`, `"x"`, `"x y"`, `[]`, `{}`, `[""]`, `["a","a"]`, `["a",1]`, `[{}]`, `{"a":"b"}`, `{"a":1}`,
	`"draft"`, `"0.1"`, `"com.example.x"`, `"com"`, `"com..x"`, `"com.example.x\n"`, `"http"`, `"stdio"`, `"https://x"`, `"http://x"`, `"HTTPS://x"`, `"https://"`, `"https://x/a b"`, `"https://x/[1]"`,
	`"https://x:port/"`, `"https://x/%zz"`, `"https://u:p@x/"`, `"https://x/#f"`, `"https://é.example/"`, `"https://x\\y"`, `"https://[::1"`, `"https://x:99999/"`, `"http://127.0.0.1.example/"`,
	`"bearer"`, `"oauth"`, `"basic"`, `"TOKEN"`, `"1TOKEN"`, `"TO KEN"`, `"tool.before"`, `"session.end"`, `"tool.*"`, `"tool.permission.*"`, `"*"`, `"**"`, `"Tool.*"`, `"nothing.*"`, `"file.*"`, `"tool.error"`,
	`["tool.before","tool.before"]`, `["session.end"]`, `["tool.*"]`, `["nothing.*"]`, `["user.*","hook.*"]`, `["file.*"]`, `["tool.permission.*"]`, `["a"]`, `[]`, `"intercept"`, `"observe"`, `"both"`,
	`"fail-open"`, `"fail-closed"`, `"fail"`, `"managed"`, `"project"`, `"root"`, `"body"`, `"metadata"`, `"omit"`, `"all"`, `{"default":"body"}`, `{"default":"all"}`, `{"text":"body"}`, `{"default":"body","":"omit"}`,
	`{"valueEnv":"A"}`, `{"valueRef":"r"}`, `{"valueEnv":"A","valueRef":"r"}`, `{"valueEnv":""}`, `{"valueEnv":"A B"}`, `{"value":"x"}`, `"a\r\nb"`, `"a\u0000b"`, `"é"`, `"😀"`, `"a\tb"`,
	`{"type":"bearer","tokenEnv":"A","tokenRef":"r"}`, `{"type":"bearer"}`, `{"type":"bearer","tokenRef":""}`, `{"type":"oauth"}`, `{"type":"http"}`, `{"type":"http","url":"https://x"}`, `{"type":"stdio","command":"c","lifecycle":"persistent"}`,
	`{"toolKinds":["a","a"]}`, `{"paths":[""]}`, `{"toolKinds":"a"}`,
}

var registrationNames = []string{
	"", "x", "protocolVersion", "hooks", "id", "transport", "authentication", "subscriptions", "contentReceiver", "type", "url", "headers", "command", "lifecycle", "env", "args", "cwd",
	"tokenEnv", "tokenRef", "token", "issuer", "events", "mode", "timeoutMs", "failurePolicy", "includeNative", "content", "upload", "filters", "scope", "disableable", "toolKinds", "paths",
	"default", "text", "reasoning", "X-Team", "X Team", "x\n", "Authorization", "Content-Length", "Host", "valueEnv", "valueRef", "value",
}

// change makes one random change in a document.
func (r *documents) change(v any) {
	var holders []any
	var collect func(any)
	collect = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			holders = append(holders, v)
			for _, k := range slices.Sorted(maps.Keys(v)) {
				collect(v[k])
			}
		case []any:
			if len(v) > 0 {
				holders = append(holders, v)
			}
			for _, e := range v {
				collect(e)
			}
		}
	}
	collect(v)
	var value any
	if err := json.Unmarshal([]byte(pick(r, registrationValues...)), &value); err != nil {
		panic(err)
	}
	switch h := pick(r, holders...).(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(h))
		switch {
		case len(keys) == 0 || r.some(.35):
			h[pick(r, registrationNames...)] = value
		case r.some(.3):
			delete(h, pick(r, keys...))
		default:
			h[pick(r, keys...)] = value
		}
	case []any:
		h[r.IntN(len(h))] = value
	}
}

// TestSDKRegistrations compares ParseRegistration with the SDK's schema.
func TestSDKRegistrations(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("AHP_SDK_SCHEMAS"))
	if err != nil {
		t.Fatalf("AHP_SDK_SCHEMAS names no file: %v", err)
	}
	docs, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.RegisterFormat(&jsonschema.Format{Name: "uri", Validate: func(v any) error {
		if s, ok := v.(string); ok && !ahp.IsURI([]byte(s)) {
			return errors.New("is no absolute URI")
		}
		return nil
	}})
	c.AssertFormat()
	for _, doc := range docs.([]any) {
		if err := c.AddResource(doc.(map[string]any)["$id"].(string), doc); err != nil {
			t.Fatal(err)
		}
	}
	s := c.MustCompile("https://agenthooksprotocol.org/schemas/draft/registration.schema.json")

	number := func(name string) int {
		n, err := strconv.Atoi(os.Getenv(name))
		return max(1, map[bool]int{true: n}[err == nil])
	}
	r := &documents{Rand: rand.New(rand.NewPCG(uint64(number("AHP_SDK_SEED")), 8))}
	var both, neither, stricter int
	reasons := map[string]int{}
	for i := range 10_000 * number("AHP_SDK_SCALE") {
		doc := r.document()
		if i%4 > 0 {
			for range 1 + r.IntN(3) {
				r.change(doc)
			}
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		invalid := s.Validate(tree)
		_, _, refused := ParseRegistration("hooks.json", text)
		switch {
		case refused == nil && invalid == nil:
			both++
		case refused == nil && doc["protocolVersion"] == "0.1":
			// A document of the other snapshot is none of the schema's.
			neither++
		case refused == nil:
			t.Errorf("ParseRegistration(%s) = nil; the SDK's schema refuses it: %v", text, invalid)
		case invalid != nil:
			neither++
		default:
			stricter++
			var ms Mistakes
			if !errors.As(refused, &ms) {
				t.Fatalf("ParseRegistration(%s) = %v; want Mistakes", text, refused)
			}
			for _, m := range ms {
				rule := slices.IndexFunc(stricterRules, func(rule string) bool { return strings.Contains(m.What, rule) })
				if rule < 0 {
					t.Errorf("ParseRegistration(%s) says %q; the SDK's schema allows it and no stricter rule is written down", text, m)
					continue
				}
				reasons[stricterRules[rule]]++
			}
		}
	}
	t.Logf("registrations: %d cases: %d accepted, %d refused, %d refused by a stricter rule: %v", both+neither+stricter, both, neither, stricter, reasons)
	if both < 1000 || neither < 1000 {
		t.Errorf("%d accepted and %d refused by both; want more", both, neither)
	}
}
