package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// sides are two gateway files, with everything that diff tells apart.
func sides(t testing.TB) string {
	hook := func(id string, ms int, more string) string {
		return fmt.Sprintf(`{id: com.example.%s, transport: {type: http, url: "http://127.0.0.1:9000/%s"}, subscriptions: [{id: gate, events: [tool.before], mode: intercept, timeoutMs: %d, failurePolicy: fail-closed}%s]}`, id, id, ms, more)
	}
	tenant := func(id, digit, more string, hooks ...string) string {
		return fmt.Sprintf("  - id: %s\n    keys: [{sha256: \"%s\"}]\n    registration: {protocolVersion: \"0.1\", hooks: [%s]}\n%s", id, strings.Repeat(digit, 64), strings.Join(hooks, ", "), more)
	}
	observe := `, {id: log, events: [tool.after], mode: observe}`
	return folder(t,
		"old.yaml", "limits: {budget: 5s}\ntenants:\n"+
			tenant("same", "a", "", hook("one", 750, "")+"\n")+
			tenant("gone", "b", "", hook("one", 750, "")+"\n")+
			tenant("turned", "c", "", hook("one", 750, ""), hook("two", 1000, observe)+"\n")+
			tenant("tuned", "d", "    rate: 5\n", hook("one", 750, "")+"\n"),
		"new.yaml", "limits: {budget: 5s}\ntenants:\n"+
			tenant("same", "a", "", hook("one", 750, "")+"\n")+
			tenant("turned", "c", "", hook("two", 1000, observe), hook("one", 900, "")+"\n")+
			tenant("tuned", "d", "    rate: 6\n    backends: {com.example.one: {shadow: [gate]}}\n", hook("one", 750, "")+"\n")+
			tenant("came", "e", "", hook("one", 750, observe)+"\n"),
		"budget.yaml", "limits: {budget: 500ms}\ntenants:\n"+
			tenant("same", "a", "", hook("one", 750, "")+"\n")+
			tenant("gone", "b", "", hook("one", 750, "")+"\n")+
			tenant("turned", "c", "", hook("one", 750, ""), hook("two", 1000, observe)+"\n")+
			tenant("tuned", "d", "    rate: 5\n", hook("one", 750, "")+"\n"),
		"bad.yaml", "limitz: 1\n",
	)
}

func TestDiffText(t *testing.T) {
	dir := sides(t)
	for _, c := range []struct {
		before, after string
		code          int
		stdout        string
	}{
		{"old.yaml", "old.yaml", 0, "no difference\n"},
		{"old.yaml", "new.yaml", 3, `tenant turned: changed
  0.1 tool.before:
    before: com.example.one/gate (750 ms, fail-closed), then com.example.two/gate (1000 ms, fail-closed): 1750 ms at worst, timeoutMs at least 2000
    after:  com.example.two/gate (1000 ms, fail-closed), then com.example.one/gate (900 ms, fail-closed): 1900 ms at worst, timeoutMs at least 2150
tenant tuned: changed
  rate: 5 → 6
  burst: 10 → 12
  backends.com.example.one.shadow: (none) → [gate]
  0.1 tool.before:
    before: com.example.one/gate (750 ms, fail-closed): 750 ms at worst, timeoutMs at least 1000
    after:  com.example.one/gate (750 ms, fail-closed, in shadow mode): 0 ms at worst, timeoutMs at least 250
tenant came: added
  0.1 tool.before:
    after:  com.example.one/gate (750 ms, fail-closed): 750 ms at worst, timeoutMs at least 1000
  0.1 tool.after:
    after:  nobody decides; observed by com.example.one/log
tenant gone: removed
  0.1 tool.before:
    before: com.example.one/gate (750 ms, fail-closed): 750 ms at worst, timeoutMs at least 1000
settings: 0 changed; tenants: 1 added, 1 removed, 2 changed
`},
		// A budget reaches every chain that it caps, whatever the tenant says.
		{"old.yaml", "budget.yaml", 3, "limits.budget: \"5s\" → \"500ms\"\ntenant same: changed\n  0.1 tool.before:\n" +
			"    before: com.example.one/gate (750 ms, fail-closed): 750 ms at worst, timeoutMs at least 1000\n" +
			"    after:  com.example.one/gate (750 ms, fail-closed): 500 ms at worst, capped by limits.budget, timeoutMs at least 750\n"},
	} {
		r := call(t, "", "diff", "--config", filepath.Join(dir, c.after), "--against", filepath.Join(dir, c.before))
		if r.code != c.code || r.stdout != c.stdout && !(c.after == "budget.yaml" && strings.HasPrefix(r.stdout, c.stdout)) {
			t.Errorf("diff of %s against %s = %d\n%s%swant %d\n%s", c.after, c.before, r.code, r.stdout, r.stderr, c.code, c.stdout)
		}
	}
}

