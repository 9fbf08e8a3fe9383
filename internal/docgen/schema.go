package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// node is a JSON value. Objects keep the order of their members, because it is
// that of the reference.
type node struct {
	keys    []string
	members map[string]*node
	items   []*node
	value   any // of anything else
}

func (n *node) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	start, err := d.Token()
	if err != nil {
		return err
	}
	switch start {
	case json.Delim('{'):
		n.members = make(map[string]*node)
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return err
			}
			member := new(node)
			if err := d.Decode(member); err != nil {
				return err
			}
			n.keys, n.members[key.(string)] = append(n.keys, key.(string)), member
		}
	case json.Delim('['):
		for d.More() {
			item := new(node)
			if err := d.Decode(item); err != nil {
				return err
			}
			n.items = append(n.items, item)
		}
	default:
		n.value = start
	}
	return nil
}

// at returns what lies under names, and an empty node where nothing does.
func (n *node) at(names ...string) *node {
	for _, name := range names {
		next := n.members[name]
		if next == nil {
			return new(node)
		}
		n = next
	}
	return n
}

// text returns a scalar as text, and "" for anything else.
func (n *node) text() string {
	if n.value == nil {
		return ""
	}
	return fmt.Sprint(n.value)
}

// schemas are the two that refer to each other.
type schemas struct{ gateway, registration *node }

func parseSchemas(gateway, registration []byte) (schemas, error) {
	var s schemas
	if err := json.Unmarshal(gateway, &s.gateway); err != nil {
		return s, err
	}
	return s, json.Unmarshal(registration, &s.registration)
}

// resolve follows the reference of n, in whose place its own description stays.
// within is the schema that n is of, and so is the second result. named is the
// name of the definition, "" without a reference.
func (s schemas) resolve(n, within *node) (resolved, of *node, named string) {
	ref := n.at("$ref").text()
	if ref == "" {
		return n, within, ""
	}
	document, path, _ := strings.Cut(ref, "#/")
	if document != "" {
		within = s.registration
	}
	if path == "" {
		return within, within, "registration document"
	}
	names := strings.Split(path, "/")
	return within.at(names...), within, names[len(names)-1]
}

// kinds are the definitions that are read as one kind of value.
var kinds = map[string]string{
	"address":               "address",
	"duration":              "duration",
	"size":                  "size",
	"secureURL":             "URL",
	"reverseDNS":            "reverse-DNS name",
	"document":              "path or document",
	"registration":          "path, document or list",
	"registration document": "registration document",
}

// kind says what values a schema takes.
func (s schemas) kind(n, within *node) string {
	resolved, of, named := s.resolve(n, within)
	if k, ok := kinds[named]; ok {
		return k
	}
	if options := resolved.at("enum").items; options != nil {
		var names []string
		for _, o := range options {
			if _, number := o.value.(json.Number); !number { // 0.1 is "0.1" as well
				names = append(names, code(o.text()))
			}
		}
		return strings.Join(names, ", ")
	}
	if c := resolved.at("const"); c.value != nil {
		return code(c.text())
	}
	for _, alternatives := range [][]*node{resolved.at("anyOf").items, resolved.at("oneOf").items} {
		var names []string
		for _, a := range alternatives {
			if k := s.kind(a, of); k != "" {
				names = append(names, k)
			}
		}
		if len(names) > 0 && resolved.at("type").text() == "" {
			return strings.Join(names, " or ")
		}
	}
	switch kind := resolved.at("type").text(); kind {
	case "array":
		if items := resolved.at("items"); items.members != nil {
			if inner := s.kind(items, of); inner != "" && inner != "object" {
				return "list of " + inner
			}
		}
		return "list"
	case "integer", "number":
		return kind + bounds(resolved)
	default:
		return kind
	}
}

// bounds says what a number may be, where that is not everything there is room for.
func bounds(n *node) string {
	low, high := n.at("minimum").text(), n.at("maximum").text()
	if high == "1073741824" {
		high = ""
	}
	if above := n.at("exclusiveMinimum").text(); above != "" {
		low = "above " + above
	}
	switch {
	case low != "" && high != "":
		return ", " + low + " to " + high
	case low != "" && low != "0":
		return ", from " + low
	}
	return ""
}
