package gateway

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/breaker"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// agrees is a backend that answers at once and without a network, so that a
// benchmark measures the gateway alone.
type agrees struct{ answer []byte }

func (a agrees) Intercept(call *ahp.Call, resp *ahp.Response) ahp.Failure {
	resp.Body = ahp.AppendResult(resp.Body[:0], call.ID, call.Version, a.answer)
	if a.answer == nil {
		resp.Body = ahp.AppendResult(resp.Body[:0], call.ID, call.Version)
	}
	return ahp.DecodeResponse(call, resp)
}

func (agrees) Observe(*ahp.Call) ahp.Failure { return ahp.Failure{} }

// BenchmarkIntercept is the whole request path of a new event with one backend
// and everything on (dedupe, breaker, audit, metrics), without sockets.
func BenchmarkIntercept(b *testing.B) {
	for _, v := range versions {
		for _, hops := range []int{0, 1, 4} {
			b.Run(fmt.Sprintf("%s/hops=%d", v, hops), func(b *testing.B) {
				ctx := benchmarkContext(b, v, hops)
				g := ctx.g
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					ctx.event(i)
					g.handle(&ctx.RequestCtx)
				}
				if status := ctx.Response.StatusCode(); status != fasthttp.StatusOK {
					b.Fatalf("status %d: %s", status, ctx.Response.Body())
				}
			})
		}
	}
}

// BenchmarkDuplicate is a dedupe hit.
func BenchmarkDuplicate(b *testing.B) {
	ctx := benchmarkContext(b, "draft", 1)
	ctx.event(1)
	b.ReportAllocs()
	for b.Loop() {
		ctx.g.handle(&ctx.RequestCtx)
	}
}

type benchContext struct {
	fasthttp.RequestCtx
	g      *Gateway
	body   []byte
	places []int
}

func benchmarkContext(b *testing.B, v string, hops int) *benchContext {
	backend := fakebackend.Start(b)
	hooks := []string{hook("com.example.observer", backend.URL, observes(v, `"session.end"`))}
	for i := range hops {
		hooks = append(hooks, hook(fmt.Sprintf("com.example.b%d", i), backend.URL, intercepts(v, "fail-closed", 5000)))
	}
	f := parse(b, open(registration(v, hooks...)))
	g, err := New(b.Context(), f, Options{Stdout: io.Discard, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Shutdown(b.Context()) })
	for _, p := range g.current.Load().parties[0].peers {
		p.breaker = breaker.New(agrees{}, breaker.Settings{})
	}
	c := &benchContext{g: g, body: []byte(event(v, "event-0000000000"))}
	const digits = "0000000000"
	for i := 0; i+len(digits) <= len(c.body); i++ {
		if string(c.body[i:i+len(digits)]) == digits {
			c.places = append(c.places, i)
		}
	}
	c.Init(&fasthttp.Request{}, nil, nil)
	head := "POST /hooks HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"
	if err := c.Request.Read(bufio.NewReader(strings.NewReader(head))); err != nil {
		b.Fatal(err)
	}
	return c
}

// event gives the request the event id of number i.
func (c *benchContext) event(i int) {
	for _, at := range c.places {
		for n, d := i, 9; d >= 0; d-- {
			c.body[at+d] = byte('0' + n%10)
			n /= 10
		}
	}
	c.Request.SetBodyRaw(c.body)
	c.Response.Reset()
}
