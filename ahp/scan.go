package ahp

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deeply objects and arrays may nest in a message.
const MaxDepth = 128

// span is a half-open range of a message. The zero value is absent.
type span struct{ start, end uint32 }

func (s span) present() bool { return s.end != 0 }

func (s span) of(b []byte) []byte {
	if s.end == 0 {
		return nil
	}
	return b[s.start:s.end]
}

// scanner reads one JSON text in one pass. It accepts exactly RFC 8259 JSON in
// UTF-8 without a byte order mark, with unique member names, without lone
// surrogates, and nested at most MaxDepth deep: wherever two readers could
// disagree about what a text says, a policy could be bypassed.
//
// While it validates, it notes where the members of the objects it knows by
// node are; everything else is skipped without being built.
type scanner struct {
	b     []byte
	i     int
	depth int
	names []memberName // names of all open objects, innermost last

	fields  [fieldCount]span // values of known members
	native  span             // the event's native member, from name to value
	foreign nodeSet          // nodes that hold a member they should not
}

// memberName is one name of an open object, for finding duplicates.
type memberName struct {
	span    span
	escaped bool
}

// manyNames is how many members an object may have before duplicates are
// looked for in a map instead of a list.
const manyNames = 32

func (s *scanner) reset(b []byte) {
	*s = scanner{b: b, names: s.names[:0]}
}

