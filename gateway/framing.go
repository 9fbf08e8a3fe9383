package gateway

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// framingFault says what about a request's head leaves room for two readers to
// see two different requests, or "". fasthttp accepts most of these forms; a
// proxy in front of the gateway may read them differently, and the difference
// is how requests are smuggled past policy. Whatever is refused here also
// closes the connection.
func framingFault(h *fasthttp.RequestHeader) string {
	http10 := false
	switch string(h.Protocol()) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		http10 = true
	default:
		return "unsupported HTTP version"
	}
	var host, length, coding, authorization, mediaType, contentCoding int
	raw := h.RawHeaders()
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			return "header line without end"
		}
		line := raw[:end]
		raw = raw[end+1:]
		if len(line) == 0 || line[len(line)-1] != '\r' {
			return "header line ends without CR"
		}
		line = line[:len(line)-1]
		if len(line) == 0 {
			break // the empty line that ends the head
		}
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			return "header line without a name"
		}
		name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
		for _, c := range name {
			if !isTokenChar(c) {
				return "header name with an invalid character"
			}
		}
		for _, c := range value {
			if c < 0x20 && c != '\t' || c == 0x7f {
				return "header value with a control character"
			}
		}
		switch {
		case fold(name, "host"):
			host++
		case fold(name, "content-length"):
			length++
			if !isDigits(value) {
				return "Content-Length is no number"
			}
		case fold(name, "transfer-encoding"):
			coding++
			if !fold(value, "chunked") {
				return "Transfer-Encoding other than chunked"
			}
		case fold(name, "authorization"):
			authorization++
		case fold(name, "content-type"):
			mediaType++
		case fold(name, "content-encoding"):
			contentCoding++
		}
	}
	switch {
	case host != 1 && !(http10 && host == 0):
		return "not exactly one Host"
	case length > 1:
		return "more than one Content-Length"
	case coding > 1:
		return "more than one Transfer-Encoding"
	case length > 0 && coding > 0:
		return "Content-Length beside Transfer-Encoding"
	case http10 && coding > 0:
		return "Transfer-Encoding in HTTP/1.0"
	case authorization > 1:
		return "more than one Authorization"
	case mediaType > 1:
		return "more than one Content-Type"
	case contentCoding > 1:
		return "more than one Content-Encoding"
	}
	if len(h.PeekTrailerKeys()) > 0 {
		// Behind a body, where a proxy may merge it into the header or not.
		return "trailer fields"
	}
	return ""
}

// hasBody reports whether a request announces a body.
func hasBody(h *fasthttp.RequestHeader) bool {
	raw := h.RawHeaders()
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			return true
		}
		name, value, _ := bytes.Cut(raw[:end], []byte(":"))
		if fold(name, "transfer-encoding") || fold(name, "content-length") && string(bytes.TrimSpace(value)) != "0" {
			return true
		}
		raw = raw[end+1:]
	}
	return false
}

// target returns the path of a request target without its query, as it was
// sent, or says what makes it ambiguous. normal is what fasthttp makes of the
// path: a target with empty or dot segments or percent-encoding reaches no
// endpoint, for a proxy that picks requests by path may have seen another one.
func target(raw, normal []byte) (path []byte, fault string) {
	if len(raw) == 0 || raw[0] != '/' {
		return nil, "request target is no absolute path"
	}
	if bytes.IndexByte(raw, '#') >= 0 {
		return nil, "request target with a fragment"
	}
	path = raw
	if i := bytes.IndexByte(raw, '?'); i >= 0 {
		path = raw[:i]
	}
	if !bytes.Equal(path, normal) {
		return nil, "request target is not in its normal form"
	}
	return path, ""
}

// fold reports whether b is the lower-case ASCII text want in any case.
func fold(b []byte, want string) bool {
	if len(b) != len(want) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 18
}

// isTokenChar reports whether c may stand in a header name (RFC 9110, 5.6.2).
func isTokenChar(c byte) bool {
	if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
		return true
	}
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return false
}

// isJSON reports whether a Content-Type value is application/json, parameters
// or not (AHP-HTTP-001).
func isJSON(contentType []byte) bool {
	if i := bytes.IndexByte(contentType, ';'); i >= 0 {
		contentType = contentType[:i]
	}
	return fold(bytes.Trim(contentType, " \t"), "application/json")
}
