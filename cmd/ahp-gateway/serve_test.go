package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

const (
	passed = `"effects":[]`
	denied = `denied by the fake backend`
)

// pair starts a backend that passes and one that denies, so that a test can
// tell which configuration is in use.
func pair(t testing.TB) (pass, deny *fakebackend.Server) {
	return fakebackend.Start(t), fakebackend.Start(t, fakebackend.Behave("deny"))
}

func TestServe(t *testing.T) {
	backend := fakebackend.Start(t, fakebackend.Behave("deny"))
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL,
		`,"authentication":{"type":"bearer","tokenEnv":"TEST_TOKEN"}`), "log: {level: debug, format: json}"))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, admin := p.urls()
	expect(t, public, denied)
	if got := backend.Await(1)[0].Header.Get("Authorization"); got != "Bearer "+canaryToken {
		t.Errorf("backend got Authorization %q; want the token of the environment", got)
	}
	if got := get(t, admin+"/readyz"); got != "ready\n" {
		t.Errorf("/readyz = %q; want ready", got)
	}
	if got, want := get(t, admin+"/metrics"), `ahp_gateway_decisions_total{ahp_tenant="default",ahp_verdict="deny"} 1`; !strings.Contains(got, want) {
		t.Errorf("/metrics has no line %s; it is\n%.3000s", want, got)
	}
	if got := get(t, admin+"/admin/config"); !strings.Contains(got, "tokenEnv: TEST_TOKEN") {
		t.Errorf("/admin/config = %s; want the reference to the token", got)
	}
	if got := get(t, public+"/metrics"); !strings.HasPrefix(got, "HTTP 404") {
		t.Errorf("/metrics on the public listener = %.80s; want 404", got)
	}
	p.quit()
	if got := p.stdout.String(); strings.Count(got, "\n") != 1 {
		t.Errorf("standard output = %q; want the listening line alone", got)
	}
	if got := p.stderr.String(); !strings.HasPrefix(got, `{"time":`) {
		t.Errorf("log = %s; want JSON as the file says", got)
	}
}

func TestServeFlagsOverTheFile(t *testing.T) {
	backend := fakebackend.Start(t)
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL), "log: {format: json}"))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"), "--log-format", "text")
	p.urls()
	if got := p.stderr.String(); !strings.HasPrefix(got, "time=") {
		t.Errorf("log = %s; want text as the flag says", got)
	}
	p.quit()
}

func TestReloadOnSIGHUP(t *testing.T) {
	pass, deny := pair(t)
	dir := folder(t, "gateway.yaml", openFile(onePolicy(pass.URL)))
	path := filepath.Join(dir, "gateway.yaml")
	p := launch(t, "serve", "--config", path)
	public, admin := p.urls()
	expect(t, public, passed)

	put(t, path, openFile(onePolicy(deny.URL), "limits: {body: 2MiB, inFlight: 7}"))
	p.signal(syscall.SIGHUP)
	p.stderr.await(t, `configuration reloaded" cause=hangup`, 1)
	p.stderr.await(t, `takes a restart" .*setting=limits\.body`, 1)
	expect(t, public, denied)

	put(t, path, openFile(onePolicy(pass.URL), "limitz: {}", "failClosed: {code: bad}"))
	p.signal(syscall.SIGHUP)
	p.stderr.await(t, `configuration refused, the running one stays in use" cause=hangup mistakes=2`, 1)
	for _, want := range []string{`configuration mistake" .*limitz`, `configuration mistake" .*failClosed\.code`} {
		p.stderr.await(t, want, 1)
	}
	expect(t, public, denied)
	if got, want := get(t, admin+"/metrics"), regexp.MustCompile(`(?m)^ahp_gateway_config_reloads_total{ahp_result="refused"} [1-9]`); !want.MatchString(got) {
		t.Errorf("/metrics has no line %s; it is\n%.3000s", want, got)
	}
	p.quit()
}

