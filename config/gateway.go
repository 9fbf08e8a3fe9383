package config

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
)

// file reads the gateway file.
func (r *reader) file(s spot) *File {
	f := Default()
	if isRegistration(s) {
		r.mistake(s, "", "is a registration document, not a gateway file", "check it with validate --registration, or put it under registration")
		return &f
	}
	o := r.object(s)
	listen, hasListen := o.get("listen")
	if hasListen {
		f.Listen = r.address(listen, f.Listen)
	}
	if at, ok := o.get("admin"); ok {
		clients := false
		if n, ok := o.fields["adminTLS"]; ok {
			clients = spot{node: n}.has("clientCAFile")
		}
		f.Admin = r.admin(at, f.Admin, clients)
		if hasListen && f.Admin == f.Listen && !strings.HasSuffix(f.Admin, ":0") {
			r.mistake(at, shown(f.Admin), "is the public listener's address too", "write another port")
		}
	}
	if at, ok := o.get("adminTLS"); ok {
		r.adminTLS(at, &f)
	}
	if at, ok := o.get("tls"); ok {
		f.TLS = r.tls(at)
	}
	if at, ok := o.get("log"); ok {
		l := r.object(at)
		l.choice("level", &f.Log.Level, "debug", "info", "warn", "error")
		l.choice("format", &f.Log.Format, "text", "json")
		l.done()
	}
	burstSet := false
	if at, ok := o.get("limits"); ok {
		burstSet = r.limits(at, &f.Limits)
	}
	if at, ok := o.get("dedupe"); ok {
		d := r.object(at)
		d.count("entries", &f.Dedupe.Entries, 0, maxCount)
		d.size("bytes", &f.Dedupe.Bytes, 1)
		d.duration("ttl", &f.Dedupe.TTL)
		d.done()
	}
	if at, ok := o.get("failClosed"); ok {
		r.failClosed(at, &f.FailClosed)
	}
	if at, ok := o.get("audit"); ok {
		r.audit(at, &f.Audit)
	}
	if at, ok := o.get("discovery"); ok {
		d := r.object(at)
		d.duration("timeout", &f.Discovery.Timeout)
		d.choice("onFailure", &f.Discovery.OnFailure, "refuse", "skip")
		d.done()
	}
	if at, ok := o.get("metrics"); ok {
		m := r.object(at)
		m.count("tenants", &f.Metrics.Tenants, 0, maxMeasured)
		m.done()
	}
	if at, ok := o.get("shared"); ok {
		f.Shared = r.shared(at)
	}
	auth, hasAuth := o.get("auth")
	var maps []mapping
	if hasAuth {
		maps = r.auth(auth, &f.Auth)
	}
	base := baseSettings{BackendSettings: DefaultBackend()}
	if at, ok := o.get("breaker"); ok {
		r.breaker(at, &base.Breaker)
	}
	if at, ok := o.get("backend"); ok {
		b := r.object(at)
		base.hasPrivate = b.has("allowPrivate") || b.has("allowAddresses")
		r.backendMembers(b, &base.BackendSettings)
		if cert, ok := b.get("clientCertFile"); ok && (o.has("tenants") || o.has("tenantsDir")) {
			r.warn(cert, shown(cert.text), "every tenant can have the gateway identify itself to a host of its choice", "write it under the backends that need it")
		}
		b.done()
	}
	api, hasAPI := o.get("adminApi")
	var section *object
	if hasAPI {
		section = r.object(api)
		r.storedSecrets(section, o, &f)
	}
	to := r.tenants(o, &f, &base, burstSet)
	if hasAPI {
		r.adminAPI(api, section, &f)
	}
	if to != nil {
		if to.stored {
			r.storedTenants(&f, to)
		}
		r.overlaps(to.list.members, f.Tenants)
	}
	o.done()
	if hasAuth && len(f.Tenants) > 0 && f.Tenants[0].Open {
		r.mistake(auth, "", "is for a file with tenants", "list tenants; the open tenant of this file looks at no credential")
	} else {
		r.mapped(maps, &f)
	}
	if hasListen && len(f.Tenants) == 1 && f.Tenants[0].Open && !isLoopbackAddress(f.Listen) {
		r.mistake(listen, shown(f.Listen),
			"is not a loopback address, and without tenants everyone who reaches it is admitted without a key",
			"write 127.0.0.1:8787, or list tenants with keys")
	}
	return &f
}

