package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// failures writes the decision table and the failure classes, from the cases
// that TestFailureMatrix of the gateway runs.
func failures(p *page, root string) error {
	var outcomes []struct {
		Policy, Position, Decision string
		Called                     []int
		Audit                      struct {
			Verdict string
			Steps   []string
		}
	}
	if err := cases(root, "outcomes.json", &outcomes); err != nil {
		return err
	}
	var behaviours []struct {
		Behaviour, Setup string
		Class            json.RawMessage
	}
	if err := cases(root, "classes.json", &behaviours); err != nil {
		return err
	}
	test := file("`TestFailureMatrix`", "gateway/failures_test.go")

	p.wide()
	p.title("Failure classes and the decision table", "gateway/testdata/failures and ahp/failure.go")
	p.text("Each row of the first table is run with each behaviour of the second, by %s. [When things fail](../concepts/failures.md) explains them.", test)
	p.text("## What a failure decides\n\nA chain of three backends, of which the others have no objection. `managed` is a subscription with `scope: managed` or\n`disableable: false`, whatever its `failurePolicy`.")
	var rows [][]string
	for _, o := range outcomes {
		var called []string
		for i, n := range o.Called {
			if n > 0 {
				called = append(called, fmt.Sprint(i+1))
			}
		}
		told, details, _ := strings.Cut(o.Decision, ": ")
		if told = code(told); details != "" {
			told += ", “" + details + "”"
		}
		rows = append(rows, []string{o.Policy, o.Position, told, strings.Join(called, ", "), code(o.Audit.Verdict), code(strings.Join(o.Audit.Steps, "`, `"))})
	}
	p.table([]string{"policy", "the one that fails", "the harness is told", "whose turn comes", "audit verdict", "audit outcomes"}, rows)
	p.text("Where a backend cannot be called at all (an open breaker, no credential) its turn comes all the same, and fails at once.")

	texts, err := classComments(root)
	if err != nil {
		return err
	}
	p.text("## Failure classes\n\nThe values of `ahp_failure_class` in `ahp_gateway_failures_total` and of `failure` in audit records. They never change meaning. What costs waiting, or\nsays that the backend is not well, counts against its breaker; an answer that arrived whole and in time does not, however bad it is.")
	rows = nil
	for _, c := range ahp.FailureClasses() {
		var by []string
		for _, b := range behaviours {
			name := firstOf(b.Setup, b.Behaviour)
			if strings.Contains(string(b.Class), `"`+c.String()+`"`) && !slices.Contains(by, name) {
				by = append(by, name)
			}
		}
		trips := "–"
		if c.TripsBreaker() {
			trips = "yes"
		}
		text := texts[int(c)]
		if text == "" {
			return fmt.Errorf("ahp/failure.go says nothing of %s", c)
		}
		rows = append(rows, []string{code(c.String()), text, trips, strings.Join(by, ", ")})
	}
	p.table([]string{"class", "what happened", "counts against the breaker", "behaviours that are tried"}, rows)
	return nil
}

func cases(root, name string, v any) error {
	b, err := os.ReadFile(filepath.Join(root, "gateway", "testdata", "failures", name))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// classComments returns what the comments of the failure classes say, by number.
func classComments(root string) (map[int]string, error) {
	f, err := parse(root, "ahp/failure.go")
	if err != nil {
		return nil, err
	}
	texts := map[int]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || len(g.Specs) < 2 {
			continue
		}
		for i, spec := range g.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || v.Doc == nil {
				continue
			}
			text := strings.Join(strings.Fields(v.Doc.Text()), " ")
			if said, ok := strings.CutPrefix(text, v.Names[0].Name+": "); ok {
				texts[i] = said
			}
		}
	}
	return texts, nil
}
