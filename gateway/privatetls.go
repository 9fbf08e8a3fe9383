package gateway

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// privateTLS is how the private listener is secured. A reload makes another one.
type privateTLS struct {
	tls   *tls.Config
	trust *clientTrust // nil where no client certificates are asked for
}

func sameFiles(a, b *config.AdminTLS) bool {
	return a.CertFile == b.CertFile && a.KeyFile == b.KeyFile && a.ClientCAFile == b.ClientCAFile
}

// loadPrivateTLS reads the certificate of the private listener, and the roots
// of those of its clients.
func (g *Gateway) loadPrivateTLS() (*privateTLS, error) {
	files := &g.started.AdminTLS
	cert, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("gateway: adminTLS: %w", err)
	}
	secured := &privateTLS{tls: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}}
	if files.ClientCAFile == "" {
		return secured, nil
	}
	roots, err := readRoots("clientCAFile", files.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("gateway: adminTLS: %w", err)
	}
	// Probes of health come without one, so it is asked for and not required.
	secured.tls.ClientCAs, secured.tls.ClientAuth = roots, tls.VerifyClientCertIfGiven
	// A session that is taken up again would take with it what was trusted then.
	secured.tls.SessionTicketsDisabled = true
	secured.trust = &clientTrust{roots: roots, tls: secured.tls}
	return secured, nil
}

// privateHandshakes returns the configuration of the private listener: for each
// handshake that of the moment.
func (g *Gateway) privateHandshakes() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return g.privateTLS.Load().tls, nil },
	}
}

// knownClients refuses everything but health to requests that are not admitted.
func (g *Gateway) knownClients(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && !g.Admits(r) {
			w.Header().Set("Connection", "close") // a client with a newer certificate shows it on another one
			plain(w, http.StatusForbidden, "a client certificate is needed")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Admits reports whether a request to the private listener comes with a client
// certificate that holds now, or none is asked for: a connection, and a request
// that has to wait, live on when the certificate has ended or its root is trusted
// no more. What is served after a wait is for who is still admitted then.
func (g *Gateway) Admits(r *http.Request) bool {
	secured := g.privateTLS.Load()
	if secured == nil || secured.trust == nil {
		return true
	}
	now := time.Now()
	return r.TLS != nil && now.Before(verifiedClient(r.TLS.PeerCertificates, secured.trust, now).until)
}
