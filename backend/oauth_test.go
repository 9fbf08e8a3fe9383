package backend

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/egress"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// canary stands for a client secret: it must not be told anywhere.
const canary = "client/secret+hunter2"

// issuing is a real issuer. Handlers are by path; what is missing is 404.
type issuing struct {
	*httptest.Server
	mu       sync.Mutex
	handlers map[string]http.HandlerFunc
	requests []*http.Request // with their forms parsed
}

// startIssuer starts an issuer, with TLS or without, that has no metadata yet.
func startIssuer(t testing.TB, secure bool) *issuing {
	t.Helper()
	i := &issuing{handlers: make(map[string]http.HandlerFunc)}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		i.mu.Lock()
		i.requests = append(i.requests, r)
		h := i.handlers[r.URL.Path]
		i.mu.Unlock()
		if h == nil {
			http.NotFound(w, r)
			return
		}
		h(w, r)
	})
	i.Server = httptest.NewUnstartedServer(serve)
	// What a client that refuses the certificate makes a server say.
	i.Config.ErrorLog = discard
	if secure {
		i.StartTLS()
	} else {
		i.Start()
	}
	t.Cleanup(i.Close)
	return i
}

func (i *issuing) handle(path string, h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers[path] = h
}

// asked returns the paths that were asked for, in order.
func (i *issuing) asked() (paths []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.requests {
		paths = append(paths, r.URL.Path)
	}
	return paths
}

// count returns how often a path was asked for.
func (i *issuing) count(path string) (n int) {
	for _, p := range i.asked() {
		if p == path {
			n++
		}
	}
	return n
}

func (i *issuing) last() *http.Request {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests[len(i.requests)-1]
}

func (i *issuing) roots() *x509.CertPool {
	roots := x509.NewCertPool()
	if c := i.Certificate(); c != nil {
		roots.AddCert(c)
	}
	return roots
}

// says answers with JSON.
func says(status int, format string, args ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json;charset=UTF-8")
		w.WriteHeader(status)
		fmt.Fprintf(w, format, args...)
	}
}

const wellKnown = "/.well-known/oauth-authorization-server"

// good makes it an issuer whose tokens are token-1, token-2 and so on.
func (i *issuing) good() *issuing {
	i.handle(wellKnown, says(200, `{"issuer":%q,"token_endpoint":%q}`, i.URL, i.URL+"/token"))
	i.handle("/token", i.tokens(`,"expires_in":3600`))
	return i
}

// tokens are numbered, and have further members.
func (i *issuing) tokens(members string) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		says(200, `{"access_token":"token-%d","token_type":"Bearer"%s}`, n.Add(1), members)(w, r)
	}
}

// with returns the configuration of a client of the issuer for a backend.
func (i *issuing) with(backend *fakebackend.Server) Config {
	cfg := loopback(backend.URL, backend.Roots())
	cfg.OAuth = &OAuth{
		Issuer: i.URL, Resource: "https://policy.example/ahp", ClientID: "the client", ClientSecret: canary,
		Scopes: []string{"policy.decide", "policy.observe"}, Roots: i.roots(), Dial: egress.Policy{AllowLoopback: true},
	}
	return cfg
}

func intercept(c *Client, timeout time.Duration) ahp.Failure {
	var resp ahp.Response
	return c.Intercept(newCall("e1", timeout), &resp)
}

// authorizations returns the Authorization headers that a backend got.
func authorizations(s *fakebackend.Server) string {
	var all []string
	for _, r := range s.Requests() {
		all = append(all, strings.Join(r.Header.Values("Authorization"), "+"))
	}
	return strings.Join(all, ", ")
}

