package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// trials are the commands that a demo offers to try.
var trials = []struct{ name, command, title string }{
	{"denied", "git push --force origin main", "a force push, denied"},
	{"passed", "git status", "a status, passed"},
}

// instructions are the lines that the demo prints for people to copy; each
// works as it is.
func instructions(invocation, url, admin string) []byte {
	var b bytes.Buffer
	b.WriteString("\nTwo sample policies are asked in turn: rules, and a scanner for secrets.\nTry them from another terminal:\n")
	if invocation == goRun {
		b.WriteString("(go run ends with 1 where the program ends with 2 or 3; make build makes\nbin/ahp-gateway, whose exit code is 2 for a denial.)\n")
	}
	for _, v := range ahp.Versions {
		for _, t := range trials {
			event := newEvent(v)
			event.id, event.session, event.call = "demo-"+v.String()+"-"+t.name, "demo-session", "demo-call"
			event.command(t.command)
			event.effects = ahp.EffectSet(0).With(ahp.EffectDeny) // all that the samples answer
			fmt.Fprintf(&b, "\n# AHP %s: %s\n", v, t.title)
			fmt.Fprintf(&b, "curl -sS %s/hooks -H 'Content-Type: application/json' -d %s\n", url, quote(string(event.message())))
			fmt.Fprintf(&b, "%s send --url %s --protocol-version %s --command %s\n", invocation, url, v, quote(t.command))
		}
	}
	fmt.Fprintf(&b, "\nHealth, metrics and administration: %s/readyz /metrics /admin/config /admin/backends\nCtrl-C ends the demo.\n", admin)
	return b.Bytes()
}

// goRun is how the program is called that go run has built.
const goRun = "go run ./cmd/ahp-gateway"

// invocation is how people call this program again: go run builds it in a
// folder that is gone when it ends.
func (p program) invocation() string {
	if strings.Contains(filepath.ToSlash(p.name), "/go-build") {
		return goRun
	}
	return quote(p.name)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// quote returns s as one word of a POSIX shell.
func quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
