package ahpgateway_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/ahp-gateway/ahp-gateway"

// rule is what one package may import beside the standard library.
type rule struct {
	ours    []string // packages of this module
	modules []string // modules of others: each is confined to the packages that list it
	tests   []string // what test files may import beyond that, of either kind
}

// architecture is the whole import graph: a row for every package that has a
// Go file. A change of architecture is a change of this table.
var architecture = map[string]rule{
	".": {tests: []string{"ahp", "audit", "config", "gateway"}},
	"ahp": {
		tests: []string{"ahp/schema", "github.com/go-json-experiment/json", "github.com/santhosh-tekuri/jsonschema/v6"},
	},
	"admin": {
		ours:  []string{"audit", "config", "internal/durable", "sealed", "tenant"},
		tests: []string{"github.com/getkin/kin-openapi"},
	},
	"ahp/schema": {tests: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"audit":      {ours: []string{"ahp"}},
	"backend": {
		ours:    []string{"ahp", "egress"},
		modules: []string{"github.com/go-json-experiment/json", "github.com/valyala/fasthttp"},
		tests:   []string{"internal/fakebackend"},
	},
	"bench":      {ours: []string{"bench/load", "bench/peer"}, modules: []string{"github.com/HdrHistogram/hdrhistogram-go"}},
	"bench/load": {modules: []string{"github.com/HdrHistogram/hdrhistogram-go", "github.com/valyala/fasthttp", "golang.org/x/sys"}},
	"bench/peer": {modules: []string{"github.com/valyala/fasthttp"}},
	"breaker": {
		ours:    []string{"ahp"},
		modules: []string{"github.com/sony/gobreaker/v2"},
	},
	"cmd/ahp-gateway": {
		ours:    []string{"admin", "ahp", "audit", "config", "gateway", "internal/durable", "internal/samplepolicy", "routing", "sealed", "shared", "telemetry"},
		modules: []string{"github.com/fsnotify/fsnotify", "github.com/spf13/cobra", "github.com/spf13/pflag"},
		tests:   []string{"internal/fakebackend", "internal/redistest"},
	},
	"config": {
		ours:    []string{"ahp", "egress", "sealed"},
		modules: []string{"github.com/go-json-experiment/json", "go.yaml.in/yaml/v3"},
		tests:   []string{"github.com/santhosh-tekuri/jsonschema/v6"},
	},
	"decision": {ours: []string{"ahp"}},
	"dedupe":   {modules: []string{"github.com/hashicorp/golang-lru/v2"}},
	"egress":   {},
	"gateway": {
		ours: []string{"ahp", "audit", "backend", "breaker", "config", "decision", "dedupe", "routing", "sealed", "shared", "tenant"},
		modules: []string{
			"github.com/valyala/fasthttp",
			"go.opentelemetry.io/otel",
			"go.opentelemetry.io/otel/metric",
			"go.opentelemetry.io/otel/trace",
		},
		tests: []string{
			"internal/fakebackend", "internal/fakeissuer", "internal/redistest", "github.com/go-jose/go-jose/v4", "golang.org/x/net",
			"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/sdk/metric",
		},
	},
	"internal/durable": {},
	"internal/fakebackend": {
		ours:    []string{"ahp"},
		modules: []string{"github.com/valyala/fasthttp"},
	},
	"internal/fakeissuer":   {modules: []string{"github.com/go-jose/go-jose/v4"}},
	"internal/redistest":    {},
	"internal/samplepolicy": {},
	"routing":               {ours: []string{"ahp"}},
	"sealed":                {ours: []string{"internal/durable"}},
	"shared":                {modules: []string{"github.com/redis/rueidis"}, tests: []string{"internal/redistest"}},
	"telemetry": {
		modules: []string{
			"github.com/go-logr/logr",
			"github.com/google/uuid",
			"github.com/prometheus/client_golang",
			"github.com/prometheus/common",
			"github.com/prometheus/otlptranslator",
			"go.opentelemetry.io/otel",
			"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc",
			"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp",
			"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc",
			"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp",
			"go.opentelemetry.io/otel/exporters/prometheus",
			"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric",
			"go.opentelemetry.io/otel/exporters/stdout/stdouttrace",
			"go.opentelemetry.io/otel/metric",
			"go.opentelemetry.io/otel/sdk",
			"go.opentelemetry.io/otel/sdk/metric",
			"go.opentelemetry.io/otel/trace",
		},
	},
	"tenant": {
		ours:    []string{"egress"},
		modules: []string{"github.com/go-jose/go-jose/v4", "github.com/hashicorp/golang-lru/v2", "golang.org/x/time"},
		tests:   []string{"github.com/oauth2-proxy/mockoidc", "internal/fakeissuer"},
	},
}

// nameless are the names that say nothing about what a package holds.
var nameless = []string{"common", "helpers", "misc", "pkg", "server", "types", "util", "utils"}

func TestArchitecture(t *testing.T) {
	modules := required(t)
	found := make(map[string]bool)
	walk(t, func(name string) {
		dir := path.Dir(name)
		rule, listed := architecture[dir]
		if !listed && !found[dir] {
			t.Errorf("package %s is not in the architecture table", dir)
		}
		found[dir] = true
		file, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(name), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		if word := strings.TrimSuffix(file.Name.Name, "_test"); slices.Contains(nameless, word) {
			t.Errorf("%s: package name %s says nothing about what the package holds", name, word)
		}
		allowed := slices.Concat(rule.ours, rule.modules)
		if strings.HasSuffix(name, "_test.go") {
			// An external test package imports the package that it tests.
			allowed = slices.Concat(allowed, rule.tests, []string{dir})
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if what := origin(imported, modules); what != "" && listed && !slices.Contains(allowed, what) {
				t.Errorf("%s imports %s; the architecture table does not let it import %s", name, imported, what)
			}
		}
	})
	for dir := range architecture {
		if !found[dir] {
			t.Errorf("the architecture table lists %s; there is no such package", dir)
		}
	}
}

func TestFolderNames(t *testing.T) {
	walk(t, func(name string) {
		for _, part := range strings.Split(path.Dir(name), "/") {
			if slices.Contains(nameless, part) {
				t.Errorf("%s: folder name %s says nothing about what the folder holds", name, part)
			}
		}
	})
}

// origin returns the package of this module or the module of others that an
// import path belongs to, and "" for the standard library.
func origin(imported string, modules []string) string {
	if imported == module {
		return "."
	}
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		return ours
	}
	longest := ""
	for _, m := range modules {
		if (imported == m || strings.HasPrefix(imported, m+"/")) && len(m) > len(longest) {
			longest = m
		}
	}
	if first, _, _ := strings.Cut(imported, "/"); longest == "" && strings.Contains(first, ".") {
		return imported
	}
	return longest
}

// required returns the paths of the modules that go.mod requires.
func required(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			modules = append(modules, fields[0])
		}
	}
	if len(modules) == 0 {
		t.Fatal("go.mod requires no module; want at least one")
	}
	return modules
}

// isModule reports whether a folder is the root of a module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// walk calls visit with the slash-separated path of every Go file of the
// module, whatever its build constraints are. Modules in its folders are others.
func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name() == "testdata" || strings.ContainsAny(entry.Name()[:1], "._")):
			return fs.SkipDir
		case entry.IsDir() && name != "." && isModule(name):
			return fs.SkipDir
		case !entry.IsDir() && path.Ext(name) == ".go":
			visit(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
