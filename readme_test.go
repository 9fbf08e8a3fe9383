package ahpgateway_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestReadme runs what the README shows: its configurations validate, its event
// is denied by the demo and passes without --force, and its send line exits as
// it says.
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
	for i, text := range files {
		path := filepath.Join(t.TempDir(), "gateway.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(binary, "validate", "--config", path).CombinedOutput(); err != nil {
			t.Errorf("validate of the README's configuration %d: %v\n%s", i+1, err, out)
		}
	}

	url := demo(t, binary)
	events := blocks(string(readme), "json")
	if len(events) != 1 {
		t.Fatalf("README has %d json blocks; want its one event", len(events))
	}
	denied := events[0]
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
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	configuration = strings.NewReplacer("127.0.0.1:8787", "127.0.0.1:0", "127.0.0.1:8788", "127.0.0.1:0").Replace(configuration)
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := run(t, binary, "serve", "--config", path)
	var url, admin string
	for (url == "" || admin == "") && lines.Scan() {
		if _, a, ok := strings.Cut(lines.Text(), "admin on "); ok {
			admin = strings.Trim(a, `"`)
		}
		if u, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			url = u
		}
	}
	if got := post(t, url, event); !strings.Contains(got, "io.ahp-gateway.fail_closed") {
		t.Errorf("the README's configuration without its backends = %s; want the fail-closed deny", got)
	}
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(ahp_gateway_[a-z_]+)`").FindAllStringSubmatch(readme, -1)
	if len(names) == 0 {
		t.Error("README names no metric")
	}
	for _, name := range names {
		if !strings.Contains(string(metrics), "# TYPE "+name[1]+" ") {
			t.Errorf("README names the metric %s, which /metrics does not have", name[1])
		}
	}
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
