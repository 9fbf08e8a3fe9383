package main

import (
	"strconv"
	"strings"
)

// settingsBetween compares two texts that config prints, value by value, in the
// order of the second one, what only the first one has at the end. Items of
// lists are told apart by their id or snapshot, or else by their place.
func settingsBetween(before, after []byte) []settingDifference {
	differing := []settingDifference{}
	old, now := valuesOf(string(before)), valuesOf(string(after))
	values := make(map[string]string, len(old))
	for _, v := range old {
		values[v.key] = v.value
	}
	for _, v := range now {
		if before, ok := values[v.key]; !ok || before != v.value {
			differing = append(differing, settingDifference{v.key, before, v.value})
		}
		delete(values, v.key)
	}
	for _, v := range old {
		if _, only := values[v.key]; only {
			differing = append(differing, settingDifference{v.key, v.value, ""})
		}
	}
	return differing
}

// value is one line of a printed text that holds a value, with the way to it.
type value struct{ key, value string }

// valuesOf takes a printed text apart: block-style YAML with two spaces for each
// level, of which every line holds one key.
func valuesOf(text string) []value {
	type level struct {
		path  string
		items int // of the list there, so far
	}
	var all []value
	levels := []level{{}} // levels[d] is what lines of depth d belong to
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		own := strings.TrimLeft(line, " ")
		depth := (len(line) - len(own)) / 2
		entry, isItem := strings.CutPrefix(own, "- ")
		key, v, ok := strings.Cut(entry, ":")
		if !ok || depth >= len(levels) {
			continue // no line of such a text
		}
		levels = levels[:depth+1]
		if isItem {
			list := &levels[depth]
			name := strconv.Itoa(list.items)
			list.items++
			if key == "id" || key == "protocolVersion" {
				name = strings.TrimSpace(v)
			}
			levels = append(levels, level{path: list.path + "[" + name + "]"})
			depth++
		}
		path := key
		if at := levels[depth].path; at != "" {
			path = at + "." + key
		}
		levels = append(levels, level{path: path})
		if v = strings.TrimSpace(v); v != "" {
			all = append(all, value{path, v})
		}
	}
	return all
}