func TestReloadOnFileChange(t *testing.T) {
	pass, deny := pair(t)
	dir := folder(t,
		"gateway.yaml", openFile("documents/hooks.json"),
		"documents/hooks.json", onePolicy(pass.URL))
	path := filepath.Join(dir, "gateway.yaml")
	p := launch(t, "serve", "--config", path)
	public, admin := p.urls()
	expect(t, public, passed)

	// Replaced, in a folder of its own.
	put(t, filepath.Join(dir, "documents/hooks.json"), onePolicy(deny.URL))
	p.stderr.await(t, `configuration reloaded`, 1)
	expect(t, public, denied)

	// Refused, and then mended.
	put(t, filepath.Join(dir, "documents/hooks.json"), "{")
	p.stderr.await(t, `configuration refused`, 1)
	expect(t, public, denied)
	put(t, filepath.Join(dir, "documents/hooks.json"), onePolicy(pass.URL))
	p.stderr.await(t, `configuration reloaded`, 2)
	expect(t, public, passed)

	// What changes no content reloads nothing; the next real change shows that
	// it was seen, because one goroutine looks at both.
	put(t, path, openFile("documents/hooks.json"))
	put(t, filepath.Join(dir, "notes.txt"), "unrelated")
	if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	// Written in place, as simple editors do.
	if err := os.WriteFile(filepath.Join(dir, "documents/hooks.json"), []byte(onePolicy(deny.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.stderr.await(t, `configuration reloaded`, 3)
	expect(t, public, denied)
	if got := get(t, admin+"/admin/backends"); !strings.Contains(got, `"generation":4`) {
		t.Errorf("/admin/backends = %s; want generation 4", got)
	}
	p.quit()
}

// configMap lays out a folder as Kubernetes mounts a ConfigMap or Secret, and
// returns what swaps its content.
func configMap(t testing.TB, dir string, files map[string]string) (swap func(map[string]string)) {
	t.Helper()
	n := 0
	old := ""
	swap = func(files map[string]string) {
		t.Helper()
		n++
		now := "..2026_01_0" + string(rune('0'+n))
		for name, content := range files {
			put(t, filepath.Join(dir, now, name), content)
		}
		temporary := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(now, temporary); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		if old != "" {
			if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
				t.Fatal(err)
			}
		}
		old = now
	}
	swap(files)
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return swap
}

func TestReloadOnConfigMapSwap(t *testing.T) {
	pass, deny := pair(t)
	dir := t.TempDir()
	swap := configMap(t, dir, map[string]string{"gateway.yaml": openFile("hooks.json"), "hooks.json": onePolicy(pass.URL)})
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, _ := p.urls()
	expect(t, public, passed)
	for i, b := range []struct{ url, want string }{{deny.URL, denied}, {pass.URL, passed}, {deny.URL, denied}} {
		swap(map[string]string{"gateway.yaml": openFile("hooks.json"), "hooks.json": onePolicy(b.url)})
		p.stderr.await(t, `configuration reloaded`, i+1)
		expect(t, public, b.want)
	}
	p.quit()
}

// Tenants come, change and go with their files, in a plain folder and in a
// mounted ConfigMap.
func TestReloadOnTenantFiles(t *testing.T) {
	pass, deny := pair(t)
	dir := folder(t, "gateway.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\n")
	tenants := filepath.Join(dir, "tenants")
	if err := os.Mkdir(tenants, 0o755); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, _ := p.urls()
	answer := func(id string) string {
		t.Helper()
		got, err := askGateway(&http.Client{Transport: bearer{once.Transport, tenantKey(id)}}, public)
		if err != nil {
			t.Errorf("asking for tenant %s: %v", id, err)
		}
		return got
	}
	acme := filepath.Join(tenants, "acme.yaml")
	for i, step := range []struct {
		what, want string
		change     func()
	}{
		{"the first tenant", passed, func() { put(t, acme, tenantFile("acme", pass.URL)) }},
		{"a change", denied, func() { put(t, acme, tenantFile("acme", deny.URL)) }},
		{"its end", "HTTP 401", func() {
			if err := os.Remove(acme); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		step.change()
		p.stderr.await(t, `configuration reloaded`, i+1)
		if got := answer("acme"); !strings.Contains(got, step.want) {
			t.Errorf("after %s: answer = %s; want one with %s", step.what, got, step.want)
		}
	}
	// A mistake in a new file changes nothing, and its correction is noticed
	// although the file was never in use.
	put(t, acme, "id: acme\n")
	p.stderr.await(t, `configuration refused`, 1)
	put(t, acme, tenantFile("acme", pass.URL))
	p.stderr.await(t, `configuration reloaded`, 4)
	if got := answer("acme"); !strings.Contains(got, passed) {
		t.Errorf("after a correction: answer = %s; want one with %s", got, passed)
	}
	if err := os.Remove(acme); err != nil {
		t.Fatal(err)
	}
	p.stderr.await(t, `configuration reloaded`, 5)

	swap := configMap(t, tenants, map[string]string{"acme.yaml": tenantFile("acme", pass.URL)})
	p.stderr.await(t, `configuration reloaded`, 6)
	swap(map[string]string{"acme.yaml": tenantFile("acme", deny.URL)})
	p.stderr.await(t, `configuration reloaded`, 7)
	if got := answer("acme"); !strings.Contains(got, denied) {
		t.Errorf("after a swap: answer = %s; want one with %s", got, denied)
	}
	p.quit()
}

func tenantKey(id string) string { return "key-of-tenant-" + id }

// tenantFile is the file of a tenant with one policy.
func tenantFile(id, url string) string {
	return fmt.Sprintf("id: %s\nkeys: [{sha256: \"%x\"}]\nregistration: %s\n", id, sha256.Sum256([]byte(tenantKey(id))), onePolicy(url))
}

// bearer sends a bearer key with every request.
type bearer struct {
	http.RoundTripper
	key string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return b.RoundTripper.RoundTrip(r)
}

// A secret that is rotated where it is mounted is used from then on.
func TestReloadOnRotatedSecret(t *testing.T) {
	backend := fakebackend.Start(t)
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL, `,"authentication":{"type":"bearer","tokenRef":"token"}`),
		"secrets: {dir: secrets}"))
	secrets := filepath.Join(dir, "secrets")
	if err := os.Mkdir(secrets, 0o755); err != nil {
		t.Fatal(err)
	}
	swap := configMap(t, secrets, map[string]string{"token": canaryToken + "\n"})
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, _ := p.urls()
	expect(t, public, passed)
	swap(map[string]string{"token": canaryHeader + "\n"})
	p.stderr.await(t, `configuration reloaded`, 1)
	expect(t, public, passed)
	got := backend.Await(2)
	for i, want := range []string{"Bearer " + canaryToken, "Bearer " + canaryHeader} {
		if h := got[i].Header.Get("Authorization"); h != want {
			t.Errorf("request %d came with Authorization %q; want %q", i, h, want)
		}
	}
	p.quit()
}

// load posts events over keep-alive connections until its connections are
// refused or it is stopped. Anything else that fails is a failure.
type load struct {
	t        testing.TB
	url      string
	answered atomic.Int64
	stopped  atomic.Bool
	clients  sync.WaitGroup
}

func startLoad(t testing.TB, url string, clients int) *load {
	l := &load{t: t, url: url}
	for range clients {
		l.clients.Go(l.client)
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) client() {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	for !l.stopped.Load() {
		got, err := askGateway(client, l.url)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return
		case err != nil || !strings.Contains(got, passed):
			l.t.Errorf("request under load = %s, %v; want a pass", got, err)
			return
		}
		l.answered.Add(1)
	}
}

// await returns once n more requests have been answered.
func (l *load) await(n int64) {
	l.t.Helper()
	want := l.answered.Load() + n
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	deadline := time.After(patience)
	for l.answered.Load() < want {
		select {
		case <-look.C:
		case <-deadline:
			l.t.Fatalf("%d requests answered under load; want %d", l.answered.Load(), want)
		}
	}
}

func (l *load) stop() {
	l.stopped.Store(true)
	l.clients.Wait()
}

func TestSIGTERMUnderLoad(t *testing.T) {
	backend := fakebackend.Start(t, fakebackend.WithoutRecording())
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL), "audit: {stdout: true}"))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, _ := p.urls()
	l := startLoad(t, public, 16)
	l.await(500)
	p.signal(syscall.SIGTERM)
	l.clients.Wait() // every client met a refused connection
	if code := p.exit(); code != 0 {
		t.Errorf("exit code = %d; want 0", code)
	}
	if got, want := strings.Count(p.stdout.String(), "\n"), int(l.answered.Load())+1; got != want {
		t.Errorf("standard output has %d lines; want the listening line and %d audit records", got, want-1)
	}
}

