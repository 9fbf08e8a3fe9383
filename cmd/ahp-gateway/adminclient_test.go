package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// What stands between and answers in the API's place is shown in one line, with
// nothing that could steer a terminal, and without the key that it was sent.
func TestAnswersOfOthers(t *testing.T) {
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{502, "\r\n  <h1>Bad \x1b[2JGateway</h1>\r\n<p>more", "HTTP 502: what answers is not the admin API, and says: <h1>Bad \uFFFD[2JGateway</h1>; see what stands between"},
		{503, "", "HTTP 503: what answers is not the admin API; see what stands between"},
		{400, "you sent Bearer " + adminTestKey, "and says: you sent Bearer [key];"},
		{400, strings.Repeat("x", maxSaid-8) + adminTestKey, "and says: x"},
		{500, strings.Repeat("é", 1000), "and says: " + strings.Repeat("é", maxSaidLine/2) + "…;"},
		{500, `{"title": ""}`, `and says: {"title": ""};`},
		{307, "moved", "HTTP 307: that is a redirect, and none is followed, and says: moved; write the URL of the private listener"},
		{400, "Client sent an HTTP request to an HTTPS server.\n", "HTTP 400: the private listener has TLS; write https:// in --admin"},
		{403, "a client certificate is needed\n", "HTTP 403: the listener needs a client certificate that it accepts; write --cert-file"},
		{404, "404 page not found\n", "HTTP 404: there is no admin API, and says: 404 page not found; write adminApi in the gateway file"},
		{200, "<html>\nsign in", "HTTP 200: the answer is not one of an ahp-gateway's admin API, and says: <html>; see"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		r := call(t, "", "tenant", "list", "--admin", s.URL)
		s.Close()
		if r.code != 1 || !strings.Contains(r.stderr, c.want) || strings.Contains(r.stderr, adminTestKey[:8]) ||
			strings.ContainsAny(r.stderr, "\x1b\r") || strings.Count(r.stderr, "\n") != 1 || len(r.stderr) > maxSaidLine+300 {
			t.Errorf("tenant list, answered %d %.80q = %+v; want 1 and one line with %q", c.status, c.body, r, c.want)
		}
	}
}

// Nor is a secret shown that was sent, a key in what is none of the API's answers,
// or what a certificate says that nobody vouches for.
func TestAnswersShowNoSecret(t *testing.T) {
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	const secret, made = "hunter2-is-the-secret", "ahp_acme_0123456789abcdef"
	for _, status := range []int{200, 201, 400, 401, 404, 502} {
		for _, says := range []string{"cannot PUT: %s %s %s", `{"title": "No", "detail": "%s %s %s"}`, "{\"key\": \"%[3]s\", \"etag\":"} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.WriteHeader(status)
				fmt.Fprintf(w, says, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), body, made)
			}))
			for _, r := range []result{
				call(t, secret+"\n", "tenant", "secret", "set", "acme", "token", "--admin", s.URL),
				call(t, "id: acme\n", "tenant", "add", "--admin", s.URL),
			} {
				isProblem := status > 299 && says[0] == '{' && strings.Contains(says, "title") // the API's, which shows no key
				if shown := r.stdout + r.stderr; strings.Contains(shown, secret) || strings.Contains(shown, adminTestKey) || !isProblem && strings.Contains(shown, made) {
					t.Errorf("answered %d %s: %s; want no secret", status, says, shown)
				}
			}
			s.Close()
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a\x1b[2Jb.example"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	defer s.Close()
	at := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	for _, args := range [][]string{{"tenant", "list", "--admin", at}, {"diff", "--config", filepath.Join(sides(t), "old.yaml"), "--against-running", at}} {
		if r := call(t, "", args...); r.code != 1 || !strings.Contains(r.stderr, "b.example, not localhost") || strings.Contains(r.stderr, "\x1b") {
			t.Errorf("%s with an odd certificate = %q; want it shown without escapes", args[0], r.stderr)
		}
	}
}

// Why there is no answer comes with what to write instead.
func TestNoAnswer(t *testing.T) {
	t.Setenv("AHP_ADMIN_KEY", adminTestKey)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, c := range []struct{ url, want string }{
		{"http://127.0.0.1:1", "see that the gateway runs, and that FLAG is its private listener"},
		{secure.URL, "write --ca-file"},
		{strings.Replace(plain.URL, "http:", "https:", 1), "write http:// into FLAG"},
	} {
		for flag, args := range map[string][]string{"--admin": {"tenant", "list"}, "--against-running": {"diff", "--config", filepath.Join(sides(t), "old.yaml")}} {
			r := call(t, "", append(args, flag, c.url)...)
			if want := strings.ReplaceAll(c.want, "FLAG", flag); r.code != 1 || !strings.Contains(r.stderr, want) {
				t.Errorf("%s of %s = %+v; want 1 and %q", args[0], c.url, r, want)
			}
		}
	}
}

