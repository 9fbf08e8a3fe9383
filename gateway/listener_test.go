package gateway

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// feed passes b in pieces of at most size bytes and returns how many bytes were
// let through, and where requests ended.
func feed(b []byte, size int) (good int, ends []int) {
	var f framing
	for good < len(b) {
		piece := b[good:min(len(b), good+size)]
		n := f.pass(piece)
		good += n
		if n < len(piece) {
			return good, ends
		}
		if size == 1 && f.state == framingRequest && f.total == 0 && !f.blank {
			ends = append(ends, good)
		}
	}
	return good, ends
}

// How bytes are cut into reads makes no difference.
func TestFramingInPieces(t *testing.T) {
	check := func(name, s string) {
		want, _ := feed([]byte(s), len(s))
		for _, size := range []int{1, 2, 3, 7, 64, 200} {
			if got, _ := feed([]byte(s), size); got != want {
				t.Errorf("%s in pieces of %d: %d bytes let through; want %d as in one piece", name, size, got, want)
			}
		}
	}
	for _, c := range refusedFramings {
		check(c.name, raw(c.raw, "e"))
	}
	for _, c := range servedFramings {
		s := raw(c.raw, "e")
		check(c.name, s+s)
		if got, _ := feed([]byte(s+s), 100); got != 2*len(s) {
			t.Errorf("%s: %d bytes let through; want all %d", c.name, got, 2*len(s))
		}
	}
}

// A request that is let through and that the server accepts ends where framing
// says that it ends: a difference would be a way to smuggle one.
func FuzzFraming(f *testing.F) {
	for _, c := range refusedFramings {
		f.Add([]byte(raw(c.raw+good, "e")))
	}
	for _, c := range servedFramings {
		f.Add([]byte(raw(c.raw+c.raw, "e")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		good, ends := feed(b, 1)
		if whole, _ := feed(b, max(1, len(b))); whole != good {
			t.Errorf("%d bytes let through in one piece; want %d as one by one", whole, good)
		}
		let := bytes.NewReader(b[:good])
		in := bufio.NewReaderSize(let, 16<<10)
		for i := 0; ; i++ {
			var q fasthttp.Request
			err := q.Header.Read(in)
			if err == nil && framingFault(&q.Header) != "" {
				return
			}
			if err == nil {
				err = q.ContinueReadBody(in, 1<<20, false)
			}
			if err != nil || framingFault(&q.Header) != "" {
				return
			}
			end := good - let.Len() - in.Buffered()
			if i >= len(ends) || ends[i] != end {
				t.Fatalf("request %d of %q ends at %d for the server; want one of %v", i, b, end, ends)
			}
		}
	})
}

func BenchmarkFraming(b *testing.B) {
	s := []byte(raw("$PAuthorization: Bearer 0123456789abcdef\r\nUser-Agent: bench\r\nContent-Length: $L\r\n\r\n$E", "e"))
	var f framing
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		if f.pass(s) != len(s) {
			b.Fatal("a good request was not let through")
		}
	}
}

// What holds for a connection holds under TLS too.
func TestTLS(t *testing.T) {
	issuer := httptest.NewTLSServer(nil)
	defer issuer.Close()
	key, err := x509.MarshalPKCS8PrivateKey(issuer.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"crt": {Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw},
		"key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))),
		fmt.Sprintf("tls: {certFile: %s, keyFile: %s}", filepath.Join(dir, "crt"), filepath.Join(dir, "key")),
		"limits: {connectionsPerIP: 2}"))
	r.client = issuer.Client()
	for i := range 2 {
		if a := r.post("/hooks", event01(fmt.Sprint("e", i))); a.decision() != "pass" {
			t.Errorf("event over TLS = %+v; want pass", a)
		}
	}

	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	config.RootCAs.AddCert(issuer.Certificate())
	w := dial(t, r, "bare LF over TLS")
	secure := tls.Client(w.conn, config)
	defer secure.Close()
	if _, err := secure.Write([]byte(raw("POST /hooks HTTP/1.1\n$HContent-Length: $L\r\n\r\n$E", "bad"))); err != nil {
		t.Fatal(err)
	}
	w.in = bufio.NewReader(secure)
	if a := w.answer(); a == nil || a.status != http.StatusBadRequest {
		t.Errorf("bare LF over TLS = %+v; want 400", a)
	}
	if n := b.Count(); n != 2 {
		t.Errorf("the backend was called %d times; want 2", n)
	}

	// Connections that say nothing hold up nobody, whether they are within the
	// limit or over it: no handshake is waited for.
	for range 3 {
		silent := dial(t, r, "silent")
		defer silent.conn.Close()
	}
	if a := r.post("/hooks", event01("after")); a.decision() != "pass" {
		t.Errorf("event beside silent connections = %+v; want pass", a)
	}
}
