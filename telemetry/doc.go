// Package telemetry sets the OpenTelemetry SDK up and shuts it down. It is the
// only place that knows the SDK and its exporters; instruments and spans are
// made, through the API, where they are used.
//
// # Metrics
//
// Metrics are always on and read by Gather in Prometheus's formats, together
// with those of the Go runtime (go_*) and the process (process_*).
// OTEL_METRICS_EXPORTER adds a push exporter beside it: "otlp" or "console",
// alone or in a comma-separated list; "prometheus" and "none" add nothing.
//
// An instrument's name becomes Prometheus's thus: dots become underscores; a
// unit is appended in full ("s" → _seconds, "By" → _bytes, "1" of a gauge →
// _ratio, a unit in braces → nothing); a counter ends in _total. So the counter
// ahp.gateway.decisions is ahp_gateway_decisions_total, the histogram
// ahp.gateway.decision.duration with unit s is
// ahp_gateway_decision_duration_seconds, the up-down counter ahp.gateway.in_flight
// is ahp_gateway_in_flight. The scope of a meter is no label: an instrument's
// name must be unique in the process.
//
// A histogram with unit s has the boundaries of DurationBoundaries, whatever
// its own advice is.
//
// To record without allocation, build the options once, as a slice, and keep it:
//
//	set := attribute.NewSet(attribute.String("verdict", "deny"))
//	denied := []metric.AddOption{metric.WithAttributeSet(set)}
//	decisions.Add(ctx, 1, denied...)
//
// The same goes for []metric.RecordOption. Passing WithAttributeSet itself
// costs an allocation, WithAttributes more.
//
// # Traces
//
// Traces are off, at no cost, unless OTEL_TRACES_EXPORTER,
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.
// Spans wait in a bounded queue and are dropped when it is full; an export has
// a deadline. The SDK's own variables (OTEL_TRACES_SAMPLER, OTEL_BSP_*,
// OTEL_EXPORTER_OTLP_*, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, …) hold.
//
// OTEL_SDK_DISABLED=true turns everything but go_* and process_* off.
package telemetry
