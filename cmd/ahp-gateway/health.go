package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// healthTimeout is the default of health --timeout.
const healthTimeout = 3 * time.Second

type healthOptions struct {
	url, config string
	timeout     time.Duration
	tls         tlsFiles
}

func (p program) healthCommand() *cobra.Command {
	var o healthOptions
	cmd := &cobra.Command{
		Use:   "health [--config FILE | --url URL]",
		Short: "Ask a running gateway whether it serves events",
		Long: `Asks /readyz of a gateway's private listener and prints the answer. It is what a
container's health check or a script runs where there is no other HTTP client.

--config names the gateway file: of it, the address of the private listener and
the certificate that adminTLS serves there are read, and nothing else, so that a
mistake that is being made elsewhere in the file does not matter. An answer over
TLS counts only from that very certificate. --url names the private listener
itself; its certificate is then checked as usual. Without either, the gateway of
http://127.0.0.1:8788 is asked. No proxy is used.

Exit codes: 0 events are served, 1 they are not or nothing answered, 2 wrong usage.`,
		Example: `  ahp-gateway health
  ahp-gateway health --config /etc/ahp-gateway/gateway.yaml
  ahp-gateway health --url https://gateway.internal:8788 --ca-file roots.pem`,
		Args: noArguments("--url %s"),
		RunE: action(func(ctx context.Context) error { return p.health(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVarP(&o.config, "config", "c", "", "gateway file that says where its private listener is")
	f.StringVar(&o.url, "url", "", "URL of the private listener, such as http://127.0.0.1:8788")
	f.DurationVar(&o.timeout, "timeout", healthTimeout, "how long to wait for the answer")
	o.tls.flags(f, "PEM client certificate; health needs none")
	return cmd
}

func (p program) health(ctx context.Context, o healthOptions) error {
	switch {
	case o.config != "" && o.url != "":
		return usage("--config and --url are both given; write one of them")
	case o.timeout <= 0:
		return usage("--timeout is %v; want a duration such as 3s", o.timeout)
	}
	client, err := o.tls.client()
	if err != nil {
		return err
	}
	transport := client.Transport.(*http.Transport)
	transport.Proxy = nil
	where, flag := "http://127.0.0.1:8788", "--url"
	switch {
	case o.url != "":
		u, err := listenerURL(flag, o.url, "leave it out, for health needs none")
		if err != nil {
			return err
		}
		where = strings.TrimSuffix(u.String(), "/")
	case o.config != "":
		flag = "admin of " + o.config
		if where, err = p.privateListener(o.config, transport.TLSClientConfig); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where+"/readyz", nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "ahp-gateway/"+programVersion())
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no answer: %w", unanswered(err, flag))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	if err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	said := printable(strings.TrimSpace(string(body)))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d: %s", resp.StatusCode, said)
	}
	return write(p.stdout, []byte(said+"\n"))
}

// maxHealth bounds what is read, and shown, of an answer about health.
const maxHealth = 4 << 10

// privateListener returns the URL of the private listener that a gateway file
// describes, and has c take an answer from its certificate alone.
func (p program) privateListener(path string, c *tls.Config) (string, error) {
	l, err := config.LoadPrivate(path)
	if err != nil {
		p.report(nil, err)
		return "", &exit{code: exitFailure}
	}
	if l.Address == "off" {
		return "", fmt.Errorf("%s has no private listener to ask; write an address for admin in place of off", path)
	}
	host, port, err := net.SplitHostPort(l.Address)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", fmt.Errorf("%s leaves the port of admin open; write the URL that serve logged as --url", path)
	}
	// What listens on every address answers on loopback too.
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
	if l.CertFile == "" {
		return u.String(), nil
	}
	u.Scheme = "https"
	chain, err := os.ReadFile(l.CertFile)
	if err != nil {
		return "", fmt.Errorf("adminTLS.certFile: %w", err)
	}
	block, rest := pem.Decode(chain)
	for block != nil && block.Type != "CERTIFICATE" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return "", errors.New("adminTLS.certFile holds no PEM certificate")
	}
	// The certificate need not be for the address that is asked, nor come from
	// roots that are known here: it has to be the one that the gateway serves.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes) {
			return errors.New("its certificate is not the first of adminTLS.certFile")
		}
		return nil
	}
	return u.String(), nil
}
