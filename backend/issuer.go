package backend

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ahp-gateway/ahp-gateway/egress"
)

// OAuth is a client that obtains bearer tokens by client credentials (RFC 6749,
// section 4.4) from an issuer whose metadata says where. Secrets in it are
// resolved already.
type OAuth struct {
	// Issuer is the issuer identifier: https, or http to a loopback host. What
	// its metadata says it is must be the same string.
	Issuer string
	// Resource is what tokens are for, sent as the resource of RFC 8707.
	Resource     string
	ClientID     string
	ClientSecret string
	// Scopes are asked for in this order. A token for fewer is refused.
	Scopes []string
	// Roots verify the issuer's certificate. Nil means the platform's.
	Roots *x509.CertPool
	// Dial says which addresses besides public ones may be dialled for it.
	Dial egress.Policy
}

const (
	// maxMetadata bounds an answer of the issuer, in bytes.
	maxMetadata = 1 << 20
	// maxToken bounds an access token, in bytes.
	maxToken = 8 << 10
	// maxURL bounds a token endpoint, in bytes.
	maxURL = 2048
	// metadataLife is how long the issuer's metadata is believed. A failed
	// token request makes it be read again.
	metadataLife = time.Hour
	// unknownLife is how long a token is used whose issuer does not say.
	unknownLife = 5 * time.Minute
	// maxLife bounds what an issuer says.
	maxLife = 24 * time.Hour
)

// issuer is the authorization server of one client. It is used by one goroutine
// at a time. Its own small client in place of golang.org/x/oauth2, because that
// one finds no metadata, asks twice to find out how a client authenticates,
// and quotes the issuer's answer in its errors.
type issuer struct {
	client    OAuth
	plain     bool     // the issuer is http, on loopback
	places    []string // of the metadata, in the order in which they are tried
	transport *http.Transport

	metadata *metadata // nil until it has been read
	readAt   time.Time
}

