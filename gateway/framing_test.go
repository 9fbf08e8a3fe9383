package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// In the raw requests below, $E is an event that would be decided, $L its
// length in decimal, $X in hexadecimal, $C is $E as one chunk of the chunked
// coding without the last chunk, $H are the header lines that every request
// needs, and $P is the whole head of a good request up to the length of its body.
func raw(template, id string) string {
	e := event01(id)
	return strings.NewReplacer(
		"$E", e,
		"$L", fmt.Sprint(len(e)),
		"$X", fmt.Sprintf("%x", len(e)),
		"$C", fmt.Sprintf("%x\r\n%s\r\n", len(e), e),
		"$H", "Host: gateway.test\r\nContent-Type: application/json\r\n",
		"$P", "POST /hooks HTTP/1.1\r\nHost: gateway.test\r\nContent-Type: application/json\r\n",
	).Replace(template)
}

// good is a request that has to be served.
const good = "$PContent-Length: $L\r\n\r\n$E"

// closed is the status of a connection that is closed without an answer: there
// is no request on it that could have one.
const closed = 0

// refusedFramings are requests that two readers could read in two ways, or that
// no reader should take for a request.
var refusedFramings = []struct {
	name   string
	status int
	raw    string
}{
	// How long is the body?
	{"length and coding", 400, "$PContent-Length: $L\r\nTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n"},
	{"coding and length", 400, "$PTransfer-Encoding: chunked\r\nContent-Length: $L\r\n\r\n$C0\r\n\r\n"},
	{"coding and short length", 400, "$PContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n"},
	{"two lengths, same", 400, "$PContent-Length: $L\r\nContent-Length: $L\r\n\r\n$E"},
	{"two lengths, different", 400, "$PContent-Length: $L\r\nContent-Length: 5\r\n\r\n$E"},
	{"length in hexadecimal", 400, "$PContent-Length: 0x$X\r\n\r\n$E"},
	{"length with plus", 400, "$PContent-Length: +$L\r\n\r\n$E"},
	{"length with minus", 400, "$PContent-Length: -$L\r\n\r\n$E"},
	{"length list", 400, "$PContent-Length: $L, $L\r\n\r\n$E"},
	{"length list without space", 400, "$PContent-Length: $L,$L\r\n\r\n$E"},
	{"length empty", 400, "$PContent-Length:\r\n\r\n$E"},
	{"length blank", 400, "$PContent-Length: \t \r\n\r\n$E"},
	{"length with inner space", 400, "$PContent-Length: 5 5\r\n\r\n$E"},
	{"length with underscore", 400, "$PContent-Length: 1_000\r\n\r\n$E"},
	{"length with fraction", 400, "$PContent-Length: $L.0\r\n\r\n$E"},
	{"length with exponent", 400, "$PContent-Length: 1e3\r\n\r\n$E"},
	{"length in other digits", 400, "$PContent-Length: \xd9\xa5\r\n\r\n$E"},
	{"length with vertical tab", 400, "$PContent-Length: \v$L\r\n\r\n$E"},
	{"length quoted", 400, "$PContent-Length: \"$L\"\r\n\r\n$E"},
	{"length beyond 64 bits", 400, "$PContent-Length: 99999999999999999999999\r\n\r\n$E"},
	{"length that wraps to the body's", 400, "$PContent-Length: 18446744073709551621\r\n\r\n$E"},
	{"length beyond the limit", 413, "$PContent-Length: 999999999999999999\r\n\r\n$E"},
	{"length longer than what comes", 400, "$PContent-Length: 3999\r\n\r\n$E"},
	{"coding gzip, chunked", 400, "$PTransfer-Encoding: gzip, chunked\r\n\r\n$C0\r\n\r\n"},
	{"coding chunked, gzip", 400, "$PTransfer-Encoding: chunked, gzip\r\n\r\n$C0\r\n\r\n"},
	{"coding chunked, chunked", 400, "$PTransfer-Encoding: chunked, chunked\r\n\r\n$C0\r\n\r\n"},
	{"coding twice", 400, "$PTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n"},
	{"coding twice, one identity", 400, "$PTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n"},
	{"coding xchunked", 400, "$PTransfer-Encoding: xchunked\r\n\r\n$C0\r\n\r\n"},
	{"coding identity", 400, "$PTransfer-Encoding: identity\r\n\r\n$C0\r\n\r\n"},
	{"coding identity and length", 400, "$PTransfer-Encoding: identity\r\nContent-Length: $L\r\n\r\n$E"},
	{"coding empty", 400, "$PTransfer-Encoding:\r\n\r\n$C0\r\n\r\n"},
	{"coding empty and length", 400, "$PTransfer-Encoding:\r\nContent-Length: $L\r\n\r\n$E"},
	{"coding quoted", 400, "$PTransfer-Encoding: \"chunked\"\r\n\r\n$C0\r\n\r\n"},
	{"coding with parameter", 400, "$PTransfer-Encoding: chunked;a=b\r\n\r\n$C0\r\n\r\n"},
	{"coding with trailing comma", 400, "$PTransfer-Encoding: chunked,\r\n\r\n$C0\r\n\r\n"},
	{"coding with vertical tab", 400, "$PTransfer-Encoding:\vchunked\r\n\r\n$C0\r\n\r\n"},
	{"coding with NUL", 400, "$PTransfer-Encoding: chunked\x00\r\n\r\n$C0\r\n\r\n"},
	{"coding folded", 400, "$PTransfer-Encoding:\r\n chunked\r\n\r\n$C0\r\n\r\n"},
	{"coding behind bare LF", 400, "$PX-A: b\nTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n"},
	{"coding behind bare CR", 400, "$PX-A: b\rTransfer-Encoding: chunked\r\n\r\n$E"},
	{"coding with space before the colon", 400, "$PTransfer-Encoding : chunked\r\n\r\n$C0\r\n\r\n"},
	{"coding with tab before the colon", 400, "$PTransfer-Encoding\t: chunked\r\n\r\n$C0\r\n\r\n"},
	{"length with space before the colon", 400, "$PContent-Length : $L\r\n\r\n$E"},
	{"coding in HTTP/1.0", 400, "POST /hooks HTTP/1.0\r\n$HTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n"},
	{"coding and length in HTTP/1.0", 400, "POST /hooks HTTP/1.0\r\n$HTransfer-Encoding: chunked\r\nContent-Length: $L\r\n\r\n$E"},
	{"content coding gzip", 415, "$PContent-Encoding: gzip\r\nContent-Length: $L\r\n\r\n$E"},
	{"content coding identity", 415, "$PContent-Encoding: identity\r\nContent-Length: $L\r\n\r\n$E"},
	{"content coding twice", 400, "$PContent-Encoding: gzip\r\nContent-Encoding: br\r\nContent-Length: $L\r\n\r\n$E"},

	// Chunks.
	{"chunk size no hexadecimal", 400, "$PTransfer-Encoding: chunked\r\n\r\nzz\r\n$E\r\n0\r\n\r\n"},
	{"chunk size with 0x", 400, "$PTransfer-Encoding: chunked\r\n\r\n0x$X\r\n$E\r\n0\r\n\r\n"},
	{"chunk size with plus", 400, "$PTransfer-Encoding: chunked\r\n\r\n+$X\r\n$E\r\n0\r\n\r\n"},
	{"chunk size with minus", 400, "$PTransfer-Encoding: chunked\r\n\r\n-$X\r\n$E\r\n0\r\n\r\n"},
	{"chunk size with underscore", 400, "$PTransfer-Encoding: chunked\r\n\r\n1_0\r\n$E\r\n0\r\n\r\n"},
	{"chunk size with leading space", 400, "$PTransfer-Encoding: chunked\r\n\r\n $X\r\n$E\r\n0\r\n\r\n"},
	{"chunk size empty", 400, "$PTransfer-Encoding: chunked\r\n\r\n\r\n$E\r\n0\r\n\r\n"},
	{"chunk size too long", 400, "$PTransfer-Encoding: chunked\r\n\r\n000000000000000000$X\r\n$E\r\n0\r\n\r\n"},
	{"chunk size that wraps", 400, "$PTransfer-Encoding: chunked\r\n\r\n10000000000000$X\r\n$E\r\n0\r\n\r\n"},
	{"chunk size beyond the limit", 413, "$PTransfer-Encoding: chunked\r\n\r\n7fffffffffff\r\n$E\r\n0\r\n\r\n"},
	{"chunk size ended by bare LF", 400, "$PTransfer-Encoding: chunked\r\n\r\n$X\n$E\r\n0\r\n\r\n"},
	{"chunk size ended by bare CR", 400, "$PTransfer-Encoding: chunked\r\n\r\n$X\r$E\r\n0\r\n\r\n"},
	{"chunk extension with bare LF", 400, "$PTransfer-Encoding: chunked\r\n\r\n$X;a\nb\r\n$E\r\n0\r\n\r\n"},
	{"chunk extension with bare CR", 400, "$PTransfer-Encoding: chunked\r\n\r\n$X;a\rb\r\n$E\r\n0\r\n\r\n"},
	{"chunk extension after a space", 400, "$PTransfer-Encoding: chunked\r\n\r\n$X ;a\r\n$E\r\n0\r\n\r\n"},
	{"chunk shorter than its size", 400, "$PTransfer-Encoding: chunked\r\n\r\nfff\r\n$E\r\n0\r\n\r\n"},
	{"chunk longer than its size", 400, "$PTransfer-Encoding: chunked\r\n\r\n5\r\n$E\r\n0\r\n\r\n"},
	{"chunk without line end", 400, "$PTransfer-Encoding: chunked\r\n\r\n$X\r\n$E0\r\n\r\n"},
	{"chunk ended by bare LF", 400, "$PTransfer-Encoding: chunked\r\n\r\n$X\r\n$E\n0\r\n\r\n"},
	{"last chunk missing", closed, "$PTransfer-Encoding: chunked\r\n\r\n$C"},
	{"last chunk cut off", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\n"},
	{"last chunk ended by bare LF", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\n\n"},
	{"trailer", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\nX-Trailer: a\r\n\r\n"},
	{"trailer announced only", 400, "$PTransfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n\r\n$C0\r\n\r\n"},
	{"trailer announced and sent", 400, "$PTransfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n\r\n$C0\r\nX-Trailer: a\r\n\r\n"},
	{"trailer with a length", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\nContent-Length: 5\r\n\r\n"},
	{"trailer with a coding", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\nTransfer-Encoding: chunked\r\n\r\n"},
	{"trailer with a credential", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\nAuthorization: Bearer a\r\n\r\n"},
	{"trailer with a host", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\nHost: other\r\n\r\n"},
	{"trailer without colon", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\nnonsense\r\n\r\n"},
	{"trailer folded", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\nX-A: a\r\n b\r\n\r\n"},
	{"trailer ended by bare LF", 400, "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\nX-A: a\n\r\n"},

	// Whose request is it?
	{"no host", 400, "POST /hooks HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: $L\r\n\r\n$E"},
	{"host empty", 400, "POST /hooks HTTP/1.1\r\nHost:\r\nContent-Type: application/json\r\nContent-Length: $L\r\n\r\n$E"},
	{"two hosts", 400, "$PHost: gateway.test\r\nContent-Length: $L\r\n\r\n$E"},
	{"two hosts in HTTP/1.0", 400, "POST /hooks HTTP/1.0\r\n$HHost: other\r\nContent-Length: $L\r\n\r\n$E"},
	{"two credentials", 400, "$PAuthorization: Bearer a\r\nAuthorization: Bearer b\r\nContent-Length: $L\r\n\r\n$E"},
	{"two media types", 400, "$PContent-Type: application/json\r\nContent-Length: $L\r\n\r\n$E"},
	{"two media types, other case", 400, "$PCONTENT-TYPE: text/plain\r\nContent-Length: $L\r\n\r\n$E"},
	{"media type list", 415, "POST /hooks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json, text/plain\r\nContent-Length: $L\r\n\r\n$E"},

	// Header lines.
	{"space before the colon", 400, "$PX-A : b\r\nContent-Length: $L\r\n\r\n$E"},
	{"space in a name", 400, "$PX A: b\r\nContent-Length: $L\r\n\r\n$E"},
	{"space before the first name", 400, "POST /hooks HTTP/1.1\r\n Host: a\r\nContent-Type: application/json\r\nContent-Length: $L\r\n\r\n$E"},
	{"name empty", 400, "$P: b\r\nContent-Length: $L\r\n\r\n$E"},
	{"name with a slash", 400, "$PX/A: b\r\nContent-Length: $L\r\n\r\n$E"},
	{"name with NUL", 400, "$PX\x00A: b\r\nContent-Length: $L\r\n\r\n$E"},
	{"name beyond ASCII", 400, "$PX\xc3\xa9: b\r\nContent-Length: $L\r\n\r\n$E"},
	{"no colon", 400, "$Pnonsense\r\nContent-Length: $L\r\n\r\n$E"},
	{"folded with space", 400, "$PX-A: b\r\n c\r\nContent-Length: $L\r\n\r\n$E"},
	{"folded with tab", 400, "$PX-A: b\r\n\tc\r\nContent-Length: $L\r\n\r\n$E"},
	{"folded as a header", 400, "$PX-A: b\r\n Content-Length: 5\r\nContent-Length: $L\r\n\r\n$E"},
	{"folded last line", 400, "$PContent-Length: $L\r\nX-A: b\r\n c\r\n\r\n$E"},
	{"folded with nothing", 400, "$PX-A: b\r\n \r\nContent-Length: $L\r\n\r\n$E"},
	{"NUL in a value", 400, "$PX-A: b\x00c\r\nContent-Length: $L\r\n\r\n$E"},
	{"CR in a value", 400, "$PX-A: b\rc\r\nContent-Length: $L\r\n\r\n$E"},
	{"two CR at the end of a value", 400, "$PX-A: b\r\r\nContent-Length: $L\r\n\r\n$E"},
	{"DEL in a value", 400, "$PX-A: b\x7fc\r\nContent-Length: $L\r\n\r\n$E"},
	{"escape in a value", 400, "$PX-A: b\x1bc\r\nContent-Length: $L\r\n\r\n$E"},
	{"bare LF after a header line", 400, "$PX-A: b\nContent-Length: $L\r\n\r\n$E"},
	{"bare LF after the last header line", 400, "$PContent-Length: $L\n\r\n$E"},
	{"bare LF as the empty line", 400, "$PContent-Length: $L\r\n\n$E"},
	{"bare LF as the empty line, CRLF in the body", 400, "$PContent-Length: $L\r\n\n$E\r\n\r\n"},
	{"bare LF after the request line", 400, "POST /hooks HTTP/1.1\n$HContent-Length: $L\r\n\r\n$E"},
	{"bare LF everywhere", 400, "POST /hooks HTTP/1.1\nHost: a\nContent-Type: application/json\nContent-Length: $L\n\n$E"},
	{"bare CR everywhere", 400, "POST /hooks HTTP/1.1\rHost: a\rContent-Type: application/json\rContent-Length: $L\r\r$E"},
	{"bare LF before the request line", 400, "\n" + good},
	{"head cut off", 400, "POST /hooks HTTP/1.1\r\nHost: a\r\nContent-"},
	{"request line cut off", 400, "POST /hoo"},

	// The request line.
	{"HTTP/1.2", 400, "POST /hooks HTTP/1.2\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"HTTP/2.0", 400, "POST /hooks HTTP/2.0\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"HTTP/0.9", 400, "POST /hooks HTTP/0.9\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"HTTP/0.9 without version", 400, "POST /hooks\r\n\r\n"},
	{"HTTP/01.1", 400, "POST /hooks HTTP/01.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"HTTP/1.10", 400, "POST /hooks HTTP/1.10\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"http/1.1", 400, "POST /hooks http/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"no version", 400, "POST /hooks \r\n$HContent-Length: $L\r\n\r\n$E"},
	{"HTTP/2 preface", 400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
	{"TLS client hello", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 64) + "\n"},
	{"garbage", 400, "hello\r\n\r\n"},
	{"two spaces after the method", 400, "POST  /hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"two spaces after the target", 400, "POST /hooks  HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"tab after the method", 400, "POST\t/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"tab after the target", 400, "POST /hooks\tHTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"space before the method", 400, " POST /hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"space after the version", 400, "POST /hooks HTTP/1.1 \r\n$HContent-Length: $L\r\n\r\n$E"},
	{"two CR after the version", 400, "POST /hooks HTTP/1.1\r\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"space in the target", 400, "POST /hooks HTTP/1.1 HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"NUL in the target", 400, "POST /hooks\x00 HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"method with NUL", 400, "POST\x00 /hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"method in lower case", 405, "post /hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"GET with a body", 405, "GET /hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"GET with a chunked body", 405, "GET /hooks HTTP/1.1\r\n$HTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n"},
	{"GET with an empty chunked body", 405, "GET /hooks HTTP/1.1\r\n$HTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"HEAD with a body", 405, "HEAD /hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"TRACE", 405, "TRACE /hooks HTTP/1.1\r\n$H\r\n"},
	{"CONNECT", 400, "CONNECT gateway.test:443 HTTP/1.1\r\n$H\r\n"},

	// The target: nothing that is read into it may reach an endpoint.
	{"absolute form", 400, "POST http://gateway.test/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"absolute form of another host", 400, "POST http://other.test/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"authority form", 400, "POST gateway.test:80 HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"asterisk form", 400, "POST * HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"OPTIONS *", 400, "OPTIONS * HTTP/1.1\r\n$H\r\n"},
	{"relative target", 400, "POST hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"empty segment in front", 400, "POST //hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"authority in front", 400, "POST //gateway.test/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"empty segment within", 400, "POST /t//default/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"percent-encoded letter", 400, "POST /%68ooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"percent-encoded slash", 400, "POST /t%2fdefault/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"percent-encoded NUL", 400, "POST /hooks%00 HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"percent-encoded dots", 400, "POST /t/default/%2e%2e/default/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"parent segment", 400, "POST /t/../hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"parent segment to a tenant", 400, "POST /t/other/../default/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"parent segment from a tenant", 400, "POST /t/default/../other/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"parent segment as the tenant", 400, "POST /t/../hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"dot segment", 400, "POST /./hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"trailing dot segment", 400, "POST /hooks/. HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"fragment", 400, "POST /hooks#a HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"fragment behind a query", 400, "POST /hooks?a#b HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"backslash", 404, "POST /t\\default/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"trailing slash", 404, "POST /hooks/ HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"path parameter", 404, "POST /hooks;a=b HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"other case", 404, "POST /Hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"no tenant", 400, "POST /t//hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"two segments as the tenant", 404, "POST /t/default/x/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"beyond ASCII", 404, "POST /h\xc3\xb6oks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},

	// Sizes.
	{"header too large", 431, "$PX-A: " + strings.Repeat("a", 20<<10) + "\r\nContent-Length: $L\r\n\r\n$E"},
	{"too many header lines", 431, "$P" + strings.Repeat("X-A: a\r\n", 4<<10) + "Content-Length: $L\r\n\r\n$E"},
	{"request line too large", 431, "POST /hooks?" + strings.Repeat("a", 20<<10) + " HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"body too large", 413, "$PContent-Length: 5000\r\n\r\n" + strings.Repeat(" ", 5000)},
	{"chunks too large together", 413, "$PTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("400\r\n"+strings.Repeat(" ", 1024)+"\r\n", 5) + "0\r\n\r\n"},
	{"body too large, continue expected", 413, "$PExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat(" ", 5000)},
}

// servedFramings are unusual requests that every reader reads alike.
var servedFramings = []struct{ name, raw string }{
	{"plain", good},
	{"HTTP/1.0 with length", "POST /hooks HTTP/1.0\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"HTTP/1.0 without host", "POST /hooks HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: $L\r\n\r\n$E"},
	{"chunked", "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n"},
	{"chunked in other case", "$Ptransfer-encoding: Chunked\r\n\r\n$C0\r\n\r\n"},
	{"chunked with an extension", "$PTransfer-Encoding: chunked\r\n\r\n$X;a=b\r\n$E\r\n0;c\r\n\r\n"},
	{"chunked with leading zeros", "$PTransfer-Encoding: chunked\r\n\r\n0000$X\r\n$E\r\n000\r\n\r\n"},
	{"names in lower case", "POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: $L\r\n\r\n$E"},
	{"no space behind the colon", "POST /hooks HTTP/1.1\r\nHost:a\r\nContent-Type:application/json\r\nContent-Length:$L\r\n\r\n$E"},
	{"spaces and tabs around values", "POST /hooks HTTP/1.1\r\nHost: \t a\t\r\nContent-Type:  application/json \r\nContent-Length: $L \r\n\r\n$E"},
	{"length with leading zeros", "$PContent-Length: 000$L\r\n\r\n$E"},
	{"charset", "POST /hooks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: $L\r\n\r\n$E"},
	{"media type in upper case", "POST /hooks HTTP/1.1\r\nHost: a\r\nContent-Type: APPLICATION/JSON\r\nContent-Length: $L\r\n\r\n$E"},
	{"value empty", "$PX-A:\r\nContent-Length: $L\r\n\r\n$E"},
	{"value beyond ASCII", "$PX-A: \xe9\r\nContent-Length: $L\r\n\r\n$E"},
	{"query", "POST /hooks?x=1 HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"query with what a path may not have", "POST /hooks?a=/../%2f//b HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"tenant in the path", "POST /t/default/hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E"},
	{"empty line in front", "\r\n" + good},
	{"unknown header lines", "$PUpgrade: h2c\r\nConnection: keep-alive, Upgrade\r\nCookie: a=b\r\nContent-Length: $L\r\n\r\n$E"},
	{"continue expected", "$PExpect: 100-continue\r\nContent-Length: $L\r\n\r\n$E"},
	{"continue expected for chunks", "$PExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n"},
}

// wire is a client that sends bytes as they are.
type wire struct {
	t    testing.TB
	name string
	conn *net.TCPConn
	in   *bufio.Reader
}

func dial(t testing.TB, r *rig, name string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", r.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// Only a test that fails gets there.
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &wire{t: t, name: name, conn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}
}

// send writes s. The gateway may have answered and closed before it has read
// all of it.
func (w *wire) send(s string) {
	w.t.Helper()
	if _, err := io.WriteString(w.conn, s); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		w.t.Errorf("%s: sending: %v", w.name, err)
	}
}

// answer reads one answer that is not "100 Continue", or returns nil where the
// connection was closed instead.
func (w *wire) answer() *reply {
	w.t.Helper()
	for {
		resp, err := http.ReadResponse(w.in, nil)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
			return nil
		default:
			w.t.Errorf("%s: reading an answer: %v", w.name, err)
			return nil
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			w.t.Errorf("%s: reading the body of an answer: %v", w.name, err)
		}
		if resp.Close {
			resp.Header.Set("Connection", "close") // which ReadResponse has taken out
		}
		if resp.StatusCode != http.StatusContinue {
			return &reply{status: resp.StatusCode, header: resp.Header, body: string(body)}
		}
	}
}

// served reports whether the gateway decides a good request on a new
// connection, and no further one.
func (r *rig) served(id string) bool {
	w := dial(r.t, r, id)
	defer w.conn.Close()
	w.send(raw(good, id))
	w.conn.CloseWrite()
	a := w.answer()
	return a != nil && a.status == 200 && strings.Contains(a.body, `"effects":[]`) && w.answer() == nil
}

// Whatever leaves room for two readings is refused, closes the connection and
// reaches no backend, and neither does what follows it on the connection.
func TestRefusedFraming(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))),
		"limits: {body: 4KiB, headers: 16KiB}"))
	for i, c := range refusedFramings {
		for _, behind := range []string{"", good} {
			name := c.name
			if behind != "" {
				name += ", a good request behind it"
			}
			before := b.Count()
			w := dial(t, r, name)
			w.send(raw(c.raw+behind, fmt.Sprintf("bad-%d-%d", i, len(behind))))
			w.conn.CloseWrite()
			status, a := closed, w.answer()
			if a != nil {
				status = a.status
			}
			// What is missing may be taken from the request behind.
			cut := c.status == closed || strings.Contains(c.name, "cut off") || strings.Contains(c.name, "longer than what comes")
			if status != c.status && !(cut && behind != "" && status == 400) {
				t.Errorf("%s = %d; want %d", name, status, c.status)
			}
			if a != nil {
				if a.header.Get("Connection") != "close" {
					t.Errorf("%s: answer with Connection %q; want close", name, a.header.Get("Connection"))
				}
				if second := w.answer(); second != nil {
					t.Errorf("%s: a second answer, %d %s; want the connection closed", name, second.status, second.body)
				}
			}
			w.conn.Close()
			if n := b.Count() - before; n != 0 {
				t.Errorf("%s: the backend was called %d times; want 0", name, n)
			}
		}
		if !r.served(fmt.Sprintf("after-%d", i)) {
			t.Errorf("%s: the next good request was not served", c.name)
		}
	}
}

// A refusal is not waited for: the client need not close its side first.
func TestRefusedFramingAtOnce(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))),
		"limits: {body: 4KiB, headers: 16KiB, readTimeout: 30s}"))
	waits := []string{"cut off", "missing", "longer than what comes", "shorter than its size", "bare CR everywhere", "TLS client hello"}
cases:
	for i, c := range refusedFramings {
		for _, s := range waits {
			if strings.Contains(c.name, s) {
				continue cases
			}
		}
		w := dial(t, r, c.name)
		w.send(raw(c.raw, fmt.Sprintf("bad-%d", i)))
		if a := w.answer(); a == nil || a.status != c.status {
			t.Errorf("%s = %+v; want %d without waiting for more", c.name, a, c.status)
		}
		if a := w.answer(); a != nil {
			t.Errorf("%s: a second answer, %d; want the connection closed", c.name, a.status)
		}
		w.conn.Close()
	}
	if n := b.Count(); n != 0 {
		t.Errorf("the backend was called %d times; want 0", n)
	}
}

func TestServedFraming(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	for i, c := range servedFramings {
		id := fmt.Sprintf("good-%d", i)
		w := dial(t, r, c.name)
		w.send(raw(c.raw, id))
		w.conn.CloseWrite()
		a := w.answer()
		if a == nil || a.status != 200 || !strings.Contains(a.body, `"id":"`+id+`"`) || !strings.Contains(a.body, `"effects":[]`) {
			t.Errorf("%s = %+v; want a decision", c.name, a)
		}
		if second := w.answer(); second != nil {
			t.Errorf("%s: a second answer, %d %s; want none", c.name, second.status, second.body)
		}
		w.conn.Close()
		if got := b.Requests(); len(got) != i+1 || got[i].EventID != id || string(got[i].Body) != event01(id) {
			t.Errorf("%s: the backend was not sent the event alone and whole", c.name)
		}
	}
}

// Requests that come in one write are answered in order, up to the first bad
// one; nothing behind that is served.
func TestPipelining(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	w := dial(t, r, "pipeline")
	w.send(raw(good, "p1") + raw("$PTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n", "p2") + raw(good, "p3") +
		raw("$PContent-Length: $L\r\nContent-Length: $L\r\n\r\n$E", "p4") + raw(good, "p5"))
	for _, want := range []string{`"id":"p1"`, `"id":"p2"`, `"id":"p3"`} {
		if a := w.answer(); a == nil || a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("pipelined request = %+v; want the decision with %s", a, want)
		}
	}
	if a := w.answer(); a == nil || a.status != 400 {
		t.Errorf("bad pipelined request = %+v; want 400", a)
	}
	if a := w.answer(); a != nil {
		t.Errorf("request behind the bad one = %+v; want the connection closed", a)
	}
	w.conn.Close()
	if got, want := seen(b.Requests()), "intercept p1, intercept p2, intercept p3"; got != want {
		t.Errorf("the backend got %s; want %s", got, want)
	}
}

// A JSON-RPC error is an answer like any other: the connection lives on.
func TestConnectionOutlivesMessageErrors(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	w := dial(t, r, "errors")
	defer w.conn.Close()
	w.send(raw("$PContent-Length: 5\r\n\r\n{\"a\":", "x") + raw(good, "e1"))
	if a := w.answer(); a == nil || a.status != 200 || !strings.Contains(a.body, "-32700") {
		t.Errorf("broken JSON = %+v; want -32700", a)
	}
	if a := w.answer(); a == nil || a.status != 200 || !strings.Contains(a.body, `"effects":[]`) {
		t.Errorf("request behind broken JSON = %+v; want a decision", a)
	}
}

// What does not come in time is answered 408, and the connection is closed.
func TestSlowRequest(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))),
		"limits: {readTimeout: 300ms, idleTimeout: 300ms}"))
	var done sync.WaitGroup
	for _, c := range []struct {
		name, sent string
		want       int
	}{
		{"nothing", "", 408},
		{"half a request line", "POST /ho", 408},
		{"half a head", "POST /hooks HTTP/1.1\r\nHost: a\r\nX-A: ", 408},
		{"no body", "$PContent-Length: $L\r\n\r\n", 408},
		{"half a body", "$PContent-Length: 9999\r\n\r\n$E", 408},
		{"half a chunk", "$PTransfer-Encoding: chunked\r\n\r\nffff\r\n$E", 408},
		{"no last chunk", "$PTransfer-Encoding: chunked\r\n\r\n$C", 408},
		{"no end of the trailers", "$PTransfer-Encoding: chunked\r\n\r\n$C0\r\n", 408},
		{"no body, continue expected", "$PExpect: 100-continue\r\nContent-Length: $L\r\n\r\n", 408},
	} {
		done.Go(func() {
			w := dial(t, r, c.name)
			defer w.conn.Close()
			w.send(raw(c.sent, "slow"))
			if a := w.answer(); a == nil || a.status != c.want || a.header.Get("Connection") != "close" {
				t.Errorf("%s = %+v; want %d and close", c.name, a, c.want)
			}
			if a := w.answer(); a != nil {
				t.Errorf("%s: a second answer %+v; want the connection closed", c.name, a)
			}
		})
	}
	done.Go(func() {
		w := dial(t, r, "idle")
		defer w.conn.Close()
		w.send(raw(good, "idle"))
		if a := w.answer(); a == nil || a.status != 200 {
			t.Errorf("request before idling = %+v; want a decision", a)
		}
		if a := w.answer(); a != nil {
			t.Errorf("idle connection = %+v; want it closed without an answer", a)
		}
	})
	done.Wait()
	if got := seen(b.Requests()); got != "intercept idle" {
		t.Errorf("the backend got %q; want the whole request only", got)
	}
}

// curl and others ask before they send a body.
func TestExpectContinue(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))))
	w := dial(t, r, "expect")
	defer w.conn.Close()
	w.send(raw("$PExpect: 100-continue\r\nContent-Length: $L\r\n\r\n", "e1"))
	if resp, err := http.ReadResponse(w.in, nil); err != nil || resp.StatusCode != http.StatusContinue {
		t.Fatalf("answer to the head = %v, %v; want 100 Continue", resp, err)
	}
	w.send(event01("e1"))
	if a := w.answer(); a == nil || a.status != 200 || !strings.Contains(a.body, `"effects":[]`) {
		t.Errorf("answer to the body = %+v; want a decision", a)
	}
	if n := b.Count(); n != 1 {
		t.Errorf("the backend was called %d times; want 1", n)
	}
}

