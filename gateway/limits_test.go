package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// meters collects what a gateway measures.
type meters struct {
	t      testing.TB
	reader *sdkmetric.ManualReader
}

// measured makes start give the gateway a meter provider that m reads.
func measured(t testing.TB) (m *meters, o func(*Options)) {
	m = &meters{t: t, reader: sdkmetric.NewManualReader()}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(m.reader))
	return m, func(o *Options) { o.MeterProvider = provider }
}

// series is one time series: its instrument, its attributes as "key=value,…" in
// order of their keys, and what it counts. A histogram counts its values.
type series struct {
	instrument, attributes string
	value                  int64
}

// collect reads every series there is.
func (m *meters) collect() []series {
	m.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := m.reader.Collect(context.Background(), &rm); err != nil {
		m.t.Fatalf("Collect() = %v; want none", err)
	}
	var all []series
	for _, scope := range rm.ScopeMetrics {
		for _, i := range scope.Metrics {
			add := func(set attribute.Set, n int64) {
				all = append(all, series{i.Name, set.Encoded(attribute.DefaultEncoder()), n})
			}
			switch d := i.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, int64(p.Count))
				}
			default:
				m.t.Errorf("instrument %s holds %T; want a sum, gauge or histogram", i.Name, d)
			}
		}
	}
	return all
}

// value returns the value of one series, 0 if it is not there.
func (m *meters) value(instrument, attributes string) int64 {
	m.t.Helper()
	for _, s := range m.collect() {
		if s.instrument == instrument && s.attributes == attributes {
			return s.value
		}
	}
	return 0
}

// refused returns how many requests were refused for a reason.
func (m *meters) refused(reason string) int64 {
	m.t.Helper()
	return m.value("ahp.gateway.refused", "ahp.reason="+reason)
}

// want checks the number of refusals for a reason.
func (m *meters) want(reason string, n int64) {
	m.t.Helper()
	if got := m.refused(reason); got != n {
		m.t.Errorf("ahp.gateway.refused{ahp.reason=%s} = %d; want %d", reason, got, n)
	}
}

// holding starts a backend that keeps every event until Release, and then
// passes it.
func holding(t testing.TB) (*fakebackend.Server, string) {
	b := fakebackend.Start(t, fakebackend.Behave("late"))
	return b, registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 20_000)))
}

// hold posts n events that b keeps, and returns what waits for their answers.
func (r *rig) hold(b *fakebackend.Server, prefix string, n int, headers ...string) (wait func() []*reply) {
	r.t.Helper()
	before := b.Count()
	answers := make([]*reply, n)
	var sent sync.WaitGroup
	for i := range n {
		sent.Go(func() { answers[i] = r.post("/hooks", event01(fmt.Sprint(prefix, i)), headers...) })
	}
	b.Await(before + n)
	return func() []*reply { sent.Wait(); return answers }
}

// over checks a refusal beyond a limit: its status, and when to come back.
func over(t testing.TB, a *reply, status int) {
	t.Helper()
	if a.status != status {
		t.Errorf("request over the limit = %d %s; want %d", a.status, a.body, status)
	}
	if n, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || n < 1 {
		t.Errorf("request over the limit: Retry-After %q; want whole seconds, at least 1", a.header.Get("Retry-After"))
	}
}

// passed checks that everything that was admitted was answered.
func passed(t testing.TB, answers []*reply) {
	t.Helper()
	for i, a := range answers {
		if a.decision() != "pass" {
			t.Errorf("admitted request %d = %s %s; want pass", i, a.decision(), a.body)
		}
	}
}

func TestInFlightLimit(t *testing.T) {
	b, doc := holding(t)
	m, measure := measured(t)
	r := start(t, open(doc, "limits: {inFlight: 3}"), measure)
	wait := r.hold(b, "held", 3)
	if n := m.value("ahp.gateway.in_flight", ""); n != 3 {
		t.Errorf("ahp.gateway.in_flight = %d; want 3", n)
	}
	for i := range 5 {
		over(t, r.post("/hooks", event01(fmt.Sprint("over", i))), http.StatusServiceUnavailable)
	}
	m.want("in_flight", 5)
	b.Release()
	passed(t, wait())
	// Those that were refused come back and are decided.
	for i := range 5 {
		passed(t, []*reply{r.post("/hooks", event01(fmt.Sprint("over", i)))})
	}
	m.want("in_flight", 5)
	if n := b.Count(); n != 8 {
		t.Errorf("the backend was called %d times; want 8", n)
	}
}

