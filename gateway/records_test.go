package gateway

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// However many records a tenant leaves while the audit log cannot be written,
// those of another one find room, and who loses some is counted.
func TestShareOfAuditQueue(t *testing.T) {
	b := fakebackend.Start(t)
	m, measure := measured(t)
	const head = "audit: {stdout: true}\nlimits: {auditQueue: 64}\n"
	r := start(t, head+many(tenantEntry("hostile", policy(b), []string{"hostile-key"})), measure)
	reload := func(text string) {
		t.Helper()
		if _, err := r.Reload(t.Context(), parse(t, head+text)); err != nil {
			t.Fatal(err)
		}
	}
	reload(pair(policy(b), policy(b))) // until now one tenant had it all
	dropped := func(who string) int64 { return m.value("ahp.gateway.audit.unrecorded", "ahp.tenant="+who) }
	r.audit.mu.Lock() // the log hangs
	flood, own := 0, 0
	for ; dropped("hostile") < 100; flood++ {
		passed(t, []*reply{r.post("/hooks", event01(fmt.Sprint("flood", flood)), hostile)})
	}
	for ; own < 64/4*3/4; own++ { // three quarters of the last quarter, which is less than a third
		passed(t, []*reply{r.post("/hooks", event01(fmt.Sprint("own", own)), neighbour)})
	}
	r.audit.mu.Unlock()
	found := map[string]int{}
	for _, record := range r.audit.await(flood - 100 + own) {
		found[str(record["tenant"])]++
	}
	if found["hostile"] != flood-100 || found["neighbour"] != own {
		t.Errorf("the audit log has %v; want %d records of hostile and %d of neighbour", found, flood-100, own)
	}
	for _, s := range m.collect() {
		switch {
		case s.instrument == "ahp.gateway.audit.unrecorded" && s.attributes != "ahp.tenant=hostile" && s.value != 0,
			s.instrument == "ahp.gateway.audit.records" && s.attributes == "ahp.result=dropped" && s.value != 100:
			t.Errorf("%s{%s} = %d; want 100 of hostile alone", s.instrument, s.attributes, s.value)
		}
	}
	passed(t, []*reply{r.post("/hooks", event01("after"), hostile)})
	r.audit.await(flood - 100 + own + 1)
	before := r.current.Load().parties[0].records
	reload(pair(policy(b), policy(b), "rate: 5"))
	if after := r.current.Load().parties[0].records; after == nil || after != before {
		t.Errorf("after a reload the share of the queue is %p; want that of before, %p", after, before)
	}
}

// So it is where it is the admin API that is flooded, by whoever reaches it.
func TestShareOfAuditQueueForChanges(t *testing.T) {
	b := fakebackend.Start(t)
	m, measure := measured(t)
	r := start(t, "audit: {stdout: true}\nlimits: {auditQueue: 64}\n"+many(tenantEntry("neighbour", policy(b), []string{"neighbour-key"})), measure,
		func(o *Options) { o.AdminAPI = http.NotFoundHandler() })
	r.audit.mu.Lock() // the log hangs
	changes := int64(0)
	for ; m.value("ahp.gateway.audit.records", "ahp.result=dropped") < 100; changes++ {
		r.RecordChange(&audit.Record{Change: &audit.Change{Status: http.StatusUnauthorized}})
	}
	const own = 64 / 4 * 3 / 4
	for i := range own {
		passed(t, []*reply{r.post("/hooks", event01(fmt.Sprint("own", i)), neighbour)})
	}
	r.audit.mu.Unlock()
	r.audit.await(int(changes) - 100 + own)
	if got := m.value("ahp.gateway.audit.unrecorded", "ahp.tenant=neighbour"); got != 0 {
		t.Errorf("%d records of the neighbour were dropped; want none", got)
	}
}

// Nor does an open tenant, which is alone, push out the records of the admin API.
func TestShareOfAuditQueueOfAnOpenTenant(t *testing.T) {
	b := fakebackend.Start(t)
	m, measure := measured(t)
	r := start(t, open(policy(b), "audit: {stdout: true}", "limits: {auditQueue: 64}"), measure,
		func(o *Options) { o.AdminAPI = http.NotFoundHandler() })
	dropped := func() int64 { return m.value("ahp.gateway.audit.records", "ahp.result=dropped") }
	r.audit.mu.Lock() // the log hangs
	events := 0
	for ; dropped() < 10 && events < 200; events++ {
		passed(t, []*reply{r.post("/hooks", event01(fmt.Sprint("e", events)))})
	}
	before := dropped()
	for range 4 {
		r.RecordChange(&audit.Record{Change: &audit.Change{Status: http.StatusUnauthorized}})
	}
	if got := dropped() - before; got != 0 {
		t.Errorf("%d of 4 records of the admin API were dropped; want none", got)
	}
	r.audit.mu.Unlock()
}
