// They are about processes, which the race detector does not look into.

//go:build linux && !race

package ahpgateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// unrun are the blocks of commands in the documentation that cannot be run where
// the tests run, word for word, with the reason. What is not here is run.
var unrun = []struct{ page, text, reason string }{
	{"docs/quickstart.md", "go install github.com/ahp-gateway/ahp-gateway/cmd/ahp-gateway@latest", "it needs a release"},
	{"docs/deploy/kubernetes.md", `helm install ahp-gateway deploy/helm/ahp-gateway --namespace ahp --create-namespace --values values.yaml
kubectl --namespace ahp rollout status deployment/ahp-gateway`, "it needs a cluster"},
	{"docs/deploy/kubernetes.md", "helm template ahp-gateway deploy/helm/ahp-gateway --values values.yaml > rendered.yaml", "it needs Helm; the chart's own tests do that"},
	{"docs/deploy/kubernetes.md", "helm uninstall ahp-gateway --namespace ahp", "it needs a cluster"},
	{"docs/deploy/vm.md", `sudo apt install ./ahp-gateway_*_amd64.deb
sudo systemctl enable --now ahp-gateway`, "it needs a machine with systemd"},
	{"docs/deploy/vm.md", `sudo ahp-gateway validate --config /etc/ahp-gateway/gateway.yaml
sudo systemctl reload ahp-gateway`, "it needs a machine with systemd"},
	{"docs/deploy/laptop.md", `docker run --rm --read-only --cap-drop ALL --publish 127.0.0.1:8787:8787 --volume "$PWD:/etc/ahp-gateway:ro" ghcr.io/ahp-gateway/ahp-gateway`, "it needs a container engine"},
	{"docs/deploy/verify.md", `sha256sum --check --ignore-missing checksums.txt
cosign verify-blob checksums.txt --bundle checksums.txt.sigstore.json \
  --certificate-identity https://github.com/ahp-gateway/ahp-gateway/.github/workflows/release.yaml@refs/tags/v1.2.3 \
  --certificate-oidc-issuer https://token.actions.githubusercontent.com
gh attestation verify ahp-gateway_1.2.3_linux_amd64.tar.gz --repo ahp-gateway/ahp-gateway`, "it needs a release"},
	{"docs/deploy/verify.md", `cosign verify ghcr.io/ahp-gateway/ahp-gateway:v1.2.3 \
  --certificate-identity https://github.com/ahp-gateway/ahp-gateway/.github/workflows/release.yaml@refs/tags/v1.2.3 \
  --certificate-oidc-issuer https://token.actions.githubusercontent.com
cosign verify-attestation --type spdxjson ghcr.io/ahp-gateway/ahp-gateway:v1.2.3 \
  --certificate-identity https://github.com/ahp-gateway/ahp-gateway/.github/workflows/release.yaml@refs/tags/v1.2.3 \
  --certificate-oidc-issuer https://token.actions.githubusercontent.com
gh attestation verify oci://ghcr.io/ahp-gateway/ahp-gateway:v1.2.3 --repo ahp-gateway/ahp-gateway`, "it needs a release"},
	{"docs/deploy/verify.md", `git checkout v1.2.3
go -C deploy/release run . image --version v1.2.3 --output ../../dist/image`, "it needs a tag; the tests of deploy/release build the image twice"},
	{"docs/deploy/laptop.md", `cd examples/compose
./keys.sh
docker compose up --build`, "it needs a container engine"},
	{"docs/deploy/laptop.md", `cd examples/compose
./run.sh`, "it takes minutes; examples/test runs it"},
	{"docs/backends/python.md", `cd examples/backend-python
python3 -m venv .venv
.venv/bin/pip install --quiet -r requirements.txt
POLICY_TOKEN=change-me .venv/bin/python main.py --listen 127.0.0.1:9001`, "it installs packages; examples/test runs these lines"},
	{"docs/backends/typescript.md", `cd examples/backend-typescript
npm ci --no-audit --no-fund
npm run --silent build
POLICY_TOKEN=change-me node dist/main.js 127.0.0.1:9001`, "it installs packages; examples/test runs these lines"},
	{"docs/backends/opa.md", `cd examples/opa
POLICY_TOKEN=change-me go run . -listen 127.0.0.1:9001 -policy policy`, "it builds OPA, which takes minutes; examples/test runs this line"},
	{"bench/README.md", `go run ./bench run      # the gateway in every setting; needs Go and Linux, takes about half an hour
go run ./bench peers    # beside nginx, HAProxy, Traefik and Caddy, of which it takes those that are on the PATH
go run ./bench check    # a short run, held against thresholds.json
go run ./bench report   # a table of both results, and results/report.html, which needs no network
go run ./bench compare -old FILE   # this gateway beside another build of it
go run ./bench drive -url http://127.0.0.1:8787/hooks   # a load on a gateway that is running already`, "it takes hours; make bench-check runs a short one"},
}

