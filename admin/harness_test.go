package admin_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/sealed"
)

const (
	adminKey    = "admin-key-0123456789abcdef"
	otherKey    = "other-admin-key-0123456789"
	gatewayFile = `
tenantsDir: tenants
adminApi: {keys: [{env: ADMIN_KEY}, {env: OTHER_ADMIN_KEY}]}
tenants:
  - id: listed
    keys: [{sha256: "1111111111111111111111111111111111111111111111111111111111111111"}]
    registration: {protocolVersion: "0.1", hooks: [{id: com.example.policy, transport: {type: http, url: "https://policy.example.com",
      headers: {X-Team-Token: hunter2}}, subscriptions: [{events: [tool.after], mode: observe}]}]}
`
	registration = `{"protocolVersion": "0.1", "hooks": [{"id": "com.example.policy", "transport": {"type": "http", "url": "https://policy.example.com"},
  "subscriptions": [{"events": ["tool.after"], "mode": "observe"}]}]}`
)

func environ(name string) (string, bool) {
	v, ok := map[string]string{"ADMIN_KEY": adminKey, "OTHER_ADMIN_KEY": otherKey, "ACME_KEY": "0123456789abcdef",
		"SECRETS_KEY": strings.Repeat("5e", 32), "NEW_SECRETS_KEY": strings.Repeat("a7", 32)}[name]
	return v, ok
}

// document is a tenant with one key, and with more members.
func document(id, key string, more ...string) string {
	return fmt.Sprintf(`{"id": %q, "keys": [{"sha256": "%x"}], "registration": %s%s}`, id, sha256.Sum256([]byte(key)), registration, strings.Join(more, ""))
}

// rig is an API over a folder, whose changes are applied to a configuration
// that no gateway serves.
type rig struct {
	t     testing.TB
	dir   string
	api   *admin.API
	store admin.Store
	spec  *openapi3.T
	seen  map[string]bool // operations with a status

	mu         sync.Mutex
	loader     *config.Loader
	file       *config.File
	generation uint64
	records    []*audit.Record
	// failure is what a change comes to, if it is set.
	failure error
	// meanwhile is called when a change is about to be put in place.
	meanwhile func()
	// begun is called when a change is about to begin.
	begun func()
	// refuse is why no change can be served.
	refuse error
}

func newRig(t testing.TB, files ...string) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), generation: 1, seen: make(map[string]bool)}
	if err := os.Mkdir(r.tenants(""), 0o700); err != nil {
		t.Fatal(err)
	}
	r.write("gateway.yaml", gatewayFile)
	for i := 0; i < len(files); i += 2 {
		r.write(files[i], files[i+1])
	}
	r.loader = config.NewLoader(filepath.Join(r.dir, "gateway.yaml"), environ)
	var err error
	if r.store, err = admin.OpenFolder(r.tenants("")); err != nil {
		t.Fatal(err)
	}
	r.api = admin.New(admin.Options{Apply: r.apply, Record: func(rec *audit.Record) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.records = append(r.records, rec)
	}})
	r.use()
	return r
}

// use has the API go by what the files say now.
func (r *rig) use() {
	r.t.Helper()
	f, _, err := r.loader.Load()
	if err != nil {
		r.t.Fatal(err)
	}
	r.file = f
	if err := r.api.Use(f, r.store, r.secrets(f), false); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) secrets(f *config.File) *sealed.Folder {
	r.t.Helper()
	secrets, err := f.AdminAPI.Secrets(environ)
	if err != nil {
		r.t.Fatal(err)
	}
	return secrets
}

func (r *rig) apply(ctx context.Context, c admin.Change) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if r.failure != nil {
		return 0, r.failure
	}
	if r.begun != nil {
		r.begun()
	}
	undo := func() error { return nil }
	if c.Begin != nil {
		var err error
		if undo, err = c.Begin(); err != nil {
			return 0, err
		}
	}
	f, warnings, err := r.loader.LoadWith(c.Change)
	if err == nil {
		err = c.Check(warnings)
	}
	if err == nil && r.refuse != nil {
		err = r.refuse
	}
	if err != nil {
		return 0, errors.Join(err, undo())
	}
	if r.meanwhile != nil {
		r.meanwhile()
	}
	if err := c.Commit(); err != nil {
		return 0, err
	}
	r.file = f
	r.generation++
	return r.generation, r.api.Use(f, r.store, r.secrets(f), false)
}

func (r *rig) tenants(name string) string { return filepath.Join(r.dir, "tenants", name) }

func (r *rig) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) read(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

// reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	body   string
	admin.Result
	admin.Problem
	admin.Page
}

