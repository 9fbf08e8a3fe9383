package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// startTraces makes the tracer provider if the environment asks for traces.
func (t *Telemetry) startTraces(ctx context.Context, res *resource.Resource) error {
	names, err := exporterNames("OTEL_TRACES_EXPORTER")
	if err != nil {
		return err
	}
	if env("OTEL_TRACES_EXPORTER") == "" &&
		(env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "") {
		names = []string{"otlp"}
	}
	if len(names) == 0 {
		return nil
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	if sampler := samplerFromEnv(); sampler != nil {
		options = append(options, sdktrace.WithSampler(sampler), sdktrace.WithIDGenerator(identity{}))
		t.NewRoot = roots{sampler}.newRoot
	}
	var exporters []sdktrace.SpanExporter
	for _, name := range names {
		exporter, err := newSpanExporter(ctx, name)
		if err != nil {
			return err
		}
		var batch []sdktrace.BatchSpanProcessorOption
		if env("OTEL_BSP_EXPORT_TIMEOUT") == "" {
			batch = append(batch, sdktrace.WithExportTimeout(exportTimeout))
		}
		exporters = append(exporters, exporter)
		options = append(options, sdktrace.WithBatcher(exporter, batch...))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.TracerProvider = provider
	t.Tracing = true
	t.shutdown = append(t.shutdown, func(ctx context.Context) error {
		err := provider.Shutdown(ctx)
		if err == nil {
			return nil
		}
		// The processors go on to drain their queues, one export timeout after
		// the other. Stopping the exporters ends that at once.
		for _, exporter := range exporters {
			err = errors.Join(err, exporter.Shutdown(ctx))
		}
		return err
	})
	return nil
}

func newSpanExporter(ctx context.Context, name string) (exporter sdktrace.SpanExporter, err error) {
	if name == "console" {
		exporter, err = stdouttrace.New()
	} else {
		var protocol string
		protocol, err = otlpProtocol("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
		if err != nil {
			return nil, err
		}
		if protocol == "grpc" {
			exporter, err = otlptracegrpc.New(ctx)
		} else {
			exporter, err = otlptracehttp.New(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("telemetry: traces exporter %s: %w", name, err)
	}
	return exporter, nil
}
