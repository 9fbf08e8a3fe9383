// They are about processes, which the race detector does not look into.

//go:build linux && !race

package ahpgateway_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// TestReferenceIsCurrent compares the pages that are generated with those that
// the generator writes now.
func TestReferenceIsCurrent(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "run", "./internal/docgen", ".", dir).CombinedOutput(); err != nil {
		t.Fatalf("docgen: %v\n%s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil || len(pages) < 7 {
		t.Fatalf("docgen wrote %v, %v; want at least 7 pages", pages, err)
	}
	for _, page := range pages {
		name := "docs/reference/" + filepath.Base(page)
		want, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); !bytes.Equal(got, want) {
			t.Errorf("%s (%v) is not what the generator writes; run go generate ./internal/docgen", name, err)
		}
	}
}

// TestReferenceIsWhole looks for every key of the schemas in their references.
func TestReferenceIsWhole(t *testing.T) {
	for name, schema := range map[string][]byte{
		"docs/reference/configuration.md": config.GatewaySchema(),
		"docs/reference/registration.md":  config.RegistrationSchema(),
	} {
		var document any
		if err := json.Unmarshal(schema, &document); err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		properties(document, keys)
		if len(keys) < 15 {
			t.Errorf("the schema of %s has %d keys; want at least 15", name, len(keys))
		}
		text := read(t, name)
		for key := range keys {
			if !regexp.MustCompile("(?m)^(## |\\| `([A-Za-z.\\[\\]]+\\.)?)" + key + "(`\\{#|$)").MatchString(text) {
				t.Errorf("%s says nothing of the key %s", name, key)
			}
		}
	}
}

// properties collects the names of the properties of a schema, at any depth.
func properties(schema any, keys map[string]bool) {
	switch v := schema.(type) {
	case map[string]any:
		if p, ok := v["properties"].(map[string]any); ok {
			for key := range p {
				keys[key] = true
			}
		}
		for _, inner := range v {
			properties(inner, keys)
		}
	case []any:
		for _, inner := range v {
			properties(inner, keys)
		}
	}
}

// conditional are the metrics that the scrape of TestMetricsReference does not
// have: of shared state, and those that have nothing to count there.
var conditional = []string{
	"ahp_gateway_dedupe_total", "ahp_gateway_shared_available", "ahp_gateway_shared_failures_total", "ahp_gateway_stored_available",
	"ahp_gateway_stored_failures_total", "ahp_gateway_stored_held", "ahp_gateway_stored_left_out", "ahp_gateway_stored_lost",
}

// TestMetricsReference compares the reference of metrics with a scrape: names,
// kinds and labels.
func TestMetricsReference(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "ahp-gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/ahp-gateway").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	const configuration = `listen: 127.0.0.1:0
admin: 127.0.0.1:0
audit: {file: audit.jsonl}
registration:
  protocolVersion: "0.1"
  hooks:
    - id: com.example.policy
      transport: {type: http, url: "http://127.0.0.1:1/ahp"}
      subscriptions:
        - {events: [tool.before], mode: intercept, timeoutMs: 750, failurePolicy: fail-open}
        - {events: [tool.after], mode: observe}
`
	url, admin := serving(t, binary, configuration)
	event := writtenEvent(t, blocks(read(t, "README.md"), "sh"))
	post(t, url, event)
	post(t, url, "{}")
	post(t, url, `{"jsonrpc":"2.0","method":"hooks/observe","params":{}}`)
	scrape := scraped(t, admin)

	type row struct{ kind, labels string }
	rows := map[string]row{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(ahp_[a-z_]+)`\\{[^|]*\\| [^|]* \\| ([a-z]+) \\| ([^|]*) \\|").FindAllStringSubmatch(read(t, "docs/reference/metrics.md"), -1) {
		rows[m[1]] = row{m[2], m[3]}
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (ahp_[a-z_]+) ([a-z]+)$`).FindAllStringSubmatch(scrape, -1) {
		seen[m[1]] = true
		if rows[m[1]].kind != m[2] {
			t.Errorf("the reference has the metric %s as %q; want %s", m[1], rows[m[1]].kind, m[2])
		}
	}
	series := regexp.MustCompile(`(?m)^(ahp_[a-z_]+)\{([^}]*)\}`)
	for _, m := range series.FindAllStringSubmatch(scrape, -1) {
		name := m[1]
		if _, ok := rows[name]; !ok {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		}
		for _, label := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(m[2], -1) {
			if l := label[1]; l != "le" && !strings.HasPrefix(l, "otel_") && !strings.Contains(rows[name].labels, "`"+l+"`") {
				t.Errorf("the reference has the metric %s with the labels %q; want %s too", name, rows[name].labels, l)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if !seen[name] && !slices.Contains(conditional, name) {
			t.Errorf("the reference has the metric %s, which the scrape has not", name)
		}
	}
}

// TestAlertsHaveRunbooks looks for every alert in the table that leads from it to
// its runbook.
func TestAlertsHaveRunbooks(t *testing.T) {
	alerts := regexp.MustCompile(`(?ms)- alert: ([A-Za-z]+)$.*?severity: ([a-z]+)`).FindAllStringSubmatch(read(t, "deploy/helm/ahp-gateway/files/alerts.yaml"), -1)
	if len(alerts) < 10 {
		t.Fatalf("there are %d alerts; want at least 10", len(alerts))
	}
	page, runbooks := read(t, "docs/operate/alerts.md"), read(t, "docs/operate/runbooks.md")
	for _, a := range alerts {
		if row := "| `" + a[1] + "` | " + a[2] + " |"; !strings.Contains(page, row) {
			t.Errorf("docs/operate/alerts.md has no row %s", row)
		}
	}
	for _, link := range regexp.MustCompile(`docs/operate/runbooks\.md#([a-z-]+)`).FindAllStringSubmatch(read(t, "deploy/helm/ahp-gateway/files/alerts.yaml"), -1) {
		heading := regexp.MustCompile(`(?im)^## ` + strings.ReplaceAll(link[1], "-", "[ -]") + `$`)
		if !heading.MatchString(runbooks) {
			t.Errorf("an alert names the runbook %s, which is not in docs/operate/runbooks.md", link[1])
		}
	}
}
