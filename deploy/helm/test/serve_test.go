package chart_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// noForce answers tool.before events: a command with --force is denied.
func noForce(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Params struct{ ProtocolVersion string }
	}
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	effects := "[]"
	if strings.Contains(string(body), "--force") {
		effects = `[{"type":"deny","reason":"no force"}]`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"effects":%s}}`, m.ID, m.Params.ProtocolVersion, effects)
}

// values writes a value file for tenants with these ids, whose keys are
// "key-of-" and the id, and whose backend is at url.
func values(t *testing.T, url, rest string, ids ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("tests: {enabled: true, keySecret: {name: acme-key}}\ntenants:\n")
	for _, id := range ids {
		sum := sha256.Sum256([]byte("key-of-" + id))
		fmt.Fprintf(&b, `  %s:
    secretName: %s-backends
    config:
      keys: [{sha256: %s}]
      registration:
        protocolVersion: "0.1"
        hooks:
          - id: com.example.policy
            transport: {type: http, url: %q}
            authentication: {type: bearer, tokenRef: policy-token}
            subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 5000, failurePolicy: fail-closed}]
`, id, id, hex.EncodeToString(sum[:]), url)
	}
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(b.String()+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a gateway that runs.
type process struct {
	cmd        *exec.Cmd
	url, admin string
	mu         sync.Mutex
	log        strings.Builder
	read       sync.WaitGroup
}

// start starts the gateway with the arguments that the chart gives it.
func start(t *testing.T, n *node, all []object) *process {
	t.Helper()
	gateway, err := built()
	if err != nil {
		t.Fatal(err)
	}
	c := container(t, &find(t, all, anyOf[*appsv1.Deployment]).Spec.Template.Spec)
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = regexp.MustCompile(`/(etc|var)/`).ReplaceAllString(a, n.dir+"/$1/")
	}
	p := &process{cmd: exec.Command(gateway, args...)}
	p.cmd.Env = append(os.Environ(), "GOMEMLIMIT=500000000")
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	found := make(chan [2]string, 16)
	follow := func(r io.Reader) {
		defer p.read.Done()
		for s := bufio.NewScanner(r); s.Scan(); {
			line := s.Text()
			p.mu.Lock()
			p.log.WriteString(line + "\n")
			p.mu.Unlock()
			if m := regexp.MustCompile(`(listening|admin) on (https?://[0-9.:]+)`).FindStringSubmatch(line); m != nil {
				found <- [2]string{m[1], m[2]}
			}
		}
	}
	p.read.Add(2)
	go follow(stdout)
	go follow(stderr)
	ended := make(chan struct{})
	go func() { p.read.Wait(); close(ended) }()
	deadline := time.After(30 * time.Second)
	for p.url == "" || p.admin == "" {
		select {
		case f := <-found:
			if f[0] == "admin" {
				p.admin = f[1]
			} else {
				p.url = f[1]
			}
		case <-ended:
			t.Fatalf("serve ended:\n%s", p.output())
		case <-deadline:
			t.Fatalf("serve does not say where it listens:\n%s", p.output())
		}
	}
	return p
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) stop() {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Signal(syscall.SIGTERM)
		p.read.Wait()
		p.cmd.Wait()
	}
}

// send has the gateway's own client send an event with the key of a tenant.
func (p *process) send(t *testing.T, tenant string, args ...string) (string, error) {
	t.Helper()
	gateway, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(gateway, append([]string{"send"}, args...)...)
	cmd.Env = append(os.Environ(), "AHP_KEY=key-of-"+tenant)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// passes reports whether an event of a tenant is decided, and not denied.
func (p *process) passes(t *testing.T, tenant string) bool {
	t.Helper()
	_, err := p.send(t, tenant, "--url", p.url, "--key-env", "AHP_KEY", "--command", "git status", "--expect", "pass")
	return err == nil
}

// eventually waits until what holds, at most a while.
func eventually(t *testing.T, p *process, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s\n%s", what, p.output())
		}
	}
}

// metric reports whether a metric has a value.
func (p *process) metric(t *testing.T, line string) bool {
	t.Helper()
	resp, err := http.Get(p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(body), "\n"+line+"\n")
}

// loopback has the gateway listen where a test may.
func loopback(mountPath, name, content string) string {
	if mountPath == "/etc/ahp-gateway/config" {
		content = strings.Replace(content, "listen: :8787", "listen: 127.0.0.1:0", 1)
		content = strings.Replace(content, "admin: :8788", "admin: 127.0.0.1:0", 1)
	}
	return content
}

