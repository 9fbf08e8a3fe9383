package examples

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// deployment is examples/compose, as run.sh started it.
type deployment struct {
	script *process
	ports  map[string]string // by the variable of run.sh
	state  string            // its folder
	key    string            // of the tenant
}

// deploy starts run.sh on free ports until the test ends.
func deploy(t *testing.T) *deployment {
	t.Helper()
	for _, program := range []string{"bash", "curl", "go", "prometheus", "redis-cli", "redis-server"} {
		need(t, program)
	}
	// A port that is free now may be taken before its program has it.
	for range 3 {
		d := &deployment{ports: freePorts(t), state: t.TempDir()}
		secrets := filepath.Join(t.TempDir(), ".env")
		env := []string{"STATE=" + d.state, "ENV_FILE=" + secrets}
		for _, name := range []string{"GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
			if value, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+value)
			}
		}
		for name, port := range d.ports {
			env = append(env, name+"="+port)
		}
		d.script = start(t, "/", env, filepath.Join(root, "examples/compose/run.sh"))
		if !d.script.ready() {
			_ = d.script.cmd.Process.Signal(syscall.SIGTERM) // which may have ended
			d.script.ended(t)
			continue
		}
		t.Cleanup(func() {
			_ = d.script.cmd.Process.Signal(syscall.SIGTERM) // which may have ended
			d.script.ended(t)
			if t.Failed() {
				logs, _ := filepath.Glob(filepath.Join(d.state, "*.log"))
				for _, log := range logs {
					t.Logf("%s:\n%s", filepath.Base(log), read(t, log))
				}
			}
		})
		info, err := os.Stat(secrets)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the keys' file: %v, %v; want one that only its owner reads", info, err)
		}
		_, key, _ := strings.Cut(read(t, secrets), "GATEWAY_KEY=")
		d.key, _, _ = strings.Cut(key, "\n")
		return d
	}
	t.Fatal("run.sh does not start")
	return nil
}

// ready reports whether the script says so before it ends.
func (p *process) ready() bool {
	for deadline := time.Now().Add(3 * patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(p.output(), "ready: ") {
			return true
		}
		select {
		case <-p.done:
			return false
		default:
		}
	}
	return false
}

// freePorts returns a free port for every program.
func freePorts(t *testing.T) map[string]string {
	t.Helper()
	ports := make(map[string]string)
	for _, name := range []string{"GATEWAY_1", "GATEWAY_2", "ADMIN_1", "ADMIN_2", "POLICY", "REDIS", "PROMETHEUS"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // after all are found, so that none is found twice
		ports[name] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func (d *deployment) url(port, path string) string { return "http://127.0.0.1:" + d.ports[port] + path }

// pids returns the processes by name.
func (d *deployment) pids(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.state, "*.pid"))
	if err != nil || len(files) != 5 {
		t.Fatalf("run.sh has the processes %v, %v; want five", files, err)
	}
	pids := make(map[string]int)
	for _, file := range files {
		pid, err := strconv.Atoi(strings.TrimSpace(read(t, file)))
		if err != nil {
			t.Fatal(err)
		}
		pids[strings.TrimSuffix(filepath.Base(file), ".pid")] = pid
	}
	return pids
}

// gone looks for what is left of the processes of an ended deployment.
func (d *deployment) gone(t *testing.T, pids map[string]int) {
	t.Helper()
	for name, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("after the end of run.sh, %s (%d) = %v; want no such process", name, pid, err)
		}
	}
	for name, port := range d.ports {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			conn.Close()
			t.Errorf("after the end of run.sh, somebody listens on %s", name)
		}
	}
}

// sample is one time series of an answer of Prometheus.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query asks Prometheus.
func (d *deployment) query(t *testing.T, expression string) []sample {
	t.Helper()
	var answer struct{ Data struct{ Result []sample } }
	d.get(t, "/api/v1/query?query="+url.QueryEscape(expression), &answer)
	return answer.Data.Result
}

func (d *deployment) get(t *testing.T, path string, into any) {
	t.Helper()
	resp, err := client.Get(d.url("PROMETHEUS", path))
	if err != nil {
		t.Fatal(err)
	}
	if text := body(t, resp.Body); json.Unmarshal([]byte(text), into) != nil {
		t.Fatalf("Prometheus answers %s with %s", path, text)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not come to that", what)
		}
	}
}

