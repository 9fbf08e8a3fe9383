package backend

import (
	"bufio"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/egress"
)

// Defaults of Config.
const (
	DefaultMaxResponse = 1 << 20
	DefaultConnections = 64
	DefaultUserAgent   = "ahp-gateway"
)

// idle is how long an unused connection is kept: less than the five seconds
// after which common servers close theirs.
const idle = 4 * time.Second

// Config says how to reach one backend. Secrets in it are resolved already.
type Config struct {
	// ID is the backend's hook id; it names the backend in errors of New.
	ID string
	// URL takes the messages: absolute, http or https, without userinfo and
	// fragment.
	URL string
	// Headers are sent with every request, merged last and without regard to
	// case over the client's own; an Authorization here replaces Bearer.
	// Fields that frame a message cannot be set. AHP-REG-003.
	Headers []Header
	// Bearer is the bearer token. "" means none.
	Bearer string
	// OAuth obtains the bearer token of every request. Nil means that it is
	// Bearer. No request is sent without a token, and the token nowhere else.
	OAuth *OAuth
	// Certificate identifies the gateway in TLS if the backend asks for it. Nil
	// means that nothing does.
	Certificate *tls.Certificate
	// CredentialError, if not empty, says why a secret that the backend's
	// document refers to could not be had, without quoting it. Every call then
	// fails with ahp.FailCredential: none is ever made without its credential.
	CredentialError string
	// MaxResponse bounds an answer's body in bytes, below 200 million. 0 means
	// DefaultMaxResponse.
	MaxResponse int
	// Connections caps open connections. A call waits for one until its
	// deadline. 0 means DefaultConnections.
	Connections int
	// Retry allows the one repetition after a kept-alive connection was closed
	// before the first byte of an answer.
	Retry bool
	// Roots verify the backend's certificate. Nil means the platform's.
	Roots *x509.CertPool
	// Dial says which addresses besides public ones may be dialled.
	Dial egress.Policy
	// UserAgent is sent as it is. "" means DefaultUserAgent.
	UserAgent string
	// Resolver looks up the names of the backend and of its issuer. Nil means
	// the platform's.
	Resolver *net.Resolver
}

// Client calls one backend. It is safe for concurrent use and implements
// ahp.Backend.
type Client struct {
	head            requestHead // of no use where there are tokens
	tokens          *tokens     // nil where the credential is fixed
	pool            *fasthttp.HostClient
	credentialError string
	maxResponse     int
	retry           bool
	closed          atomic.Bool
}

var _ ahp.Backend = (*Client)(nil)

// New returns a client. It opens no connection. An error is one in cfg and
// never quotes a header's or the token's value, or the URL.
func New(cfg Config) (*Client, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", cfg.ID, err)
	}
	return c, nil
}

func newClient(cfg Config) (*Client, error) {
	if cfg.MaxResponse == 0 {
		cfg.MaxResponse = DefaultMaxResponse
	}
	if cfg.Connections == 0 {
		cfg.Connections = DefaultConnections
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = DefaultUserAgent
	}
	if cfg.MaxResponse < 0 || cfg.MaxResponse >= maxLength || cfg.Connections < 0 {
		return nil, errors.New("a limit is negative or too large")
	}
	u, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	var head requestHead
	var tokens *tokens
	if cfg.OAuth == nil || cfg.CredentialError != "" {
		head, err = newRequestHead(&cfg, u)
	} else {
		tokens, err = cfg.tokens(u)
	}
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	d := newDialer(u.Hostname(), port, network{cfg.Dial, cfg.Resolver})
	if u.Scheme == "https" {
		d.tls = tlsConfig(u.Hostname(), cfg.Roots, cfg.Certificate)
	}
	return &Client{
		head:   head,
		tokens: tokens,
		pool: &fasthttp.HostClient{
			Addr: d.address,
			// The dialer does TLS itself, inside the deadline; the pool's own
			// handshake knows only a fixed write timeout.
			DialTimeout: d.dial,
			MaxConns:    cfg.Connections,
			// The wait ends with the call's deadline, which is always sooner.
			MaxConnWaitTimeout:  time.Hour,
			MaxIdleConnDuration: idle,
			// The connection used last is the one least likely to be stale.
			ConnPoolStrategy: fasthttp.LIFO,
		},
		credentialError: cfg.CredentialError,
		maxResponse:     cfg.MaxResponse,
		retry:           cfg.Retry,
	}, nil
}

