//go:build unix

package gateway

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
	"github.com/ahp-gateway/ahp-gateway/shared"
)

// sharing is the section that shares state in the server at an address. The
// timeout is generous: what is tested is not how fast a loaded machine is.
func sharing(address string, more ...string) string {
	return "shared: {redis: {url: redis://" + address + "/0, timeout: 5s}" + strings.Join(more, "") + "}"
}

// startReplicas starts n gateways with one configuration.
func startReplicas(t *testing.T, n int, text string, change ...func(*Options)) []*rig {
	t.Helper()
	var all []*rig
	for range n {
		all = append(all, start(t, text, change...))
	}
	return all
}

// expected is the decision about an event, which depends on its id alone.
func expected(id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	if h.Sum32()%2 == 0 {
		return "pass"
	}
	return "deny: no " + id
}

// judge is a backend that decides as expected.
func judge(t *testing.T) *fakebackend.Server {
	return fakebackend.Start(t, fakebackend.WithoutRecording(), fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
		id := string(ahp.Text(ahp.Member(q.Body, "id")))
		if want := expected(id); want != "pass" {
			return "deny:no " + id
		}
		return "pass"
	}))
}

// deliver posts n events to all replicas at once, some events side by side, and
// gives check every answer.
func deliver(all []*rig, prefix string, n int, check func(id string, a *reply)) {
	next := new(atomic.Int64)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				id := fmt.Sprint(prefix, i)
				body := event01(id)
				var each sync.WaitGroup
				for _, r := range all {
					each.Go(func() { check(id, r.post("/hooks", body)) })
				}
				each.Wait()
			}
		})
	}
	wg.Wait()
}

// An event that reaches all replicas at once is evaluated once, and all of them
// give its answer.
func TestReplicasEvaluateOnce(t *testing.T) {
	server, b := redistest.Start(t), judge(t)
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 20_000)))
	all := startReplicas(t, 3, open(doc, sharing(server.Address)))
	const n = 10_000
	deliver(all, "e", n, func(id string, a *reply) {
		if got := a.decision(); got != expected(id) {
			t.Errorf("event %s = %s; want %s", id, got, expected(id))
		}
	})
	if got := b.Count(); got != n {
		t.Errorf("%d events to 3 replicas made %d evaluations; want %d", n, got, n)
	}
}

// What a replica knows of other content it answers nobody with, and so with what
// may not be remembered: that is for those who wait.
func TestReplicasConflictAndDegrade(t *testing.T) {
	server := redistest.Start(t)
	for _, v := range versions {
		b := fakebackend.Start(t, fakebackend.Behave("deny:first", "deny:other", "status-500", "deny:second thought"))
		doc := registration(v, hook("com.example.b", b.URL, intercepts(v, "fail-closed", 20_000)))
		all := startReplicas(t, 2, open(doc, sharing(server.Address)))
		other := strings.Replace(event(v, "e1"), "git status", "rm -rf /", 1)
		for i, c := range []struct {
			replica int
			body    string
			want    string
		}{
			{0, event(v, "e1"), "deny: first"},
			{1, other, "deny: other"},
			{1, event(v, "e1"), "deny: first"},
			{0, event(v, "e1"), "deny: first"},
			{0, event(v, "e2"), "deny: Required policy backend unavailable. (io.ahp-gateway.fail_closed)"},
			{1, event(v, "e2"), "deny: second thought"},
			{0, event(v, "e2"), "deny: second thought"},
		} {
			if a := all[c.replica].post("/hooks", c.body); a.decision() != c.want {
				t.Errorf("%s: message %d to replica %d = %s; want %s", v, i, c.replica, a.body, c.want)
			}
		}
		if got := b.Count(); got != 4 {
			t.Errorf("%s: %d evaluations; want 4", v, got)
		}
		// The note comes with the answer.
		record := all[1].audit.await(3)[1]
		if str(record["verdict"]) != "deny" || str(record["reason"]) != "first" || str(record["denied_by"]) != "com.example.b" || str(record["dedupe"]) != "hit" {
			t.Errorf("%s: audit record of a hit = %v; want the deny, its reason and who denied", v, record)
		}
	}
}

