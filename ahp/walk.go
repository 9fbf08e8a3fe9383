package ahp

import "iter"

// Members returns the members of the JSON object raw in order: the name without
// escapes and the raw value. raw must have been accepted by a decoder of this
// package; anything but an object has no members.
func Members(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		i := skipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '{' {
			return
		}
		i = skipSpace(raw, i+1)
		for i < len(raw) && raw[i] == '"' {
			end := skipValue(raw, i)
			name := unescape(raw[i+1 : end-1])
			i = skipSpace(raw, skipSpace(raw, end)+1)
			end = skipValue(raw, i)
			if !yield(name, raw[i:end]) {
				return
			}
			i = skipSpace(raw, end)
			if i < len(raw) && raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
	}
}

// Member returns the raw value of the member of that exact name of the JSON
// object raw, which must have been accepted as for Members, or nil.
func Member(raw []byte, name string) []byte {
	for n, value := range Members(raw) {
		if string(n) == name {
			return value
		}
	}
	return nil
}

// Elements returns the raw elements of the JSON array raw in order, under the
// same condition as Members.
func Elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		i := skipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '[' {
			return
		}
		i = skipSpace(raw, i+1)
		for i < len(raw) && raw[i] != ']' {
			end := skipValue(raw, i)
			if !yield(raw[i:end]) {
				return
			}
			i = skipSpace(raw, end)
			if i < len(raw) && raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
	}
}

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds. The zero value is no value.
const (
	KindNone Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// KindOf returns the kind of the raw value, which must be valid JSON without
// white space before it, or KindNone of nothing.
func KindOf(raw []byte) Kind {
	if len(raw) == 0 {
		return KindNone
	}
	switch raw[0] {
	case '{':
		return KindObject
	case '[':
		return KindArray
	case '"':
		return KindString
	case 't', 'f':
		return KindBool
	case 'n':
		return KindNull
	default:
		return KindNumber
	}
}

// Text returns the string that raw is, without quotes and escapes, or nil if
// raw is no string. It copies only if there is an escape.
func Text(raw []byte) []byte {
	if KindOf(raw) != KindString {
		return nil
	}
	return unescape(raw[1 : len(raw)-1])
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// skipValue returns the index behind the value that starts at i of valid JSON.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i++
			for {
				n, _ := plain(b[i:])
				i += n
				if b[i] == '"' {
					break
				}
				i += 2 // a backslash and what it escapes; hex digits are plain
			}
			i++
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\n', '\t', '\r', ',', ':': // between the values of a container
			i++
			continue
		default:
			for i < len(b) && !isBehind(b[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// isBehind reports whether c can only stand behind a number or a literal.
func isBehind(c byte) bool { return c == ',' || c == ']' || c == '}' || isSpace(c) }
