package tenant

import (
	"crypto/sha256"
	"crypto/x509"
	"strings"
	"time"
)

// Key is one bearer key of a tenant.
type Key struct {
	// Digest is the SHA-256 of the token.
	Digest [sha256.Size]byte
	// Expires is the instant from which on the key is refused. The zero value
	// is never.
	Expires time.Time
}

// NameKind is the kind of a certificate's subject alternative name.
type NameKind uint8

// The kinds.
const (
	NameURI NameKind = iota + 1
	NameDNS
	NameEmail
)

// String returns the kind's name in the configuration, or "unknown".
func (k NameKind) String() string {
	switch k {
	case NameURI:
		return "uri"
	case NameDNS:
		return "dns"
	case NameEmail:
		return "email"
	default:
		return "unknown"
	}
}

// Name is one subject alternative name in the form that names are compared in:
// host names in lower case, everything else as it is. There are no patterns.
type Name struct {
	Kind  NameKind
	Value string
}

// NewName returns the name that value stands for.
func NewName(kind NameKind, value string) Name {
	switch kind {
	case NameDNS:
		value = strings.ToLower(value)
	case NameEmail:
		if at := strings.LastIndexByte(value, '@'); at >= 0 {
			value = value[:at] + strings.ToLower(value[at:])
		}
	}
	return Name{kind, value}
}

// CertificateNames returns the names of a certificate that a Directory can look
// up. Whether the certificate can be trusted is for the caller to find out.
func CertificateNames(c *x509.Certificate) []Name {
	var names []Name
	for _, u := range c.URIs {
		names = append(names, NewName(NameURI, u.String()))
	}
	for _, n := range c.DNSNames {
		names = append(names, NewName(NameDNS, n))
	}
	for _, a := range c.EmailAddresses {
		names = append(names, NewName(NameEmail, a))
	}
	return names
}

// Request is what a request shows of whom it speaks for.
type Request struct {
	// Authorization is the value of the only Authorization header, or empty.
	Authorization []byte
	// Names are those of the verified certificate of the request's connection,
	// or empty.
	Names []Name
	// Path is the tenant id in the request's path, or "".
	Path string
	// Now is when the request came.
	Now time.Time
}

// Verdict is the outcome of Authenticate. The zero value admits nobody.
type Verdict struct {
	Result Result
	// RetryAfter is how long to wait before another try, where the result is
	// Unavailable.
	RetryAfter time.Duration
	// Scope is what the token would need, where the result is InsufficientScope.
	Scope string
}

// Result says in one word what came of a credential.
type Result uint8

// The results.
const (
	// Unauthenticated: there is no credential of a kind that is known.
	Unauthenticated Result = iota
	// OK: the credential is good and the path is the tenant's.
	OK
	// WrongTenant: the credential is good but the path names another tenant.
	// Whether that tenant exists makes no difference here and must make none
	// in the answer, or callers could find out who else is served.
	WrongTenant
	// Refused: there is a bearer token, and it is malformed, expired or nobody's.
	Refused
	// TwoTenants: the token is good, and the client certificate names another
	// tenant, or several.
	TwoTenants
	// InsufficientScope: the token is good but for a scope that it lacks.
	InsufficientScope
	// Unavailable: whether the token is good cannot be said now, because its
	// issuer's keys cannot be had.
	Unavailable
)

// String returns the result's stable name, or "unknown".
func (r Result) String() string {
	switch r {
	case Unauthenticated:
		return "unauthenticated"
	case OK:
		return "ok"
	case WrongTenant:
		return "wrong_tenant"
	case Refused:
		return "refused"
	case TwoTenants:
		return "two_tenants"
	case InsufficientScope:
		return "insufficient_scope"
	case Unavailable:
		return "unavailable"
	default:
		return "unknown"
	}
}
