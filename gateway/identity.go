package gateway

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"

	"github.com/ahp-gateway/ahp-gateway/backend"
	"github.com/ahp-gateway/ahp-gateway/config"
)

// identify puts into c whom the gateway trusts and by what it identifies itself
// in TLS, as own says, and returns all that it has read for that. Errors never
// quote from a file.
func (v *vault) identify(c *backend.Config, own *config.BackendSettings) ([]byte, error) {
	var read bytes.Buffer
	file := func(key, path string) ([]byte, error) {
		data, err := v.file(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		// With its length, so that no two sets of files look alike.
		fmt.Fprintf(&read, "%s %d ", key, len(data))
		read.Write(data)
		return data, nil
	}
	pool := func(key, path string) (*x509.CertPool, error) {
		data, err := file(key, path)
		if err != nil {
			return nil, err
		}
		return rootsIn(data, key, path)
	}
	var err error
	if own.CAFile != "" {
		if c.Roots, err = pool("caFile", own.CAFile); err != nil {
			return nil, err
		}
	}
	if own.IssuerCAFile != "" && c.OAuth != nil {
		if c.OAuth.Roots, err = pool("issuerCAFile", own.IssuerCAFile); err != nil {
			return nil, err
		}
	}
	if own.ClientCertFile != "" {
		cert, err := file("clientCertFile", own.ClientCertFile)
		if err != nil {
			return nil, err
		}
		key, err := file("clientKeyFile", own.ClientKeyFile)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("clientCertFile %s and clientKeyFile %s are not a usable pair", own.ClientCertFile, own.ClientKeyFile)
		}
		c.Certificate = &pair
	}
	return read.Bytes(), nil
}

// oauthOf returns the client of h for its backend, and why its secret cannot be
// had, if it cannot.
func (v *vault) oauthOf(t *config.Tenant, h *config.Hook, own *config.BackendSettings) (*backend.OAuth, error) {
	secret, err := v.secret(t, *h.OAuth.ClientSecret)
	return &backend.OAuth{
		Issuer: h.OAuth.Issuer, Resource: h.OAuth.Resource, ClientID: h.OAuth.ClientID, ClientSecret: secret,
		Scopes: h.OAuth.Scopes, Dial: own.Egress(hostOf(h.OAuth.Issuer)),
	}, err
}

// hostOf returns the host that a URL names, without its port.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
