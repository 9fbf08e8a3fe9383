package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// BenchmarkNeighbour measures how long a tenant waits for its decisions, alone
// and beside hostile tenants, by turns in one run, each for half a second of an
// iteration. The hostile ones, from an address of their own:
//
//   - send a hundred times the events that their rate admits, each of another id;
//   - send bodies of a megabyte, and announce some that they never send;
//   - have a backend that holds every call to its deadline;
//   - have a backend that fails, and its breaker opens and closes all the time.
//
// What it reports is the neighbour's p99 of both, of each the median over the
// iterations, so that what else the machine does in some of them does not
// decide, and their ratio. All of it
// shares the machine's cores: that the clients and the backends take their part
// of them is in the ratio as well.
func BenchmarkNeighbour(b *testing.B) {
	fine := agreeing(b)
	slow := fakebackend.Start(b, fakebackend.WithoutRecording(), fakebackend.Behave("hang"))
	broken := fakebackend.Start(b, fakebackend.WithoutRecording(), fakebackend.Behave("status-500"))
	defer slow.Release()
	document := func(url string) string {
		return registration("0.1", hook("com.example.b", url, intercepts("0.1", "fail-open", 250)))
	}
	r := start(b, "breaker: {openFor: 100ms}\n"+many(
		tenantEntry("flood", document(fine), []string{"flood-key"}, "rate: 5"),
		tenantEntry("large", document(fine), []string{"large-key"}),
		tenantEntry("slow", document(slow.URL), []string{"slow-key"}, "inFlight: 32"),
		tenantEntry("storm", document(broken.URL), []string{"storm-key"}),
		tenantEntry("neighbour", document(fine), []string{"neighbour-key"})),
		func(o *Options) { o.Stdout = io.Discard })

	mine := newCaller(r, "neighbour", 0, nil)
	for range 200 {
		mine.call() // every connection and cache is there before it counts
	}
	var attack gate
	defer attack.end()
	away := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	attack.repeat(2, 4*time.Millisecond, func() *caller { return newCaller(r, "flood", 0, &away) }) // 500 a second
	attack.repeat(1, 200*time.Millisecond, func() *caller { return newCaller(r, "large", 1000<<10, &away) })
	attack.repeat(40, 100*time.Millisecond, func() *caller { return newCaller(r, "slow", 0, &away) }) // more than may be in flight
	attack.repeat(2, 20*time.Millisecond, func() *caller { return newCaller(r, "storm", 0, &away) })
	for range 50 {
		w := dialAway(b, r, "never sent")
		defer w.conn.Close()
		w.send("POST /hooks HTTP/1.1\r\nHost: gateway\r\nContent-Length: 1048576\r\n\r\n{")
	}

	const pace = 2 * time.Millisecond
	var alone, beside waits
	measure := func(w *waits) {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		samples := make([]time.Duration, int(500*time.Millisecond/pace))
		for i := range samples {
			<-tick.C
			samples[i] = mine.call()
		}
		w.p50, w.p99 = append(w.p50, quantile(samples, 0.5)), append(w.p99, quantile(samples, 0.99))
	}
	for b.Loop() {
		measure(&alone)
		attack.set(true, false)
		measure(&beside)
		attack.set(false, false)
	}
	if n := mine.failed.Load(); n > 0 {
		b.Errorf("%d of the neighbour's events were not decided; want all", n)
	}
	p99, hostile := quantile(alone.p99, 0.5), quantile(beside.p99, 0.5)
	b.ReportMetric(float64(p99.Microseconds()), "alone-p99-µs")
	b.ReportMetric(float64(hostile.Microseconds()), "beside-p99-µs")
	b.ReportMetric(float64(hostile)/float64(p99), "p99-ratio")
	b.ReportMetric(float64(quantile(beside.p50, 0.5))/float64(quantile(alone.p50, 0.5)), "p50-ratio")
	b.ReportMetric(float64(attack.calls.Load())/b.Elapsed().Seconds()*2, "hostile/s")
}