// A shell takes the quotes of an ETag, and it is the same one without them.
func TestTagWithoutQuotes(t *testing.T) {
	backend := fakebackend.Start(t)
	_, _, _, tenant := hosted(t, backend.URL)
	added := tenant("id: acme\nregistration: "+onePolicy(backend.URL)+"\n", "add")
	tag := regexp.MustCompile(`ETag "([0-9a-f]{64})"`).FindStringSubmatch(added.stderr)
	if added.code != 0 || tag == nil {
		t.Fatalf("tenant add = %+v; want 0 and an ETag", added)
	}
	document := tenant("", "get", "acme").stdout
	for _, c := range []struct {
		match string
		code  int
		want  string
	}{
		{tag[1], 0, ""}, {`"` + tag[1] + `"`, 0, ""}, {"*", 0, ""}, {`"0", "` + tag[1] + `"`, 0, ""},
		{"0", 1, "HTTP 412"}, {tag[1] + `"`, 1, "HTTP 400"}, {`W/"` + tag[1] + `"`, 1, "HTTP 412"},
	} {
		if r := tenant(document, "put", "acme", "--if-match", c.match); r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("tenant put --if-match %s = %+v; want %d %s", c.match, r, c.code, c.want)
		}
	}
	if r := tenant("", "remove", "acme", "--if-match", tag[1]); r.code != 0 {
		t.Errorf("tenant remove --if-match without quotes = %+v; want 0", r)
	}
}

// A tenant that comes by tokens is added without a key, and one that nothing
// reaches is refused so.
func TestTenantAddWithoutAKey(t *testing.T) {
	backend := fakebackend.Start(t)
	const file = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntenantsDir: tenants\nadminApi: {trustDocuments: true, keys: [{env: AHP_ADMIN_KEY}]}\n"
	document := "id: acme\nregistration: " + onePolicy(backend.URL) + "\n"
	_, _, _, tenant := hosted(t, backend.URL, "gateway.yaml", file+
		"auth: {resource: 'http://127.0.0.1:1/hooks', issuers: [{issuer: 'http://127.0.0.1:1', tenantClaim: tenant}]}\n")
	if r := tenant(document, "add", "--no-key"); r.code != 0 || r.stdout != "" || !strings.Contains(r.stderr, "tenant acme added") {
		t.Errorf("tenant add --no-key = %+v; want 0 and nothing on standard output", r)
	}
	if r := tenant("", "get", "acme"); r.code != 0 || strings.Contains(r.stdout, "keys") {
		t.Errorf("tenant get = %+v; want no keys", r)
	}
	if r := tenant(tenantFile("globex", backend.URL), "add", "--no-key"); r.code != 1 || !strings.Contains(r.stderr, "HTTP 400: The query is not usable. The document has keys.") {
		t.Errorf("tenant add --no-key of a document with keys = %+v; want 1", r)
	}
	_, _, _, tenant = hosted(t, backend.URL, "gateway.yaml", file)
	if r := tenant(document, "add", "--no-key"); r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, "keys: is missing") {
		t.Errorf("tenant add --no-key where no token is looked at = %+v; want 1 and that it cannot be reached", r)
	}
}

// Arguments that are missing or too many are named.
func TestArgumentsOfTenants(t *testing.T) {
	for args, want := range map[string]string{
		"tenant get":                                            "needs TENANT",
		"tenant remove-key":                                     "needs TENANT and DIGEST",
		"tenant remove-key acme":                                "needs DIGEST",
		"tenant secret set acme":                                "needs NAME",
		"tenant secret set acme token value":                    "takes TENANT and NAME alone; leave value out",
		"tenant secret reseal":                                  "needs TENANT or --all",
		"tenant secret reseal acme --all":                       "--all is for every tenant; leave acme out",
		"validate --with-store --registration hooks.json":       "--with-store is for --config",
		"config print --with-store":                             "--with-store needs --config",
		"diff --config a.yaml --against b.yaml --ca-file c.pem": "are for --against-running",
		"diff --config a.yaml --against-running http://127.0.0.1:1 --key-file k": "--cert-file and --key-file are needed together",
	} {
		if r := call(t, "", strings.Fields(args)...); r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%s = %+v; want 2 and %s", args, r, want)
		}
	}
}
