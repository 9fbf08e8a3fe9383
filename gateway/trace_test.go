package gateway

import (
	"context"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// With traces on there is one server span and one client span per backend
// called, all of the caller's trace; backends get their own span as parent.
func TestTraces(t *testing.T) {
	first := fakebackend.Start(t, fakebackend.Behave("status-500"))
	second := fakebackend.Start(t, fakebackend.Behave("deny:no"))
	recorder := tracetest.NewSpanRecorder()
	r := start(t, open(registration("draft",
		hook("com.example.first", first.URL, intercepts("draft", "fail-open", 5000)),
		hook("com.example.second", second.URL, intercepts("draft", "fail-open", 5000)))),
		func(o *Options) {
			o.TracerProvider, o.Tracing = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), true
		})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	r.post("/hooks", eventDraft("e1"), "traceparent: 00-"+trace+"-b7ad6b7169203331-01", "baggage: secret=1")
	record := r.audit.await(1)[0]
	spans := recorder.Ended()
	if len(spans) != 3 {
		t.Fatalf("%d spans; want 3", len(spans))
	}
	server := spans[2]
	if server.Name() != "hooks/intercept" || server.Parent().SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("server span %s has parent %s; want the caller's", server.Name(), server.Parent().SpanID())
	}
	for i, b := range []*fakebackend.Server{first, second} {
		span, h := spans[i], b.Requests()[0].Header
		if span.Parent().SpanID() != server.SpanContext().SpanID() {
			t.Errorf("span of backend %d has parent %s; want the server span", i+1, span.Parent().SpanID())
		}
		want := "00-" + trace + "-" + span.SpanContext().SpanID().String() + "-01"
		if h.Get("traceparent") != want || h.Get("baggage") != "" {
			t.Errorf("backend %d got traceparent %q, baggage %q; want %q and none", i+1, h.Get("traceparent"), h.Get("baggage"), want)
		}
	}
	attributes := map[string]string{}
	for _, kv := range append(server.Attributes(), spans[0].Attributes()...) {
		attributes[string(kv.Key)] = kv.Value.String()
	}
	if attributes["ahp.verdict"] != "deny" || attributes["ahp.tenant"] != "default" || attributes["error.type"] != "status" {
		t.Errorf("attributes = %v; want the verdict, the tenant and the failure class", attributes)
	}
	if got := str(record["trace_id"]); got != trace {
		t.Errorf("audit record's trace id = %q; want %q", got, trace)
	}
	for k, v := range attributes {
		if strings.Contains(v, "git status") || strings.Contains(v, "e1") {
			t.Errorf("span attribute %s = %q holds what the caller sent", k, v)
		}
	}
}

// A request that is not sampled has no spans, and backends are told so in the
// caller's trace, or in one of our own.
func TestTracesNotSampled(t *testing.T) {
	b := fakebackend.Start(t)
	observer, shadow := fakebackend.Start(t), fakebackend.Start(t)
	recorder := tracetest.NewSpanRecorder()
	r := start(t, open(registration("draft", hook("com.example.shadow", shadow.URL, intercepts("draft", "fail-open", 5000)),
		hook("com.example.b", b.URL, intercepts("draft", "fail-open", 5000)), hook("com.example.observer", observer.URL, observes("draft", `"*"`))),
		`backends: {com.example.shadow: {shadow: "*"}}`),
		func(o *Options) {
			o.TracerProvider, o.Tracing = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(sdktrace.NeverSample())), true
		})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	r.post("/hooks", eventDraft("e1"), "traceparent: 00-"+trace+"-b7ad6b7169203331-01")
	r.post("/hooks", eventDraft("e2"))
	r.post("/hooks", eventDraft("e3"), "traceparent: 00-"+trace+"-b7ad6b7169203331-00", "tracestate: a=b")
	r.stop()
	// Whatever is delivered later is told the same: of the exchange it keeps nothing.
	told := make(map[string]string)
	for _, q := range b.Requests() {
		told[q.EventID] = q.Header.Get("traceparent")
	}
	for _, later := range []*fakebackend.Server{observer, shadow} {
		if n := len(later.Requests()); n != 3 {
			t.Errorf("%d messages were delivered later; want 3", n)
		}
		for _, q := range later.Requests() {
			if got := q.Header.Get("traceparent"); got != told[q.EventID] {
				t.Errorf("traceparent of %s is %q later; want %q", q.EventID, got, told[q.EventID])
			}
		}
	}
	for i, q := range b.Requests() {
		parent, state := q.Header.Get("traceparent"), q.Header.Get("tracestate")
		if len(parent) != 55 || (state == "a=b") != (i == 2) || !strings.HasSuffix(parent, "-00") || strings.Contains(parent, trace) != (i != 1) {
			t.Errorf("request %d got traceparent %q, tracestate %q; want one that is not sampled, in the caller's trace where there is one", i+1, parent, state)
		}
	}
	if n := len(recorder.Ended()); n != 0 {
		t.Errorf("%d spans; want none", n)
	}
}

// Where the sampler can be asked before there is a span, one is started for
// what it keeps only. A caller's trace is the tracer's to decide on.
func TestNewRoot(t *testing.T) {
	b := fakebackend.Start(t)
	recorder := tracetest.NewSpanRecorder()
	var asked []trace.SpanContext
	r := start(t, open(registration("draft", hook("com.example.b", b.URL, intercepts("draft", "fail-open", 5000)))), func(o *Options) {
		o.TracerProvider, o.Tracing = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), true
		o.NewRoot = func(ctx context.Context, name string) (context.Context, trace.SpanContext) {
			if name != "hooks/intercept" {
				t.Errorf("NewRoot was asked for a span %q; want hooks/intercept", name)
			}
			c := trace.SpanContextConfig{TraceID: trace.TraceID{byte(len(asked) + 1)}, SpanID: trace.SpanID{2}}
			if len(asked) == 1 {
				c.TraceFlags = trace.FlagsSampled
			}
			asked = append(asked, trace.NewSpanContext(c))
			return ctx, asked[len(asked)-1]
		}
	})
	r.post("/hooks", eventDraft("e1"))
	r.post("/hooks", eventDraft("e2"))
	r.post("/hooks", eventDraft("e3"), "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	r.stop()
	if len(asked) != 2 {
		t.Errorf("NewRoot was asked %d times; want twice, for the requests that came without a trace", len(asked))
	}
	if got, want := b.Requests()[0].Header.Get("traceparent"), "00-01000000000000000000000000000000-0200000000000000-00"; got != want {
		t.Errorf("the backend got traceparent %q of a dropped root; want %q", got, want)
	}
	if n := len(recorder.Ended()); n != 4 {
		t.Errorf("%d spans; want a server's and a client's of the two that are recorded", n)
	}
}