// TestDocs runs what the documentation shows, page by page, in the order of the
// page: files are written, configurations and registrations validated, messages
// read, commands run and what they print compared. A block of a kind that it does
// not know is a failure, so that none comes in untested.
func TestDocs(t *testing.T) {
	for _, program := range []string{"bash", "curl", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("the documentation needs %s: %v", program, err)
			}
			t.Skipf("the documentation needs %s: %v", program, err)
		}
	}
	bin := t.TempDir()
	binary := filepath.Join(bin, "ahp-gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/ahp-gateway").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	help := &manual{binary: binary, pages: map[string]string{}, given: map[string]bool{}}
	metrics, keys := read(t, "docs/reference/metrics.md"), read(t, "docs/reference/configuration.md")
	used, visited := make([]bool, len(unrun)), 0
	var mu sync.Mutex
	names := documents(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mu.Lock()
			visited++
			mu.Unlock()
			text := read(t, name)
			if name == "docs/deploy/kubernetes.md" {
				checkValues(t, text)
			} else {
				checkNames(t, text, metrics, keys)
			}
			s := newSession(t, bin, help)
			blocks := append(fences(t, text), fence{})
			for i, b := range blocks[:len(blocks)-1] {
				s.visit(b, blocks[i+1], func() bool {
					for i, u := range unrun {
						if u.page == name && strings.TrimSpace(u.text) == strings.TrimSpace(b.text) {
							mu.Lock()
							used[i] = true
							mu.Unlock()
							return true
						}
					}
					return false
				})
			}
		})
	}
	t.Cleanup(func() {
		for i, u := range unrun {
			if !used[i] && visited == len(names) { // and not some, by -run
				t.Errorf("%s has no block any more that is not run because %s:\n%s", u.page, u.reason, u.text)
			}
		}
	})
}

// documents returns the pages of the site, those at the root of the repository
// included. The README has tests of its own.
func documents(t *testing.T) []string {
	t.Helper()
	names := []string{"TENANTS.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md", "bench/README.md"}
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			names = append(names, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 25 {
		t.Fatalf("there are %d pages; want at least 25", len(names))
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fence is one fenced block of a page.
type fence struct {
	line            int
	language, title string
	included        string // the file that it includes
	text            string
}

var fenceStart = regexp.MustCompile("^( *)(```+) *([A-Za-z]*)(.*)$")
var fenceTitle = regexp.MustCompile(`title="([^"]*)"`)

// fences returns the blocks of a page, what they include in its place.
func fences(t *testing.T, text string) []fence {
	t.Helper()
	var found []fence
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		m := fenceStart.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		b := fence{line: i + 1, language: m[3]}
		if title := fenceTitle.FindStringSubmatch(m[4]); title != nil {
			b.title = title[1]
		}
		var body []string
		for i++; strings.TrimSpace(lines[i]) != m[2]; i++ {
			if i == len(lines)-1 {
				t.Fatalf("line %d: a block does not end", b.line)
			}
			line := strings.TrimPrefix(lines[i], m[1])
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), `--8<-- "`); ok {
				b.included = strings.TrimSuffix(name, `"`)
				line = strings.TrimSuffix(read(t, b.included), "\n")
			}
			body = append(body, line)
		}
		b.text = strings.Join(body, "\n") + "\n"
		found = append(found, b)
	}
	return found
}

