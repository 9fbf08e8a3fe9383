package main

import (
	"fmt"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// registration writes the reference of registration documents.
func registration(p *page) error {
	s, err := parseSchemas(config.GatewaySchema(), config.RegistrationSchema())
	if err != nil {
		return err
	}
	p.title("Registration reference", "config/schema/registration.schema.json")
	p.text("A registration document names the backends of a tenant and what each is asked. It is the protocol's, not ours: the same document can be given to a\n" +
		"harness. What the gateway adds for a backend, such as its breaker, is in the [gateway file](configuration.md#backends). [The guide](../registration.md) has examples.")
	p.text("* Any change takes a reload.\n* An unknown member of a document is ignored, with a warning. One that looks like a credential is a mistake: secrets are given by reference.")

	older := reference{schemas: s}
	older.add("hooks[].", s.registration.at("$defs", "hook01"), s.registration)
	older.add("hooks[].transport.headers.NAME.", s.registration.at("$defs", "source"), s.registration)
	in01 := map[string]bool{"`protocolVersion`": true, "`hooks`": true}
	for _, row := range older.rows {
		in01[name(row[0])] = true
	}
	r := reference{schemas: s}
	r.add("", s.registration, s.registration)
	r.add("hooks[].", s.registration.at("$defs", "draftHook"), s.registration)
	r.add("hooks[].transport.headers.NAME.", s.registration.at("$defs", "source"), s.registration)
	for _, row := range r.rows {
		switch name(row[0]) {
		case "`hooks[].authentication`": // in draft in one of two ways
			row[2] = "object"
		case "`hooks[].subscriptions[].events`": // which are allowed depends on the mode
			row[2] = "list of text"
		}
	}
	r.add("hooks[].authentication.", s.registration.at("$defs", "authentication"), s.registration)
	r.add("hooks[].authentication.", s.registration.at("$defs", "oauth"), s.registration)
	rows, seen := [][]string(nil), map[string]int{}
	for _, row := range r.rows {
		if at, again := seen[row[0]]; again { // type is of both
			if rows[at][2] != row[2] {
				rows[at][2] += ", " + row[2]
			}
			continue
		}
		snapshots := "draft"
		if in01[name(row[0])] {
			snapshots = "0.1, draft"
		}
		seen[row[0]] = len(rows)
		rows = append(rows, []string{row[0], row[1], row[2], row[3], snapshots})
	}
	if r.silent != nil {
		return fmt.Errorf("the schema says nothing of %v", r.silent)
	}
	p.table([]string{"key", "what it is", "values", "default", "snapshots"}, rows)
	p.text("`timeoutMs` and `failurePolicy` are required with `mode: intercept`, and forbidden with `mode: observe`. In `0.1` an intercept subscription lists\n" +
		"`tool.before` and nothing else, and `subscriptions` cannot be left out. [Conformance](conformance.md) lists the events of each snapshot.")
	return nil
}

// name returns the key of a row without its anchor.
func name(cell string) string {
	n, _, _ := strings.Cut(cell, "{")
	return n
}
