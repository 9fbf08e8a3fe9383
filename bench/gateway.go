package main

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ahp-gateway/ahp-gateway/bench/load"
)

// settings are those of one gateway. The zero value calls one backend in
// snapshot 0.1 for one open tenant, with everything off that can be.
type settings struct {
	draft   bool
	effects bool // what backends may answer beside a deny, in draft
	chain   []string
	timeout time.Duration // of each backend; default 5s
	open    bool          // failures pass
	tenants int           // with a key each; 0 is one open tenant
	limits  bool          // a rate, which is never reached
	dedupe  bool
	breaker bool
	audit   bool
	traced  string // share of requests; "" is off
	sink    string // where traces go
	tls     bool
	body    string // limit of a body
	program string // the gateway's binary, if it is not the one under measurement
}

// everything is s with everything on.
func (s settings) everything(sink string) settings {
	s.tenants, s.limits, s.dedupe, s.breaker, s.audit, s.traced, s.sink = max(s.tenants, 1), true, true, true, true, "0.01", sink
	return s
}

// gatewayProcess is a gateway under way and how to reach it.
type gatewayProcess struct {
	*process
	settings
	admin string
	trust *tls.Config
}

// gateway starts a gateway with these settings.
func (l *lab) startGateway(name string, s settings) (*gatewayProcess, error) {
	g := &gatewayProcess{settings: s}
	admin, err := freePort()
	if err != nil {
		return nil, err
	}
	g.admin = "http://" + admin
	var b strings.Builder
	fmt.Fprintf(&b, "listen: 127.0.0.1:0\nadmin: %s\n", admin)
	fmt.Fprintf(&b, "limits: {inFlight: 100000, inFlightPerTenant: 100000, connectionsPerIP: 100000, idleTimeout: 1h")
	if s.limits {
		fmt.Fprintf(&b, ", rate: 1000000, burst: 1000000")
	}
	if s.body != "" {
		fmt.Fprintf(&b, ", body: %s", s.body)
	}
	fmt.Fprintf(&b, "}\nbreaker: {enabled: %v}\n", s.breaker)
	if !s.dedupe {
		fmt.Fprintf(&b, "dedupe: {entries: 0}\n")
	}
	if s.audit {
		fmt.Fprintf(&b, "audit: {file: %s}\n", name+".audit.jsonl")
	}
	if s.tls {
		certificate, key, pool, err := selfSigned()
		if err != nil {
			return nil, err
		}
		if err := l.write(name+".crt", certificate); err != nil {
			return nil, err
		}
		if err := l.write(name+".key", key); err != nil {
			return nil, err
		}
		g.trust = &tls.Config{RootCAs: pool, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(0)}
		fmt.Fprintf(&b, "tls: {certFile: %s.crt, keyFile: %s.key}\n", name, name)
	}
	if s.tenants == 0 {
		fmt.Fprintf(&b, "registration: %s\n", s.registration())
	} else {
		fmt.Fprintf(&b, "tenants:\n")
		for i := range s.tenants {
			fmt.Fprintf(&b, "  - {id: %s, keys: [{sha256: %x}], registration: %s}\n", tenant(i), sha256.Sum256([]byte(key(i))), s.registration())
		}
	}
	if err := l.write(name+".yaml", []byte(b.String())); err != nil {
		return nil, err
	}
	var env []string
	if s.traced != "" {
		env = []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + hostOf(s.sink),
			"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=" + s.traced}
	}
	g.process, err = l.start(name, "", env, cmp.Or(s.program, l.gateway), "serve", "--config", name+".yaml")
	return g, err
}

func tenant(i int) string { return fmt.Sprintf("tenant-%05d", i) }
func key(i int) string    { return fmt.Sprintf("ahp_key_of_%s", tenant(i)) }

// registration returns the document of a tenant, as JSON in one line.
func (s settings) registration() string {
	version, content, policy, timeout := "0.1", "", "fail-closed", 5*time.Second
	if s.draft {
		version, content = "draft", `,"content":{"default":"body"}`
	}
	if s.open {
		policy = "fail-open"
	}
	if s.timeout > 0 {
		timeout = s.timeout
	}
	hooks := []string{}
	for i, url := range s.chain {
		hooks = append(hooks, fmt.Sprintf(`{"id":"com.example.b%d","transport":{"type":"http","url":%q},"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":%d,"failurePolicy":%q%s}]}`,
			i, url, timeout.Milliseconds(), policy, content))
	}
	if len(hooks) == 0 { // a document is not empty
		hooks = append(hooks, fmt.Sprintf(`{"id":"com.example.none","transport":{"type":"http","url":"http://127.0.0.1:9/"},"subscriptions":[{"events":["session.end"],"mode":"observe"%s}]}`, content))
	}
	return fmt.Sprintf(`{"protocolVersion":%q,"hooks":[%s]}`, version, strings.Join(hooks, ","))
}

// target is g under events of about that size.
func (g *gatewayProcess) target(size int) load.Target {
	body := event(g.draft, g.effects, size)
	o := load.Target{Address: hostOf(g.url), TLS: g.trust, Accept: decided}
	for i := range max(g.tenants, 1) {
		var headers []string
		if g.tenants > 0 {
			headers = append(headers, "Authorization: Bearer "+key(i))
		}
		o.Templates = append(o.Templates, load.NewTemplate(o.Address, "/hooks", body, headers...))
	}
	return o
}

// event is a hooks/intercept of about size bytes.
func event(draft, effects bool, size int) []byte {
	const id = load.Placeholder
	version, more, capabilities := "0.1", `"tool":{"callId":"call-1","name":"Bash","kind":"shell",`, `{"effects":["deny"]}`
	if draft {
		version, more = "draft", `"harness":{"name":"bench","version":"1"},"call":{"id":"call-1"},"path":"native","tool":{"name":"Bash","origin":"native",`
		if effects {
			capabilities = `{"effects":["deny","modify","message"],"modify":{"input":{"replace":true,"merge":true}}}`
		}
	}
	head := `{"jsonrpc":"2.0","id":"` + id + `","method":"hooks/intercept","params":{"protocolVersion":"` + version + `","event":{"id":"` + id +
		`","source":"urn:example:bench","type":"tool.before","time":"2026-01-02T03:04:05Z","session":{"id":"session-1"},` + more + `"input":{"command":"git push","text":"`
	tail := `"}}},"capabilities":` + capabilities + `}}`
	const line = "The quick brown fox jumps over the lazy dog. "
	fill := max(0, size-len(head)-len(tail))
	return []byte(head + strings.Repeat(line, fill/len(line)+1)[:fill] + tail)
}

func (l *lab) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(l.dir, name), content, 0o600)
}

// freePort returns an address on which nobody listens now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// selfSigned returns a certificate for localhost, its key, and what trusts it.
func selfSigned() (certificate, key []byte, pool *x509.CertPool, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return certificate, key, pool, nil
}