// session is what a reader has who follows one page: a folder, a shell, and
// servers that run in other terminals.
type session struct {
	t       *testing.T
	dir     string
	env     []string
	help    *manual
	ports   map[string]string // of the page → free ones
	printed string            // by the last command
	ran     bool
}

func newSession(t *testing.T, bin string, help *manual) *session {
	s := &session{t: t, dir: t.TempDir(), help: help, ports: map[string]string{}}
	for _, name := range []string{"HOME", "TMPDIR", "LANG", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS"} {
		if value, set := os.LookupEnv(name); set {
			s.env = append(s.env, name+"="+value)
		}
	}
	s.env = append(s.env, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "PYTHONUNBUFFERED=1",
		// What configurations refer to.
		"AHP_ADMIN_KEY="+strings.Repeat("a", 64), "AHP_SECRETS_KEY="+strings.Repeat("b", 64), "REDIS_PASSWORD=c", "ACME_POLICY_TOKEN=d", "POLICY_TOKEN=e")
	certificate, key := pair(t)
	for name, text := range map[string]string{
		"tls/server.crt": certificate, "tls/server.key": key, "tls/clients.pem": certificate, "tls/roots.pem": certificate,
		"tls/gateway.crt": certificate, "tls/gateway.key": key, "secrets/acme/policy/token": "secret", "secrets/acme/policy/client-secret": "secret",
		"tenants/acme.yaml":       "id: acme\nkeys: [{sha256: " + strings.Repeat("cd", 32) + "}]\nregistration: ../registrations/acme.yaml\n",
		"registrations/acme.yaml": policy,
	} {
		s.write(name, text)
	}
	return s
}

