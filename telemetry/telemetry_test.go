package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// setenv sets OTEL_* variables for a test and unsets all others, in pairs of
// name and value.
func setenv(t *testing.T, pairs ...string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

func mustSetup(t *testing.T, o Options) *Telemetry {
	t.Helper()
	tel, err := Setup(t.Context(), o)
	if err != nil {
		t.Fatalf("Setup() = %v; want nil", err)
	}
	return tel
}

func mustGather(t *testing.T, tel *Telemetry) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := tel.Gather(&out, ""); err != nil {
		t.Fatalf("Gather() = %v; want nil", err)
	}
	return out.String()
}

func TestMetricNames(t *testing.T) {
	setenv(t)
	tel := mustSetup(t, Options{ServiceVersion: "1.2.3"})
	meter := tel.MeterProvider.Meter("ahp-gateway")
	ctx := t.Context()
	attrs := metric.WithAttributes(attribute.String("verdict", "deny"))
	counter, err := meter.Int64Counter("ahp.gateway.decisions", metric.WithUnit("{decision}"), metric.WithDescription("Decisions."))
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(ctx, 2, attrs)
	histogram, err := meter.Float64Histogram("ahp.gateway.decision.duration", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(7))
	if err != nil {
		t.Fatal(err)
	}
	histogram.Record(ctx, 0.0004)
	inflight, err := meter.Int64UpDownCounter("ahp.gateway.inflight")
	if err != nil {
		t.Fatal(err)
	}
	inflight.Add(ctx, 5)
	size, err := meter.Int64Gauge("ahp.gateway.cache.size", metric.WithUnit("By"))
	if err != nil {
		t.Fatal(err)
	}
	size.Record(ctx, 9)

	lines := strings.Split(mustGather(t, tel), "\n")
	for _, want := range []string{
		`# HELP ahp_gateway_decisions_total Decisions.`,
		`ahp_gateway_decisions_total{verdict="deny"} 2`,
		`ahp_gateway_decision_duration_seconds_bucket{le="0.0003"} 0`,
		`ahp_gateway_decision_duration_seconds_bucket{le="0.0005"} 1`,
		`ahp_gateway_decision_duration_seconds_bucket{le="30"} 1`,
		`ahp_gateway_decision_duration_seconds_count 1`,
		`ahp_gateway_inflight 5`,
		`ahp_gateway_cache_size_bytes 9`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("Gather() has no line %s", want)
		}
	}
	for _, want := range []string{"go_goroutines ", "process_open_fds ", `target_info{service_instance_id=`} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("Gather() has no line that begins with %s", want)
		}
	}
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `le="7"`) }); i >= 0 {
		t.Errorf("Gather() has %s; want the instrument's own boundaries overruled", lines[i])
	}
}

func TestGatherNegotiates(t *testing.T) {
	setenv(t)
	tel := mustSetup(t, Options{})
	for accept, want := range map[string]string{
		"":    "text/plain; version=0.0.4",
		"*/*": "text/plain; version=0.0.4",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "application/vnd.google.protobuf",
	} {
		got, err := tel.Gather(io.Discard, accept)
		if err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("Gather(%q) = %q, %v; want %q…, nil", accept, got, err, want)
		}
	}
}

// A collector that fails takes nothing else with it.
func TestGatherGoesOnAfterError(t *testing.T) {
	setenv(t)
	tel := mustSetup(t, Options{})
	desc := prometheus.NewDesc("broken", "", nil, nil)
	tel.registry.MustRegister(brokenCollector{desc})
	var out bytes.Buffer
	if _, err := tel.Gather(&out, ""); err == nil || !strings.HasPrefix(err.Error(), "telemetry: ") {
		t.Errorf("Gather() = %v; want an error that begins with telemetry:", err)
	}
	if !strings.Contains(out.String(), "go_goroutines ") {
		t.Errorf("Gather() = %s; want go_goroutines in it", &out)
	}
}

type brokenCollector struct{ desc *prometheus.Desc }

func (c brokenCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }
func (c brokenCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(c.desc, errors.New("broken"))
}

