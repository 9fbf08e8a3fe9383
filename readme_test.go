package ahpgateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/config"
)

// TestReadme runs what the README shows: its configurations and registrations
// validate, its messages are read, its event is denied by the demo and passes
// without --force, and its send line exits as it says.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "ahp-gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/ahp-gateway").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}

	files := blocks(string(readme), "yaml")
	if len(files) < 2 {
		t.Fatalf("README has %d yaml blocks; want at least 2", len(files))
	}
	for _, text := range files {
		validate(t, binary, "--config", text)
	}

	checkRegistrations(t, blocks(string(readme), "json"), binary, files[1])
	checkMessages(t, blocks(string(readme), "jsonc"))
	checkAudit(t, string(readme))

	url := demo(t, binary)
	denied := writtenEvent(t, blocks(string(readme), "sh"))
	passed := strings.NewReplacer(" --force", "", "evt-1", "evt-2").Replace(denied)
	for body, want := range map[string]string{denied: `"type":"deny"`, passed: `"effects":[]`} {
		if answer := post(t, url, body); !strings.Contains(answer, want) {
			t.Errorf("POST of %s = %s; want %s", body, answer, want)
		}
	}
	checkMetrics(t, string(readme), binary, files[0], denied)
	checkLimits(t, string(readme), binary)

	for _, line := range strings.Split(string(readme), "\n") {
		command, comment, ok := strings.Cut(line, "   # exit code 2")
		if !ok {
			continue
		}
		args := strings.Fields(strings.Replace(strings.TrimPrefix(command, "bin/ahp-gateway "), "'git push --force'", "COMMAND", 1))
		for i, a := range args {
			switch a {
			case "COMMAND":
				args[i] = "git push --force"
			case "http://127.0.0.1:8787":
				args[i] = url
			}
		}
		send := exec.Command(binary, args...)
		out, _ := send.CombinedOutput()
		if send.ProcessState.ExitCode() != 2 {
			t.Errorf("%s exits %d%s; want 2\n%s", command, send.ProcessState.ExitCode(), comment, out)
		}
		return
	}
	t.Error("README has no send line with its exit code")
}

// blocks returns the fenced blocks of a language.
func blocks(markdown, language string) []string {
	var found []string
	for {
		_, rest, ok := strings.Cut(markdown, "```"+language+"\n")
		if !ok {
			return found
		}
		block, rest, ok := strings.Cut(rest, "```")
		if !ok {
			return found
		}
		found, markdown = append(found, block), rest
	}
}

// checkMetrics serves the README's first configuration, whose backends are not
// there, and looks for every metric that the README names.
func checkMetrics(t *testing.T, readme, binary, configuration, event string) {
	t.Helper()
	// Somebody may try the README's example at this moment.
	configuration = strings.NewReplacer("127.0.0.1:8787", "127.0.0.1:0", "127.0.0.1:8788", "127.0.0.1:0",
		"127.0.0.1:9001", "127.0.0.1:1", "127.0.0.1:9002", "127.0.0.1:1").Replace(configuration)
	url, admin := serving(t, binary, configuration)
	if got := post(t, url, event); !strings.Contains(got, "io.ahp-gateway.fail_closed") {
		t.Errorf("the README's configuration without its backends = %s; want the fail-closed deny", got)
	}
	metrics := scraped(t, admin)
	names := regexp.MustCompile("`(ahp_gateway_[a-z_]+)`").FindAllStringSubmatch(readme, -1)
	if len(names) == 0 {
		t.Error("README names no metric")
	}
	for _, name := range names {
		if !strings.Contains(metrics, "# TYPE "+name[1]+" ") {
			t.Errorf("README names the metric %s, which /metrics does not have", name[1])
		}
	}
}

// serving serves a configuration and returns where.
func serving(t *testing.T, binary, configuration string) (url, admin string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := run(t, binary, "serve", "--config", path)
	for (url == "" || admin == "") && lines.Scan() {
		if _, a, ok := strings.Cut(lines.Text(), "admin on "); ok {
			admin = strings.Trim(a, `"`)
		}
		if u, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			url = u
		}
	}
	go func() { // so that what it logs has somewhere to go
		for lines.Scan() {
		}
	}()
	return url, admin
}

// scraped returns what /metrics of a private listener says.
func scraped(t *testing.T, admin string) string {
	t.Helper()
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(metrics)
}