// One tenant at its limit is refused; the other is served.
func TestInFlightLimitPerTenant(t *testing.T) {
	b, doc := holding(t)
	free := fakebackend.Start(t)
	m, measure := measured(t)
	r := start(t, many(
		tenantEntry("acme", doc, []string{"acme-key"}, "inFlight: 2"),
		tenantEntry("beta", registration("0.1", hook("com.example.b", free.URL, intercepts("0.1", "fail-closed", 5000))), []string{"beta-key"}, "inFlight: 2")), measure)
	const acme, beta = "Authorization: Bearer acme-key", "Authorization: Bearer beta-key"
	wait := r.hold(b, "held", 2, acme)
	for i := range 4 {
		over(t, r.post("/hooks", event01(fmt.Sprint("over", i)), acme), http.StatusServiceUnavailable)
		passed(t, []*reply{r.post("/hooks", event01(fmt.Sprint("other", i)), beta)})
	}
	m.want("tenant_in_flight", 4)
	m.want("in_flight", 0)
	b.Release()
	passed(t, wait())
	passed(t, []*reply{r.post("/hooks", event01("after"), acme)})
}

// A burst is served, what comes faster is told when to come back, and another
// tenant is not slowed.
func TestRateLimit(t *testing.T) {
	b := fakebackend.Start(t)
	doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))
	m, measure := measured(t)
	r := start(t, many(
		tenantEntry("acme", doc, []string{"acme-key"}, "rate: 0.001", "burst: 3"),
		tenantEntry("beta", doc, []string{"beta-key"}, "rate: 0.001", "burst: 5")), measure)
	const acme, beta = "Authorization: Bearer acme-key", "Authorization: Bearer beta-key"
	for i := range 3 {
		passed(t, []*reply{r.post("/hooks", event01(fmt.Sprint("burst", i)), acme)})
	}
	for i := range 4 {
		over(t, r.post("/hooks", event01(fmt.Sprint("over", i)), acme), http.StatusTooManyRequests)
		passed(t, []*reply{r.post("/hooks", event01(fmt.Sprint("other", i)), beta)})
	}
	m.want("rate", 4)
	// A refusal before the tenant is known costs no tenant anything.
	r.post("/hooks", event01("x"), "Authorization: Bearer wrong")
	passed(t, []*reply{r.post("/hooks", event01("last"), beta)})
	over(t, r.post("/hooks", event01("more"), beta), http.StatusTooManyRequests)
	// A reload with another rate takes effect.
	if _, err := r.Reload(t.Context(), parse(t, many(tenantEntry("acme", doc, []string{"acme-key"})))); err != nil {
		t.Fatalf("Reload() = %v; want none", err)
	}
	for i := range 4 {
		passed(t, []*reply{r.post("/hooks", event01(fmt.Sprint("over", i)), acme)})
	}
	if n := b.Count(); n != 3+5+4 {
		t.Errorf("the backend was called %d times; want 12", n)
	}
}