func (s *session) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if !filepath.IsLocal(name) {
		s.t.Fatalf("%s is not a file below the reader's folder", name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

var loopback = regexp.MustCompile(`127\.0\.0\.1:([1-9][0-9]*)`)

// own replaces the ports of the page by free ones: somebody may try the page at
// this moment.
func (s *session) own(text string) string {
	return loopback.ReplaceAllStringFunc(text, func(address string) string {
		if s.ports[address] == "" {
			s.ports[address] = s.help.free(s.t)
		}
		return s.ports[address]
	})
}

// theirs is the reverse of own.
func (s *session) theirs(text string) string {
	for page, ours := range s.ports {
		text = strings.ReplaceAll(text, ours, page)
	}
	return text
}

// visit does with one block what a reader would do. next is the one after it.
func (s *session) visit(b, next fence, excused func() bool) {
	s.t.Helper()
	fail := func(format string, args ...any) {
		s.t.Helper()
		s.t.Errorf("line %d: %s\n%s", b.line, fmt.Sprintf(format, args...), b.text)
	}
	switch {
	case b.title == "output":
		if !s.ran {
			fail("an output without a command before it")
		} else if !same(b.text, s.theirs(s.printed)) {
			fail("the command above printed\n%s\nwant", s.theirs(s.printed))
		}
		s.ran = false
	case b.language == "sh":
		for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
			if err := s.help.check(line); err != nil {
				fail("%v", err)
			}
		}
		switch {
		case excused():
		case strings.HasPrefix(b.title, "Terminal"):
			s.serve(b)
		default:
			s.run(b, next)
		}
	case b.language == "yaml" && strings.HasPrefix(b.title, "values"):
		s.write(b.title, b.text)
		if err := s.help.values(b.text); err != nil {
			fail("%v", err)
		}
	case b.language == "yaml" && strings.Contains(b.text, "\ngroups:\n"):
		// The alerts, which the chart's tests have fire.
	case b.language == "yaml":
		text := s.own(b.text)
		if b.title != "" {
			s.write(b.title, text)
		}
		if err := s.validate(text); err != nil {
			fail("%v", err)
		}
	case b.language == "json":
		if b.title != "" {
			s.write(b.title, s.own(b.text))
		}
		if err := s.decode([]byte(b.text)); err != nil {
			fail("%v", err)
		}
	case strings.HasPrefix(b.included, "examples/") && slices.Contains([]string{"go", "python", "rego", "ts"}, b.language):
		// The examples have tests of their own.
	case b.language == "python" && b.title != "":
		s.write(b.title, s.own(b.text)) // a command that runs it has to follow
	case b.language == "text":
		if err := s.plain(b.text); err != nil {
			fail("%v", err)
		}
	default:
		fail("a block of the kind %q, which nothing tests", b.language)
	}
}

// same reports whether got is want, in which … stands for anything in a line.
func same(want, got string) bool {
	pattern := regexp.QuoteMeta(strings.TrimSpace(want))
	pattern = strings.ReplaceAll(pattern, "…", ".*")
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(strings.TrimSpace(got))
}

// script is a block for bash, which goes on where the last one ended.
func (s *session) script(b fence) string {
	return "set -euo pipefail\n[ ! -e .exports ] || . ./.exports\n" + s.own(b.text) + "\nexport -p > .exports\n"
}

// looks are the programs that only look: a block of them is repeated for some
// seconds until it shows what the page says, because an audit record is written
// some milliseconds after the answer.
var looks = regexp.MustCompile(`^(?:(?:curl|grep|python3 -m json\.tool|sum) .*\n)+$`)

// run runs a block. next is the one after it, which may say what it prints.
func (s *session) run(b, next fence) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	until := time.Now().Add(10 * time.Second)
	for {
		cmd := exec.CommandContext(ctx, "bash", "-c", s.script(b))
		var out, problems bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, &out, &problems
		err := cmd.Run()
		s.printed, s.ran = out.String(), true
		shown := err == nil && (next.title != "output" || same(next.text, s.theirs(s.printed)))
		if !shown && looks.MatchString(b.text) && time.Now().Before(until) {
			continue
		}
		if err != nil {
			s.t.Errorf("line %d: %v\n%s\nprinted\n%s%s", b.line, err, b.text, out.Bytes(), problems.Bytes())
		}
		return
	}
}

// serve runs a block in a terminal of its own until the page ends, and returns
// when it listens.
func (s *session) serve(b fence) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail\n[ ! -e "+s.dir+"/.exports ] || . "+s.dir+"/.exports\nexec "+strings.TrimSpace(s.own(b.text)))
	cmd.Dir, cmd.Env = s.dir, s.env
	if strings.HasSuffix(b.title, "in a checkout") {
		cmd.Dir = "" // the repository's
	}
	// With all that it has started, such as what go run has built.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out := &watched{found: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-out.found:
	case <-ended:
		s.t.Fatalf("line %d: ended without listening\n%s\nprinted\n%s", b.line, b.text, out.text())
	case <-time.After(time.Minute):
		s.t.Fatalf("line %d: does not listen\n%s\nprinted\n%s", b.line, b.text, out.text())
	}
}

// watched is output in which "listening on" is waited for.
type watched struct {
	mu    sync.Mutex
	b     bytes.Buffer
	found chan struct{}
	once  sync.Once
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p)
	if bytes.Contains(w.b.Bytes(), []byte("listening on ")) {
		w.once.Do(func() { close(w.found) })
	}
	return len(p), nil
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// validate loads a gateway file, a tenant's file or a registration document.
func (s *session) validate(text string) error {
	var top map[string]any
	if err := yaml.Unmarshal([]byte(text), &top); err != nil {
		return err
	}
	file, flag := ".checked.yaml", "--config"
	switch {
	case top["hooks"] != nil:
		flag = "--registration"
	case top["id"] != nil:
		if top["keys"] == nil && top["certificates"] == nil { // the admin API makes one
			text += "\nkeys: [{sha256: " + strings.Repeat("ab", 32) + "}]\n"
		}
		s.write(".tenants/one.yaml", text)
		text = "tenantsDir: .tenants\nadmin: \"off\"\n"
		if strings.Contains(s.read(".tenants/one.yaml"), "stored: true") {
			text = "tenantsDir: .tenants\nadminApi: {keys: [{env: AHP_ADMIN_KEY}], secretsKey: {env: AHP_SECRETS_KEY}}\n"
		}
	}
	s.write(file, text)
	cmd := exec.Command(s.help.binary, "validate", flag, file)
	cmd.Dir, cmd.Env = s.dir, s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("validate %s: %w\n%s", flag, err, out)
	}
	return nil
}

