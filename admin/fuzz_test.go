package admin_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// FuzzAdmin: whatever is sent, the API neither panics nor fails for a fault of
// its own, touches no file outside its folder, changes nothing unless it says
// so, and leaves a configuration that loads.
func FuzzAdmin(f *testing.F) {
	good := document("acme", "key-of-acme-012345")
	for _, s := range [][5]string{
		{"GET", "tenants?limit=1&cursor=acme", "", "", ""},
		{"GET", "tenants/acme", "", "", ""},
		{"POST", "tenants", "application/json", "", `{"id": "globex", "registration": ` + registration + `}`},
		{"POST", "tenants", "application/yaml", "", "id: globex\nregistration: hooks.json"},
		{"PUT", "tenants/acme", "application/json", "*", good},
		{"DELETE", "tenants/acme", "", `"0", *`, ""},
		{"POST", "tenants/acme/keys", "application/json", "", "{}"},
		{"POST", "tenants/acme/keys:rotate", "application/json", "", ""},
		{"DELETE", "tenants/acme/keys/01234567", "", "", ""},
		{"PUT", "tenants/acme/secrets/token", "text/plain", "", "hunter2"},
		{"PUT", "tenants/acme/secrets/..", "application/octet-stream", "", "a\x00b"},
		{"DELETE", "tenants/acme/secrets/old", "", "", ""},
		{"POST", "tenants/acme/secrets:reseal", "application/json", "", "{}"},
		{"PUT", "tenants/..%2f..%2fgateway", "application/yaml", "*", good},
		{"POST", "tenants", "application/yaml", "", "id: ../gateway\nkeys: &a [*a]\nregistration: {<<: *a}"},
	} {
		f.Add(s[0], s[1], s[2], s[3], []byte(s[4]))
	}
	// It is made once: to put a secret in place waits for the disk.
	once := newRig(f, "gateway.yaml", storingFile)
	if _, err := once.secrets(once.file).Put("acme", "old", "value", time.Now()); err != nil {
		f.Fatal(err)
	}
	secret := once.read("tenants/.secrets/acme/old")
	f.Fuzz(func(t *testing.T, method, target, mediaType, match string, body []byte) {
		at, err := url.Parse("/admin/v1/" + target)
		if err != nil || strings.ContainsAny(method, " \r\n") {
			return
		}
		r := newRig(t, "tenants/acme.yaml", good, "hooks.json", registration,
			"gateway.yaml", strings.Replace(gatewayFile, "adminApi: {", "adminApi: {secretsKey: {env: SECRETS_KEY}, ", 1))
		if err := os.MkdirAll(r.tenants(".secrets/acme"), 0o700); err != nil {
			t.Fatal(err)
		}
		r.write("tenants/.secrets/acme/old", secret)
		gateway, before := r.read("gateway.yaml"), r.listing()
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
		req.Method, req.URL = method, at
		req.Header = http.Header{"Authorization": {"Bearer " + adminKey}, "Content-Type": {mediaType}}
		if match != "" {
			req.Header["If-Match"] = []string{match}
		}
		w := httpServe(r.api, req)
		if w.Code >= 500 || w.Code < 200 {
			t.Errorf("%s %s = %d %s; want no fault of the gateway's own", method, target, w.Code, w.Body)
		}
		after := r.listing()
		if (w.Code >= 300 || method == http.MethodGet) && after != before {
			t.Errorf("%s %s = %d, and changed the folder from\n%s\nto\n%s", method, target, w.Code, before, after)
		}
		entries, err := os.ReadDir(r.dir)
		if err != nil || len(entries) != 3 || r.read("gateway.yaml") != gateway || r.read("hooks.json") != registration {
			t.Errorf("%s %s changed what is outside the folder: %v, %v", method, target, entries, err)
		}
		if _, _, err := config.Load(r.dir+"/gateway.yaml", environ); err != nil {
			t.Errorf("%s %s left a configuration that is refused: %v\n%s", method, target, err, after)
		}
	})
}
