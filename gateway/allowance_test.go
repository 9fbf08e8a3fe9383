//go:build unix

package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
	"github.com/ahp-gateway/ahp-gateway/shared"
)

// spent posts to all replicas at once, n events each, and returns how many
// requests were admitted. All others must be told that they are over the quota.
func spent(t *testing.T, all []*rig, prefix string, n int) int64 {
	t.Helper()
	var admitted atomic.Int64
	deliver(all, prefix, n, func(id string, a *reply) {
		wait, _ := strconv.Atoi(a.header.Get("Retry-After"))
		switch {
		case a.status == http.StatusTooManyRequests && wait > 0 && wait <= 24*60*60:
		case a.status == http.StatusOK && a.decision() == expected(id):
			admitted.Add(1)
		default:
			t.Errorf("event %s = %d, %s, Retry-After %d; want %s or 429 for a day at most", id, a.status, a.body, wait, expected(id))
		}
	})
	return admitted.Load()
}

// usedUp returns what /admin/tenants/usage tells of the only tenant's day.
func usedUp(t *testing.T, r *rig) (used, limit int) {
	t.Helper()
	var usage struct {
		Tenants []struct {
			Quota struct{ Day struct{ Used, Limit int } }
		}
	}
	_, body := r.get("/admin/tenants/usage")
	if err := json.Unmarshal([]byte(body), &usage); err != nil || len(usage.Tenants) != 1 {
		t.Fatalf("GET /admin/tenants/usage = %s (%v); want one tenant", body, err)
	}
	return usage.Tenants[0].Quota.Day.Used, usage.Tenants[0].Quota.Day.Limit
}

// The quota of a tenant is that of all replicas together, also where there is a
// rate, and holds over restarts of replicas and for what is counted when it changes.
func TestReplicasShareTheQuota(t *testing.T) {
	for _, rate := range []string{"", ", rate: 100000, burst: 100000"} {
		server, b := redistest.Start(t), judge(t)
		doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 20_000)))
		text := func(quota int) string {
			return open(doc, sharing(server.Address), fmt.Sprintf("limits: {quotaDay: %d%s}", quota, rate))
		}
		all := startReplicas(t, 2, text(70))
		if got := spent(t, all, "e", 60); got != 70 {
			t.Errorf("%d of 120 requests to 2 replicas were admitted; want the quota, 70", got)
		}
		for i, r := range all {
			if used, limit := usedUp(t, r); used != 70 || limit != 70 {
				t.Errorf("replica %d tells of %d of %d used; want 70 of 70", i, used, limit)
			}
		}
		later := start(t, text(75)) // and a restarted one
		if got := spent(t, []*rig{later}, "later", 10); got != 5 {
			t.Errorf("%d requests to a replica that comes later were admitted; want 5", got)
		}
		for _, c := range []struct{ quota, want int }{{60, 0}, {80, 5}} {
			if _, err := all[0].Reload(t.Context(), parse(t, text(c.quota))); err != nil {
				t.Fatal(err)
			}
			if got := spent(t, all[:1], fmt.Sprint("quota", c.quota, "-"), 10); got != int64(c.want) {
				t.Errorf("%d requests were admitted with a quota of %d and 75 used; want %d", got, c.quota, c.want)
			}
		}
		if n := all[0].places.Taken(); n != 0 {
			t.Errorf("%d places are taken at rest; want 0", n)
		}
	}
}

// While the server is away, in the middle of a load, nobody is refused who is
// within the quota as far as each replica knows; what was admitted meanwhile
// counts when it is back, though it has lost its data.
func TestQuotaWhileTheServerIsAway(t *testing.T) {
	server, b := redistest.Start(t), judge(t)
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 20_000)))
	all := startReplicas(t, 2, open(doc, sharing(server.Address), "limits: {quotaDay: 1000}"))
	var answered atomic.Int64
	killed := make(chan struct{})
	deliver(all, "e", 200, func(id string, a *reply) {
		if got := a.decision(); got != expected(id) {
			t.Errorf("event %s = %d, %s; want %s", id, a.status, a.body, expected(id))
		}
		if answered.Add(1) == 200 {
			server.Kill()
			close(killed)
		}
	})
	<-killed
	for _, r := range all { // and some that are certainly without it
		for r.common.store.Outage() == shared.OK {
			r.post("/hooks", event01("awake"))
			answered.Add(1)
		}
	}
	if got := spent(t, all, "away", 50); got != 100 {
		t.Errorf("%d of 100 requests without the server were admitted; want all", got)
	}
	before := answered.Load() + 100
	server.Restart()
	for _, r := range all {
		for r.common.store.Outage() != shared.OK { // a second at most
			r.get("/readyz")
		}
	}
	// Those that were just being asked about when it died may be lost: 16 events
	// side by side to both replicas, twice, since each may have lost sight of as many.
	const lost = 2 * 2 * 16
	got := spent(t, all, "back", 500)
	if want := 1000 - before; got < want-lost || got > want+lost {
		t.Errorf("%d requests were admitted once the server was back and %d before; want %d, give or take %d", got, before, want, lost)
	}
	for i, r := range all {
		if used, _ := usedUp(t, r); used != 1000 {
			t.Errorf("replica %d tells of %d used; want 1000", i, used)
		}
	}
}