// A limit of connections refuses the connection, not a request on another one.
func TestConnectionLimits(t *testing.T) {
	for _, c := range []struct {
		limit  string
		status int
	}{
		{"connections: 3", http.StatusServiceUnavailable},
		{"connectionsPerIP: 3", http.StatusTooManyRequests},
	} {
		b := fakebackend.Start(t)
		doc := registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000)))
		m, measure := measured(t)
		r := start(t, open(doc, "limits: {"+c.limit+"}"), measure)
		var open []*wire
		for i := range 3 {
			w := dial(t, r, fmt.Sprintf("%s: connection %d", c.limit, i))
			w.send(raw(good, fmt.Sprint("a", i)))
			if a := w.answer(); a == nil || a.status != http.StatusOK {
				t.Errorf("%s = %+v; want a decision", w.name, a)
			}
			open = append(open, w)
		}
		if n := m.value("ahp.gateway.connections", ""); n < 3 {
			t.Errorf("%s: ahp.gateway.connections = %d; want the 3 open ones", c.limit, n)
		}
		for i := range 4 {
			w := dial(t, r, c.limit+": connection over the limit")
			if a := w.answer(); a == nil || a.status != c.status {
				t.Errorf("%s %d = %+v; want %d", w.name, i, a, c.status)
			}
			if a := w.answer(); a != nil {
				t.Errorf("%s: a second answer %+v; want it closed", w.name, a)
			}
			w.conn.Close()
		}
		if n := m.value("ahp.gateway.connections.rejected", ""); n != 4 {
			t.Errorf("%s: ahp.gateway.connections.rejected = %d; want 4", c.limit, n)
		}
		// The open ones live on, and a place that becomes free is given away.
		for i, w := range open {
			w.send(raw(good, fmt.Sprint("b", i)))
			if a := w.answer(); a == nil || a.status != http.StatusOK {
				t.Errorf("%s, second request = %+v; want a decision", w.name, a)
			}
		}
		open[0].send(raw("$PConnection: close\r\nContent-Length: $L\r\n\r\n$E", "last"))
		if a := open[0].answer(); a == nil || a.status != http.StatusOK {
			t.Errorf("%s, last request = %+v; want a decision", open[0].name, a)
		}
		if a := open[0].answer(); a != nil {
			t.Errorf("%s = %+v; want it closed", open[0].name, a)
		}
		r.eventuallyServed("after")
		for _, w := range open {
			w.conn.Close()
		}
	}
}

// eventuallyServed asks on new connections until one is admitted: the server
// forgets a connection a moment after its client has seen it closed.
func (r *rig) eventuallyServed(id string) {
	r.t.Helper()
	for range 1000 {
		if r.served(id) {
			return
		}
	}
	r.t.Errorf("no new connection was served after one had been closed")
}

func TestSizeLimits(t *testing.T) {
	b := fakebackend.Start(t)
	m, measure := measured(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))),
		"limits: {body: 2KiB, headers: 4KiB}"), measure)
	fill := func(size int) string {
		e := event01("size")
		return e + strings.Repeat(" ", size-len(e))
	}
	if a := r.post("/hooks", fill(2048)); a.decision() != "pass" {
		t.Errorf("body of 2 KiB = %s; want pass", a.decision())
	}
	if a := r.post("/hooks", fill(2049)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("body of 2 KiB and a byte = %d; want 413", a.status)
	}
	m.want("body_size", 1)
	if a := r.post("/hooks", fill(2048), "X-A: "+strings.Repeat("a", 3000)); a.decision() != "pass" {
		t.Errorf("header of 3 KiB = %s; want pass", a.decision())
	}
	if a := r.post("/hooks", fill(2048), "X-A: "+strings.Repeat("a", 4096)); a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("header of more than 4 KiB = %d; want 431", a.status)
	}
	m.want("header_size", 1)
	if a := r.post("/hooks", event01("after")); a.decision() != "pass" {
		t.Errorf("next request = %s; want pass", a.decision())
	}
	if n := b.Count(); n != 2 { // the three of size 2 KiB are one event
		t.Errorf("the backend was called %d times; want 2", n)
	}
}

// Every refusal is counted once, under its own reason.
func TestRefusalsAreCounted(t *testing.T) {
	_, doc := denies(t, "acme")
	m, measure := measured(t)
	r := start(t, many(tenantEntry("acme", doc, []string{"acme-key"})), measure)
	const key = "Authorization: Bearer acme-key"
	send := func(head string) func() {
		return func() {
			w := dial(t, r, head)
			defer w.conn.Close()
			w.send(raw(head, "e"))
			w.conn.CloseWrite()
			w.answer()
		}
	}
	counted := map[string]int64{}
	for _, c := range []struct {
		reason string
		do     func()
	}{
		{"framing", send("$PContent-Length: $L\r\nTransfer-Encoding: chunked\r\n\r\n$C0\r\n\r\n")},
		{"framing", send("POST //hooks HTTP/1.1\r\n$HContent-Length: $L\r\n\r\n$E")},
		{"malformed", send("$PX/A: b\r\n\r\n")},
		{"malformed", send("hello\r\n\r\n")},
		{"path", func() { r.post("/nowhere", event01("e"), key) }},
		{"method", send("GET /hooks HTTP/1.1\r\n$H\r\n")},
		{"media_type", func() { r.post("/hooks", event01("e"), key, "Content-Type: text/plain") }},
		{"media_type", func() { r.post("/hooks", event01("e"), key, "Content-Encoding: gzip") }},
		{"credential", func() { r.post("/hooks", event01("e")) }},
		{"credential", func() { r.post("/hooks", event01("e"), "Authorization: Bearer wrong") }},
		{"tenant", func() { r.post("/t/beta/hooks", event01("e"), key) }},
	} {
		c.do()
		counted[c.reason]++
		for _, s := range m.collect() {
			reason, ok := strings.CutPrefix(s.attributes, "ahp.reason=")
			if s.instrument == "ahp.gateway.refused" && (!ok || s.value != counted[reason]) {
				t.Errorf("after a refusal for %s, {%s} = %d; want %d", c.reason, s.attributes, s.value, counted[reason])
			}
		}
	}
}

