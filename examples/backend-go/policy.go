package main

import (
	"regexp"
	"slices"
	"strings"
)

// effect is one member of an answer's effects.
type effect map[string]any

// maxTimeout is how long a command may be told to run, in milliseconds.
const maxTimeout = 60_000

// A pattern sees text, while a shell sees what the text expands to. These are
// an example of rules, not protection.
var (
	forcePush     = regexp.MustCompile(`(^|\s)git\s([^\n]*\s)?push\s([^\n]*\s)?(--force|-f)(\s|$)`)
	clusterDelete = regexp.MustCompile(`(^|\s)kubectl\s([^\n]*\s)?delete(\s|$)`)
)

// decide returns the effects on one tool call; none is no objection. Only what
// the harness advertised may be answered: where it cannot ask or change the
// input, the answer is the deny that permits less.
func decide(tool, capabilities map[string]any) []effect {
	input, _ := tool["input"].(map[string]any)
	command, readable := commandOf(input["command"])
	if tool["kind"] == "shell" && !readable {
		return deny("The command cannot be read.", "com.example.unreadable")
	}
	if forcePush.MatchString(command) {
		return deny("Force pushes are not allowed.", "com.example.force_push")
	}
	effects := []effect{}
	if ms, ok := input["timeout"].(float64); ok && ms > maxTimeout {
		if at(capabilities, "modify", "input", "merge") != true {
			return deny("Use a timeout of at most 60000 ms.", "com.example.timeout")
		}
		effects = append(effects, effect{"type": "modify", "target": "input", "operation": "merge", "value": effect{"timeout": maxTimeout}})
	}
	if clusterDelete.MatchString(command) {
		if advertised, _ := capabilities["effects"].([]any); !slices.Contains(advertised, any("ask")) {
			return deny("Deleting in a cluster needs somebody's consent.", "com.example.cluster_delete")
		}
		effects = append(effects, effect{"type": "ask"})
	}
	return effects
}

func deny(reason, code string) []effect {
	return []effect{{"type": "deny", "reason": reason, "code": code}}
}

// commandOf returns a shell command, which tools take as text or as its words.
func commandOf(v any) (string, bool) {
	if text, ok := v.(string); ok {
		return text, true
	}
	list, _ := v.([]any)
	words := make([]string, 0, len(list))
	for _, w := range list {
		if word, ok := w.(string); ok {
			words = append(words, word)
		}
	}
	return strings.Join(words, " "), len(words) > 0 && len(words) == len(list)
}

// at returns the member of v at a path, or nil.
func at(v any, path ...string) any {
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}
