package config

import (
	"net/url"
	"strings"
)

// hideQuery returns a URL with the word "redacted" in place of the query values
// that could be credentials. What is between two & is one pair, and to some
// readers several with ; between them: it is hidden from the first on that could
// be one in either reading.
func hideQuery(s string) string {
	base, query, ok := strings.Cut(s, "?")
	if !ok {
		return s
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		pairs[i] = hidePair(pair)
	}
	return base + "?" + strings.Join(pairs, "&")
}

func hidePair(pair string) string {
	for at := 0; ; {
		rest := pair[at:]
		part, _, more := strings.Cut(rest, ";")
		name, value, ok := strings.Cut(part, "=")
		_, whole, _ := strings.Cut(rest, "=")
		plain, err := url.QueryUnescape(name)
		plain = strings.ToLower(plain)
		if ok && (err != nil || looksSecret(plain, value) || looksSecret(plain, whole)) {
			return pair[:at] + name + "=" + redacted
		}
		if !more {
			return pair
		}
		at += len(part) + 1
	}
}
