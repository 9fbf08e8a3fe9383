package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// conformance writes what the gateway claims to conform to.
func conformance(p *page, binary string) error {
	out, err := exec.Command(binary, "version", "--conformance").Output()
	if err != nil {
		return err
	}
	var claim struct {
		Roles, Transports, Profiles, Limitations []string
		Snapshots                                []struct {
			ProtocolVersion, Revision, Pinned string
			Methods, Effects                  []string
			Events                            struct{ Intercept, Observe []string }
		}
	}
	if err := json.Unmarshal(out, &claim); err != nil {
		return err
	}
	list := func(names []string) string { return code(strings.Join(names, "`, `")) }
	p.title("Conformance statement", "what ahp-gateway version --conformance prints")
	p.text("What this build claims of the [Agent Hooks Protocol](https://github.com/agenthooksprotocol/agent-hooks-protocol) (AHP-CORE-001, AHP-CORE-002).\n" +
		"[Protocol coverage](coverage.md) names the tests that show it.")
	rows := [][]string{{"roles", list(claim.Roles)}, {"transports", list(claim.Transports)}, {"profiles", list(claim.Profiles)}}
	for _, s := range claim.Snapshots {
		rows = append(rows, []string{"snapshot " + code(s.ProtocolVersion), firstOf(s.Revision, s.Pinned)})
	}
	p.table([]string{"", ""}, rows)
	for _, s := range claim.Snapshots {
		p.text("## Snapshot %s", s.ProtocolVersion)
		p.text("Methods: %s.\n\nEffects: %s.", list(s.Methods), list(s.Effects))
		both := map[string][2]bool{}
		var order []string
		for at, events := range [][]string{s.Events.Intercept, s.Events.Observe} {
			for _, e := range events {
				if _, known := both[e]; !known {
					order = append(order, e)
				}
				marks := both[e]
				marks[at] = true
				both[e] = marks
			}
		}
		mark := map[bool]string{true: "yes", false: "–"}
		var events [][]string
		for _, e := range order {
			events = append(events, []string{code(e), mark[both[e][0]], mark[both[e][1]]})
		}
		p.table([]string{"event", "can be intercepted", "can be observed"}, events)
	}
	p.text("## Limitations\n")
	for _, l := range claim.Limitations {
		fmt.Fprintf(p, "* %s\n", l)
	}
	// The version is that of whoever builds the page.
	machine := regexp.MustCompile(`(?m)^  "version": .*\n`).ReplaceAll(bytes.TrimSpace(out), nil)
	p.text("## For machines\n\n`ahp-gateway version --conformance` prints it as JSON, with the version of the program:")
	p.block("json", string(machine))
	return nil
}
