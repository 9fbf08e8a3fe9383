package shared

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// open returns a store on a server, closed when the test ends.
func open(t *testing.T, address string, change ...func(*Settings)) *Store {
	t.Helper()
	s := Settings{Address: address, Timeout: 5 * time.Second, Prefix: "test"}
	for _, c := range change {
		c(&s)
	}
	st := Open(s)
	t.Cleanup(st.Close)
	return st
}

// replicas returns n stores on one server.
func replicas(t *testing.T, s *redistest.Server, n int) []*Store {
	t.Helper()
	var all []*Store
	for range n {
		all = append(all, open(t, s.Address))
	}
	return all
}

// question is one that nobody is in a hurry with.
func question(key, message string) *Question {
	return &Question{Key: key, Fingerprint: sha256.Sum256([]byte(message)), Deadline: time.Now().Add(time.Minute), Lease: time.Minute}
}

// want fails the test unless a store that has just been asked found that.
func want(t *testing.T, what string, answer []byte, got Outcome, wantAnswer string, wanted Outcome) {
	t.Helper()
	if got != wanted || string(answer) != wantAnswer {
		t.Errorf("%s = %q, %d; want %q, %d", what, answer, got, wantAnswer, wanted)
	}
}

// changes collects what OnChange is told.
func changes() (func(*Settings), <-chan Class) {
	c := make(chan Class, 64)
	return func(s *Settings) { s.OnChange = func(class Class, _ string) { c <- class } }, c
}

// A server that hangs costs each caller its timeout, then nothing at all, and is
// used again once it works.
func TestPausedServer(t *testing.T) {
	server := redistest.Start(t)
	told, change := changes()
	st := open(t, server.Address, told, func(s *Settings) { s.Timeout = 200 * time.Millisecond })
	server.Pause()
	for i := range 10 {
		if _, got, lease := st.Ask(question("q", "m")); got != Unavailable || lease == nil {
			t.Errorf("Ask %d of a paused server = %d, lease %v; want Unavailable and a lease", i, got, lease)
		}
	}
	if got := st.Failures[Begin][Timeout].Load(); got != patience {
		t.Errorf("%d calls timed out; want %d and none after", got, patience)
	}
	if got := st.Failures[Begin][Skipped].Load(); got != 10-patience {
		t.Errorf("%d calls were skipped; want %d", got, 10-patience)
	}
	if got := <-change; got != Timeout {
		t.Errorf("OnChange(%v); want timeout", got)
	}
	if st.Outage() == OK {
		t.Error("Outage() = ok; want why")
	}
	server.Resume()
	if got := <-change; got != OK {
		t.Errorf("OnChange(%v); want ok", got)
	}
	if answer, got, _ := st.Ask(question("another", "m")); got != Lead {
		t.Errorf("Ask after the pause = %q, %d; want Lead", answer, got)
	}
	if got := st.Outage(); got != OK {
		t.Errorf("Outage() = %v; want ok", got)
	}
}

// A server that goes is noticed by its connection, and one that comes is used,
// whether or not it was there at the start.
func TestServerGoesAndComes(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	told, change := changes()
	st := open(t, server.Address, told)
	if got := <-change; got != Unreachable {
		t.Errorf("OnChange(%v) without a server; want unreachable", got)
	}
	for range 2 {
		if _, got, _ := st.Ask(question("q", "m")); got != Unavailable {
			t.Errorf("Ask without a server = %d; want Unavailable", got)
		}
		server.Restart()
		if got := <-change; got != OK {
			t.Errorf("OnChange(%v) with a server; want ok", got)
		}
		answer, got, lease := st.Ask(question("q", "m"))
		want(t, "Ask", answer, got, "", Lead)
		lease.Finish([]byte("a"), time.Minute)
		answer, got, _ = st.Ask(question("q", "m"))
		want(t, "Ask again", answer, got, "a", Hit)
		server.Kill()
		for st.Outage() == OK { // until the client has seen it
			st.Ask(question("q", "m"))
		}
		<-change
	}
}

// What is sent into a cut link is lost; a new connection finds the server.
func TestPartition(t *testing.T) {
	server := redistest.Start(t)
	link := server.Connect()
	told, change := changes()
	st := open(t, link.Address, told, func(s *Settings) { s.Timeout = 200 * time.Millisecond })
	if _, got, _ := st.Ask(question("q", "m")); got != Lead {
		t.Fatalf("Ask = %d; want Lead", got)
	}
	link.Cut()
	for range patience {
		if _, got, _ := st.Ask(question("q2", "m")); got != Unavailable {
			t.Errorf("Ask over a cut link = %d; want Unavailable", got)
		}
	}
	if got := <-change; got != Timeout {
		t.Errorf("OnChange(%v); want timeout", got)
	}
	link.Mend()
	if got := <-change; got != OK {
		t.Errorf("OnChange(%v); want ok", got)
	}
	answer, got, _ := st.Ask(question("q3", "m"))
	want(t, "Ask over the mended link", answer, got, "", Lead)
}

// A caller with less time than the timeout does not speak against the server.
func TestHurriedCallers(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	server.Pause()
	for range 2 * patience {
		q := question("q", "m")
		q.Deadline = time.Now().Add(5 * time.Millisecond)
		if _, got, _ := st.Ask(q); got != TimedOut {
			t.Errorf("Ask with no time = %d; want TimedOut", got)
		}
	}
	if got := st.Outage(); got != OK {
		t.Errorf("Outage() = %v; want ok", got)
	}
	server.Resume()
}

