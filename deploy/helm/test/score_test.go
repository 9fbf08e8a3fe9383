package chart_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// kubeScore returns the path of kube-score. It is no tool of this module,
// because it needs a version of Kubernetes' types that the rest does not.
var kubeScore = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "install", "github.com/zegl/kube-score/cmd/kube-score@v1.20.0")
	cmd.Dir, cmd.Env = scratch, append(os.Environ(), "GOBIN="+scratch)
	return filepath.Join(scratch, "kube-score"), run(cmd)
})

// A linter of Kubernetes objects finds nothing, but for three of its checks:
//
//   - There is no CPU limit: what it throttles is the time of decisions.
//   - Images are not pulled again: their tags are versions, or digests.
//   - Pods are spread over nodes by topologySpreadConstraints, which it does not know.
func TestScore(t *testing.T) {
	score, err := kubeScore()
	if err != nil {
		t.Fatal(err)
	}
	accepted := map[string][]string{
		"small": {"Deployment few replicas"}, // that is what it is
		// The platform gives the ids, and has policies of its own.
		"openshift": {"low user ID", "low group ID", "does not have a matching NetworkPolicy", "of type NodePort", "No matching PodDisruptionBudget"},
	}
	for name, values := range cases(t) {
		used := make(map[string]bool)
		cmd := exec.Command(score, "score", "--kubernetes-version", "v1.32", "--output-format", "ci", "--exit-one-on-warning",
			"--ignore-container-cpu-limit", "--ignore-test", "container-image-pull-policy", "--ignore-test", "deployment-has-host-podantiaffinity", "-")
		cmd.Stdin = strings.NewReader(template(t, name, values))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if stderr.Len() > 0 || len(out) == 0 {
			t.Errorf("%s: kube-score: %v\n%s", name, err, stderr.String())
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "[OK]") || strings.HasPrefix(line, "[SKIPPED]") {
				continue
			}
			i := slices.IndexFunc(accepted[name], func(a string) bool { return strings.Contains(line, a) })
			if i < 0 {
				t.Errorf("%s: %s", name, line)
				continue
			}
			used[accepted[name][i]] = true
		}
		for _, a := range accepted[name] {
			if !used[a] {
				t.Errorf("%s: %q is accepted and not found any more", name, a)
			}
		}
	}
}
