package backend

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

const (
	goodBody = `{"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"0.1","effects":[]}}`
	goodHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
)

func TestReadDecision(t *testing.T) {
	long := strings.Repeat("a", readBuffer)
	tests := map[string]struct {
		answer   string
		want     ahp.FailureClass
		reusable bool
	}{
		"length":                      {goodHead + "Content-Length: 75\r\n\r\n" + goodBody, ahp.NoFailure, true},
		"length, lower case, tabs":    {"HTTP/1.1 200 \r\ncontent-type:\tAPPLICATION/json ; charset=\"utf-8\"\t\r\ncontent-length:75\r\n\r\n" + goodBody, ahp.NoFailure, true},
		"leading zeros":               {goodHead + "Content-Length: 00000000000000000000075\r\n\r\n" + goodBody, ahp.NoFailure, true},
		"close":                       {goodHead + "Connection: foo, Close\r\nContent-Length: 75\r\n\r\n" + goodBody, ahp.NoFailure, false},
		"HTTP/1.0":                    {"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 75\r\n\r\n" + goodBody, ahp.NoFailure, false},
		"identity coding":             {goodHead + "Content-Encoding: Identity\r\nContent-Length: 75\r\n\r\n" + goodBody, ahp.NoFailure, true},
		"two codings":                 {goodHead + "Content-Encoding: gzip\r\nContent-Encoding: identity\r\nContent-Length: 75\r\n\r\n" + goodBody, ahp.FailMediaType, true},
		"chunked":                     {goodHead + "Transfer-Encoding: chunked\r\n\r\n4b\r\n" + goodBody + "\r\n0\r\n\r\n", ahp.NoFailure, true},
		"chunked with extension":      {goodHead + "Transfer-Encoding: chunked\r\n\r\n4b;a=b\r\n" + goodBody + "\r\n0\r\n\r\n", ahp.NoFailure, true},
		"chunked with trailer":        {goodHead + "Transfer-Encoding: chunked\r\n\r\n4B\r\n" + goodBody + "\r\n0\r\nContent-Length: 3\r\n\r\n", ahp.NoFailure, true},
		"chunked with broken trailer": {goodHead + "Transfer-Encoding: chunked\r\n\r\n4B\r\n" + goodBody + "\r\n0\r\nnonsense\r\n\r\n", ahp.FailMalformedHTTP, false},
		"chunked without end":         {goodHead + "Transfer-Encoding: chunked\r\n\r\n4b\r\n" + goodBody + "\r\n0\r\n", ahp.FailReset, false},
		"chunked, bare line feed":     {goodHead + "Transfer-Encoding: chunked\r\n\r\n4b\n" + goodBody + "\r\n0\r\n\r\n", ahp.FailMalformedHTTP, false},
		"chunked, no CRLF after":      {goodHead + "Transfer-Encoding: chunked\r\n\r\n4b\r\n" + goodBody + "0\r\n\r\n", ahp.FailMalformedHTTP, false},
		"chunk size too large":        {goodHead + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + goodBody, ahp.FailMalformedHTTP, false},
		"line too long":               {"HTTP/1.1 200 OK\r\nX: " + long + "\r\n\r\n", ahp.FailOversize, false},
		"head too long":               {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+long[:1000]+"\r\n", 20) + "\r\n", ahp.FailOversize, false},
		"status 600":                  {"HTTP/1.1 600 No\r\nContent-Length: 0\r\n\r\n", ahp.FailMalformedHTTP, false},
		"status 99":                   {"HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n", ahp.FailMalformedHTTP, false},
		"status of four digits":       {"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", ahp.FailMalformedHTTP, false},
		"two spaces before status":    {"HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n", ahp.FailMalformedHTTP, false},
		"error, whole":                {"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}", ahp.FailStatus, true},
		"error, body not there yet":   {"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\n{}", ahp.FailStatus, false},
		"error, chunked":              {"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ahp.FailStatus, false},
		"no body by definition":       {"HTTP/1.1 204 No Content\r\n\r\n", ahp.FailStatus, true},
		"not modified":                {"HTTP/1.1 304 Not Modified\r\n\r\n", ahp.FailRedirect, true},
		"another answer's id":         {goodHead + "Content-Length: 75\r\n\r\n" + strings.Replace(goodBody, "e1", "e0", 1), ahp.FailIDMismatch, false},
		"error that is wrong JSON":    {goodHead + "Content-Length: 1\r\n\r\n{", ahp.FailMalformedJSON, true},
	}
	c := newTestClient(t, Config{URL: "http://policy.example"})
	for name, tt := range tests {
		for _, split := range []bool{false, true} {
			var source io.Reader = strings.NewReader(tt.answer)
			if split {
				source = iotest.OneByteReader(source)
			}
			br := bufio.NewReaderSize(source, readBuffer)
			var resp ahp.Response
			f, reusable := c.readDecision(br, newCall("e1", ample), &resp)
			// Byte by byte, the body of an error has never arrived yet.
			if want := tt.reusable && !(split && name == "error, whole" || split && tt.want == ahp.FailMediaType); f.Class != tt.want || reusable != want {
				t.Errorf("readDecision(%s), byte by byte %v = %v, %v; want %v, %v", name, split, f, reusable, tt.want, want)
			}
			if tt.want == ahp.NoFailure && string(resp.Body) != goodBody {
				t.Errorf("readDecision(%s) left %q; want %q", name, resp.Body, goodBody)
			}
		}
	}
}

func TestReadDecisionKeepsTheBuffer(t *testing.T) {
	c := newTestClient(t, Config{URL: "http://policy.example"})
	resp := ahp.Response{Body: make([]byte, 0, 100)}
	was := &resp.Body[:1][0]
	c.readDecision(bufio.NewReader(strings.NewReader(goodHead+"Content-Length: 75\r\n\r\n"+goodBody)), newCall("e1", ample), &resp)
	if len(resp.Body) != 75 || &resp.Body[0] != was {
		t.Errorf("readDecision left %d bytes in another buffer; want 75 in the given one", len(resp.Body))
	}
}

// FuzzReadAnswer compares with net/http: what is accepted here is read there
// in the same way. The reverse does not hold: net/http accepts more.
func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(goodHead + "Content-Length: 75\r\n\r\n" + goodBody))
	f.Add([]byte(goodHead + "Transfer-Encoding: chunked\r\n\r\n4b\r\n" + goodBody + "\r\n0\r\nA: b\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + goodHead + "Content-Length: 75\r\n\r\n" + goodBody))
	f.Add([]byte(goodHead + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 200 OK\r\nContent-Length : 5\r\n b\r\n\r\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 10
		br := bufio.NewReaderSize(bytes.NewReader(data), readBuffer)
		var a answer
		if f := readAnswer(br, &a); !f.OK() {
			return
		}
		body, failure := a.readBody(br, limit, nil)
		if len(body) > limit+readBuffer {
			t.Fatalf("readBody returned %d bytes; want at most the limit and a buffer", len(body))
		}
		if !failure.OK() || a.status == 204 || a.status == 304 {
			return
		}
		theirs := bufio.NewReader(bytes.NewReader(data))
		resp, err := http.ReadResponse(theirs, nil)
		for err == nil && resp.StatusCode < 200 {
			resp, err = http.ReadResponse(theirs, nil)
		}
		if err != nil {
			t.Fatalf("net/http refuses what was accepted: %v", err)
		}
		theirBody, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != a.status || !bytes.Equal(theirBody, body) {
			t.Fatalf("net/http reads %d %q, %v; want %d %q", resp.StatusCode, theirBody, err, a.status, body)
		}
	})
}
