package config

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads a document in the part of YAML that has one meaning only: no
// anchors, aliases, merge keys or tags, and one document per file.
func (r *reader) parseYAML(src *source, data []byte) *node {
	b := &builder{r: r, src: src}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	err := dec.Decode(&doc)
	if err == io.EOF {
		r.addAt(src, 1, 1, "the document is empty", "write an object: a list of \"key: value\" lines")
		return nil
	}
	if err != nil {
		b.yamlSyntax(err)
		return nil
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		r.addAt(src, max(1, next.Line), max(1, next.Column), "a second document follows", "keep one document per file")
	case err != io.EOF:
		b.yamlSyntax(err)
		return nil
	}
	root := b.fromYAML(doc.Content[0], 1)
	b.duplicates(spot{node: root})
	return root
}

var yamlLine = regexp.MustCompile(`^yaml: line ([0-9]{1,9}): `)

// yamlSyntax reports the library's error. It names a line at most, and its
// text can quote the document, so only texts known not to do that are kept.
func (b *builder) yamlSyntax(err error) {
	text := err.Error()
	line := 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // The expression lets only numbers through.
		text = text[len(m[0]):]
	}
	text = strings.TrimPrefix(text, "yaml: ")
	instead := "correct the syntax there or just before"
	switch {
	case strings.Contains(text, "anchor"), strings.Contains(text, "alias"), strings.Contains(text, "alphabetic or numeric"):
		text = "an alias (*) or anchor (&)"
		instead = `aliases are not read: write the value itself, and * as "*" in quotes`
	case strings.Contains(text, "`"), strings.Contains(text, "'"), strings.Contains(text, "!"):
		text = "an unreadable value"
	}
	b.r.addAt(b.src, max(1, line), 1, "not valid YAML, "+cut(text, maxShown), instead)
}

func (b *builder) fromYAML(y *yaml.Node, depth int) *node {
	line, col := max(1, y.Line), max(1, y.Column)
	if y.Anchor != "" {
		b.r.addAt(b.src, line, col, "an anchor (&)", "anchors are not read: write the value out where it is needed, or quote a text that starts with &")
	}
	if y.Style&yaml.TaggedStyle != 0 {
		b.r.addAt(b.src, line, col, "a tag (!)", "tags are not read: remove it, or quote a text that starts with !")
		return b.node(kindBroken, line, col, depth)
	}
	switch y.Kind {
	case yaml.MappingNode:
		return b.yamlObject(y, line, col, depth)
	case yaml.SequenceNode:
		n := b.node(kindList, line, col, depth)
		if n.kind == kindBroken {
			return n
		}
		for _, item := range y.Content {
			n.items = append(n.items, b.fromYAML(item, depth+1))
		}
		return n
	case yaml.ScalarNode:
		return b.yamlScalar(y, line, col, depth)
	default:
		b.r.addAt(b.src, line, col, "an alias (*)", `aliases are not read: write the value itself, and quote a text that starts with *`)
		return b.node(kindBroken, line, col, depth)
	}
}

func (b *builder) yamlObject(y *yaml.Node, line, col, depth int) *node {
	n := b.node(kindObject, line, col, depth)
	if n.kind == kindBroken {
		return n
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		line, col := max(1, k.Line), max(1, k.Column)
		key := b.fromYAML(k, depth+1)
		v := b.fromYAML(y.Content[i+1], depth+1)
		switch {
		case key.kind == kindBroken:
			continue
		case k.ShortTag() == "!!merge":
			b.r.addAt(b.src, line, col, "a merge key (<<)", "merge keys are not read: write the members out")
			continue
		case key.kind == kindObject || key.kind == kindList:
			b.r.addAt(b.src, line, col, "a key that is "+key.kind.String(), "write a string as key")
			continue
		case key.kind != kindString || key.plain && surprising(key):
			b.r.addAt(b.src, line, col, "a key without quotes that YAML readers take for "+surpriseOf(key), "put the key in quotes")
			continue
		}
		b.add(n, seen, field{key.text, line, col, v})
	}
	return n
}

func (b *builder) yamlScalar(y *yaml.Node, line, col, depth int) *node {
	n := b.node(kindString, line, col, depth)
	if n.kind == kindBroken {
		return n
	}
	n.text = y.Value
	n.plain = y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	if !n.plain {
		return n
	}
	switch y.ShortTag() {
	case "!!null":
		n.kind = kindNull
	case "!!bool":
		n.kind = kindBool
	case "!!int", "!!float":
		n.kind = kindNumber
	}
	return n
}

var (
	yamlTime   = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?$`)
	yamlBase60 = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)
)

// surprising reports whether some YAML reader takes the plain string n for
// something else than a string.
func surprising(n *node) bool { return surpriseOf(n) != "" }

func surpriseOf(n *node) string {
	if n.kind != kindString {
		return n.kind.String()
	}
	switch {
	case isOldBool(n.text):
		return "a boolean"
	case yamlTime.MatchString(n.text):
		return "a time"
	case yamlBase60.MatchString(n.text):
		return "a number in base 60"
	default:
		return ""
	}
}

// isOldBool reports whether YAML 1.1 reads s as a boolean and YAML 1.2 does not.
func isOldBool(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off":
		return true
	default:
		return false
	}
}
