package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/config"
)

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args   []string
		code   int
		stdout string // a pattern; "" wants nothing
		stderr string
	}{
		{nil, 2, "", `a command is needed; write one of completion, config, demo, diff, health, send, serve, tenant, validate, version\nRun 'ahp-gateway --help'`},
		{[]string{"--help"}, 0, `(?s)asks every.*Examples:.*ahp-gateway demo`, ""},
		{[]string{"help", "send"}, 0, `2 deny; 3 ask or\nchanged`, ""},
		{[]string{"serve", "-h"}, 0, `SIGHUP reads the file`, ""},
		{[]string{"nonsense"}, 2, "", `unknown command "nonsense"`},
		{[]string{"serv"}, 2, "", `Did you mean this\?\s+serve`},
		{[]string{"--nonsense"}, 2, "", `unknown flag: --nonsense`},
		{[]string{"\x00", strings.Repeat("x", 1<<16)}, 2, "", `unknown command`},
		{[]string{"config"}, 2, "", `ahp-gateway config: a command is needed`},
		{[]string{"config", "nonsense"}, 2, "", `ahp-gateway config: unknown command "nonsense"`},
		{[]string{"config", "print", "extra.yaml"}, 2, "", `config print: takes no arguments: write --config extra.yaml`},
		{[]string{"serve", "my file.yaml"}, 2, "", `takes no arguments: write --config 'my file.yaml'`},
		{[]string{"validate", "hooks.yaml"}, 2, "", `takes no arguments: write --config hooks.yaml or --registration hooks.yaml\nRun`},
		{[]string{"config", "print", "--config", "/nowhere/gateway.yaml"}, 1, "", `^/nowhere/gateway\.yaml: cannot be read`},
		{[]string{"version", "--conformance=maybe"}, 2, "", `invalid argument "maybe"`},
		{[]string{"version", "extra"}, 2, "", `unknown command "extra"`},
		{[]string{"version", "--conformance", "--dependencies"}, 2, "", `--conformance and --dependencies are both given`},
		{[]string{"validate"}, 2, "", `exactly one of --config and --registration`},
		{[]string{"validate", "--config", "a", "--registration", "b"}, 2, "", `exactly one of`},
		{[]string{"validate", "--config", "a", "--format", "xml"}, 2, "", `--format is "xml"`},
		{[]string{"demo", "--listen", "0.0.0.0:0"}, 2, "", `want a loopback address`},
		{[]string{"demo", "--listen", "nonsense"}, 2, "", `want a loopback address`},
		{[]string{"demo", "--listen", "127.0.0.1:99999"}, 2, "", `want a loopback address with a port`},
		{[]string{"completion", "bash"}, 0, `bash completion`, ""},
		{[]string{"__complete", "va"}, 0, `validate\t`, `Completion ended`},
		// Here 2 is taken, for a deny.
		{[]string{"send"}, 1, "", `ahp-gateway send: --url is needed\nRun 'ahp-gateway send --help'`},
		{[]string{"send", "--nonsense"}, 1, "", `unknown flag`},
		{[]string{"send", "extra"}, 1, "", `takes no arguments: write --command extra`},
	} {
		r := call(t, "", c.args...)
		if r.code != c.code || !matches(c.stdout, r.stdout) || !matches(c.stderr, r.stderr) {
			t.Errorf("%.80q = %d, stdout %.300q, stderr %.300q; want %d, %s, %s", c.args, r.code, r.stdout, r.stderr, c.code, c.stdout, c.stderr)
		}
	}
}

// matches reports whether text matches the pattern, or is empty for none.
func matches(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	return regexp.MustCompile(pattern).MatchString(text)
}