// address reads host:port. Port 0 means any free one.
func (r *reader) address(s spot, instead string) string {
	text, ok := r.text(s)
	if !ok {
		return instead
	}
	const example = `write host:port, such as "127.0.0.1:8787"`
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		r.mistake(s, shown(text), "is not host:port", example)
		return instead
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		r.mistake(s, shown(text), "has no port from 0 to 65535", example)
		return instead
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !isHostName(host) {
		r.mistake(s, shown(text), "has no usable host", example)
		return instead
	}
	return text
}

// admin reads the private listener's address; clients says whether client
// certificates are asked for there.
func (r *reader) admin(s spot, instead string, clients bool) string {
	// Off is one of the few words that a person writes without quotes although
	// YAML 1.1 makes a boolean of it; here it can mean one thing only.
	if s.text == "off" && s.kind == kindString {
		return "off"
	}
	if s.kind == kindString && s.text == "" || s.kind == kindBool {
		r.mistake(s, "", "is not an address", `write host:port, or "off" for no private listener`)
		return instead
	}
	a := r.address(s, instead)
	if !isLoopbackAddress(a) && !clients {
		r.unless(cause{file: r.main, of: "adminTLS.clientCAFile"}).warn(s, shown(a), "health, metrics and administration are served on an address that is not loopback, without authentication", "write a loopback address, or adminTLS with clientCAFile, or make sure that a network policy protects it")
	}
	return a
}

// isLoopbackAddress reports whether host:port can be reached from this machine only.
func isLoopbackAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && isLoopbackHost(host)
}

// isLoopbackHost reports whether host is localhost or literally a loopback
// address. Names are not resolved, because an answer can change.
func isLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Zone() == "" && !a.Is4In6() && a.IsLoopback()
}

func (r *reader) tls(s spot) TLS {
	o := r.object(s)
	cert, hasCert := o.need("certFile", "write the path of a PEM certificate chain")
	key, hasKey := o.need("keyFile", "write the path of its PEM private key")
	var clients TLS
	if at, ok := o.get("clientCAFile"); ok {
		clients = TLS{ClientCAFile: r.caFile(at), ClientAuth: "optional"}
	}
	o.choice("clientAuth", &clients.ClientAuth, "optional", "required")
	if o.has("clientAuth") && !o.has("clientCAFile") {
		r.unless(cause{file: r.main, of: "tls.clientCAFile"}).mistake(s, "", "clientAuth is there without clientCAFile", "write clientCAFile with the roots of client certificates, or remove clientAuth")
	}
	o.done()
	if !hasCert || !hasKey {
		return TLS{}
	}
	pair := r.keyPair(s, cert, key)
	clients.CertFile, clients.KeyFile = pair.CertFile, pair.KeyFile
	return clients
}

// clientCertificate reads the key pair that identifies the gateway to a backend.
func (r *reader) clientCertificate(o *object, b *BackendSettings) {
	cert, hasCert := o.get("clientCertFile")
	key, hasKey := o.get("clientKeyFile")
	switch {
	case hasCert && hasKey:
		pair := r.keyPair(cert, cert, key)
		b.ClientCertFile, b.ClientKeyFile = pair.CertFile, pair.KeyFile
	case hasCert:
		o.missing("clientKeyFile", "write the path of the PEM private key of clientCertFile")
	case hasKey:
		o.missing("clientCertFile", "write the path of the PEM certificate chain of clientKeyFile")
	}
}

// keyPair reads a certificate chain and its key; at is where a pair that does
// not fit together is reported.
func (r *reader) keyPair(at, cert, key spot) TLS {
	certPath, certPEM, okCert := r.pem(cert)
	keyPath, keyPEM, okKey := r.pem(key)
	if !okCert || !okKey {
		return TLS{}
	}
	if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil && !r.printed {
		// The error's text can quote from the key file.
		r.mistake(at, "", "the certificate and the key are not a usable pair", "write the paths of a PEM certificate chain and of the unencrypted PEM key that belongs to it")
	}
	return TLS{CertFile: certPath, KeyFile: keyPath}
}