// With TLS on both sides: one token, obtained as the standards say, for all calls.
func TestOAuth(t *testing.T) {
	i := startIssuer(t, true).good()
	b := fakebackend.Start(t, fakebackend.WithTLS(), fakebackend.WithScript(func(_ int, r *fakebackend.Request) string {
		if r.RPCMethod == "hooks/observe" {
			return "status-204"
		}
		return "pass"
	}))
	c := newTestClient(t, i.with(b))
	for range 3 {
		if f := intercept(c, ample); !f.OK() {
			t.Fatalf("Intercept = %v; want success", f)
		}
	}
	if f := c.Observe(newNotification(ample)); !f.OK() {
		t.Errorf("Observe = %v; want success", f)
	}
	const bearer = "Bearer token-1"
	if got, want := authorizations(b), strings.Join([]string{bearer, bearer, bearer, bearer}, ", "); got != want {
		t.Errorf("the backend got %q; want %q", got, want)
	}
	if got := strings.Join(i.asked(), " "); got != wellKnown+" /token" {
		t.Errorf("the issuer was asked for %s; want its metadata and one token", got)
	}
	r := i.last()
	want := url.Values{"grant_type": {"client_credentials"}, "resource": {"https://policy.example/ahp"}, "scope": {"policy.decide policy.observe"}}
	if r.Method != http.MethodPost || r.PostForm.Encode() != want.Encode() || r.URL.RawQuery != "" {
		t.Errorf("token request = %s %s; want POST %s", r.Method, r.PostForm.Encode(), want.Encode())
	}
	pair := url.QueryEscape("the client") + ":" + url.QueryEscape(canary)
	if got, want := r.Header.Get("Authorization"), "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)); got != want {
		t.Errorf("token request's Authorization = %q; want %q", got, want)
	}
}

// The places of metadata are tried in the protocol's order, and an issuer is
// told about the client's secret in the way that it takes.
func TestOAuthDiscovery(t *testing.T) {
	const (
		oauth    = "/.well-known/oauth-authorization-server"
		openid   = "/.well-known/openid-configuration"
		notFound = ""
	)
	redirect := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }
	page := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }
	for _, c := range []struct {
		path  string
		at    string
		asked []string
		other http.HandlerFunc // at the places before
	}{
		{"", oauth, []string{oauth}, nil},
		{"/", oauth, []string{oauth}, nil},
		{"", openid, []string{oauth, openid}, nil},
		{"", openid, []string{oauth, openid}, redirect},
		{"", openid, []string{oauth, openid}, page},
		{"", openid, []string{oauth, openid}, says(403, `{}`)},
		{"/t/1", oauth + "/t/1", []string{oauth + "/t/1"}, nil},
		{"/t/1", openid + "/t/1", []string{oauth + "/t/1", openid + "/t/1"}, nil},
		{"/t/1/", "/t/1" + openid, []string{oauth + "/t/1", openid + "/t/1", "/t/1" + openid}, nil},
		{"/t/1", notFound, []string{oauth + "/t/1", openid + "/t/1", "/t/1" + openid}, nil},
	} {
		i := startIssuer(t, true)
		for _, path := range c.asked {
			if c.other != nil {
				i.handle(path, c.other)
			}
		}
		i.handle(c.at, says(200, `{"issuer":%q,"token_endpoint":%q,"unknown":[1]}`, i.URL+c.path, i.URL+"/token"))
		i.handle("/token", i.tokens(""))
		b := fakebackend.Start(t)
		cfg := i.with(b)
		cfg.OAuth.Issuer += c.path
		f := intercept(newTestClient(t, cfg), ample)
		want := c.asked
		if c.at != notFound {
			want = append(want[:len(want):len(want)], "/token")
		}
		if got := i.asked(); f.OK() != (c.at != notFound) || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("issuer %q with metadata at %q: %v after %q; want %q", c.path, c.at, f, got, want)
		}
	}
}

func TestOAuthClientSecret(t *testing.T) {
	for methods, want := range map[string]string{
		`[]`:                         "",
		`["private_key_jwt","none"]`: "",
		`["client_secret_post"]`:     "post",
		`["private_key_jwt","client_secret_post"]`:     "post",
		`["client_secret_post","client_secret_basic"]`: "basic",
		`null`: "basic",
	} {
		i := startIssuer(t, true).good()
		i.handle(wellKnown, says(200, `{"issuer":%q,"token_endpoint":%q,"token_endpoint_auth_methods_supported":%s,"grant_types_supported":["client_credentials"]}`, i.URL, i.URL+"/token", methods))
		b := fakebackend.Start(t)
		f := intercept(newTestClient(t, i.with(b)), ample)
		got := ""
		if r := i.last(); r.URL.Path == "/token" {
			if r.Header.Get("Authorization") != "" {
				got += "basic"
			}
			if r.PostForm.Get("client_id") == "the client" && r.PostForm.Get("client_secret") == canary {
				got += "post"
			}
		}
		if got != want || f.OK() != (want != "") {
			t.Errorf("with methods %s: %v, secret sent by %q; want %q", methods, f, got, want)
		}
	}
}

