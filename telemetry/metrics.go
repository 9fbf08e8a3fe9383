package telemetry

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
)

// DefaultCardinality is how many attribute sets one instrument keeps apart. It
// is a net for mistakes, not a budget: who makes instruments bounds the values
// of their attributes, and what a user is told of who is counted where is for
// them to say. The sets beyond are added up in one whose only attribute is
// otel.metric.overflow=true (otel_metric_overflow="true" in Prometheus's
// formats), so sums stay right; which sets are kept apart is decided by who
// comes first, until the process ends. A set of a counter costs about 260 bytes
// of memory, one of a duration histogram about 800 and, at each scrape, two
// kilobytes of text: label histograms by little (see BenchmarkTenants).
const DefaultCardinality = 200_000

// DurationBoundaries returns the bucket boundaries, in seconds, of every
// histogram with unit "s": fine enough below a millisecond for the gateway's
// own time, and as far as the longest timeout.
func DurationBoundaries() []float64 {
	return []float64{
		0.0001, 0.0002, 0.0003, 0.0005, 0.00075,
		0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075,
		0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
		1, 2, 5, 10, 30,
	}
}

func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

// startMetrics makes the meter provider and its readers.
func (t *Telemetry) startMetrics(ctx context.Context, o Options, res *resource.Resource) error {
	pull, err := otelprom.New(
		otelprom.WithRegisterer(t.registry),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		otelprom.WithoutScopeInfo(),
	)
	if err != nil {
		return fmt.Errorf("telemetry: prometheus: %w", err)
	}
	options := []sdkmetric.Option{
		sdkmetric.WithResource(res),
		sdkmetric.WithReader(pull),
		sdkmetric.WithView(sdkmetric.NewView(
			sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram, Unit: "s"},
			sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{
				Boundaries: DurationBoundaries(),
				NoMinMax:   true,
			}},
		)),
	}
	if env("OTEL_METRICS_EXEMPLAR_FILTER") == "" {
		// Exemplars would cost each attribute set a reservoir of its own.
		options = append(options, sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter))
	}
	switch {
	case o.Cardinality > 0:
		options = append(options, sdkmetric.WithCardinalityLimit(o.Cardinality))
	case env("OTEL_GO_X_CARDINALITY_LIMIT") == "":
		options = append(options, sdkmetric.WithCardinalityLimit(DefaultCardinality))
	}
	push, err := pushReaders(ctx)
	if err != nil {
		return err
	}
	for _, reader := range push {
		options = append(options, sdkmetric.WithReader(reader))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t.MeterProvider = provider
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return nil
}

// Gather writes all metrics to w and returns their media type: Prometheus's
// text format, or delimited protobuf where accept, the request's Accept header,
// prefers it. What could be gathered is written even if err is not nil. Calls
// wait for each other while they gather, so scrapes cannot pile work up.
func (t *Telemetry) Gather(w io.Writer, accept string) (contentType string, err error) {
	header := http.Header{}
	if accept != "" {
		header.Set("Accept", accept)
	}
	format := expfmt.NegotiateAccept(header,
		expfmt.NewFormat(expfmt.TypeProtoDelim), expfmt.NewFormat(expfmt.TypeTextPlain))

	t.gather.Lock()
	families, gatherErr := t.registry.Gather()
	t.gather.Unlock()

	encoder := expfmt.NewEncoder(w, format)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return string(format), fmt.Errorf("telemetry: encode: %w", err)
		}
	}
	if gatherErr != nil {
		return string(format), fmt.Errorf("telemetry: gather: %w", gatherErr)
	}
	return string(format), nil
}

// pushReaders returns the readers that OTEL_METRICS_EXPORTER asks for beside
// the one behind Gather. Each exports from a goroutine of its own.
func pushReaders(ctx context.Context) ([]sdkmetric.Reader, error) {
	names, err := exporterNames("OTEL_METRICS_EXPORTER", "prometheus")
	if err != nil {
		return nil, err
	}
	var readers []sdkmetric.Reader
	for _, name := range names {
		exporter, err := newMetricExporter(ctx, name)
		if err != nil {
			return nil, err
		}
		var options []sdkmetric.PeriodicReaderOption
		if env("OTEL_METRIC_EXPORT_TIMEOUT") == "" {
			options = append(options, sdkmetric.WithTimeout(exportTimeout))
		}
		readers = append(readers, sdkmetric.NewPeriodicReader(exporter, options...))
	}
	return readers, nil
}

func newMetricExporter(ctx context.Context, name string) (exporter sdkmetric.Exporter, err error) {
	if name == "console" {
		exporter, err = stdoutmetric.New()
	} else {
		var protocol string
		protocol, err = otlpProtocol("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL")
		if err != nil {
			return nil, err
		}
		if protocol == "grpc" {
			exporter, err = otlpmetricgrpc.New(ctx)
		} else {
			exporter, err = otlpmetrichttp.New(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("telemetry: metrics exporter %s: %w", name, err)
	}
	return exporter, nil
}
