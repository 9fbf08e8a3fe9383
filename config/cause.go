package config

import (
	"slices"
	"strings"
)

// cause is what a mistake can come of that is a mistake itself: then it is not
// one of its own, and is left out. Its paths are such as auth.issuers[].tenants,
// with [] for any member of a list, several of them with | between them.
type cause struct {
	// of are the paths in a file that decide whether there is a mistake.
	file, of string
	// others are the same for other files: those of among, with a NUL between
	// them, or with "" for all.
	others, among string
	// slip are paths in the mistake's own file that are looked for, and are there
	// under a misspelt key, if they are.
	slip string
}

// unless returns what reports mistakes that are left out where there is one that c
// tells, because they come of that.
func (r *reader) unless(c cause) consequences { return consequences{r, c} }

// consequences are mistakes and warnings with one cause.
type consequences struct {
	r     *reader
	cause cause
}

func (c consequences) mistake(s spot, value, what, instead string) {
	c.r.add(Mistake{File: s.src.name, Line: s.line, Col: s.col, Path: s.path, Value: value, What: what, Instead: instead, cause: c.cause})
}

func (c consequences) warn(s spot, value, what, instead string) {
	c.r.add(Mistake{File: s.src.name, Line: s.line, Col: s.col, Path: s.path, Value: value, What: what, Instead: instead, Warning: true, cause: c.cause})
}

// oneOf is the cause of none of some keys of the object at s being there, of which
// one is needed: that it is misspelt. Where several are there it is none.
func oneOf(s spot, keys ...string) cause {
	if slices.ContainsFunc(keys, s.has) {
		return cause{}
	}
	return cause{slip: s.members(keys...)}
}

// members returns the paths of members of the value at s.
func (s spot) members(keys ...string) string {
	paths := make([]string, len(keys))
	for i, key := range keys {
		paths[i] = joinKey(s.path, key)
	}
	return strings.Join(paths, "|")
}

// unread is mistake where nothing of the value at s was read, so that whatever is
// looked for in it seems to be missing.
func (r *reader) unread(s spot, value, what, instead string) {
	r.add(Mistake{File: s.src.name, Line: s.line, Col: s.col, Path: s.path, Value: value, What: what, Instead: instead, unread: true})
}

// fault is where a mistake is; unread is that of the mistake.
type fault struct {
	path   string
	unread bool
}

// faults are those of each file.
type faults map[string][]fault

func (f faults) add(file string, at fault) {
	if !slices.Contains(f[file], at) {
		f[file] = append(f[file], at)
	}
}

// explain reports whether there is a fault at one of the paths or in it, or what
// it is part of was not read.
func (f faults) explain(file, paths string) bool {
	return slices.ContainsFunc(f[file], func(at fault) bool {
		for path := range strings.SplitSeq(paths, "|") {
			if at.explains(path) {
				return true
			}
		}
		return false
	})
}

func (f fault) explains(path string) bool {
	fault := f.path
	for fault != "" && path != "" {
		if rest, any := strings.CutPrefix(path, "[]"); any && fault[0] == '[' {
			_, fault, _ = strings.Cut(fault, "]")
			path = rest
			continue
		}
		if fault[0] != path[0] {
			return false
		}
		fault, path = fault[1:], path[1:]
	}
	if path != "" {
		return f.unread && f.path != "" && (path[0] == '.' || path[0] == '[')
	}
	return fault == "" || fault[0] == '.' || fault[0] == '['
}

// causes returns mistakes and warnings without those that come of another
// mistake: whoever corrects that one has nothing else to correct. What comes of
// one is no cause itself, so that of mistakes at least one is left.
func causes(mistakes, warnings []Mistake) (kept, doubts []Mistake) {
	if len(mistakes) == 0 {
		return mistakes, warnings
	}
	slips, faulty := make(faults), make(faults)
	for _, m := range mistakes {
		if m.slipOf != "" {
			slips.add(m.File, fault{path: m.slipOf})
			faulty.add(m.File, fault{m.slipOf, true})
		}
	}
	slipped := func(m Mistake) bool {
		return m.cause.slip != "" && slices.ContainsFunc(strings.Split(m.cause.slip, "|"), func(path string) bool { return slices.Contains(slips[m.File], fault{path: path}) })
	}
	for _, m := range mistakes {
		if m.cause.of+m.cause.others == "" && !slipped(m) && m.What != UnknownKey {
			faulty.add(m.File, fault{m.Path, m.unread})
		}
	}
	explained := func(m Mistake) bool {
		if slipped(m) || m.cause.of != "" && faulty.explain(m.cause.file, m.cause.of) {
			return true
		}
		if m.cause.others == "" {
			return false
		}
		for file := range faulty {
			if file == m.cause.file || m.cause.among != "" && !slices.Contains(strings.Split(m.cause.among, "\x00"), file) {
				continue
			}
			if slices.Contains(faulty[file], fault{"", true}) || faulty.explain(file, m.cause.others) {
				return true
			}
		}
		return false
	}
	kept, doubts = slices.DeleteFunc(mistakes, explained), slices.DeleteFunc(warnings, explained)
	for _, all := range [][]Mistake{kept, doubts} {
		for i := range all {
			all[i].cause, all[i].slipOf, all[i].unread = cause{}, "", false
		}
	}
	return kept, doubts
}
