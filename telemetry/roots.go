package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// roots begins traces. The SDK's tracer makes a span and a context to say that
// it does not record a request; most are not recorded, so that is asked first.
type roots struct {
	sampler sdktrace.Sampler
}

// newRoot returns the identity of a new trace and its first span, and ctx for
// the tracer if it is to be recorded: a span that is started there has it.
func (r roots) newRoot(ctx context.Context, name string) (context.Context, trace.SpanContext) {
	var c trace.SpanContextConfig
	c.TraceID, c.SpanID = identity{}.NewIDs(context.Background())
	decision := r.sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: context.Background(), TraceID: c.TraceID, Name: name, Kind: trace.SpanKindServer,
	}).Decision
	if decision != sdktrace.Drop {
		c.TraceFlags = trace.FlagsSampled
		ctx = context.WithValue(ctx, identity{}, c)
	}
	return ctx, trace.NewSpanContext(c)
}

// identity is the tracer's source of ids: those of newRoot, or random ones.
type identity struct{}

// NewIDs returns the ids of a trace and its first span.
func (identity) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if c, ok := ctx.Value(identity{}).(trace.SpanContextConfig); ok {
		return c.TraceID, c.SpanID
	}
	var id trace.TraceID
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id, identity{}.NewSpanID(ctx, id)
}

// NewSpanID returns the id of a further span of a trace.
func (identity) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// samplerFromEnv is the sampler that the SDK would make of OTEL_TRACES_SAMPLER,
// which it keeps to itself. It returns nil for what the SDK has to object to.
func samplerFromEnv() sdktrace.Sampler {
	name := strings.ToLower(env("OTEL_TRACES_SAMPLER"))
	kind, based := strings.CutPrefix(name, "parentbased_")
	var sampler sdktrace.Sampler
	switch kind {
	case "":
		if based {
			return nil
		}
		sampler, based = sdktrace.AlwaysSample(), true
	case "always_on":
		sampler = sdktrace.AlwaysSample()
	case "always_off":
		sampler = sdktrace.NeverSample()
	case "traceidratio":
		ratio := 1.0
		if arg := env("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
			var err error
			if ratio, err = strconv.ParseFloat(arg, 64); err != nil || !(0 <= ratio && ratio <= 1) {
				return nil
			}
		}
		sampler = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil
	}
	if based {
		return sdktrace.ParentBased(sampler)
	}
	return sampler
}
