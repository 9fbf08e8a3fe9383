package gateway

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// The admin API is on the private listener, behind what guards that, and not
// on the public one.
func TestAdminAPIIsPrivate(t *testing.T) {
	b := fakebackend.Start(t)
	doc := open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))))
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { plain(w, http.StatusOK, r.URL.EscapedPath()) })
	r := start(t, doc, func(o *Options) { o.AdminAPI = api })
	for path, want := range map[string]string{"tenants": "/admin/v1/tenants\n", "tenants/..%2fx": "/admin/v1/tenants/..%2fx\n"} {
		if status, body := r.get("/admin/v1/" + path); status != 200 || body != want {
			t.Errorf("GET /admin/v1/%s = %d %q; want it served by the API", path, status, body)
		}
	}
	req, err := http.NewRequest(http.MethodGet, r.AdminURL()+"/admin/v1/tenants", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "rebound.example.com"
	if a := r.do(req); a.status != http.StatusMisdirectedRequest {
		t.Errorf("a request for another host = %d; want 421", a.status)
	}
	if a := r.post("/admin/v1/tenants", "{}"); a.status != http.StatusNotFound {
		t.Errorf("the API on the public listener = %d; want 404", a.status)
	}
	without := start(t, doc)
	if status, _ := without.get("/admin/v1/tenants"); status != http.StatusNotFound {
		t.Errorf("without an API = %d; want 404", status)
	}
}

// Changes are recorded beside decisions, or logged where those are not.
func TestRecordChange(t *testing.T) {
	b := fakebackend.Start(t)
	doc := open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))))
	change := &audit.Record{Tenant: "acme", Change: &audit.Change{By: "0a1b2c3d", Action: "put", Status: 200}}
	refused := &audit.Record{Change: &audit.Change{Action: "unknown", Status: 401}}
	r := start(t, doc)
	r.RecordChange(change)
	got, _ := r.audit.await(1)[0]["change"].(map[string]any)
	if got["action"] != "put" || got["by"] != "0a1b2c3d" || got["outcome"] != "done" {
		t.Errorf("audit record = %v; want that of the change", r.audit.records)
	}

	var log bytes.Buffer
	f := parse(t, doc)
	f.Audit.Stdout = false
	g, err := New(t.Context(), f, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	g.RecordChange(change)
	g.RecordChange(refused)
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="admin change" outcome=done status=200 action=put by=0a1b2c3d tenant=acme`) {
		t.Errorf("log = %s; want a line for the change, and none for what came without a key", got)
	}
	if err := g.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A configuration that is only tried says nothing about the one in place.
func TestProposeIsNotAReload(t *testing.T) {
	b := fakebackend.Start(t)
	good := registration("draft", hook("com.example.b", b.URL, intercepts("draft", "fail-closed", 5000)))
	r := start(t, open(good))
	bad := parse(t, open(`{"protocolVersion":"draft","hooks":[{"id":"com.example.b","transport":{"type":"http","url":"http://127.0.0.1:1"}}]}`))
	if _, err := r.Propose(t.Context(), bad, nil); err == nil {
		t.Fatal("Propose of a backend that cannot be asked = no error; want one")
	}
	if r.Generation() != 1 || r.stats.rejected.Load() != 0 || !r.stats.reloadOK.Load() {
		t.Errorf("after a refused proposal: generation %d, rejected %d, good %t; want 1, 0, true", r.Generation(), r.stats.rejected.Load(), r.stats.reloadOK.Load())
	}
	if _, err := r.Reload(t.Context(), bad); err == nil || r.stats.rejected.Load() != 1 || r.stats.reloadOK.Load() {
		t.Errorf("after a refused reload: %v, rejected %d, good %t; want an error, 1, false", err, r.stats.rejected.Load(), r.stats.reloadOK.Load())
	}
	if _, err := r.Propose(t.Context(), parse(t, open(good)), nil); err != nil || r.Generation() != 2 {
		t.Errorf("Propose = %v, generation %d; want none, 2", err, r.Generation())
	}
	// What cannot be put in place is as if it had never been.
	served, reloaded := r.current.Load(), r.stats.reloaded.Load()
	full := errors.New("disk full")
	other := open(registration("draft", hook("com.example.b", b.URL+"/other", intercepts("draft", "fail-closed", 5000))))
	_, err := r.Propose(t.Context(), parse(t, other), func() error {
		if r.Generation() != 3 {
			t.Errorf("generation %d when the change is put in place; want 3", r.Generation())
		}
		return full
	})
	if !errors.Is(err, full) || r.current.Load() != served || r.Generation() != 2 || r.stats.reloaded.Load() != reloaded || r.stats.rejected.Load() != 1 {
		t.Errorf("Propose that cannot be put in place = %v, generation %d, %d reloads; want its error, and the snapshot of before", err, r.Generation(), r.stats.reloaded.Load())
	}
	if got := r.post("/hooks", eventDraft("after")).decision(); got != "pass" {
		t.Errorf("after a change that was taken back = %s; want pass", got)
	}
}