// A replica that waits gets the answer that is not remembered, failure and all.
func TestReplicaWaitsForDegradedAnswer(t *testing.T) {
	server := redistest.Start(t)
	b := fakebackend.Start(t, fakebackend.Behave("late", "pass"))
	// The timeout of the backend ends the first evaluation.
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 1500)))
	all := startReplicas(t, 2, open(doc, sharing(server.Address)))
	const degraded = "deny: Required policy backend unavailable. (io.ahp-gateway.fail_closed)"
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := all[0].post("/hooks", event01("e1")).decision(); got != degraded {
			t.Errorf("leader = %s; want %s", got, degraded)
		}
	})
	b.Await(1)
	if got := all[1].post("/hooks", event01("e1")).decision(); got != degraded {
		t.Errorf("replica that waited = %s; want %s", got, degraded)
	}
	wg.Wait()
	b.Release()
	if got := all[1].post("/hooks", event01("e1")).decision(); got != "pass" {
		t.Errorf("later delivery = %s; want a new evaluation's pass", got)
	}
	if got := b.Count(); got != 2 {
		t.Errorf("%d evaluations; want 2", got)
	}
}

// Replicas of different configurations share nothing, and neither do tenants.
func TestWhoSharesAnswers(t *testing.T) {
	server := redistest.Start(t)
	strict, lax := fakebackend.Start(t, fakebackend.Behave("deny:strict")), fakebackend.Start(t)
	text := func(b *fakebackend.Server, more ...string) string {
		return open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))), append(more, sharing(server.Address))...)
	}
	before, after := start(t, text(lax)), start(t, text(strict))
	if got := before.post("/hooks", event01("e1")).decision(); got != "pass" {
		t.Fatalf("first configuration = %s; want pass", got)
	}
	if got := after.post("/hooks", event01("e1")).decision(); got != "deny: strict" {
		t.Errorf("second configuration = %s; want its own deny", got)
	}
	// What only has to do with failures makes no difference.
	tuned := start(t, text(lax, "breaker: {volume: 7}", "limits: {budget: 7s}"))
	if got := tuned.post("/hooks", event01("e1")).decision(); got != "pass" || lax.Count() != 1 {
		t.Errorf("tuned replica = %s after %d evaluations; want pass after 1", got, lax.Count())
	}
	// And a reload comes to the keys of its configuration.
	if _, err := before.Reload(t.Context(), parse(t, text(strict))); err != nil {
		t.Fatal(err)
	}
	if got := before.post("/hooks", event01("e1")).decision(); got != "deny: strict" || strict.Count() != 1 {
		t.Errorf("reloaded replica = %s after %d evaluations; want deny: strict after 1", got, strict.Count())
	}
}

// An answer is for who asked: a replica that asks a backend with another secret or
// certificate, or trusts another one, asks for itself, and so does a gateway after
// a reload. Where the secret lies makes no difference.
func TestAnswersAreForWhoAsks(t *testing.T) {
	server := redistest.Start(t)
	b := fakebackend.Start(t, fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
		if q.Header.Get("Authorization") == "Bearer lenient" {
			return "pass"
		}
		return "deny:not for you"
	}))
	lenient, copied, strict := t.TempDir(), t.TempDir(), t.TempDir()
	save(t, lenient, "token", "lenient\n")
	save(t, copied, "token", "lenient\n")
	save(t, strict, "token", "strict\n")
	doc := registration("draft", strings.Replace(hook("com.example.b", b.URL, intercepts("draft", "fail-closed", 5000)),
		`"subscriptions"`, `"authentication":{"type":"bearer","tokenRef":"token"},"subscriptions"`, 1))
	text := func(dir string) string {
		return open(doc, fmt.Sprintf("secrets: {dir: %q}", dir), sharing(server.Address))
	}
	r := start(t, text(lenient))
	decides := func(r *rig, what, want string, evaluations int) {
		t.Helper()
		if got := r.post("/hooks", eventDraft("e1")).decision(); got != want || b.Count() != evaluations {
			t.Errorf("%s = %s after %d evaluations; want %s after %d", what, got, b.Count(), want, evaluations)
		}
	}
	decides(r, "first secret", "pass", 1)
	decides(start(t, text(copied)), "the same secret elsewhere", "pass", 1)
	decides(start(t, text(strict)), "another secret", "deny: not for you", 2)
	save(t, lenient, "token", "rotated\n")
	if _, err := r.Reload(t.Context(), parse(t, text(lenient))); err != nil {
		t.Fatal(err)
	}
	decides(r, "secret that has changed", "deny: not for you", 3)
	if _, err := r.Reload(t.Context(), parse(t, text(copied))); err != nil {
		t.Fatal(err)
	}
	decides(r, "secrets.dir that has changed", "pass", 3)
}

