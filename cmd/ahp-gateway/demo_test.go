package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/config"
)

// words splits a line as a POSIX shell does, as far as the demo's lines need.
func words(line string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`'[^']*'|[^\s']+`).FindAllString(line, -1) {
		all = append(all, strings.Trim(m, "'"))
	}
	return all
}

// Every line that the demo prints does what is written above it.
func TestDemoLines(t *testing.T) {
	p := launch(t, "demo", "--listen", "127.0.0.1:0")
	p.stdout.await(t, `(?m)^listening on http://127\.0\.0\.1:\d+$`, 1)
	p.stdout.await(t, `Ctrl-C ends the demo`, 1)
	counts := make(map[string]int)
	wants := ""
	for line := range strings.Lines(p.stdout.String()) {
		w := words(line)
		switch {
		case strings.HasPrefix(line, "#"):
			wants = strings.TrimSpace(line)
		case len(w) > 0 && w[0] == "curl":
			i := slices.Index(w, "-d")
			req, err := http.NewRequest(http.MethodPost, w[2], strings.NewReader(w[i+1]))
			if err != nil {
				t.Fatal(err)
			}
			name, value, _ := strings.Cut(w[slices.Index(w, "-H")+1], ": ")
			req.Header.Set(name, value)
			resp, err := once.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			want := `"effects":[]`
			if strings.HasSuffix(wants, "denied") {
				want = `"code":"io.ahp-gateway.demo.force_push"`
			}
			if got := string(body); !strings.Contains(got, want) {
				t.Errorf("%s: %s answers %s; want %s", wants, line, got, want)
			}
			counts[wants+" by curl"]++
		case len(w) > 1 && w[1] == "send":
			if w[0] != binary {
				t.Errorf("%s: the line calls %s; want the program as it was called, %s", wants, w[0], binary)
			}
			out, err := exec.Command(w[0], w[1:]...).CombinedOutput()
			got := fmt.Sprintf("%s %v", out, err)
			want := "pass\n <nil>"
			if strings.HasSuffix(wants, "denied") {
				want = "deny: A force push can destroy the work of others. (io.ahp-gateway.demo.force_push)\n exit status 2"
			}
			if got != want {
				t.Errorf("%s: %s prints %q; want %q", wants, line, got, want)
			}
			counts[wants+" by send"]++
		}
	}
	if len(counts) != 2*2*len(ahp.Versions) {
		t.Errorf("the demo offers %v; want denied and passed, by curl and by send, for each snapshot", counts)
	}
	admin := p.stdout.await(t, `administration: (http://\S+)/readyz`, 1)[1]
	if got := get(t, admin+"/readyz"); got != "ready\n" {
		t.Errorf("/readyz = %q; want ready", got)
	}
	p.signal(os.Interrupt)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code after Ctrl-C = %d; want 0. It wrote %s", code, p.stderr)
	}
	if got := p.stderr.String(); got != "" {
		t.Errorf("standard error = %q; want nothing", got)
	}
}

