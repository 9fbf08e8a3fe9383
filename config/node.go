package config

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is what a value of a document is, whichever syntax it was written in.
type kind uint8

const (
	// kindBroken stands for a value whose mistake is reported already: it is
	// read as if it were not there, so that one fault gives one mistake.
	kindBroken kind = iota
	kindNull
	kindBool
	kindNumber
	kindString
	kindObject
	kindList
)

// String returns the kind with its article, for messages.
func (k kind) String() string {
	switch k {
	case kindNull:
		return "nothing"
	case kindBool:
		return "a boolean"
	case kindNumber:
		return "a number"
	case kindString:
		return "a string"
	case kindObject:
		return "an object"
	case kindList:
		return "a list"
	default:
		return "a broken value"
	}
}

// source is one file that was read.
type source struct {
	name  string // as shown in mistakes
	order int    // mistakes are listed in the order of reading
}

// node is one value with its position. YAML and JSON both end up here, so
// that everything behind it knows one kind of document.
type node struct {
	src       *source
	line, col int
	kind      kind
	// text is the value of a string, or the characters of another scalar.
	text string
	// plain marks a YAML scalar without quotes.
	plain  bool
	fields []field
	items  []*node
}

// field is one member of an object.
type field struct {
	key       string
	line, col int
	value     *node
}

// spot is a node together with the way to it.
type spot struct {
	*node
	path string
}

// member returns the spot of a member of the object at s.
func (s spot) member(key string, n *node) spot {
	return spot{n, joinKey(s.path, key)}
}

// has reports whether the value at s is an object with that member.
func (s spot) has(key string) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return f.key == key })
}

// item returns the spot of the i-th item of the list at s.
func (s spot) item(i int) spot {
	return spot{s.items[i], s.path + "[" + strconv.Itoa(i) + "]"}
}

// joinKey appends a member name to a path: .name, or ["na.me"] where a dot
// would make the path ambiguous.
func joinKey(path, key string) string {
	if !isWord(key) {
		return path + "[" + shown(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// isWord reports whether s is short and made of letters, digits, - and _ only.
func isWord(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isAlphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// maxShown bounds what a mistake quotes of a document, in bytes.
const maxShown = 80

// shown returns s in quotes, on one line, and shortened to maxShown bytes.
func shown(s string) string {
	q := strconv.Quote(s)
	if len(q) <= maxShown {
		return q
	}
	// Quoting makes one byte into at most four and four bytes into at most ten.
	for n := 64; ; n /= 2 {
		q = strconv.Quote(cut(s, n))
		if len(q)+len("…") <= maxShown {
			return q + "…"
		}
	}
}

// cut returns the first n bytes of s, less a rune that would be cut in two.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// list returns words as "a, b or c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