// As TestAnswersAreForWhoAsks, of certificates.
func TestAnswersAreForWhoseCertificate(t *testing.T) {
	server := redistest.Start(t)
	dir := t.TempDir()
	roots := x509.NewCertPool()
	for n := range int64(2) {
		cert, key, _ := keyPair(t, n)
		roots.AppendCertsFromPEM([]byte(cert))
		save(t, dir, fmt.Sprintf("c%d.pem", n), cert)
		save(t, dir, fmt.Sprintf("k%d.pem", n), key)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.PeerCertificates[0].SerialNumber.Sign() != 0 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		new(trap).pass(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the one that trusts it no more
	s.StartTLS()
	t.Cleanup(s.Close)
	save(t, dir, "roots.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	doc := registration("draft", hook("com.example.policy", s.URL, intercepts("draft", "fail-closed", 5000)))
	text := func(client int, trust string) string {
		return open(doc, fmt.Sprintf("backends: {com.example.policy: {clientCertFile: %[1]s/c%[2]d.pem, clientKeyFile: %[1]s/k%[2]d.pem, caFile: %[1]s/%[3]s}}", dir, client, trust), sharing(server.Address))
	}
	const failed = "deny: Required policy backend unavailable. (io.ahp-gateway.fail_closed)"
	for _, c := range []struct{ what, text, want string }{
		{"a certificate that the backend lets pass", text(0, "roots.pem"), "pass"},
		{"another certificate", text(1, "roots.pem"), failed},
		{"another caFile", text(0, "c1.pem"), failed},
	} {
		if got := start(t, c.text).post("/hooks", eventDraft("e1")).decision(); got != c.want {
			t.Errorf("a replica with %s = %s; want %s", c.what, got, c.want)
		}
	}
}

// Every part of what decides is in the keys.
func TestQuestionKeys(t *testing.T) {
	base := `{"protocolVersion":"draft","hooks":[` + hook("com.example.a", "https://a.example.com", intercepts("draft", "fail-closed", 100)) + "," +
		hook("com.example.b", "https://b.example.com", intercepts("draft", "fail-open", 200)) + `]}`
	keys := func(version, text string) string {
		f := parse(t, text)
		return questionKeys(version, f, &f.Tenants[0], nil, nil)
	}
	first := keys("1", open(base))
	if again := keys("1", open(base, "limits: {rate: 5}", "dedupe: {ttl: 1m}")); again != first {
		t.Errorf("keys with other limits = %s; want %s", again, first)
	}
	seen := map[string]string{first: "base"}
	for what, key := range map[string]string{
		"program":        keys("2", open(base)),
		"fail closed":    keys("1", open(base, "failClosed: {reason: other}")),
		"url":            keys("1", open(strings.Replace(base, "https://b.", "https://c.", 1))),
		"policy":         keys("1", open(strings.Replace(base, "fail-open", "fail-closed", 1))),
		"timeout":        keys("1", open(strings.Replace(base, "200", "201", 1))),
		"content":        keys("1", open(strings.Replace(base, `"metadata"`, `"omit"`, 1))),
		"shadow":         keys("1", open(base, `backends: {com.example.a: {shadow: "*"}}`)),
		"event":          keys("1", open(strings.Replace(base, "tool.before", "turn.start", 1))),
		"order of hooks": keys("1", open(strings.NewReplacer("com.example.a", "com.example.b", "com.example.b", "com.example.a").Replace(base))),
		"header":         keys("1", open(strings.Replace(base, `"url":`, `"headers":{"X-A":"1"},"url":`, 1))),
	} {
		if other, there := seen[key]; there {
			t.Errorf("keys with another %s are those of %s; want others", what, other)
		}
		seen[key] = what
	}
	// The order in which documents are read decides nothing.
	old := strings.Replace(registration("0.1", hook("com.example.a", "https://a.example.com", intercepts("0.1", "fail-closed", 100))), "\n", "", -1)
	if a, b := keys("1", open("["+base+","+old+"]")), keys("1", open("["+old+","+base+"]")); a != b {
		t.Errorf("keys of documents in another order = %s; want %s", b, a)
	}
}

// What lies in the server and is not an answer that a replica could have left
// there answers nobody.
func TestOddAnswers(t *testing.T) {
	server := redistest.Start(t)
	b := fakebackend.Start(t, fakebackend.WithoutRecording(), fakebackend.Behave("deny:no"))
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))
	all := startReplicas(t, 2, open(doc, sharing(server.Address)))
	const pass = `{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"0.1","effects":[]}}`
	const denied = `{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"0.1","effects":[{"type":"deny","reason":"x"}]}}`
	note := func(verdict, open, high, low int) string {
		return fmt.Sprintf(`\x%02x\x%02x\x%02x\x%02x`, verdict, open, high, low)
	}
	for i, c := range []struct{ note, body, want string }{
		{note(0, 0, 0, 0), pass, "pass"}, // what is checked is the form: this one is good
		{"", "", "deny: no"},
		{note(0, 0, 0, 0), "", "deny: no"},
		{note(0, 0, 0, 0), pass[1:], "deny: no"},
		{note(0, 0, 0, 0), pass + "x", "deny: no"},
		{note(0, 0, 0, 0), denied, "deny: no"},
		{note(0, 1, 0, 0), pass, "deny: no"}, // not final
		{note(0, 2, 0, 0), pass, "deny: no"},
		{note(9, 0, 0, 0), pass, "deny: no"},
		{note(1, 0, 0, 0), pass, "deny: no"},
		{note(1, 0, 0, 1), denied, "deny: no"}, // there is no such hop
		{note(1, 0, 255, 255), denied, "deny: no"},
		{note(2, 0, 0, 0), denied, "deny: no"}, // not final
		{note(3, 0, 0, 0), `{"jsonrpc":"2.0","id":"%s","error":{"code":-32003,"message":"x"}}`, "deny: no"},
		{note(0, 0, 0, 0), strings.Replace(pass, `"%s"`, `"another%s"`, 1), "deny: no"},
		{note(0, 0, 0, 0), strings.Replace(pass, `"0.1"`, `"draft"`, 1), "deny: no"},
		{note(0, 0, 0, 0), strings.Replace(pass, `[]`, `{}`, 1), "deny: no"},
		{note(0, 0, 0, 0), strings.Replace(pass, `"result"`, `"error":{},"result"`, 1), "deny: no"},
		{note(0, 0, 0, 0), strings.Replace(pass, `"result"`, `"id":1,"result"`, 1), "deny: no"},
		{note(0, 0, 0, 0), strings.Replace(pass, `"2.0"`, `"1.0"`, 1), "deny: no"},
	} {
		id := fmt.Sprint("e", i)
		if got := all[0].post("/hooks", event01(id)).decision(); got != "deny: no" {
			t.Fatalf("event %s = %s; want deny: no", id, got)
		}
		k := dedupe.KeyOf("urn:example:harness", id)
		body := strings.ReplaceAll(strings.ReplaceAll(c.body, "%s", id), `"`, `\x22`)
		if got := server.Command("HSET", "ahp:"+all[0].current.Load().parties[0].questionKeys+hex.EncodeToString(k[:]), "a", `"`+c.note+body+`"`); got != ":0" {
			t.Fatalf("the answer of %s is not where it was looked for: HSET = %s", id, got)
		}
		if got := all[1].post("/hooks", event01(id)).decision(); got != c.want {
			t.Errorf("event with the answer %s%s in the server = %s; want %s", c.note, c.body, got, c.want)
		}
	}
}

// The rate of a tenant is that of all replicas together.
func TestReplicasShareTheRate(t *testing.T) {
	server, b := redistest.Start(t), judge(t)
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 20_000)))
	all := startReplicas(t, 3, open(doc, sharing(server.Address), "limits: {rate: 0.001, burst: 50}"))
	var admitted, denied atomic.Int64
	deliver(all, "e", 40, func(id string, a *reply) {
		switch {
		case a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") != "":
			denied.Add(1)
		case a.decision() == expected(id):
			admitted.Add(1)
		default:
			t.Errorf("event %s = %d, %s; want 429 with Retry-After or %s", id, a.status, a.body, expected(id))
		}
	})
	if got := admitted.Load(); got != 50 {
		t.Errorf("%d of 120 requests to 3 replicas were admitted; want the burst of one, 50", got)
	}
	// Another configuration's replica has a bucket of the same name.
	if a := start(t, open(doc, sharing(server.Address), "limits: {rate: 0.001, burst: 10}")).post("/hooks", event01("x")); a.status != http.StatusTooManyRequests {
		t.Errorf("a replica that comes later = %d; want 429", a.status)
	}
}

