package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

const alerts = chart + "/files/alerts.yaml"

func rules(t testing.TB, path string) monitoringv1.PrometheusRuleSpec {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var spec monitoringv1.PrometheusRuleSpec
	if err := sigsyaml.UnmarshalStrict(data, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// alertNames returns the names of the chart's alerts, in order.
func alertNames(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, g := range rules(t, alerts).Groups {
		for _, r := range g.Rules {
			names = append(names, r.Alert)
		}
	}
	return names
}

// shown is how an alert is shown to fire and to be silent, as in testdata/alerts.yaml.
type shown struct {
	Alert         string
	Fires, Silent struct {
		Series map[string]string
		At     string
		Labels map[string]string
	}
}

// Prometheus takes the rules, and each alert fires for the series for which it
// should, and does not for those for which it should not.
func TestAlerts(t *testing.T) {
	promtool := needs(t, "promtool")
	if err := run(exec.Command(promtool, "check", "rules", "--lint-fatal", alerts)); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []shown
	if err := sigsyaml.UnmarshalStrict(data, &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	type object = map[string]any
	var tests []object
	for _, s := range all {
		names = append(names, s.Alert)
		if len(s.Fires.Series) == 0 || len(s.Fires.Labels) == 0 || len(s.Silent.Series) == 0 {
			t.Errorf("%s is not shown to fire and to be silent", s.Alert)
		}
		series := func(values map[string]string) (list []object) {
			for name, v := range values {
				list = append(list, object{"series": name, "values": v})
			}
			return list
		}
		tests = append(tests, object{
			"name": s.Alert + " fires", "interval": "1m", "input_series": series(s.Fires.Series),
			"alert_rule_test": []object{{"eval_time": s.Fires.At, "alertname": s.Alert, "exp_alerts": []object{{"exp_labels": s.Fires.Labels}}}},
		}, object{
			"name": s.Alert + " is silent", "interval": "1m", "input_series": series(s.Silent.Series),
			"alert_rule_test": []object{{"eval_time": s.Silent.At, "alertname": s.Alert, "exp_alerts": []object{}}},
		})
	}
	if !slices.Equal(names, alertNames(t)) {
		t.Errorf("testdata/alerts.yaml shows %q; the chart has %q", names, alertNames(t))
	}
	// Texts are left away: they would have to be repeated word by word.
	bare := rules(t, alerts)
	for _, g := range bare.Groups {
		for i := range g.Rules {
			g.Rules[i].Annotations = nil
		}
	}
	dir := t.TempDir()
	for name, content := range map[string]any{"rules.yaml": bare, "tests.yaml": object{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m", "tests": tests}} {
		data, err := sigsyaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(exec.Command(promtool, "test", "rules", filepath.Join(dir, "tests.yaml"))); err != nil {
		t.Error(err)
	}
}

// Prometheus takes what the chart makes of the rules, too, and they are about
// the pods of this release only.
func TestRenderedAlerts(t *testing.T) {
	promtool := needs(t, "promtool")
	all := objects(t, template(t, "monitoring", cases(t)["monitoring"]))
	rule := find(t, all, anyOf[*monitoringv1.PrometheusRule])
	path := filepath.Join(t.TempDir(), "rules.yaml")
	data, err := sigsyaml.Marshal(rule.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(exec.Command(promtool, "check", "rules", path)); err != nil {
		t.Error(err)
	}
	var names []string
	const ours = `{namespace="agents",pod=~"monitoring-ahp-gateway-[0-9a-z]+-[0-9a-z]+",`
	for _, r := range rule.Spec.Groups[0].Rules {
		names = append(names, r.Alert)
		if expr := r.Expr.String(); strings.Count(expr, "{") == 0 || strings.Count(expr, "{") != strings.Count(expr, ours) {
			t.Errorf("%s is not only about the release's pods: %s", r.Alert, expr)
		}
		if r.Labels["team"] != "platform" || r.Labels["severity"] == "" {
			t.Errorf("%s has the labels %v", r.Alert, r.Labels)
		}
		if url := r.Annotations["runbook_url"]; url != "" && !strings.HasPrefix(url, "https://wiki.example.com/ahp#") {
			t.Errorf("%s has the runbook %s", r.Alert, url)
		}
	}
	want := slices.DeleteFunc(alertNames(t), func(s string) bool { return s == "AHPGatewaySlow" || s == "AHPGatewayThrottled" })
	if !slices.Equal(names, want) {
		t.Errorf("the rule has the alerts %q; want %q", names, want)
	}
}

// Every runbook that an alert names is there.
func TestRunbooks(t *testing.T) {
	const site = "https://github.com/ahp-gateway/ahp-gateway/blob/main/"
	named := 0
	for _, g := range rules(t, alerts).Groups {
		for _, r := range g.Rules {
			url, ok := r.Annotations["runbook_url"]
			if !ok {
				continue
			}
			named++
			file, anchor, _ := strings.Cut(strings.TrimPrefix(url, site), "#")
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Errorf("%s: %v", r.Alert, err)
				continue
			}
			heading := regexp.MustCompile(`(?im)^## ` + strings.ReplaceAll(anchor, "-", "[ -]") + `$`)
			if !heading.Match(text) {
				t.Errorf("%s: %s has no heading for #%s", r.Alert, file, anchor)
			}
		}
	}
	if named < 10 {
		t.Errorf("%d alerts name a runbook; want at least 10", named)
	}
}

// Every metric that an alert looks at is one that the gateway has.
func TestAlertsKnowTheMetrics(t *testing.T) {
	known := make(map[string]bool)
	for _, dir := range []string{"gateway", "shared", "audit", "telemetry"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`"(ahp\.gateway\.[a-z_.]+)"`).FindAllSubmatch(text, -1) {
				known[strings.ReplaceAll(string(m[1]), ".", "_")] = true
			}
		}
	}
	data, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	used := regexp.MustCompile(`ahp_gateway_[a-z_]+`).FindAllString(string(data), -1)
	if len(used) < 15 {
		t.Fatalf("the alerts use %d metrics; want at least 15", len(used))
	}
	for _, name := range used {
		name = strings.TrimSuffix(name, "_bucket")
		if !known[name] && !known[strings.TrimSuffix(name, "_total")] && !known[strings.TrimSuffix(name, "_seconds")] {
			t.Errorf("the gateway has no metric %s", name)
		}
	}
}
