package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// Where the private listener is can be read of a file that is not served, as
// long as what says it is right.
func TestLoadPrivate(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		file string
		want config.Private
		err  string // in the error
	}{
		{"listen: 127.0.0.1:1\n", config.Private{Address: "127.0.0.1:8788"}, ""},
		{"admin: 0.0.0.0:9000\n", config.Private{Address: "0.0.0.0:9000"}, ""},
		{"admin: off\n", config.Private{Address: "off"}, ""},
		{`{"admin": "[::1]:0"}`, config.Private{Address: "[::1]:0"}, ""},
		{"adminTLS: {certFile: tls/a.crt, keyFile: gone.key}\n", config.Private{Address: "127.0.0.1:8788", CertFile: filepath.Join(dir, "tls/a.crt")}, ""},
		{"adminTLS: {certFile: /etc/a.crt}\n", config.Private{Address: "127.0.0.1:8788", CertFile: "/etc/a.crt"}, ""},
		// Mistakes elsewhere.
		{"admin: :7000\nnonsense: 1\ntenants: &a []\nadminApi: *a\n", config.Private{Address: ":7000"}, ""},
		// Mistakes here.
		{"", config.Private{}, "the document is empty"},
		{"- admin\n", config.Private{}, "must be"},
		{"admin: [\n", config.Private{}, "not valid YAML"},
		{"admin: nowhere\n", config.Private{}, "gateway.yaml:1:8: admin: is not host:port"},
		{"admin: true\n", config.Private{}, "admin: is not an address"},
		{"adminTLS: {keyFile: a}\n", config.Private{}, "adminTLS.certFile: is missing"},
		{"adminTLS: yes\n", config.Private{}, "adminTLS: must be"},
	} {
		path := filepath.Join(dir, "gateway.yaml")
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.LoadPrivate(path)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("LoadPrivate(%q) = %+v, %v; want %+v, %q", c.file, got, err, c.want, c.err)
		}
	}
	if _, err := config.LoadPrivate(filepath.Join(dir, "none.yaml")); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("LoadPrivate of no file = %v; want that it cannot be read", err)
	}
}
