package backend

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/egress"
)

// dialError carries the failure of a dial through the connection pool.
type dialError struct{ failure ahp.Failure }

func (e *dialError) Error() string { return e.failure.String() }

// connectFailure classifies a failed name resolution or connect. expired says
// that the time for it was over.
func connectFailure(err error, expired bool) ahp.Failure {
	var blocked egress.BlockedError
	var dns *net.DNSError
	switch {
	case errors.As(err, &blocked):
		return ahp.Failure{Class: ahp.FailBlockedAddress, Detail: blocked.Error()}
	case expired || isTimeout(err):
		return ahp.Failure{Class: ahp.FailDeadline, Detail: "no connection in time"}
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return ahp.Failure{Class: ahp.FailDNS, Detail: "no such host"}
		}
		return ahp.Failure{Class: ahp.FailDNS, Detail: "name resolution failed"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return ahp.Failure{Class: ahp.FailConnect, Detail: "connection refused"}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return ahp.Failure{Class: ahp.FailInternal, Detail: "no file descriptor left for a connection"}
	default:
		return ahp.Failure{Class: ahp.FailConnect, Detail: "connection could not be opened"}
	}
}

// handshakeFailure classifies a failed TLS handshake.
func handshakeFailure(err error, expired bool) ahp.Failure {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
		record    tls.RecordHeaderError
	)
	detail := "handshake failed"
	switch {
	case expired || isTimeout(err):
		return ahp.Failure{Class: ahp.FailDeadline, Detail: "no TLS handshake in time"}
	case errors.As(err, &authority):
		detail = "certificate of an unknown authority"
	case errors.As(err, &host):
		detail = "certificate for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		detail = "certificate expired or not yet valid"
	case errors.As(err, &invalid):
		detail = "certificate not valid for a server"
	case errors.As(err, &record):
		detail = "the backend does not speak TLS here"
	case errors.As(err, &alert):
		detail = "the backend refused the handshake"
	case isClosed(err):
		detail = "connection closed during the handshake"
	}
	return ahp.Failure{Class: ahp.FailTLS, Detail: detail}
}

// connFailure classifies a read or write that failed on an open connection.
// doing says what was not finished.
func connFailure(err error, doing string) ahp.Failure {
	var alert tls.AlertError
	switch {
	case isTimeout(err):
		return ahp.Failure{Class: ahp.FailDeadline, Detail: doing}
	case errors.As(err, &alert):
		return ahp.Failure{Class: ahp.FailTLS, Detail: "the backend ended the connection with an alert"}
	default:
		return ahp.Failure{Class: ahp.FailReset, Detail: doing}
	}
}

// statusFailure classifies a status that is no success.
func statusFailure(status int) ahp.Failure {
	detail := "status " + strconv.Itoa(status)
	switch {
	case status == 401 || status == 403:
		return ahp.Failure{Class: ahp.FailUnauthorized, Detail: detail}
	case status >= 300 && status < 400:
		return ahp.Failure{Class: ahp.FailRedirect, Detail: detail}
	default:
		return ahp.Failure{Class: ahp.FailStatus, Detail: detail}
	}
}

func isTimeout(err error) bool {
	if err == nil {
		return false // the common case, before anything is allocated
	}
	var timeout interface{ Timeout() bool }
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// isClosed reports whether err means that the other side has ended the connection.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}
