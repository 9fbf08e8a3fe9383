package decision

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// A form is the flat JSON Schema that an elicitation may ask for: an object of
// texts, numbers, booleans and choices. What the schema says beyond that is an
// annotation.

// isForm reports whether raw is such a schema.
func isForm(raw []byte) bool {
	if ahp.KindOf(raw) != ahp.KindObject {
		return false
	}
	var typed, fields bool
	for name, value := range ahp.Members(raw) {
		ok := true
		switch string(name) {
		case "$schema":
			ok = ahp.KindOf(value) == ahp.KindString
		case "type":
			typed = string(ahp.Text(value)) == "object"
		case "required":
			ok = isTexts(value)
		case "properties":
			fields, ok = true, ahp.KindOf(value) == ahp.KindObject
			for _, field := range ahp.Members(value) {
				ok = ok && isField(field)
			}
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return typed && fields
}

// isList reports whether raw is a list of elements that all are so.
func isList(raw []byte, is func([]byte) bool) bool {
	if ahp.KindOf(raw) != ahp.KindArray {
		return false
	}
	for e := range ahp.Elements(raw) {
		if !is(e) {
			return false
		}
	}
	return true
}

func isTexts(raw []byte) bool {
	return isList(raw, func(e []byte) bool { return ahp.KindOf(e) == ahp.KindString })
}

// isField reports whether raw is one of the schemas that a form's fields have.
func isField(raw []byte) bool {
	if ahp.KindOf(raw) != ahp.KindObject {
		return false
	}
	kind := string(ahp.Text(ahp.Member(raw, "type")))
	var enum, names, choices, lengths bool
	for name, value := range ahp.Members(raw) {
		ok := false
		switch string(name) {
		case "type":
			ok = true
		case "title", "description":
			ok = ahp.KindOf(value) == ahp.KindString
		case "default":
			switch kind {
			case "string":
				ok = ahp.KindOf(value) == ahp.KindString
			case "boolean":
				ok = ahp.KindOf(value) == ahp.KindBool
			case "array":
				ok = isTexts(value)
			default:
				ok = ahp.KindOf(value) == ahp.KindNumber
			}
		case "minimum", "maximum":
			ok = (kind == "number" || kind == "integer") && ahp.KindOf(value) == ahp.KindNumber
		case "minLength", "maxLength":
			lengths = true
			ok = kind == "string" && ahp.KindOf(value) == ahp.KindNumber
		case "format":
			lengths = true
			switch string(ahp.Text(value)) {
			case "date", "date-time", "email", "uri":
				ok = kind == "string"
			}
		case "enum":
			enum, ok = true, kind == "string" && isTexts(value)
		case "enumNames":
			names, ok = true, kind == "string" && isTexts(value)
		case "oneOf":
			choices, ok = true, kind == "string" && isList(value, isChoice)
		case "minItems", "maxItems":
			ok = kind == "array" && ahp.KindOf(value) == ahp.KindNumber
		case "items":
			choices, ok = true, kind == "array" && isItems(value)
		}
		if !ok {
			return false
		}
	}
	switch kind {
	case "string":
		// A text has lengths and a format, or is one of some choices.
		return !(enum && choices) && !(lengths && (enum || choices)) && !(names && !enum)
	case "array":
		return choices
	default:
		return kind == "boolean" || kind == "number" || kind == "integer"
	}
}

// isChoice reports whether raw is {const, title}, two strings.
func isChoice(raw []byte) bool {
	n := 0
	for name, value := range ahp.Members(raw) {
		if string(name) != "const" && string(name) != "title" || ahp.KindOf(value) != ahp.KindString {
			return false
		}
		n++
	}
	return n == 2
}

// isItems reports whether raw says what may be chosen more than once of.
func isItems(raw []byte) bool {
	var typed, enum, choices bool
	for name, value := range ahp.Members(raw) {
		ok := false
		switch string(name) {
		case "type":
			typed = string(ahp.Text(value)) == "string"
			ok = typed
		case "enum":
			enum, ok = true, isTexts(value)
		case "anyOf":
			choices, ok = true, isList(value, isChoice)
		}
		if !ok {
			return false
		}
	}
	return choices && !typed && !enum || !choices && typed && enum
}

// fillsIn reports whether content, form answers, is what the form asks for.
func fillsIn(form, content []byte) bool {
	answers := members(content)
	for name := range ahp.Elements(ahp.Member(form, "required")) {
		if answers.index(ahp.Text(name)) < 0 {
			return false
		}
	}
	for name, field := range ahp.Members(ahp.Member(form, "properties")) {
		if answer, ok := answers.get(name); ok && !fits(field, answer) {
			return false
		}
	}
	return true
}

// fits reports whether one answer is what its field asks for.
func fits(field, answer []byte) bool {
	kind := ahp.KindOf(answer)
	switch string(ahp.Text(ahp.Member(field, "type"))) {
	case "boolean":
		return kind == ahp.KindBool
	case "number":
		return kind == ahp.KindNumber && between(field, "minimum", "maximum", answer)
	case "integer":
		return kind == ahp.KindNumber && isWhole(answer) && between(field, "minimum", "maximum", answer)
	case "array":
		offered := choices(ahp.Member(field, "items"), "anyOf")
		n := 0
		for e := range ahp.Elements(answer) {
			if ahp.KindOf(e) != ahp.KindString || offered[string(ahp.Text(e))] == 0 {
				return false
			}
			n++
		}
		return kind == ahp.KindArray && between(field, "minItems", "maxItems", strconv.AppendInt(nil, int64(n), 10))
	default:
		text := ahp.Text(answer)
		if kind != ahp.KindString || !oneOf(field, text) {
			return false
		}
		length := strconv.AppendInt(nil, int64(utf8.RuneCount(text)), 10)
		return between(field, "minLength", "maxLength", length) && hasFormat(ahp.Member(field, "format"), text)
	}
}

// choices returns the texts that a schema offers, as enum or as titled ones, and
// how often; nil where it does not limit them.
func choices(schema []byte, titled string) map[string]int {
	enum, list := ahp.Member(schema, "enum"), ahp.Member(schema, titled)
	if enum == nil && list == nil {
		return nil
	}
	offered := make(map[string]int)
	for e := range ahp.Elements(enum) {
		offered[string(ahp.Text(e))] = 1
	}
	for choice := range ahp.Elements(list) {
		offered[string(ahp.Text(ahp.Member(choice, "const")))]++
	}
	return offered
}

// oneOf reports whether the text is what a schema offers, if it limits it. A
// titled choice that stands there twice cannot be made: exactly one has to be.
func oneOf(schema, text []byte) bool {
	offered := choices(schema, "oneOf")
	return offered == nil || offered[string(text)] == 1
}

func hasFormat(format, text []byte) bool {
	switch string(ahp.Text(format)) {
	case "email":
		return bytes.IndexByte(text, '@') >= 0
	case "date":
		_, err := time.Parse(time.DateOnly, string(text))
		return err == nil && string(text[:4]) != "0000"
	case "date-time":
		// Forms know no leap seconds.
		return ahp.IsDateTime(text) && string(text[17:19]) != "60"
	case "uri":
		return ahp.IsURI(text)
	default:
		return true
	}
}

// isWhole reports whether a number has no fraction.
func isWhole(number []byte) bool {
	if isInteger(string(number)) {
		return true
	}
	f, err := strconv.ParseFloat(string(number), 64)
	return err == nil && f == math.Trunc(f)
}

// between reports whether a number is within the limits that the schema names
// so, if it does. A limit is what its decimals say; the number is the double
// that it is read as.
func between(schema []byte, least, most string, number []byte) bool {
	low, high := ahp.Member(schema, least), ahp.Member(schema, most)
	if low == nil && high == nil {
		return true
	}
	var n *big.Float
	if isInteger(string(number)) {
		n = decimal(number)
	} else {
		f, _ := strconv.ParseFloat(string(number), 64)
		n = big.NewFloat(f)
	}
	return (low == nil || n.Cmp(decimal(low)) >= 0) && (high == nil || n.Cmp(decimal(high)) <= 0)
}

// precision is enough for every double and then some.
const precision = 2048

func decimal(number []byte) *big.Float {
	f, _, err := big.ParseFloat(string(number), 10, precision, big.ToNearestEven)
	if err != nil {
		return new(big.Float)
	}
	return f
}