// pem reads a file that the document names.
func (r *reader) pem(s spot) (path string, data []byte, ok bool) {
	const limit = 4 << 20
	path, ok = r.path(s)
	if !ok || r.printed {
		return path, nil, ok
	}
	data, err := r.read(path, limit)
	if err != nil {
		r.mistake(s, shown(s.text), "the file cannot be read, "+err.Error(), "write the path of a PEM file, relative to the "+r.role)
		return "", nil, false
	}
	return path, data, true
}

// path reads a file name and makes it absolute.
func (r *reader) path(s spot) (string, bool) {
	text, ok := r.text(s)
	if !ok {
		return "", false
	}
	if text == "" {
		r.mistake(s, "", "is an empty path", "write a path, or remove the key")
		return "", false
	}
	return r.resolve(text), true
}

func (r *reader) caFile(s spot) string {
	path, data, ok := r.pem(s)
	if ok && !r.printed && !x509.NewCertPool().AppendCertsFromPEM(data) {
		r.mistake(s, shown(s.text), "holds no certificate", "write the path of a PEM bundle of root certificates")
	}
	return path
}

// limits reads the limits and reports whether a burst is among them.
func (r *reader) limits(s spot, l *Limits) (burstSet bool) {
	o := r.object(s)
	o.size("body", &l.Body, 1)
	o.size("response", &l.Response, 1)
	o.size("headers", &l.Headers, kib)
	o.duration("readTimeout", &l.ReadTimeout)
	o.duration("writeTimeout", &l.WriteTimeout)
	o.duration("idleTimeout", &l.IdleTimeout)
	o.count("connections", &l.Connections, 1, maxCount)
	o.count("connectionsPerIP", &l.ConnectionsPerIP, 1, maxCount)
	o.count("inFlight", &l.InFlight, 1, maxCount)
	o.count("inFlightPerTenant", &l.InFlightPerTenant, 1, maxCount)
	o.rate(&l.Rate)
	burstSet = o.count("burst", &l.Burst, 1, maxCount)
	o.count("quotaDay", &l.QuotaDay, 0, maxCount)
	o.count("quotaMonth", &l.QuotaMonth, 0, maxCount)
	o.duration("budget", &l.Budget)
	o.count("observeQueue", &l.ObserveQueue, 1, maxCount)
	o.size("bodyBytes", &l.BodyBytes, 1)
	o.size("observeBytes", &l.ObserveBytes, 1)
	o.count("auditQueue", &l.AuditQueue, 1, maxCount)
	o.duration("drainTimeout", &l.DrainTimeout)
	o.done()
	if !burstSet {
		l.Burst = defaultBurst(l.Rate)
	}
	return burstSet
}

func (o *object) rate(dst *float64) bool {
	return o.number("rate", dst, "write requests per second, such as 50 or 0.5, or 0 for no limit",
		func(v float64) bool { return v == 0 || v >= 0.001 && v <= maxCount })
}

func (r *reader) failClosed(s spot, fc *FailClosed) {
	o := r.object(s)
	if at, ok := o.get("reason"); ok {
		if text, ok := r.text(at); ok {
			if strings.TrimSpace(text) == "" || len(text) > 1024 || strings.ContainsFunc(text, unicode.IsControl) {
				r.mistake(at, shown(text), "is empty, longer than 1024 bytes, or holds control characters", "write one line that says to a person that a policy could not be checked")
			} else {
				fc.Reason = text
			}
		}
	}
	if at, ok := o.get("code"); ok {
		if text, ok := r.text(at); ok {
			if !isReverseDNS(text) {
				r.mistake(at, shown(text), "is not a reverse-DNS name", `write one such as "com.example.policy_unavailable"`)
			} else {
				fc.Code = text
			}
		}
	}
	o.done()
}

func (r *reader) audit(s spot, a *Audit) {
	o := r.object(s)
	if at, ok := o.get("file"); ok {
		if path, ok := r.path(at); ok {
			a.File = path
		}
	}
	o.boolean("stdout", &a.Stdout)
	o.choice("overflow", &a.Overflow, "drop", "block")
	o.boolean("inputs", &a.Inputs)
	o.done()
}
