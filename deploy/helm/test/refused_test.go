package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What would be installed and could not work is refused, with what to write.
func TestRefusedValues(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"tls: {enabled: true}", "tls.enabled without a certificate: write tls.secretName, or certManager.enabled"},
		{"adminTLS: {enabled: true}", "adminTLS.enabled without a certificate"},
		{"tls: {clientCA: {name: roots}}", "tls.clientCA without tls.enabled"},
		{"adminTLS: {enabled: true, secretName: s, names: [{dns: a.example}]}", "adminTLS.names without adminTLS.clientCA.name"},
		{"tls: {enabled: true}\ncertManager: {enabled: true}", "write certManager.issuerRef.name"},
		{"certManager: {enabled: true, issuerRef: {name: i}}", "nothing to issue"},
		{"existingConfig: {name: mine}\ntenants: {acme: {existingSecret: s}}", "exclude each other"},
		{"config: {adminApi: {keys: [{env: K}]}}", "config.adminApi needs store: redis"},
		{"config: {adminApi: {store: redis, keys: [{env: K}]}}", "write config.shared.redis"},
		{"ingress: {enabled: true, hosts: [a.example]}", "write its namespace into networkPolicy.ingress.namespaces"},
		{"httpRoute: {enabled: true, parentRefs: [{name: g}]}", "write its namespace into networkPolicy.ingress.namespaces"},
		{"service: {type: LoadBalancer}", "write networkPolicy.ingress.from"},
		{"monitoring: {kind: PodMonitor}", "write its namespace into networkPolicy.private.namespaces"},
		{"adminTLS: {enabled: true, secretName: s}\nmonitoring: {kind: ServiceMonitor}\nnetworkPolicy: {enabled: false}", "write monitoring.tlsConfig, with ca and serverName: refused-ahp-gateway-private"},
		{"adminTLS: {enabled: true, secretName: s, clientCA: {name: c}}\nmonitoring: {kind: PodMonitor}\nnetworkPolicy: {enabled: false}", "with ca, cert, keySecret and serverName"},
		{"networkPolicy: {enabled: false}\ningress: {enabled: true}", "ingress.enabled without ingress.hosts"},
		{"networkPolicy: {enabled: false}\nhttpRoute: {enabled: true}", "httpRoute.enabled without httpRoute.parentRefs"},
		{"autoscaling: {enabled: true, cpu: 0}", "autoscaling.enabled without a metric"},
		{"autoscaling: {enabled: true, minReplicas: 11}", "autoscaling.minReplicas is above maxReplicas"},
		{"tests: {enabled: true}", "write tests.keySecret.name"},
		{"tests: {enabled: true, keySecret: {name: k}}\ntls: {enabled: true, secretName: s, clientCA: {name: c}, clientAuth: required}", "the test pods have no client certificate"},
		{"shutdown: {gracePeriodSeconds: 44}", "write at least 45, or leave it out"},
		{"shutdown: {gracePeriodSeconds: 80}\nconfig: {limits: {drainTimeout: 1m0.5s}}", "write at least 81"},

		// By the schema.
		{"replicas: 3", "at '': additional properties 'replicas' not allowed"},
		{"image: {name: x}", "at '/image': additional properties 'name' not allowed"},
		{"config: {listen: 0.0.0.0:80}", "at '/config': additional properties 'listen' not allowed"},
		{"config: {limits: {rat: 5}}", "at '/config/limits': additional properties 'rat' not allowed"},
		{"config: {limits: {budget: 30}}", "at '/config/limits/budget'"},
		{"tenants: {Acme: {existingSecret: s}}", "at '/tenants': additional properties 'Acme' not allowed"},
		{"tenants: {acme: {config: {keys: [{sha256: ab}], registration: a.json}}}", "at '/tenants/acme/config/keys/0"},
		{"tenants: {acme: {existingSecret: s, config: {registration: a.json}}}", "at '/tenants/acme'"},
		{"prometheusRule: {disabled: [AHPGatewayNope]}", "at '/prometheusRule/disabled/0'"},
		{"maxSurge: 0", "at '/maxSurge'"},
		{"commonLabels: {app.kubernetes.io/name: x}", "at '/commonLabels/app.kubernetes.io"},
		{"podLabels: {app.kubernetes.io/component: x}", "at '/podLabels/app.kubernetes.io"},
		{"image: {tag: \"1\\n  command: [sh]\"}", "at '/image/tag'"},
	} {
		path := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(path, []byte(c.values), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := helm(t, "template", "refused", chart, "--values", path)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("helm template with %s: %v; want an error with %q", c.values, err, c.want)
		}
	}
}

// The configuration blocks of the README are values that are taken, and what
// is made of them is good.
func TestReadmeExamples(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) != 2 {
		t.Fatalf("README.md has %d blocks of values; want 2", len(blocks))
	}
	var together string
	for _, b := range blocks {
		b, _, _ = strings.Cut(b, "```")
		together += b
	}
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(together), 0o600); err != nil {
		t.Fatal(err)
	}
	valid(t, "readme", path)

	_, command, _ := strings.Cut(string(text), "```sh\nhelm ")
	command, _, _ = strings.Cut(command, "\n```")
	args := strings.Fields(command)
	for i, a := range args {
		switch a {
		case "deploy/helm/ahp-gateway":
			args[i] = filepath.Join(root, a)
		case "values.yaml":
			args[i] = path
		}
	}
	if out, err := helm(t, append(args, "--dry-run=client")...); err != nil || !strings.Contains(out, "kind: Deployment") {
		t.Errorf("helm %s: %v", command, err)
	}
}

// The notes name what comes next.
func TestNotes(t *testing.T) {
	for name, values := range cases(t) {
		out, err := helm(t, "install", name, chart, "--namespace", namespace, "--dry-run=client", "--values", values)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, notes, ok := strings.Cut(out, "\nNOTES:\n")
		if !ok {
			t.Fatalf("%s has no notes", name)
		}
		golden(t, name+".notes.txt", notes)
	}
}