// metadata is what of RFC 8414 and of OpenID Connect Discovery is looked at.
type metadata struct {
	Issuer        string   `json:"issuer"`
	TokenEndpoint string   `json:"token_endpoint"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	GrantTypes    []string `json:"grant_types_supported"`
}

// grant is a token and how long it may be used.
type grant struct {
	token string
	life  time.Duration
}

// issuerError is why no token could be had. It is one of the texts of this
// file: nothing of what the issuer said is in it.
type issuerError string

func (e issuerError) Error() string { return string(e) }

func newIssuer(client OAuth, resolver *net.Resolver) (*issuer, error) {
	u, err := parseURL(client.Issuer)
	switch {
	case err != nil:
		return nil, errors.New("the OAuth issuer is no URL that can be used")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, errors.New("the OAuth issuer has a query")
	case u.Scheme == "http" && !namesLoopback(u.Hostname()):
		return nil, errors.New("the OAuth issuer is plain http to a host that is not loopback")
	case client.ClientID == "" || client.ClientSecret == "" || client.Resource == "":
		return nil, errors.New("the OAuth client has no id, secret or resource")
	}
	return &issuer{
		client: client,
		plain:  u.Scheme == "http",
		places: metadataPlaces(u),
		transport: &http.Transport{
			// Neither the environment's proxy nor a connection that is kept:
			// tokens are obtained seldom, and every dial is looked at.
			Proxy:                  nil,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHead,
			DialContext:            dialFor(false, client, resolver),
			DialTLSContext:         dialFor(true, client, resolver),
		},
	}, nil
}

// dialFor opens the connections to an issuer as those to a backend are opened.
// A plain one leads to this machine or nowhere, whatever its name resolves to.
func dialFor(secure bool, client OAuth, resolver *net.Resolver) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		d := newDialer(host, port, network{client.Dial, resolver})
		if secure {
			d.tls = tlsConfig(host, client.Roots, nil)
		}
		conn, err := d.dialContext(ctx)
		if err != nil || secure {
			return conn, err
		}
		if at, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
			conn.Close()
			return nil, issuerError("plain http to an address that is not loopback")
		}
		return conn, nil
	}
}

// metadataPlaces returns where the metadata of an issuer may be, in the order of
// the Model Context Protocol, which the protocol refers to: RFC 8414, and OpenID
// Connect Discovery with the path inserted, and appended.
func metadataPlaces(u *url.URL) []string {
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		places = append(places, origin+path+"/.well-known/openid-configuration")
	}
	return places
}

// obtain asks for a token, after the metadata if they are not known.
func (i *issuer) obtain(ctx context.Context) (grant, error) {
	if i.metadata == nil || time.Since(i.readAt) > metadataLife {
		m, err := i.discover(ctx)
		if err != nil {
			return grant{}, err
		}
		i.metadata, i.readAt = m, time.Now()
	}
	g, err := i.request(ctx, i.metadata)
	if err != nil {
		i.metadata = nil // it may have moved
	}
	return g, err
}

// discover reads the metadata at the first place that has any.
func (i *issuer) discover(ctx context.Context) (*metadata, error) {
	for _, place := range i.places {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
		if err != nil {
			return nil, issuerError("its metadata has no address")
		}
		status, body, err := i.exchange(req)
		switch {
		case err != nil:
			return nil, err
		case status >= 500:
			return nil, issuerError("its metadata: status " + strconv.Itoa(status))
		case status != http.StatusOK || body == nil:
			continue // something else is there, or nothing
		}
		m := new(metadata)
		if err := json.Unmarshal(body, m); err != nil {
			return nil, issuerError("its metadata cannot be read")
		}
		return m, i.check(m)
	}
	return nil, issuerError("it has no metadata at any of the well-known places")
}

// check refuses metadata of another issuer, and such as no token can or may be
// asked for with.
func (i *issuer) check(m *metadata) error {
	if m.Issuer != i.client.Issuer {
		return issuerError("its metadata is that of another issuer")
	}
	u, err := parseURL(m.TokenEndpoint)
	switch {
	case err != nil || len(m.TokenEndpoint) > maxURL:
		return issuerError("its metadata has no usable token endpoint")
	case u.Scheme == "http" && !(i.plain && namesLoopback(u.Hostname())):
		return issuerError("its token endpoint is plain http")
	case m.GrantTypes != nil && !slices.Contains(m.GrantTypes, "client_credentials"):
		return issuerError("it does not serve client_credentials")
	case m.AuthMethods != nil && !slices.Contains(m.AuthMethods, "client_secret_basic") && !slices.Contains(m.AuthMethods, "client_secret_post"):
		return issuerError("it takes no client secret")
	}
	return nil
}

// request asks the token endpoint, once.
func (i *issuer) request(ctx context.Context, m *metadata) (grant, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {i.client.Resource}}
	if len(i.client.Scopes) > 0 {
		form.Set("scope", strings.Join(i.client.Scopes, " "))
	}
	// RFC 8414: what is left out is client_secret_basic.
	basic := m.AuthMethods == nil || slices.Contains(m.AuthMethods, "client_secret_basic")
	if !basic {
		form.Set("client_id", i.client.ClientID)
		form.Set("client_secret", i.client.ClientSecret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.TokenEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return grant{}, issuerError("its metadata has no usable token endpoint")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if basic { // RFC 6749, section 2.3.1
		pair := url.QueryEscape(i.client.ClientID) + ":" + url.QueryEscape(i.client.ClientSecret)
		req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	status, body, err := i.exchange(req)
	switch {
	case err != nil:
		return grant{}, err
	case status >= 300 && status < 400:
		return grant{}, issuerError("its token endpoint redirects, which is not followed")
	case status != http.StatusOK:
		return grant{}, refusal(status, body)
	case body == nil:
		return grant{}, issuerError("its answer is not application/json")
	}
	return i.read(body)
}

// errorCodes are those of RFC 6749, section 5.2, and RFC 8707. They are told,
// because they are ours to know beforehand; anything else an issuer says is not.
var errorCodes = []string{
	"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "invalid_target",
}

// refusal is what to say of an answer of the token endpoint that is no token.
func refusal(status int, body []byte) error {
	var answer struct {
		Error string `json:"error"`
	}
	text := "its token endpoint: status " + strconv.Itoa(status)
	if json.Unmarshal(body, &answer) == nil && slices.Contains(errorCodes, answer.Error) {
		text += ", " + answer.Error
	}
	return issuerError(text)
}

// read takes a successful answer of the token endpoint.
func (i *issuer) read(body []byte) (grant, error) {
	var answer struct {
		AccessToken string         `json:"access_token"`
		TokenType   string         `json:"token_type"`
		ExpiresIn   jsontext.Value `json:"expires_in"`
		Scope       *string        `json:"scope"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return grant{}, issuerError("its answer cannot be read")
	}
	life, ok := lifeOf(answer.ExpiresIn)
	switch {
	case !strings.EqualFold(answer.TokenType, "Bearer"):
		return grant{}, issuerError("its token is no bearer token")
	case len(answer.AccessToken) > maxToken || !isBearer(answer.AccessToken):
		return grant{}, issuerError("its token cannot be sent in a header")
	case !ok:
		return grant{}, issuerError("its token has expired already, or at no time that can be read")
	}
	if answer.Scope != nil {
		granted := strings.Fields(*answer.Scope)
		for _, scope := range i.client.Scopes {
			if !slices.Contains(granted, scope) {
				return grant{}, issuerError("its token is for fewer scopes than were asked for")
			}
		}
	}
	return grant{answer.AccessToken, life}, nil
}

// lifeOf reads expires_in, which is a number of seconds; some issuers write it
// as a string.
func lifeOf(v jsontext.Value) (time.Duration, bool) {
	text := strings.Trim(string(v), `"`)
	if v == nil || text == "null" {
		return unknownLife, true
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 1) {
		return 0, false
	}
	return time.Duration(min(seconds, maxLife.Seconds()) * float64(time.Second)), true
}

// isBearer reports whether s is a b64token of RFC 6750.
func isBearer(s string) bool {
	s = strings.TrimRight(s, "=")
	for n := range len(s) {
		if c := s[n]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') && !strings.ContainsRune("-._~+/", rune(c)) {
			return false
		}
	}
	return s != ""
}

// exchange sends one request and reads the answer, within the request's context.
// The body is nil if it is not JSON. Redirects are answers like others.
func (i *issuer) exchange(req *http.Request) (status int, body []byte, err error) {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", DefaultUserAgent)
	resp, err := i.transport.RoundTrip(req)
	if err != nil {
		return 0, nil, unreachable(err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
	switch {
	case err != nil:
		return 0, nil, unreachable(err)
	case len(body) > maxMetadata:
		return 0, nil, issuerError("its answer is larger than 1 MiB")
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		body = nil
	}
	return resp.StatusCode, body, nil
}

// unreachable says why no answer came, in words of ours.
func unreachable(err error) error {
	var dial *dialError
	var ours issuerError
	switch {
	case errors.As(err, &dial):
		return issuerError("it cannot be reached: " + dial.failure.Detail)
	case errors.As(err, &ours):
		return ours
	case isTimeout(err) || errors.Is(err, context.DeadlineExceeded):
		return issuerError("it does not answer in time")
	default:
		return issuerError("its answer is not complete, or no HTTP")
	}
}

// namesLoopback reports whether host is localhost or literally loopback.
func namesLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