// Whatever keeps a token from being had, no call is made without one, the
// failure is the credential's, and nothing that the issuer said is told.
func TestOAuthFailures(t *testing.T) {
	elsewhere := startIssuer(t, false).good()
	const chatter = "issuer-chatter"
	meta := func(i *issuing, members string) http.HandlerFunc {
		return says(200, `{"issuer":%q,"token_endpoint":%q%s}`, i.URL, i.URL+"/token", members)
	}
	huge := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 40 {
			if _, err := w.Write([]byte(strings.Repeat(" ", 64<<10))); err != nil {
				return
			}
		}
	}
	redirect := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/token", status) }
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"issuer":`)
	}
	for name, c := range map[string]struct {
		arrange func(i *issuing, c *OAuth)
		detail  string
	}{
		"dead":              {func(i *issuing, _ *OAuth) { i.Close() }, "it cannot be reached: connection refused"},
		"no metadata":       {func(i *issuing, _ *OAuth) { i.handle(wellKnown, nil) }, "it has no metadata at any of the well-known places"},
		"metadata fails":    {func(i *issuing, _ *OAuth) { i.handle(wellKnown, says(503, chatter)) }, "its metadata: status 503"},
		"metadata garbage":  {func(i *issuing, _ *OAuth) { i.handle(wellKnown, says(200, chatter)) }, "its metadata cannot be read"},
		"metadata twice":    {func(i *issuing, _ *OAuth) { i.handle(wellKnown, meta(i, `,"issuer":"x"`)) }, "its metadata cannot be read"},
		"metadata kinds":    {func(i *issuing, _ *OAuth) { i.handle(wellKnown, says(200, `{"issuer":1}`)) }, "its metadata cannot be read"},
		"metadata cut":      {func(i *issuing, _ *OAuth) { i.handle(wellKnown, cut) }, "its answer is not complete, or no HTTP"},
		"metadata huge":     {func(i *issuing, _ *OAuth) { i.handle(wellKnown, huge) }, "its answer is larger than 1 MiB"},
		"metadata redirect": {func(i *issuing, _ *OAuth) { i.handle(wellKnown, redirect(302)) }, "it has no metadata at any of the well-known places"},
		"other issuer": {func(i *issuing, _ *OAuth) {
			i.handle(wellKnown, says(200, `{"issuer":%q,"token_endpoint":%q}`, i.URL+"/", i.URL+"/token"))
		}, "its metadata is that of another issuer"},
		"issuer in other case": {func(i *issuing, c *OAuth) { c.Issuer = strings.Replace(c.Issuer, "https", "HTTPS", 1) }, "its metadata is that of another issuer"},
		"plain token endpoint": {func(i *issuing, _ *OAuth) {
			i.handle(wellKnown, says(200, `{"issuer":%q,"token_endpoint":%q}`, i.URL, elsewhere.URL+"/token"))
		}, "its token endpoint is plain http"},
		"token endpoint elsewhere": {func(i *issuing, _ *OAuth) {
			i.handle(wellKnown, says(200, `{"issuer":%q,"token_endpoint":"https://169.254.169.254/latest/api/token"}`, i.URL))
		}, "it cannot be reached: link-local address not allowed"},
		"token endpoint with user": {func(i *issuing, _ *OAuth) {
			i.handle(wellKnown, says(200, `{"issuer":%q,"token_endpoint":"https://a:b@127.0.0.1/"}`, i.URL))
		}, "its metadata has no usable token endpoint"},
		"no token endpoint": {func(i *issuing, _ *OAuth) { i.handle(wellKnown, says(200, `{"issuer":%q}`, i.URL)) }, "its metadata has no usable token endpoint"},
		"token endpoint file": {func(i *issuing, _ *OAuth) {
			i.handle(wellKnown, says(200, `{"issuer":%q,"token_endpoint":"file:///etc/passwd"}`, i.URL))
		}, "its metadata has no usable token endpoint"},
		"other flows": {func(i *issuing, _ *OAuth) {
			i.handle(wellKnown, meta(i, `,"grant_types_supported":["authorization_code"]`))
		}, "it does not serve client_credentials"},
		"unknown certificate": {func(_ *issuing, c *OAuth) { c.Roots = x509.NewCertPool() }, "it cannot be reached: certificate of an unknown authority"},
		"blocked":             {func(_ *issuing, c *OAuth) { c.Dial = egress.Policy{AllowPrivate: true} }, "it cannot be reached: loopback address not allowed"},
		"client refused": {func(i *issuing, _ *OAuth) {
			i.handle("/token", says(401, `{"error":"invalid_client","error_description":"%s %s"}`, chatter, canary))
		}, "its token endpoint: status 401, invalid_client"},
		"target refused":       {func(i *issuing, _ *OAuth) { i.handle("/token", says(400, `{"error":"invalid_target"}`)) }, "its token endpoint: status 400, invalid_target"},
		"unknown error":        {func(i *issuing, _ *OAuth) { i.handle("/token", says(400, `{"error":%q}`, chatter)) }, "its token endpoint: status 400"},
		"token endpoint fails": {func(i *issuing, _ *OAuth) { i.handle("/token", says(500, chatter)) }, "its token endpoint: status 500"},
		"token redirect 302":   {func(i *issuing, _ *OAuth) { i.handle("/token", redirect(302)) }, "its token endpoint redirects, which is not followed"},
		"token redirect 307":   {func(i *issuing, _ *OAuth) { i.handle("/token", redirect(307)) }, "its token endpoint redirects, which is not followed"},
		"token redirect 308":   {func(i *issuing, _ *OAuth) { i.handle("/token", redirect(308)) }, "its token endpoint redirects, which is not followed"},
		"token garbage":        {func(i *issuing, _ *OAuth) { i.handle("/token", says(200, chatter)) }, "its answer cannot be read"},
		"token huge":           {func(i *issuing, _ *OAuth) { i.handle("/token", huge) }, "its answer is larger than 1 MiB"},
		"token form": {func(i *issuing, _ *OAuth) {
			i.handle("/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "access_token=x") })
		}, "its answer is not application/json"},
		"no token":   {func(i *issuing, _ *OAuth) { i.handle("/token", says(200, `{"token_type":"Bearer"}`)) }, "its token cannot be sent in a header"},
		"other type": {func(i *issuing, _ *OAuth) { i.handle("/token", says(200, `{"access_token":"x","token_type":"DPoP"}`)) }, "its token is no bearer token"},
		"no type":    {func(i *issuing, _ *OAuth) { i.handle("/token", says(200, `{"access_token":"x"}`)) }, "its token is no bearer token"},
		"line break": {func(i *issuing, _ *OAuth) {
			i.handle("/token", says(200, `{"access_token":"x\r\nX-Evil: 1","token_type":"Bearer"}`))
		}, "its token cannot be sent in a header"},
		"long token": {func(i *issuing, _ *OAuth) {
			i.handle("/token", says(200, `{"access_token":"%s","token_type":"Bearer"}`, strings.Repeat("x", maxToken+1)))
		}, "its token cannot be sent in a header"},
		"fewer scopes": {func(i *issuing, _ *OAuth) { i.handle("/token", i.tokens(`,"scope":"policy.observe other"`)) }, "its token is for fewer scopes than were asked for"},
		"expired":      {func(i *issuing, _ *OAuth) { i.handle("/token", i.tokens(`,"expires_in":0`)) }, "its token has expired already, or at no time that can be read"},
		"expires when": {func(i *issuing, _ *OAuth) { i.handle("/token", i.tokens(`,"expires_in":{}`)) }, "its token has expired already, or at no time that can be read"},
		"large headers": {func(i *issuing, _ *OAuth) {
			i.handle("/token", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 64<<10)) })
		}, "its answer is not complete, or no HTTP"},
		"slow": {func(i *issuing, _ *OAuth) {
			i.handle(wellKnown, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}, "it does not answer in time"},
		"slow token": {func(i *issuing, _ *OAuth) {
			i.handle("/token", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}, "it does not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := startIssuer(t, true).good()
			b := fakebackend.Start(t)
			cfg := i.with(b)
			c.arrange(i, cfg.OAuth)
			timeout := ample
			if strings.HasPrefix(name, "slow") {
				timeout = soon
				// The attempt goes on without the call; its issuer does not.
				t.Cleanup(i.CloseClientConnections)
			}
			client := newTestClient(t, cfg)
			want := ahp.Failure{Class: ahp.FailCredential, Detail: "no token from the OAuth issuer: " + c.detail}
			// The second one is answered without the issuer being asked.
			for range 2 {
				if f := intercept(client, timeout); f != want {
					t.Errorf("Intercept = %v; want %v", f, want)
				}
			}
			if f := client.Observe(newNotification(timeout)); f != want {
				t.Errorf("Observe = %v; want %v", f, want)
			}
			if accepted, _ := b.Connections(); accepted != 0 {
				t.Errorf("the backend saw %d connections; want none", accepted)
			}
			if n := i.count("/token"); n > 1 {
				t.Errorf("the token endpoint was asked %d times; want once at most", n)
			}
		})
	}
	t.Cleanup(func() {
		if got := elsewhere.asked(); len(got) != 0 {
			t.Errorf("a redirect or a plain endpoint was followed to %q; want it not to be", got)
		}
	})
}

// Everybody who needs a token waits for the same one.
func TestOAuthOneTokenForMany(t *testing.T) {
	i := startIssuer(t, true).good()
	release := make(chan struct{})
	next := i.tokens(`,"expires_in":"3600"`)
	i.handle("/token", func(w http.ResponseWriter, r *http.Request) { <-release; next(w, r) })
	b := fakebackend.Start(t)
	c := newTestClient(t, i.with(b))
	var began, done sync.WaitGroup
	for range 100 {
		began.Add(1)
		done.Go(func() {
			began.Done()
			if f := intercept(c, ample); !f.OK() {
				t.Errorf("Intercept = %v; want success", f)
			}
		})
	}
	began.Wait()
	close(release)
	done.Wait()
	if n := i.count("/token"); n != 1 || b.Count() != 100 || i.count(wellKnown) != 1 {
		t.Errorf("%d calls took %d tokens, %d times metadata; want 100, 1, 1", b.Count(), n, i.count(wellKnown))
	}
}

// rejecting is a backend that answers 401 to all tokens but the good ones.
func rejecting(t testing.TB, good ...string) *fakebackend.Server {
	return fakebackend.Start(t, fakebackend.WithScript(func(_ int, r *fakebackend.Request) string {
		for _, token := range good {
			if r.Header.Get("Authorization") == "Bearer "+token {
				return "pass"
			}
		}
		return "status-401"
	}))
}

// A token that has been revoked is replaced, and the call repeated with the
// next one.
func TestOAuthRejectedToken(t *testing.T) {
	i := startIssuer(t, true).good()
	b := rejecting(t, "token-2")
	c := newTestClient(t, i.with(b))
	for range 2 {
		if f := intercept(c, ample); !f.OK() {
			t.Errorf("Intercept = %v; want success", f)
		}
	}
	if got, want := authorizations(b), "Bearer token-1, Bearer token-2, Bearer token-2"; got != want {
		t.Errorf("the backend got %q; want %q", got, want)
	}
	if accepted, _ := b.Connections(); accepted != 1 {
		t.Errorf("the backend saw %d connections; want 1", accepted)
	}
}

// Where every token is rejected, a call is repeated once, and the calls after it
// are not, nor is the issuer asked again.
func TestOAuthRejectedAlways(t *testing.T) {
	i := startIssuer(t, true).good()
	b := rejecting(t)
	c := newTestClient(t, i.with(b))
	for range 5 {
		if f := intercept(c, ample); f.Class != ahp.FailUnauthorized {
			t.Errorf("Intercept = %v; want %v", f, ahp.FailUnauthorized)
		}
	}
	want := "Bearer token-1" + strings.Repeat(", Bearer token-2", 5)
	if got := authorizations(b); got != want {
		t.Errorf("the backend got %q; want %q", got, want)
	}
	if n := i.count("/token"); n != 2 {
		t.Errorf("the issuer was asked for %d tokens; want 2", n)
	}
}

// Only a 401 is an answer that nobody has looked at: nothing else is repeated.
func TestOAuthRepeatsNothingElse(t *testing.T) {
	for _, behaviour := range []string{"status-403", "status-500", "redirect", "reset", "truncated", "bad-json"} {
		i := startIssuer(t, true).good()
		b := fakebackend.Start(t, fakebackend.Behave(behaviour))
		if f := intercept(newTestClient(t, i.with(b)), ample); f.OK() || b.Count() != 1 || i.count("/token") != 1 {
			t.Errorf("Intercept of %s = %v after %d requests and %d tokens; want a failure after 1 and 1", behaviour, f, b.Count(), i.count("/token"))
		}
	}
}

// Calls that are rejected together take one token more, and each of them is
// repeated with that.
func TestOAuthRejectedTogether(t *testing.T) {
	const calls = 20
	i := startIssuer(t, true).good()
	var together sync.WaitGroup
	together.Add(calls)
	b := fakebackend.Start(t, fakebackend.WithScript(func(_ int, r *fakebackend.Request) string {
		if r.Header.Get("Authorization") == "Bearer token-2" {
			return "pass"
		}
		together.Done()
		together.Wait() // all of them are on their way before the first one is rejected
		return "status-401"
	}))
	c := newTestClient(t, i.with(b))
	var done sync.WaitGroup
	for range calls {
		done.Go(func() {
			if f := intercept(c, ample); !f.OK() {
				t.Errorf("Intercept = %v; want success", f)
			}
		})
	}
	done.Wait()
	if n := i.count("/token"); n != 2 || b.Count() != 2*calls {
		t.Errorf("%d rejected calls took %d requests and %d tokens; want %d and 2", calls, b.Count(), n, 2*calls)
	}
}

// A backend without its client's secret is not called, nor is the issuer.
func TestOAuthWithoutSecret(t *testing.T) {
	i := startIssuer(t, true).good()
	b := fakebackend.Start(t)
	cfg := i.with(b)
	cfg.OAuth.ClientSecret, cfg.CredentialError = "", "secret client cannot be read"
	want := ahp.Failure{Class: ahp.FailCredential, Detail: cfg.CredentialError}
	if f := intercept(newTestClient(t, cfg), ample); f != want {
		t.Errorf("Intercept = %v; want %v", f, want)
	}
	if accepted, _ := b.Connections(); accepted != 0 || len(i.asked()) != 0 {
		t.Errorf("the backend saw %d connections, the issuer %d requests; want none", accepted, len(i.asked()))
	}
}

func TestOAuthProxyVariablesPlayNoPart(t *testing.T) {
	i := startIssuer(t, false).good()
	b := fakebackend.Start(t)
	proxy := fakebackend.Start(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, strings.TrimSuffix(proxy.URL, "/hooks"))
	}
	t.Setenv("NO_PROXY", "")
	if f := intercept(newTestClient(t, i.with(b)), ample); !f.OK() {
		t.Errorf("Intercept = %v; want success", f)
	}
	if accepted, _ := proxy.Connections(); accepted != 0 {
		t.Errorf("the proxy saw %d connections; want none", accepted)
	}
}

func TestOAuthRefusedConfiguration(t *testing.T) {
	good := OAuth{Issuer: "https://id.example", Resource: "https://r.example", ClientID: "c", ClientSecret: canary}
	for name, change := range map[string]func(c *Config){
		"no issuer":          func(c *Config) { c.OAuth.Issuer = "" },
		"plain issuer":       func(c *Config) { c.OAuth.Issuer = "http://id.example/" + canary },
		"plain almost local": func(c *Config) { c.OAuth.Issuer = "http://localhost.example/" },
		"issuer with user":   func(c *Config) { c.OAuth.Issuer = "https://u:" + canary + "@id.example/" },
		"issuer with query":  func(c *Config) { c.OAuth.Issuer += "?" + canary },
		"issuer as file":     func(c *Config) { c.OAuth.Issuer = "file:///etc/passwd" },
		"no secret":          func(c *Config) { c.OAuth.ClientSecret = "" },
		"no client":          func(c *Config) { c.OAuth.ClientID = "" },
		"no resource":        func(c *Config) { c.OAuth.Resource = "" },
		"bearer beside it":   func(c *Config) { c.Bearer = canary },
		"header beside it":   func(c *Config) { c.Headers = []Header{{"authorization", canary}} },
	} {
		own := good
		cfg := Config{ID: "com.example.policy", URL: "https://policy.example/", OAuth: &own}
		change(&cfg)
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: New = %v; want an error that tells no secret", name, err)
		}
	}
	own := good
	if _, err := New(Config{URL: "https://policy.example/", OAuth: &own}); err != nil {
		t.Errorf("New = %v; want a client", err)
	}
}

// A name that is loopback to a person is not to a resolver: plain http stays on
// this machine.
func TestOAuthPlainStaysHere(t *testing.T) {
	d := dialFor(false, OAuth{Dial: egress.Policy{AllowPrivate: true, AllowLoopback: true}}, nil)
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip, _, err := net.ParseCIDR(a.String())
		if err != nil || ip.IsLoopback() || ip.To4() == nil || !ip.IsPrivate() {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
		if err != nil {
			continue
		}
		defer l.Close()
		if conn, err := d(t.Context(), "tcp", l.Addr().String()); err == nil {
			conn.Close()
			t.Errorf("plain http to %s was dialled; want it refused", ip)
		}
	}
}

func TestReadingOfTokens(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"": unknownLife, "null": unknownLife, "3600": time.Hour, `"3600"`: time.Hour, "1.5": 1500 * time.Millisecond, "1e3": 1000 * time.Second,
		"1": time.Second, "1e300": maxLife, "999999999": maxLife, "0": 0, "-1": 0, "0.5": 0, `"x"`: 0, "[]": 0, "true": 0, `"NaN"`: 0,
	} {
		var v []byte
		if in != "" {
			v = []byte(in)
		}
		if got, ok := lifeOf(v); got != want || ok != (want > 0) {
			t.Errorf("lifeOf(%s) = %v, %t; want %v", in, got, ok, want)
		}
	}
	for life, want := range map[time.Duration]time.Duration{
		time.Second: 500 * time.Millisecond, time.Minute: 30 * time.Second, 100 * time.Second: 70 * time.Second,
		150 * time.Second: 120 * time.Second, time.Hour: 48 * time.Minute,
	} {
		if got := refreshAfter(life); got != want {
			t.Errorf("refreshAfter(%v) = %v; want %v", life, got, want)
		}
	}
	for in, want := range map[string]bool{
		"abc.DEF-_~+/123==": true, "": false, "=": false, "a=b": false, "a b": false, "a\n": false, "é": false, `a"`: false, "a,b": false,
	} {
		if got := isBearer(in); got != want {
			t.Errorf("isBearer(%q) = %t; want %t", in, got, want)
		}
	}
}

