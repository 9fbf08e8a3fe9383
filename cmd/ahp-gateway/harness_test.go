package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// patience is how long a test waits for something that is going to happen. It
// is below pollEvery, so that no test passes by polling what it means to be
// notified of.
const patience = 8 * time.Second

// binary is the built command.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "ahp-gateway")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder)
		binary = filepath.Join(folder, "ahp-gateway")
		build := exec.Command("go", "build", "-ldflags", "-X main.version=v1.2.3-test", "-o", binary, ".")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n%s", build, err, out)
			return 1
		}
		return m.Run()
	}())
}

// Secrets that the tests give to the command, and that it may never write.
const (
	canaryKey    = "canary-key-4f1d0c2b9a8e7f66"
	canaryToken  = "canary-token-0a1b2c3d4e5f6071"
	canaryHeader = "canary-header-99887766554433"
)

// checkSecrets fails the test if a secret stands in what the command wrote.
func checkSecrets(t testing.TB, what, text string) {
	t.Helper()
	for _, secret := range []string{canaryKey, canaryToken, canaryHeader} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s holds a secret: …%s…", what, text[max(0, i-80):min(len(text), i+len(secret)+20)])
		}
	}
}

// output is what a command has written so far.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{} // closed, and replaced, when text grows
}

func newOutput() *output { return &output{grown: make(chan struct{})} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	close(o.grown)
	o.grown = make(chan struct{})
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await returns the submatches of the n-th match of pattern, once it is there.
func (o *output) await(t testing.TB, pattern string, n int) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		o.mu.Lock()
		all, grown := re.FindAllStringSubmatch(o.text.String(), n), o.grown
		o.mu.Unlock()
		if len(all) == n {
			return all[n-1]
		}
		select {
		case <-grown:
		case <-deadline:
			t.Fatalf("output has %d matches of %s; want %d. It is:\n%s", len(all), pattern, n, o)
		}
	}
}

// process is the built command at work.
type process struct {
	t              testing.TB
	cmd            *exec.Cmd
	stdout, stderr *output
	ended          chan struct{}
}

// launch starts the built command. It is killed when the test ends, and what
// it wrote is searched for secrets.
func launch(t testing.TB, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(binary, args...), stdout: newOutput(), stderr: newOutput(), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.begin()
	return p
}

func (p *process) begin() {
	p.t.Helper()
	p.cmd.Env = append(os.Environ(), "TEST_TOKEN="+canaryToken, "TEST_HEADER="+canaryHeader, "TEST_KEY="+canaryKey)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	p.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		checkSecrets(p.t, "standard output", p.stdout.String())
		checkSecrets(p.t, "standard error", p.stderr.String())
	})
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// exit returns the exit code once the process has ended, -1 if by a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("the process did not end; it wrote\n%s%s", p.stdout, p.stderr)
		return 0
	}
}

// urls returns where a serving process listens, once it does.
func (p *process) urls() (public, admin string) {
	p.t.Helper()
	public = p.stdout.await(p.t, `(?m)^listening on (http://127\.0\.0\.1:\d+)$`, 1)[1]
	admin = p.stderr.await(p.t, `admin on (http://127\.0\.0\.1:\d+)`, 1)[1]
	return public, admin
}

// quit ends a serving process and checks that it ended well.
func (p *process) quit() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		p.t.Errorf("exit code after SIGTERM = %d; want 0. It wrote\n%s", code, p.stderr)
	}
}

// result is how a command that ran in this process ended.
type result struct {
	code           int
	stdout, stderr string
}

// call runs a command in this process, without signals.
func call(t testing.TB, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := program{stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr, notify: func(chan<- os.Signal, ...os.Signal) {}}
	code := p.run(context.Background(), append([]string{"ahp-gateway"}, args...))
	r := result{code, stdout.String(), stderr.String()}
	checkSecrets(t, "standard output of "+strings.Join(args, " "), r.stdout)
	checkSecrets(t, "standard error of "+strings.Join(args, " "), r.stderr)
	return r
}

// folder puts files, given as name and content in turn, into a new folder and
// returns it.
func folder(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		put(t, filepath.Join(dir, files[i]), files[i+1])
	}
	return dir
}

// put writes a file as a careful editor does: beside the old one, then over it.
func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, path); err != nil {
		t.Fatal(err)
	}
}

// onePolicy is a 0.1 registration document of one fail-closed backend.
func onePolicy(url string, more ...string) string {
	return fmt.Sprintf(`{"protocolVersion":"0.1","hooks":[{"id":"com.example.policy","transport":{"type":"http","url":%q}%s,
"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed"}]}]}`,
		url, strings.Join(more, ""))
}

// openFile is a gateway file for one open tenant on free ports.
func openFile(registration string, more ...string) string {
	return "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nregistration: " + registration + "\n" + strings.Join(more, "\n") + "\n"
}

// askGateway posts a new event and returns the answer's body, with the status before
// it unless that is 200.
func askGateway(client *http.Client, url string) (string, error) {
	resp, err := client.Post(url+"/hooks", "application/json", bytes.NewReader(newEvent(ahp.V01).message()))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("HTTP %d: %s", resp.StatusCode, body), nil
	}
	return string(body), err
}

// once is a client that keeps no connection, so that no drain waits for it.
var once = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// expect fails the test unless the gateway's answer to a new event holds want.
func expect(t testing.TB, url, want string) {
	t.Helper()
	got, err := askGateway(once, url)
	if err != nil || !strings.Contains(got, want) {
		t.Errorf("answer to an event = %s, %v; want one with %s", got, err, want)
	}
}

// get returns the body of a page, with the status before it unless that is 200.
func get(t testing.TB, url string) string {
	t.Helper()
	resp, err := once.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	checkSecrets(t, url, string(body))
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("HTTP %d: %s", resp.StatusCode, body)
	}
	return string(body)
}
