package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"time"

	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// clientTrust is what client certificates are verified with. A reload makes
// another one.
type clientTrust struct {
	roots    *x509.CertPool
	tls      *tls.Config // of the handshakes from now on
	required bool        // nothing is served without a certificate that holds
}

// clientIdentity is what a connection's client certificate says under one
// trust. The zero value is that nobody has looked yet.
type clientIdentity struct {
	trust *clientTrust
	names []tenant.Name
	until time.Time // its chain ends then
}

// loadCertificate reads the certificate that new connections are shown, and the
// roots of theirs.
func (g *Gateway) loadCertificate() error {
	files := g.started.TLS
	c, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		return fmt.Errorf("gateway: tls: %w", err)
	}
	if files.ClientCAFile != "" {
		roots, err := readRoots("clientCAFile", files.ClientCAFile)
		if err != nil {
			return fmt.Errorf("gateway: tls: %w", err)
		}
		config := g.newTLS()
		config.ClientCAs, config.ClientAuth = roots, tls.VerifyClientCertIfGiven
		required := files.ClientAuth == "required"
		if required {
			config.ClientAuth = tls.RequireAndVerifyClientCert
		}
		// A session that is taken up again would take with it what was trusted then.
		config.SessionTicketsDisabled = true
		g.clients.Store(&clientTrust{roots, config, required})
	}
	g.certificate.Store(&c)
	return nil
}

// newTLS returns how connections of the public listener are secured.
func (g *Gateway) newTLS() *tls.Config {
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return g.certificate.Load(), nil },
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
	}
}

// handshakes returns the configuration of the public listener, which asks for
// client certificates if their roots are known: for those of the moment.
func (g *Gateway) handshakes() *tls.Config {
	config := g.newTLS()
	if g.clients.Load() != nil {
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return g.clients.Load().tls, nil }
	}
	return config
}

// clientNames returns the names in the client certificate of a connection, or
// none where there is no certificate, or none that holds now: connections live
// long, and neither a certificate nor its root has to. It is called by one
// goroutine of the connection at a time.
func (g *Gateway) clientNames(conn net.Conn, now time.Time) []tenant.Name {
	if !g.clientHolds(conn, now) {
		return nil
	}
	return conn.(*strictTLSConn).client.names
}

// clientHolds reports whether a connection's client certificate holds now. It is
// called as clientNames is.
func (g *Gateway) clientHolds(conn net.Conn, now time.Time) bool {
	c, ok := conn.(*strictTLSConn)
	trust := g.clients.Load()
	if !ok || trust == nil {
		return false
	}
	if c.client.trust != trust {
		c.client = verifiedClient(c.secure.ConnectionState().PeerCertificates, trust, now)
	}
	return now.Before(c.client.until)
}

// verifiedClient verifies a chain that a client has proven to have the key of.
func verifiedClient(chain []*x509.Certificate, trust *clientTrust, now time.Time) clientIdentity {
	who := clientIdentity{trust: trust}
	if len(chain) == 0 {
		return who
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	verified, err := chain[0].Verify(x509.VerifyOptions{
		Roots: trust.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return who
	}
	for _, chain := range verified {
		end := chain[0].NotAfter
		for _, c := range chain[1:] {
			if c.NotAfter.Before(end) {
				end = c.NotAfter
			}
		}
		if end.After(who.until) {
			who.until = end
		}
	}
	who.names = tenant.CertificateNames(chain[0])
	return who
}
