package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// Options configure Setup.
type Options struct {
	// ServiceName is the service.name that OTEL_SERVICE_NAME overrides.
	// Default "ahp-gateway".
	ServiceName string
	// ServiceVersion is the service.version. Default none.
	ServiceVersion string
	// Cardinality is how many attribute sets one instrument keeps apart, the
	// overflow set included. Default DefaultCardinality, unless
	// OTEL_GO_X_CARDINALITY_LIMIT says otherwise.
	Cardinality int
	// Logger gets the SDK's own troubles, a few a minute at most. Nil discards
	// them.
	Logger *slog.Logger
}

// Telemetry is the SDK, set up. Its members are never nil, but for NewRoot, and
// safe for concurrent use.
type Telemetry struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Propagator reads and writes W3C trace context. It leaves baggage alone:
	// what a caller puts there is no business of a policy backend.
	Propagator propagation.TextMapPropagator
	// Tracing is false where TracerProvider does nothing, so that the request
	// path can leave spans and propagation out altogether.
	Tracing bool
	// NewRoot begins a trace with a server span of that name. If the sampler
	// drops it, as the span context it returns says, no span need be started;
	// otherwise one that is started in the context it returns has that identity.
	// It is nil where only the tracer can say.
	NewRoot func(ctx context.Context, name string) (context.Context, trace.SpanContext)

	registry *prometheus.Registry
	gather   sync.Mutex
	shutdown []func(context.Context) error
}

// Setup reads the OTEL_* environment variables and starts what they ask for. It
// does not wait for a collector: one that is slow or dead costs dropped spans
// and a log message, no more. It installs the SDK's process-wide error handler
// and logger, and nothing else that is global; call it once.
func Setup(ctx context.Context, o Options) (*Telemetry, error) {
	if o.ServiceName == "" {
		o.ServiceName = "ahp-gateway"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Telemetry{
		TracerProvider: tracenoop.NewTracerProvider(),
		MeterProvider:  metricnoop.NewMeterProvider(),
		Propagator:     propagation.TraceContext{},
		registry:       newRegistry(),
	}
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return t, nil
	}
	troubles := newTroubles(o.Logger)
	otel.SetErrorHandler(troubles)
	otel.SetLogger(logr.New(troubles))

	res, err := newResource(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := t.startMetrics(ctx, o, res); err != nil {
		return nil, err
	}
	if err := t.startTraces(ctx, res); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

// Shutdown exports what is waiting and ends everything that Setup started. It
// returns when ctx ends at the latest; what was not exported by then is lost.
// Gather goes on to serve the Go runtime's and the process's metrics.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	// Side by side, so that a dead trace collector does not use up the time of
	// the metrics.
	errs := make([]error, len(t.shutdown))
	var wait sync.WaitGroup
	for i, end := range t.shutdown {
		wait.Go(func() { errs[i] = end(ctx) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("telemetry: shutdown: %w", err)
	}
	return nil
}

// newResource describes this process. What the environment says comes last and
// so wins.
func newResource(ctx context.Context, o Options) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{
		attribute.String("service.name", o.ServiceName),
		attribute.String("service.instance.id", uuid.NewString()),
	}
	if o.ServiceVersion != "" {
		attrs = append(attrs, attribute.String("service.version", o.ServiceVersion))
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attrs...),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("telemetry: resource: %w", err)
	}
	return res, nil
}

// env returns an environment variable without the spaces around it; the
// specification treats an empty one as unset.
func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }
