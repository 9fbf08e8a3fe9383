package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"
)

// evaluation is how long the rules may take for one event. It is less than the
// subscription's timeoutMs, so that the gateway is told why, and not only late.
const evaluation = 500 * time.Millisecond

// policy is a compiled set of rules, safe for concurrent use.
type policy struct{ query rego.PreparedEvalQuery }

// load compiles the Rego and data files of a folder, tests aside.
func load(ctx context.Context, folder string) (*policy, error) {
	query, err := rego.New(
		rego.Query("data.ahp.effects"),
		rego.Load([]string{folder}, func(path string, _ fs.FileInfo, _ int) bool { return strings.HasSuffix(path, "_test.rego") }),
		// An error in a rule fails the evaluation. Otherwise the rule would
		// count as not matching, and a deny would be lost.
		rego.StrictBuiltinErrors(true),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", folder, err)
	}
	return &policy{query}, nil
}

// decide returns the effects that the rules give for a request's params. Rules
// that give none at all, not even an empty list, have not decided.
func (p *policy) decide(ctx context.Context, params map[string]any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, evaluation)
	defer cancel()
	results, err := p.query.Eval(ctx, rego.EvalInput(params))
	if err != nil {
		return nil, fmt.Errorf("evaluation: %w", err)
	}
	if len(results) != 1 {
		return nil, errors.New("data.ahp.effects is undefined")
	}
	effects, ok := results[0].Expressions[0].Value.([]any)
	if !ok {
		return nil, errors.New("data.ahp.effects is no list")
	}
	return effects, nil
}
