package gateway

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// What a document of the store names, and has been renewed while the replica's own
// files had a mistake, is used from the document's next reading on, and after the
// mistake in any case.
func TestFollowUsesRenewedFiles(t *testing.T) {
	p := startShown(t)
	good := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nshared: {redis: {url: redis://127.0.0.1:1}}\naudit: {stdout: true}\n" +
		"adminApi: {store: redis, trustDocuments: true, keys: [{sha256: " + strings.Repeat("e", 64) + "}]}\n"
	save(t, p.dir, "gateway.yaml", good)
	document := func(rate int) []byte {
		return []byte(fmt.Sprintf("id: acme\nrate: %d\nkeys: [{sha256: \"%x\"}]\nbackends: {com.example.policy: {caFile: %[3]q, clientCertFile: %[4]q, clientKeyFile: %[5]q}}\nregistration: %[6]s\n",
			rate, sha256.Sum256([]byte("acme")), filepath.Join(p.dir, "roots.pem"), filepath.Join(p.dir, "c.pem"), filepath.Join(p.dir, "k.pem"),
			registration("draft", hook("com.example.policy", p.url, intercepts("draft", "fail-closed", 5000)))))
	}
	l := config.NewLoader(filepath.Join(p.dir, "gateway.yaml"), environ)
	l.Stored = map[string][]byte{"acme": document(100)}
	f, _, err := l.Load()
	if err != nil || len(l.LeftOut) > 0 {
		t.Fatal(err, l.LeftOut)
	}
	r := startFile(t, f)
	l.Served()
	decision := func(id, want string) {
		t.Helper()
		if a := r.post("/hooks", eventDraft(id), "Authorization: Bearer acme"); a.decision() != "pass" {
			t.Errorf("%s: %s; want pass", id, a.decision())
		}
		if got := strings.Join(p.serials, " "); got != want {
			t.Errorf("%s: the backend was shown certificates %s; want %s", id, got, want)
		}
	}
	decision("e1", "1")

	save(t, p.dir, "gateway.yaml", good+"x: [")
	if _, _, err := l.Load(); err == nil {
		t.Fatal("Load of a file with a mistake = no mistake")
	}
	save(t, p.dir, "c.pem", p.renewed)
	save(t, p.dir, "k.pem", p.renewedKey)
	l.Digests.Forget()
	l.Stored = map[string][]byte{"acme": document(200)}
	if f, _, err = l.LoadStored(config.Change{}); err != nil || len(l.LeftOut) > 0 {
		t.Fatal(err, l.LeftOut)
	}
	if err := r.Follow(t.Context(), f, nil); err != nil {
		t.Fatal(err)
	}
	l.Served()
	decision("e2", "1 2")

	save(t, p.dir, "gateway.yaml", good)
	if f, _, err = l.Load(); err != nil || len(l.LeftOut) > 0 {
		t.Fatal(err, l.LeftOut)
	}
	if _, err := r.Reload(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	l.Served()
	r.client.CloseIdleConnections()
	decision("e3", "1 2 2")
}
