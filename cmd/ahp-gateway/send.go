package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/gateway"
)

const (
	sendName = "send"
	// maxMessage is the largest message that is read from a file, in bytes.
	maxMessage = 16 << 20
	// maxAnswer is the largest answer that is read, in bytes.
	maxAnswer = 4 << 20
)

type sendOptions struct {
	url, keyEnv, caFile string
	allowHTTP           bool
	timeout             time.Duration
	format, expect      string

	file string

	protocol, tool, kind, input, command, session, eventID, source, effects string
}

func (p program) sendCommand() *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:   sendName + " --url URL [--file FILE | event flags]",
		Short: "Post an event and print the decision",
		Long: `Posts one message to a gateway, or to any policy backend, and prints what it
decided. The message is a tool.before event made from flags, or a JSON-RPC message
from a file ("-" is standard input): a hooks/intercept; a hooks/observe, which is
accepted without a decision; or a hooks/configuration or hooks/capabilities, whose
answer is printed.

An answer may hold only effects that the event's capabilities advertise. An event
made from flags advertises all that its snapshot lets a backend answer, or those in
--effects. What an effect changes is shown with --format json.

The bearer key is read from the environment variable that --key-env names. It is
never printed, and not sent over plain http to another machine unless --allow-http
is given.

Exit codes: 0 pass, or a message without a decision was taken; 2 deny; 3 ask or
changed; 1 anything else: an error answer, no answer, and also wrong usage. With
--expect 0 if that is the decision, and 1 otherwise, for scripts and jobs that
have no shell to look at another code.`,
		Example: `  ahp-gateway send --url http://127.0.0.1:8787 --command 'git push --force'
  ahp-gateway send --url https://hooks.example.com --key-env AHP_KEY \
      --protocol-version draft --tool Write --kind file_write --input '{"path":"/etc/passwd"}'
  ahp-gateway send --url http://127.0.0.1:8787 --file event.json --format json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage("takes no arguments: write --command %s", quote(strings.Join(args, " ")))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.url, "url", "", "where to post; /hooks is added where there is no path (required)")
	f.StringVar(&o.keyEnv, "key-env", "", "environment variable that holds the bearer key")
	f.StringVar(&o.caFile, "ca-file", "", "PEM bundle in place of the platform's trust roots")
	f.BoolVar(&o.allowHTTP, "allow-http", false, "send the key over plain http to another machine")
	f.DurationVar(&o.timeout, "timeout", 35*time.Second, "for everything")
	f.StringVar(&o.format, "format", "text", "text or json")
	f.StringVar(&o.expect, "expect", "", "pass, deny, ask or changed: exit with 0 for this decision and no other")
	f.StringVarP(&o.file, "file", "f", "", `post this JSON-RPC message; "-" is standard input`)
	events := []string{"protocol-version", "tool", "kind", "input", "command", "session", "event-id", "source", "effects"}
	f.StringVar(&o.protocol, "protocol-version", ahp.V01.String(), "snapshot of the protocol: 0.1 or draft")
	f.StringVar(&o.tool, "tool", "", `name of the tool (default "Bash")`)
	f.StringVar(&o.kind, "kind", "", `kind of the tool (default "shell")`)
	f.StringVar(&o.input, "input", "", "the tool's input, a JSON object (default {})")
	f.StringVar(&o.command, "command", "", `short for --input '{"command": "…"}'`)
	f.StringVar(&o.session, "session", "", "session id (default a random one)")
	f.StringVar(&o.eventID, "event-id", "", "event id (default a random one)")
	f.StringVar(&o.source, "source", "", `the event's source, a URI (default "urn:ahp-gateway:send")`)
	f.StringVar(&o.effects, "effects", "", "effects to advertise, such as deny,ask,modify (default all; 0.1 has deny alone)")
	cmd.MarkFlagsMutuallyExclusive("input", "command")
	for _, name := range events {
		cmd.MarkFlagsMutuallyExclusive("file", name)
	}
	cmd.RunE = action(func(ctx context.Context) error { return p.send(ctx, &o) })
	return cmd
}

func (p program) send(ctx context.Context, o *sendOptions) error {
	if o.format != "text" && o.format != "json" {
		return usage("--format is %.64q; want text or json", o.format)
	}
	if o.timeout <= 0 {
		return usage("--timeout is %v; want a time above zero", o.timeout)
	}
	if !slices.Contains([]string{"", "pass", "deny", "ask", "changed"}, o.expect) {
		return usage("--expect is %.64q; want pass, deny, ask or changed", o.expect)
	}
	target, err := targetURL(o.url)
	if err != nil {
		return err
	}
	key, err := bearerKey(o, target)
	if err != nil {
		return err
	}
	body, err := p.message(o)
	if err != nil {
		return err
	}
	v := ask(ctx, o, target, key, body)
	// A backend can put anything into its answer, the key it was sent included.
	v.redact(key)
	out := v.text()
	if o.format == "json" {
		out = marshal(v)
	}
	if err := write(p.stdout, append(out, '\n')); err != nil {
		return err
	}
	code := v.exitCode()
	if o.expect != "" {
		code = exitFailure
		if v.Decision == o.expect {
			code = 0
		}
	}
	if code != 0 {
		return &exit{code: code}
	}
	return nil
}