// scan reads the whole text as a value of node n and reports whether it is
// strict JSON with nothing but white space around it.
func (s *scanner) scan(n node) bool {
	if uint64(len(s.b)) > 1<<31 {
		return false
	}
	s.space()
	if !s.value(n) {
		return false
	}
	s.space()
	return s.i == len(s.b)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// value reads one value at the current position.
func (s *scanner) value(n node) bool {
	if s.i >= len(s.b) {
		return false
	}
	switch c := s.b[s.i]; c {
	case '{':
		return s.object(n)
	case '[':
		return s.array()
	case '"':
		_, ok := s.string()
		return ok
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

func (s *scanner) literal(want string) bool {
	if len(s.b)-s.i < len(want) || string(s.b[s.i:s.i+len(want)]) != want {
		return false
	}
	s.i += len(want)
	return true
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

func (s *scanner) number() bool {
	if s.i < len(s.b) && s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if !s.digits() {
		return false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

// string reads one string and reports whether it holds an escape. Most strings
// are names and words, which end before a block is worth a look.
func (s *scanner) string() (escaped, ok bool) {
	i := s.i + 1
	n, foreign := plain(s.b[i:min(i+word, len(s.b))])
	i += n
	if i < len(s.b) && s.b[i] == '"' {
		return false, s.endString(i, foreign)
	}
	for len(s.b)-i >= block {
		special, beyond := marks((*[block]byte)(s.b[i:]))
		next := 0
		for special != 0 {
			at := bits.TrailingZeros64(special)
			switch s.b[i+at] {
			case '"':
				foreign = foreign || beyond<<(block-at) != 0
				return escaped, s.endString(i+at, foreign)
			case '\\':
				escaped = true
				n := 2
				if i+at+1 >= len(s.b) || !short[s.b[i+at+1]] {
					if n = escapeLen(s.b[i+at:]); n == 0 {
						return escaped, false
					}
				}
				next = at + n
				special = special >> next << next
			default: // a control character
				return escaped, false
			}
		}
		foreign = foreign || beyond != 0
		i += max(next, block)
	}
	return s.lastString(i, escaped, foreign)
}

// lastString reads the rest of a string from i on, where less than a block of
// the text is left.
func (s *scanner) lastString(i int, escaped, foreign bool) (bool, bool) {
	for {
		n, f := plain(s.b[i:])
		i, foreign = i+n, foreign || f
		if i >= len(s.b) {
			return escaped, false
		}
		switch s.b[i] {
		case '"':
			return escaped, s.endString(i, foreign)
		case '\\':
			escaped = true
			n := escapeLen(s.b[i:])
			if n == 0 {
				return escaped, false
			}
			i += n
		default: // a control character
			return escaped, false
		}
	}
}

// endString goes past the quote at i that ends a string, and reports whether
// the string is UTF-8. foreign says that something in it is beyond ASCII.
func (s *scanner) endString(i int, foreign bool) bool {
	if foreign && !utf8.Valid(s.b[s.i:i]) {
		return false
	}
	s.i = i + 1
	return true
}

const (
	word  = 16 // bytes of a string that are looked at eight at a time
	block = 64 // bytes that are looked at together after these
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special has the high bit of each byte of w set that is a quote, a backslash
// or a control character. Borrows can add a false hit, but only behind a true
// one: the first is where it seems to be.
func special(w uint64) uint64 {
	quote, slash := w^ones*'"', w^ones*'\\'
	return (((quote - ones) &^ quote) | ((slash - ones) &^ slash) | ((w - ones*0x20) &^ w)) & highs
}

// plain returns how many leading bytes of b are neither a quote, a backslash
// nor a control character, and whether some byte there may be beyond ASCII.
func plain(b []byte) (n int, foreign bool) {
	var all uint64
	for ; n+8 <= len(b); n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		all |= w
		if hit := special(w); hit != 0 {
			return n + bits.TrailingZeros64(hit)/8, all&highs != 0
		}
	}
	for n < len(b) && b[n] >= 0x20 && b[n] != '"' && b[n] != '\\' {
		all |= uint64(b[n])
		n++
	}
	return n, all&highs != 0
}

// marksInGo is marks for processors that it has not been written for.
func marksInGo(b *[block]byte) (special, foreign uint64) {
	for i := 0; i < block; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		hits := below(w^ones*'"', 1) | below(w^ones*'\\', 1) | below(w, 0x20)
		special |= gather(hits) << i
		foreign |= gather(w&highs) << i
	}
	return special, foreign
}

// below has the high bit of each byte of w set that is less than n, which is at
// most 0x80.
func below(w, n uint64) uint64 {
	return ^((w&^highs + ones*(0x80-n)) | w) & highs
}

// gather makes one byte of the high bits of eight.
func gather(w uint64) uint64 {
	return (w >> 7) * 0x0102040810204080 >> 56
}

// short has what follows the backslash in escapes of two bytes.
var short = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// escapeLen returns the length of the escape sequence b begins with, a
// surrogate pair being one sequence, or 0 if it is not a valid one.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch {
	case short[b[1]]:
		return 2
	case b[1] == 'u':
		r, ok := hex4(b)
		switch {
		case !ok:
			return 0
		case r < 0xD800 || r > 0xDFFF:
			return 6
		case r > 0xDBFF: // a low surrogate first
			return 0
		}
		if low, ok := hex4(b[6:]); ok && 0xDC00 <= low && low <= 0xDFFF {
			return 12
		}
	}
	return 0
}

// hex4 reads the \uXXXX that b must begin with.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func (s *scanner) array() bool {
	if s.depth++; s.depth > MaxDepth {
		return false
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == ']' {
		s.i++
		s.depth--
		return true
	}
	for {
		if !s.value(nodeOpaque) {
			return false
		}
		s.space()
		if s.i >= len(s.b) {
			return false
		}
		switch s.b[s.i] {
		case ',':
			s.i++
			s.space()
		case ']':
			s.i++
			s.depth--
			return true
		default:
			return false
		}
	}
}

func (s *scanner) object(n node) bool {
	if s.depth++; s.depth > MaxDepth {
		return false
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == '}' {
		s.i++
		s.depth--
		return true
	}
	first := len(s.names)
	var seen nameFilter
	var many map[string]struct{}
	for {
		if s.i >= len(s.b) || s.b[s.i] != '"' {
			return false
		}
		start := s.i
		escaped, ok := s.string()
		if !ok {
			return false
		}
		name := memberName{span{uint32(start + 1), uint32(s.i - 1)}, escaped}
		if len(s.names)-first < manyNames {
			if s.duplicate(name, s.names[first:], &seen) {
				return false
			}
			s.names = append(s.names, name)
		} else {
			if many == nil {
				many = make(map[string]struct{}, 2*manyNames)
				for _, earlier := range s.names[first:] {
					many[string(s.text(earlier))] = struct{}{}
				}
			}
			text := string(s.text(name))
			if _, twice := many[text]; twice {
				return false
			}
			many[text] = struct{}{}
		}
		s.space()
		if s.i >= len(s.b) || s.b[s.i] != ':' {
			return false
		}
		s.i++
		s.space()
		child := nodeOpaque
		field := fieldNone
		if n != nodeOpaque {
			field, child = s.known(n, s.text(name))
		}
		valueStart := s.i
		if !s.value(child) {
			return false
		}
		if field != fieldNone {
			s.fields[field] = span{uint32(valueStart), uint32(s.i)}
			if field == fieldNative {
				s.native = span{uint32(start), uint32(s.i)}
			}
		}
		s.space()
		if s.i >= len(s.b) {
			return false
		}
		switch s.b[s.i] {
		case ',':
			s.i++
			s.space()
		case '}':
			s.i++
			s.depth--
			s.names = s.names[:first]
			return true
		default:
			return false
		}
	}
}

// text returns a member name without escapes. Only a name with escapes is copied.
func (s *scanner) text(n memberName) []byte {
	raw := s.b[n.span.start:n.span.end]
	if n.escaped {
		return unescape(raw)
	}
	return raw
}

// nameFilter is a set of hashes of names that answers "certainly new" in one step.
type nameFilter uint64

// duplicate reports whether name stands among earlier, and adds it to the filter.
func (s *scanner) duplicate(name memberName, earlier []memberName, seen *nameFilter) bool {
	text := s.text(name)
	h := uint(len(text))
	if len(text) > 0 {
		h += uint(text[0])*7 + uint(text[len(text)-1])*31 + uint(text[len(text)/2])*11
	}
	bit := nameFilter(1) << (h & 63)
	if *seen&bit == 0 {
		*seen |= bit
		return false
	}
	for _, e := range earlier {
		if bytes.Equal(s.text(e), text) {
			return true
		}
	}
	return false
}

// unescape returns the text of the string whose content between the quotes is
// raw. raw must have passed the scanner. It copies only if there is an escape.
func unescape(raw []byte) []byte {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return raw
	}
	out := make([]byte, i, len(raw))
	copy(out, raw)
	for i < len(raw) {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		n := escapeLen(raw[i:])
		switch c := raw[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(raw[i:])
			if n == 12 {
				low, _ := hex4(raw[i+6:])
				r = (r-0xD800)<<10 + (low - 0xDC00) + 0x10000
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
		i += n
	}
	return out
}
