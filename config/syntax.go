package config

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

const (
	// maxFile bounds a configuration file or registration document, in bytes.
	maxFile = 16 << 20
	// maxDepth bounds how deep objects and lists may nest.
	maxDepth = 64
	// maxNodes bounds how many values one document may hold.
	maxNodes = 1 << 20
)

// parse turns the bytes of one file into a tree. It returns nil where there is
// none; the mistakes then say why.
func (r *reader) parse(src *source, data []byte) *node {
	if len(data) > maxFile && !r.large {
		r.add(Mistake{File: src.name, What: "the file is larger than 16 MiB", Instead: "split it: registration documents can be files of their own"})
		return nil
	}
	if !r.checkText(src, data) {
		return nil
	}
	if body := bytes.TrimLeft(data, " \t\r\n"); len(body) > 0 && body[0] == '{' {
		return r.parseJSON(src, data)
	}
	return r.parseYAML(src, data)
}

// checkText refuses what two readers could take for different characters.
func (r *reader) checkText(src *source, data []byte) bool {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		r.addAt(src, 1, 1, "the file starts with a byte order mark", "save it as UTF-8 without one")
		return false
	}
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && n <= 1 {
			line, col := position(data, i)
			r.addAt(src, line, col, "the file is not valid UTF-8", "save it as UTF-8")
			return false
		}
		if c == 0 {
			line, col := position(data, i)
			r.addAt(src, line, col, "the file holds a NUL byte", "save it as UTF-8 text")
			return false
		}
		i += n
	}
	return true
}

// position returns the 1-based line and column, in characters, of an offset.
func position(data []byte, offset int) (line, col int) {
	offset = max(0, min(offset, len(data)))
	before := data[:offset]
	line = 1 + bytes.Count(before, []byte{'\n'})
	start := bytes.LastIndexByte(before, '\n') + 1
	return line, 1 + utf8.RuneCount(before[start:])
}

// builder makes the nodes of one document and keeps its bounds.
type builder struct {
	r     *reader
	src   *source
	count int
	over  bool
	// twice holds, by object, the members whose name was there before.
	twice map[*node][]duplicate
}

type duplicate struct {
	key              string
	line, col, first int
}

// node counts one more value. It returns a broken one, after one mistake for
// the whole document, where there are too many or they nest too deep.
func (b *builder) node(k kind, line, col, depth int) *node {
	n := &node{src: b.src, line: line, col: col, kind: k}
	b.count++
	switch {
	case b.over:
		n.kind = kindBroken
	case depth > maxDepth:
		b.over = true
		n.kind = kindBroken
		b.r.addAt(b.src, line, col, "values nest deeper than 64 levels", "flatten the document")
	case b.count > maxNodes && !b.r.large:
		b.over = true
		n.kind = kindBroken
		b.r.addAt(b.src, line, col, "the document holds more than 1048576 values", "split it into several files")
	}
	return n
}

// add appends a member to the object n. seen holds the lines of the names so
// far; a name that is there already is kept for duplicates to report.
func (b *builder) add(n *node, seen map[string]int, f field) {
	first, dup := seen[f.key]
	if !dup {
		seen[f.key] = f.line
		n.fields = append(n.fields, f)
		return
	}
	if b.twice == nil {
		b.twice = make(map[*node][]duplicate)
	}
	b.twice[n] = append(b.twice[n], duplicate{f.key, f.line, f.col, first})
}

// duplicates reports every name that an object has twice, at any depth, also
// in parts that nothing else reads.
func (b *builder) duplicates(s spot) {
	if len(b.twice) == 0 {
		return
	}
	for _, d := range b.twice[s.node] {
		b.r.add(Mistake{
			File: b.src.name, Line: d.line, Col: d.col, Path: joinKey(s.path, d.key),
			What:    "the key is there twice, first on line " + strconv.Itoa(d.first),
			Instead: "keep one of them",
		})
	}
	for _, f := range s.fields {
		b.duplicates(s.member(f.key, f.value))
	}
	for i := range s.items {
		b.duplicates(s.item(i))
	}
}
