package ahp

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func scans(text []byte) bool {
	var s scanner
	s.reset(text)
	return s.scan(nodeRoot)
}

// otherReader is the verdict of a maintained strict reader.
func otherReader(text []byte) bool {
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
}

// nest returns n arrays or objects in each other.
func nest(n int, opening, innermost, closing string) string {
	return strings.Repeat(opening, n) + innermost + strings.Repeat(closing, n)
}

// strictTexts are texts about which JSON readers are known to disagree, and
// what this one says. The other reader says the same unless differs is set:
// those are all the differences there are.
var strictTexts = []struct {
	name, text string
	want       bool
	differs    bool
}{
	{name: "empty", text: ``},
	{name: "only space", text: " \t\r\n"},
	{name: "null", text: `null`, want: true},
	{name: "space around", text: " \t\r\n{} \t\r\n", want: true},
	{name: "vertical tab", text: "\v{}"},
	{name: "form feed", text: "{}\f"},
	{name: "no-break space", text: "\u00a0{}"},
	{name: "byte order mark", text: "\uFEFF{}"},
	{name: "byte order mark alone", text: "\uFEFF"},
	{name: "byte order mark in a string", text: "\"\uFEFF\"", want: true},
	{name: "trailing value", text: `{}{}`},
	{name: "trailing comma behind", text: `{},`},
	{name: "trailing NUL", text: "{}\x00"},
	{name: "trailing newline value", text: "1\n2"},
	{name: "comment", text: `{}//`},
	{name: "block comment", text: `{/**/}`},
	{name: "trailing comma in object", text: `{"a":1,}`},
	{name: "trailing comma in array", text: `[1,]`},
	{name: "leading comma", text: `[,1]`},
	{name: "only comma", text: `{,}`},
	{name: "missing comma", text: `[1 2]`},
	{name: "missing colon", text: `{"a" 1}`},
	{name: "missing value", text: `{"a":}`},
	{name: "no quotes", text: `{a:1}`},
	{name: "single quotes", text: `{'a':1}`},
	{name: "number name", text: `{1:1}`},
	{name: "open object", text: `{"a":1`},
	{name: "open array", text: `[1`},
	{name: "open string", text: `"a`},
	{name: "string ends in backslash", text: `"a\`},
	{name: "escaped quote at the end", text: `"a\"`},
	{name: "mismatched", text: `[}`},
	{name: "closing only", text: `]`},
	{name: "duplicate name", text: `{"a":1,"a":1}`},
	{name: "duplicate name by escape", text: `{"a":1,"\u0061":2}`},
	{name: "duplicate escaped first", text: `{"\u0061":1,"a":2}`},
	{name: "duplicate by solidus", text: `{"/":1,"\/":2}`},
	{name: "duplicate by surrogates", text: `{"😀":1,"\ud83d\ude00":2}`},
	{name: "duplicate empty name", text: `{"":1,"":2}`},
	{name: "duplicate behind an object", text: `{"a":{"b":1,"c":2},"a":1}`},
	{name: "duplicate inside", text: `[{"x":{"a":1,"b":2,"a":3}}]`},
	{name: "same name in different objects", text: `{"a":{"a":{"a":1}},"b":{"a":1}}`, want: true},
	{name: "names by case", text: `{"a":1,"A":2}`, want: true},
	{name: "names that hash alike", text: `{"abcba":1,"axcba":2,"abcxa":3}`, want: true},
	{name: "names by normal form", text: "{\"\u00e9\":1,\"e\u0301\":2}", want: true},
	{name: "lone high surrogate", text: `"\ud800"`},
	{name: "lone low surrogate", text: `"\udc00"`},
	{name: "surrogates the wrong way", text: `"\udc00\ud800"`},
	{name: "high surrogate and letter", text: `"\ud800a"`},
	{name: "high surrogate and escape", text: `"\ud800\n"`},
	{name: "high surrogate twice", text: `"\ud800\ud800"`},
	{name: "high surrogate and half an escape", text: `"\ud800\udc0"`},
	{name: "high surrogate at the end", text: `"\ud800`},
	{name: "surrogate pair", text: `"\ud800\udc00\uDBFF\uDFFF"`, want: true},
	{name: "lone surrogate in a name", text: `{"\ud800":1}`},
	{name: "neighbours of the surrogates", text: `"\ud7ff\ue000"`, want: true},
	{name: "escaped non-character", text: `"\uffff\ufffe"`, want: true},
	{name: "escaped NUL", text: `"\u0000"`, want: true},
	{name: "replacement character", text: "\"\uFFFD\"", want: true},
	{name: "raw surrogate bytes", text: "\"\xed\xa0\x80\""},
	{name: "overlong", text: "\"\xc0\xaf\""},
	{name: "overlong NUL", text: "\"\xc0\x80\""},
	{name: "beyond Unicode", text: "\"\xf4\x90\x80\x80\""},
	{name: "truncated rune", text: "\"\xe2\x82\""},
	{name: "Latin-1", text: "\"caf\xe9\""},
	{name: "invalid byte outside strings", text: "{}\xff"},
	{name: "UTF-16", text: "{\x00}\x00"},
	{name: "every escape", text: `"\"\\\/\b\f\n\r\t\u12aB"`, want: true},
	{name: "unknown escape", text: `"\x41"`},
	{name: "escape v", text: `"\v"`},
	{name: "capital U", text: `"\U0041"`},
	{name: "short u", text: `"\u004"`},
	{name: "u with sign", text: `"\u+041"`},
	{name: "tab in string", text: "\"a\tb\""},
	{name: "newline in string", text: "\"a\nb\""},
	{name: "NUL in string", text: "\"\x00\""},
	{name: "0x1f in string", text: "\"1234567\x1f\""},
	{name: "delete in string", text: "\"\x7f\"", want: true},
	{name: "line separator in string", text: "\"\u2028\"", want: true},
	{name: "zero", text: `0`, want: true},
	{name: "minus zero", text: `-0`, want: true},
	{name: "minus", text: `-`},
	{name: "plus", text: `+1`},
	{name: "leading zero", text: `01`},
	{name: "minus leading zero", text: `-01`},
	{name: "no integer part", text: `.5`},
	{name: "no fraction", text: `1.`},
	{name: "no exponent", text: `1e`},
	{name: "sign but no exponent", text: `1e+`},
	{name: "fraction of exponent", text: `1e2.5`},
	{name: "exponents", text: `[1e5,1E+05,1.0e-00,0e0]`, want: true},
	{name: "hexadecimal", text: `0x10`},
	{name: "underscore", text: `1_0`},
	{name: "NaN", text: `NaN`},
	{name: "Infinity", text: `-Infinity`},
	{name: "beyond float64", text: `[1e999999,-1e-999999,` + strings.Repeat("9", 400) + `]`, want: true},
	{name: "capital literal", text: `True`},
	{name: "short literal", text: `tru`},
	{name: "long literal", text: `truee`},
	{name: "literal run into the next", text: `[nulltrue]`},
	{name: "arrays as deep as allowed", text: nest(MaxDepth, "[", "", "]"), want: true},
	{name: "arrays one too deep", text: nest(MaxDepth+1, "[", "", "]"), differs: true},
	{name: "objects as deep as allowed", text: nest(MaxDepth, `{"a":`, "1", "}"), want: true},
	{name: "objects one too deep", text: nest(MaxDepth+1, `{"a":`, "1", "}"), differs: true},
	{name: "a mixture one too deep", text: nest(64, `{"a":[`, "{}", "]}"), differs: true},
	{name: "too deep for both", text: nest(10001, "[", "", "]")},
	{name: "deep side by side", text: "[" + nest(127, "[", "", "]") + "," + nest(127, "[", "", "]") + "]", want: true},
	{name: "brackets in a string", text: `"` + nest(500, "[{", "", "}]") + `"`, want: true},
}

func TestScan(t *testing.T) {
	for _, test := range strictTexts {
		if got := scans([]byte(test.text)); got != test.want {
			t.Errorf("scan(%s: %.80q) = %v; want %v", test.name, test.text, got, test.want)
		}
		if got := otherReader([]byte(test.text)); (got != test.want) != test.differs {
			t.Errorf("IsValid(%s: %.80q) = %v; want a difference to %v: %v", test.name, test.text, got, test.want, test.differs)
		}
	}
}

// TestScanDuplicates puts one name twice, at every distance, into an object
// with fewer and with more members than the list of names holds.
func TestScanDuplicates(t *testing.T) {
	for _, n := range []int{2, manyNames - 1, manyNames, manyNames + 1, manyNames + 2, 3 * manyNames} {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("name%d", i)
		}
		text := func() []byte {
			var b bytes.Buffer
			for i, name := range names {
				fmt.Fprintf(&b, `,"%s":{"name1":%d,"x":[]}`, name, i)
			}
			return append(append([]byte{'{'}, b.Bytes()[1:]...), '}')
		}
		if !scans(text()) {
			t.Errorf("scan(%d different names) = false; want true", n)
		}
		for first := range n {
			for second := first + 1; second < n; second++ {
				kept := names[second]
				names[second] = strings.Replace(names[first], "n", `\u006e`, second%2)
				if scans(text()) {
					t.Errorf("scan(%d names, %d and %d the same) = true; want false", n, first, second)
				}
				names[second] = kept
			}
		}
	}
}