func TestCardinality(t *testing.T) {
	setenv(t)
	tel, counter, _ := instruments(t, Options{Cardinality: 10})
	for i := range 25 {
		counter.Add(t.Context(), 1, metric.WithAttributes(attribute.String("tenant", strconv.Itoa(i))))
	}
	got := mustGather(t, tel)
	if want := `ahp_gateway_decisions_total{otel_metric_overflow="true"} 16`; !strings.Contains(got, want) {
		t.Errorf("Gather() has no line %s", want)
	}
	if got := strings.Count(got, "ahp_gateway_decisions_total{tenant="); got != 9 {
		t.Errorf("Gather() keeps %d tenants apart; want 9", got)
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	setenv(t)
	_, counter, histogram := instruments(t, Options{})
	add := []metric.AddOption{metric.WithAttributeSet(exampleSet())}
	record := []metric.RecordOption{metric.WithAttributeSet(exampleSet())}
	ctx := t.Context()
	got := testing.AllocsPerRun(100, func() {
		counter.Add(ctx, 1, add...)
		histogram.Record(ctx, 0.1, record...)
	})
	if got != 0 {
		t.Errorf("Add and Record with options built once allocate %v times; want 0", got)
	}
}

func TestTracingIsOffUnlessAskedFor(t *testing.T) {
	tests := []struct {
		name string
		env  []string
		want bool
	}{
		{"nothing set", nil, false},
		{"metrics only", []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://127.0.0.1:1"}, false},
		{"none", []string{"OTEL_TRACES_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}, false},
		{"disabled", []string{"OTEL_SDK_DISABLED", "TRUE", "OTEL_TRACES_EXPORTER", "otlp"}, false},
		{"exporter", []string{"OTEL_TRACES_EXPORTER", "otlp"}, true},
		{"endpoint", []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}, true},
		{"traces endpoint", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/v1/traces"}, true},
		{"grpc", []string{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			setenv(t, test.env...)
			tel := mustSetup(t, Options{})
			_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "span")
			if tel.Tracing != test.want || span.IsRecording() != test.want {
				t.Errorf("Setup(%v): Tracing = %v, span records %v; want %v", test.env, tel.Tracing, span.IsRecording(), test.want)
			}
			// The span was not ended, so nothing is waiting to be exported.
			if err := tel.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown() = %v; want nil", err)
			}
		})
	}
}

func TestDisabledKeepsProcessMetrics(t *testing.T) {
	setenv(t, "OTEL_SDK_DISABLED", "true")
	tel, counter, _ := instruments(t, Options{})
	counter.Add(t.Context(), 1)
	got := mustGather(t, tel)
	if strings.Contains(got, "ahp_gateway") || !strings.Contains(got, "go_goroutines ") {
		t.Errorf("Gather() with OTEL_SDK_DISABLED = %s; want go_goroutines and nothing of ahp_gateway", got)
	}
}

func TestSetupRefusesUnknownValues(t *testing.T) {
	for _, pair := range [][]string{
		{"OTEL_TRACES_EXPORTER", "zipkin"},
		{"OTEL_METRICS_EXPORTER", "otlp,statsd"},
		{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"},
		{"OTEL_METRICS_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL", "smtp"},
		{"OTEL_RESOURCE_ATTRIBUTES", "no-equals-sign"},
	} {
		setenv(t, pair...)
		if _, err := Setup(t.Context(), Options{}); err == nil || !strings.HasPrefix(err.Error(), "telemetry: ") {
			t.Errorf("Setup(%v) = %v; want an error that begins with telemetry:", pair, err)
		}
	}
}

// collector is an OTLP receiver over HTTP that keeps what it gets.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][]byte // by path
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{bodies: map[string][]byte{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("collector: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], body...)
	}))
	t.Cleanup(c.Close)
	return c
}

func TestShutdownExportsWhatIsWaiting(t *testing.T) {
	c := newCollector(t)
	setenv(t,
		"OTEL_EXPORTER_OTLP_ENDPOINT", c.URL,
		"OTEL_METRICS_EXPORTER", "otlp, prometheus",
		"OTEL_SERVICE_NAME", "named-by-environment",
		"OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=staging",
	)
	tel, counter, _ := instruments(t, Options{ServiceName: "named-by-option", ServiceVersion: "1.2.3"})
	counter.Add(t.Context(), 1)
	_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "hooks/intercept")
	span.End()
	if got, want := mustGather(t, tel), "ahp_gateway_decisions_total 1"; !strings.Contains(got, want) {
		t.Errorf("Gather() beside a push exporter has no %s", want)
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatalf("Shutdown() = %v; want nil", err)
	}
	for path, name := range map[string]string{"/v1/traces": "hooks/intercept", "/v1/metrics": "ahp.gateway.decisions"} {
		body := c.bodies[path]
		for _, want := range []string{name, "named-by-environment", "staging", "1.2.3"} {
			if !bytes.Contains(body, []byte(want)) {
				t.Errorf("collector got %d bytes at %s without %s", len(body), path, want)
			}
		}
		if bytes.Contains(body, []byte("named-by-option")) {
			t.Errorf("collector got the name of the option at %s; want the environment's", path)
		}
	}
}

// A collector that takes connections and never answers neither slows spans down
// nor makes them pile up, nor holds Shutdown beyond its context.
func TestBlackHole(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})     // closed when all connections are
	accepted := make(chan struct{}) // closed with the first connection
	go func() {
		defer close(gone)
		var open sync.WaitGroup
		defer open.Wait()
		var once sync.Once
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			once.Do(func() { close(accepted) })
			open.Go(func() {
				defer conn.Close()
				io.Copy(io.Discard, conn)
			})
		}
	}()
	setenv(t,
		"OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String(),
		"OTEL_METRICS_EXPORTER", "otlp",
		"OTEL_BSP_SCHEDULE_DELAY", "1",
	)
	tel, counter, _ := instruments(t, Options{})
	tracer := tel.TracerProvider.Tracer("test")
	// Several times what the queue holds: ending a span must not wait.
	for range 10_000 {
		_, span := tracer.Start(t.Context(), "span")
		span.End()
		counter.Add(t.Context(), 1)
	}
	<-accepted
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tel.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown() = %v; want %v", err, context.Canceled)
	}
	// The exports in progress are given up, and so are their connections.
	listener.Close()
	<-gone
}

