package ahp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// A tree is a JSON value that keeps the order of members, the text of numbers,
// and members of the same name: what tests take apart and put together.
type tree struct {
	kind    Kind
	text    string // of a string without quotes; of a number, bool or null as written
	names   []string
	members []*tree // of an object, in step with names, or of an array
}

// parseTree reads one JSON value and nothing behind it.
func parseTree(text []byte) (*tree, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	t, err := readTree(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something stands behind the value")
	}
	return t, nil
}

func readTree(d *json.Decoder) (*tree, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case nil:
		return &tree{kind: KindNull, text: "null"}, nil
	case bool:
		return &tree{kind: KindBool, text: fmt.Sprint(v)}, nil
	case json.Number:
		return &tree{kind: KindNumber, text: v.String()}, nil
	case string:
		return &tree{kind: KindString, text: v}, nil
	}
	t := &tree{kind: KindArray}
	if token == json.Delim('{') {
		t.kind = KindObject
	}
	for d.More() {
		if t.kind == KindObject {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			t.names = append(t.names, name.(string))
		}
		member, err := readTree(d)
		if err != nil {
			return nil, err
		}
		t.members = append(t.members, member)
	}
	_, err = d.Token()
	return t, err
}

func mustTree(text string) *tree {
	t, err := parseTree([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("parseTree(%s): %v", text, err))
	}
	return t
}

// clone returns a copy that shares nothing with t.
func (t *tree) clone() *tree {
	c := *t
	c.names = append([]string(nil), t.names...)
	c.members = make([]*tree, len(t.members))
	for i, m := range t.members {
		c.members[i] = m.clone()
	}
	return &c
}

// at returns the object that holds the last name of a dotted path, that name,
// and its index in the object, or -1.
func (t *tree) at(path string) (*tree, string, int) {
	name, rest, nested := strings.Cut(path, ".")
	index := -1
	for i, n := range t.names {
		if n == name {
			index = i
		}
	}
	switch {
	case !nested:
		return t, name, index
	case index < 0:
		panic("no object at " + path)
	default:
		return t.members[index].at(rest)
	}
}

// get returns the value at a dotted path, or nil.
func (t *tree) get(path string) *tree {
	o, _, i := t.at(path)
	if i < 0 {
		return nil
	}
	return o.members[i]
}

// set replaces or appends the member at a dotted path.
func (t *tree) set(path, raw string) {
	o, name, i := t.at(path)
	if i < 0 {
		o.add(name, mustTree(raw))
		return
	}
	o.members[i] = mustTree(raw)
}

// add appends a member, whether or not its name is taken.
func (t *tree) add(name string, value *tree) {
	t.names = append(t.names, name)
	t.members = append(t.members, value)
}

// drop removes the member at a dotted path.
func (t *tree) drop(path string) {
	o, _, i := t.at(path)
	if i < 0 {
		panic("nothing at " + path)
	}
	o.remove(i)
}

func (t *tree) remove(i int) {
	if t.kind == KindObject {
		t.names = append(t.names[:i:i], t.names[i+1:]...)
	}
	t.members = append(t.members[:i:i], t.members[i+1:]...)
}

// edited returns the text of t with changes made: "path=raw" sets a member,
// "-path" removes one.
func (t *tree) edited(changes ...string) []byte {
	c := t.clone()
	for _, change := range changes {
		if path, ok := strings.CutPrefix(change, "-"); ok {
			c.drop(path)
			continue
		}
		path, raw, _ := strings.Cut(change, "=")
		c.set(path, raw)
	}
	return c.render(nil)
}

// shuffle puts the members of every object of t in random order.
func (t *tree) shuffle(r *rand.Rand) {
	if t.kind == KindObject {
		r.Shuffle(len(t.members), func(i, j int) {
			t.names[i], t.names[j] = t.names[j], t.names[i]
			t.members[i], t.members[j] = t.members[j], t.members[i]
		})
	}
	for _, m := range t.members {
		m.shuffle(r)
	}
}

// render writes t compactly, or where r is not nil with random white space and
// random escapes.
func (t *tree) render(r *rand.Rand) []byte {
	w := treeWriter{r: r}
	w.space()
	w.value(t)
	w.space()
	return w.out
}

type treeWriter struct {
	out []byte
	r   *rand.Rand
}

func (w *treeWriter) space() {
	for w.r != nil && w.r.IntN(3) == 0 {
		w.out = append(w.out, " \t\r\n"[w.r.IntN(4)])
	}
}

func (w *treeWriter) value(t *tree) {
	switch t.kind {
	case KindString:
		w.string(t.text)
	case KindObject, KindArray:
		opening, closing := byte('['), byte(']')
		if t.kind == KindObject {
			opening, closing = '{', '}'
		}
		w.out = append(w.out, opening)
		w.space()
		for i, m := range t.members {
			if i > 0 {
				w.out = append(w.out, ',')
				w.space()
			}
			if t.kind == KindObject {
				w.string(t.names[i])
				w.space()
				w.out = append(w.out, ':')
				w.space()
			}
			w.value(m)
			w.space()
		}
		w.out = append(w.out, closing)
	default:
		w.out = append(w.out, t.text...)
	}
}

func (w *treeWriter) string(s string) {
	w.out = append(w.out, '"')
	for _, c := range s {
		escape := w.r != nil && w.r.IntN(8) == 0
		switch {
		case escape && c > 0xFFFF:
			high, low := utf16.EncodeRune(c)
			w.out = fmt.Appendf(w.out, `\u%04x\u%04X`, high, low)
		case escape && c == '/':
			w.out = append(w.out, `\/`...)
		case escape || c < 0x20:
			w.out = fmt.Appendf(w.out, `\u%04x`, c)
		case c == '"' || c == '\\':
			w.out = append(w.out, '\\', byte(c))
		default:
			w.out = append(w.out, string(c)...)
		}
	}
	w.out = append(w.out, '"')
}

// messages returns the texts in testdata that match a pattern, by path.
func messages(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("Glob(%q) = %v, %v; want files", pattern, paths, err)
	}
	texts := make(map[string][]byte, len(paths))
	for _, path := range paths {
		texts[filepath.ToSlash(path)] = message(t, path)
	}
	return texts
}

// message returns one text of testdata without the newline behind it.
func message(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(text, []byte("\n"))
}

// base returns one text of testdata as a tree.
func base(t testing.TB, path string) *tree {
	t.Helper()
	tree, err := parseTree(message(t, path))
	if err != nil {
		t.Fatalf("parseTree(%s) = %v; want nil", path, err)
	}
	return tree
}
