package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// freePort returns a port that was free just now, for a file that has to name one.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// The answer of /readyz is that of health: while the gateway serves, while its
// file has a mistake, while it drains, and when it has gone.
func TestHealth(t *testing.T) {
	port := freePort(t)
	good := strings.Replace(openFile(onePolicy("http://127.0.0.1:1")), "admin: 127.0.0.1:0", "admin: 127.0.0.1:"+port, 1)
	dir := folder(t, "gateway.yaml", good, "any.yaml", "admin: 0.0.0.0:"+port+"\n", "off.yaml", "admin: off\n", "zero.yaml", "admin: 127.0.0.1:0\n", "wrong.yaml", "admin: nowhere\n")
	file := func(name string) string { return filepath.Join(dir, name) }
	p := launch(t, "serve", "--config", file("gateway.yaml"))
	_, admin := p.urls()
	// A proxy would be asked for an address that this machine alone has.
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	for _, c := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"--config", file("gateway.yaml")}, 0, `^ready\n$`, ""},
		{[]string{"--config", file("any.yaml")}, 0, `^ready\n$`, ""},
		{[]string{"--url", admin}, 0, `^ready\n$`, ""},
		{[]string{"--url", admin + "/"}, 0, `^ready\n$`, ""},
		{[]string{"--url", admin + "/nowhere"}, 1, "", `HTTP 404: `},
		{[]string{"--url", strings.Replace(admin, "http", "https", 1)}, 1, "", `no answer: .*write http:// into --url where adminTLS is not set`},
		{[]string{"--url", "http://127.0.0.1:1"}, 1, "", `no answer: .*see that the gateway runs`},
		{[]string{"--config", file("off.yaml")}, 1, "", `no private listener to ask; write an address for admin`},
		{[]string{"--config", file("zero.yaml")}, 1, "", `leaves the port of admin open; write the URL that serve logged as --url`},
		{[]string{"--config", file("wrong.yaml")}, 1, "", `wrong\.yaml:1:8: admin: is not host:port`},
		{[]string{"--config", file("none.yaml")}, 1, "", `none\.yaml: cannot be read`},
		{[]string{"--config", "a", "--url", "b"}, 2, "", `both given`},
		{[]string{"--url", "http://user:" + canaryKey + "@127.0.0.1:1"}, 2, "", `--url holds a user name or password; leave it out`},
		{[]string{"--url", "gateway"}, 2, "", `--url is "gateway"; want http`},
		{[]string{"--timeout", "0s"}, 2, "", `--timeout is 0s`},
		{[]string{"--cert-file", "a"}, 2, "", `needed together`},
		{[]string{"extra"}, 2, "", `takes no arguments: write --url extra`},
	} {
		r := call(t, "", append([]string{"health"}, c.args...)...)
		if r.code != c.code || !matches(c.stdout, r.stdout) || !matches(c.stderr, r.stderr) {
			t.Errorf("health %q = %+v; want %d, %s, %s", c.args, r, c.code, c.stdout, c.stderr)
		}
	}

	// A mistake that the running gateway refuses makes it no less healthy.
	put(t, file("gateway.yaml"), good+"nonsense: true\n")
	p.stderr.await(t, `configuration refused`, 1)
	if r := call(t, "", "health", "--config", file("gateway.yaml")); r.code != 0 || !strings.HasPrefix(r.stdout, "ready") {
		t.Errorf("health with a mistake in the file = %+v; want 0", r)
	}
	p.signal(syscall.SIGTERM)
	p.exit()
	if r := call(t, "", "health", "--config", file("gateway.yaml")); r.code != 1 || !strings.Contains(r.stderr, "no answer") {
		t.Errorf("health of a gateway that has ended = %+v; want 1", r)
	}
}

// What is alive and serves no events is not healthy, and what does not answer
// is not waited for.
func TestHealthRefused(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 11\r\n\r\ndraining\x1b[2", `HTTP 503: draining` + "\uFFFD"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nready", `the answer broke off`},
		{"", `context deadline exceeded`},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			buf := make([]byte, 4096)
			_, _ = conn.Read(buf)
			if c.answer == "" {
				_, _ = conn.Read(buf) // until the other side gives up
				return
			}
			_, _ = conn.Write([]byte(c.answer))
		}()
		r := call(t, "", "health", "--url", "http://"+l.Addr().String(), "--timeout", "300ms")
		if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, c.want) {
			t.Errorf("health of what answers %q = %+v; want 1 and %s", c.answer, r, c.want)
		}
		l.Close()
		<-ended
	}
}

// Over TLS the certificate of the file is enough, of whatever name it is, and no
// other is; a client certificate is not needed.
func TestHealthTLS(t *testing.T) {
	port := freePort(t)
	cert, key := certificate(t)
	other, _ := certificate(t)
	file := strings.Replace(openFile(onePolicy("http://127.0.0.1:1")), "admin: 127.0.0.1:0", "admin: localhost:"+port, 1)
	dir := folder(t, "tls.crt", cert, "tls.key", key, "other.crt", key+other, "empty.crt", "nothing", "clients.pem", other,
		"gateway.yaml", file+"adminTLS: {certFile: tls.crt, keyFile: tls.key, clientCAFile: clients.pem}\n",
		"other.yaml", "admin: 127.0.0.1:"+port+"\nadminTLS: {certFile: other.crt}\n",
		"gone.yaml", "admin: 127.0.0.1:"+port+"\nadminTLS: {certFile: gone.crt}\n",
		"empty.yaml", "admin: 127.0.0.1:"+port+"\nadminTLS: {certFile: empty.crt}\n")
	path := func(name string) string { return filepath.Join(dir, name) }
	p := launch(t, "serve", "--config", path("gateway.yaml"))
	p.stdout.await(t, `listening on`, 1)
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		// The certificate is for an address, and the file names a host.
		{[]string{"--config", path("gateway.yaml")}, 0, ""},
		{[]string{"--url", "https://127.0.0.1:" + port, "--ca-file", path("tls.crt")}, 0, ""},
		{[]string{"--config", path("other.yaml")}, 1, "its certificate is not the first of adminTLS.certFile"},
		{[]string{"--config", path("gone.yaml")}, 1, "adminTLS.certFile: open"},
		{[]string{"--config", path("empty.yaml")}, 1, "adminTLS.certFile holds no PEM certificate"},
		{[]string{"--url", "https://127.0.0.1:" + port}, 1, "write --ca-file with the roots"},
		{[]string{"--url", "http://127.0.0.1:" + port}, 1, "HTTP 400"},
	} {
		r := call(t, "", append([]string{"health"}, c.args...)...)
		if r.code != c.code || c.code == 0 && r.stdout != "ready\n" || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("health %q = %+v; want %d, %s", c.args, r, c.code, c.stderr)
		}
	}
	if err := os.Remove(path("tls.crt")); err != nil {
		t.Fatal(err)
	}
	if r := call(t, "", "health", "--config", path("gateway.yaml")); r.code != 1 {
		t.Errorf("health without the certificate's file = %+v; want 1", r)
	}
	p.quit()
}