// TestPlain puts every byte at every place of a text that plain looks at eight
// bytes at a time, among bytes that could confuse it.
func TestPlain(t *testing.T) {
	for _, filler := range []byte{' ', '!', '#', '[', ']', 'a', 0x7f, 0x80, 0xa2, 0xff} {
		for n := range 20 {
			for at := range n {
				text := bytes.Repeat([]byte{filler}, n)
				for c := range 256 {
					text[at] = byte(c)
					want := n
					if c < 0x20 || c == '"' || c == '\\' {
						want = at
					}
					got, foreign := plain(text)
					if beyond := bytes.ContainsFunc(text[:got], func(r rune) bool { return r > 0x7f }); got != want || beyond && !foreign {
						t.Fatalf("plain(%q) = %d, beyond ASCII %v; want %d, %v", text, got, foreign, want, beyond)
					}
				}
			}
		}
	}
}

// TestScanFields changes the place and the style of every member of every
// message: the decoder finds the same.
func TestScanFields(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	requests := messages(t, "*/requests/*.json")
	for _, path := range slices.Sorted(maps.Keys(requests)) {
		body := requests[path]
		var plain Message
		if err := Decode(body, &plain); err != nil {
			t.Fatalf("Decode(%s) = %v; want nil", path, err)
		}
		for range 50 {
			other := base(t, path)
			other.shuffle(r)
			text := other.render(r)
			var m Message
			if err := Decode(text, &m); err != nil {
				t.Errorf("Decode(%s) = %v; want nil", text, err)
				continue
			}
			for _, pair := range [][2][]byte{
				{plain.Event.ID, m.Event.ID}, {plain.Event.Source, m.Event.Source}, {plain.Event.SessionID, m.Event.SessionID},
				{plain.Event.CallID, m.Event.CallID}, {plain.Event.ToolName, m.Event.ToolName},
			} {
				if !bytes.Equal(pair[0], pair[1]) {
					t.Errorf("Decode(%s) found %q; want %q", text, pair[1], pair[0])
				}
			}
			if m.Event.Type != plain.Event.Type || m.Version != plain.Version || m.Method != plain.Method ||
				m.Capabilities.Effects != plain.Capabilities.Effects || m.Capabilities.DenyOnly != plain.Capabilities.DenyOnly ||
				m.Event.hasContent != plain.Event.hasContent || m.Event.native.present() != plain.Event.native.present() || m.Halted != plain.Halted {
				t.Errorf("Decode(%s)\n got %s\nwant %s", text, describe(&m), describe(&plain))
			}
			if (m.State != nil) != (plain.State != nil) || (m.Event.Input != nil) != (plain.Event.Input != nil) {
				t.Errorf("Decode(%s)\n got %s\nwant %s", text, describe(&m), describe(&plain))
			}
		}
	}
}

