package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/tester"
)

// TestRego runs the tests of the rules, as `opa test policy` does.
func TestRego(t *testing.T) {
	results, err := tester.Run(t.Context(), "policy")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !r.Pass() {
			t.Errorf("%s; want PASS (error: %v)", r, r.Error)
		}
	}
	if len(results) < 10 {
		t.Errorf("policy has %d tests; want those of every rule", len(results))
	}
}

// Rules that do not decide are an error, never "no objection".
func TestUndecided(t *testing.T) {
	for name, tt := range map[string]struct{ rego, want string }{
		"undefined":  {`effects := [] if input.never`, "undefined"},
		"no list":    {`effects := {"type": "deny"}`, "no list"},
		"two values": {"effects := [] if true\neffects := [1] if true", "conflict"},
		"an error":   {"default effects := []\neffects := [1] if to_number(input.event.id) > 1", "to_number"},
		"no end":     {`effects := [x | some x in numbers.range(1, 1000000); some y in numbers.range(1, 1000000); x * y < 0]`, "cancel"},
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "ahp.rego"), []byte("package ahp\n"+tt.rego+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := load(t.Context(), folder)
		if err != nil {
			t.Errorf("%s: load(%s) = %v; want rules", name, tt.rego, err)
			continue
		}
		params := map[string]any{"event": map[string]any{"id": "evt-1"}}
		if got, err := p.decide(t.Context(), params); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: decide(%s) = %v, %v; want an error with %q", name, tt.rego, got, err, tt.want)
		}
	}
}

func TestLoadMistake(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "ahp.rego"), []byte("package ahp\neffects := [unknown]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t.Context(), folder); err == nil || !strings.Contains(err.Error(), "ahp.rego:2") {
		t.Errorf("load(unknown name) = %v; want an error with the line", err)
	}
}

// TestReadme adds the rule of the README to the others.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("policy/ahp.rego")
	if err != nil {
		t.Fatal(err)
	}
	_, rule, _ := strings.Cut(string(readme), "```rego\n")
	rule, _, ok := strings.Cut(rule, "```")
	if !ok {
		t.Fatal("the README has no rule")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "ahp.rego"), []byte(string(rules)+rule), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := load(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{"deploy dev": 1, "deploy main": 0} {
		params := map[string]any{"event": map[string]any{"tool": map[string]any{"input": map[string]any{"command": command}}}}
		if got, err := p.decide(t.Context(), params); err != nil || len(got) != want {
			t.Errorf("decide(%s) = %v, %v; want %d denials", command, got, err, want)
		}
	}
}
