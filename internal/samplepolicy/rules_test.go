package samplepolicy

import (
	"regexp"
	"strings"
	"testing"
)

// decide asks the policy of a handler about one call and returns the code of
// its denial, or "".
func decide(t *testing.T, h any, c call) string {
	t.Helper()
	d := h.(policy)(c)
	if d == nil {
		return ""
	}
	if d.Type != "deny" || d.Reason == "" || !reverseDNS.MatchString(d.Code) {
		t.Errorf("policy(%v) = %+v; want a deny with reason and code", c, d)
	}
	return d.Code
}

func shell(command any) call {
	return call{kind: "shell", name: "Bash", input: map[string]any{"command": command}}
}

func TestDefaultRules(t *testing.T) {
	rules, err := DefaultRules()
	if err != nil {
		t.Fatalf("DefaultRules() = _, %v; want no error", err)
	}
	h := Rules(rules)
	const push, remove, pass = "io.ahp-gateway.demo.force_push", "io.ahp-gateway.demo.remove_root", ""
	for want, commands := range map[string][]string{
		push: {
			"git push --force",
			"git push -f",
			"git push -f origin main",
			"git push origin main --force",
			"git push -uf origin main",
			"git push origin +main",
			"git push origin '+main'",
			"git push origin +HEAD:refs/heads/main",
			"git push origin +refs/heads/*:refs/heads/*",
			"git push --force-with-lease --force",
			"git  push\t--force",
			"git -C /src/x push --force",
			`git -C "/src/my x" push --force`,
			"git -c user.name=x --no-pager push -f",
			"/usr/bin/git push -f",
			`"git" "push" "--force"`,
			"GIT_TRACE=1 git push -f",
			"sudo git push -f",
			"cd x && git push -f",
			"cd x&&git push -f&&cd ..",
			"true || git push --force",
			"git status; git push --force; ls",
			"git status\ngit push --force\n",
			"git push \\\n  --force",
			"git push \\\r\n  --force",
			"git push 2>&1 --force",
			"git push &>log --force",
			"sh -c 'git push --force'",
			`bash -lc "cd x && git push -f"`,
			`sh -c "sh -c \"git push --force\""`,
			"(git push --force)",
			"echo $(git push --force)",
			"echo `git push -f`",
			"git push --force # tidy",
		},
		remove: {
			"rm -rf /",
			"rm -fr /",
			"rm -Rf /",
			"rm -r -f /",
			"rm -f -r /*",
			"rm -r /",
			"rm --recursive --force /",
			"rm --force --recursive /",
			"rm --recurs /",
			"rm -rf --no-preserve-root /",
			"rm -rf -- /",
			"rm -vrf /",
			"rm / -rf",
			"rm -f / -r",
			`rm -rf "/"`,
			"rm -rf '/'",
			`rm -rf "/"*`,
			"rm -rf //",
			"rm -rf /.",
			"rm -rf /..",
			"rm -rf ./build /",
			"rm -rf / tmp",
			"rm -rf ~",
			"rm -rf ~/",
			"rm -rf ~/*",
			"rm -rf $HOME",
			`rm -rf "$HOME"`,
			"rm -rf $HOME/*",
			"rm -rf ${HOME}",
			`rm -rf "${HOME:?}"/*`,
			"rm -rf /* 2>/dev/null",
			"rm 2>&1 -rf /",
			"rm \\\n -rf \\\n /",
			"sudo rm -rf /",
			"sudo -n /bin/rm -rf /",
			`\rm -rf /`,
			"cd /tmp && rm -rf /",
			"cd /tmp; rm -rf /; ls",
			"ls | xargs rm -rf /",
			"rm -rf / &",
			"sh -c 'rm -rf /'",
			"sh -c 'cd x && rm -rf /'",
			`bash -c "rm -rf \"/\""`,
			"(rm -rf /)",
			"{ rm -rf /; }",
			"echo `rm -rf /`",
			"rm -rf />/dev/null",
		},
		pass: {
			"",
			"git push",
			"git push origin main",
			"git push --force-with-lease",
			"git push --force-with-lease=main:abc origin main",
			"git push --force-if-includes --force-with-lease",
			"git push --follow-tags",
			"git push --no-force",
			"git push -u origin feature/-f",
			"git push origin feature+x",
			"git push && rm -f notes.txt",
			"git push; date +%s",
			"git push | tee -f",
			"git push\ndate +%s",
			"git fetch --force",
			"git stash push -m x",
			"git log --grep push",
			"legit push --force",
			"my-git push --force",
			"gitpush --force",
			"rm file",
			"rm -f /tmp/x",
			"rm -f /",
			"rm -rf build",
			"rm -rf ./",
			"rm -rf /tmp/x",
			"rm -rf /tmp/x/",
			"rm -rf ~/.cache",
			"rm -rf ~/x",
			"rm -rf $HOME/x",
			"rm -rf $HOMEDIR",
			"rm -rf ${HOMEDIR}",
			"rm -rf ${HOME}/x",
			`rm -rf "/tmp/a b"`,
			"rm -rf build && ls -r /",
			"rm -rf build; ls /",
			"rm -rf build > /dev/null",
			"rm -rf build\ncd /",
			"rm -i --interactive /x",
			"docker run --rm -r /",
			"farm -rf /",
			"ls -r /",
			"grep -r rm /",
		},
	} {
		for _, command := range commands {
			if got := decide(t, h, shell(command)); got != want {
				t.Errorf("Rules(%q) = %q; want %q", command, got, want)
			}
		}
	}
}