// fault is what happens to the server under load.
type fault struct {
	name     string
	strike   func(*redistest.Server, *redistest.Link)
	mend     func(*redistest.Server, *redistest.Link)
	hangs    bool // nothing tells but that there is no reply
	noOutage bool
}

var faults = []fault{
	{name: "killed", strike: func(s *redistest.Server, _ *redistest.Link) { s.Kill() }, mend: func(s *redistest.Server, _ *redistest.Link) { s.Restart() }},
	{name: "paused", strike: func(s *redistest.Server, _ *redistest.Link) { s.Pause() }, mend: func(s *redistest.Server, _ *redistest.Link) { s.Resume() }, hangs: true},
	{name: "cut off", strike: func(_ *redistest.Server, l *redistest.Link) { l.Cut() }, mend: func(_ *redistest.Server, l *redistest.Link) { l.Mend() }, hangs: true},
	{name: "restarted", strike: func(s *redistest.Server, _ *redistest.Link) { s.Kill(); s.Restart() }, mend: func(*redistest.Server, *redistest.Link) {}},
	{name: "flushed", strike: func(s *redistest.Server, _ *redistest.Link) { s.Command("FLUSHALL") }, mend: func(s *redistest.Server, _ *redistest.Link) { s.Command("FLUSHALL") }, noOutage: true},
}

