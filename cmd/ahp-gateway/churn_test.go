//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// Changes through two replicas, of their own files, and by signals come at the same
// time: who has nothing to do with them notices none, and in the end both serve what
// was asked for.
func TestChangesOfAllKindsAtOnce(t *testing.T) {
	server := redistest.Start(t)
	pass, deny := pair(t)
	state := filepath.Join(t.TempDir(), "state")
	a := newReplica(t, server.Address, pass.URL)
	b := newReplica(t, server.Address, pass.URL, "--state-dir", state, "--fallback", "last-good")
	both := []*replica{a, b}
	a.add("denied", deny.URL)
	b.serves(tenantKey("denied"), denied)
	var stop atomic.Bool
	var background, changing sync.WaitGroup
	for _, r := range both {
		for id, want := range map[string]string{"steady": passed, "denied": denied} {
			background.Go(func() {
				for !stop.Load() {
					if got := with(t, r.public, tenantKey(id)); !strings.Contains(got, want) {
						t.Errorf("answer to %s during changes of others = %s; want one with %s", id, got, want)
						return
					}
					time.Sleep(2 * time.Millisecond)
				}
			})
		}
		good := contentOf(t, filepath.Join(r.dir, "gateway.yaml"))
		background.Go(func() {
			for n := 0; !stop.Load(); n++ {
				put(t, filepath.Join(r.dir, "gateway.yaml"), good+[]string{"x: [", "limits: {rate: 5000}\n", "", "x: 1\n"}[n%4])
				put(t, filepath.Join(r.dir, "tenants/other.yaml"), []string{tenantFile("other", pass.URL), "id: [", tenantFile("own-0-1", pass.URL)}[n%3])
				time.Sleep(70 * time.Millisecond)
				if n%7 == 6 {
					r.signal(syscall.SIGHUP)
				}
			}
			put(t, filepath.Join(r.dir, "gateway.yaml"), good)
			if err := os.Remove(filepath.Join(r.dir, "tenants/other.yaml")); err != nil {
				t.Error(err)
			}
		})
	}
	var mu sync.Mutex
	there := make(map[string]bool) // whether the tenant of a key is to be served
	for i, r := range both {
		for lane := range 2 {
			changing.Go(func() {
				do := func(stdin string, args ...string) result {
					for range 50 {
						got := r.tenant(stdin, args...)
						if got.code == 0 || !strings.Contains(got.stderr, "HTTP 503") && !strings.Contains(got.stderr, "HTTP 409") && !strings.Contains(got.stderr, "HTTP 422") {
							return got
						}
						time.Sleep(20 * time.Millisecond)
					}
					return r.tenant(stdin, args...)
				}
				ended := time.Now().Add(6 * time.Second)
				for n := 0; time.Now().Before(ended); n++ {
					id := fmt.Sprintf("t-%d-%d-%d", i, lane, n)
					if got := do(tenantFile(id, pass.URL), "add"); got.code != 0 {
						t.Errorf("tenant add %s = %+v; want 0", id, got)
						return
					}
					rotated := do("", "rotate-key", id)
					if rotated.code != 0 {
						t.Errorf("tenant rotate-key %s = %+v; want 0", id, rotated)
						return
					}
					if got := do("", "remove-key", id, sum(tenantKey(id))[:8]); got.code != 0 {
						t.Errorf("tenant remove-key %s = %+v; want 0", id, got)
						return
					}
					if got := with(t, r.public, tenantKey(id)); !strings.Contains(got, "HTTP 401") {
						t.Errorf("answer to a key of %s that was removed just now = %s; want 401", id, got)
					}
					if got := with(t, r.public, rotated.stdout); !strings.Contains(got, passed) {
						t.Errorf("answer to the key of %s that was made just now = %s; want a pass", id, got)
					}
					if n%2 == 0 {
						if got := do("", "remove", id); got.code != 0 {
							t.Errorf("tenant remove %s = %+v; want 0", id, got)
							return
						}
					}
					mu.Lock()
					there[tenantKey(id)], there[rotated.stdout] = false, n%2 == 1
					mu.Unlock()
				}
			})
		}
	}
	changing.Wait()
	stop.Store(true)
	background.Wait()
	t.Log(len(there)/2, "tenants were changed")
	for _, r := range both {
		r.isReady()
		for key, is := range there {
			want := "HTTP 401"
			if is {
				want = passed
			}
			r.serves(key, want)
		}
	}
	a.quit()
	b.quit()
}
