package ahp

import (
	"bytes"
	"strconv"
	"strings"
)

// maxSlots is how many members of one object its rules may speak of.
const maxSlots = 5

// walker holds a value of a scanned message against a shape, in one pass and
// without building anything as long as the value fits.
type walker struct {
	b []byte
	// content is set once a content part was met.
	content bool
	// where and why tell of the first misfit: the path below the value, of
	// names from shapes and of indexes, and what is wrong there.
	where, why string
}

// fits reports whether the value at i has shape s.
func (w *walker) fits(s *shape, i int) bool {
	_, _, ok := w.value(s, i)
	return ok
}

// misfit says what is wrong with the value at path. Its length is bounded by
// the shapes: nothing of it is the caller's.
func (w *walker) misfit(path string) string { return path + w.where + " " + w.why }

func (w *walker) refuse(why string) (end int, bits uint64, ok bool) {
	w.why = why
	return 0, 0, false
}

// value checks the value at i, and returns where it ends and which of the
// shape's bits it has.
func (w *walker) value(s *shape, i int) (end int, bits uint64, ok bool) {
	c := w.b[i]
	switch s.kind {
	case shapeAny:
		return skipValue(w.b, i), 0, true
	case shapeObject:
		if c != '{' {
			return w.refuse("is no object")
		}
		return w.object(s, i)
	case shapeList:
		if c != '[' {
			return w.refuse("is no list")
		}
		return w.list(s, i)
	case shapeNever:
		return w.refuse("does not belong there")
	case shapeChoice:
		kind := KindOf(w.b[i:])
		for _, choice := range s.choices {
			if choice.of() == kind {
				return w.value(choice, i)
			}
		}
		return w.refuse("is no " + s.what)
	}
	switch {
	case c != '"':
		end = skipValue(w.b, i)
		bits, ok = s.scalar(w.b[i:end])
	case s.kind == shapeText || s.kind == shapeFilled:
		// The longest texts of a message; what they say is not looked at.
		end = skipValue(w.b, i)
		ok = s.kind == shapeText || end > i+2
	default:
		var t []byte
		t, end = w.text(i)
		bits, ok = s.says(t)
	}
	if ok {
		return end, bits, true
	}
	if s.kind == shapeEnum || s.kind == shapeScheme {
		return w.refuse("is none of " + strings.Join(s.values, ", "))
	}
	return w.refuse("is no " + s.what)
}

// of returns the kind of JSON value that a choice is made by.
func (s *shape) of() Kind {
	switch s.kind {
	case shapeNull:
		return KindNull
	case shapeBool:
		return KindBool
	case shapeAnyNumber, shapeAnyWhole, shapeWhole, shapeNumber:
		return KindNumber
	case shapeList:
		return KindArray
	case shapeObject:
		return KindObject
	default:
		return KindString
	}
}

// text returns the string at i without escapes, and where it ends.
func (w *walker) text(i int) (t []byte, end int) {
	n, _ := plain(w.b[i+1:])
	j := i + 1 + n
	if w.b[j] == '"' {
		return w.b[i+1 : j], j + 1
	}
	end = skipValue(w.b, i)
	return unescape(w.b[i+1 : end-1]), end
}

// scalar reports whether a raw value, which is no string, is of a shape that is
// no container.
func (s *shape) scalar(raw []byte) (bits uint64, ok bool) {
	switch s.kind {
	case shapeNull:
		return 0, raw[0] == 'n'
	case shapeBool:
		switch raw[0] {
		case 't':
			return bitTrue, true
		case 'f':
			return bitFalse, true
		}
		return 0, false
	case shapeTrue:
		return bitTrue, raw[0] == 't'
	case shapeWhole:
		n, ok := readNumber(raw)
		return 0, ok && n.whole && !n.negative && (!n.zero || s.atLeast == 0)
	case shapeAnyWhole:
		n, ok := readNumber(raw)
		return 0, ok && n.whole
	case shapeNumber:
		n, ok := readNumber(raw)
		return 0, ok && !n.negative
	case shapeAnyNumber:
		return 0, KindOf(raw) == KindNumber
	}
	return 0, false
}

