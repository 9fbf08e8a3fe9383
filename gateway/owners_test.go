package gateway

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// crowd is a configuration of tenants from–to, each with one backend, and the
// key that is its own.
func crowd(url string, from, to int, more ...string) string {
	doc := registration("0.1", hook("com.example.b", url, intercepts("0.1", "fail-closed", 5000)))
	entries := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		entries = append(entries, tenantEntry(fmt.Sprint("t", i), doc, []string{fmt.Sprint("key-", i)}))
	}
	return strings.Join(more, "\n") + "\n" + many(entries...)
}

// counted sums an instrument, in all and by the attribute ahp.tenant.
func counted(all []series, instrument string) (total int64, tenants map[string]int64) {
	tenants = make(map[string]int64)
	for _, s := range all {
		if s.instrument != instrument {
			continue
		}
		total += s.value
		for kv := range strings.SplitSeq(s.attributes, ",") {
			if id, ok := strings.CutPrefix(kv, "ahp.tenant="); ok {
				tenants[id] += s.value
			}
		}
	}
	return total, tenants
}

// However many tenants there are, the time series are bounded, and what they
// add up to is right.
func TestSeriesAreBounded(t *testing.T) {
	const tenants, own = 5000, 1000 // as many as by default
	b := fakebackend.Start(t)
	m := &meters{t: t, reader: sdkmetric.NewManualReader()}
	r := start(t, crowd(b.URL, 0, tenants), func(o *Options) {
		o.Stdout = io.Discard
		o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(m.reader), sdkmetric.WithCardinalityLimit(200_000))
	})
	send := direct(t, r.Gateway)
	for i := range tenants {
		send("e", fmt.Sprint("Authorization: Bearer key-", i))
	}
	all := m.collect()
	for _, c := range []struct {
		instrument string
		total      int64
	}{
		{"ahp.gateway.decisions", tenants}, {"ahp.gateway.dedupe", tenants},
		{"ahp.gateway.steps", tenants}, {"ahp.gateway.backend.duration", tenants},
		{"ahp.gateway.throttled", 0}, {"ahp.gateway.deliveries", 0},
		{"ahp.gateway.breaker.state", 0}, {"ahp.gateway.deliveries.queued", 0},
	} {
		total, by := counted(all, c.instrument)
		if total != c.total || len(by) != own+1 || by["_other"] != c.total/tenants*(tenants-own) {
			t.Errorf("%s = %d of %d tenants, %d of them by _other; want %d of %d and _other, %d",
				c.instrument, total, len(by), by["_other"], c.total, own, c.total/tenants*(tenants-own))
		}
		if c.total > 0 && (by["t0"] != 1 || by[fmt.Sprint("t", own-1)] != 1) {
			t.Errorf("%s{t0, t%d} = %d, %d; want those of the first tenants to be their own", c.instrument, own-1, by["t0"], by[fmt.Sprint("t", own-1)])
		}
	}
	// Five verdicts and all that never happened included.
	if n := len(all); n > 40*(own+1) {
		t.Errorf("%d time series; want at most 40 for each of %d owners", n, own+1)
	}
	for _, s := range all {
		if strings.Contains(s.attributes, "otel.metric.overflow") {
			t.Errorf("%s overflows; want the gateway's own bound to come first", s.instrument)
		}
	}
}

