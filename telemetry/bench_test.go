package telemetry

import (
	"strconv"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments returns a counter and a duration histogram of a telemetry that is
// set up as in production.
func instruments(tb testing.TB, o Options) (*Telemetry, metric.Int64Counter, metric.Float64Histogram) {
	tb.Helper()
	t, err := Setup(tb.Context(), o)
	if err != nil {
		tb.Fatalf("Setup() = %v; want nil", err)
	}
	meter := t.MeterProvider.Meter("ahp-gateway")
	counter, err := meter.Int64Counter("ahp.gateway.decisions", metric.WithUnit("{decision}"))
	if err != nil {
		tb.Fatal(err)
	}
	histogram, err := meter.Float64Histogram("ahp.gateway.decision.duration", metric.WithUnit("s"))
	if err != nil {
		tb.Fatal(err)
	}
	return t, counter, histogram
}

func exampleSet() attribute.Set {
	return attribute.NewSet(
		attribute.String("tenant", "acme"),
		attribute.String("event", "tool.before"),
		attribute.String("verdict", "deny"),
	)
}

func BenchmarkCounterAddPrecomputedOptions(b *testing.B) {
	_, counter, _ := instruments(b, Options{})
	options := []metric.AddOption{metric.WithAttributeSet(exampleSet())}
	ctx := b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			counter.Add(ctx, 1, options...)
		}
	})
}

func BenchmarkCounterAddSetPerCall(b *testing.B) {
	_, counter, _ := instruments(b, Options{})
	set := exampleSet()
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		counter.Add(ctx, 1, metric.WithAttributeSet(set))
	}
}

func BenchmarkCounterAddAttributesPerCall(b *testing.B) {
	_, counter, _ := instruments(b, Options{})
	set := exampleSet()
	attrs := set.ToSlice()
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		counter.Add(ctx, 1, metric.WithAttributes(attrs...))
	}
}

func BenchmarkHistogramRecordPrecomputedOptions(b *testing.B) {
	_, _, histogram := instruments(b, Options{})
	options := []metric.RecordOption{metric.WithAttributeSet(exampleSet())}
	ctx := b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			histogram.Record(ctx, 0.0042, options...)
		}
	})
}

func BenchmarkCounterAddSequential(b *testing.B) {
	_, counter, _ := instruments(b, Options{})
	options := []metric.AddOption{metric.WithAttributeSet(exampleSet())}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		counter.Add(ctx, 1, options...)
	}
}

func BenchmarkHistogramRecordSequential(b *testing.B) {
	_, _, histogram := instruments(b, Options{})
	options := []metric.RecordOption{metric.WithAttributeSet(exampleSet())}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		histogram.Record(ctx, 0.0042, options...)
	}
}

// BenchmarkTenants measures what 10,000 attribute sets cost to keep: B/op over
// 10,000 is the price of one.
func BenchmarkTenants(b *testing.B) {
	const tenants = 10_000
	sets := make([]attribute.Set, tenants)
	for i := range sets {
		sets[i] = attribute.NewSet(attribute.String("tenant", "tenant-"+strconv.Itoa(i)))
	}
	b.Run("counter", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, counter, _ := instruments(b, Options{Cardinality: tenants + 1})
			for _, set := range sets {
				counter.Add(b.Context(), 1, metric.WithAttributeSet(set))
			}
		}
	})
	b.Run("histogram", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, histogram := instruments(b, Options{Cardinality: tenants + 1})
			for _, set := range sets {
				histogram.Record(b.Context(), 1, metric.WithAttributeSet(set))
			}
		}
	})
	b.Run("overflowed counter", func(b *testing.B) {
		_, counter, _ := instruments(b, Options{Cardinality: tenants / 5})
		for _, set := range sets {
			counter.Add(b.Context(), 1, metric.WithAttributeSet(set))
		}
		last := []metric.AddOption{metric.WithAttributeSet(sets[tenants-1])}
		b.ReportAllocs()
		for b.Loop() {
			counter.Add(b.Context(), 1, last...)
		}
	})
	b.Run("gather", func(b *testing.B) {
		t, counter, histogram := instruments(b, Options{Cardinality: tenants + 1})
		for _, set := range sets {
			counter.Add(b.Context(), 1, metric.WithAttributeSet(set))
			histogram.Record(b.Context(), 1, metric.WithAttributeSet(set))
		}
		b.ReportAllocs()
		for b.Loop() {
			var n countingWriter
			if _, err := t.Gather(&n, ""); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n), "bytes")
		}
	})
}

type countingWriter int

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}

func BenchmarkTracingOff(b *testing.B) {
	t, err := Setup(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	tracer := t.TracerProvider.Tracer("ahp-gateway")
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, span := tracer.Start(ctx, "hooks/intercept")
		span.End()
	}
}
