package chart_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// meant are the warnings of the gateway that are accepted.
var meant = []string{
	"on an address that is not loopback, without authentication", // there is the NetworkPolicy
	"there is no tenant: nobody can authenticate",
	"the tenants in Redis are not looked at", // which only a gateway that runs can reach
}

// The gateway itself finds no mistake in any configuration that the chart
// makes, where it is mounted, and warns of nothing but what is meant.
func TestConfigurationIsValid(t *testing.T) {
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			valid(t, name, values)
		})
	}
}

// valid has the gateway validate what the chart makes of a value file.
func valid(t *testing.T, name, values string) {
	t.Helper()
	gateway, err := built()
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, template(t, name, values))
	n := node{dir: t.TempDir()}
	n.mount(t, all)
	pod := &find(t, all, anyOf[*appsv1.Deployment]).Spec.Template.Spec
	args := container(t, pod).Args
	if len(args) < 2 || args[0] != "serve" {
		t.Fatalf("args = %q; want serve and its flags", args)
	}
	config, ok := strings.CutPrefix(args[1], "--config=")
	if !ok {
		t.Fatalf("args = %q; want --config first", args)
	}
	cmd := exec.Command(gateway, "validate", "--config", n.path(config))
	cmd.Env = os.Environ()
	for _, e := range container(t, pod).Env {
		if e.ValueFrom != nil {
			e.Value = "0123456789abcdef0123456789abcdef"
		}
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("validate: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "warning: ") && !slices.ContainsFunc(meant, func(s string) bool { return strings.Contains(line, s) }) {
			t.Errorf("validate: %s", line)
		}
	}
}
