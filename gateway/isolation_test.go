package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/breaker"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// The two tenants of these tests: what one of them does must not matter to the
// other.
const (
	hostile   = "Authorization: Bearer hostile-key"
	neighbour = "Authorization: Bearer neighbour-key"
)

// pair is a configuration of both; more is about the hostile one.
func pair(docHostile, docNeighbour string, more ...string) string {
	return many(tenantEntry("hostile", docHostile, []string{"hostile-key"}, more...),
		tenantEntry("neighbour", docNeighbour, []string{"neighbour-key"}))
}

// policy is a document with one fail-closed interceptor.
func policy(b *fakebackend.Server) string {
	return registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 20_000)))
}

// Of the places for requests in flight, those whose backends hold all their
// calls to the deadline leave some, and whoever is under its share gets it,
// however much the others ask for.
func TestShareOfPlaces(t *testing.T) {
	slow, own := fakebackend.Start(t, fakebackend.Behave("late")), fakebackend.Start(t, fakebackend.Behave("late"))
	m, measure := measured(t)
	r := start(t, "limits: {inFlight: 8}\n"+pair(policy(slow), policy(own)), measure)
	flood := func(want string, n int) {
		t.Helper()
		before := m.refused(want)
		for i := range n {
			over(t, r.post("/hooks", event01(fmt.Sprint("flood", i)), hostile), http.StatusServiceUnavailable)
		}
		m.want(want, before+int64(n))
	}
	waitHostile := r.hold(slow, "held", 6, hostile) // all but the last quarter
	flood("share", 100)
	waitFirst := r.hold(own, "first", 2, neighbour) // a third of eight, rounded down
	flood("in_flight", 20)
	if got := m.value("ahp.gateway.throttled", "ahp.reason=share,ahp.tenant=hostile"); got != 100 {
		t.Errorf("ahp.gateway.throttled{share, hostile} = %d; want 100", got)
	}
	if status, body := r.get("/admin/tenants/usage"); status != http.StatusOK || body != `{"generation":1,"in_flight":8,"limit":8,"tenants":[`+
		`{"tenant":"hostile","in_flight":6,"weight":1},{"tenant":"neighbour","in_flight":2,"weight":1}]}`+"\n" {
		t.Errorf("GET /admin/tenants/usage = %d %s; want who holds the places", status, body)
	}
	// What the neighbour gives back is there for it again, not for the flood.
	own.Release()
	passed(t, waitFirst())
	flood("share", 20)
	passed(t, []*reply{r.post("/hooks", event01("second"), neighbour), r.post("/hooks", event01("third"), neighbour)})
	slow.Release()
	passed(t, waitHostile())
	passed(t, []*reply{r.post("/hooks", event01("after"), hostile)})
	if got := r.places.Taken(); got != 0 {
		t.Errorf("%d places are taken at rest; want 0", got)
	}
}

// A weight decides over the last places, and follows a reload.
func TestWeightOfPlaces(t *testing.T) {
	slow, own := fakebackend.Start(t, fakebackend.Behave("late")), fakebackend.Start(t)
	m, measure := measured(t)
	text := func(weight int) string {
		return "limits: {inFlight: 8}\n" + pair(policy(slow), policy(own), fmt.Sprint("weight: ", weight))
	}
	r := start(t, text(1), measure)
	wait := r.hold(slow, "a", 6, hostile)
	over(t, r.post("/hooks", event01("x"), hostile), http.StatusServiceUnavailable)
	m.want("share", 1)
	before := r.current.Load().parties
	if _, err := r.Reload(t.Context(), parse(t, text(9))); err != nil {
		t.Fatal(err)
	}
	after := r.current.Load().parties
	if after[0].seat != before[0].seat || after[0].seat.Weight() != 9 || after[0].seat.Held() != 6 || after[1].seat != before[1].seat {
		t.Fatalf("after a reload the seat weighs %d and holds %d, or another one is there; want 9 and the 6 of before", after[0].seat.Weight(), after[0].seat.Held())
	}
	waitMore := r.hold(slow, "b", 1, hostile)
	passed(t, []*reply{r.post("/hooks", event01("y"), neighbour)})
	slow.Release()
	passed(t, wait())
	passed(t, waitMore())
	if n := r.places.Taken(); n != 0 || after[0].seat.Held() != 0 {
		t.Errorf("%d places are taken at rest, %d by the seat; want none", n, after[0].seat.Held())
	}
}

