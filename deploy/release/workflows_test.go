package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rhysd/actionlint"
)

// pinned is an action by its commit, with its version for people.
var pinned = regexp.MustCompile(`(?m)^ +(?:- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// The workflows are what GitHub reads, use actions by commit, say what the token
// may do, and end.
func TestWorkflows(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(tree, ".github/workflows/*.yaml"))
	if err != nil || len(paths) != 4 {
		t.Fatalf("there are %d workflows, %v; want 4", len(paths), err)
	}
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		mistakes, err := linter.Lint(path, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mistakes {
			t.Errorf("%s:%d:%d: %s", path, m.Line, m.Column, m.Message)
		}
		w, errs := actionlint.Parse(text)
		if len(errs) > 0 || w == nil {
			t.Fatalf("%s: %v", path, errs)
		}
		if w.Permissions == nil || w.Permissions.All != nil && w.Permissions.All.Value != "read-all" {
			t.Errorf("%s does not say what its token may do, or lets it do everything", path)
		} else {
			for scope, p := range w.Permissions.Scopes {
				if p.Value.Value == "write" {
					t.Errorf("%s lets the token of every job write %s; want that said by the job that needs it", path, scope)
				}
			}
		}
		if w.Concurrency == nil {
			t.Errorf("%s says nothing of concurrency", path)
		}
		uses := 0
		for name, job := range w.Jobs {
			if job.TimeoutMinutes == nil {
				t.Errorf("%s: the job %s has no timeout", path, name)
			}
			for _, step := range job.Steps {
				if _, ok := step.Exec.(*actionlint.ExecAction); ok {
					uses++
				}
			}
		}
		if got := len(pinned.FindAll(text, -1)); got != uses {
			t.Errorf("%s names %d of its %d actions by commit and version; want all", path, got, uses)
		}
	}
}
