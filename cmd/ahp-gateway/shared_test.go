//go:build unix

package main

import (
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// send posts a message over a connection of its own and returns the answer's body.
func send(t testing.TB, url string, message []byte) string { return post(t, once, url, message) }

func post(t testing.TB, client *http.Client, url string, message []byte) string {
	t.Helper()
	resp, err := client.Post(url+"/hooks", "application/json", bytes.NewReader(message))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("answer = %d, %v; want 200 and a body", resp.StatusCode, err)
	}
	return string(body)
}

// Of three processes that get every event at once, one evaluates it.
func TestThreeOfTheBinaryEvaluateOnce(t *testing.T) {
	const events = 10_000
	server, backend := redistest.Start(t), fakebackend.Start(t, fakebackend.Behave("deny"))
	dir := folder(t, "gateway.yaml", openFile(onePolicy(backend.URL), "shared: {redis: {url: redis://"+server.Address+", timeout: 5s}}"))
	var replicas []*process
	var urls []string
	for range 3 {
		p := launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
		public, _ := p.urls()
		replicas, urls = append(replicas, p), append(urls, public)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() {
			for range events / 16 {
				message := newEvent(ahp.V01).message()
				var each sync.WaitGroup
				for _, url := range urls {
					each.Go(func() {
						if got := post(t, client, url, message); !strings.Contains(got, denied) {
							t.Errorf("answer = %s; want a deny", got)
						}
					})
				}
				each.Wait()
			}
		})
	}
	senders.Wait()
	if got := backend.Count(); got != events {
		t.Errorf("%d events to 3 replicas made %d evaluations; want as many", events, got)
	}
	for _, p := range replicas {
		p.quit()
	}
}

// Two processes evaluate an event once. If the one that does is killed, the
// other one evaluates as soon as the lease has ended.
func TestReplicasOfTheBinary(t *testing.T) {
	server := redistest.Start(t, "--requirepass", canaryToken)
	backend := fakebackend.Start(t, fakebackend.Behave("deny", "late", "deny"))
	document := strings.Replace(onePolicy(backend.URL), "5000", "2000", 1)
	dir := folder(t, "gateway.yaml", openFile(document, "shared: {redis: {url: redis://"+server.Address+", passwordEnv: TEST_TOKEN, timeout: 5s}}"))
	serve := func() (p *process, public, admin string) {
		p = launch(t, "serve", "--config", filepath.Join(dir, "gateway.yaml"))
		public, admin = p.urls()
		return p, public, admin
	}
	first, firstURL, _ := serve()
	second, secondURL, admin := serve()

	message := newEvent(ahp.V01).message()
	if a, b := send(t, firstURL, message), send(t, secondURL, message); !strings.Contains(a, denied) || a != b {
		t.Errorf("answers of two replicas = %s, %s; want the same deny", a, b)
	}
	if got := backend.Count(); got != 1 {
		t.Errorf("%d evaluations; want 1", got)
	}
	if got := get(t, admin+"/readyz"); got != "ready\n" {
		t.Errorf("/readyz = %q; want ready", got)
	}
	if got, want := get(t, admin+"/metrics"), "ahp_gateway_shared_available 1\n"; !strings.Contains(got, want) {
		t.Errorf("/metrics has no line %s", want)
	}

	message = newEvent(ahp.V01).message()
	var lost sync.WaitGroup
	lost.Go(func() {
		if got := send(t, firstURL, message); strings.Contains(got, "result") {
			t.Errorf("answer of a killed replica = %s; want none", got)
		}
	})
	backend.Await(2) // the first is evaluating
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	lost.Wait()
	if got := send(t, secondURL, message); !strings.Contains(got, denied) {
		t.Errorf("answer of the other replica = %s; want the deny of its own evaluation", got)
	}
	if got := backend.Count(); got != 3 {
		t.Errorf("%d evaluations; want 3", got)
	}
	backend.Release()
	second.quit()
}
