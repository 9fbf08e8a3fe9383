package fakebackend

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"
)

// certificateFlaw is what is wrong with a server's certificate.
type certificateFlaw int

const (
	noFlaw certificateFlaw = iota
	unknownAuthority
	wrongHost
	expired
)

// newCertificate returns the TLS configuration of a server on 127.0.0.1 and
// the roots that clients are given.
func newCertificate(flaw certificateFlaw) (*tls.Config, *x509.CertPool, error) {
	authority, authorityKey, err := newAuthority()
	if err != nil {
		return nil, nil, err
	}
	known := authority
	if flaw == unknownAuthority {
		if known, _, err = newAuthority(); err != nil {
			return nil, nil, err
		}
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "fakebackend"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	switch flaw {
	case wrongHost:
		leaf.DNSNames, leaf.IPAddresses = []string{"elsewhere.example"}, nil
	case expired:
		leaf.NotAfter = time.Now().Add(-time.Minute)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, nil, err
	}

	roots := x509.NewCertPool()
	roots.AddCert(known)
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}, roots, nil
}

func newAuthority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "fakebackend authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return authority, key, nil
}
