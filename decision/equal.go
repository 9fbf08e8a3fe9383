package decision

import (
	"bytes"
	"math"
	"math/big"
	"strconv"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// equal reports whether two raw values are the same JSON: the order of members
// and the spelling of strings and numbers do not matter, 1 is 1.0, and 1 is not
// true. Both must have been accepted by a decoder.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	kind := ahp.KindOf(a)
	if kind != ahp.KindOf(b) {
		return false
	}
	switch kind {
	case ahp.KindString:
		return bytes.Equal(ahp.Text(a), ahp.Text(b))
	case ahp.KindNumber:
		return equalNumbers(string(a), string(b))
	case ahp.KindArray:
		return equalLists(a, b)
	case ahp.KindObject:
		return equalObjects(a, b)
	default: // true, false and null have one spelling each
		return false
	}
}

func equalLists(a, b []byte) bool {
	others := elements(b)
	i := 0
	for e := range ahp.Elements(a) {
		if i == len(others) || !equal(e, others[i]) {
			return false
		}
		i++
	}
	return i == len(others)
}

// elements returns the elements of a list.
func elements(list []byte) (all [][]byte) {
	for e := range ahp.Elements(list) {
		all = append(all, e)
	}
	return all
}

func equalObjects(a, b []byte) bool {
	others := members(b)
	n := 0
	for name, value := range ahp.Members(a) {
		other, ok := others.get(name)
		if !ok || !equal(value, other) {
			return false
		}
		n++
	}
	return n == others.len()
}

// fewMembers is how many members an object may have and still be searched one
// by one: a caller chooses how large objects are.
const fewMembers = 16

// object is an object's members by name.
type object struct {
	names, values [][]byte
	many          map[string]int
}

func members(raw []byte) (o object) {
	for name, value := range ahp.Members(raw) {
		o.names, o.values = append(o.names, name), append(o.values, value)
	}
	if len(o.names) > fewMembers {
		o.many = make(map[string]int, len(o.names))
		for i, name := range o.names {
			o.many[string(name)] = i
		}
	}
	return o
}

func (o *object) len() int { return len(o.names) }

// index returns where the member is, or -1.
func (o *object) index(name []byte) int {
	if o.many != nil {
		if i, ok := o.many[string(name)]; ok {
			return i
		}
		return -1
	}
	for i, n := range o.names {
		if bytes.Equal(n, name) {
			return i
		}
	}
	return -1
}

func (o *object) get(name []byte) (value []byte, ok bool) {
	if i := o.index(name); i >= 0 {
		return o.values[i], true
	}
	return nil, false
}

// isInteger reports whether a number is written without fraction and exponent.
// Such numbers are exact; all others are the nearest double.
func isInteger(number string) bool {
	for i := range len(number) {
		if c := number[i]; c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}

// maxInteger is more digits than the largest double has.
const maxInteger = 310

func equalNumbers(a, b string) bool {
	switch aInt, bInt := isInteger(a), isInteger(b); {
	case aInt && bInt:
		return a == b || zero(a) && zero(b)
	case aInt:
		return equalMixed(a, b)
	case bInt:
		return equalMixed(b, a)
	default:
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return x == y
	}
}

func zero(integer string) bool { return integer == "0" || integer == "-0" }

// equalMixed compares an integer with a double.
func equalMixed(integer, double string) bool {
	f, _ := strconv.ParseFloat(double, 64)
	if len(integer) > maxInteger || math.IsInf(f, 0) || f != math.Trunc(f) {
		return false
	}
	n, ok := new(big.Int).SetString(integer, 10)
	if !ok {
		return false
	}
	m, _ := big.NewFloat(f).Int(nil)
	return n.Cmp(m) == 0
}

// maxDigits is how long a number may be: common readers refuse longer integers,
// and what compares longer fractions exactly takes the square of their length.
const maxDigits = 4300

// finite reports whether every number in raw is one that every reader has: a
// double that does not overflow, or an integer, of a length that is read.
func finite(raw []byte) bool {
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			i++
		case c == '-' || '0' <= c && c <= '9':
			start := i
			for i < len(raw) && isNumeric(raw[i]) {
				i++
			}
			if !readable(raw[start:i]) {
				return false
			}
		default:
			i++
		}
	}
	return true
}

func isNumeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

func readable(number []byte) bool {
	if len(number) < 16 && bytes.IndexByte(number, 'e') < 0 && bytes.IndexByte(number, 'E') < 0 {
		return true
	}
	text := string(number)
	if len(text) > maxDigits {
		return false
	}
	if isInteger(text) {
		return true
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}
