package tenant

import "bytes"

// maxAuthorization is the longest Authorization value that is looked at, in
// bytes. Tokens of some issuers list the groups of a caller and are long.
const maxAuthorization = 8192

const scheme = "bearer "

// bearerToken returns the token of an Authorization value, which must be the
// scheme Bearer in any case, one space, and a token68 of RFC 9110, with nothing
// before, between or after: a proxy in front could read anything looser in
// another way. The token is a part of authorization.
func bearerToken(authorization []byte) (token []byte, ok bool) {
	if len(authorization) > maxAuthorization || len(authorization) <= len(scheme) {
		return nil, false
	}
	for i := range scheme {
		if lower(authorization[i]) != scheme[i] {
			return nil, false
		}
	}
	token = authorization[len(scheme):]
	n := 0
	for n < len(token) && isToken68(token[n]) {
		n++
	}
	if n == 0 {
		return nil, false
	}
	for _, c := range token[n:] {
		if c != '=' {
			return nil, false
		}
	}
	return token, true
}

// isBearer reports whether an Authorization value is of the scheme Bearer,
// well-formed or not.
func isBearer(authorization []byte) bool {
	const name = len(scheme) - 1
	if len(authorization) < name {
		return false
	}
	for i := range name {
		if lower(authorization[i]) != scheme[i] {
			return false
		}
	}
	return len(authorization) == name || !isToken68(authorization[name])
}

// isJWT reports whether a token has the outer form of a signed JSON Web Token:
// three parts, of which the first begins as the JSON of every header does. A
// key that is none of the directory's never gets as far as a parser.
func isJWT(token []byte) bool {
	return bytes.HasPrefix(token, []byte("eyJ")) && bytes.Count(token, []byte(".")) == 2
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// isToken68 reports whether c may stand in a token68 before its padding.
func isToken68(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	switch c {
	case '-', '.', '_', '~', '+', '/':
		return true
	}
	return false
}