func TestRulesReadWholeInput(t *testing.T) {
	rules, err := DefaultRules()
	if err != nil {
		t.Fatal(err)
	}
	h := Rules(rules)
	nested := any("rm -rf /")
	for range maxDepth {
		nested = []any{map[string]any{"x": nested}}
	}
	for name, in := range map[string]any{
		"words":           []any{"git", "push", "--force"},
		"words of shell":  []any{"bash", "-lc", "git push --force"},
		"nested":          nested,
		"beside a number": []any{1, "rm -rf /"},
		"member name":     map[string]any{"rm -rf /": true},
	} {
		if got := decide(t, h, shell(in)); got == "" {
			t.Errorf("Rules(%s) = no objection; want a denial", name)
		}
	}
	for name, in := range map[string]any{
		"number": 1, "null": nil, "words": []any{"git", "push"}, "mixed words": []any{"rm", "-rf", 1, "/"},
	} {
		if got := decide(t, h, shell(in)); got != "" {
			t.Errorf("Rules(%s) = %q; want no objection", name, got)
		}
	}
}

func TestRuleScope(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule Rule
		call call
		want bool
	}{
		{"every tool", Rule{}, call{kind: "fetch", name: "Get"}, true},
		{"kind", Rule{Kinds: []string{"shell"}}, call{kind: "shell", name: "Bash"}, true},
		{"other kind", Rule{Kinds: []string{"shell"}}, call{kind: "file_write", name: "Write"}, false},
		{"unknown kind", Rule{Kinds: []string{"shell"}}, call{name: "Write"}, true},
		{"tool", Rule{Tools: []string{"Bash"}}, call{name: "Bash"}, true},
		{"other tool", Rule{Tools: []string{"Bash"}}, call{name: "bash"}, false},
		{"tool or kind", Rule{Tools: []string{"Run"}, Kinds: []string{"shell"}}, call{kind: "other", name: "Run"}, true},
		{"field", Rule{Field: "a"}, call{}, true},
		{"other field", Rule{Field: "b"}, call{}, false},
		{"field of other case", Rule{Field: "A"}, call{}, false},
	} {
		tt.rule.ID, tt.rule.Reason, tt.rule.Code = "r", "no", "com.example.no"
		tt.rule.Pattern = regexp.MustCompile("^bad$")
		tt.call.input = map[string]any{"a": []any{"bad"}, "b": "good"}
		if got := decide(t, Rules([]Rule{tt.rule}), tt.call) != ""; got != tt.want {
			t.Errorf("%s: Rules(%+v) denies %+v = %v; want %v", tt.name, tt.rule, tt.call, got, tt.want)
		}
	}
}

func TestFirstRuleDecides(t *testing.T) {
	rule := func(id, code string) Rule {
		return Rule{ID: id, Pattern: regexp.MustCompile("x"), Reason: "no", Code: code}
	}
	rules := []Rule{rule("a", "com.example.a"), rule("b", "com.example.b")}
	h := Rules(rules)
	rules[0] = rules[1]
	if got := decide(t, h, shell("x")); got != "com.example.a" {
		t.Errorf("Rules(a, b) = %q; want com.example.a, also after the caller changed its slice", got)
	}
}

func TestParseRulesMistakes(t *testing.T) {
	const good = `"id": "a", "pattern": "x", "reason": "no", "code": "com.example.a"`
	if rules, err := ParseRules([]byte(`{"rules": [{` + good + `}]}`)); err != nil || len(rules) != 1 {
		t.Fatalf("ParseRules(good) = %v, %v; want one rule", rules, err)
	}
	for in, want := range map[string]string{
		``:                              "not one JSON value",
		`[]`:                            "cannot unmarshal",
		`{}`:                            "rules must not be empty",
		`{"rules": null}`:               "rules must not be empty",
		`{"rules": [{` + good + `}]} x`: "not one JSON value",
		`{"rules": [{` + good + `, "patern": "y"}]}`:                             "unknown field",
		`{"rules": [{` + good + `, "id": "b"}]}`:                                 "occurs twice",
		`{"rules": [{` + good + `}, {` + good + `}]}`:                            "id must be unique",
		`{"rules": [{` + good + `, "kinds": ["sehll"]}]}`:                        `"sehll" is no tool kind`,
		`{"rules": [{"pattern": "(", "id": "a"}]}`:                               "missing closing )",
		`{"rules": [{"pattern": "", "id": "a"}]}`:                                "pattern must not be empty",
		`{"rules": [{"id": "a"}]}`:                                               "reason must not be empty",
		`{"rules": [{"id": "a", "pattern": "x", "reason": "no", "code": "no"}]}`: "code must be a reverse-DNS name",
	} {
		if _, err := ParseRules([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRules(%s) = %v; want an error with %q", in, err, want)
		}
	}
}

func TestRulesRefusesIncompleteRules(t *testing.T) {
	for name, rules := range map[string][]Rule{"none": nil, "zero": {{}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Rules(%s) returned; want a panic", name)
				}
			}()
			Rules(rules)
		}()
	}
}

func BenchmarkRules(b *testing.B) {
	rules, err := DefaultRules()
	if err != nil {
		b.Fatal(err)
	}
	h := Rules(rules).(policy)
	for name, c := range map[string]call{
		"short": shell("git push origin main"),
		"1MiB":  shell(strings.Repeat("git push -x rm -q ", 1<<20/18)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h(c)
			}
		})
	}
}
