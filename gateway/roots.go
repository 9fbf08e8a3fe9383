package gateway

import (
	"crypto/x509"
	"fmt"
	"os"
)

// readRoots returns the certificates of the PEM bundle at path, which the setting
// key names. Errors begin with key and quote nothing of the file.
func readRoots(key, path string) (*x509.CertPool, error) {
	bundle, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return rootsIn(bundle, key, path)
}

// rootsIn is readRoots for a bundle that has been read.
func rootsIn(bundle []byte, key, path string) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("%s %s holds no PEM certificate", key, path)
	}
	return roots, nil
}
