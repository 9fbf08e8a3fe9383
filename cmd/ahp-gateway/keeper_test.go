package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// A gateway whose file has got a mistake starts with what it served before, if
// it was told to, says so wherever somebody looks, and takes the file over once
// it is corrected.
func TestServeLastGood(t *testing.T) {
	pass, deny := pair(t)
	dir := folder(t,
		"gateway.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nregistration: hooks.json\nsecrets: {dir: secrets}\n",
		"secrets/token", canaryToken+"\n",
		"hooks.json", onePolicy(deny.URL+"?token="+canaryHeader, `,"authentication":{"type":"bearer","tokenRef":"token"}`))
	path, state, hooks := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "state/deep"), filepath.Join(dir, "hooks.json")
	kept := filepath.Join(state, "last-good.yaml")
	args := []string{"serve", "--config", path, "--state-dir", state}
	fallback := append(args[:len(args):len(args)], "--fallback", "last-good")

	if r := call(t, "", append(fallback, "--config", filepath.Join(dir, "absent.yaml"))...); r.code != 1 || !strings.Contains(r.stderr, "last-good.yaml") {
		t.Errorf("serve --fallback with nothing kept = %d, %s; want 1 and the file that is not there", r.code, r.stderr)
	}

	p := launch(t, args...)
	public, admin := p.urls()
	expect(t, public, denied)
	if got := get(t, admin+"/readyz"); got != "ready\n" {
		t.Errorf("/readyz = %q; want ready", got)
	}
	p.quit()
	info, err := os.Stat(kept)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of %s is %v; want 0600", kept, info.Mode())
	}
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), canaryToken) || !strings.Contains(string(text), canaryHeader) {
		t.Errorf("what is kept holds a secret that was referred to, or not what the document says literally:\n%s", text)
	}

	put(t, hooks, "{")
	if r := call(t, "", args...); r.code != 1 || !strings.Contains(r.stderr, "hooks.json:1:2: ") {
		t.Errorf("serve of a file with a mistake = %d, %s; want 1 and the mistake", r.code, r.stderr)
	}

	p = launch(t, fallback...)
	public, admin = p.urls()
	expect(t, public, denied)
	p.stderr.await(t, `LAST GOOD CONFIGURATION IS SERVED`, 1)
	p.stderr.await(t, `hooks\.json:1:2: not valid JSON`, 1)
	if got := get(t, admin+"/readyz"); !strings.HasPrefix(got, "ready, with the last good configuration") {
		t.Errorf("/readyz = %q; want it to name the last good configuration", got)
	}
	metrics := func(lastGood, successful string) {
		t.Helper()
		got := get(t, admin+"/metrics")
		for _, line := range []string{"ahp_gateway_config_last_good " + lastGood, "ahp_gateway_config_last_reload_successful " + successful} {
			if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(got) {
				t.Errorf("/metrics has no line %q", line)
			}
		}
	}
	metrics("1", "0")
	put(t, hooks, `{"hooks": 1}`) // another mistake
	p.stderr.await(t, `configuration refused`, 1)
	metrics("1", "0")
	put(t, hooks, onePolicy(pass.URL))
	p.stderr.await(t, `configuration reloaded`, 1)
	expect(t, public, passed)
	if got := get(t, admin+"/readyz"); got != "ready\n" {
		t.Errorf("/readyz after the correction = %q; want ready", got)
	}
	metrics("0", "1")
	p.quit()
	if text, _ := os.ReadFile(kept); !strings.Contains(string(text), pass.URL) {
		t.Errorf("what is kept after a reload is not what was loaded:\n%s", text)
	}
}

// The admin API says what is served, changes nothing of it, and changes tenants
// again once the file is corrected.
func TestAdminAPIOfLastGood(t *testing.T) {
	pass, _ := pair(t)
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	dir := folder(t, "gateway.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\nadminApi: {keys: [{env: AHP_ADMIN_KEY}]}\n",
		"tenants/acme.yaml", tenantFile("acme", pass.URL))
	args := []string{"serve", "--config", filepath.Join(dir, "gateway.yaml"), "--state-dir", filepath.Join(dir, "state"), "--fallback", "last-good"}
	p := launch(t, args...)
	p.urls()
	p.quit()
	put(t, filepath.Join(dir, "tenants/late.yaml"), "id: [")
	p = launch(t, args...)
	public, admin := p.urls()
	tenant := func(args ...string) result {
		t.Helper()
		return call(t, "", append([]string{"tenant", "--admin", admin}, args...)...)
	}
	if got := with(t, public, tenantKey("acme")); !strings.Contains(got, passed) {
		t.Errorf("the last good configuration answers %s; want a pass", got)
	}
	if r := tenant("list"); r.code != 0 || !strings.Contains(r.stdout, "last good configuration\n") || strings.Contains(r.stdout, "gateway file") {
		t.Errorf("tenant list = %+v; want it to name the last good configuration", r)
	}
	if r := tenant("rotate-key", "acme"); r.code != 1 || !strings.Contains(r.stderr, "The last good configuration is served: correct the file first.") {
		t.Errorf("tenant rotate-key = %+v; want 1 and what to do", r)
	}
	if err := os.Remove(filepath.Join(dir, "tenants/late.yaml")); err != nil {
		t.Fatal(err)
	}
	p.stderr.await(t, `configuration reloaded`, 1)
	if r := tenant("rotate-key", "acme"); r.code != 0 {
		t.Errorf("tenant rotate-key once the file is corrected = %+v; want 0", r)
	}
	if r := tenant("list"); r.code != 0 || strings.Contains(r.stdout, "last good") || !strings.Contains(r.stdout, "acme.yaml") {
		t.Errorf("tenant list once the file is corrected = %+v; want the tenant's file", r)
	}
	p.quit()
}

