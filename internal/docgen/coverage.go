package main

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// families say what the requirements with a prefix are about.
var families = map[string]string{
	"AUTH": "authorization of callers", "CAP": "what a harness can enforce", "COMP": "order and composition", "CONTENT": "content selection",
	"CORE": "identity, retries, conformance", "DEC": "decisions", "EDIT": "edits", "EXT": "extensions and unknown fields", "FAIL": "operational failures",
	"HTTP": "the HTTP binding", "REG": "registration", "RPC": "JSON-RPC", "SEC": "what a backend may not grant", "STDIO": "the stdio binding",
	"TB": "tool events", "VER": "snapshots",
}

// coverage writes which tests show which requirement of the protocol.
func coverage(p *page, root string) error {
	f, err := parse(root, "requirements_test.go")
	if err != nil {
		return err
	}
	files, err := testFiles(root)
	if err != nil {
		return err
	}
	shown, out := map[string][]string{}, map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				continue
			}
			table, ok := v.Values[0].(*ast.CompositeLit)
			if !ok {
				continue
			}
			for _, e := range table.Elts {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				id, _ := literal(kv.Key)
				if reason, ok := literal(kv.Value); ok {
					out[id] = reason
				} else if tests, ok := kv.Value.(*ast.CompositeLit); ok {
					for _, t := range tests.Elts {
						name, _ := literal(t)
						shown[id] = append(shown[id], name)
					}
				}
			}
		}
	}
	if len(shown) < 20 || len(out) == 0 {
		return fmt.Errorf("requirements_test.go has %d requirements; they are declared in another way now", len(shown))
	}
	p.wide()
	p.title("Protocol coverage", "requirements_test.go")
	p.text("Every requirement of the protocol that binds the gateway, and the tests that show it. `TestRequirements` fails where one of them is not there. Beside\n" +
		"them `make interop` compares thousands of decisions, made directly and through the gateway, with the official Python SDK.")
	rows := make([][]string, 0, len(shown))
	for _, id := range slices.Sorted(maps.Keys(shown)) {
		tests := slices.Clone(shown[id])
		for i, t := range tests {
			if tests[i] = code(t); files[t] != "" {
				tests[i] = file(code(t), files[t])
			}
		}
		rows = append(rows, []string{code(id), families[strings.Split(id, "-")[1]], strings.Join(tests, ", ")})
	}
	p.table([]string{"requirement", "about", "shown by"}, rows)
	p.text("## Out of scope")
	rows = nil
	for _, id := range slices.Sorted(maps.Keys(out)) {
		rows = append(rows, []string{code(id), families[strings.Split(id, "-")[1]], out[id]})
	}
	p.table([]string{"requirement", "about", "why"}, rows)
	return nil
}