// However often a tenant's limits or its weight change, it has no more requests
// in flight than its cap says now, and a configuration that is refused weighs nothing.
func TestCapHoldsOverReloads(t *testing.T) {
	slow, own := fakebackend.Start(t, fakebackend.Behave("late")), fakebackend.Start(t)
	m, measure := measured(t)
	text := func(more ...string) string { return pair(policy(slow), policy(own), more...) }
	r := start(t, text("inFlight: 2", "rate: 1000"), measure)
	wait := r.hold(slow, "a", 2, hostile)
	for i, more := range [][]string{{"rate: 1001"}, {"rate: 1001", "burst: 5"}, {"weight: 3"}, {"rate: 7", "weight: 2"}} {
		if _, err := r.Reload(t.Context(), parse(t, text(append(more, "inFlight: 2")...))); err != nil {
			t.Fatal(err)
		}
		over(t, r.post("/hooks", event01(fmt.Sprint("x", i)), hostile), http.StatusServiceUnavailable)
		m.want("tenant_in_flight", int64(i+1))
	}
	if held, weight := r.current.Load().parties[0].seat.Held(), r.current.Load().parties[0].seat.Weight(); held != 2 || weight != 2 {
		t.Errorf("the seat holds %d places and weighs %d; want 2 and 2", held, weight)
	}
	silent := `{"protocolVersion":"draft","hooks":[{"id":"com.example.b","transport":{"type":"http","url":"http://127.0.0.1:1"}}]}`
	refused := parse(t, pair(policy(slow), silent, "weight: 9", "inFlight: 9"))
	if _, err := r.Reload(t.Context(), refused); err == nil || r.current.Load().parties[0].seat.Weight() != 2 {
		t.Errorf("Reload of a backend that cannot be asked = %v, weight %d; want an error and the weight of before", err, r.current.Load().parties[0].seat.Weight())
	}
	// A cap that is higher counts those of before as well.
	if _, err := r.Reload(t.Context(), parse(t, text("inFlight: 3"))); err != nil {
		t.Fatal(err)
	}
	waitMore := r.hold(slow, "b", 1, hostile)
	over(t, r.post("/hooks", event01("y"), hostile), http.StatusServiceUnavailable)
	slow.Release()
	passed(t, wait())
	passed(t, waitMore())
	passed(t, []*reply{r.post("/hooks", event01("z"), hostile)})
	if n := r.places.Taken(); n != 0 {
		t.Errorf("%d places are taken at rest; want none", n)
	}
}

