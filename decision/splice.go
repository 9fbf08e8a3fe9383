package decision

import "github.com/ahp-gateway/ahp-gateway/ahp"

// find returns where the value that path leads to lies in raw.
func find(raw []byte, path []string) (start, end int, ok bool) {
	value := raw
	for _, name := range path {
		if value = ahp.Member(value, name); value == nil {
			return 0, 0, false
		}
	}
	start, end = part(raw, value)
	return start, end, true
}

// splice appends raw to dst with raw[start:end] replaced.
func splice(dst, raw []byte, start, end int, with []byte) []byte {
	dst = append(dst, raw[:start]...)
	dst = append(dst, with...)
	return append(dst, raw[end:]...)
}

// isEmpty reports whether a list or an object has nothing in it.
func isEmpty(raw []byte) bool {
	for _, c := range raw[1 : len(raw)-1] {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// target is what a modify target holds after some modifications: a value that
// replaced it, if there was one, and what was merged since. To compose them
// first keeps the work linear: each would copy the whole target on its own.
type target struct {
	base   []byte // nil: what it held before
	merges [][]byte
}

// compose takes in the modifications among effects, in order.
func (t *target) compose(effects []Effect) {
	for i := range effects {
		switch e := &effects[i]; {
		case e.Type != ahp.EffectModify:
		case e.Operation == Replace:
			t.base, t.merges = e.Value, t.merges[:0]
		default:
			t.merges = append(t.merges, e.Value)
		}
	}
}

// of returns what a target that held before holds now.
func (t *target) of(before []byte) []byte {
	if t.base != nil {
		before = t.base
	}
	if len(t.merges) == 0 {
		return before
	}
	return merge(append([][]byte{before}, t.merges...))
}

// merge returns lists as one list of all their elements, or objects as one
// object. Members of the first keep their place and their name as it is
// written; others follow. The last to set a member wins.
func merge(values [][]byte) []byte {
	if len(values) == 1 {
		return values[0]
	}
	if ahp.KindOf(values[0]) == ahp.KindArray {
		return mergeLists(values)
	}
	return mergeObjects(values[0], values[1:])
}

func mergeLists(lists [][]byte) []byte {
	out := []byte{'['}
	for _, list := range lists {
		if isEmpty(list) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, list[1:len(list)-1]...)
	}
	return append(out, ']')
}

func mergeObjects(first []byte, others [][]byte) []byte {
	type member struct {
		name, value []byte
		used        bool
	}
	var set []member
	index := make(map[string]int)
	for _, other := range others {
		for name, value := range ahp.Members(other) {
			if i, ok := index[string(name)]; ok {
				set[i].value = value
				continue
			}
			index[string(name)] = len(set)
			set = append(set, member{name: name, value: value})
		}
	}
	var out []byte
	from := 0
	for name, value := range ahp.Members(first) {
		i, ok := index[string(name)]
		if !ok {
			continue
		}
		start, end := part(first, value)
		out = append(out, first[from:start]...)
		out = append(out, set[i].value...)
		from, set[i].used = end, true
	}
	out = append(out, first[from:len(first)-1]...)
	empty := isEmpty(first)
	for i := range set {
		if set[i].used {
			continue
		}
		if !empty {
			out = append(out, ',')
		}
		empty = false
		out = append(appendQuoted(out, set[i].name), ':')
		out = append(out, set[i].value...)
	}
	return append(out, '}')
}

// appendQuoted appends the JSON string of a valid UTF-8 text.
func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case escapes[c] != 0:
			dst = append(dst, '\\', escapes[c])
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, '"')
}

// escapes are the control characters with an escape of their own.
var escapes = [0x20]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}

// compact returns the value without white space, its strings escaped no more
// than has to be; numbers keep their text.
func compact(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		switch raw[i] {
		case ' ', '\t', '\n', '\r':
			i++
		case '"':
			start := i
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			i++
			out = appendQuoted(out, ahp.Text(raw[start:i]))
		default:
			out = append(out, raw[i])
			i++
		}
	}
	return out
}

// appendMember appends to dst the object with one more member. The name must
// need no escapes.
func appendMember(dst, object []byte, name string, value []byte) []byte {
	dst = append(dst, object[:len(object)-1]...)
	if !isEmpty(object) {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	dst = append(dst, value...)
	return append(dst, '}')
}
