package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every command that people see has a page, which says what its help says, and
// in which nothing is taken for a macro.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	if r := call(t, "", "man", "--dir", dir, "--date", "2026-02-03"); r.code != 0 || r.stdout != "" || r.stderr != "" {
		t.Fatalf("man = %+v; want 0 and no output", r)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("man wrote %d pages, %v; want one for every command", len(pages), err)
	}
	for name, wants := range map[string][]string{
		"ahp-gateway.1": {`.TH "AHP\-GATEWAY" "1" 2026-02-03`, `.BR ahp\-gateway\-serve (1),`, "Exit codes: 0 success"},
		"ahp-gateway-serve.1": {
			`.B "\-c, \-\-config string"` + "\ngateway file (required)\n", ".SH EXAMPLES\n.RS 4\n.EX\nahp\\-gateway serve",
			"SIGHUP reads the file", ".BR ahp\\-gateway (1)\n",
		},
		"ahp-gateway-tenant-add.1": {".SH OPTIONS OF ALL COMMANDS", `(default AHP_ADMIN_KEY)`},
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		for _, want := range wants {
			if want = strings.Replace(want, ` "1" `, " 1 ", 1); !strings.Contains(string(page), want) {
				t.Errorf("%s has no %q; it is\n%s", name, want, page)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ahp-gateway-man.1")); err == nil {
		t.Error("the command that makes the pages has one; want none of what is hidden")
	}
	for _, c := range [][]string{{"man"}, {"man", "--dir", dir, "--date", "today"}} {
		if r := call(t, "", c...); r.code != exitUsage {
			t.Errorf("%q = %+v; want wrong usage", c, r)
		}
	}

	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("mandoc is not installed")
		}
		t.Skip("mandoc is not installed")
	}
	if out, err := exec.Command(mandoc, append([]string{"-Tlint", "-Wwarning"}, pages...)...).CombinedOutput(); err != nil {
		t.Errorf("mandoc -Tlint: %v\n%s", err, out)
	}
}