// A quota is counted over reloads, refused over it, and shown.
func TestQuota(t *testing.T) {
	b := fakebackend.Start(t)
	m, measure := measured(t)
	text := func(more ...string) string { return pair(policy(b), policy(b), more...) }
	r := start(t, text("quota: {day: 3}"), measure)
	send := func(id, who string) *reply { t.Helper(); return r.post("/hooks", event01(id), who) }
	refused := func() {
		t.Helper()
		a := send("over", hostile)
		over(t, a, http.StatusTooManyRequests)
		if seconds, _ := strconv.Atoi(a.header.Get("Retry-After")); seconds > 24*60*60 {
			t.Errorf("Retry-After = %d; want a day at most", seconds)
		}
	}
	shown := func(want string) {
		t.Helper()
		var usage struct {
			Tenants []struct {
				Tenant string
				Quota  json.RawMessage
			}
		}
		_, body := r.get("/admin/tenants/usage")
		if err := json.Unmarshal([]byte(body), &usage); err != nil || len(usage.Tenants) != 2 ||
			string(usage.Tenants[0].Quota) != want || usage.Tenants[1].Quota != nil {
			t.Errorf("GET /admin/tenants/usage = %s (%v); want quota %s, and none of the neighbour", body, err, want)
		}
	}
	reload := func(more ...string) {
		t.Helper()
		if _, err := r.Reload(t.Context(), parse(t, text(more...))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		passed(t, []*reply{send(fmt.Sprint("e", i), hostile)})
	}
	for range 5 {
		refused()
	}
	passed(t, []*reply{send("e", neighbour)})
	m.want("quota", 5)
	if got := m.value("ahp.gateway.throttled", "ahp.reason=quota,ahp.tenant=hostile"); got != 5 {
		t.Errorf("ahp.gateway.throttled{quota, hostile} = %d; want 5", got)
	}
	shown(`{"day":{"used":3,"limit":3},"month":{"used":3,"limit":0}}`)
	reload("quota: {day: 3}", "rate: 1000") // a new limiter, the old count
	refused()
	reload("quota: {day: 0, month: 4}")
	passed(t, []*reply{send("e3", hostile)})
	refused()
	shown(`{"day":{"used":4,"limit":0},"month":{"used":4,"limit":4}}`)
	reload()
	passed(t, []*reply{send("e4", hostile)})
	reload("quota: {month: 5}")
	refused()
	if n := r.places.Taken(); n != 0 {
		t.Errorf("%d places are taken at rest; want 0", n)
	}
}

// Of the room for large bodies that are being answered, a tenant leaves others
// theirs, also where all come from one address.
func TestShareOfBodies(t *testing.T) {
	slow, own := fakebackend.Start(t, fakebackend.Behave("late")), fakebackend.Start(t)
	m, measure := measured(t)
	r := start(t, "limits: {bodyBytes: 8MiB}\n"+pair(policy(slow), policy(own)), measure)
	large := func(id string) string { return event01(id, `,"unknown":"`+strings.Repeat("x", 900<<10)+`"`) }
	var held sync.WaitGroup
	for i := range 2 { // of 4 MiB, the half that one address may fill
		held.Go(func() { passed(t, []*reply{r.post("/hooks", large(fmt.Sprint("held", i)), hostile)}) })
	}
	slow.Await(2)
	for i := range 5 {
		over(t, r.post("/hooks", large(fmt.Sprint("over", i)), hostile), http.StatusServiceUnavailable)
	}
	m.want("tenant_bodies", 5)
	passed(t, []*reply{r.post("/hooks", large("large"), neighbour)})
	slow.Release()
	held.Wait()
	passed(t, []*reply{r.post("/hooks", large("after"), hostile)})
	if n := r.answering.used.Load() + r.bodies.used.Load(); n != 0 {
		t.Errorf("%d bytes are held at rest; want 0", n)
	}
}

func TestBodiesOfAddresses(t *testing.T) {
	b := &bodies{max: 1000, each: 400}
	var greedy, modest origin
	n := 0
	for n < 100 && b.take(&greedy.held, 0, 100) {
		n++
	}
	if n != 5 {
		t.Errorf("one address got room for %d bodies of a tenth each; want 5", n)
	}
	if !b.take(&modest.held, 0, 400) || b.take(&modest.held, 0, 10) || b.take(&modest.held, 400, 200) {
		t.Errorf("another holds %d; want one body of 400 and no more", modest.held.Load())
	}
	b.give(&modest.held, 400)
	if !b.take(&modest.held, 0, 100) || !b.take(&modest.held, 100, 400) {
		t.Error("a body that grows and is its address's only one was refused; want it to have all that is left")
	}
	if b.take(new(atomic.Int64), 0, 1) || b.used.Load() != 1000 {
		t.Errorf("%d of 1000 taken and one more got room; want it refused", b.used.Load())
	}
}

// What shares an address: all of an IPv4 one however it is written, and the
// part of an IPv6 one that nobody else has any of.
func TestOriginOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "2001:db8:1:2::1": "2001:db8:1:2::", "2001:db8:1:3::1": "2001:db8:1:3::",
		"fe80::1%eth0": "fe80::", "::1": "::",
	} {
		ip := netip.MustParseAddr(address)
		if got := originOf(from{addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 1))}); got != netip.MustParseAddr(want) {
			t.Errorf("originOf(%s) = %v; want %s", address, got, want)
		}
	}
}

// from is a connection that is only asked where it comes from.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// A tenant whose observers are dead fills its own share of the room and
// nobody else's.
func TestDeadObservers(t *testing.T) {
	dead, alive := fakebackend.Start(t, fakebackend.Behave("hang")), fakebackend.Start(t)
	observer := func(b *fakebackend.Server, id string) string {
		return registration("0.1", hook("com.example."+id, b.URL, observes("0.1", `"session.start"`)))
	}
	r := start(t, "limits: {observeBytes: 1MiB}\n"+pair(observer(dead, "dead"), observer(alive, "alive")))
	text := strings.Repeat("x", 60<<10)
	flood := func(n int) {
		for i := range n {
			r.post("/hooks", notification("0.1", fmt.Sprint("flood", r.peer("com.example.dead").stats.dropped.Load(), i), "session.start",
				`,"session":{"id":"s"},"unknown":"`+text+`"`), hostile)
		}
	}
	flood(40)
	if got := r.peer("com.example.dead").stats.dropped.Load(); got != 32 { // it may hold no more than it leaves: 8 of 17
		t.Errorf("%d of 40 observations for a dead observer were dropped; want 32", got)
	}
	for i := range 20 {
		flood(2)
		r.post("/hooks", notification("0.1", fmt.Sprint("e", i), "session.start", `,"session":{"id":"s"},"unknown":"`+text+`"`), neighbour)
		alive.Await(i + 1)
	}
	if s := r.peer("com.example.alive").stats; s.dropped.Load()+s.failed.Load() != 0 {
		t.Errorf("the neighbour's observer lost %d and failed %d; want none", s.dropped.Load(), s.failed.Load())
	}
	dead.Release()
}

