package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// counted says what a number counts, or its unit, by the last part of its key.
var counted = map[string]string{
	"rate": "requests per second", "burst": "requests", "inFlight": "requests", "inFlightPerTenant": "requests",
	"quotaDay": "requests per UTC day", "quotaMonth": "requests per UTC month", "day": "requests", "month": "requests",
	"connections": "connections", "connectionsPerIP": "connections", "observeQueue": "events", "auditQueue": "records",
	"entries": "events", "tenants": "tenants", "buckets": "steps", "volume": "calls", "ratio": "failures per call", "probes": "calls",
	"timeoutMs": "milliseconds",
}

// besides says what the schemas leave to the name of a key.
var besides = map[string]string{
	"log.level": "The least that is written.", "log.format": "Lines for people or for machines.", "failClosed.code": "For machines.",
	"tenants[].id":        "Its name in paths, records and metrics: lower-case letters, digits and `-`.",
	"tenants[].quota.day": "Requests in a UTC day; 0 for no limit.", "tenants[].quota.month": "Requests in a UTC month; 0 for no limit.",
	"hooks[].transport": "How the backend is reached.", "hooks[].authentication": "How the gateway says who it is.",
	"hooks[].authentication.type": "`oauth` in `draft` only.", "hooks[].authentication.clientId": "The gateway's id at the issuer.",
	"hooks[].authentication.flow": "There is nobody to consent.", "hooks[].authentication.scopes": "What is asked for.",
	"hooks[].subscriptions[].filters.toolKinds": "Kinds of tools, such as `shell`.", "hooks[].subscriptions[].filters.paths": "Patterns of paths.",
}

// reference collects the rows of one part of a reference.
type reference struct {
	schemas schemas
	restart func(key string) bool // nil where it does not matter
	rows    [][]string
	silent  []string // keys that nothing is said of
}

// add adds the keys of an object, and of those below it. path is "" or ends in a dot.
func (r *reference) add(path string, n, within *node) {
	required := map[string]bool{}
	for _, name := range n.at("required").items {
		required[name.text()] = true
	}
	for _, name := range n.at("properties").keys {
		r.key(path+name, n.at("properties", name), within, required[name])
	}
}

// key adds one key and what is below it.
func (r *reference) key(key string, n, within *node, required bool) {
	resolved, of, named := r.schemas.resolve(n, within)
	description := n.at("description").text()
	if description == "" {
		description = resolved.at("description").text()
	}
	if text, ok := besides[key]; ok {
		description = text
	}
	fallback := n.at("default").text()
	if fallback == "" {
		fallback = resolved.at("default").text()
	}
	standard := code(fallback)
	if at := strings.LastIndex(description, "Default"); standard == "" && at >= 0 {
		standard = strings.Trim(strings.TrimPrefix(description[at:], "Default"), ":. ")
		description = strings.TrimSpace(description[:at])
	}
	if required {
		standard = "required"
	}
	if description == "" {
		r.silent = append(r.silent, key)
	}
	last := key[strings.LastIndexByte(key, '.')+1:]
	kind := r.schemas.kind(n, within)
	if number := resolved.at("type").text(); (number == "integer" || number == "number") && counted[last] != "" {
		kind = counted[last] + ": " + kind
	}
	if kind == "string" && (strings.HasSuffix(strings.ToLower(last), "file") || strings.HasSuffix(strings.ToLower(last), "dir")) {
		kind = "path"
	}
	takes := "reload"
	if r.restart != nil && r.restart(key) {
		takes = "**restart**"
	}
	shared := strings.ContainsRune(key, '.') && r.schemas.gateway.at("properties", named).members != nil
	if shared {
		description = fmt.Sprintf("As [`%s`](#%s).", named, strings.ToLower(named))
	}
	r.rows = append(r.rows, []string{fmt.Sprintf("`%s`{#%s}", key, anchor(key)), description, kind, standard, takes})

	switch {
	case shared: // it has a part of its own
	case kinds[named] != "":
	case resolved.at("properties").members != nil:
		r.add(key+".", resolved, of)
	case resolved.at("additionalProperties").members != nil:
		inner, ofInner, _ := r.schemas.resolve(resolved.at("additionalProperties"), of)
		r.add(key+".ID.", inner, ofInner)
	case resolved.at("items").members != nil:
		inner, ofInner, _ := r.schemas.resolve(resolved.at("items"), of)
		r.add(key+"[].", inner, ofInner)
	}
}