func TestDiffJSON(t *testing.T) {
	dir := sides(t)
	r := call(t, "", "diff", "--config", filepath.Join(dir, "new.yaml"), "--against", filepath.Join(dir, "old.yaml"), "--format", "json")
	var d difference
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil || r.code != 3 {
		t.Fatalf("diff --format json = %d, %s, %v; want 3 and a document", r.code, r.stdout, err)
	}
	got := make(map[string]string)
	for _, tenant := range d.Tenants {
		got[tenant.Tenant] = fmt.Sprintf("%s %d %d", tenant.Change, len(tenant.Settings), len(tenant.Chains))
	}
	want := map[string]string{"turned": "changed 0 1", "tuned": "changed 3 1", "came": "added 0 2", "gone": "removed 0 1"}
	if fmt.Sprint(got) != fmt.Sprint(want) || d.Equal || len(d.Settings) != 0 {
		t.Errorf("diff --format json = %s; want tenants %v", r.stdout, want)
	}
	r = call(t, "", "diff", "--config", filepath.Join(dir, "new.yaml"), "--against", filepath.Join(dir, "new.yaml"), "--format", "json")
	if want := `{"equal":true,"settings":[],"tenants":[]}`; r.code != 0 || strings.Join(strings.Fields(r.stdout), "") != want {
		t.Errorf("diff of a file and itself = %d, %s; want 0, %s", r.code, r.stdout, want)
	}
}

// What a gateway serves is compared with what it would serve, secrets,
// redacted values and files of its own included.
func TestDiffAgainstRunning(t *testing.T) {
	pass, deny := fakebackend.Start(t), fakebackend.Start(t)
	dir := folder(t,
		"gateway.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\n",
		"tenants/acme.yaml", tenantFile("acme", pass.URL+"?token="+canaryHeader),
		"tenants/globex.yaml", tenantFile("globex", pass.URL))
	path := filepath.Join(dir, "gateway.yaml")
	p := launch(t, "serve", "--config", path)
	_, admin := p.urls()
	if r := call(t, "", "diff", "--config", path, "--against-running", admin); r.code != 0 || r.stdout != "no difference\n" {
		t.Errorf("diff against the gateway that serves the file = %d, %s%s; want 0, no difference", r.code, r.stdout, r.stderr)
	}
	other := folder(t,
		"gateway.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nlimits: {body: 2MiB}\ntenantsDir: tenants\n",
		"tenants/acme.yaml", tenantFile("acme", pass.URL+"?token="+canaryHeader),
		"tenants/globex.yaml", tenantFile("globex", deny.URL))
	r := call(t, "", "diff", "--config", filepath.Join(other, "gateway.yaml"), "--against-running", admin)
	want := fmt.Sprintf(`limits.body: 1048576 → 2097152
tenant globex: changed
  registration["0.1"].hooks[com.example.policy].transport.url: %q → %q
settings: 1 changed; tenants: 0 added, 0 removed, 1 changed
`, pass.URL, deny.URL)
	if r.code != 3 || r.stdout != want {
		t.Errorf("diff against a gateway that serves another file = %d\n%s%swant 3\n%s", r.code, r.stdout, r.stderr, want)
	}
	p.quit()
}