// waits are how long the neighbour waited, in each of the turns.
type waits struct{ p50, p99 []time.Duration }

// agreeing starts a backend that has no objection to any event, and costs as
// little as may be: it shares the cores with what is measured.
func agreeing(b *testing.B) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		_, rest, _ := bytes.Cut(ctx.PostBody(), []byte(`"id":`)) // of the message
		id, _, _ := bytes.Cut(rest, []byte(","))
		ctx.SetContentType("application/json")
		ctx.Response.SetBody(slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":{"protocolVersion":"0.1","effects":[]}}`)))
	}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	b.Cleanup(func() {
		l.Close()
		<-served
	})
	return "http://" + l.Addr().String()
}

// quantile returns the q-quantile of durations, which it sorts.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

// caller sends one tenant's events, each of another id, one after the other.
type caller struct {
	client *fasthttp.HostClient
	req    fasthttp.Request
	resp   fasthttp.Response
	body   []byte
	digits []int // where the id is
	number int
	failed atomic.Int64 // calls that were not answered with a decision
}

// newCaller returns a caller of a tenant whose events are about size bytes.
func newCaller(r *rig, tenant string, size int, from *net.Dialer) *caller {
	c := &caller{client: &fasthttp.HostClient{Addr: r.listener.Addr().String(), MaxConns: 1, ReadTimeout: 20 * time.Second}}
	if from != nil {
		c.client.Dial = func(addr string) (net.Conn, error) { return from.Dial("tcp", addr) }
	}
	more := ""
	if size > 0 {
		more = `,"unknown":"` + strings.Repeat("x", size) + `"`
	}
	c.body = []byte(event01(fmt.Sprintf("%p-0000000000", c), more))
	for i := 0; i < len(c.body); {
		n := bytes.Index(c.body[i:], []byte("0000000000"))
		if n < 0 {
			break
		}
		c.digits, i = append(c.digits, i+n), i+n+10
	}
	c.req.Header.SetMethod(fasthttp.MethodPost)
	c.req.SetRequestURI(r.URL() + "/hooks")
	c.req.Header.SetContentType("application/json")
	c.req.Header.Set("Authorization", "Bearer "+tenant+"-key")
	return c
}

// call sends the next event and returns how long its answer took.
func (c *caller) call() time.Duration {
	c.number++
	for _, at := range c.digits {
		copy(c.body[at:], fmt.Sprintf("%010d", c.number))
	}
	c.req.SetBodyRaw(c.body)
	began := time.Now()
	err := c.client.Do(&c.req, &c.resp)
	took := time.Since(began)
	if err != nil || c.resp.StatusCode() != fasthttp.StatusOK || !bytes.Contains(c.resp.Body(), []byte(`"effects":[]`)) {
		c.failed.Add(1)
	}
	return took
}

// gate lets callers repeat while it is open. They hold it for reading while a
// call is under way.
type gate struct {
	calls   atomic.Int64
	under   sync.RWMutex
	opened  bool
	ended   bool
	waiting sync.WaitGroup
}

// set opens or closes the gate once no call is under way.
func (g *gate) set(opened, ended bool) {
	g.under.Lock()
	defer g.under.Unlock()
	g.opened, g.ended = opened, ended
}

func (g *gate) end() {
	g.set(false, true)
	g.waiting.Wait()
}

// repeat has n callers call at a pace while the gate is open, until it ends: not
// all at the same moment, which would measure how long a burst is.
func (g *gate) repeat(n int, pace time.Duration, each func() *caller) {
	for i := range n {
		c := each()
		g.waiting.Go(func() {
			time.Sleep(pace * time.Duration(i) / time.Duration(n))
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for range tick.C {
				if !g.call(c) {
					return
				}
			}
		})
	}
}

// call has c call once if the gate is open, and reports whether it may again.
func (g *gate) call(c *caller) bool {
	g.under.RLock()
	defer g.under.RUnlock()
	if g.opened {
		c.call()
		g.calls.Add(1)
	}
	return !g.ended
}
