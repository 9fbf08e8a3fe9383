package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// labels are those of each instrument. A test of the documentation compares them
// with a scrape.
var labels = map[string]string{
	"ahp.gateway.audit.records":       "`ahp_result`: `written`, `dropped`, `failed`",
	"ahp.gateway.audit.unrecorded":    "`ahp_tenant`",
	"ahp.gateway.backend.duration":    "`ahp_tenant`, `ahp_backend`",
	"ahp.gateway.breaker.state":       "`ahp_tenant`, `ahp_backend`",
	"ahp.gateway.breaker.transitions": "`ahp_tenant`, `ahp_backend`, `ahp_breaker_state`: `closed`, `half_open`, `open`",
	"ahp.gateway.config.reloads":      "`ahp_result`: `done`, `refused`",
	"ahp.gateway.decision.duration":   "`ahp_verdict`: `pass`, `deny`, `error`",
	"ahp.gateway.decisions":           "`ahp_tenant`, `ahp_verdict`: `pass`, `changed`, `deny`, `fail_closed`, `error`",
	"ahp.gateway.dedupe":              "`ahp_tenant`, `ahp_outcome`",
	"ahp.gateway.deliveries":          "`ahp_tenant`, `ahp_backend`, `ahp_result`: `delivered`, `failed`, `dropped`",
	"ahp.gateway.deliveries.queued":   "`ahp_tenant`, `ahp_backend`",
	"ahp.gateway.discovery.skipped":   "`ahp_tenant`",
	"ahp.gateway.errors":              "`ahp_tenant`, `rpc_jsonrpc_error_code`",
	"ahp.gateway.fail_open.passes":    "`ahp_tenant`",
	"ahp.gateway.failures":            "`ahp_tenant`, `ahp_backend`, `ahp_failure_class`: see [failure classes](failures.md#failure-classes)",
	"ahp.gateway.inexact":             "`ahp_tenant`",
	"ahp.gateway.notifications":       "`ahp_tenant`, `ahp_result`: `accepted`, `repeated`, `invalid`",
	"ahp.gateway.refused":             "`ahp_reason`",
	"ahp.gateway.shared.failures":     "`ahp_shared_operation`, `ahp_failure_class`",
	"ahp.gateway.steps":               "`ahp_tenant`, `ahp_backend`, `ahp_outcome`",
	"ahp.gateway.stored.failures":     "`ahp_shared_operation`, `ahp_failure_class`",
	"ahp.gateway.throttled":           "`ahp_tenant`, `ahp_reason`: `in_flight`, `rate`, `rate_unknown`, `quota`, `share`, `bodies`",
}

// measure is one instrument as it is declared.
type measure struct{ kind, unit, description string }

// metrics writes every instrument that package gateway declares.
func metrics(p *page, root string) error {
	names, err := filepath.Glob(filepath.Join(root, "gateway", "*.go"))
	if err != nil {
		return err
	}
	found := map[string]measure{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parse("", filepath.ToSlash(name))
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				collect(found, "counter", n.Elts)
			case *ast.CallExpr:
				collect(found, kindOf(n.Fun), n.Args)
			}
			return true
		})
	}
	if len(found) < 30 {
		return fmt.Errorf("package gateway declares %d instruments; they are declared in another way now", len(found))
	}
	p.wide()
	p.title("Metrics", "the instruments of package gateway")
	p.text("For Prometheus at `/metrics` of the private listener, and by OTLP with the standard variables of OpenTelemetry (`OTEL_METRICS_EXPORTER=otlp`).\n" +
		"No label is ever chosen by a caller. Those that alerts need count from zero on; others are there once they first count. Beside them are the\n" +
		"usual `go_*`, `process_*` and `target_info`. [Alerts](../operate/alerts.md) says which to watch.")
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := found[name]
		if m.description == "" {
			return fmt.Errorf("the instrument %s has no description", name)
		}
		rows = append(rows, []string{fmt.Sprintf("`%s`{#%s}", exposed(name, m), exposed(name, m)), m.description, m.kind, labels[name]})
	}
	p.table([]string{"metric", "what it counts", "type", "labels"}, rows)
	return nil
}

// collect notes the instrument whose name begins the arguments, if one does.
func collect(found map[string]measure, kind string, args []ast.Expr) {
	if len(args) == 0 {
		return
	}
	name, ok := literal(args[0])
	if !ok || !strings.HasPrefix(name, "ahp.gateway.") {
		return
	}
	m := measure{kind: kind}
	var texts []string
	for _, a := range args[1:] {
		if text, ok := literal(a); ok {
			texts = append(texts, text)
		} else if call, ok := a.(*ast.CallExpr); ok && len(call.Args) == 1 {
			text, _ := literal(call.Args[0])
			switch selector, _ := call.Fun.(*ast.SelectorExpr); {
			case selector == nil:
			case selector.Sel.Name == "WithUnit":
				m.unit = text
			case selector.Sel.Name == "WithDescription":
				m.description = text
			}
		}
	}
	switch len(texts) {
	case 1:
		m.description = texts[0]
	case 2:
		m.unit, m.description = texts[0], texts[1]
	}
	if kind == "histogram" {
		m.unit = "s"
	}
	found[name] = m
}

// kindOf returns what a function that registers an instrument makes.
func kindOf(fun ast.Expr) string {
	name := ""
	switch f := fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	for _, kind := range []string{"histogram", "gauge", "counter"} {
		if strings.Contains(strings.ToLower(name), kind) {
			return kind
		}
	}
	return ""
}

// exposed returns the name that Prometheus sees.
func exposed(name string, m measure) string {
	name = strings.ReplaceAll(name, ".", "_")
	for unit, suffix := range map[string]string{"s": "_seconds", "By": "_bytes"} {
		if m.unit == unit && !strings.HasSuffix(name, suffix) {
			name += suffix
		}
	}
	if m.kind == "counter" {
		name += "_total"
	}
	return name
}
