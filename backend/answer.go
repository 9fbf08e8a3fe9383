package backend

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http/httputil"
	"slices"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

const (
	// maxHead bounds the status line and fields of one answer, and its
	// trailer fields, in bytes.
	maxHead = 16 << 10
	// readBuffer bounds one line of a head, in bytes.
	readBuffer = 8 << 10
	// writeBuffer holds the head of a request, and all of a small one.
	writeBuffer = 8 << 10
	// maxInterim bounds the 1xx answers before the final one.
	maxInterim = 16
)

// Values of answer.length that are no length.
const (
	lengthChunked = -1 // the body is chunked
	lengthNone    = -2 // nothing says where the body ends but the end of the connection
)

// answer is the head of one answer.
type answer struct {
	status    int
	length    int
	json      bool // Content-Type is application/json
	coded     bool // Content-Encoding is present and not identity
	keepAlive bool
}

func malformed(detail string) ahp.Failure {
	return ahp.Failure{Class: ahp.FailMalformedHTTP, Detail: detail}
}

// readAnswer reads the head of the final answer and skips the interim ones.
func readAnswer(br *bufio.Reader, a *answer) ahp.Failure {
	// What speaks another protocol may never send a line end.
	if first, err := br.Peek(1); err == nil && first[0] != 'H' {
		return malformed("status line")
	}
	for range maxInterim {
		if f := readHead(br, a); !f.OK() {
			return f
		}
		if a.status == 101 {
			return malformed("status 101")
		}
		if a.status >= 200 {
			return ahp.Failure{}
		}
	}
	return malformed("too many interim answers")
}

// readHead reads one status line and its fields. It takes only what every
// reader of HTTP/1.1 reads in the same way.
func readHead(br *bufio.Reader, a *answer) ahp.Failure {
	left := maxHead
	line, f := readLine(br, &left)
	if !f.OK() {
		return f
	}
	*a = answer{length: lengthNone}
	http11, ok := a.parseStatus(line)
	if !ok {
		return malformed("status line")
	}
	a.keepAlive = http11

	var seen struct{ mediaType, length, transfer, coding bool }
	for {
		line, f := readLine(br, &left)
		if !f.OK() {
			return f
		}
		if len(line) == 0 {
			break
		}
		name, value, ok := parseField(line)
		if !ok {
			return malformed("header field")
		}
		switch {
		case isName(name, "content-type"):
			if seen.mediaType {
				return malformed("two Content-Type fields")
			}
			seen.mediaType = true
			a.json = isJSON(value)
		case isName(name, "content-length"):
			if seen.length {
				return malformed("two Content-Length fields")
			}
			seen.length = true
			if a.length, ok = parseLength(value); !ok {
				return malformed("Content-Length")
			}
		case isName(name, "transfer-encoding"):
			if seen.transfer || !http11 || !isName(value, "chunked") {
				return malformed("Transfer-Encoding")
			}
			seen.transfer = true
		case isName(name, "content-encoding"):
			a.coded = a.coded || !isName(value, "identity")
		case isName(name, "connection"):
			for token := range bytes.SplitSeq(value, []byte{','}) {
				if isName(bytes.Trim(token, " \t"), "close") {
					a.keepAlive = false
				}
			}
		}
	}
	if seen.transfer {
		if seen.length {
			return malformed("both Content-Length and Transfer-Encoding")
		}
		a.length = lengthChunked
	}
	if a.length == lengthNone && (a.status == 204 || a.status == 304) {
		a.length = 0
	}
	return ahp.Failure{}
}

// parseStatus reads a status line and reports whether it is one, and whether
// it is that of HTTP/1.1 rather than HTTP/1.0.
func (a *answer) parseStatus(line []byte) (http11, ok bool) {
	const prefix = len("HTTP/1.1 ")
	if len(line) < prefix+3 || len(line) > prefix+3 && line[prefix+3] != ' ' || !isFieldValue(line) {
		return false, false
	}
	switch string(line[:prefix]) {
	case "HTTP/1.1 ":
		http11 = true
	case "HTTP/1.0 ":
	default:
		return false, false
	}
	for _, c := range line[prefix : prefix+3] {
		if c < '0' || c > '9' {
			return false, false
		}
		a.status = a.status*10 + int(c-'0')
	}
	return http11, a.status >= 100 && a.status <= 599
}

