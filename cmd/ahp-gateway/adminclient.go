package main

import (
	"bytes"
	"context"
	"crypto/tls"
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
	base, err := adminURL(o.admin)
	if err != nil {
		return nil, err
	}
	if (o.certFile == "") != (o.keyFile == "") {
		return nil, usage("--cert-file and --key-file are needed together")
	}
	key := ""
	switch {
	case o.keyEnv == "" && o.certFile == "":
		return nil, usage("--key-env is needed")
	case o.certFile == "" || os.Getenv(o.keyEnv) != "":
		if key, err = bearerKey(&sendOptions{keyEnv: o.keyEnv, allowHTTP: o.allowHTTP}, base); err != nil {
			return nil, err
		}
	}
	client, err := newClient(o.caFile)
	if err != nil {
		return nil, err
	}
	if o.certFile != "" {
		pair, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
		if err != nil {
			return nil, errors.New("--cert-file and --key-file are no usable pair of PEM files")
		}
		client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return &adminClient{base: strings.TrimSuffix(base.String(), "/") + admin.Prefix, key: key, http: client}, nil
}

// adminURL returns where the private listener is. Its errors never quote a URL
// that could hold a password.
func adminURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, usage("--admin is no URL; want http://HOST:PORT or https://HOST")
	case u.User != nil:
		return nil, usage("--admin holds a user name or password; name the variable of the admin key with --key-env")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Fragment != "", u.RawQuery != "":
		return nil, usage("--admin is %.128q; want http://HOST:PORT or https://HOST", raw)
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
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, fmt.Errorf("no answer: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	if len(answer) > maxAnswer {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	return &adminAnswer{resp.StatusCode, resp.Header.Get("ETag"), answer}, nil
}

// read reads an answer's body.
func (a *adminAnswer) read(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return errors.New("the answer is not one of an ahp-gateway's admin API")
	}
	return nil
}

// refusal reports what went wrong, if anything did: mistakes on standard error,
// one per line, and the rest as an error. name is what the document is called.
func (p program) refusal(a *adminAnswer, name string) error {
	if a.status >= 200 && a.status < 300 {
		return nil
	}
	var problem admin.Problem
	if err := a.read(&problem); err != nil || problem.Title == "" {
		if a.status == http.StatusNotFound {
			return errors.New("HTTP 404: there is no admin API; has the gateway file adminApi, and is --admin its private listener?")
		}
		return fmt.Errorf("HTTP %d", a.status)
	}
	for _, m := range problem.Mistakes {
		if m.File == "" {
			m.File = name
		}
		fmt.Fprintln(p.stderr, printable(m.String()))
	}
	return errors.New(printable(strings.TrimSpace(fmt.Sprintf("HTTP %d: %s %s", a.status, problem.Title, problem.Detail))))
}
