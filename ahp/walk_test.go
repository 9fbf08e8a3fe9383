package ahp

import (
	"slices"
	"testing"
)

func TestMembers(t *testing.T) {
	for raw, want := range map[string][]string{
		`{}`:      nil,
		` { } `:   nil,
		`[1]`:     nil,
		`"{"`:     nil,
		`1`:       nil,
		``:        nil,
		`{"a":1}`: {"a", "1"},
		` { "a" : 1 , "b" : [ 2 , {"c":3} ] , "" : "" } `: {"a", "1", "b", `[ 2 , {"c":3} ]`, "", `""`},
		`{"\u0061\n\"":null,"}":true,"x":{"y":"}"}}`:      {"a\n\"", "null", "}", "true", "x", `{"y":"}"}`},
		`{"n":-1.5e+3,"t":false}`:                         {"n", "-1.5e+3", "t", "false"},
	} {
		var got []string
		for name, value := range Members([]byte(raw)) {
			got = append(got, string(name), string(value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("Members(%s) = %q; want %q", raw, got, want)
		}
	}
}

func TestElements(t *testing.T) {
	for raw, want := range map[string][]string{
		`[]`:                        nil,
		` [ ] `:                     nil,
		`{"a":1}`:                   nil,
		`"["`:                       nil,
		``:                          nil,
		`[1]`:                       {"1"},
		` [ 1 , "]" , [ ] , {} ] `:  {"1", `"]"`, "[ ]", "{}"},
		`["\\","\"",null,true,2e1]`: {`"\\"`, `"\""`, "null", "true", "2e1"},
	} {
		var got []string
		for value := range Elements([]byte(raw)) {
			got = append(got, string(value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("Elements(%s) = %q; want %q", raw, got, want)
		}
	}
}

// TestWalkStops leaves both walks after the first step.
func TestWalkStops(t *testing.T) {
	steps := 0
	for range Members([]byte(`{"a":1,"b":2}`)) {
		steps++
		break
	}
	for range Elements([]byte(`[1,2]`)) {
		steps++
		break
	}
	if steps != 2 {
		t.Errorf("a walk left at once took %d steps; want 1 each", steps)
	}
}

func TestText(t *testing.T) {
	for raw, want := range map[string]string{
		`""`:                         "",
		`"plain"`:                    "plain",
		`"\"\\\/\b\f\n\r\t"`:         "\"\\/\b\f\n\r\t",
		`"\u0041\u00e9\u20AC"`:       "Aé€",
		`"\ud83d\ude00"`:             "😀",
		`"x\ud83d\ude00y\u007az"`:    "x😀yzz",
		`"\u0000"`:                   "\x00",
		`"\uffff"`:                   "\uffff",
		`"\ud800\udc00\udbff\udfff"`: "\U00010000\U0010ffff",
		`"\\u0041"`:                  `\u0041`,
	} {
		got := Text([]byte(raw))
		if string(got) != want || got == nil {
			t.Errorf("Text(%s) = %q; want %q", raw, got, want)
		}
	}
	for _, raw := range []string{``, `null`, `1`, `true`, `[]`, `{}`} {
		if got := Text([]byte(raw)); got != nil {
			t.Errorf("Text(%s) = %q; want nil", raw, got)
		}
	}
}

func TestKindOf(t *testing.T) {
	for raw, want := range map[string]Kind{
		``: KindNone, `null`: KindNull, `true`: KindBool, `false`: KindBool, `0`: KindNumber, `-1`: KindNumber, `"x"`: KindString, `[]`: KindArray, `{}`: KindObject,
	} {
		if got := KindOf([]byte(raw)); got != want {
			t.Errorf("KindOf(%s) = %v; want %v", raw, got, want)
		}
	}
}
