package ahp

import (
	"bytes"
	"net/netip"
)

// IsReverseDNS reports whether name is a reverse-DNS name as the protocol
// writes them: labels of ASCII letters, digits, "-" and "_", each beginning
// with a letter, at least two of them, with dots between. AHP-EXT-001.
func IsReverseDNS(name []byte) bool {
	labels, start := 0, true
	for _, c := range name {
		switch {
		case c == '.':
			if start {
				return false
			}
			start = true
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			if start {
				labels++
			}
			start = false
		case '0' <= c && c <= '9' || c == '-' || c == '_':
			if start {
				return false
			}
		default:
			return false
		}
	}
	return labels >= 2 && !start
}

// isURI reports whether s is an absolute URI by the grammar of RFC 3986, a
// fragment included.
func isURI(s []byte) bool {
	colon := -1
	for i, c := range s {
		if c == ':' {
			colon = i
			break
		}
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || !(isDigit(c) || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	if colon < 1 {
		return false
	}
	rest := s[colon+1:]
	if len(rest) >= 2 && rest[0] == '/' && rest[1] == '/' {
		end := 2
		for end < len(rest) && rest[end] != '/' && rest[end] != '?' && rest[end] != '#' {
			end++
		}
		if !isAuthority(rest[2:end]) {
			return false
		}
		rest = rest[end:]
	}
	fragment := false
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '#':
			if fragment {
				return false
			}
			fragment = true
		case c == '%':
			if !isPercent(rest[i:]) {
				return false
			}
		case !isURIChar(c) && c != '/' && c != '?':
			return false
		}
	}
	return true
}

// isAuthority reports whether a is [userinfo@]host[:port], with an IP literal
// in brackets as host or none.
func isAuthority(a []byte) bool {
	at := -1
	for i, c := range a {
		if c == '@' {
			if at >= 0 {
				return false
			}
			at = i
		}
	}
	for i := 0; i < at; i++ {
		if a[i] == '%' && !isPercent(a[i:at]) || a[i] != '%' && !isURIChar(a[i]) {
			return false
		}
	}
	host := a[at+1:]
	if len(host) > 0 && host[0] == '[' {
		end := bytes.IndexByte(host, ']')
		if end < 0 || !isIPLiteral(host[1:end]) {
			return false
		}
		host = host[end+1:]
		if len(host) > 0 && host[0] != ':' {
			return false
		}
	}
	port := false
	for i := 0; i < len(host); i++ {
		switch c := host[i]; {
		case c == ':':
			if port {
				return false
			}
			port = true
		case port:
			if !isDigit(c) {
				return false
			}
		case c == '%':
			if !isPercent(host[i:]) {
				return false
			}
		case !isURIChar(c):
			return false
		}
	}
	return true
}

// isIPLiteral reports whether s may stand in brackets: an IPv6 address without
// a zone, or the form that RFC 3986 keeps for later versions.
func isIPLiteral(s []byte) bool {
	if len(s) == 0 || s[0] != 'v' && s[0] != 'V' {
		addr, err := netip.ParseAddr(string(s))
		return err == nil && addr.Is6() && addr.Zone() == ""
	}
	dot := bytes.IndexByte(s, '.')
	if dot < 2 || dot == len(s)-1 {
		return false
	}
	for _, c := range s[1:dot] {
		if !isHex(c) {
			return false
		}
	}
	for _, c := range s[dot+1:] {
		if !isURIChar(c) { // "@" would have ended a userinfo before
			return false
		}
	}
	return true
}

func isPercent(s []byte) bool { return len(s) >= 3 && isHex(s[1]) && isHex(s[2]) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// isURIChar reports whether c is unreserved, a sub-delimiter, ":" or "@".
func isURIChar(c byte) bool {
	if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) {
		return true
	}
	switch c {
	case '-', '.', '_', '~', '!', '$', '&', '\'', '(', ')', '*', '+', ',', ';', '=', ':', '@':
		return true
	}
	return false
}

// isDateTime reports whether s is a date-time of RFC 3339: a real day of a real
// month, and a leap second only where UTC can have one.
func isDateTime(s []byte) bool {
	const shape = "0000-00-00T00:00:00"
	if len(s) < len(shape)+1 {
		return false
	}
	for i := 0; i < len(shape); i++ {
		switch shape[i] {
		case '0':
			if !isDigit(s[i]) {
				return false
			}
		case 'T':
			if s[i] != 'T' && s[i] != 't' {
				return false
			}
		default:
			if s[i] != shape[i] {
				return false
			}
		}
	}
	two := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	year, month, day := two(0)*100+two(2), two(5), two(8)
	hour, minute, second := two(11), two(14), two(17)
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return false
	}
	if hour > 23 || minute > 59 || second > 60 {
		return false
	}
	i := len(shape)
	if s[i] == '.' {
		start := i + 1
		for i++; i < len(s) && isDigit(s[i]); i++ {
		}
		if i == start {
			return false
		}
	}
	offset := 0
	switch {
	case i == len(s)-1 && (s[i] == 'Z' || s[i] == 'z'):
	case i == len(s)-6 && (s[i] == '+' || s[i] == '-') && s[i+3] == ':' &&
		isDigit(s[i+1]) && isDigit(s[i+2]) && isDigit(s[i+4]) && isDigit(s[i+5]):
		if two(i+1) > 23 || two(i+4) > 59 {
			return false
		}
		if offset = two(i+1)*60 + two(i+4); s[i] == '+' {
			offset = -offset
		}
	default:
		return false
	}
	const day1440 = 24 * 60
	return second < 60 || (hour*60+minute+offset+day1440)%day1440 == day1440-1
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}