// Error replies speak against the server as silence does, and their text goes nowhere.
func TestErrorReplies(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction")
	replies := make(chan string, 8)
	st := open(t, server.Address, func(s *Settings) { s.OnChange = func(_ Class, reply string) { replies <- reply } })
	if got := st.Outage(); got != Refused {
		t.Fatalf("Outage() = %v; want refused", got)
	}
	if got := <-replies; got != "OOM" {
		t.Errorf("OnChange's reply = %q; want OOM", got)
	}
}

// More calls than the client has places for would wait without a deadline: they
// are not made, and a connection that stays so full is replaced.
func TestBusy(t *testing.T) {
	server := redistest.Start(t)
	told, change := changes()
	st := open(t, server.Address, told)
	st.conn.Load().calls.Store(maxCalls)
	for range patience {
		if _, got, _ := st.Ask(question("q", "m")); got != Unavailable {
			t.Errorf("Ask of a full connection = %d; want Unavailable", got)
		}
	}
	if got := st.Failures[Begin][Busy].Load(); got != patience {
		t.Errorf("%d busy; want %d", got, patience)
	}
	if first, second := <-change, <-change; first != Busy || second != OK {
		t.Errorf("OnChange(%v), OnChange(%v); want busy, ok", first, second)
	}
	answer, got, _ := st.Ask(question("q", "m"))
	want(t, "Ask over a new connection", answer, got, "", Lead)
}

// A user needs no more than what is listed here, as the documentation says.
func TestPassword(t *testing.T) {
	server := redistest.Start(t, slices.Concat([]string{"--requirepass", "hunter2", "--user", "gateway", "on", ">swordfish", "~test:*"},
		strings.Fields("+hello +auth +ping +select +eval +evalsha +get +set +del +hget +hset +hmget +hdel +pexpire +time "+
			"+hlen +hstrlen +hscan +lindex +lrange +lpush +ltrim"))...)
	for _, c := range []struct {
		username, password string
		want               Class
	}{
		{"", "hunter2", OK}, {"gateway", "swordfish", OK}, {"", "wrong", Refused}, {"", "", Refused}, {"gateway", "hunter2", Refused},
	} {
		st := open(t, server.Address, func(s *Settings) { s.Username, s.Password = c.username, c.password })
		if got := st.Outage(); got != c.want {
			t.Errorf("Outage() as %q with %q = %v; want %v", c.username, c.password, got, c.want)
		}
		if c.want != OK {
			continue
		}
		documents := st.Documents("tenants" + c.username)
		if made, _ := documents.Edit(t.Context(), DocumentState{}, "acme", nil, []byte("one")); made != EditDone {
			t.Errorf("Edit as %q = %d; want that it is made", c.username, made)
		}
		if _, _, whole, class := documents.Changes(t.Context(), DocumentState{}); !whole || class != OK {
			t.Errorf("Changes as %q = %v; want everything", c.username, class)
		}
		if all, class := documents.All(t.Context()); len(all) != 1 || class != OK {
			t.Errorf("All as %q = %q, %v; want one", c.username, all, class)
		}
		if found, class := documents.Get(t.Context(), "acme"); len(found) != 1 || class != OK {
			t.Errorf("Get as %q = %q, %v; want one", c.username, found, class)
		}
		for _, remember := range []time.Duration{0, time.Minute} {
			_, got, lease := st.Ask(question("q"+c.username, "m"))
			if got != Lead {
				t.Errorf("Ask as %q = %d; want Lead", c.username, got)
			}
			lease.Finish([]byte("a"), remember)
		}
		answer, got, _ := st.Ask(question("q"+c.username, "m"))
		want(t, "Ask as "+c.username, answer, got, "a", Hit)
		admits(t, "as "+c.username, st.Allowance("b"+c.username, Terms{Rate: slow, Burst: 5, Day: 1, Required: true}, nil), 1, OverQuota)
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	trust := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	for name, data := range map[string][]byte{"cert": trust, "key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := redistest.Start(t, "--tls-port", "--tls-cert-file", filepath.Join(dir, "cert"), "--tls-key-file", filepath.Join(dir, "key"), "--tls-auth-clients", "no")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trust)
	for name, c := range map[string]struct {
		secure *tls.Config
		want   Class
	}{
		"its root":   {&tls.Config{RootCAs: roots}, OK},
		"other root": {&tls.Config{RootCAs: x509.NewCertPool()}, Unreachable},
		"plain":      {nil, Unreachable},
	} {
		st := open(t, server.Address, func(s *Settings) { s.TLS = c.secure })
		if got := st.Outage(); got != c.want {
			t.Errorf("Outage() with %s = %v; want %v", name, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for o := range OperationCount {
		seen[o.String()] = true
	}
	for c := range ClassCount {
		seen[c.String()] = true
	}
	if len(seen) != int(OperationCount)+int(ClassCount) || seen["unknown"] {
		t.Errorf("names = %v; want one for each operation and class", seen)
	}
	if OperationCount.String() != "unknown" || ClassCount.String() != "unknown" {
		t.Error("names beyond the last are not unknown")
	}
}
