package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every value file makes exactly the objects that have been looked at.
func TestGolden(t *testing.T) {
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name+".yaml", template(t, name, values))
		})
	}
	files, err := filepath.Glob("testdata/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".yaml"), ".notes.txt"); cases(t)[name] == "" {
			t.Errorf("%s belongs to no file in testdata/values", file)
		}
	}
}

// golden compares text with a file in testdata/golden.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata/golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs from what is rendered now; look at it and run: go test . -run %s -update\n%s", path, strings.SplitN(t.Name(), "/", 2)[0], firstDifference(string(want), text))
	}
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return "want " + x + "\ngot  " + y
		}
	}
	return ""
}

func TestLint(t *testing.T) {
	for name, values := range cases(t) {
		if out, err := helm(t, "lint", "--strict", "--namespace", namespace, "--values", values, chart); err != nil {
			t.Errorf("helm lint --strict --values %s.yaml: %v\n%s", name, err, out)
		}
	}
}
