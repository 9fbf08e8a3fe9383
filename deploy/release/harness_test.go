package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for something that is going to happen.
const patience = 15 * time.Second

// needRoot skips a test that takes root, but never where everything has to run.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("this test takes root")
	}
	t.Skip("this test takes root")
}

// need returns where a program is. Where it is not, the test is skipped, but never
// where everything has to run.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatalf("%s is not installed", program)
	default:
		t.Skipf("%s is not installed", program)
	}
	return ""
}

// gateway is the program at work.
type gateway struct {
	cmd *exec.Cmd
	url string // of the public listener
	log *bytes.Buffer
}

// start starts cmd and waits until events are served. The program is asked to end
// when the test does, and has to end well.
func start(t *testing.T, cmd *exec.Cmd) *gateway {
	t.Helper()
	g := &gateway{cmd: cmd, log: new(bytes.Buffer)}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = g.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		if lines.Scan() {
			first <- lines.Text()
		}
		close(first)
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s ended with %v\n%s", cmd, err, g.log)
		}
		stuck.Stop()
	})
	select {
	case line := <-first:
		url, ok := strings.CutPrefix(line, "listening on ")
		if !ok {
			t.Fatalf("%s wrote %q; want where it listens\n%s", cmd, line, g.log)
		}
		g.url = url
	case <-time.After(patience):
		t.Fatalf("%s does not listen\n%s", cmd, g.log)
	}
	return g
}

// denier is a policy backend that denies everything.
func denier(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"0.1","effects":[{"type":"deny","reason":"Not here."}]}}`, message.ID)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// registration is a document with one fail-closed backend.
func registration(url string) string {
	return fmt.Sprintf(`{"protocolVersion":"0.1","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":%q},`+
		`"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed"}]}]}`, url)
}

// freePort returns a port that was free just now, for a file that has to name one.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// status asks for a page and returns its status.
func status(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// shell runs a script that has to succeed and returns what it wrote.
func shell(t *testing.T, script string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", append([]string{"-ec", script}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", script, args, err, out)
	}
	return string(out)
}

// put writes a file that everybody can read.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
}