func TestSIGHUPUnderLoad(t *testing.T) {
	backend := fakebackend.Start(t, fakebackend.WithoutRecording())
	other := fakebackend.Start(t, fakebackend.WithoutRecording())
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL)))
	path := filepath.Join(dir, "gateway.yaml")
	p := launch(t, "serve", "--config", path)
	public, _ := p.urls()
	l := startLoad(t, public, 16)
	for i := range 6 {
		l.await(100)
		url := backend.URL
		if i%2 == 0 {
			url = other.URL
		}
		put(t, path, openFile(onePolicy(url)))
		p.signal(syscall.SIGHUP)
		p.stderr.await(t, `configuration reloaded" cause=hangup`, i+1)
	}
	l.await(100)
	l.stop()
	if other.Count() == 0 {
		t.Errorf("the other backend was asked 0 times; want more, as configured")
	}
	p.quit()
}

// A request under way holds the drain; a second signal does not wait for it.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	backend := fakebackend.Start(t, fakebackend.Behave("hang"))
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL)))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, _ := p.urls()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = askGateway(once, public)
	}()
	backend.Await(1)
	p.signal(syscall.SIGTERM)
	p.stderr.await(t, `draining`, 1)
	p.signal(os.Interrupt)
	if code := p.exit(); code != 1 {
		t.Errorf("exit code after a second signal = %d; want 1", code)
	}
	p.stderr.await(t, `second signal`, 1)
	<-done
}