// A backend may ask for a certificate: it is shown there, and to nobody else.
func TestClientCertificate(t *testing.T) {
	pair, roots := clientPair(t)
	var seen atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(int64(len(r.TLS.PeerCertificates)))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":"e1","result":{"protocolVersion":"0.1","effects":[]}}`)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
	s.Config.ErrorLog = discard
	s.StartTLS()
	t.Cleanup(s.Close)
	i := startIssuer(t, true).good()
	i.TLS.ClientAuth = tls.RequestClientCert
	trusted := x509.NewCertPool()
	trusted.AddCert(s.Certificate())

	cfg := loopback(s.URL, trusted)
	cfg.OAuth = i.with(fakebackend.Start(t)).OAuth
	if f := intercept(newTestClient(t, cfg), ample); f.Class != ahp.FailTLS && f.Class != ahp.FailReset {
		t.Errorf("Intercept without a certificate = %v; want %v", f, ahp.FailTLS)
	}
	cfg.Certificate = &pair
	if f := intercept(newTestClient(t, cfg), ample); !f.OK() || seen.Load() != 1 {
		t.Errorf("Intercept with a certificate = %v, %d seen; want success, 1", f, seen.Load())
	}
	for _, r := range i.requests {
		if n := len(r.TLS.PeerCertificates); n != 0 {
			t.Errorf("the issuer was shown %d certificates; want none", n)
		}
	}
	other, _ := clientPair(t)
	cfg.Certificate = &other
	if f := intercept(newTestClient(t, cfg), ample); f.OK() {
		t.Error("Intercept with a certificate of another authority = success; want a failure")
	}
}