func TestPropagatorLeavesBaggageAlone(t *testing.T) {
	setenv(t)
	tel := mustSetup(t, Options{})
	in := propagation.MapCarrier{
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"tracestate":  "a=b",
		"baggage":     "user=secret",
	}
	ctx := tel.Propagator.Extract(t.Context(), in)
	if got := trace.SpanContextFromContext(ctx).TraceID().String(); got != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("Extract(%v) has trace id %s; want that of traceparent", in, got)
	}
	out := propagation.MapCarrier{}
	tel.Propagator.Inject(ctx, out)
	keys := out.Keys()
	slices.Sort(keys)
	if want := []string{"traceparent", "tracestate"}; !slices.Equal(keys, want) {
		t.Errorf("Inject() writes %v; want %v", keys, want)
	}
}

// The SDK quotes headers that it cannot parse, and those hold credentials.
func TestMisconfiguredHeadersStayOutOfTheLog(t *testing.T) {
	setenv(t,
		"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%zzhunter2",
	)
	var log bytes.Buffer
	tel := mustSetup(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown() = %v; want nil", err)
	}
	if got := log.String(); !strings.Contains(got, "escape header value") || strings.Contains(got, "hunter2") {
		t.Errorf("log = %q; want it to say what is wrong and not to quote the header", got)
	}
}

func TestTroublesAreFewAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		troubles := newTroubles(slog.New(slog.NewTextHandler(&log, nil)))
		for range 100 {
			troubles.Handle(errors.New(strings.Repeat("x", 10*troubleBytes)))
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || len(got) > 2*troubleBytes {
			t.Errorf("log after 100 errors has %d bytes: %q; want one bounded message", len(got), got)
		}
		time.Sleep(troubleEvery)
		log.Reset()
		troubles.Handle(errors.New("last"))
		if got := log.String(); !strings.Contains(got, "suppressed=99") || !strings.Contains(got, "error=last") {
			t.Errorf("log = %q; want the last error and suppressed=99", got)
		}
	})
}

// NewRoot keeps as many traces as every sampler that the SDK reads from the
// environment does, and a span that is started has the identity that it gave.
func TestNewRoot(t *testing.T) {
	const many = 2000
	tests := []struct {
		sampler, arg string
		nearly       float64 // of roots that are sampled; -1: NewRoot is nil
	}{
		{"", "", 1},
		{" Always_On ", "", 1},
		{"always_off", "", 0},
		{"traceidratio", "", 1},
		{"traceidratio", "0.25", 0.25},
		{"parentbased_always_on", "", 1},
		{"parentbased_always_off", "", 0},
		{"parentbased_traceidratio", " 0.5 ", 0.5},
		{"traceidratio", "2", -1},
		{"traceidratio", "-0.1", -1},
		{"parentbased_traceidratio", "NaN", -1},
		{"traceidratio", "half", -1},
		{"parentbased_", "", -1},
		{"jaeger_remote", "", -1},
	}
	for _, test := range tests {
		t.Run(test.sampler+" "+test.arg, func(t *testing.T) {
			setenv(t, "OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1",
				"OTEL_TRACES_SAMPLER", test.sampler, "OTEL_TRACES_SAMPLER_ARG", test.arg)
			tel := mustSetup(t, Options{})
			if test.nearly < 0 {
				if tel.NewRoot != nil {
					t.Error("NewRoot is there; want nil, so that the SDK says what it does instead")
				}
				return
			}
			tracer := tel.TracerProvider.Tracer("test")
			sampled := 0
			seen := make(map[trace.TraceID]bool)
			for range many {
				ctx, root := tel.NewRoot(t.Context(), "root")
				if !root.IsValid() || root.IsRemote() || seen[root.TraceID()] {
					t.Fatalf("NewRoot() = %v; want a valid context of its own", root)
				}
				seen[root.TraceID()] = true
				if !root.IsSampled() {
					continue
				}
				sampled++
				started, span := tracer.Start(ctx, "root")
				if !span.IsRecording() || !span.SpanContext().Equal(root) {
					t.Fatalf("the span is %v, recording %v; want what NewRoot returned, %v", span.SpanContext(), span.IsRecording(), root)
				}
				_, child := tracer.Start(started, "child")
				if c := child.SpanContext(); c.TraceID() != span.SpanContext().TraceID() || c.SpanID() == span.SpanContext().SpanID() {
					t.Fatalf("the span's child is %v; want a further span of %v", c, span.SpanContext())
				}
			}
			if share := float64(sampled) / many; math.Abs(share-test.nearly) > 0.08 {
				t.Errorf("%v of the roots are sampled; want about %v", share, test.nearly)
			}
		})
	}
}
