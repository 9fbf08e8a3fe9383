package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	"github.com/ahp-gateway/ahp-gateway/egress"
)

// maxDial bounds a dial that no call waits for any more: the pool replaces a
// lost connection in the background, where there is no call and no deadline.
const maxDial = 5 * time.Second

// dialer opens connections to one backend. Name resolution, connect and TLS
// handshake share one deadline.
type dialer struct {
	address string // host:port as configured; the pool's own idea of it is not used
	connect func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config // nil for plain http
}

// tlsConfig is how connections are secured. certificate identifies the gateway
// to a server that asks for it; nil means that nothing does.
func tlsConfig(host string, roots *x509.CertPool, certificate *tls.Certificate) *tls.Config {
	c := &tls.Config{
		ServerName: host,
		RootCAs:    roots,
		MinVersion: tls.VersionTLS12,
		// Said aloud so that a server that also speaks HTTP/2 does not choose it.
		NextProtos:         []string{"http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(4),
	}
	if certificate != nil {
		c.Certificates = []tls.Certificate{*certificate}
	}
	return c
}

// network is where a name is looked up and which addresses may be dialled.
type network struct {
	policy   egress.Policy
	resolver *net.Resolver // nil means the platform's
}

func newDialer(host, port string, n network) *dialer {
	tcp := &net.Dialer{Control: n.policy.Control, Resolver: n.resolver}
	return &dialer{address: net.JoinHostPort(host, port), connect: tcp.DialContext}
}

// dial implements fasthttp.DialFuncWithTimeout. Proxy variables of the
// environment play no part. Its errors are *dialError.
func (d *dialer) dial(_ string, timeout time.Duration) (net.Conn, error) {
	if timeout <= 0 {
		timeout = maxDial
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.open(ctx)
}

// dialContext is dial within ctx, and within maxDial.
func (d *dialer) dialContext(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, maxDial)
	defer cancel()
	return d.open(ctx)
}

// open opens a connection before ctx ends.
func (d *dialer) open(ctx context.Context) (net.Conn, error) {
	raw, err := d.connect(ctx, "tcp", d.address)
	if err != nil {
		return nil, &dialError{failure: connectFailure(err, ctx.Err() != nil)}
	}
	if d.tls == nil {
		return raw, nil
	}
	secure := tls.Client(raw, d.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, &dialError{failure: handshakeFailure(err, ctx.Err() != nil)}
	}
	return &tlsConn{Conn: secure, raw: raw}, nil
}

// tlsConn is a TLS connection that closes at once. The close alert of
// tls.Conn.Close may wait five seconds for a peer that reads nothing, which
// would carry a call past its deadline.
type tlsConn struct {
	*tls.Conn
	raw net.Conn
}

// Close implements net.Conn.
func (c *tlsConn) Close() error { return c.raw.Close() }
