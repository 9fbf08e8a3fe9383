//go:build linux

package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// packaged are the packages of linux/amd64, made once for all tests.
var packaged = sync.OnceValues(func() ([]string, error) {
	dir, err := os.MkdirTemp("", "packages")
	if err != nil {
		return nil, err
	}
	made = append(made, dir)
	return writePackages(release(), "linux/amd64", dir)
})

// builtPackage returns the package of a format.
func builtPackage(t *testing.T, format string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	all, err := packaged()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(path string) bool { return filepath.Ext(path) == "."+format })
	if i < 0 {
		t.Fatalf("made %v; want a .%s", all, format)
	}
	return all[i]
}

// Made again, the packages are the same to the byte.
func TestPackagesReproducible(t *testing.T) {
	builtPackage(t, "deb")
	first, _ := packaged()
	again, err := writePackages(release(), "linux/amd64", t.TempDir())
	if err != nil || len(again) != len(first) || len(first) != 2 {
		t.Fatalf("made again: %v, %v; want %v", again, err, first)
	}
	for i := range first {
		want, err := os.ReadFile(first[i])
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(again[i])
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from %s, %v", again[i], first[i], err)
		}
	}
}

// maxExposure is the most that systemd may find wrong with the unit, in tenths.
const maxExposure = "12"

// The package is installed, configured, upgraded, removed and purged by dpkg; what
// it installs is a unit that systemd accepts and finds safe, and a configuration
// that serves nobody.
func TestDebianPackage(t *testing.T) {
	needRoot(t)
	need(t, "dpkg")
	deb := builtPackage(t, "deb")
	root := t.TempDir()
	shell(t, `mkdir -p "$1/var/lib/dpkg/info" "$1/var/lib/dpkg/updates"; : >"$1/var/lib/dpkg/status"`, "sh", root)
	in := func(path string) string { return filepath.Join(root, path) }
	dpkg := func(args ...string) {
		t.Helper()
		// There is no shell in the root, so the scripts run outside, told where it is.
		shell(t, `DEBIAN_FRONTEND=noninteractive exec dpkg --force-script-chrootless --force-confold --root="$@" </dev/null`, append([]string{"sh", root}, args...)...)
	}
	dpkg("--install", deb)
	for path, mode := range map[string]fs.FileMode{
		"usr/bin/ahp-gateway":                                  0o755,
		"usr/lib/systemd/system/ahp-gateway.service":           0o644,
		"usr/share/man/man1/ahp-gateway-serve.1.gz":            0o644,
		"usr/share/bash-completion/completions/ahp-gateway":    0o644,
		"usr/share/zsh/vendor-completions/_ahp-gateway":        0o644,
		"usr/share/fish/vendor_completions.d/ahp-gateway.fish": 0o644,
		"etc/ahp-gateway/gateway.yaml":                         0o644,
		"etc/ahp-gateway/tenants":                              0o755 | fs.ModeDir,
		"etc/ahp-gateway/private":                              0o700 | fs.ModeDir,
		"etc/default/ahp-gateway":                              0o600,
	} {
		info, err := os.Stat(in(path))
		if err != nil || info.Mode() != mode || info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s is %v, %v; want %v of root", path, info, err, mode)
		}
	}
	if status := shell(t, `dpkg --root="$1" -s ahp-gateway`, "sh", root); !strings.Contains(status, "Status: install ok installed") || !strings.Contains(status, "Version: 1.2.3") {
		t.Errorf("dpkg says %s", status)
	}

	t.Run("unit", func(t *testing.T) {
		need(t, "systemd-analyze")
		unit := in("usr/lib/systemd/system/ahp-gateway.service")
		// Beside what a system has, as it is here. Pages of the manual would be
		// looked for on this machine, not in the root.
		shell(t, `cp -an /usr/lib/systemd/system/. "$1/usr/lib/systemd/system/"; install -D /bin/kill "$1/bin/kill"`, "sh", root)
		if out := shell(t, `systemd-analyze --man=no --root="$1" verify ahp-gateway.service 2>&1`, "sh", root); strings.Contains(out, "ahp-gateway") {
			t.Errorf("systemd-analyze verify: %s", out)
		}
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold="+maxExposure, unit).CombinedOutput()
		level := regexp.MustCompile(`Overall exposure level for .*`).Find(out)
		if err != nil || level == nil {
			t.Errorf("systemd-analyze security: %v\n%s", err, out)
		}
		t.Logf("%s", level)
	})

	t.Run("configuration", func(t *testing.T) {
		program := in("usr/bin/ahp-gateway")
		if out, err := exec.Command(program, "validate", "--config", in("etc/ahp-gateway/gateway.yaml")).CombinedOutput(); err != nil || !strings.Contains(string(out), "nobody can authenticate") {
			t.Errorf("validate of what is installed = %v, %s; want that it is valid, and nobody can authenticate", err, out)
		}
		text, err := os.ReadFile(in("etc/ahp-gateway/gateway.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		// The ports may be taken here.
		open := strings.NewReplacer(":8787", ":0", ":8788", ":0").Replace(string(text))
		put(t, in("etc/ahp-gateway/open.yaml"), open)
		t.Cleanup(func() { os.Remove(in("etc/ahp-gateway/open.yaml")) })
		g := start(t, exec.Command(program, "serve", "--config", in("etc/ahp-gateway/open.yaml")))
		resp := exec.Command(program, "send", "--url", g.url, "--command", "ls")
		if out, _ := resp.CombinedOutput(); resp.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "401") {
			t.Errorf("an event = %d, %s; want that it is refused with 401", resp.ProcessState.ExitCode(), out)
		}
		admin := regexp.MustCompile(`admin on (http://[0-9.:]+)`).FindSubmatch(g.log.Bytes())
		if got := status(t, string(admin[1])+"/readyz"); got != 200 {
			t.Errorf("/readyz = %d; want 200", got)
		}
	})

	t.Run("tenant", func(t *testing.T) {
		readme, err := os.ReadFile(in("etc/ahp-gateway/tenants/README"))
		if err != nil {
			t.Fatal(err)
		}
		example := regexp.MustCompile(`(?m)^  id: acme\n(?:  .*\n)+`).FindString(string(readme))
		acme := in("etc/ahp-gateway/tenants/acme.yaml")
		put(t, acme, strings.ReplaceAll(strings.TrimPrefix(example, "  "), "\n  ", "\n"))
		t.Cleanup(func() { os.Remove(acme) })
		out, err := exec.Command(in("usr/bin/ahp-gateway"), "validate", "--config", in("etc/ahp-gateway/gateway.yaml")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "tool.before") {
			t.Errorf("validate with the tenant of tenants/README = %v\n%s", err, out)
		}
	})

	// What a person has written stays at an upgrade and at removal, and not at purge.
	put(t, in("etc/ahp-gateway/gateway.yaml"), "tenantsDir: tenants # mine\n")
	kept := func(when string) {
		t.Helper()
		if text, err := os.ReadFile(in("etc/ahp-gateway/gateway.yaml")); err != nil || !strings.Contains(string(text), "mine") {
			t.Errorf("after %s the configuration is %q, %v; want what was written", when, text, err)
		}
	}
	dpkg("--install", deb)
	kept("an upgrade")
	dpkg("--remove", "ahp-gateway")
	kept("removal")
	if _, err := os.Stat(in("usr/bin/ahp-gateway")); err == nil {
		t.Error("after removal the program is there")
	}
	shell(t, `mkdir -p "$1/var/lib/private/ahp-gateway"; : >"$1/var/lib/private/ahp-gateway/state"`, "sh", root)
	dpkg("--purge", "ahp-gateway")
	for _, path := range []string{"etc/ahp-gateway", "etc/default/ahp-gateway", "var/lib/private/ahp-gateway"} {
		if _, err := os.Stat(in(path)); err == nil {
			t.Errorf("after purge %s is there", path)
		}
	}
}