func (s *session) read(name string) string { return read(s.t, filepath.Join(s.dir, name)) }

// decode reads a message or a registration document, whichever it is.
func (s *session) decode(text []byte) error {
	var top struct {
		JSONRPC   string
		Method    string
		Hooks     []any
		Snapshots []any
	}
	if err := json.Unmarshal(text, &top); err != nil {
		return err
	}
	text = bytes.TrimSpace(text)
	switch {
	case top.Hooks != nil:
		return s.validate(string(text))
	case top.Snapshots != nil: // the conformance claim, which is printed
		return nil
	case top.Method != "":
		var m ahp.Message
		return ahpError(ahp.Decode(text, &m))
	case top.JSONRPC != "":
		version, _ := ahp.ParseVersion(string(ahp.Text(ahp.Member(ahp.Member(text, "result"), "protocolVersion"))))
		call := ahp.Call{ID: ahp.Member(text, "id"), Version: version}
		if ahp.Member(ahp.Member(text, "result"), "configuration") != nil {
			if _, f := ahp.DecodeConfiguration(&call, text); !f.OK() {
				return fmt.Errorf("an answer that is a failure: %v", f)
			}
			return nil
		}
		answer := ahp.Response{Body: text}
		if f := ahp.DecodeResponse(&call, &answer); !f.OK() {
			return fmt.Errorf("an answer that is a failure: %v", f)
		}
		for effect := range ahp.Elements(answer.Effects) {
			if _, wrong := ahp.ToolBefore.CheckEffect(effect); wrong != "" {
				return fmt.Errorf("effect %s: %s", effect, wrong)
			}
		}
		return nil
	default:
		return fmt.Errorf("JSON that is neither a message nor a registration document")
	}
}

func ahpError(e *ahp.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// plain looks for what ought to be tested in a block that is none of the others:
// command lines have to be good ones, and configurations are loaded. TENANTS.md
// shows both in this way.
func (s *session) plain(text string) error {
	body := text
	if strings.HasPrefix(body, "# ") {
		_, body, _ = strings.Cut(body, "\n")
	}
	if strings.HasPrefix(body, "tenantsDir:") || strings.HasPrefix(body, "id:") {
		return s.validate(body)
	}
	if _, usage, ok := strings.Cut(text, "\nUsage:\n"); ok { // what --help prints: of it the examples
		_, text, _ = strings.Cut(usage, "\nExamples:\n")
		text, _, _ = strings.Cut(text, "\n\n")
	}
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if err := s.help.check(line); err != nil {
			return err
		}
		if program, _, _ := strings.Cut(line, " "); slices.Contains([]string{"curl", "docker", "helm", "kubectl", "go", "make"}, program) {
			return fmt.Errorf("a command in a block that is not run: %s", line)
		}
	}
	return nil
}

// policy is a registration that pages refer to.
const policy = `{"protocolVersion": "0.1", "hooks": [{"id": "com.example.policy", "transport": {"type": "http", "url": "https://policy.example.com/ahp"},
 "subscriptions": [{"events": ["tool.before"], "mode": "intercept", "timeoutMs": 750, "failurePolicy": "fail-closed"}]}]}`

// manual knows what --help says of every command. It is shared by all pages.
type manual struct {
	binary string
	mu     sync.Mutex
	pages  map[string]string
	given  map[string]bool // addresses
}