// A folder of tenants that is another one, or is none any more, is a difference
// also where its tenants are the same.
func TestDiffOfFolders(t *testing.T) {
	pass := fakebackend.Start(t)
	acme := tenantFile("acme", pass.URL)
	dir := folder(t, "one.yaml", "tenantsDir: one\n", "two.yaml", "tenantsDir: two\n", "none.yaml", "tenants:\n- "+strings.ReplaceAll(strings.TrimSpace(acme), "\n", "\n  ")+"\n",
		"one/acme.yaml", acme, "two/acme.yaml", acme, "empty.yaml", "tenantsDir: three\n", "three/readme", "")
	diff := func(before, after string) result {
		t.Helper()
		return call(t, "", "diff", "--config", filepath.Join(dir, after), "--against", filepath.Join(dir, before))
	}
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for _, c := range []struct{ before, after, line string }{
		{"one.yaml", "two.yaml", fmt.Sprintf("tenantsDir: %q → %q\n", one, two)},
		{"one.yaml", "none.yaml", fmt.Sprintf("tenantsDir: %q → (none)\n", one)},
		{"none.yaml", "one.yaml", fmt.Sprintf("tenantsDir: (none) → %q\n", one)},
	} {
		want := c.line + "settings: 1 changed; tenants: 0 added, 0 removed, 0 changed\n"
		if r := diff(c.before, c.after); r.code != 3 || r.stdout != want {
			t.Errorf("diff of %s against %s = %d, %s%s; want 3, %s", c.after, c.before, r.code, r.stdout, r.stderr, want)
		}
	}
	if r := diff("empty.yaml", "one.yaml"); r.code != 3 || strings.Count(r.stdout, "tenantsDir") != 1 || !strings.Contains(r.stdout, "tenant acme: added\n") {
		t.Errorf("diff against an empty folder = %d, %s; want the folder, once, and the tenant", r.code, r.stdout)
	}
	if r := diff("one.yaml", "one.yaml"); r.code != 0 || r.stdout != "no difference\n" {
		t.Errorf("diff of a file and itself = %d, %s; want 0, no difference", r.code, r.stdout)
	}
}

func TestDiffRefuses(t *testing.T) {
	dir := sides(t)
	old, bad := filepath.Join(dir, "old.yaml"), filepath.Join(dir, "bad.yaml")
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hunter: 2\n") }))
	defer garbage.Close()
	moved := httptest.NewServer(http.RedirectHandler(garbage.URL, http.StatusFound))
	defer moved.Close()
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{nil, 2, "--config is needed"},
		{[]string{"--config", old}, 2, "exactly one of --against and --against-running"},
		{[]string{"--config", old, "--against", old, "--against-running", "http://127.0.0.1:1"}, 2, "exactly one of"},
		{[]string{"--config", old, "--against-running", "127.0.0.1:8788"}, 2, "no http URL"},
		{[]string{"--config", old, "--against", old, "--format", "xml"}, 2, "--format"},
		{[]string{old}, 2, "takes no arguments"},
		{[]string{"--config", bad, "--against", old}, 1, "bad.yaml:1:1: limitz: unknown key"},
		{[]string{"--config", old, "--against", bad}, 1, "bad.yaml:1:1: limitz: unknown key"},
		{[]string{"--config", old, "--against-running", elsewhere.URL}, 1, "answers 404"},
		{[]string{"--config", old, "--against-running", moved.URL}, 1, "answers 302"},
		{[]string{"--config", old, "--against-running", garbage.URL}, 1, "hunter: unknown key"},
		{[]string{"--config", old, "--against-running", "http://127.0.0.1:1"}, 1, "does not answer"},
	} {
		if r := call(t, "", append([]string{"diff"}, c.args...)...); r.code != c.code || !strings.Contains(r.stderr, c.stderr) || r.stdout != "" {
			t.Errorf("diff %q = %d, stdout %q, stderr %q; want %d, stderr with %q", c.args, r.code, r.stdout, r.stderr, c.code, c.stderr)
		}
	}
}