// What a caller sends stays out of the process log, whatever is wrong with it.
func TestFramingErrorsDoNotQuote(t *testing.T) {
	b := fakebackend.Start(t)
	var mu sync.Mutex
	var log bytes.Buffer
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))),
		func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
	for _, c := range []string{
		"POST /hooks?canary HTTP/1.2\r\n$H\r\n",
		"POST /hooks?\x01canary HTTP/1.1\r\n$H\r\n",
		"POST /hooks HTTP/canary\r\n$H\r\n",
		"canary\r\n\r\n",
		"ca(nary /hooks HTTP/1.1\r\n$H\r\n",
		"POST http://canary/hooks HTTP/1.1\r\n$H\r\n",
		"POST /canary/../hooks HTTP/1.1\r\n$H\r\n",
		"POST /canary HTTP/1.1\r\n$H\r\n",
		"POST /t/canary/hooks HTTP/1.1\r\n$H\r\n",
		"CANARY /hooks HTTP/1.1\r\n$H\r\n",
		"$PAuthorization: Bearer canary\x00\r\n\r\n",
		"$PAuthorization: Bearer canary\r\n folded\r\n\r\n",
		"$Pcanary\r\n\r\n",
		"$Pcanary : a\r\n\r\n",
		"$Pcan\x00ary: a\r\n\r\n",
		"$PTransfer-Encoding: canary\r\n\r\n",
		"$PContent-Length: canary\r\n\r\n",
		"$PContent-Type: canary\r\n\r\n",
		"$PTrailer: canary\r\n\r\n",
		"POST /hooks HTTP/1.1\r\nHost: canary canary\r\n\r\n",
		"$PTransfer-Encoding: chunked\r\n\r\ncanary\r\n\r\n",
		"$PTransfer-Encoding: chunked\r\n\r\n5\r\ncanary\r\n\r\n",
		"$PTransfer-Encoding: chunked\r\n\r\n0\r\nHost: canary\r\n\r\n",
	} {
		w := dial(t, r, c)
		w.send(raw(c, "e"))
		w.conn.CloseWrite()
		a := w.answer()
		if a == nil || a.status < 400 {
			t.Errorf("%q = %+v; want an error status", c, a)
			continue
		}
		if strings.Contains(strings.ToLower(a.body+fmt.Sprint(a.header)), "canary") {
			t.Errorf("%q: answer %s quotes the caller", c, a.body)
		}
		w.conn.Close()
	}
	r.stop()
	mu.Lock()
	defer mu.Unlock()
	for line := range strings.Lines(log.String()) {
		if strings.Contains(strings.ToLower(line), "canary") || strings.Contains(line, `can\`) {
			t.Errorf("the log quotes a caller: %s", line)
		}
	}
}

// lockedWriter is a writer for many goroutines.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
