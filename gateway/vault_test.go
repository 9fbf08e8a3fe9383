package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
	"github.com/ahp-gateway/ahp-gateway/sealed"
)

// A stored secret goes to its tenant's backend from the next reload on. One that
// cannot be opened fails the calls, says why in the log, and is never left out.
func TestStoredSecrets(t *testing.T) {
	b := fakebackend.Start(t)
	e := newEstate(t)
	settings := func(keys string) string {
		return "audit: {stdout: true}\nadminApi: {keys: [{file: admin.key}], secretsKeys: " + keys + "}"
	}
	e.put("admin.key", "admin-key-0123456789abcdef")
	e.put("new.key", strings.Repeat("a7", 32))
	e.put("old.key", strings.Repeat("5e", 32))
	e.gateway(settings("[{file: old.key}]"))
	document := func(member string) string {
		h := hook("com.example.policy", b.URL, intercepts("0.1", "fail-closed", 5000))
		return registration("0.1", strings.Replace(h, `"subscriptions"`, member+`,"subscriptions"`, 1))
	}
	e.tenantOf("acme", document(`"authentication":{"type":"bearer","tokenRef":"token"}`), "secrets: {stored: true}")
	e.tenantOf("globex", strings.Replace(document(""), `"transport":{"type":"http","url":"`+b.URL+`"},`,
		`"transport":{"type":"http","url":"`+b.URL+`","headers":{"Authorization":{"valueRef":"token"}}}`, 1), "secrets: {stored: true}")

	secrets := func() *sealed.Folder {
		t.Helper()
		f, err := e.load().AdminAPI.Secrets(environ)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	set := func(tenant, value string) {
		t.Helper()
		if _, err := secrets().Put(tenant, "token", value, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	path := func(tenant string) string { return filepath.Join(e.dir, "tenants", ".secrets", tenant, "token") }
	read := func(tenant string) []byte {
		t.Helper()
		data, err := os.ReadFile(path(tenant))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	write := func(tenant string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path(tenant), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var log bytes.Buffer
	logged := func() string {
		mu.Lock()
		defer mu.Unlock()
		text := log.String()
		log.Reset()
		return text
	}
	r := startFile(t, e.load(), func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
	})
	const unavailable = "deny: Required policy backend unavailable. (io.ahp-gateway.fail_closed)"
	good := make(map[string][]byte)
	events := 0
	for _, step := range []struct {
		what         string
		change       func()
		acme, globex string // what the backend is sent, or why it is sent nothing
	}{
		{"nothing is stored", func() {}, "!not stored", "!not stored"},
		{"one is stored", func() { set("acme", "acme-value") }, "Bearer acme-value", "!not stored"},
		{"the other too", func() { set("globex", "globex-value") }, "Bearer acme-value", "globex-value"},
		{"one is replaced", func() { set("acme", "second-value") }, "Bearer second-value", "globex-value"},
		{"a byte is flipped", func() {
			good["acme"] = read("acme")
			flipped := bytes.Clone(good["acme"])
			flipped[len(flipped)-1] ^= 1
			write("acme", flipped)
		}, "!was changed", "globex-value"},
		{"another tenant's file is in its place", func() { write("acme", read("globex")) }, "!was changed", "globex-value"},
		{"the file is back", func() { write("acme", good["acme"]) }, "Bearer second-value", "globex-value"},
		{"a new key comes first", func() { e.gateway(settings("[{file: new.key}, {file: old.key}]")) }, "Bearer second-value", "globex-value"},
		{"one is sealed by it", func() {
			if n, err := secrets().Reseal("acme"); n != 1 || err != nil {
				t.Errorf("Reseal = %d, %v; want 1", n, err)
			}
		}, "Bearer second-value", "globex-value"},
		{"the old key goes", func() { e.gateway(settings("[{file: new.key}]")) }, "Bearer second-value", "!a key that is not given"},
		{"the content of the key's file changes", func() { e.put("new.key", strings.Repeat("5e", 32)) }, "!a key that is not given", "globex-value"},
		{"the secrets are removed", func() {
			if err := secrets().Clear("globex"); err != nil {
				t.Fatal(err)
			}
		}, "!a key that is not given", "!not stored"},
	} {
		logged()
		step.change()
		if step.what != "nothing is stored" {
			e.reload(r)
			for _, value := range []string{"acme-value", "second-value", "globex-value"} {
				if text := logged(); strings.Contains(text, value) {
					t.Errorf("%s: the log shows a secret: %s", step.what, text)
				}
			}
		}
		for tenant, want := range map[string]string{"acme": step.acme, "globex": step.globex} {
			events++
			calls := b.Count()
			got := r.ask(tenant, fmt.Sprint("e", events))
			record := r.audit.await(events)[events-1]
			if why, fails := strings.CutPrefix(want, "!"); fails {
				text := fmt.Sprint(record)
				if got != unavailable || b.Count() != calls || !strings.Contains(text, "credential") || !strings.Contains(text, why) {
					t.Errorf("%s: answer of %s = %s, calls %d more, record %v; want fail-closed without a call, for %q", step.what, tenant, got, b.Count()-calls, record, why)
				}
				continue
			}
			requests := b.Requests()
			if sent := requests[len(requests)-1].Header.Get("Authorization"); got != "pass" || sent != want {
				t.Errorf("%s: answer of %s = %s, sent %q; want pass with %q", step.what, tenant, got, sent, want)
			}
		}
	}
	if _, body := r.get("/admin/config"); strings.Contains(body, strings.Repeat("5e", 16)) {
		t.Error("/admin/config shows a key")
	}
}

// A file that does not open is logged with the tenant, the backend and the name.
func TestStoredSecretThatDoesNotOpenIsLogged(t *testing.T) {
	b := fakebackend.Start(t)
	e := newEstate(t, "adminApi: {keys: [{file: admin.key}], secretsKey: {file: key}}")
	e.put("admin.key", "admin-key-0123456789abcdef")
	e.put("key", strings.Repeat("a7", 32))
	h := hook("com.example.policy", b.URL, intercepts("0.1", "fail-closed", 5000))
	e.tenantOf("acme", registration("0.1", strings.Replace(h, `"subscriptions"`, `"authentication":{"type":"bearer","tokenRef":"token"},"subscriptions"`, 1)),
		"secrets: {stored: true}")
	e.put("tenants/.secrets/acme/token", "plain-text-that-somebody-put-there")
	var mu sync.Mutex
	var log bytes.Buffer
	startFile(t, e.load(), func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
	})
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"level=ERROR", "tenant=acme", "backend=com.example.policy", "secret token cannot be opened"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log = %s; want %s in it", log.String(), want)
		}
	}
	if strings.Contains(log.String(), "plain-text") {
		t.Errorf("log = %s; want nothing of the file", log.String())
	}
}
