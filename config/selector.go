package config

import (
	"regexp"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// selectors reads the events of a subscription.
func (d *document) selectors(s spot, mode Mode, path string, h *hookScope) []string {
	if !d.is(s, kindList, "write a list of event names") {
		return nil
	}
	if len(s.items) == 0 {
		d.mistake(s, "", "is an empty list", "write at least one event name")
	}
	var selectors []string
	seen := make(map[string]bool)
	for i := range s.items {
		at := s.item(i)
		text, ok := d.text(at)
		if !ok {
			continue
		}
		if seen[text] {
			d.mistake(at, shown(text), "is there twice", "keep one of them")
			continue
		}
		seen[text] = true
		if d.version == 0 || !d.selector(at, text, mode) {
			continue
		}
		selectors = append(selectors, text)
		d.once(at, text, mode, path, h)
	}
	return selectors
}

// once refuses, in 0.1, the same backend twice for one event and mode.
func (d *document) once(s spot, name string, mode Mode, path string, h *hookScope) {
	event, ok := ahp.LookupEvent(ahp.V01, name)
	if d.version != ahp.V01 || !ok || mode == 0 {
		return
	}
	k := eventMode{event, mode}
	if first, dup := h.events[k]; dup {
		d.mistake(s, shown(name), "is delivered to this backend in mode "+mode.String()+" by "+first+" already, and 0.1 allows that once", "keep it in one subscription")
		return
	}
	h.events[k] = path
}

// selector checks one selector: an exact name or, in draft, "*" or "family.*"
// of a family that has an event for the mode. AHP-REG-002.
func (d *document) selector(s spot, text string, mode Mode) bool {
	v := d.version
	if strings.Contains(text, "*") {
		return d.wildcard(s, text, mode)
	}
	event, ok := ahp.LookupEvent(v, text)
	if !ok {
		instead := "write one of " + eventNames(v, mode, "")
		other := ahp.Draft
		if v == ahp.Draft {
			other = ahp.V01
		}
		what := "is no event of snapshot " + v.String()
		if near := d.nearest(text, strings.Split(eventNames(v, 0, ""), ", ")); near != "" {
			instead = "did you mean " + near + "?"
		}
		if _, ok := ahp.LookupEvent(other, text); ok {
			what += ", only of " + other.String()
			if v == ahp.Draft && text == ahp.ToolError.String() {
				instead = "write tool.after, which in draft has outcome error"
			}
		}
		d.mistake(s, shown(text), what, instead)
		return false
	}
	if !fits(event, v, mode) {
		d.mistake(s, shown(text), "is not an event for mode "+mode.String()+" in snapshot "+v.String(), "write one of "+eventNames(v, mode, ""))
		return false
	}
	return true
}

// advertisedFamily is what a backend may call a family that we do not know.
var advertisedFamily = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

func (d *document) wildcard(s spot, text string, mode Mode) bool {
	v := d.version
	if v == ahp.V01 {
		d.mistake(s, shown(text), "is a wildcard, and 0.1 has exact names only", "write one or more of "+eventNames(v, mode, ""))
		return false
	}
	if text == "*" {
		return true
	}
	family, ok := strings.CutSuffix(text, ".*")
	if !ok || strings.ContainsAny(family, ".*") || family == "" {
		d.mistake(s, shown(text), "is not a selector", `write an exact name, "*", or one family such as "tool.*"`)
		return false
	}
	if d.advertised && advertisedFamily.MatchString(family) && eventNames(v, mode, family+".") == "" {
		d.warn(s, "", "covers no event that this gateway has in that mode", "it is left out")
		return false
	}
	if eventNames(v, 0, family+".") == "" {
		d.mistake(s, shown(text), "is no family of events", "write one of "+families(v))
		return false
	}
	if eventNames(v, mode, family+".") == "" {
		d.mistake(s, shown(text), "has no event for mode "+mode.String()+", so it would never be called", "write one or more of "+eventNames(v, mode, ""))
		return false
	}
	return true
}

// fits reports whether a mode that is known can deliver the event.
func fits(e ahp.EventType, v ahp.Version, mode Mode) bool {
	switch mode {
	case Intercept:
		return e.Interceptable(v)
	case Observe:
		return e.Observable(v)
	default:
		return e.In(v)
	}
}

// eventNames lists the events of a snapshot and mode that start with prefix.
func eventNames(v ahp.Version, mode Mode, prefix string) string {
	var names []string
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		if fits(e, v, mode) && strings.HasPrefix(e.String(), prefix) {
			names = append(names, e.String())
		}
	}
	return strings.Join(names, ", ")
}

func families(v ahp.Version) string {
	var names []string
	seen := make(map[string]bool)
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		family, _, _ := strings.Cut(e.String(), ".")
		if e.In(v) && !seen[family] {
			seen[family] = true
			names = append(names, `"`+family+`.*"`)
		}
	}
	return strings.Join(names, ", ")
}