// parseField splits a header line. A folded line has no name and is refused,
// as is space before the colon.
func parseField(line []byte) (name, value []byte, ok bool) {
	name, value, ok = bytes.Cut(line, []byte{':'})
	if !ok || !isToken(name) || !isFieldValue(value) {
		return nil, nil, false
	}
	return name, bytes.Trim(value, " \t"), true
}

// isFieldValue reports whether v holds no control character but the tab.
func isFieldValue(v []byte) bool {
	for _, c := range v {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isName compares without regard to the case of ASCII letters. want is lower case.
func isName(got []byte, want string) bool {
	if len(got) != len(want) {
		return false
	}
	for i, c := range got {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != want[i] {
			return false
		}
	}
	return true
}

// isJSON reports whether a Content-Type is application/json, whatever its
// parameters.
func isJSON(value []byte) bool {
	mediaType, _, _ := bytes.Cut(value, []byte{';'})
	return isName(bytes.TrimRight(mediaType, " \t"), "application/json")
}

// parseLength reads a Content-Length, which is digits only. A length that no
// limit allows is reported as maxLength.
func parseLength(value []byte) (n int, ok bool) {
	if len(value) == 0 {
		return 0, false
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), maxLength)
	}
	return n, true
}

// maxLength is a length beyond every limit that leaves room for one more digit
// in an int of 32 bits.
const maxLength = 200_000_000

// readLine reads one line of a head without its line end and takes its length
// off left.
func readLine(br *bufio.Reader, left *int) ([]byte, ahp.Failure) {
	line, err := br.ReadSlice('\n')
	*left -= len(line)
	switch {
	case *left < 0 || errors.Is(err, bufio.ErrBufferFull):
		return nil, ahp.Failure{Class: ahp.FailOversize, Detail: "the head of the answer"}
	case err != nil:
		return nil, connFailure(err, "head of the answer incomplete")
	case len(line) < 2 || line[len(line)-2] != '\r':
		return nil, malformed("bare line feed")
	}
	return line[:len(line)-2], ahp.Failure{}
}

// readBody appends the whole body to dst, or fails when it is longer than limit.
func (a *answer) readBody(br *bufio.Reader, limit int, dst []byte) ([]byte, ahp.Failure) {
	switch {
	case a.length == lengthChunked:
		return readChunked(br, limit, dst)
	case a.length == lengthNone:
		return dst, malformed("the body has no length")
	case a.length > limit:
		return dst, ahp.Failure{Class: ahp.FailOversize, Detail: "the body of the answer"}
	}
	// The buffer grows with what arrives, not with what is announced.
	end := len(dst) + a.length
	for len(dst) < end {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(end-len(dst), readBuffer))
		}
		n, err := br.Read(dst[len(dst):min(end, cap(dst))])
		dst = dst[:len(dst)+n]
		if err != nil && len(dst) < end {
			return dst, connFailure(err, "body of the answer incomplete")
		}
	}
	return dst, ahp.Failure{}
}

func readChunked(br *bufio.Reader, limit int, dst []byte) ([]byte, ahp.Failure) {
	start := len(dst)
	chunks := httputil.NewChunkedReader(br)
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, readBuffer)
		}
		n, err := chunks.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst)-start > limit:
			return dst, ahp.Failure{Class: ahp.FailOversize, Detail: "the body of the answer"}
		case err == io.EOF:
			return dst, skipTrailer(br)
		case err != nil:
			return dst, chunkFailure(err)
		}
	}
}

// skipTrailer reads the fields after the last chunk, which mean nothing here.
func skipTrailer(br *bufio.Reader) ahp.Failure {
	left := maxHead
	for {
		line, f := readLine(br, &left)
		if !f.OK() || len(line) == 0 {
			return f
		}
		if _, _, ok := parseField(line); !ok {
			return malformed("trailer field")
		}
	}
}

// chunkFailure tells a lost connection from chunks that are none.
func chunkFailure(err error) ahp.Failure {
	var lost *net.OpError
	if isTimeout(err) || isClosed(err) || errors.As(err, &lost) {
		return connFailure(err, "body of the answer incomplete")
	}
	return malformed("chunked body")
}