// What could not be kept is served; what somebody else could have written is not.
func TestKeeperRefuses(t *testing.T) {
	_, deny := pair(t)
	dir := folder(t, "gateway.yaml", openFile(onePolicy(deny.URL)), "bad.yaml", "limitz: 1\n", "file", "")
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"), "--state-dir", filepath.Join(dir, "file"))
	public, _ := p.urls()
	p.stderr.await(t, `cannot be kept`, 1)
	expect(t, public, denied)
	p.quit()

	state := filepath.Join(dir, "state")
	kept := filepath.Join(state, "last-good.yaml")
	for _, c := range []struct {
		what, text string
		mode       os.FileMode
		want       string
	}{
		{"a file that others may write", openFile(onePolicy(deny.URL)), 0o622, "can be written by others"},
		{"a file with a mistake", "limitz: 1\n", 0o600, "last-good.yaml:1:1: limitz"},
	} {
		put(t, kept, c.text)
		if err := os.Chmod(kept, c.mode); err != nil {
			t.Fatal(err)
		}
		r := call(t, "", "serve", "--config", filepath.Join(dir, "bad.yaml"), "--state-dir", state, "--fallback", "last-good")
		if r.code != 1 || !strings.Contains(r.stderr, c.want) || !strings.Contains(r.stderr, "bad.yaml:1:1: limitz") {
			t.Errorf("serve --fallback with %s = %d, %s; want 1, %s and the mistake of the file", c.what, r.code, r.stderr, c.want)
		}
	}
	for _, args := range [][]string{
		{"--config", "x", "--fallback", "last-good"},
		{"--config", "x", "--state-dir", state, "--fallback", "first"},
	} {
		if r := call(t, "", append([]string{"serve"}, args...)...); r.code != 2 {
			t.Errorf("serve %q = %d, %s; want 2", args, r.code, r.stderr)
		}
	}
}

// What somebody else may have put where the last good configuration is kept is
// not served, whatever its mode is.
func TestKeeperOfOthers(t *testing.T) {
	_, deny := pair(t)
	src := folder(t, "gateway.yaml", openFile(onePolicy(deny.URL)))
	good, _, err := config.Load(filepath.Join(src, "gateway.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{dir: filepath.Join(t.TempDir(), "state")}
	do := func(step string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	check := func(what, want string) {
		t.Helper()
		f, err := (&keeper{dir: k.dir}).load(config.NewLoader(filepath.Join(src, "gateway.yaml"), nil))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if (f == nil) != (want != "") || !strings.Contains(got, want) {
			t.Errorf("load of %s = %v, %q; want %q", what, f != nil, got, want)
		}
	}
	do("keep", k.keep(good))
	check("what was kept", "")

	do("chmod", os.Chmod(k.dir, 0o770)) // as volumes that are shared by group are
	check("a folder of a group", "")
	do("chmod", os.Chmod(k.dir, 0o777))
	check("a folder of everybody", "everybody can write to the folder")
	if err := (&keeper{dir: k.dir}).keep(good); err == nil || !strings.Contains(err.Error(), "everybody") {
		t.Errorf("keep in a folder of everybody = %v; want it refused, before it is needed", err)
	}
	do("chmod", os.Chmod(k.dir, 0o700))

	elsewhere := filepath.Join(src, "elsewhere.yaml")
	do("rename", os.Rename(k.path(), elsewhere))
	do("symlink", os.Symlink(elsewhere, k.path()))
	check("a link", "is not a regular file")
	do("remove", os.Remove(k.path()))
	do("rename", os.Rename(elsewhere, k.path()))
	check("the file again", "")

	if os.Geteuid() != 0 {
		t.Log("not root: a file of another user's cannot be made")
		return
	}
	const nobody = 65534
	do("chown", os.Chown(k.path(), nobody, nobody))
	check("another's file", "belongs neither to the user")
	do("chown", os.Chown(k.path(), 0, 0))
	do("chown", os.Chown(k.dir, nobody, nobody))
	check("a file in another's folder", "the folder belongs neither to the user")
}