// lintian finds nothing but what the package says why of.
func TestLintian(t *testing.T) {
	deb := builtPackage(t, "deb")
	need(t, "lintian")
	if out, err := exec.Command("lintian", "--allow-root", "--fail-on", "error,warning", deb).CombinedOutput(); err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
}

// The package for rpm holds the same files, as far as the systems agree on where
// they are, and keeps the configuration.
func TestRPMPackage(t *testing.T) {
	rpm := builtPackage(t, "rpm")
	need(t, "rpm")
	files := strings.Fields(shell(t, `rpm -qlp "$1" 2>/dev/null`, "sh", rpm))
	for _, want := range []string{
		"/usr/bin/ahp-gateway", "/usr/lib/systemd/system/ahp-gateway.service", "/etc/ahp-gateway/tenants",
		"/usr/share/zsh/site-functions/_ahp-gateway", "/usr/share/man/man1/ahp-gateway-serve.1.gz", "/usr/share/licenses/ahp-gateway/LICENSE",
	} {
		if !slices.Contains(files, want) {
			t.Errorf("the package has no %s; it has %q", want, files)
		}
	}
	configuration := strings.Fields(shell(t, `rpm -qcp "$1" 2>/dev/null`, "sh", rpm))
	if slices.Sort(configuration); !slices.Equal(configuration, []string{"/etc/ahp-gateway/gateway.yaml", "/etc/ahp-gateway/tenants/README", "/etc/default/ahp-gateway"}) {
		t.Errorf("the configuration is %q", configuration)
	}
	if got := shell(t, `rpm -qp --qf '%{NAME} %{VERSION} %{ARCH} %{LICENSE}' "$1" 2>/dev/null`, "sh", rpm); got != "ahp-gateway 1.2.3 x86_64 Apache-2.0" {
		t.Errorf("the package is %s", got)
	}
	if out := shell(t, `rpm -K --nosignature "$1"`, "sh", rpm); !strings.Contains(out, "digests OK") {
		t.Errorf("rpm -K: %s", out)
	}
}

// Every script is one that a plain shell reads.
func TestPackageScripts(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(tree, "deploy/package/*.sh"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("there are no scripts, %v", err)
	}
	for _, s := range scripts {
		shell(t, `sh -n "$1"`, "sh", s)
	}
}