// tokens returns those that cfg.OAuth obtains for requests to u.
func (cfg *Config) tokens(u *url.URL) (*tokens, error) {
	if cfg.Bearer != "" {
		return nil, errors.New("a bearer token and an OAuth client are configured")
	}
	for _, h := range cfg.Headers {
		if strings.EqualFold(h.Name, "Authorization") {
			return nil, errors.New("an Authorization header and an OAuth client are configured")
		}
	}
	with := *cfg
	head := func(token string) (requestHead, error) {
		own := with
		own.Bearer = token
		return newRequestHead(&own, u)
	}
	if _, err := head("token"); err != nil {
		return nil, err
	}
	return newTokens(*cfg.OAuth, cfg.Resolver, head)
}

// parseURL refuses what could be read in two ways or would end up in the
// request line as something else. Its errors do not quote the URL, which may
// hold a secret.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("the URL cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL's scheme is neither http nor https")
	case u.Hostname() == "" || strings.HasSuffix(u.Host, ":"):
		return nil, errors.New("the URL has no host, or a colon without a port")
	case u.User != nil || u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, errors.New("the URL has userinfo or a fragment")
	}
	for _, c := range []byte(u.Hostname()) {
		if c != '.' && c != '-' && c != '_' && c != ':' && !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			return nil, errors.New("the URL's host holds a character that a host name or address cannot")
		}
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, errors.New("the URL's port is not 1 to 65535")
		}
	}
	for _, c := range []byte(u.RequestURI()) {
		if c <= ' ' || c > '~' {
			return nil, errors.New("the URL's path or query holds a character that must be escaped")
		}
	}
	return u, nil
}

// Intercept implements ahp.Backend. Success is status 200, application/json
// and a complete body that ahp.DecodeResponse accepts before the deadline.
// AHP-HTTP-001, AHP-RPC-001, AHP-FAIL-002.
func (c *Client) Intercept(call *ahp.Call, resp *ahp.Response) ahp.Failure {
	resp.Reset()
	f := c.do(call, func(br *bufio.Reader) (ahp.Failure, bool) { return c.readDecision(br, call, resp) })
	if f.OK() && !time.Now().Before(call.Deadline) {
		return tooLate
	}
	return f
}

var tooLate = ahp.Failure{Class: ahp.FailLate, Detail: "the answer was complete after the deadline"}

// Observe implements ahp.Backend. Success is status 202 or 204 without a body.
// AHP-RPC-002, AHP-HTTP-001.
func (c *Client) Observe(call *ahp.Call) ahp.Failure {
	return c.do(call, readReceipt)
}

// Configuration asks the backend for the subscriptions that it wants, by
// hooks/configuration of draft, and returns the raw JSON object that it
// advertises. Everything is as for Intercept: transport, credentials, headers,
// the one deadline, and what counts as an answer. AHP-HTTP-001, AHP-RPC-001.
func (c *Client) Configuration(deadline time.Time) ([]byte, ahp.Failure) {
	id := []byte(`"` + rand.Text() + `"`)
	call := &ahp.Call{Body: ahp.AppendConfigurationRequest(nil, id), ID: id, Version: ahp.Draft, Deadline: deadline}
	var body, configuration []byte
	f := c.do(call, func(br *bufio.Reader) (ahp.Failure, bool) {
		return c.readResponse(br, &body, func() (f ahp.Failure) {
			configuration, f = ahp.DecodeConfiguration(call, body)
			return f
		})
	})
	switch {
	case !f.OK():
		return nil, f
	case !time.Now().Before(deadline):
		return nil, tooLate
	}
	return configuration, ahp.Failure{}
}

// Close closes the connections that are idle. Calls in flight, and calls made
// later, run to their end; their connections are closed after them. The pool's
// cleaner goroutine ends within the idle time of four seconds.
func (c *Client) Close() {
	c.closed.Store(true)
	c.pool.CloseIdleConnections()
}