// depth returns how deeply a valid text nests.
func depth(text []byte) int {
	now, most, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// FuzzScan holds the scanner against another strict reader: they accept the
// same texts, except for those that nest deeper than MaxDepth.
func FuzzScan(f *testing.F) {
	for _, test := range strictTexts {
		if len(test.text) < 1000 {
			f.Add([]byte(test.text))
		}
	}
	for _, body := range messages(f, "*/*/*.json") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want := otherReader(text)
		if want && depth(text) > MaxDepth {
			want = false
		}
		if got := scans(text); got != want {
			t.Fatalf("scan(%q) = %v; want %v", text, got, want)
		}
		if !want {
			return
		}
		// What is valid can be walked, and the walk finds what the other reader finds.
		value := jsontext.NewDecoder(bytes.NewReader(text))
		raw := bytes.Trim(text, " \t\r\n")
		if got := skipValue(raw, 0); got != len(raw) {
			t.Fatalf("skipValue(%q) = %d; want %d", raw, got, len(raw))
		}
		walk(t, value, raw)
	})
}

// walk compares Members, Elements, KindOf and Text with the other reader's tokens.
func walk(t *testing.T, d *jsontext.Decoder, raw []byte) {
	token, err := d.ReadToken()
	if err != nil {
		t.Fatalf("ReadToken() at %q = %v; want a token", raw, err)
	}
	var want Kind
	switch token.Kind() {
	case 'n':
		want = KindNull
	case 't', 'f':
		want = KindBool
	case '0':
		want = KindNumber
	case '"':
		want = KindString
		if got := string(Text(raw)); got != token.String() {
			t.Fatalf("Text(%q) = %q; want %q", raw, got, token.String())
		}
	case '[':
		want = KindArray
		for element := range Elements(raw) {
			walk(t, d, element)
		}
	case '{':
		want = KindObject
		for name, value := range Members(raw) {
			token, err := d.ReadToken()
			if err != nil || token.Kind() != '"' || token.String() != string(name) {
				t.Fatalf("Members(%q) has name %q; want %v, %v", raw, name, token, err)
			}
			walk(t, d, value)
		}
	}
	if got := KindOf(raw); got != want {
		t.Fatalf("KindOf(%q) = %v; want %v", raw, got, want)
	}
	if want == KindArray || want == KindObject {
		if token, err := d.ReadToken(); err != nil || token.Kind() != ']' && token.Kind() != '}' {
			t.Fatalf("walk of %q ended before %v, %v", raw, token, err)
		}
	}
}
