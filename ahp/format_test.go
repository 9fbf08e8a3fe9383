package ahp

import (
	"regexp"
	"strconv"
	"time"
)

// The grammars of RFC 3986 and RFC 3339 once more, as expressions, to hold the
// hand-written readers against and for the schemas' formats.

const (
	pchar   = `(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})`
	regName = `(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*`
	octet   = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	h16     = `[0-9A-Fa-f]{1,4}`
	ls32    = `(?:` + h16 + `:` + h16 + `|` + octet + `\.` + octet + `\.` + octet + `\.` + octet + `)`
	ipv6    = `(?:` +
		`(?:` + h16 + `:){6}` + ls32 +
		`|::(?:` + h16 + `:){5}` + ls32 +
		`|(?:` + h16 + `)?::(?:` + h16 + `:){4}` + ls32 +
		`|(?:(?:` + h16 + `:){0,1}` + h16 + `)?::(?:` + h16 + `:){3}` + ls32 +
		`|(?:(?:` + h16 + `:){0,2}` + h16 + `)?::(?:` + h16 + `:){2}` + ls32 +
		`|(?:(?:` + h16 + `:){0,3}` + h16 + `)?::` + h16 + `:` + ls32 +
		`|(?:(?:` + h16 + `:){0,4}` + h16 + `)?::` + ls32 +
		`|(?:(?:` + h16 + `:){0,5}` + h16 + `)?::` + h16 +
		`|(?:(?:` + h16 + `:){0,6}` + h16 + `)?::)`
	ipFuture  = `[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+`
	authority = `(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|%[0-9A-Fa-f]{2})*@)?(?:\[(?:` + ipv6 + `|` + ipFuture + `)\]|` + regName + `)(?::[0-9]*)?`
	uri       = `[A-Za-z][A-Za-z0-9+\-.]*:(?://` + authority + `(?:/` + pchar + `*)*|/(?:` + pchar + `+(?:/` + pchar + `*)*)?|` + pchar + `+(?:/` + pchar + `*)*|)` +
		`(?:\?(?:` + pchar + `|[/?])*)?(?:#(?:` + pchar + `|[/?])*)?`
)

var (
	uriShape      = regexp.MustCompile(`^(?:` + uri + `)$`)
	dateTimeShape = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))$`)
)

// matchesDateTime says what isDateTime should, by way of package time.
func matchesDateTime(s string) bool {
	m := dateTimeShape.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	if _, err := time.Parse(time.DateOnly, m[1]); err != nil {
		return false
	}
	if m[4] != "60" {
		return true
	}
	number := func(s string) time.Duration {
		n, err := strconv.Atoi("0" + s)
		if err != nil {
			panic(err)
		}
		return time.Duration(n)
	}
	offset := number(m[6])*time.Hour + number(m[7])*time.Minute
	if m[5] == "+" {
		offset = -offset
	}
	local := time.Date(2000, 1, 2, int(number(m[2])), int(number(m[3])), 0, 0, time.UTC)
	return local.Add(offset).Format("15:04") == "23:59"
}