// ask sends the message and returns what became of it.
func ask(ctx context.Context, o *sendOptions, target *url.URL, key string, body []byte) *verdict {
	var m ahp.Message
	if err := ahp.Decode(body, &m); err != nil {
		return failed("the message is not valid: %s%s", err.Message, expected(body, &m, err))
	}
	client, err := newClient(o.caFile)
	if err != nil {
		return failed("%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return failed("%v", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "ahp-gateway/"+programVersion())
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the URL is known, and not everything in it is for a log
		}
		return failed("no answer: %v", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return failed("the answer broke off: %v", err)
	}
	if len(answer) > maxAnswer {
		return failed("the answer is larger than %d bytes", maxAnswer)
	}
	v := judge(&m, resp, answer)
	if v.otherVersions && o.file == "" {
		v.Message += " (--protocol-version)"
	}
	return v
}

// expected returns what a message that ahp.Decode has refused should have said
// of its capabilities, where those are at fault and the event is a known one.
func expected(body []byte, m *ahp.Message, err *ahp.Error) string {
	const path = "params.capabilities"
	if !strings.HasPrefix(err.Message, path) {
		return ""
	}
	form := []byte(`{"effects":["deny"]}`)
	if m.Version == ahp.Draft {
		name := ahp.Text(ahp.Member(ahp.Member(ahp.Member(body, "params"), "event"), "type"))
		event, ok := ahp.LookupEvent(ahp.Draft, string(name))
		if !ok || !event.Interceptable(ahp.Draft) {
			return ""
		}
		form = marshal(gateway.Capabilities(event, gateway.EveryEffect))
	}
	return fmt.Sprintf("; want %s to be all or some of %s", path, form)
}

// message returns the message to post.
func (p program) message(o *sendOptions) ([]byte, error) {
	switch o.file {
	case "":
		v, ok := ahp.ParseVersion(o.protocol)
		if !ok {
			return nil, usage("--protocol-version is %.64q; want 0.1 or draft", o.protocol)
		}
		e := newEvent(v)
		if err := e.fill(o); err != nil {
			return nil, err
		}
		return e.message(), nil
	case "-":
		return readMessage(p.stdin)
	default:
		f, err := os.Open(o.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readMessage(f)
	}
}

func readMessage(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
	if err != nil {
		return nil, fmt.Errorf("the message cannot be read: %w", err)
	}
	if len(body) > maxMessage {
		return nil, fmt.Errorf("the message is larger than %d bytes", maxMessage)
	}
	return body, nil
}

// targetURL returns where to post. Its errors never quote a URL that could hold
// a password.
func targetURL(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, usage("--url is needed")
	}
	full := raw
	bare := !strings.Contains(raw, "://") // host:port would be read as a scheme, or not at all
	if bare {
		full = "http://" + raw
	}
	u, err := url.Parse(full)
	switch {
	case err != nil || bare && u.Hostname() == "":
		return nil, usage("--url is no URL; want http://HOST:PORT or https://HOST")
	case u.User != nil:
		return nil, usage("--url holds a user name or password; name the variable of a bearer key with --key-env")
	case bare:
		return nil, usage("--url is %.128q, without a scheme; write %.128s", raw, full)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Fragment != "":
		return nil, usage("--url is %.128q; want http://HOST:PORT or https://HOST", raw)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/hooks"
	}
	return u, nil
}

// bearerKey returns the key to send, or "".
func bearerKey(o *sendOptions, target *url.URL) (string, error) {
	if o.keyEnv == "" {
		return "", nil
	}
	key := strings.TrimSpace(os.Getenv(o.keyEnv))
	switch {
	case key == "":
		return "", usage("the environment variable %.128q, which --key-env names, is not set or empty", o.keyEnv)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", usage("the key in %.128q holds characters that a header cannot", o.keyEnv)
	case target.Scheme == "http" && !o.allowHTTP && !isLoopback(hostPort(target)):
		return "", usage("the key would travel over plain http to another machine; use https, or --allow-http where the network is trusted")
	}
	return key, nil
}

func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return u.Host + ":80"
}

// newClient returns a client for one request, which follows no redirect: the
// key is for the URL that was given, and the protocol forbids it.
func newClient(caFile string) (*http.Client, error) {
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, errors.New("--ca-file holds no PEM certificate; write the path of a PEM bundle of root certificates")
		}
		transport.TLSClientConfig.RootCAs = roots
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// isJSON reports whether a Content-Type is that of a JSON-RPC message.
func isJSON(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == "application/json"
}
