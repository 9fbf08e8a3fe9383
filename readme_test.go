package ahpgateway_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
		resp, err := http.Post(url+"/hooks", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("POST of %s = %s; want %s", body, answer, want)
		}
	}

	for _, line := range strings.Split(string(readme), "\n") {
		command, comment, ok := strings.Cut(line, "   # exit code 2")
		if !ok {
			continue
		}
		args := strings.Fields(strings.Replace(strings.TrimPrefix(command, "go run ./cmd/ahp-gateway "), "'git push --force'", "COMMAND", 1))
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

// demo starts the demo on a free port and returns its URL.
func demo(t *testing.T, binary string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, binary, "demo", "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return strings.TrimSpace(url)
		}
	}
	t.Fatal("the demo ended without listening")
	return ""
}
