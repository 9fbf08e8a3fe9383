package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// tlsFiles are the flags of a client of the private listener.
type tlsFiles struct{ ca, cert, key string }

// flags adds them to the flags of a command.
func (t *tlsFiles) flags(f interface {
	StringVar(p *string, name, value, usage string)
}, certUsage string) {
	f.StringVar(&t.ca, "ca-file", "", "PEM bundle in place of the platform's trust roots")
	f.StringVar(&t.cert, "cert-file", "", certUsage)
	f.StringVar(&t.key, "key-file", "", "PEM private key of --cert-file")
}

// client returns a client that goes by the files.
func (t *tlsFiles) client() (*http.Client, error) {
	if (t.cert == "") != (t.key == "") {
		return nil, usage("--cert-file and --key-file are needed together")
	}
	client, err := newClient(t.ca)
	if err != nil {
		return nil, err
	}
	if t.cert != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil { // whose text can quote from the key
			return nil, errors.New("--cert-file and --key-file are no usable pair; write the paths of a PEM certificate chain and of the unencrypted PEM key that belongs to it")
		}
		client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return client, nil
}

// unanswered returns why there was no answer, without the URL, which can hold
// what is not for a log, and what to write instead. flag is what has the URL. Of
// a certificate that nobody vouches for the names are anybody's to choose.
func unanswered(err error, flag string) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	var roots x509.UnknownAuthorityError
	var host x509.HostnameError
	var alert tls.AlertError
	instead := "see that the gateway runs, and that " + flag + " is its private listener"
	switch {
	case errors.As(err, &roots):
		instead = "write --ca-file with the roots that its certificate is under"
	case errors.As(err, &host):
		instead = "write a host into " + flag + " that its certificate is for"
	case errors.Is(err, http.ErrSchemeMismatch):
		instead = "write http:// into " + flag + " where adminTLS is not set"
	case errors.As(err, &alert):
		instead = "write --cert-file and --key-file of a client certificate that adminTLS.clientCAFile is the root of"
	case errors.Is(err, context.DeadlineExceeded):
		instead = "see that it is not stuck, and that nothing between drops the connection"
	}
	return fmt.Errorf("%s; %s", printable(err.Error()), instead)
}