// anchor returns the id of a key's row.
func anchor(key string) string { return strings.ReplaceAll(key, "[]", "") }

// configuration writes the reference of the gateway file.
func configuration(p *page, root string) error {
	s, err := parseSchemas(config.GatewaySchema(), config.RegistrationSchema())
	if err != nil {
		return err
	}
	restart, err := restarts(root)
	if err != nil {
		return err
	}
	p.title("Configuration reference", "config/schema/gateway.schema.json and gateway/reload.go")
	p.text("Every key of the gateway file. [The example](#an-example-of-every-key) at the end has them all in place, with remarks. Registration documents, which\n" +
		"are portable and not ours alone, have [a reference of their own](registration.md).")
	p.text("* A key with **restart** keeps its old value after a reload; the log and `/admin/config` name it until the restart. All others hold from the next request on.\n" +
		"* A duration needs a unit: `750ms`, `30s`, `1m30s`. A size is a number of bytes, or a string such as `1MiB`.\n" +
		"* An unknown key, a duplicate key and an alias are mistakes. `ahp-gateway validate` finds every mistake at once.\n" +
		"* `ahp-gateway config schema` prints the JSON Schema, for editors; `ahp-gateway config print` the effective configuration.")
	for _, name := range s.gateway.at("properties").keys {
		n := s.gateway.at("properties", name)
		resolved, of, named := s.resolve(n, s.gateway)
		p.text("## %s", name)
		r := reference{schemas: s, restart: restart}
		head := []string{"key", "what it is", "values", "default", "a change takes a"}
		r.key(name, n, s.gateway, false)
		if resolved.at("properties").members != nil && kinds[named] == "" {
			// The object itself is the heading.
			r = reference{schemas: s, restart: restart}
			if d := firstOf(n.at("description").text(), resolved.at("description").text()); d != "" {
				p.text("%s", d)
			}
			r.add(name+".", resolved, of)
		}
		if r.silent != nil {
			return fmt.Errorf("the schema says nothing of %v", r.silent)
		}
		p.table(head, r.rows)
	}
	p.text("## An example of every key\n\nWith its default, unless a remark says that it is an example.")
	p.block("yaml", `--8<-- "config/example.yaml"`)
	return nil
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// restarts reads which settings take a restart from where the gateway decides
// that: the calls differ("name", old.X != f.X) of needRestart. Where such a call
// compares fields of what it names, only those are meant.
func restarts(root string) (func(key string) bool, error) {
	f, err := parse(root, "gateway/reload.go")
	if err != nil {
		return nil, err
	}
	fixed := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "differ" {
			return true
		}
		name, ok := literal(call.Args[0])
		if !ok {
			return true
		}
		fields := map[string]bool{}
		ast.Inspect(call.Args[1], func(n ast.Node) bool {
			// old.Audit.File is the field File of the setting audit.
			outer, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if inner, ok := outer.X.(*ast.SelectorExpr); ok && strings.EqualFold(inner.Sel.Name, name) {
				fields[strings.ToLower(outer.Sel.Name)] = true
			}
			return true
		})
		if len(fields) == 0 {
			fields[""] = true
		}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			fixed[strings.TrimSuffix(strings.ToLower(name)+"."+field, ".")] = true
		}
		return true
	})
	// Of adminTLS its files are compared, by a function of their own.
	if !fixed["admintls"] || len(fixed) < 15 {
		return nil, fmt.Errorf("gateway/reload.go names %d settings that take a restart; they are declared in another way now", len(fixed))
	}
	delete(fixed, "admintls")
	for _, field := range []string{"certfile", "keyfile", "clientcafile"} {
		fixed["admintls."+field] = true
	}
	return func(key string) bool {
		key = strings.ToLower(key)
		for {
			if fixed[key] {
				return true
			}
			dot := strings.LastIndexByte(key, '.')
			if dot < 0 {
				return false
			}
			key = key[:dot]
		}
	}, nil
}

// literal returns the value of a string literal.
func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	return unquote(l.Value), true
}