// TestRun starts everything without containers: an event at both gateways is
// evaluated once, and denied by the Rego rules; Prometheus counts it at both;
// Ctrl-C leaves nothing behind.
func TestRun(t *testing.T) {
	d := deploy(t)
	pids := d.pids(t)

	if resp, _ := post(t, d.url("GATEWAY_1", "/hooks"), "wrong", event("draft", "x", "hooks/intercept", object{"command": "ls"}, all...)); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with a wrong key = %d; want 401", resp.StatusCode)
	}
	// A gateway is ready before it has Redis, because it can do without.
	for _, admin := range []string{"ADMIN_1", "ADMIN_2"} {
		eventually(t, admin+" has Redis", func() bool {
			resp, err := client.Get(d.url(admin, "/metrics"))
			return err == nil && strings.Contains(body(t, resp.Body), "\nahp_gateway_shared_available 1\n")
		})
	}
	gateways := []string{"GATEWAY_1", "GATEWAY_2"}
	for _, version := range []string{"0.1", "draft"} {
		for _, gateway := range gateways {
			_, answer := post(t, d.url(gateway, "/hooks"), d.key, event(version, "denied-"+version, "hooks/intercept", object{"command": "git push --force"}, "deny"))
			if got := effects(answer); !reflect.DeepEqual(got, any(forcePush)) {
				t.Errorf("a force push at %s in %s = %v; want %v", gateway, version, answer, forcePush)
			}
			_, answer = post(t, d.url(gateway, "/hooks"), d.key, event(version, "passed-"+version, "hooks/intercept", object{"command": "git push"}, "deny"))
			if got := effects(answer); !reflect.DeepEqual(got, any([]any{})) {
				t.Errorf("a push at %s in %s = %v; want no objection", gateway, version, answer)
			}
		}
	}

	sent(t, "compose/README.md", 2, []string{"GATEWAY_KEY=" + d.key}, map[string]string{
		"http://127.0.0.1:8787": d.url("GATEWAY_1", ""), "http://127.0.0.1:8797": d.url("GATEWAY_2", "")})

	// The audit log of each has five decisions. The second had them from the
	// first, and has asked nobody.
	for i, want := range []int{5, 0} {
		var records string
		eventually(t, "five audit records", func() bool {
			records = read(t, filepath.Join(d.state, fmt.Sprintf("gateway-%d.log", i+1)))
			return strings.Count(records, `"verdict":`) == 5
		})
		missed, asked := strings.Count(records, `"dedupe":"miss"`), strings.Count(records, `"steps":[`)
		if missed != want || asked != want {
			t.Errorf("gateway-%d has evaluated %d events and asked the policy about %d; want %d:\n%s", i+1, missed, asked, want, records)
		}
	}

	eventually(t, "Prometheus has the denials of both gateways", func() bool {
		return len(d.query(t, `ahp_gateway_decisions_total{ahp_tenant="acme",ahp_verdict="deny"} >= 1`)) == 2
	})
	eventually(t, "Prometheus has five evaluations in all", func() bool {
		got := d.query(t, `sum(ahp_gateway_steps_total{ahp_backend="com.example.policy"})`)
		return len(got) == 1 && got[0].Value[1] == "5"
	})
	if got := d.query(t, "ahp_gateway_shared_available == 1"); len(got) != 2 {
		t.Errorf("ahp_gateway_shared_available is 1 at %v; want both", got)
	}

	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, State, Health, LastError string }
			}
		}
	}
	// That no gateway is scraped may be pending for the first seconds.
	count := 0
	eventually(t, "every alert is evaluated, and inactive", func() bool {
		d.get(t, "/api/v1/rules?type=alert", &rules)
		count = 0
		for _, g := range rules.Data.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					t.Fatalf("the alert %s is not evaluated: %s", r.Name, r.LastError)
				}
				if r.Health != "ok" || r.State != "inactive" {
					return false
				}
				count++
			}
		}
		return count > 0
	})
	if count < 10 {
		t.Errorf("Prometheus has %d alerts; want those of the chart", count)
	}

	// As a terminal does, to the whole process group.
	if err := syscall.Kill(-d.script.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := d.script.ended(t); code != 0 {
		t.Errorf("after Ctrl-C run.sh ends with %d; want 0\n%s", code, d.script.output())
	}
	// Each was told to end by run.sh alone, which sends another signal.
	for name, want := range map[string]string{"gateway-1": "cause=terminated", "gateway-2": "cause=terminated", "prometheus": "SIGTERM"} {
		if log := read(t, filepath.Join(d.state, name+".log")); !strings.Contains(log, want) {
			t.Errorf("%s has not ended by SIGTERM:\n%s", name, log)
		}
	}
	d.gone(t, pids)
}

