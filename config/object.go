package config

import (
	"slices"
	"strings"
	"time"
)

// object reads the members of one object. Every member that is asked for
// becomes a known one; done reports the others.
type object struct {
	r  *reader
	at spot
	// portable is set inside registration documents, where unknown members are
	// ignored (AHP-REG-001) and so only warned about.
	portable bool
	known    []string
	// refused are members that were reported by name.
	refused []string
	fields  map[string]*node
}

// object reads the value at s as an object. On another kind it reports that
// and returns an empty object, which done says nothing more about.
func (r *reader) object(s spot) *object {
	o := &object{r: r, at: s}
	if !r.is(s, kindObject, "write an object: keys and values") {
		return o
	}
	o.fields = make(map[string]*node, len(s.fields))
	for _, f := range s.fields {
		o.fields[f.key] = f.value
	}
	return o
}

// is reports whether the value at s has that kind, and reports it as a mistake
// where not.
func (r *reader) is(s spot, k kind, instead string) bool {
	if s.kind == k {
		return true
	}
	if s.kind != kindBroken {
		what := "must be " + k.String() + ", not " + s.kind.String()
		if s.kind == kindNull {
			what = "must be " + k.String() + ", and is empty"
		}
		r.unread(s, "", what, instead)
	}
	return false
}

// usable reports whether the object is one at all.
func (o *object) usable() bool { return o.fields != nil }

// get returns a member. A member whose mistake is reported already counts as
// found, so that it is not reported as missing too.
func (o *object) get(key string) (spot, bool) {
	if !slices.Contains(o.known, key) {
		o.known = append(o.known, key)
	}
	n, ok := o.fields[key]
	if !ok {
		return spot{}, false
	}
	return o.at.member(key, n), true
}

// has reports whether the member is there.
func (o *object) has(key string) bool {
	_, ok := o.fields[key]
	return ok
}

// need is get for a required member.
func (o *object) need(key, instead string) (spot, bool) {
	s, ok := o.get(key)
	if !ok && o.usable() {
		o.missing(key, instead)
	}
	return s, ok
}

func (o *object) missing(key, instead string) {
	m := o.at
	m.path = joinKey(m.path, key)
	o.r.unless(cause{slip: m.path}).mistake(m, "", "is missing", instead)
}

// UnknownKey is the What of a member that nobody asked for.
const UnknownKey = "unknown key"

// done reports every member that nobody asked for.
func (o *object) done() {
	if !o.usable() {
		return
	}
	for _, f := range o.at.fields {
		if slices.Contains(o.known, f.key) || slices.Contains(o.refused, f.key) {
			continue
		}
		m := Mistake{
			File: o.at.src.name, Line: f.line, Col: f.col,
			Path: joinKey(o.at.path, f.key), What: UnknownKey,
		}
		near := nearest(f.key, o.known)
		switch {
		case near != "":
			m.Instead = "did you mean " + near + "?"
		case o.portable:
			m.Instead = "remove it: it is ignored"
		default:
			m.Instead = "remove it; known here: " + strings.Join(o.known, ", ")
		}
		m.Warning = o.portable
		if near != "" && !o.portable {
			m.slipOf = joinKey(o.at.path, near)
		}
		o.r.add(m)
	}
}

// text reads a string. An unquoted value that some YAML reader takes for
// something else is refused, because a person cannot tell which one it is.
func (r *reader) text(s spot) (string, bool) {
	if s.plain && s.kind != kindNull && surprising(s.node) {
		r.mistake(s, "", "must be a string, and without quotes YAML readers take it for "+surpriseOf(s.node), "put it in quotes")
		return "", false
	}
	if !r.is(s, kindString, "write a string") {
		return "", false
	}
	return s.text, true
}

// boolean reads true or false.
func (r *reader) boolean(s spot) (v, ok bool) {
	if s.kind == kindBool && (s.text == "true" || s.text == "false") {
		return s.text == "true", true
	}
	if s.kind == kindBool || s.kind == kindString && isOldBool(s.text) {
		instead := "write false"
		switch strings.ToLower(s.text) {
		case "y", "yes", "on", "true":
			instead = "write true"
		}
		r.mistake(s, shown(s.text), "is not a boolean in every reader", instead)
		return false, false
	}
	r.is(s, kindBool, "write true or false")
	return false, false
}

func (o *object) boolean(key string, dst *bool) {
	if s, ok := o.get(key); ok {
		if v, ok := o.r.boolean(s); ok {
			*dst = v
		}
	}
}

// choice reads one of a few words.
func (o *object) choice(key string, dst *string, words ...string) {
	s, ok := o.get(key)
	if !ok {
		return
	}
	if v, ok := o.r.oneOf(s, words...); ok {
		*dst = v
	}
}

func (r *reader) oneOf(s spot, words ...string) (string, bool) {
	v, ok := r.text(s)
	if !ok {
		return "", false
	}
	if !slices.Contains(words, v) {
		r.mistake(s, shown(v), "is not one of the values known here", "write "+list(words))
		return "", false
	}
	return v, true
}

func (o *object) duration(key string, dst *time.Duration) {
	if s, ok := o.get(key); ok {
		if v, ok := o.r.duration(s); ok {
			*dst = v
		}
	}
}

func (o *object) size(key string, dst *int, least int) {
	if s, ok := o.get(key); ok {
		if v, ok := o.r.size(s, least); ok {
			*dst = v
		}
	}
}

func (o *object) count(key string, dst *int, least, most int) bool {
	s, ok := o.get(key)
	if !ok {
		return false
	}
	v, ok := o.r.integer(s, least, most)
	if ok {
		*dst = v
	}
	return ok
}

func (o *object) number(key string, dst *float64, instead string, good func(float64) bool) bool {
	s, ok := o.get(key)
	if !ok {
		return false
	}
	v, ok := o.r.number(s, instead)
	if ok && !good(v) {
		o.r.mistake(s, cut(s.text, maxShown), "is out of range", instead)
		return false
	}
	if ok {
		*dst = v
	}
	return ok
}