// A request under way when the drain begins is answered.
func TestDrainAnswersWhatIsUnderWay(t *testing.T) {
	backend := fakebackend.Start(t, fakebackend.Behave("late"))
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL)))
	p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
	public, _ := p.urls()
	answer := make(chan string, 1)
	go func() {
		got, err := askGateway(once, public)
		if err != nil {
			got = err.Error()
		}
		answer <- got
	}()
	backend.Await(1)
	p.signal(os.Interrupt)
	p.stderr.await(t, `draining`, 1)
	backend.Release()
	if got := <-answer; !strings.Contains(got, passed) {
		t.Errorf("answer to the request under way = %s; want a pass", got)
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit code = %d; want 0", code)
	}
}

// A log that nobody reads any more does not end the gateway.
func TestServeSurvivesAClosedLog(t *testing.T) {
	backend := fakebackend.Start(t)
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL)))
	p := &process{t: t, cmd: exec.Command(binary, "serve", "--config", filepath.Join(dir, "gateway.yaml"), "--log-level", "debug"),
		stdout: newOutput(), stderr: newOutput(), ended: make(chan struct{})}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, w
	p.begin()
	w.Close()
	public := p.stdout.await(t, `listening on (http://\S+)`, 1)[1]
	r.Close()
	put(t, filepath.Join(dir, "gateway.yaml"), openFile(onePolicy(backend.URL, `,"x":1`)))
	p.signal(syscall.SIGHUP) // is logged
	for range 3 {
		expect(t, public, passed)
	}
	p.quit()
}

