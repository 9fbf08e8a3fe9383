package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the expected mistakes of the corpus anew")

// testEnv is the environment of every test; it does not depend on the process.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"SHORT_KEY":          "tooshort",
		"SPACED_KEY":         "0123456789 0123456789",
		"GOOD_KEY":           "0123456789abcdef0123456789abcdef",
		"ACME_AUTHORIZATION": "Bearer hunter2hunter2",
		"B_TOKEN":            "hunter2",
		"SECRETS_KEY":        strings.Repeat("5e", 32),
		"OLD_SECRETS_KEY":    "XV5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl5eXl4=",
	}[name]
	return v, ok
}

// read loads a corpus file as what its name says it is.
func read(path string) (any, []Mistake, error) {
	if strings.HasPrefix(filepath.Base(path), "registration-") {
		return first3(LoadRegistration(path))
	}
	return first3(Load(path, testEnv))
}

func first3[T any](v T, w []Mistake, err error) (any, []Mistake, error) { return v, w, err }

func corpus(t testing.TB, folder string) []string {
	t.Helper()
	var files []string
	for _, ext := range []string{"*.yaml", "*.json"} {
		found, err := filepath.Glob(filepath.Join("testdata", folder, ext))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatalf("testdata/%s holds no files", folder)
	}
	return files
}

func TestValidCorpus(t *testing.T) {
	for _, path := range corpus(t, "valid") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if _, _, err := read(path); err != nil {
				t.Errorf("read(%s) = %v; want no mistake", path, err)
			}
		})
	}
}

// TestInvalidCorpus compares every mistake of every file, warnings included,
// with the lines of the file's .want neighbour.
func TestInvalidCorpus(t *testing.T) {
	for _, path := range corpus(t, "invalid") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, warnings, err := read(path)
			var ms Mistakes
			if !errors.As(err, &ms) || len(ms) == 0 {
				t.Fatalf("read(%s) = %v; want Mistakes", path, err)
			}
			var b strings.Builder
			for _, m := range append(ms, warnings...) {
				checkMistake(t, m)
				b.WriteString(filepath.ToSlash(relative(t, m.String())) + "\n")
			}
			got := b.String()
			if *update {
				if err := os.WriteFile(path+".want", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path + ".want")
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("read(%s) =\n%s\nwant\n%s", path, got, want)
			}
		})
	}
}

// relative removes this folder from the names of files that were found by an
// absolute path.
func relative(t *testing.T, line string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(line, dir+string(filepath.Separator), "")
}

// checkMistake holds what is true of every mistake.
func checkMistake(t *testing.T, m Mistake) {
	t.Helper()
	switch s := m.String(); {
	case strings.Contains(s, "hunter2"):
		t.Errorf("mistake %q shows a secret", s)
	case strings.ContainsAny(s, "\r\n\x00"):
		t.Errorf("mistake %q is not on one line", s)
	case len(m.Value) > maxShown:
		t.Errorf("mistake %q shows %d bytes; want at most %d", s, len(m.Value), maxShown)
	case m.What == "" || m.Instead == "":
		t.Errorf("mistake %+v does not say what is wrong and what to write instead", m)
	}
}