// A backend that fails all calls of one tenant stays closed to another one.
func TestBreakerStorm(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
		if strings.Contains(string(q.Body), "storm") {
			return "status-500"
		}
		return "deny:no"
	}))
	r := start(t, "breaker: {volume: 5, openFor: 1h}\n"+pair(policy(b), policy(b)))
	for i := range 50 {
		r.post("/hooks", event01(fmt.Sprint("storm", i)), hostile)
		if a := r.post("/hooks", event01(fmt.Sprint("e", i)), neighbour); a.decision() != "deny: no" {
			t.Fatalf("neighbour's event %d = %s; want its own denial", i, a.body)
		}
	}
	parties := r.current.Load().parties
	if h, n := parties[0].peers[0].breaker.State(), parties[1].peers[0].breaker.State(); h != breaker.Open || n != breaker.Closed {
		t.Errorf("breakers = %v, %v; want that of the hostile tenant alone open", h, n)
	}
	if n := b.Count(); n != 5+50 {
		t.Errorf("the backend was called %d times; want 5 times before the breaker opened, and 50 for the neighbour", n)
	}
}

// counting is agrees that counts its calls, which come one after the other.
type counting struct{ calls *int }

func (c counting) Intercept(call *ahp.Call, resp *ahp.Response) ahp.Failure {
	*c.calls++
	return agrees{}.Intercept(call, resp)
}

func (counting) Observe(*ahp.Call) ahp.Failure { return ahp.Failure{} }

// direct returns what sends an event to g past its sockets, with a header line.
// It is for tests that send very many.
func direct(t *testing.T, g *Gateway) (send func(id, header string)) {
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, nil, nil)
	head := "POST /hooks HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"
	if err := ctx.Request.Read(bufio.NewReader(strings.NewReader(head))); err != nil {
		t.Fatal(err)
	}
	return func(id, header string) {
		name, value, _ := strings.Cut(header, ": ")
		ctx.Request.Header.Set(name, value)
		ctx.Request.SetBodyRaw([]byte(event01(id)))
		ctx.Response.Reset()
		g.handle(&ctx)
		if answer := string(ctx.Response.Body()); !strings.Contains(answer, `"effects":[]`) {
			t.Fatalf("%s with %s = %s; want no objection", id, header, answer)
		}
	}
}

// However many events one tenant sends, another's answers are remembered.
func TestFloodOfEventIDs(t *testing.T) {
	const flood, remembered = 100_000, 100
	b := fakebackend.Start(t)
	f := parse(t, pair(policy(b), policy(b)))
	g, err := New(t.Context(), f, Options{Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Shutdown(t.Context()) })
	var calls [2]int
	for i, p := range g.current.Load().parties {
		p.peers[0].breaker = breaker.New(counting{&calls[i]}, breaker.Settings{})
	}
	send := direct(t, g)
	for i := range remembered {
		send(fmt.Sprint("mine", i), neighbour)
	}
	for i := range flood {
		send(fmt.Sprint("flood", i), hostile)
	}
	for i := range remembered {
		send(fmt.Sprint("mine", i), neighbour)
	}
	send("flood0", hostile) // was forgotten: what it may remember is bounded
	if calls[0] != flood+1 || calls[1] != remembered {
		t.Errorf("backends were called %d and %d times; want %d, one event twice, and %d", calls[0], calls[1], flood+1, remembered)
	}
}

// However many bodies come at once, the room and its shares are kept to.
func TestBodiesConcurrently(t *testing.T) {
	b := &bodies{max: 1000}
	var all sync.WaitGroup
	for range 2 {
		share := new(atomic.Int64)
		for range 4 {
			all.Go(func() {
				for range 2000 {
					if !b.take(share, 0, 70) {
						continue
					}
					if used := b.used.Load(); used > b.max {
						t.Errorf("%d bytes are taken; want at most %d", used, b.max)
					}
					b.give(share, 70)
				}
			})
		}
		defer func() {
			if share.Load() != 0 {
				t.Errorf("%d bytes are held at rest; want 0", share.Load())
			}
		}()
	}
	all.Wait()
	if b.used.Load() != 0 {
		t.Errorf("%d bytes are taken at rest; want 0", b.used.Load())
	}
}