// The codes above are those of the process as well.
func TestExitCodesOfTheBinary(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
	}{
		{"version", 0}, {"", 2}, {"nonsense", 2}, {"send", 1}, {"send --url http://127.0.0.1:1 --command x", 1},
		{"validate --config /nowhere/gateway.yaml", 1}, {"config print", 0}, {"serve --config /nowhere/gateway.yaml", 1},
	} {
		p := launch(t, strings.Fields(c.args)...)
		if code := p.exit(); code != c.code {
			t.Errorf("ahp-gateway %s = %d; want %d. It wrote %s%s", c.args, code, c.code, p.stdout, p.stderr)
		}
	}
	cmd := exec.Command(binary, "config", "schema")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		return // only where the system has such a device
	}
	defer full.Close()
	cmd.Stdout = full
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("config schema to a full disk = %v; want exit code 1", err)
	}
}

func TestVersion(t *testing.T) {
	p := launch(t, "version")
	p.exit()
	if got := p.stdout.String(); !matches(`^ahp-gateway v1\.2\.3-test go\S+ \w+/\w+\n(commit \w+( \(modified\))?\ndate \S+\n)?$`, got) {
		t.Errorf("version = %q; want that which the linker was given", got)
	}
	if r := call(t, "", "version"); r.code != 0 || !matches(`^ahp-gateway \S+ go`, r.stdout) {
		t.Errorf("version = %d, %q; want a version without the linker's help", r.code, r.stdout)
	}
}

// What the toolchain has written into the program is shown, and the modules only
// on request.
func TestVersionBuild(t *testing.T) {
	info := &debug.BuildInfo{
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "1234abcd"}, {Key: "vcs.time", Value: "2026-02-03T04:05:06Z"}, {Key: "vcs.modified", Value: "true"}},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a"},
			{Path: "example.com/b", Version: "v2.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v3.0.0", Sum: "h1:c"}},
		},
	}
	if got := string(newBuild(info, true).text()); !matches(`^ahp-gateway \S+ go\S+ \w+/\w+\ncommit 1234abcd \(modified\)\ndate 2026-02-03T04:05:06Z\nexample\.com/a v1\.0\.0 h1:a\nexample\.com/c v3\.0\.0 h1:c\n$`, got) {
		t.Errorf("text of a build = %q; want version, commit, date and what is linked in", got)
	}
	if got := string(newBuild(nil, true).text()); strings.Count(got, "\n") != 1 {
		t.Errorf("text of a build without information = %q; want one line", got)
	}
	out, err := exec.Command(binary, "version", "--json", "--dependencies").Output()
	var b build
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.DisallowUnknownFields()
	if err := errors.Join(err, dec.Decode(&b)); err != nil {
		t.Fatalf("version --json --dependencies: %v\n%s", err, out)
	}
	cobra := slices.IndexFunc(b.Dependencies, func(d dependency) bool { return d.Path == "github.com/spf13/cobra" })
	if b.Version != "v1.2.3-test" || b.Go != runtime.Version() || b.Platform != runtime.GOOS+"/"+runtime.GOARCH || cobra < 0 || !strings.HasPrefix(b.Dependencies[cobra].Sum, "h1:") {
		t.Errorf("version --json --dependencies = %+v; want the linker's version, and cobra with its sum", b)
	}
	if r := call(t, "", "version", "--json"); r.code != 0 || strings.Contains(r.stdout, "dependencies") || !json.Valid([]byte(r.stdout)) {
		t.Errorf("version --json = %+v; want JSON without the modules", r)
	}
}