// Who counts where is settled once: sums never run backwards when tenants go,
// a place of one that goes is kept for it, and nobody is moved.
func TestSeriesOverReloads(t *testing.T) {
	b := fakebackend.Start(t)
	m, measure := measured(t)
	const two = "metrics: {tenants: 2}"
	r := start(t, crowd(b.URL, 0, 4, two), measure)
	sent := 0
	for _, c := range []struct {
		from, to int            // the tenants, each of which sends one event
		want     map[string]int // decisions
	}{
		{0, 4, map[string]int{"t0": 1, "t1": 1, "_other": 2}},
		{0, 3, map[string]int{"t0": 2, "t1": 2, "_other": 3}}, // t3 has gone, what it did has not
		{1, 3, map[string]int{"t1": 3, "_other": 4}},
		{1, 6, map[string]int{"t1": 4, "_other": 8}}, // t0's place is not given on
		{0, 1, map[string]int{"t0": 1, "_other": 8}}, // but found again
		{7, 8, map[string]int{"_other": 9}},
	} {
		if _, err := r.Reload(t.Context(), parse(t, crowd(b.URL, c.from, c.to, two))); err != nil {
			t.Fatal(err)
		}
		for i := c.from; i < c.to; i++ {
			sent++
			if a := r.post("/hooks", event01(fmt.Sprint("e", sent)), fmt.Sprint("Authorization: Bearer key-", i)); a.decision() != "pass" {
				t.Errorf("tenant %d = %s; want pass", i, a.body)
			}
		}
		r.audit.await(sent)
		_, by := counted(m.collect(), "ahp.gateway.decisions")
		if len(by) != len(c.want) {
			t.Errorf("tenants %d–%d: decisions by %v; want %v", c.from, c.to, by, c.want)
		}
		for id, n := range c.want {
			if by[id] != int64(n) {
				t.Errorf("tenants %d–%d: decisions of %s = %d; want %d", c.from, c.to, id, by[id], n)
			}
		}
	}
	if total, by := counted(m.collect(), "ahp.gateway.backend.duration"); total != int64(sent) || len(by) != 3 {
		t.Errorf("calls timed = %d of %v; want %d, of t0, t1 and _other", total, by, sent)
	}
	if restart, err := r.Reload(t.Context(), parse(t, crowd(b.URL, 0, 4, "metrics: {tenants: 3}"))); err != nil || strings.Join(restart, " ") != "metrics" {
		t.Errorf("Reload(metrics changed) = %v, %v; want metrics to take a restart", restart, err)
	}
}

// A tenant with very many backends does not take the series of all others.
func TestSeriesOfBackends(t *testing.T) {
	b := fakebackend.Start(t)
	failing := fakebackend.Start(t, fakebackend.Behave("status-500"))
	var hooks []string
	for i := range 2*backendsPerOwner + 3 {
		url := b.URL
		if i == 2*backendsPerOwner+1 {
			url = failing.URL
		}
		hooks = append(hooks, hook(fmt.Sprint("com.example.b", i), url, intercepts("0.1", "fail-open", 5000)))
	}
	m, measure := measured(t)
	r := start(t, "metrics: {tenants: 2}\n"+many(tenantEntry("acme", registration("0.1", hooks...), []string{"acme-key"})), measure)
	r.post("/hooks", event01("e"), "Authorization: Bearer acme-key")
	r.audit.await(1)
	total, by := counted(m.collect(), "ahp.gateway.steps")
	if total != int64(len(hooks)) || by["acme"] != 2*backendsPerOwner || by["_other"] != 3 {
		t.Errorf("steps = %d by %v; want %d, 3 of them by _other", total, by, len(hooks))
	}
	// What a breaker's log line says is its own backend's, whoever counts it.
	for i, want := range []ahp.FailureClass{ahp.FailureClass(0), ahp.FailStatus, ahp.FailureClass(0)} {
		p := r.peer(fmt.Sprint("com.example.b", 2*backendsPerOwner+i))
		if got := ahp.FailureClass(p.lastFailure.Load()); p.stats != r.owners.peer || got != want {
			t.Errorf("%s counts as %v, last failure %v; want among the others, %v", p.id, p.stats.shared, got, want)
		}
	}
}

// A configuration that is refused takes no place.
func TestRefusedTakesNoSeries(t *testing.T) {
	b := fakebackend.Start(t)
	e := newEstate(t, "metrics: {tenants: 2}")
	e.tenant("first", b.URL)
	r := e.serve()
	for i := range 3 {
		refused := fmt.Sprint("refused", i)
		e.tenantOf(refused, `{"protocolVersion":"draft","hooks":[{"id":"com.example.b","transport":{"type":"http","url":"http://127.0.0.1:1"}}]}`)
		if _, err := r.Reload(t.Context(), e.load()); err == nil {
			t.Fatal("Reload of a backend that cannot be asked = no error; want one")
		}
		if err := os.Remove(filepath.Join(e.dir, "tenants", refused+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	e.tenant("second", b.URL)
	e.reload(r)
	second := r.party("second")
	if second.stats == r.owners.party || second.peers[0].stats == r.owners.peer || r.owners.used() {
		t.Error("the second tenant of two counts among the others; want places of its own")
	}
	e.tenant("third", b.URL)
	e.reload(r)
	if third := r.party("third"); third.stats != r.owners.party || !r.owners.used() {
		t.Error("a third tenant has a place of its own; want it among the others, since there are two")
	}
}
