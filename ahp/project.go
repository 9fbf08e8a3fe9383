package ahp

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
)

// View is what one subscription may see of an event. The zero value shows an
// event without native data and, in draft, with all of its content.
type View struct {
	// Native shows the event's native member.
	Native bool
	// Content is the subscription's content selection. A selection without a
	// default, as every 0.1 subscription has it, shows everything.
	Content ContentSelection
}

// Equal reports whether two views show the same of every event.
func (v View) Equal(w View) bool {
	return v.Native == w.Native && v.Content.Default == w.Content.Default && maps.Equal(v.Content.Categories, w.Content.Categories)
}

// part is one content part of a draft event.
type part struct {
	raw       []byte
	kind      []byte
	mediaType []byte
	category  []byte
	selection Selection
}

// readPart reads what a selection has to know of a content part that the
// decoder has accepted.
func readPart(raw []byte) part {
	p := part{raw: raw}
	for name, value := range Members(raw) {
		switch string(name) {
		case "kind":
			p.kind = Text(value)
		case "mediaType":
			p.mediaType = Text(value)
		case "category":
			p.category = Text(value)
		case "selection":
			p.selection, _ = ParseSelection(string(Text(value)))
		}
	}
	return p
}

// categoryOf returns the category that a selection goes by: the part's own, or
// that of its media type.
func (p *part) categoryOf() string {
	switch {
	case len(p.category) > 0:
		return string(p.category)
	case string(p.kind) == "text":
		return "text"
	case bytes.HasPrefix(p.mediaType, []byte("image/")):
		return "images"
	case bytes.HasPrefix(p.mediaType, []byte("audio/")):
		return "audio"
	case bytes.HasPrefix(p.mediaType, []byte("video/")):
		return "video"
	default:
		return "files"
	}
}

// walkParts calls f for every content part of a draft event in order, and
// reports whether all of them lie where the catalogue says and f agreed.
func walkParts(event []byte, t EventType, f func(raw []byte) bool) bool {
	for _, path := range contentPaths[t] {
		if !walkPath(event, path, f) {
			return false
		}
	}
	return true
}

func walkPath(value []byte, path []string, f func(raw []byte) bool) bool {
	if len(path) == 0 {
		return f(value)
	}
	if path[0] == "*" {
		if KindOf(value) != KindArray {
			return false
		}
		for e := range Elements(value) {
			if !walkPath(e, path[1:], f) {
				return false
			}
		}
		return true
	}
	if KindOf(value) != KindObject {
		return false
	}
	if member := Member(value, path[0]); member != nil {
		return walkPath(member, path[1:], f)
	}
	return true
}

// Whole reports whether a subscription with view v sees all of m's event.
func (m *Message) Whole(v View) bool {
	if m.Event.native.present() && !v.Native {
		return false
	}
	if !m.Event.hasContent || v.Content.Default == 0 || v.Content.all(SelectBody) {
		return true
	}
	return walkParts(m.Event.Raw, m.Event.Type, func(raw []byte) bool {
		p := readPart(raw)
		return v.Content.Of(p.categoryOf()) <= p.selection
	})
}

// all reports whether c selects sel of every category.
func (c ContentSelection) all(sel Selection) bool {
	for _, s := range c.Categories {
		if s != sel {
			return false
		}
	}
	return c.Default == sel
}

// edit replaces a span of a message.
type edit struct {
	span
	with []byte
}

// splice appends the part of b with the edits made, which do not overlap.
func splice(dst, b []byte, part span, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	at := part.start
	for _, e := range edits {
		dst = append(dst, b[at:e.start]...)
		dst = append(dst, e.with...)
		at = e.end
	}
	return append(dst, b[at:part.end]...)
}

// project appends the edits that leave of m's event what v shows, in no order.
func (m *Message) project(edits []edit, v View) []edit {
	if m.Event.hasContent && v.Content.Default != 0 && !v.Content.all(SelectBody) {
		walkParts(m.Event.Raw, m.Event.Type, func(raw []byte) bool {
			p := readPart(raw)
			if sel := v.Content.Of(p.categoryOf()); sel > p.selection {
				edits = append(edits, edit{m.place(raw), p.reduce(sel)})
			}
			return true
		})
	}
	if m.Event.native.present() && !v.Native {
		edits = append(edits, edit{span: m.cut(m.Event.native)})
	}
	return edits
}

// place returns where in the body a value found by Members or Elements is: what
// is sliced from the body ends where the body's capacity does.
func (m *Message) place(value []byte) span {
	start := cap(m.Body) - cap(value)
	return span{uint32(start), uint32(start + len(value))}
}

// reduce returns the part with no more than sel shows: its members as they
// are, less text, body and gap, under its new selection.
func (p *part) reduce(sel Selection) []byte {
	out := append(make([]byte, 0, len(p.raw)), '{')
	for name, value := range Members(p.raw) {
		switch string(name) {
		case "text", "body", "gap":
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, name...) // all names of a part are plain
		out = append(out, `":`...)
		if string(name) == "selection" {
			out = append(out, '"')
			out = append(out, sel.String()...)
			out = append(out, '"')
			continue
		}
		out = append(out, value...)
	}
	return append(out, '}')
}

// cut widens the span of an object's member by the comma that goes with it.
func (m *Message) cut(s span) span {
	before := int(s.start) - 1
	for isSpace(m.Body[before]) {
		before--
	}
	if m.Body[before] == ',' {
		return span{uint32(before), s.end}
	}
	if i := skipSpace(m.Body, int(s.end)); m.Body[i] == ',' {
		return span{s.start, uint32(skipSpace(m.Body, i+1))}
	}
	return s
}