// Whatever happens to the server under load, no decision flips: every answer is
// the one that is expected of the event, or says that there is none. And when it
// is over, replicas share again.
func TestServerFaultsUnderLoad(t *testing.T) {
	const n = 1500
	for _, f := range faults {
		for _, onFailure := range []string{"local", "refuse"} {
			t.Run(f.name+"/"+onFailure, func(t *testing.T) {
				server, b := redistest.Start(t), judge(t)
				link := server.Connect()
				doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 20_000)))
				timeout := "5s" // not for a machine that is busy with something else
				if f.hangs {
					timeout = "250ms"
				}
				text := open(doc, "shared: {redis: {url: redis://"+link.Address+", timeout: "+timeout+"}, onFailure: "+onFailure+"}", "limits: {rate: 1000000, burst: 1000000}")
				m, meter := measured(t)
				all := []*rig{start(t, text, meter), start(t, text)}
				var answered, refused atomic.Int64
				strike, mend := make(chan struct{}), make(chan struct{})
				var acted sync.WaitGroup
				acted.Go(func() {
					<-strike
					f.strike(server, link)
					<-mend
					f.mend(server, link)
				})
				deliver(all, "e", n, func(id string, a *reply) {
					switch got := a.decision(); {
					case got == expected(id):
					case onFailure == "refuse" && a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "":
						refused.Add(1)
					case got == "error -32003": // it waited for an evaluation that did not end, or was refused
						refused.Add(1)
					default:
						t.Errorf("event %s = %d %s; want %s or none", id, a.status, a.body, expected(id))
					}
					switch answered.Add(1) {
					case n / 2:
						close(strike)
					case n:
						close(mend)
					}
				})
				acted.Wait()
				if onFailure == "local" && refused.Load() > 0 {
					t.Errorf("%d of %d requests had no decision; want none with onFailure: local", refused.Load(), 2*n)
				}
				for _, r := range all { // a second at most, then each is told of it
					for {
						status, body := r.get("/readyz")
						if status != http.StatusOK {
							t.Fatalf("/readyz = %d, %s; want 200 whatever the server does", status, body)
						}
						if body == "ready\n" && r.common.store.Outage() == shared.OK {
							break
						}
						// A connection that has broken is noticed by using it.
						r.post("/hooks", event01("awake"))
					}
				}
				if failed := m.failures(); failed == 0 && !f.noOutage {
					t.Error("ahp.gateway.shared.failures counts nothing; want the failures")
				}
				// A busy machine may look like a server that hangs once more.
				const tries = 10
				for try := 1; ; try++ {
					before, decided := b.Count(), new(atomic.Int64)
					deliver(all, fmt.Sprint("after", try, "-"), 50, func(id string, a *reply) {
						switch got := a.decision(); {
						case got == expected(id):
							decided.Add(1)
						case a.status != http.StatusServiceUnavailable && got != "error -32003":
							t.Errorf("event %s after it was over = %s; want %s or none", id, got, expected(id))
						}
					})
					evaluated := b.Count() - before
					if decided.Load() == 100 && evaluated == 50 {
						break
					}
					if try == tries {
						t.Fatalf("50 events to 2 replicas after it was over = %d decisions by %d evaluations; want 100 by 50", decided.Load(), evaluated)
					}
				}
			})
		}
	}
}

