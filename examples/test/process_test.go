package examples

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what has to happen. It is no
// expectation: what takes longer has hung.
const patience = time.Minute

// root is the folder of the repository, and programs holds what it builds.
var root, programs string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if root, err = filepath.Abs("../.."); err != nil {
		panic(err)
	}
	if programs, err = os.MkdirTemp("", "ahp-examples-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(programs)
	for name, folder := range map[string]string{
		"ahp-gateway": "cmd/ahp-gateway", "backend-go": "examples/backend-go", "opa": "examples/opa",
	} {
		build := exec.Command("go", "build", "-o", filepath.Join(programs, name), ".")
		build.Dir = filepath.Join(root, folder)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build %s: %v\n%s", folder, err, out)
			return 1
		}
	}
	return m.Run()
}

// process is a running program whose lines are kept.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu    sync.Mutex
	lines []string // of both its outputs
	more  chan struct{}
}

// start runs a program in a folder and a process group of its own until the test
// ends. The environment has nothing beside PATH and HOME but env.
func start(t *testing.T, folder string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{}), more: make(chan struct{})}
	p.cmd.Dir = folder
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
		r.Close()
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s wrote:\n%s", strings.Join(args, " "), p.output())
		}
	})
	return p
}

// wait returns what follows the prefix in the first line that has it.
func (p *process) wait(t *testing.T, prefix string) string {
	t.Helper()
	deadline := time.After(patience)
	for seen := 0; ; {
		p.mu.Lock()
		lines, more := p.lines[seen:], p.more
		p.mu.Unlock()
		for _, line := range lines {
			if _, rest, ok := strings.Cut(line, prefix); ok {
				return rest
			}
		}
		seen += len(lines)
		select {
		case <-more:
		case <-p.done:
			t.Fatalf("%s ended without a line that has %q:\n%s", p.cmd.Path, prefix, p.output())
		case <-deadline:
			t.Fatalf("%s wrote no line that has %q:\n%s", p.cmd.Path, prefix, p.output())
		}
	}
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// terminate sends SIGTERM.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the end and returns the exit code, -1 after a signal.
func (p *process) ended(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("%s does not end", p.cmd.Path)
	}
	return p.cmd.ProcessState.ExitCode()
}

// need returns the path of a program. Where it is missing the test is skipped,
// in the gate it fails.
func need(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("NOT TESTED: there is no %s", name)
		}
		t.Skipf("NOT TESTED: there is no %s", name)
	}
	return path
}

// command runs a program to its end and returns what it wrote.
func command(t *testing.T, folder, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = folder
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// installed returns a folder under .cache that install has filled. It is filled
// once for every content that it depends on.
func installed(t *testing.T, what, content string, install func(folder string)) string {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	folder := filepath.Join(root, ".cache", "examples-"+what+"-"+hex.EncodeToString(sum[:8]))
	complete := filepath.Join(folder, "complete")
	if _, err := os.Stat(complete); err == nil {
		return folder
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	install(folder)
	write(t, complete, "")
	return folder
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// body returns all of a response's body.
func body(t *testing.T, r io.ReadCloser) string {
	t.Helper()
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
