package backend

import (
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

func TestRequestHead(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	tests := map[string]struct {
		cfg  Config
		call ahp.Call
		want string
	}{
		"plain": {
			cfg:  Config{URL: "http://policy.example"},
			call: ahp.Call{Body: []byte("{}")},
			want: "POST / HTTP/1.1\r\nHost: policy.example\r\nUser-Agent: ahp-gateway\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: 2\r\n\r\n",
		},
		"bearer, path, query, port, trace": {
			cfg:  Config{URL: "https://policy.example:8443/a%20b?c=d", Bearer: "t0ken", UserAgent: "test/1"},
			call: ahp.Call{Body: []byte("{}"), Traceparent: parent, Tracestate: "a=b"},
			want: "POST /a%20b?c=d HTTP/1.1\r\nHost: policy.example:8443\r\nUser-Agent: test/1\r\nContent-Type: application/json\r\nAccept: application/json\r\nAuthorization: Bearer t0ken\r\ntraceparent: " + parent + "\r\ntracestate: a=b\r\nContent-Length: 2\r\n\r\n",
		},
		"configured headers win, whatever their case": {
			cfg: Config{URL: "http://[2606:4700::1]:81/", Bearer: "t0ken", Headers: []Header{
				{"authorization", "Basic eA=="}, {"X-Tenant", "caf\u00e9"}, {"hOST", "other"}, {"TraceParent", "mine"}, {"X-Empty", ""}}},
			call: ahp.Call{Traceparent: parent},
			want: "POST / HTTP/1.1\r\nhOST: other\r\nUser-Agent: ahp-gateway\r\nContent-Type: application/json\r\nAccept: application/json\r\nauthorization: Basic eA==\r\nX-Tenant: caf\xe9\r\nTraceParent: mine\r\nX-Empty: \r\nContent-Length: 0\r\n\r\n",
		},
		"hostile trace context is dropped": {
			cfg:  Config{URL: "http://policy.example/h"},
			call: ahp.Call{Traceparent: parent, Tracestate: "a=b\r\nX-Injected: 1"},
			want: "POST /h HTTP/1.1\r\nHost: policy.example\r\nUser-Agent: ahp-gateway\r\nContent-Type: application/json\r\nAccept: application/json\r\ntraceparent: " + parent + "\r\nContent-Length: 0\r\n\r\n",
		},
		"tracestate without traceparent and long ones are dropped": {
			cfg:  Config{URL: "http://policy.example/h"},
			call: ahp.Call{Traceparent: strings.Repeat("a", maxTrace+1), Tracestate: "a=b"},
			want: "POST /h HTTP/1.1\r\nHost: policy.example\r\nUser-Agent: ahp-gateway\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: 0\r\n\r\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := New(tt.cfg)
			if err != nil {
				t.Fatalf("New(%+v) = %v; want no error", tt.cfg, err)
			}
			if got := string(c.head.appendCall(nil, &tt.call)); got != tt.want {
				t.Errorf("head = %q; want %q", got, tt.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	const secret = "s3cr3t"
	tests := map[string]Config{
		"no URL":                   {},
		"relative URL":             {URL: "/hooks"},
		"opaque URL":               {URL: "http:hooks"},
		"scheme":                   {URL: "ftp://policy.example/"},
		"userinfo":                 {URL: "https://user:" + secret + "@policy.example/"},
		"fragment":                 {URL: "https://policy.example/#" + secret},
		"empty fragment":           {URL: "https://policy.example/#"},
		"no host":                  {URL: "https:///" + secret},
		"colon without port":       {URL: "https://policy.example:/"},
		"port 0":                   {URL: "https://policy.example:0/"},
		"port too large":           {URL: "https://policy.example:65536/"},
		"two hosts":                {URL: "https://policy.example,127.0.0.1/"},
		"zone":                     {URL: "https://[fe80::1%25eth0]/"},
		"host that is not ASCII":   {URL: "https://polic\u00fd.example/"},
		"space in query":           {URL: "https://policy.example/?a b" + secret},
		"line end in path":         {URL: "https://policy.example/a\r\nX: " + secret},
		"line end in bearer":       {URL: "https://policy.example/", Bearer: secret + "\n"},
		"NUL in header":            {URL: "https://policy.example/", Headers: []Header{{"X-Key", secret + "\x00"}}},
		"line end in header":       {URL: "https://policy.example/", Headers: []Header{{"X-Key", secret + "\r\nX: y"}}},
		"header beyond Latin-1":    {URL: "https://policy.example/", Headers: []Header{{"X-Key", secret + "\u20ac"}}},
		"header of invalid UTF-8":  {URL: "https://policy.example/", Headers: []Header{{"X-Key", secret + "\xff"}}},
		"header name":              {URL: "https://policy.example/", Headers: []Header{{"X Key", secret}}},
		"empty header name":        {URL: "https://policy.example/", Headers: []Header{{"", secret}}},
		"header name with newline": {URL: "https://policy.example/", Headers: []Header{{"X\r\n" + secret, "a"}}},
		"header twice":             {URL: "https://policy.example/", Headers: []Header{{"X-Key", secret}, {"x-key", secret}}},
		"Content-Length":           {URL: "https://policy.example/", Headers: []Header{{"content-length", "0"}}},
		"Transfer-Encoding":        {URL: "https://policy.example/", Headers: []Header{{"Transfer-Encoding", "chunked"}}},
		"Connection":               {URL: "https://policy.example/", Headers: []Header{{"Connection", "close"}}},
		"head too long":            {URL: "https://policy.example/", Headers: []Header{{"X-Key", strings.Repeat("a", maxHead)}}},
		"negative limit":           {URL: "https://policy.example/", MaxResponse: -1},
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			cfg.ID = "com.example.policy"
			_, err := New(cfg)
			if err == nil {
				t.Fatal("New = nil error; want one")
			}
			if strings.Contains(err.Error(), secret) || !strings.HasPrefix(err.Error(), "backend com.example.policy: ") {
				t.Errorf("New = %q; want the backend's id in front and no secret", err)
			}
		})
	}
}