// says reports whether a text is of a shape.
func (s *shape) says(t []byte) (bits uint64, ok bool) {
	switch s.kind {
	case shapeEnum, shapeScheme, shapeDotted:
		for i, v := range s.values {
			if string(t) == v {
				return 1 << (int(s.shift) + i), true
			}
		}
		switch s.kind {
		case shapeScheme:
			return bitOther, len(t) > 1 && t[0] == '_' && t[1] != '\n'
		case shapeDotted:
			return bitOther, IsReverseDNS(t)
		}
		return bitOther, s.open && len(t) > 0
	case shapeURI:
		return 0, isURI(t)
	case shapeHTTPURL:
		return 0, (bytes.HasPrefix(t, []byte("https://")) || bytes.HasPrefix(t, []byte("http://"))) && isURI(t)
	case shapeDateTime:
		return 0, isDateTime(t)
	case shapeCurrency:
		return 0, len(t) == 3 && isUpper(t[0]) && isUpper(t[1]) && isUpper(t[2])
	case shapeSHA256:
		return 0, isDigest(t)
	case shapeMedia:
		if string(t) == "text/plain" {
			return bitPlain, true
		}
		return bitAttachment, isAttachment(t)
	}
	return 0, false
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isDigest(t []byte) bool {
	if len(t) != 64 {
		return false
	}
	for _, c := range t {
		if !isDigit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// list checks the list at i. Its bits are those of all its elements.
func (w *walker) list(s *shape, i int) (end int, bits uint64, ok bool) {
	first := skipSpace(w.b, i+1)
	i = first
	n := 0
	for w.b[i] != ']' {
		end, b, ok := w.value(s.elem, i)
		if !ok {
			w.where = "[" + strconv.Itoa(n) + "]" + w.where
			return 0, 0, false
		}
		n++
		bits |= b
		if i = skipSpace(w.b, end); w.b[i] == ',' {
			i = skipSpace(w.b, i+1)
		}
	}
	switch {
	case n < s.atLeast:
		return w.refuse("is empty")
	case s.unique && n > 1 && w.repeats(first, n):
		return w.refuse("says something twice")
	}
	return i + 1, bits, true
}

// repeats reports whether two of the n strings of a list, of which the first
// stands at i, are the same.
func (w *walker) repeats(i, n int) bool {
	// A long list is no reason to compare every pair.
	const few = 16
	if n > few {
		seen := make(map[string]struct{}, n)
		for i < len(w.b) && w.b[i] == '"' {
			end := skipValue(w.b, i)
			t := string(Text(w.b[i:end]))
			if _, twice := seen[t]; twice {
				return true
			}
			seen[t] = struct{}{}
			i = w.next(end)
		}
		return false
	}
	var seen [few][]byte
	for k := range n {
		end := skipValue(w.b, i)
		seen[k] = Text(w.b[i:end])
		for _, earlier := range seen[:k] {
			if bytes.Equal(earlier, seen[k]) {
				return true
			}
		}
		i = w.next(end)
	}
	return false
}

// next returns where the element or name behind the value that ends at i
// begins, or where the container closes.
func (w *walker) next(i int) int {
	if i = skipSpace(w.b, i); w.b[i] == ',' {
		i = skipSpace(w.b, i+1)
	}
	return i
}

// remembered is what rules are told of a member.
type remembered struct {
	at   int // 0 where the member is absent: no value begins a message
	bits uint64
}

// object checks the object at i. Its bits are those of its shown members.
func (w *walker) object(s *shape, i int) (end int, bits uint64, ok bool) {
	if s.part {
		w.content = true
	}
	var seen uint32
	var slots [maxSlots + 1]remembered
	empty := true
	i = skipSpace(w.b, i+1)
	for w.b[i] == '"' {
		empty = false
		name, end := w.text(i)
		i = skipSpace(w.b, skipSpace(w.b, end)+1)
		known := s.find(name)
		if known < 0 {
			switch {
			case s.closed:
				return w.refuse("has an unknown member")
			case s.dotted && !IsReverseDNS(name):
				return w.refuse("has a name that is no reverse-DNS name")
			case s.others != nil:
				if end, _, ok = w.value(s.others, i); !ok {
					w.where = ".*" + w.where
					return 0, 0, false
				}
			default:
				end = skipValue(w.b, i)
			}
			i = w.next(end)
			continue
		}
		m := &s.members[known]
		seen |= 1 << known
		if m.read {
			end = skipValue(w.b, i)
		} else {
			var b uint64
			if end, b, ok = w.value(m.shape, i); !ok {
				w.where = "." + m.name + w.where
				return 0, 0, false
			}
			if m.slot > 0 {
				slots[m.slot] = remembered{i, b}
			}
			if m.shown {
				bits |= b
			}
		}
		i = w.next(end)
	}
	if empty && s.filled {
		return w.refuse("is empty")
	}
	for k := range s.members {
		if m := &s.members[k]; m.required && seen&(1<<k) == 0 {
			w.where = "." + m.name
			return w.refuse("is missing")
		}
	}
	for k := range s.rules {
		if !w.obeys(s, &s.rules[k], seen, &slots) {
			return 0, 0, false
		}
	}
	return i + 1, bits, true
}

// find returns the index of the member with that name, or -1.
func (s *shape) find(name []byte) int {
	for k := range s.members {
		if s.members[k].name == string(name) {
			return k
		}
	}
	return -1
}

// holds reports whether a condition does.
func (c *cond) holds(slots *[maxSlots + 1]remembered) bool {
	m := &slots[c.index]
	return (m.at > 0 && (c.bits == 0 || m.bits&c.bits != 0)) != c.not
}

// obeys reports whether the members of an object keep a rule.
func (w *walker) obeys(s *shape, r *rule, seen uint32, slots *[maxSlots + 1]remembered) bool {
	for k := range r.when {
		if !r.when[k].holds(slots) {
			return true
		}
	}
	fail := func(set uint32, why string) {
		for k := range s.members {
			if set&(1<<k) != 0 {
				w.where = "." + s.members[k].name
				break
			}
		}
		if w.why = why; r.because != "" {
			w.why += " " + r.because
		}
	}
	if missing := r.needed &^ seen; missing != 0 {
		fail(missing, "is missing")
		return false
	}
	if extra := r.banned & seen; extra != 0 {
		fail(extra, "does not belong there")
		return false
	}
	if r.ones != 0 {
		if there := r.ones & seen; there == 0 || there&(there-1) != 0 {
			w.where, w.why = "", "has not exactly one of "+strings.Join(r.one, ", ")
			return false
		}
	}
	for k := range r.must {
		if !r.must[k].holds(slots) {
			w.where, w.why = "."+r.must[k].member, "does not go with the other members"
			if r.because != "" {
				w.why = r.because
			}
			return false
		}
	}
	if r.as != nil {
		if at := slots[r.ofAs].at; at > 0 {
			if _, _, ok := w.value(r.as, at); !ok {
				w.where = "." + r.asOf + w.where
				return false
			}
		}
	}
	return true
}

// numeral is what shapes ask of a number.
type numeral struct{ negative, zero, whole bool }

// readNumber reads the text of a number. A whole number may be written with a
// fraction of zeros or an exponent, as JSON Schema has it; an exponent beyond
// what a double holds makes none.
func readNumber(raw []byte) (n numeral, ok bool) {
	if KindOf(raw) != KindNumber {
		return n, false
	}
	i := 0
	minus := raw[0] == '-'
	if minus {
		i++
	}
	// scale is the decimal place of the last digit that is not 0, counted
	// upwards from the units.
	n.zero = true
	places, scale, fraction := 0, 0, false
	for ; i < len(raw) && raw[i] != 'e' && raw[i] != 'E'; i++ {
		if raw[i] == '.' {
			fraction = true
			continue
		}
		if places++; fraction {
			scale--
		}
		if raw[i] != '0' {
			n.zero = false
			places = 0
		}
	}
	n.negative = minus && !n.zero
	if n.zero {
		n.whole = true
		return n, true
	}
	scale += places // trailing zeros
	exponent := 0
	if i < len(raw) {
		i++
		down := raw[i] == '-'
		if raw[i] == '-' || raw[i] == '+' {
			i++
		}
		for ; i < len(raw); i++ {
			if exponent = exponent*10 + int(raw[i]-'0'); exponent > 400 {
				exponent = 1 << 30
				break
			}
		}
		if exponent == 1<<30 && !down {
			return n, false
		}
		if down {
			exponent = -exponent
		}
	}
	n.whole = scale+exponent >= 0
	return n, true
}

// isAttachment reports whether a media type may be that of an attachment:
// anything but text and JSON, which travel inline.
func isAttachment(mediaType []byte) bool {
	if len(mediaType) == 0 || hasFold(mediaType, "text/") {
		return false
	}
	// The subtype begins behind the first slash, wherever that is, and ends
	// before a parameter.
	slash := bytes.IndexByte(mediaType, '/')
	if slash < 1 {
		return true
	}
	subtype := mediaType[slash+1:]
	if i := bytes.IndexByte(subtype, ';'); i >= 0 {
		subtype = subtype[:i]
	}
	if len(subtype) < 4 || !hasFold(subtype[len(subtype)-4:], "json") {
		return true
	}
	// Either JSON itself, or a name in front of "+json".
	before := subtype[:len(subtype)-4]
	return len(before) > 0 && (len(before) < 2 || before[len(before)-1] != '+')
}

// hasFold reports whether b begins with an ASCII text, whatever their cases.
func hasFold(b []byte, lower string) bool {
	if len(b) < len(lower) {
		return false
	}
	for i := range len(lower) {
		c := b[i]
		if isUpper(c) {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