// failures adds up ahp.gateway.shared.failures.
func (m *meters) failures() (n int64) {
	m.t.Helper()
	for _, s := range m.collect() {
		if s.instrument == "ahp.gateway.shared.failures" {
			n += s.value
		}
	}
	return n
}

// Without its server a gateway starts, says so, and does as it was told: it goes
// on by itself or refuses.
func TestWithoutSharedState(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	for _, c := range []struct {
		onFailure, limits string
		status            int
		decision, ready   string
	}{
		{"local", "{}", http.StatusOK, "deny: no", "ready\nshared state: unreachable: every replica uses its own\n"},
		{"local", "{rate: 0.001, burst: 5}", http.StatusOK, "deny: no", "ready\nshared state: unreachable: every replica uses its own\n"},
		{"local", "{quotaMonth: 2}", http.StatusOK, "deny: no", "ready\nshared state: unreachable: every replica uses its own\n"},
		{"refuse", "{}", http.StatusOK, "error -32003", "ready\nshared state: unreachable: requests that need it are refused\n"},
		{"refuse", "{quotaMonth: 2}", http.StatusServiceUnavailable, "", "ready\nshared state: unreachable: requests that need it are refused\n"},
		{"refuse", "{rate: 0.001, burst: 5}", http.StatusServiceUnavailable, "", "ready\nshared state: unreachable: requests that need it are refused\n"},
	} {
		b := fakebackend.Start(t, fakebackend.Behave("deny:no"))
		doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-open", 5000)))
		m, meter := measured(t)
		r := start(t, open(doc, sharing(server.Address, ", onFailure: "+c.onFailure), "limits: "+c.limits), meter)
		for i := range 2 {
			a := r.post("/hooks", event01("e1"))
			if a.status != c.status || c.status == http.StatusOK && a.decision() != c.decision {
				t.Errorf("%s, limits %s: delivery %d = %d %s; want %d, %s", c.onFailure, c.limits, i, a.status, a.body, c.status, c.decision)
			}
			if (a.header.Get("Retry-After") != "") != (c.status != http.StatusOK) {
				t.Errorf("%s, limits %s: Retry-After = %q", c.onFailure, c.limits, a.header.Get("Retry-After"))
			}
		}
		if c.limits == "{}" { // the event is known, and so there is a record of it
			want := map[string]string{"local": "deny", "refuse": "error"}[c.onFailure]
			if record := r.audit.await(1)[0]; str(record["verdict"]) != want || str(record["dedupe"]) != "miss" {
				t.Errorf("%s: audit record = %v; want verdict %s, dedupe miss", c.onFailure, record, want)
			}
		}
		if got, want := b.Count(), map[string]int{"deny: no": 1}[c.decision]; got != want {
			t.Errorf("%s, limits %s: %d evaluations; want %d", c.onFailure, c.limits, got, want)
		}
		if status, body := r.get("/readyz"); status != http.StatusOK || body != c.ready {
			t.Errorf("/readyz = %d %q; want 200 %q", status, body, c.ready)
		}
		if m.failures() == 0 || m.value("ahp.gateway.shared.available", "") != 0 {
			t.Error("metrics say nothing of it; want failures and available 0")
		}
	}
}