// free returns a free address on loopback that no other page was given.
func (m *manual) free(t *testing.T) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		if !m.given[address] {
			m.given[address] = true
			return address
		}
	}
}

func (m *manual) of(path string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.pages[path]; !known {
		out, _ := exec.Command(m.binary, append(strings.Fields(path), "--help")...).Output()
		m.pages[path] = string(out)
	}
	return m.pages[path]
}

var words = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s|;&<>()]+|[|;&<>()]`)

// check looks whether the commands and flags of ahp-gateway in a line exist.
func (m *manual) check(line string) error {
	all := words.FindAllString(line, -1)
	for i := 0; i < len(all); i++ {
		if path := all[i]; path != "ahp-gateway" && !strings.HasSuffix(path, "bin/ahp-gateway") || i > 0 && !strings.Contains("|;&(", all[i-1]) {
			continue
		}
		path, open := "", true
		for i++; i < len(all) && !strings.Contains("|;&<>()#", all[i]); i++ {
			word := all[i]
			switch {
			case strings.HasPrefix(word, "-"):
				open = false
				flag, _, _ := strings.Cut(word, "=")
				if !regexp.MustCompile(`(?m)^ +(-[a-z], )?` + regexp.QuoteMeta(flag) + `(,| |$)`).MatchString(m.of(path)) {
					return fmt.Errorf("ahp-gateway %s has no flag %s", path, flag)
				}
			case open && regexp.MustCompile(`(?m)^  `+regexp.QuoteMeta(word)+` `).MatchString(commandsOf(m.of(path))):
				path = strings.TrimSpace(path + " " + word)
			case open && commandsOf(m.of(path)) != "":
				return fmt.Errorf("ahp-gateway %s has no command %s", path, word)
			default:
				open = false
			}
		}
	}
	return nil
}

// commandsOf returns the part of a help text that lists commands.
func commandsOf(help string) string {
	_, list, _ := strings.Cut(help, "\nAvailable Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	return list
}

var (
	metricName = regexp.MustCompile(`\bahp_gateway_[a-z_]+`)
	settingKey = regexp.MustCompile("`((?:adminApi|adminTLS|audit|auth|backend|backends|breaker|dedupe|discovery|failClosed|limits|log|metrics|secrets|shared|tls)\\.[a-z][A-Za-z.]*)`")
)

// values holds values of the chart against its schema.
func (m *manual) values(text string) error {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	file, err := os.ReadFile("deploy/helm/ahp-gateway/values.schema.json")
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(file))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("values.schema.json", document); err != nil {
		return err
	}
	schema, err := c.Compile("values.schema.json")
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// checkValues looks for the values of the chart that a page names.
func checkValues(t *testing.T, text string) {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "deploy/helm/ahp-gateway/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`([a-zA-Z]+(?:\\.[a-zA-Z]+)+)`").FindAllStringSubmatch(text, -1) {
		at := any(values)
		for part := range strings.SplitSeq(m[1], ".") {
			object, ok := at.(map[string]any)
			if at = object[part]; ok && (part == "config" || part == "tenants" || part == "secretMounts") {
				break // whatever there is of the gateway's own
			}
			if _, known := object[part]; !ok || !known {
				t.Errorf("the chart has no value %s", m[1])
				break
			}
		}
	}
}

// checkNames looks for the metrics and settings that a page names.
func checkNames(t *testing.T, text, metrics, keys string) {
	t.Helper()
	for _, name := range metricName.FindAllString(text, -1) {
		name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if !strings.Contains(metrics, "{#"+name+"}") && !strings.HasSuffix(name, "_") {
			t.Errorf("there is no metric %s", name)
		}
	}
	for _, m := range settingKey.FindAllStringSubmatch(text, -1) {
		if key := strings.TrimPrefix(m[1], "."); !strings.Contains(keys, "{#"+key+"}") {
			t.Errorf("there is no setting %s", key)
		}
	}
}
