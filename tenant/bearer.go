package tenant

// maxAuthorization is the longest Authorization value that is looked at, in bytes.
const maxAuthorization = 4096

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