// TestRunLosesOne kills one program: run.sh says which, and ends the others.
func TestRunLosesOne(t *testing.T) {
	d := deploy(t)
	pids := d.pids(t)
	if err := syscall.Kill(pids["policy"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := d.script.ended(t); code != 1 || !strings.Contains(d.script.output(), "policy has ended") {
		t.Errorf("after the end of policy, run.sh ends with %d and %s; want 1 and the name", code, d.script.output())
	}
	d.gone(t, pids)
}

// project loads docker-compose.yaml, which is validated against the schema of
// the Compose specification.
func project(t *testing.T) *types.Project {
	t.Helper()
	folder := filepath.Join(root, "examples/compose")
	options, err := cli.NewProjectOptions([]string{filepath.Join(folder, "docker-compose.yaml")},
		cli.WithWorkingDirectory(folder), cli.WithEnv([]string{"GATEWAY_KEY=k", "POLICY_TOKEN=p", "REDIS_PASSWORD=r"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestComposeFile holds docker-compose.yaml against the files that it names,
// because nothing here can run it.
func TestComposeFile(t *testing.T) {
	p := project(t)
	if got, want := p.ServiceNames(), []string{"gateway-1", "gateway-2", "policy", "prometheus", "redis"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("docker-compose.yaml has %v; want %v", got, want)
	}
	for name, s := range p.Services {
		if !s.ReadOnly || s.Privileged || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s is not hardened: read_only %v, cap_drop %v, security_opt %v", name, s.ReadOnly, s.CapDrop, s.SecurityOpt)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q; want loopback", name, port.Published, port.HostIP)
			}
		}
		for _, v := range s.Volumes {
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && (err != nil || !v.ReadOnly) {
				t.Errorf("%s mounts %s: %v, read only %v; want what is there, read only", name, v.Source, err, v.ReadOnly)
			}
		}
		if _, ok := s.Networks["services"]; !ok {
			t.Errorf("%s is in %v; want services", name, s.Networks)
		}
		if s.Build != nil {
			if _, err := os.Stat(s.Build.Context); err != nil {
				t.Errorf("%s is built from %v", name, err)
			}
		}
	}
	if !p.Networks["services"].Internal {
		t.Error("the network services is not internal")
	}

	// What the configuration of all replicas names are services, at ports where
	// they listen, and variables that the gateways have.
	files := read(t, filepath.Join(root, "examples/compose/config/gateway.yaml")) + read(t, filepath.Join(root, "examples/compose/prometheus/prometheus.yml"))
	ports := map[string]string{"gateway-1": "8788", "gateway-2": "8788", "policy": "9001", "redis": "6379"}
	for _, match := range regexp.MustCompile(`([a-z][a-z0-9-]*):([0-9]{4})`).FindAllStringSubmatch(files, -1) {
		if ports[match[1]] != match[2] {
			t.Errorf("the configuration names %s; want one of %v", match[0], ports)
		}
	}
	for _, match := range regexp.MustCompile(`(?:[a-z]Env|env): ([A-Z_]+)`).FindAllStringSubmatch(files, -1) {
		for _, gateway := range []string{"gateway-1", "gateway-2"} {
			if p.Services[gateway].Environment[match[1]] == nil {
				t.Errorf("%s has no variable %s, which its configuration names", gateway, match[1])
			}
		}
	}
	if got := strings.Join(p.Services["policy"].Command, " "); got != "-listen 0.0.0.0:9001 -policy /policy" {
		t.Errorf("policy is started with %q", got)
	}
}

// TestComposeRedis runs what the service redis runs, with the machine's Redis:
// without the password it says nothing.
func TestComposeRedis(t *testing.T) {
	need(t, "redis-server")
	service := project(t).Services["redis"]
	port := freePorts(t)["REDIS"]
	mounted := service.Volumes[0]
	args := slices.Clone(service.Entrypoint)
	last := len(args) - 1
	file := mounted.Target + "/redis.conf"
	if !strings.Contains(args[last], file) {
		t.Fatalf("redis is started with %q; want %s in it", args, file)
	}
	args[last] = strings.Replace(args[last], file, filepath.Join(mounted.Source, "redis.conf")+" --bind 127.0.0.1 --port "+port, 1)
	// Compose has replaced the doubled $.
	p := start(t, t.TempDir(), []string{"REDIS_PASSWORD=the-password"}, args...)
	p.wait(t, "Ready to accept connections")
	for command, want := range map[string]string{"PING": "-NOAUTH", "AUTH the-password": "+OK", "AUTH other": "-WRONGPASS"} {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(conn, "%s\r\n", command)
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("redis answers %s with %q, %v; want %s", command, line, err, want)
		}
	}
	p.terminate(t)
	if code := p.ended(t); code != 0 {
		t.Errorf("after SIGTERM, redis ends with %d; want 0, at once", code)
	}
}

// TestComposeConfig validates the gateway file of all replicas as it is.
func TestComposeConfig(t *testing.T) {
	gateway := project(t).Services["gateway-1"]
	args := gateway.Command
	if len(args) != 3 || args[0] != "serve" || args[1] != "--config" {
		t.Fatalf("gateway-1 is started with %q; want serve --config FILE", args)
	}
	mount := gateway.Volumes[0]
	file := filepath.Join(mount.Source, strings.TrimPrefix(args[2], mount.Target))
	t.Setenv("GATEWAY_KEY", "key-of-the-examples-which-is-long-enough")
	t.Setenv("ACME_POLICY_TOKEN", token)
	t.Setenv("REDIS_PASSWORD", "password")
	out := command(t, "/", "", filepath.Join(programs, "ahp-gateway"), "validate", "--config", file)
	if !strings.Contains(out, "acme") {
		t.Errorf("validate says %s; want the chains of acme", out)
	}
}
