package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/admin"
)

// adminClient calls the admin API of one gateway.
type adminClient struct {
	base, key string
	http      *http.Client
}

func newAdminClient(o *tenantOptions) (*adminClient, error) {
	base, err := listenerURL("--admin", o.admin, "name the variable of the admin key with --key-env")
	if err != nil {
		return nil, err
	}
	client, err := o.tls.client()
	if err != nil {
		return nil, err
	}
	key := ""
	switch {
	case o.keyEnv == "" && o.tls.cert == "":
		return nil, usage("--key-env is needed; write the name of the environment variable that holds the admin key, or --cert-file and --key-file")
	case o.tls.cert == "" && os.Getenv(o.keyEnv) == "":
		return nil, usage("the environment variable %.128q, which --key-env names, is not set or empty; set it to a key of adminApi.keys, or write --cert-file and --key-file", o.keyEnv)
	case os.Getenv(o.keyEnv) != "":
		if key, err = bearerKey(&sendOptions{keyEnv: o.keyEnv, allowHTTP: o.allowHTTP}, base); err != nil {
			return nil, err
		}
	}
	return &adminClient{base: strings.TrimSuffix(base.String(), "/") + admin.Prefix, key: key, http: client}, nil
}

// listenerURL returns where the private listener is, as the flag says. Its errors
// never quote a URL that could hold a password; instead is what to do about one.
func listenerURL(flag, raw, instead string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, usage("%s is no URL; want http://HOST:PORT or https://HOST", flag)
	case u.User != nil:
		return nil, usage("%s holds a user name or password; %s", flag, instead)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Fragment != "", u.RawQuery != "":
		return nil, usage("%s is %.128q; want http://HOST:PORT or https://HOST", flag, raw)
	}
	return u, nil
}

// segment returns s as one segment of a path or value of a query.
func segment(s string) string { return url.QueryEscape(s) }

// adminAnswer is what the API has answered.
type adminAnswer struct {
	status int
	etag   string
	body   []byte
	key    string // that was sent, and is not shown
	secret string // likewise
}

// said returns what was answered in place of the API, for the end of a message.
// Who got a secret may have sent any part of it back.
func (a *adminAnswer) said() string {
	if a.secret != "" {
		return ""
	}
	return quotedLine(a.body, a.key)
}

// shown returns what a problem says, fit for a line of a message.
func (a *adminAnswer) shown(text string) string {
	for _, sent := range [...]string{a.key, a.secret} {
		if sent != "" {
			text = strings.ReplaceAll(text, sent, "[sent]")
		}
	}
	return printable(text)
}

// do calls the API. A document is sent as what it looks like.
func (c *adminClient) do(ctx context.Context, method, path string, document []byte, match string) (*adminAnswer, error) {
	mediaType := ""
	if document != nil {
		mediaType = "application/yaml"
		if bytes.HasPrefix(bytes.TrimLeft(document, " \t\r\n"), []byte("{")) {
			mediaType = "application/json"
		}
	}
	return c.send(ctx, method, path, mediaType, document, match)
}

// secretType is the media type of a secret.
const secretType = "application/octet-stream"

// send calls the API with a body of some media type, "" for none.
func (c *adminClient) send(ctx context.Context, method, path, mediaType string, body []byte, match string) (*adminAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	req.Header.Set("User-Agent", "ahp-gateway/"+programVersion())
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	if match != "" {
		req.Header.Set("If-Match", match)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", unanswered(err, "--admin"))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w; ask again, for a change may have been made", err)
	}
	if len(answer) > maxAnswer {
		return nil, fmt.Errorf("the answer is larger than %d bytes; see that --admin is the private listener of an ahp-gateway", maxAnswer)
	}
	a := &adminAnswer{status: resp.StatusCode, etag: resp.Header.Get("ETag"), body: answer, key: c.key}
	if mediaType == secretType {
		a.secret = string(body)
	}
	return a, nil
}

// read reads an answer's body.
func (a *adminAnswer) read(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("HTTP %d: the answer is not one of an ahp-gateway's admin API%s; see that --admin is its private listener", a.status, a.said())
	}
	return nil
}

// problem reads the answer to a request that failed, or returns an error that says
// what answered in place of the API.
func (a *adminAnswer) problem() (admin.Problem, error) {
	var problem admin.Problem
	if err := json.Unmarshal(a.body, &problem); err == nil && problem.Title != "" {
		return problem, nil
	}
	said := a.said()
	switch {
	case a.status == http.StatusNotFound:
		return problem, fmt.Errorf("HTTP 404: there is no admin API%s; write adminApi in the gateway file, and its private listener as --admin", said)
	case a.status >= 300 && a.status < 400:
		return problem, fmt.Errorf("HTTP %d: that is a redirect, and none is followed%s; write the URL of the private listener itself as --admin", a.status, said)
	case a.status == http.StatusBadRequest && bytes.Contains(a.body, []byte("HTTP request to an HTTPS server")):
		return problem, errors.New("HTTP 400: the private listener has TLS; write https:// in --admin, and --ca-file if its roots are its own")
	case a.status == http.StatusForbidden && bytes.Contains(a.body, []byte("client certificate")):
		return problem, errors.New("HTTP 403: the listener needs a client certificate that it accepts; write --cert-file and --key-file")
	default:
		return problem, fmt.Errorf("HTTP %d: what answers is not the admin API%s; see what stands between, and that --admin is the private listener", a.status, said)
	}
}

// refusal reports what went wrong, if anything did: mistakes on standard error,
// one per line, and the rest as an error. name is what the document is called.
func (p program) refusal(a *adminAnswer, name string) error {
	if a.status >= 200 && a.status < 300 {
		return nil
	}
	problem, err := a.problem()
	if err != nil {
		return err
	}
	for _, m := range problem.Mistakes {
		if m.File == "" {
			m.File = name
		}
		fmt.Fprintln(p.stderr, a.shown(m.String()))
	}
	return errors.New(a.shown(strings.TrimSpace(fmt.Sprintf("HTTP %d: %s %s", a.status, problem.Title, problem.Detail))))
}