// What the chart installs serves; its helm tests pass; a tenant that is added is
// served and a mistake refused by the same process; and after a restart under the
// mistake the last good configuration is served.
func TestServe(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(noForce))
	defer backend.Close()
	one := objects(t, template(t, "live", values(t, backend.URL, "", "acme")))
	n := &node{dir: t.TempDir(), edit: loopback}
	n.mount(t, one)
	p := start(t, n, one)

	pod := &find(t, one, anyOf[*appsv1.Deployment]).Spec.Template.Spec
	c := container(t, pod)
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe} {
		resp, err := http.Get(p.admin + probe.HTTPGet.Path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("the %s probe is answered %s; want 200", name, resp.Status)
		}
	}

	tests := 0
	for _, o := range one {
		pod, ok := o.typed.(*corev1.Pod)
		if !ok {
			continue
		}
		tests++
		args := pod.Spec.Containers[0].Args[1:]
		for i, a := range args {
			if strings.HasPrefix(a, "--url=") {
				if want := "--url=http://live-ahp-gateway." + namespace + ".svc:80"; a != want {
					t.Errorf("%s posts to %s; want %s", pod.Name, a, want)
				}
				args[i] = "--url=" + p.url
			}
		}
		if out, err := p.send(t, "acme", args...); err != nil {
			t.Errorf("helm test %s: %v\n%s", pod.Name, err, out)
		}
		if out, err := p.send(t, "nobody", args...); err == nil {
			t.Errorf("helm test %s passes with a wrong key: %s", pod.Name, out)
		}
	}
	if tests != 2 {
		t.Errorf("the chart has %d test pods; want 2", tests)
	}

	if p.passes(t, "globex") {
		t.Fatal("a tenant is admitted before it is there")
	}
	two := objects(t, template(t, "live", values(t, backend.URL, "", "acme", "globex")))
	n.mount(t, two)
	eventually(t, p, "the tenant that was added is served", func() bool { return p.passes(t, "globex") })
	if !p.metric(t, "ahp_gateway_config_last_reload_successful 1") {
		t.Error("ahp_gateway_config_last_reload_successful is not 1 after a reload")
	}

	good := n.edit
	n.edit = func(mountPath, name, content string) string {
		return strings.Replace(good(mountPath, name, content), "mode: intercept", "mode: intercpet", 1)
	}
	n.mount(t, two)
	eventually(t, p, "the mistake is refused", func() bool { return p.metric(t, "ahp_gateway_config_last_reload_successful 0") })
	if !p.passes(t, "acme") {
		t.Errorf("acme is not served after a mistake was refused:\n%s", p.output())
	}
	p.stop()

	p = start(t, n, two) // the container is restarted, in the same pod
	if !p.passes(t, "acme") || !p.passes(t, "globex") {
		t.Errorf("the last good configuration is not served:\n%s", p.output())
	}
	if !p.metric(t, "ahp_gateway_config_last_good 1") {
		t.Error("ahp_gateway_config_last_good is not 1")
	}
	if !strings.Contains(p.output(), "intercpet") {
		t.Errorf("the log does not name the mistake:\n%s", p.output())
	}
	n.edit = good
	n.mount(t, two)
	eventually(t, p, "the corrected configuration is served", func() bool { return p.metric(t, "ahp_gateway_config_last_good 0") })
}

// What is reloaded leaves the pods alone, and what takes a restart rolls them.
func TestWhatRollsThePods(t *testing.T) {
	pods := func(rest string, ids ...string) string {
		d := find(t, objects(t, template(t, "roll", values(t, "https://policy.example.com", rest, ids...))), anyOf[*appsv1.Deployment])
		return d.Spec.Template.String()
	}
	before := pods("", "acme")
	tenant := pods("secretMounts: {}", "acme")
	if tenant != before {
		t.Error("the same values make other pods")
	}
	for rest, rolls := range map[string]bool{
		"config: {limits: {rate: 7, budget: 9s, response: 2MiB}, audit: {inputs: true}}":   false,
		"config: {dedupe: {ttl: 1m}, breaker: {ratio: 0.2}, discovery: {onFailure: skip}}": false,
		"config: {log: {level: debug}}":                        true,
		"config: {limits: {bodyBytes: 64MiB}}":                 true,
		"config: {limits: {connections: 99}}":                  true,
		"config: {audit: {overflow: block}}":                   true,
		"config: {metrics: {tenants: 9}}":                      true,
		"config: {shared: {redis: {url: \"rediss://r:1/0\"}}}": true,
		"configChange: roll":                                   true,
	} {
		if got := pods(rest, "acme") != before; got != rolls {
			t.Errorf("%s: the pods are rolled: %v; want %v", rest, got, rolls)
		}
	}
	added := func(rest string, ids ...string) string { // without a Secret, which is a volume
		path := values(t, "https://policy.example.com", rest, ids...)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile(`(?m)^    secretName: .*\n|^            authentication: .*\n`).ReplaceAll(text, nil)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return find(t, objects(t, template(t, "roll", path)), anyOf[*appsv1.Deployment]).Spec.Template.String()
	}
	if added("", "acme") != added("", "acme", "globex") {
		t.Error("a tenant that is added rolls the pods; want it to be reloaded")
	}
	if added("configChange: roll", "acme") == added("configChange: roll", "acme", "globex") {
		t.Error("with configChange: roll a tenant that is added does not roll the pods")
	}
}

// The checksum of the pods is over the settings of which the gateway says that
// they take a restart.
func TestWhatTakesARestart(t *testing.T) {
	code, err := os.ReadFile(filepath.Join(root, "gateway/reload.go"))
	if err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile(filepath.Join(chart, "templates/_config.tpl"))
	if err != nil {
		t.Fatal(err)
	}
	_, restart, _ := strings.Cut(string(template), `define "ahp-gateway.restart"`)
	restart, _, _ = strings.Cut(restart, "{{- end -}}\n{{- end -}}")
	settings := regexp.MustCompile(`differ\("([A-Za-z.]+)"`).FindAllStringSubmatch(string(code), -1)
	if len(settings) < 15 {
		t.Fatalf("gateway/reload.go names %d settings; want at least 15", len(settings))
	}
	for _, s := range settings {
		switch name := strings.TrimPrefix(s[1], "limits."); name {
		case "listen", "admin", "tls", "adminTLS": // volumes and probes, or the chart's own
		default:
			if !strings.Contains(restart, strconv.Quote(name)) {
				t.Errorf("%s takes a restart and is not in the checksum of the pods (ahp-gateway.restart)", s[1])
			}
		}
	}
}