// validate returns the subscriptions that validate prints for a harness of a
// document, which has to be valid.
func validate(t *testing.T, binary, flag, text string) []any {
	t.Helper()
	path := filepath.Join(t.TempDir(), "document.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "validate", flag, path, "--format", "json").Output()
	var v struct {
		Harnesses []struct{ Subscriptions []any }
	}
	if err := errors.Join(err, json.Unmarshal(out, &v)); err != nil {
		t.Fatalf("validate %s of the README's document: %v\n%s\n%s", flag, err, out, text)
	}
	if len(v.Harnesses) == 0 {
		return nil
	}
	return v.Harnesses[0].Subscriptions
}

// checkRegistrations validates the README's registrations of the gateway, one
// that asks and one that does not, which needs what validate prints for the
// README's tenants.
func checkRegistrations(t *testing.T, documents []string, binary, tenants string) {
	t.Helper()
	if len(documents) != 2 {
		t.Fatalf("README has %d json blocks; want two registrations", len(documents))
	}
	for i, text := range documents {
		validate(t, binary, "--registration", text)
		var document struct {
			Hooks []struct{ Subscriptions []any }
		}
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		var want []any
		if i == 1 {
			want = validate(t, binary, "--config", tenants)
		}
		if got := document.Hooks[0].Subscriptions; !reflect.DeepEqual(got, want) {
			t.Errorf("README's registration %d has the subscriptions %v; want %v", i+1, got, want)
		}
	}
}

// checkMessages reads the README's messages and answers of a backend as the
// gateway would.
func checkMessages(t *testing.T, groups []string) {
	t.Helper()
	effects, configurations := 0, 0
	for _, group := range groups {
		for line := range strings.Lines(group) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  //")
			body := []byte(strings.TrimSpace(line))
			if bytes.HasPrefix(body, []byte("//")) {
				continue
			}
			result := ahp.Member(body, "result")
			version, _ := ahp.ParseVersion(string(ahp.Text(ahp.Member(result, "protocolVersion"))))
			call := ahp.Call{ID: ahp.Member(body, "id"), Version: version}
			switch {
			case result == nil:
				var m ahp.Message
				if err := ahp.Decode(body, &m); err != nil || m.Method != ahp.MethodConfiguration {
					t.Errorf("ahp.Decode(%s) = %v; want a hooks/configuration", body, err)
				}
			case ahp.Member(result, "configuration") != nil:
				configuration, f := ahp.DecodeConfiguration(&call, body)
				subs, warnings, err := config.ParseConfiguration("com.example.policy", configuration, time.Minute, nil)
				if !f.OK() || err != nil || len(warnings) != 0 || len(subs) != 1 {
					t.Errorf("%s is read with %v, %v, %v; want one subscription", body, f, warnings, err)
				}
				configurations++
			default:
				answer := ahp.Response{Body: body}
				if f := ahp.DecodeResponse(&call, &answer); !f.OK() {
					t.Errorf("ahp.DecodeResponse(%s) = %v; want an answer", body, f)
				}
				for effect := range ahp.Elements(answer.Effects) {
					if _, wrong := ahp.ToolBefore.CheckEffect(effect); wrong != "" {
						t.Errorf("effect %s: %s; want one of tool.before", effect, wrong)
					}
					effects++
				}
			}
		}
	}
	if effects < 3 || configurations != 1 {
		t.Errorf("README shows %d effects and %d configurations; want a deny, a modify, an ask, and one", effects, configurations)
	}
}

// checkAudit looks for every verdict and outcome of an audit record.
func checkAudit(t *testing.T, readme string) {
	t.Helper()
	var names []string
	for v := audit.Verdict(1); v.String() != audit.Verdict(0).String(); v++ {
		names = append(names, v.String())
	}
	for o := audit.Outcome(1); o.String() != audit.Outcome(0).String(); o++ {
		names = append(names, o.String())
	}
	_, text, _ := strings.Cut(readme, "* **Audit**")
	text, _, _ = strings.Cut(text, "* **Traces**")
	for _, name := range names {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("README does not list %s among the verdicts and outcomes of an audit record", name)
		}
	}
}

// writtenEvent runs the README's command that writes its event, and returns that.
func writtenEvent(t *testing.T, scripts []string) string {
	t.Helper()
	for _, script := range scripts {
		before, _, ok := strings.Cut(script, "\nEOF\n")
		if !ok {
			continue
		}
		sh := exec.Command("sh", "-c", before+"\nEOF\n")
		sh.Dir = t.TempDir()
		if out, err := sh.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", before, err, out)
		}
		event, err := os.ReadFile(filepath.Join(sh.Dir, "event.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(event)
	}
	t.Fatal("README writes no event")
	return ""
}

// checkLimits holds the conformance claim against the README: both say for how
// long and for how many questions an answer can be edited.
func checkLimits(t *testing.T, readme, binary string) {
	t.Helper()
	limit := regexp.MustCompile(`more than [0-9,]+ hours or [0-9,]+ questions`).FindString(readme)
	claim, err := exec.Command(binary, "version", "--conformance").Output()
	if err != nil || limit == "" || !strings.Contains(string(claim), limit) {
		t.Errorf("version --conformance = %v, %s; want it to say %q, as the README does", err, claim, limit)
	}
}

// post sends a message and returns the answer.
func post(t *testing.T, url, body string) string {
	t.Helper()
	resp, err := http.Post(url+"/hooks", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// run starts the command until the test ends and returns the lines of both its
// outputs.
func run(t *testing.T, binary string, args ...string) *bufio.Scanner {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, binary, args...)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		r.Close()
		_ = cmd.Wait()
	})
	return bufio.NewScanner(r)
}

// demo starts the demo on a free port and returns its URL.
func demo(t *testing.T, binary string) string {
	t.Helper()
	lines := run(t, binary, "demo", "--listen", "127.0.0.1:0")
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			go func() {
				for lines.Scan() {
				}
			}()
			return url
		}
	}
	t.Fatal("the demo ended without listening")
	return ""
}
