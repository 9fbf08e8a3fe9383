package audit

import "unicode/utf8"

// cutString returns the longest prefix of s that has at most limit bytes and
// does not end inside a rune.
func cutString(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	// A rune has at most three continuation bytes; more are invalid anyway.
	for i := 0; i < utf8.UTFMax-1 && end > 0 && !utf8.RuneStart(s[end]); i++ {
		end--
	}
	if !utf8.RuneStart(s[end]) {
		end = limit
	}
	return s[:end]
}

const hexDigits = "0123456789abcdef"

// plain marks the ASCII bytes that stand for themselves in a JSON string.
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != 0x7f && c != '"' && c != '\\'
	}
	return t
}()

// appendString appends s as a JSON string. Each byte of invalid UTF-8 becomes
// U+FFFD. Beyond what JSON demands it escapes what could break a line, drive a
// terminal or reorder what a person reads: DEL, C1 controls, the two Unicode
// line separators and the bidirectional controls.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, rune(c))
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			start = i + size
		case deceptive(r):
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, r)
			start = i + size
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendEscape appends the escape of r, which is in the basic plane.
func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&0xf], hexDigits[r>>8&0xf], hexDigits[r>>4&0xf], hexDigits[r&0xf])
}

// deceptive reports whether r beyond ASCII breaks lines, drives terminals or
// reorders text.
func deceptive(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f,
		r == 0x061c, r == 0x200e, r == 0x200f,
		r >= 0x2028 && r <= 0x202e,
		r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}