// Every instrument is there, with attributes from a closed set of keys, and no
// value of any of them comes from a caller.
func TestInstruments(t *testing.T) {
	denying := fakebackend.Start(t, fakebackend.WithScript(func(n int, _ *fakebackend.Request) string {
		return []string{"pass", "deny:canary", "status-500", "effects:[{\"type\":\"canary\"}]"}[n%4]
	}))
	observer := fakebackend.Start(t)
	doc := registration("0.1",
		hook("com.example.deny", denying.URL, intercepts("0.1", "fail-open", 5000)),
		hook("com.example.observe", observer.URL, `"events":["tool.after"],"mode":"observe"`))
	m, measure := measured(t)
	r := start(t, many(tenantEntry("acme", doc, []string{"acme-key"}), tenantEntry("beta", doc, []string{"beta-key"})), measure)
	key := []string{"Authorization: Bearer acme-key", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"tracestate: canary=1", "baggage: ahp.tenant=canary", "X-Canary: canary", "User-Agent: canary"}
	for i := range 4 {
		r.post("/t/acme/hooks?canary", edit(event01(fmt.Sprint("canary", i)), "Bash", "canary", "urn:example:harness", "urn:canary"), key...)
	}
	r.post("/hooks", event01("canary0"), key...)
	r.post("/hooks", edit(event01("canary"), "tool.before", "canary"), key...)
	r.post("/hooks", edit(event01("canary"), "hooks/intercept", "canary"), key...)
	r.post("/hooks", edit(event01("canary"), `"0.1"`, `"canary"`), key...)
	r.post("/hooks", notification("0.1", "canary", "tool.after", `,"session":{"id":"s"},"tool":{"callId":"c","name":"canary","kind":"shell","input":{}}`), key...)
	r.post("/t/canary/hooks", event01("canary"), key...)
	r.post("/canary", event01("canary"), key...)
	r.post("/hooks", event01("canary"), "Authorization: Bearer canary")
	r.post("/hooks", event01("canary"), append(key, "Content-Type: canary")...)
	observer.Await(1)
	r.audit.await(5)

	keys := map[string]string{ // instrument → the keys of its attributes
		"ahp.gateway.decisions":                            "ahp.tenant ahp.verdict",
		"ahp.gateway.fail_open.passes":                     "ahp.tenant",
		"ahp.gateway.inexact":                              "ahp.tenant",
		"ahp.gateway.steps":                                "ahp.backend ahp.outcome ahp.tenant",
		"ahp.gateway.failures":                             "ahp.backend ahp.failure.class ahp.tenant",
		"ahp.gateway.deliveries":                           "ahp.backend ahp.result ahp.tenant",
		"ahp.gateway.breaker.transitions":                  "ahp.backend ahp.breaker.state ahp.tenant",
		"ahp.gateway.dedupe":                               "ahp.outcome ahp.tenant",
		"ahp.gateway.errors":                               "ahp.tenant rpc.jsonrpc.error_code",
		"ahp.gateway.notifications":                        "ahp.result ahp.tenant",
		"ahp.gateway.refused":                              "ahp.reason",
		"ahp.gateway.throttled":                            "ahp.reason ahp.tenant",
		"ahp.gateway.panics":                               "",
		"ahp.gateway.config.reloads":                       "ahp.result",
		"ahp.gateway.decision.duration":                    "ahp.verdict",
		"ahp.gateway.self.duration":                        "",
		"ahp.gateway.backend.duration":                     "ahp.backend ahp.tenant",
		"ahp.gateway.in_flight":                            "",
		"ahp.gateway.connections":                          "",
		"ahp.gateway.connections.rejected":                 "",
		"ahp.gateway.breaker.state":                        "ahp.backend ahp.tenant",
		"ahp.gateway.deliveries.queued":                    "ahp.backend ahp.tenant",
		"ahp.gateway.deliveries.queued_bytes":              "",
		"ahp.gateway.audit.queued":                         "",
		"ahp.gateway.audit.records":                        "ahp.result",
		"ahp.gateway.audit.unrecorded":                     "ahp.tenant",
		"ahp.gateway.discovery.skipped":                    "ahp.tenant",
		"ahp.gateway.config.generation":                    "",
		"ahp.gateway.config.last_good":                     "",
		"ahp.gateway.config.last_reload_successful":        "",
		"ahp.gateway.config.last_reload_success_timestamp": "",
	}
	for _, def := range instruments {
		if _, ok := keys[def.name]; !ok {
			t.Errorf("instrument %s is not in this test's table", def.name)
		}
	}
	missing := map[string]bool{}
	for name := range keys {
		missing[name] = true
	}
	known := map[string]bool{} // series seen
	for _, s := range m.collect() {
		delete(missing, s.instrument)
		want, ok := keys[s.instrument]
		var got []string
		for kv := range strings.SplitSeq(s.attributes, ",") {
			k, v, _ := strings.Cut(kv, "=")
			if k != "" {
				got = append(got, k)
			}
			switch {
			case k == "ahp.tenant" && v != "acme" && v != "beta":
				t.Errorf("%s{%s}: tenant %q; want a configured one", s.instrument, s.attributes, v)
			case k == "ahp.backend" && v != "com.example.deny" && v != "com.example.observe":
				t.Errorf("%s{%s}: backend %q; want a configured one", s.instrument, s.attributes, v)
			case v == "unknown":
				t.Errorf("%s{%s}: an attribute without a name", s.instrument, s.attributes)
			}
		}
		if slices.Sort(got); !ok || strings.Join(got, " ") != want {
			t.Errorf("%s{%s} has attributes %q; want %q", s.instrument, s.attributes, got, want)
		}
		if strings.Contains(s.attributes, "canary") {
			t.Errorf("%s{%s}: a value comes from a caller", s.instrument, s.attributes)
		}
		if id := s.instrument + "{" + s.attributes + "}"; known[id] {
			t.Errorf("series %s appears twice", id)
		} else {
			known[id] = true
		}
	}
	for name := range missing {
		t.Errorf("instrument %s has no series", name)
	}

	for _, c := range []struct {
		instrument, attributes string
		want                   int64
	}{
		{"ahp.gateway.decisions", "ahp.tenant=acme,ahp.verdict=pass", 4},
		{"ahp.gateway.decisions", "ahp.tenant=acme,ahp.verdict=deny", 1},
		{"ahp.gateway.decisions", "ahp.tenant=beta,ahp.verdict=pass", 0},
		{"ahp.gateway.fail_open.passes", "ahp.tenant=acme", 2},
		{"ahp.gateway.steps", "ahp.backend=com.example.deny,ahp.outcome=failed_open,ahp.tenant=acme", 2},
		{"ahp.gateway.dedupe", "ahp.outcome=hit,ahp.tenant=acme", 0},
		{"ahp.gateway.dedupe", "ahp.outcome=conflict,ahp.tenant=acme", 0},
		{"ahp.gateway.errors", "ahp.tenant=acme,rpc.jsonrpc.error_code=-32601", 1},
		{"ahp.gateway.errors", "ahp.tenant=acme,rpc.jsonrpc.error_code=-32001", 1},
		{"ahp.gateway.errors", "ahp.tenant=acme,rpc.jsonrpc.error_code=-32002", 1},
		{"ahp.gateway.notifications", "ahp.result=accepted,ahp.tenant=acme", 1},
		{"ahp.gateway.refused", "ahp.reason=tenant", 1},
		{"ahp.gateway.decision.duration", "ahp.verdict=pass", 4},
		{"ahp.gateway.decision.duration", "ahp.verdict=deny", 1},
		{"ahp.gateway.self.duration", "", 5},
		{"ahp.gateway.in_flight", "", 0},
		{"ahp.gateway.panics", "", 0},
	} {
		if got := m.value(c.instrument, c.attributes); got != c.want {
			t.Errorf("%s{%s} = %d; want %d", c.instrument, c.attributes, got, c.want)
		}
	}
}
