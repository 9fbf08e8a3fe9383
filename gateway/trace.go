package gateway

import (
	"encoding/hex"
	"strings"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// traceHeaders are the W3C trace context of a message to a backend.
type traceHeaders struct{ parent, state string }

// Get, Set and Keys make traceHeaders a propagation.TextMapCarrier.
func (t *traceHeaders) Get(key string) string {
	switch key {
	case "traceparent":
		return t.parent
	case "tracestate":
		return t.state
	default:
		return ""
	}
}

// Set takes the two W3C headers and nothing else: baggage stays here.
func (t *traceHeaders) Set(key, value string) {
	switch key {
	case "traceparent":
		t.parent = value
	case "tracestate":
		t.state = value
	}
}

// Keys returns the names Set takes.
func (*traceHeaders) Keys() []string { return []string{"traceparent", "tracestate"} }

// incoming reads the trace context of a request; over-long values are ignored.
func incoming(h *fasthttp.RequestHeader) traceHeaders {
	const maxParent, maxState = 128, 512
	t := traceHeaders{}
	if v := h.Peek("traceparent"); len(v) > 0 && len(v) <= maxParent {
		t.parent = string(v)
		if v := h.Peek("tracestate"); len(v) <= maxState {
			t.state = string(v)
		}
	}
	return t
}

const serverSpan = "hooks/intercept"

// startRequest begins the server span of an intercept request, if traces are
// on. Without them the caller's trace context goes to backends unchanged.
func (g *Gateway) startRequest(x *exchange, h *fasthttp.RequestHeader) {
	x.trace = incoming(h)
	if !g.tracing {
		return
	}
	ctx := x.ctx
	if x.trace.parent != "" {
		ctx = g.propagator.Extract(ctx, &x.trace)
	} else if g.newRoot != nil && g.w3c {
		var c trace.SpanContext
		if ctx, c = g.newRoot(ctx, serverSpan); !c.IsSampled() {
			x.trace = traceHeaders{parent: text(appendTraceparent(x.parent[:0], c))}
			return
		}
	}
	ctx, span := g.tracer.Start(ctx, serverSpan, asServer...)
	x.ctx = ctx
	if span.IsRecording() {
		x.span = span
	} else if c := span.SpanContext(); g.w3c && c.IsValid() && c.TraceState().Len() == 0 {
		// Backends are told that it is not, as Inject would, without allocation.
		x.trace = traceHeaders{parent: text(appendTraceparent(x.parent[:0], c))}
		return
	}
	x.trace = traceHeaders{} // the caller's state goes with the caller's parent alone
	g.propagator.Inject(ctx, &x.trace)
}

// appendTraceparent appends the W3C traceparent of a context that is not sampled.
func appendTraceparent(dst []byte, c trace.SpanContext) []byte {
	id, span := c.TraceID(), c.SpanID()
	dst = hex.AppendEncode(append(dst, "00-"...), id[:])
	dst = hex.AppendEncode(append(dst, '-'), span[:])
	return append(dst, "-00"...)
}

// detached returns t with nothing in it that lives in an exchange.
func (t traceHeaders) detached() traceHeaders {
	return traceHeaders{strings.Clone(t.parent), strings.Clone(t.state)}
}

var (
	asServer = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	asClient = trace.WithSpanKind(trace.SpanKindClient)
)

// endRequest ends the server span with what was decided.
func endRequest(x *exchange) {
	if x.span == nil {
		return
	}
	x.span.SetAttributes(
		attribute.String("rpc.system.name", "jsonrpc"),
		attribute.String("rpc.method", x.msg.Method.String()),
		attrTenant.String(x.party.id),
		attribute.String("ahp.event.type", x.msg.Event.Type.String()),
		attribute.String("ahp.protocol.version", x.msg.Version.String()),
		attrVerdict.String(x.verdict.name().String()),
	)
	if x.failure != nil {
		x.span.SetAttributes(attrCode.Int(int(x.failure.Code)))
		x.span.SetStatus(codes.Error, x.failure.Message)
	}
	x.span.End()
}

// startCall begins the client span of one turn, if the request has one, and
// hands its context on.
func (g *Gateway) startCall(x *exchange, h *hop) trace.Span {
	if x.span == nil {
		return nil
	}
	ctx, span := g.tracer.Start(x.ctx, "hooks/intercept "+h.sub.BackendID, asClient,
		trace.WithAttributes(attrBackend.String(h.sub.BackendID), attribute.String("ahp.subscription", h.sub.ID)))
	var out traceHeaders
	g.propagator.Inject(ctx, &out)
	x.call.Traceparent, x.call.Tracestate = out.parent, out.state
	return span
}

func endCall(span trace.Span, f ahp.Failure) {
	if span == nil {
		return
	}
	if !f.OK() {
		span.SetAttributes(attribute.String("error.type", f.Class.String()))
		span.SetStatus(codes.Error, f.Detail)
	}
	span.End()
}

var _ propagation.TextMapCarrier = (*traceHeaders)(nil)
