package main

import "github.com/ahp-gateway/ahp-gateway/ahp"

// conformance is the claim that AHP-CORE-001 and AHP-CORE-002 ask for. It says
// what is served, not what is planned.
type conformance struct {
	Implementation string             `json:"implementation"`
	Version        string             `json:"version"`
	Role           string             `json:"role"`
	Roles          []string           `json:"roles"`
	Transports     []string           `json:"transports"`
	Profiles       []string           `json:"profiles"`
	Snapshots      []snapshotConforms `json:"snapshots"`
	Limitations    []string           `json:"limitations"`
}

// snapshotConforms is the claim for one snapshot. Exactly one of Revision and
// Pinned says which text of it is meant.
type snapshotConforms struct {
	ProtocolVersion string       `json:"protocolVersion"`
	Revision        string       `json:"revision,omitempty"`
	Pinned          string       `json:"pinned,omitempty"`
	Methods         []string     `json:"methods"`
	Effects         []string     `json:"effects"`
	Events          eventsServed `json:"events"`
}

type eventsServed struct {
	Intercept []string `json:"intercept"`
	Observe   []string `json:"observe"`
}

func newConformance() conformance {
	c := conformance{
		Implementation: "ahp-gateway",
		Version:        programVersion(),
		Role:           "both",
		Roles:          []string{"harness", "backend"},
		Transports:     []string{"http"},
		Profiles:       []string{"base", "tool-interception", "lifecycle-observation"},
		Limitations: []string{
			"the stdio transport is not served",
			"HTTP/1.1 only; no HTTP/2 on either side",
			"draft: an edit of a user.elicitation.result is refused where the same process was not told of the question, or was more than 24 hours or 1,024 questions of the tenant before",
			"draft: there is no content upload; one that a backend advertises by hooks/configuration is left out",
			"draft: OAuth to backends is served for client_credentials with a configured issuer; authorization_code_pkce and discovery by a 401 challenge are not",
		},
	}
	for _, v := range ahp.Versions {
		s := snapshotConforms{
			ProtocolVersion: v.String(),
			Methods:         []string{ahp.MethodIntercept.String(), ahp.MethodObserve.String()},
			Effects:         effectsOf(v),
			Events:          eventsServed{Intercept: []string{}, Observe: []string{}},
		}
		switch v {
		case ahp.V01:
			s.Revision = "0.1.0-draft.1"
		case ahp.Draft:
			s.Pinned = "agenthooksprotocol 0.10.1"
			s.Methods = append(s.Methods, ahp.MethodConfiguration.String(), ahp.MethodCapabilities.String())
		}
		for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
			if e.Interceptable(v) {
				s.Events.Intercept = append(s.Events.Intercept, e.String())
			}
			if e.Observable(v) {
				s.Events.Observe = append(s.Events.Observe, e.String())
			}
		}
		c.Snapshots = append(c.Snapshots, s)
	}
	return c
}

// effectsOf returns the effects that the gateway composes.
func effectsOf(v ahp.Version) []string {
	var names []string
	for e := ahp.EffectDeny; e <= ahp.EffectInject; e++ {
		if _, ok := ahp.LookupEffect(v, []byte(e.String())); ok {
			names = append(names, e.String())
		}
	}
	return names
}
