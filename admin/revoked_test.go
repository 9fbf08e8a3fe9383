package admin_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/audit"
)

// between is a body that is read after the caller was authenticated: then the
// function is called, once.
type between struct {
	*strings.Reader
	call func()
}

func (b *between) Read(p []byte) (int, error) {
	if b.call != nil {
		b.call()
		b.call = nil
	}
	return b.Reader.Read(p)
}

func (*between) Close() error { return nil }

// What an operator takes back while a request waits for its turn is taken back.
func TestTakenBackWhileARequestWaits(t *testing.T) {
	trusting := strings.Replace(gatewayFile, "adminApi: {", "adminApi: {trustDocuments: true, ", 1)
	references := `{"id": "globex", "keys": [{"env": "ACME_KEY"}], "registration": ` + registration + `}`
	for _, c := range []struct {
		name, before, after string
		method, path, body  string
		want                int
	}{
		{"the key", gatewayFile, strings.Replace(gatewayFile, "{env: ADMIN_KEY}, ", "", 1), "POST", "tenants/acme/keys:rotate", "{}", http.StatusUnauthorized},
		{"the key, for a new tenant", gatewayFile, strings.Replace(gatewayFile, "{env: ADMIN_KEY}, ", "", 1), "POST", "tenants", document("globex", "key-of-globex-01234"), http.StatusUnauthorized},
		{"another key", gatewayFile, strings.Replace(gatewayFile, ", {env: OTHER_ADMIN_KEY}", "", 1), "POST", "tenants/acme/keys:rotate", "{}", http.StatusOK},
		{"the trust", trusting, gatewayFile, "POST", "tenants", references, http.StatusUnauthorized},
		{"no trust", trusting, trusting, "POST", "tenants", references, http.StatusCreated},
	} {
		r := newRig(t, "tenants/acme.yaml", document("acme", "key-of-acme-012345"))
		r.write("gateway.yaml", c.before)
		r.use()
		r.do("GET", "tenants", "") // while the key is good for the description
		before := r.listing()
		req := request(c.method, "/admin/v1/"+c.path, c.body)
		taken := false
		req.Body = &between{Reader: strings.NewReader(c.body), call: func() {
			taken = true
			r.write("gateway.yaml", c.after)
			r.use()
		}}
		a := r.serve(req)
		if a.status != c.want || !taken {
			t.Errorf("%s taken back (%t): %s %s = %d %s; want %d", c.name, taken, c.method, c.path, a.status, a.body, c.want)
		}
		if changed := r.listing() != before; changed != (c.want < 300) {
			t.Errorf("%s taken back: the folder has changed %t; it holds\n%s", c.name, changed, r.listing())
		}
		if last := r.records[len(r.records)-1].Change; last.Status != c.want || (c.want >= 300 && last.After != "") {
			t.Errorf("%s taken back: the record is %+v; want status %d", c.name, *last, c.want)
		}
		if c.want == http.StatusUnauthorized && !slices.Equal(a.header["Www-Authenticate"], []string{"Bearer"}) {
			t.Errorf("%s taken back: WWW-Authenticate is %q", c.name, a.header["Www-Authenticate"])
		}
	}
}

// A request that the listener would let in no more by the time of its turn, since
// its certificate has ended or the root of it is gone, changes nothing.
func TestNotAdmittedAnyMore(t *testing.T) {
	r := newRig(t, "tenants/acme.yaml", document("acme", "key-of-acme-012345"))
	var admitted atomic.Bool
	admitted.Store(true)
	r.api = admin.New(admin.Options{Apply: r.apply, Record: func(*audit.Record) {}, Admits: func(*http.Request) bool { return admitted.Load() }})
	r.use()
	if a := r.do("POST", "tenants/acme/keys:rotate", "{}"); a.status != http.StatusOK {
		t.Fatalf("rotation by who is admitted = %d %s; want 200", a.status, a.body)
	}
	before := r.listing()
	req := request("POST", "/admin/v1/tenants/acme/keys:rotate", "{}")
	req.Body = &between{Reader: strings.NewReader("{}"), call: func() { admitted.Store(false) }}
	if a := r.serve(req); a.status != http.StatusUnauthorized || admitted.Load() {
		t.Errorf("rotation by who is not admitted any more = %d %s; want 401", a.status, a.body)
	}
	if r.listing() != before {
		t.Errorf("the folder has changed to\n%s", r.listing())
	}
}