// A password that cannot be had ends the start: nobody goes on without.
func TestSharedStateNeedsItsPassword(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "token-from-environment")
	doc := registration("0.1", hook("com.example.b", "http://127.0.0.1:1", intercepts("0.1", "fail-closed", 100)))
	file := filepath.Join(t.TempDir(), "password")
	for _, c := range []struct{ ref, content, want string }{
		{"passwordEnv: AHP_TOKEN", "", ""},
		{"passwordEnv: NOT_SET", "", "gateway: shared: the password is empty or not set"},
		{"passwordFile: " + file, "token-from-environment\n", ""},
		{"passwordFile: " + file, "\n", "gateway: shared: the password is empty or not set"},
		{"passwordFile: " + file + ".not", "", "gateway: shared: passwordFile cannot be read"},
	} {
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		g, err := New(t.Context(), parse(t, open(doc, "shared: {redis: {url: redis://"+server.Address+", "+c.ref+"}}")), Options{Environ: environ, Stdout: newJournal()})
		switch {
		case c.want != "":
			if err == nil || err.Error() != c.want {
				t.Errorf("New() with %s = %v; want %s", c.ref, err, c.want)
			}
		case err != nil:
			t.Errorf("New() with %s = %v; want a gateway", c.ref, err)
		default:
			if why := g.common.store.Outage(); why != shared.OK {
				t.Errorf("New() with %s: shared state is %v; want ok", c.ref, why)
			}
			_ = g.Shutdown(t.Context())
		}
	}
}

// Where the server is is fixed while the process lives.
func TestSharedStateTakesARestart(t *testing.T) {
	doc := registration("0.1", hook("com.example.b", "http://127.0.0.1:1", intercepts("0.1", "fail-closed", 100)))
	old := parse(t, open(doc))
	if got := needRestart(old, parse(t, open(doc, sharing("127.0.0.1:1")))); !slices.Equal(got, []string{"shared"}) {
		t.Errorf("needRestart(with shared) = %v; want shared", got)
	}
	if got := needRestart(old, parse(t, open(doc))); len(got) != 0 {
		t.Errorf("needRestart(without) = %v; want nothing", got)
	}
}

// A leader that dies while it evaluates is followed by a replica that waits,
// once its lease has ended, which is soon after its backends' time.
func TestLeaderDies(t *testing.T) {
	server := redistest.Start(t)
	b := fakebackend.Start(t, fakebackend.Behave("deny:no"))
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 300)))
	r := start(t, open(doc, sharing(server.Address)))
	dead := shared.Open(shared.Settings{Address: server.Address, Timeout: 5 * time.Second, Prefix: "ahp"})
	k := dedupe.KeyOf("urn:example:harness", "e1")
	_, got, _ := dead.Ask(&shared.Question{Key: r.current.Load().parties[0].questionKeys + hex.EncodeToString(k[:]),
		Fingerprint: sha256.Sum256([]byte(event01("e1"))), Deadline: time.Now().Add(time.Minute), Lease: 300*time.Millisecond + leaseMargin})
	if got != shared.Lead {
		t.Fatalf("Ask = %d; want Lead", got)
	}
	dead.Close()
	if a := r.post("/hooks", event01("e1")); a.decision() != "deny: no" {
		t.Errorf("event of a dead leader = %s; want deny: no", a.body)
	}
}