// AHP-CORE-001, AHP-CORE-002: the claim names roles, transports, profiles and
// snapshots, and nothing that is not served.
func TestVersionConformance(t *testing.T) {
	r := call(t, "", "version", "--conformance")
	var c struct {
		Implementation, Version, Role string
		Roles, Transports, Profiles   []string
		Limitations                   []string
		Snapshots                     []struct {
			ProtocolVersion, Revision, Pinned string
			Methods, Effects                  []string
			Events                            struct{ Intercept, Observe []string }
		}
	}
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil || r.code != 0 {
		t.Fatalf("version --conformance = %d, %v: %s", r.code, err, r.stdout)
	}
	if c.Implementation != "ahp-gateway" || c.Version == "" || c.Role != "both" || len(c.Snapshots) != len(ahp.Versions) ||
		!slices.Equal(c.Roles, []string{"harness", "backend"}) || !slices.Equal(c.Transports, []string{"http"}) ||
		!slices.Equal(c.Profiles, []string{"base", "tool-interception", "lifecycle-observation"}) || len(c.Limitations) == 0 {
		t.Errorf("claim = %+v; want both roles over http with the three profiles and the limitations", c)
	}
	first, draft := c.Snapshots[0], c.Snapshots[1]
	if first.ProtocolVersion != "0.1" || first.Revision != "0.1.0-draft.1" || !slices.Equal(first.Events.Intercept, []string{"tool.before"}) ||
		!slices.Equal(first.Events.Observe, []string{"session.start", "session.end", "tool.after", "tool.error"}) {
		t.Errorf("claim for 0.1 = %+v; want its revision and all of its events", first)
	}
	if draft.ProtocolVersion != "draft" || draft.Pinned != "agenthooksprotocol 0.10.1" || len(draft.Events.Intercept) != 19 ||
		len(draft.Effects) != 8 || len(draft.Events.Observe) != int(ahp.EventTypeCount)-2 {
		t.Errorf("claim for draft = %+v; want the pinned text, 19 events to intercept, 8 effects, and the whole catalogue to observe", draft)
	}
}

func TestConfigPrint(t *testing.T) {
	t.Setenv("ACME_TOKEN", canaryToken)
	t.Setenv("ACME_HEADER", canaryHeader)
	t.Setenv("GATEWAY_KEY", canaryKey)
	dir := folder(t, "gateway.yaml", `
listen: 127.0.0.1:9999
tenants:
  - id: acme
    keys: [{env: GATEWAY_KEY}]
    secrets: {envPrefix: ACME_}
    registration:
      protocolVersion: "0.1"
      hooks:
        - id: com.example.policy
          transport:
            type: http
            url: https://policy.example.com/ahp
            headers: {X-Key: {valueEnv: ACME_HEADER}}
          authentication: {type: bearer, tokenEnv: ACME_TOKEN}
          subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 700, failurePolicy: fail-closed}]
`)
	r := call(t, "", "config", "print", "--config", dir+"/gateway.yaml")
	if r.code != 0 || r.stderr != "" {
		t.Errorf("config print = %d, stderr %s; want 0 and nothing", r.code, r.stderr)
	}
	for _, want := range []string{`listen: "127.0.0.1:9999"`, `body: 1048576`, "tokenEnv: ACME_TOKEN", "valueEnv: ACME_HEADER", `sha256: "`} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("config print has no %s; it is\n%s", want, r.stdout)
		}
	}
}

// Without a file, config print shows a valid file in which nothing is left to
// defaults.
func TestConfigPrintDefaults(t *testing.T) {
	r := call(t, "", "config", "print")
	f, warnings, err := config.Parse("printed.yaml", []byte(r.stdout), nil)
	if err != nil || len(warnings) != 0 {
		t.Fatalf("config.Parse(config print) = %v, %v; want a file\n%s", warnings, err, r.stdout)
	}
	want, _, err := config.Parse("example.yaml", []byte(exampleFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Print(); r.code != 0 || !bytes.Equal(got, want.Print()) {
		t.Errorf("the printed file means\n%s\nwant the defaults\n%s", got, want.Print())
	}
}

func TestConfigSchema(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"config", "schema"}, "tenants"},
		{[]string{"config", "schema", "--registration"}, "hooks"},
	} {
		var schema struct {
			Schema string `json:"$schema"`
		}
		r := call(t, "", c.args...)
		err := json.Unmarshal([]byte(r.stdout), &schema)
		if err != nil || r.code != 0 || schema.Schema != "https://json-schema.org/draft/2020-12/schema" || !strings.Contains(r.stdout, `"`+c.want+`"`) {
			t.Errorf("%q = %d, %v: %.200s; want a JSON Schema that knows %s", c.args, r.code, err, r.stdout, c.want)
		}
	}
}