func TestServeRefuses(t *testing.T) {
	backend := fakebackend.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := folder(t,
		"mistakes.yaml", openFile(onePolicy("ftp://example.com/"), "limitz: 1"),
		"taken.yaml", "listen: "+l.Addr().String()+"\nadmin: off\nregistration: "+onePolicy(backend.URL),
		"audit.yaml", openFile(onePolicy(backend.URL), "audit: {file: absent/audit.jsonl}"),
		"good.yaml", openFile(onePolicy(backend.URL)))
	t.Setenv("OTEL_TRACES_EXPORTER", "nonsense")
	if r := call(t, "", "serve", "--config", filepath.Join(dir, "good.yaml")); r.code != 1 || !strings.Contains(r.stderr, "OTEL_TRACES_EXPORTER") {
		t.Errorf("serve with an unknown exporter = %d, %q; want 1 and its variable", r.code, r.stderr)
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"serve --config mistakes.yaml", 1, `mistakes\.yaml:\d+:\d+: limitz: `},
		{"serve --config mistakes.yaml", 1, `mistakes\.yaml:\d+:\d+: registration\.hooks\[0\]\.transport\.url: `},
		{"serve --config absent.yaml", 1, `absent\.yaml: cannot be read`},
		{"serve --config taken.yaml", 1, `address already in use`},
		{"serve --config audit.yaml", 1, `audit log: .*absent`},
		{"serve --config good.yaml --log-level loud", 2, `--log-level is "loud"`},
		{"serve --config good.yaml --log-format xml", 2, `--log-format is "xml"`},
		{"serve", 2, `--config is needed`},
	} {
		args := strings.Fields(c.args)
		if len(args) > 2 {
			args[2] = filepath.Join(dir, args[2])
		}
		r := call(t, "", args...)
		if r.code != c.code || !regexp.MustCompile(c.want).MatchString(r.stderr) || r.stdout != "" {
			t.Errorf("%s = %d, stdout %q, stderr %q; want %d and %s on standard error", c.args, r.code, r.stdout, r.stderr, c.code, c.want)
		}
	}
}

// signals stands in for the process's signals.
type signals struct {
	mu  sync.Mutex
	to  map[os.Signal]chan<- os.Signal
	set chan struct{} // closed once somebody listens
}

func newSignals() *signals {
	return &signals{to: make(map[os.Signal]chan<- os.Signal), set: make(chan struct{})}
}

func (s *signals) notify(c chan<- os.Signal, sigs ...os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sig := range sigs {
		s.to[sig] = c
	}
}

func (s *signals) send(sig os.Signal) {
	s.mu.Lock()
	c := s.to[sig]
	s.mu.Unlock()
	c <- sig
}

// Signals have to be taken before anything that takes time.
func TestServeTakesSignalsFirst(t *testing.T) {
	s := newSignals()
	p := program{stdin: strings.NewReader(""), stdout: newOutput(), stderr: newOutput(), notify: s.notify}
	if code := p.run(context.Background(), []string{"ahp-gateway", "serve"}); code != 2 {
		t.Errorf("serve without a file = %d; want 2", code)
	}
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGTERM, os.Interrupt} {
		if s.to[sig] == nil {
			t.Errorf("%v was not taken before the arguments were looked at; want it to be", sig)
		}
	}
	if s.to[syscall.SIGHUP] == s.to[syscall.SIGTERM] {
		t.Errorf("SIGHUP and SIGTERM share a channel; want one each, so that reloads cannot crowd out the end")
	}
}

// Signals that come before the gateway serves are kept for when it does.
func TestServeKeepsEarlySignals(t *testing.T) {
	backend := fakebackend.Start(t)
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL)))
	stdout, stderr := newOutput(), newOutput()
	p := program{stdin: strings.NewReader(""), stdout: stdout, stderr: stderr}
	p.notify = func(c chan<- os.Signal, sigs ...os.Signal) { c <- sigs[0] } // SIGHUP and SIGTERM
	if code := p.run(context.Background(), []string{"ahp-gateway", "serve", "--config", filepath.Join(dir, "gateway.yaml")}); code != 0 {
		t.Errorf("serve with early signals = %d; want 0. It wrote %s", code, stderr)
	}
	if !strings.Contains(stdout.String(), "listening on") {
		t.Errorf("standard output = %q; want the listening line", stdout)
	}
}
