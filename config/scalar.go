package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// maxCount bounds counts and sizes, so that they fit an int everywhere and
	// sums of a few of them do not overflow.
	maxCount = 1 << 30
	// maxDuration bounds durations.
	maxDuration = 24 * time.Hour
)

var (
	plainInt    = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})$`)
	plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][-+]?[0-9]{1,3})?$`)
	sizeText    = regexp.MustCompile(`^(0|[1-9][0-9]{0,9})(B|KiB|MiB|GiB)$`)
)

// integer reads a whole number in plain decimal digits. Other spellings that
// YAML has (0x10, 010, 1_000) mean different numbers to different readers.
func (r *reader) integer(s spot, least, most int) (int, bool) {
	within := "write a whole number from " + itoa(least) + " to " + itoa(most)
	if !r.is(s, kindNumber, within) {
		return 0, false
	}
	if !plainInt.MatchString(s.text) {
		r.mistake(s, cut(s.text, maxShown), "is not a plain whole number", within)
		return 0, false
	}
	v, err := strconv.ParseInt(s.text, 10, 64)
	if err != nil || v < int64(least) || v > int64(most) {
		r.mistake(s, cut(s.text, maxShown), "is out of range", within)
		return 0, false
	}
	return int(v), true
}

// number reads a plain decimal number.
func (r *reader) number(s spot, instead string) (float64, bool) {
	if !r.is(s, kindNumber, instead) {
		return 0, false
	}
	v, err := strconv.ParseFloat(s.text, 64)
	if err != nil || !plainNumber.MatchString(s.text) || math.IsInf(v, 0) {
		r.mistake(s, cut(s.text, maxShown), "is not a plain number", instead)
		return 0, false
	}
	return v, true
}

// duration reads a Go duration between 1ms and a day. Zero would mean "at
// once" to some readers and "never" to others, so nothing may be zero.
func (r *reader) duration(s spot) (time.Duration, bool) {
	const instead = `write a duration with its unit, such as "750ms", "5s" or "2m", at most "24h"`
	if s.kind == kindNumber {
		r.mistake(s, cut(s.text, maxShown), "is a duration without a unit", instead)
		return 0, false
	}
	text, ok := r.text(s)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		r.mistake(s, shown(text), "is not a duration", instead)
	case d < time.Millisecond:
		r.mistake(s, shown(text), "must be at least 1ms", instead)
	case d > maxDuration:
		r.mistake(s, shown(text), "is longer than a day", instead)
	default:
		return d, true
	}
	return 0, false
}

// size reads a number of bytes: an integer, or a string with a binary unit.
func (r *reader) size(s spot, least int) (int, bool) {
	instead := "write bytes, such as 65536, or \"64KiB\", \"1MiB\", from " + itoa(least) + " bytes to \"1GiB\""
	if s.kind == kindNumber {
		v, ok := r.integer(s, least, maxCount)
		return v, ok
	}
	if s.kind != kindString {
		r.is(s, kindNumber, instead)
		return 0, false
	}
	m := sizeText.FindStringSubmatch(s.text)
	if m == nil {
		r.mistake(s, shown(s.text), "is not a size", instead)
		return 0, false
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	shift := strings.Index("B.K.M.G", m[2][:1]) / 2 * 10
	if err != nil || v > maxCount>>shift || v<<shift < int64(least) {
		r.mistake(s, shown(s.text), "is out of range", instead)
		return 0, false
	}
	return int(v << shift), true
}
