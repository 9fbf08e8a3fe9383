package chart_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	psapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Every pod would be admitted to a namespace that enforces the restricted Pod
// Security Standard, and is stricter than that where the standard is silent.
func TestPodSecurity(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psapi.LevelVersion{Level: psapi.LevelRestricted, Version: psapi.LatestVersion()}
	judge := func(meta metav1.ObjectMeta, spec corev1.PodSpec) policy.AggregateCheckResult {
		return policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &meta, &spec))
	}
	if got := judge(metav1.ObjectMeta{}, corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}); got.Allowed {
		t.Fatal("a pod without a security context is allowed; want it to be refused")
	}
	pods := 0
	for name, values := range cases(t) {
		for _, o := range objects(t, template(t, name, values)) {
			var meta metav1.ObjectMeta
			var spec corev1.PodSpec
			switch typed := o.typed.(type) {
			case *appsv1.Deployment:
				meta, spec = typed.Spec.Template.ObjectMeta, typed.Spec.Template.Spec
			case *corev1.Pod:
				meta, spec = typed.ObjectMeta, typed.Spec
			default:
				continue
			}
			pods++
			if got := judge(meta, spec); !got.Allowed {
				t.Errorf("%s: %s: %s", name, got.ForbiddenReason(), got.ForbiddenDetail())
			}
			if token := spec.AutomountServiceAccountToken; token == nil || *token {
				t.Errorf("%s: a token of the service account is mounted", name)
			}
			for _, c := range spec.Containers {
				if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: the root filesystem of %s can be written", name, c.Name)
				}
				for _, m := range c.VolumeMounts {
					if m.SubPath != "" || m.SubPathExpr != "" {
						t.Errorf("%s: %s mounts %s by subPath, and no change would arrive", name, c.Name, m.Name)
					}
				}
			}
		}
	}
	if pods < 20 {
		t.Errorf("%d pods were judged; want at least 20", pods)
	}
}