// demo runs a demo in this process until the test ends, and returns its URL.
func demo(t *testing.T, s *signals) (url string, ended <-chan int) {
	stdout := newOutput()
	p := program{stdin: strings.NewReader(""), stdout: stdout, stderr: newOutput(), notify: s.notify}
	ctx, cancel := context.WithCancel(context.Background())
	done, code := make(chan struct{}), make(chan int, 1)
	go func() {
		defer close(done)
		code <- p.run(ctx, []string{"ahp-gateway", "demo", "--listen", "127.0.0.1:0"})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return stdout.await(t, `listening on (http://\S+)`, 1)[1], code
}

func TestDemoPolicies(t *testing.T) {
	url, _ := demo(t, newSignals())
	for _, version := range []string{"0.1", "draft"} {
		for _, c := range []struct {
			args []string
			code int
			want string
		}{
			{[]string{"--command", "rm -rf /"}, 2, "io.ahp-gateway.demo.remove_root"},
			{[]string{"--command", "git push -f"}, 2, "io.ahp-gateway.demo.force_push"},
			{[]string{"--tool", "Write", "--kind", "file_write", "--input", `{"text":"key AKIA` + `ABCDEFGHIJKLMNOP"}`}, 2, "io.ahp-gateway.demo.secret"},
			{[]string{"--command", "rm -rf build"}, 0, "pass"},
			{[]string{"--tool", "Read", "--kind", "file_read", "--input", `{"path":"README.md"}`}, 0, "pass"},
		} {
			r := call(t, "", append([]string{"send", "--url", url, "--protocol-version", version}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.stdout, c.want) {
				t.Errorf("send %s %q = %d, %q; want %d, %s", version, c.args, r.code, r.stdout, c.code, c.want)
			}
		}
	}
}

// The claim of conformance agrees with what a gateway does: every event that
// draft lets a harness ask about is claimed, and is decided. AHP-CORE-002.
func TestClaimIsServed(t *testing.T) {
	url, _ := demo(t, newSignals())
	claimed := newConformance().Snapshots[1].Events.Intercept
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		if !e.Interceptable(ahp.Draft) {
			continue
		}
		event, err := os.ReadFile(filepath.Join("..", "..", "ahp", "testdata", "draft", "events", e.String()+".json"))
		if err != nil {
			t.Fatal(err)
		}
		effects := `["message"]` // which every event allows
		if e == ahp.ToolBefore {
			effects = `["deny"]` // for the demo's policies
		}
		body := `{"jsonrpc":"2.0","id":"evt-1","method":"hooks/intercept","params":{"protocolVersion":"draft","event":` + string(event) +
			`,"capabilities":{"effects":` + effects + `}}}`
		if r := call(t, body, "send", "--url", url, "--file", "-"); !strings.HasPrefix(r.stdout, "pass") || !slices.Contains(claimed, e.String()) {
			t.Errorf("hooks/intercept of %s = %q, claimed %t; want pass, as claimed", e, r.stdout, slices.Contains(claimed, e.String()))
		}
	}
}

// The exit code of a line for go run is not the program's, and that is said.
func TestDemoSaysWhatGoRunHides(t *testing.T) {
	for name, want := range map[string]bool{"ahp-gateway": false, "/tmp/go-build12/b001/exe/ahp-gateway": true} {
		text := string(instructions(program{name: name}.invocation(), "http://127.0.0.1:1", "http://127.0.0.1:2"))
		if got := strings.Contains(text, "go run ends with 1"); got != want {
			t.Errorf("instructions of %s speak of the exit code of go run: %t; want %t\n%s", name, got, want, text)
		}
	}
}

func TestDemoEnds(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		s := newSignals()
		_, ended := demo(t, s)
		s.send(sig)
		if code := <-ended; code != 0 {
			t.Errorf("exit code of the demo after %v = %d; want 0", sig, code)
		}
	}
}

func TestDemoPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := call(t, "", "demo", "--listen", l.Addr().String())
	if r.code != 1 || !strings.Contains(r.stderr, "address already in use (--listen 127.0.0.1:0 takes any free port)") {
		t.Errorf("demo on a port that is taken = %d, %q; want 1 and what to do", r.code, r.stderr)
	}
}

func TestFreeAdmin(t *testing.T) {
	usual := config.Default().Admin
	if got := freeAdmin(usual); got != "127.0.0.1:0" {
		t.Errorf("freeAdmin(%s) = %s; want any free port beside the public one", usual, got)
	}
	l, err := net.Listen("tcp", usual)
	if err == nil {
		defer l.Close()
	}
	// Now somebody has it, whoever that is.
	if got := freeAdmin("127.0.0.1:0"); got != "127.0.0.1:0" {
		t.Errorf("freeAdmin with %s taken = %s; want any free port", usual, got)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":            "''",
		"git":         "git",
		"./bin/x-1.0": "./bin/x-1.0",
		"git status":  "'git status'",
		"it's":        `'it'\''s'`,
		"$HOME":       "'$HOME'",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s; want %s", in, got, want)
		}
	}
	for name, want := range map[string]string{
		"ahp-gateway":                             "ahp-gateway",
		"/tmp/go-build12/b001/exe/ahp-gateway":    "go run ./cmd/ahp-gateway",
		"/opt/my tools/ahp-gateway":               "'/opt/my tools/ahp-gateway'",
		"/root/.cache/go-build/aa/bb/ahp-gateway": "go run ./cmd/ahp-gateway",
	} {
		if got := (program{name: name}).invocation(); got != want {
			t.Errorf("invocation of %s = %s; want %s", name, got, want)
		}
	}
}