// request is a request with the admin key, and with header lines "Name: value"
// of which an empty value takes the header away.
func request(method, path, body string, headers ...string) *http.Request {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+adminKey)
	if body != "" || method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if value == "" {
			req.Header.Del(name)
		} else {
			req.Header.Set(name, value)
		}
	}
	return req
}

func (r *rig) do(method, path, body string, headers ...string) *reply {
	r.t.Helper()
	return r.serve(request(method, "/admin/v1/"+path, body, headers...))
}

// serve has the API answer, and holds the answer against its description.
func (r *rig) serve(req *http.Request) *reply {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, req)
	a := &reply{status: w.Code, header: w.Header(), body: w.Body.String()}
	r.describe(req, a)
	if strings.HasSuffix(w.Header().Get("Content-Type"), "json") {
		for _, v := range []any{&a.Result, &a.Problem, &a.Page} {
			// The members of one are not all of the kind that they are in another.
			_ = json.Unmarshal(w.Body.Bytes(), v)
		}
		// What is refused says what to do, to people who do not know the program.
		if a.status >= 400 && a.Detail == "" && len(a.Mistakes) == 0 || strings.Contains(a.Detail, "admin: ") || strings.Contains(a.Detail, "sealed: ") {
			r.t.Errorf("%s %s = %s; want a detail that says what to do", req.Method, req.URL, a.body)
		}
	}
	return a
}

// describe fails the test unless openapi.yaml knows the answer.
func (r *rig) describe(req *http.Request, a *reply) {
	r.t.Helper()
	if r.spec == nil {
		r.spec = r.loadSpec()
	}
	path, item, params := r.find(req.URL.EscapedPath())
	if item == nil || item.GetOperation(req.Method) == nil {
		schema := r.spec.Components.Schemas["Problem"].Value
		var v any
		if err := json.Unmarshal([]byte(a.body), &v); err != nil || schema.VisitJSON(v) != nil || a.status != 404 && a.status != 405 && a.status != 401 && a.status != 403 {
			r.t.Errorf("%s %s = %d %s; want a problem of an address or method that there is not", req.Method, req.URL, a.status, a.body)
		}
		return
	}
	operation := item.GetOperation(req.Method)
	r.seen[fmt.Sprint(operation.OperationID, " ", a.status)] = true
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: req, PathParams: params,
			Route: &routers.Route{Spec: r.spec, Path: path, PathItem: item, Method: req.Method, Operation: operation},
		},
		Status: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		r.t.Errorf("%s %s = %d %s, which openapi.yaml does not know: %v", req.Method, req.URL, a.status, a.body, err)
	}
}

func (r *rig) loadSpec() *openapi3.T {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, request(http.MethodGet, "/admin/v1/openapi.yaml", ""))
	spec, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err != nil {
		r.t.Fatal(err)
	}
	return spec
}

// find returns the described path that a path is of.
func (r *rig) find(path string) (template string, item *openapi3.PathItem, params map[string]string) {
	parts := strings.Split(path, "/")
	for template, item := range r.spec.Paths.Map() {
		names := strings.Split(template, "/")
		if len(names) != len(parts) {
			continue
		}
		params, match := make(map[string]string), true
		for i, name := range names {
			if strings.HasPrefix(name, "{") {
				params[strings.Trim(name, "{}")] = parts[i]
				match = match && parts[i] != ""
			} else {
				match = match && name == parts[i]
			}
		}
		if match && (params["tenant"] == "" || config.IsTenantID(params["tenant"])) {
			return template, item, params
		}
	}
	return "", nil, nil
}

// create makes a tenant and returns its key and ETag.
func (r *rig) create(id string) (key, etag string) {
	r.t.Helper()
	a := r.do("POST", "tenants", fmt.Sprintf(`{"id": %q, "registration": %s}`, id, registration))
	if a.status != http.StatusCreated || a.Key == "" {
		r.t.Fatalf("POST of tenant %s = %d %s; want 201 with a key", id, a.status, a.body)
	}
	return a.Key, a.header.Get("ETag")
}

// word returns the last part of a problem's type.
func (a *reply) word() string {
	return a.Problem.Type[strings.LastIndexByte(a.Problem.Type, ':')+1:]
}

// listing returns the names and contents of the files in the folder of tenants.
func (r *rig) listing() string {
	r.t.Helper()
	var out bytes.Buffer
	err := filepath.WalkDir(r.tenants(""), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var data []byte
			data, err = os.ReadFile(path)
			fmt.Fprintf(&out, "%s %s\n", strings.TrimPrefix(path, r.tenants("")), data)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out.String()
}

func httpServe(h http.Handler, req *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func unescape(path string) (string, error) { return url.PathUnescape(path) }
