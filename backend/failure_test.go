package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/egress"
)

func dialErr(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

func TestFailureClasses(t *testing.T) {
	connect := func(err error) ahp.Failure { return connectFailure(err, false) }
	handshake := func(err error) ahp.Failure { return handshakeFailure(err, false) }
	open := func(err error) ahp.Failure { return connFailure(err, "no answer") }
	tests := map[string]struct {
		classify func(error) ahp.Failure
		err      error
		want     ahp.FailureClass
	}{
		"no such host":          {connect, dialErr(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}), ahp.FailDNS},
		"resolver broken":       {connect, dialErr(&net.DNSError{Err: "server misbehaving", Name: "x"}), ahp.FailDNS},
		"resolver too slow":     {connect, dialErr(&net.DNSError{Err: "timeout", Name: "x", IsTimeout: true}), ahp.FailDeadline},
		"refused":               {connect, dialErr(os.NewSyscallError("connect", syscall.ECONNREFUSED)), ahp.FailConnect},
		"unreachable":           {connect, dialErr(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), ahp.FailConnect},
		"connect too slow":      {connect, dialErr(context.DeadlineExceeded), ahp.FailDeadline},
		"connect timed out":     {connect, dialErr(os.NewSyscallError("connect", syscall.ETIMEDOUT)), ahp.FailDeadline},
		"blocked":               {connect, dialErr(egress.BlockedError("link-local")), ahp.FailBlockedAddress},
		"no descriptors":        {connect, dialErr(os.NewSyscallError("socket", syscall.EMFILE)), ahp.FailInternal},
		"unknown authority":     {handshake, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, ahp.FailTLS},
		"wrong host":            {handshake, &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}}}, ahp.FailTLS},
		"expired":               {handshake, &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, ahp.FailTLS},
		"not for servers":       {handshake, &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}}, ahp.FailTLS},
		"not TLS":               {handshake, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, ahp.FailTLS},
		"handshake alert":       {handshake, &net.OpError{Op: "remote error", Err: tls.AlertError(40)}, ahp.FailTLS},
		"handshake cut":         {handshake, io.EOF, ahp.FailTLS},
		"handshake too slow":    {handshake, context.DeadlineExceeded, ahp.FailDeadline},
		"read too slow":         {open, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, ahp.FailDeadline},
		"read reset":            {open, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, ahp.FailReset},
		"read end":              {open, io.EOF, ahp.FailReset},
		"alert after handshake": {open, &net.OpError{Op: "remote error", Err: tls.AlertError(116)}, ahp.FailTLS},
		"pool":                  {acquireFailure, errors.New("no free connections"), ahp.FailPoolExhausted},
		"failed dial":           {acquireFailure, &dialError{failure: ahp.Failure{Class: ahp.FailDNS}}, ahp.FailDNS},
	}
	for name, tt := range tests {
		if f := tt.classify(tt.err); f.Class != tt.want || name != "failed dial" && f.Detail == "" {
			t.Errorf("%s: classify(%v) = %v; want %v with a detail", name, tt.err, f, tt.want)
		}
	}
}

func TestStatusFailure(t *testing.T) {
	for status, want := range map[int]ahp.Failure{
		201: {Class: ahp.FailStatus, Detail: "status 201"},
		301: {Class: ahp.FailRedirect, Detail: "status 301"},
		399: {Class: ahp.FailRedirect, Detail: "status 399"},
		400: {Class: ahp.FailStatus, Detail: "status 400"},
		401: {Class: ahp.FailUnauthorized, Detail: "status 401"},
		403: {Class: ahp.FailUnauthorized, Detail: "status 403"},
		599: {Class: ahp.FailStatus, Detail: "status 599"},
	} {
		if got := statusFailure(status); got != want {
			t.Errorf("statusFailure(%d) = %v; want %v", status, got, want)
		}
	}
}
