package config

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// parseJSON reads a document in strict JSON. Duplicate names are let through
// by the library and found here, so that all of them are reported at once.
func (r *reader) parseJSON(src *source, data []byte) *node {
	p := &jsonParser{
		builder: builder{r: r, src: src},
		data:    data,
		dec:     jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true)),
	}
	root, err := p.value(1)
	if err == nil {
		p.skip()
		_, err = p.dec.ReadToken()
		if err == io.EOF {
			p.duplicates(spot{node: root})
			return root
		}
		if err == nil {
			line, col := p.here()
			r.addAt(src, line, col, "something follows the document", "keep one JSON object per file")
			return nil
		}
	}
	offset := len(data)
	what := "the document ends too early"
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		offset = int(syntax.ByteOffset)
		// What stands in quotes is the document's own text.
		what, _, _ = strings.Cut(syntax.Err.Error(), `"`)
		what = cut(strings.TrimSpace(what), maxShown)
	}
	line, col := position(data, offset)
	r.addAt(src, line, col, "not valid JSON, "+what, "correct the syntax there")
	return nil
}

type jsonParser struct {
	builder
	data []byte
	dec  *jsontext.Decoder
	// pos, line and col are the place up to which lines were counted.
	pos, line, col int
}

// skip moves to the start of the next token.
func (p *jsonParser) skip() {
	if p.line == 0 {
		p.line, p.col = 1, 1
	}
	end := int(p.dec.InputOffset())
	for end < len(p.data) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[end]) >= 0 {
		end++
	}
	for ; p.pos < end; p.pos++ {
		switch c := p.data[p.pos]; {
		case c == '\n':
			p.line++
			p.col = 1
		case c&0xC0 != 0x80: // not inside a character
			p.col++
		}
	}
}

func (p *jsonParser) here() (line, col int) { return p.line, p.col }

func (p *jsonParser) value(depth int) (*node, error) {
	p.skip()
	line, col := p.here()
	tok, err := p.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case jsontext.KindNull:
		return p.scalar(kindNull, "null", line, col, depth), nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return p.scalar(kindBool, tok.String(), line, col, depth), nil
	case jsontext.KindNumber:
		return p.scalar(kindNumber, tok.String(), line, col, depth), nil
	case jsontext.KindString:
		return p.scalar(kindString, tok.String(), line, col, depth), nil
	case jsontext.KindBeginObject:
		return p.object(line, col, depth)
	default:
		return p.array(line, col, depth)
	}
}

func (p *jsonParser) scalar(k kind, text string, line, col, depth int) *node {
	n := p.node(k, line, col, depth)
	n.text = text
	return n
}

func (p *jsonParser) object(line, col, depth int) (*node, error) {
	n := p.node(kindObject, line, col, depth)
	if n.kind == kindBroken {
		return n, p.rest(jsontext.KindEndObject)
	}
	seen := make(map[string]int)
	for p.dec.PeekKind() != jsontext.KindEndObject {
		p.skip()
		line, col := p.here()
		tok, err := p.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := tok.String()
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		p.add(n, seen, field{key, line, col, v})
	}
	_, err := p.dec.ReadToken()
	return n, err
}

func (p *jsonParser) array(line, col, depth int) (*node, error) {
	n := p.node(kindList, line, col, depth)
	if n.kind == kindBroken {
		return n, p.rest(jsontext.KindEndArray)
	}
	for p.dec.PeekKind() != jsontext.KindEndArray {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, v)
	}
	_, err := p.dec.ReadToken()
	return n, err
}

// rest reads over what is left of an object or list without recursion, the
// closing token included.
func (p *jsonParser) rest(end jsontext.Kind) error {
	for p.dec.PeekKind() != end {
		if err := p.dec.SkipValue(); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}
