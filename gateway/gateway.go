package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// Options are what a Gateway is given besides its configuration. The zero
// value logs nowhere, measures nothing and traces nothing.
type Options struct {
	Logger         *slog.Logger
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider // nil or a no-op one turns traces off
	Propagator     propagation.TextMapPropagator
	// Tracing says whether TracerProvider records anything.
	Tracing bool
	// NewRoot returns the identity of the server span of a request that comes
	// without a trace context, and the context to start it in if it is sampled.
	// Default nil: the tracer says it of a span that it has started.
	NewRoot func(ctx context.Context, name string) (context.Context, trace.SpanContext)
	// Metrics serves /metrics on the private listener; nil answers 404.
	Metrics http.Handler
	// AdminAPI serves /admin/v1/ on the private listener; nil answers 404.
	AdminAPI http.Handler
	// Environ resolves environment variables. Default os.LookupEnv.
	Environ config.Environ
	// Resolver looks up the names of backends and issuers. Nil means the
	// platform's.
	Resolver *net.Resolver
	// Stdout is where the audit log goes if it is asked to. Default os.Stdout.
	Stdout io.Writer
	// LastGood says that the configuration is one that was kept from before,
	// served because the present one has a mistake. Until a Reload has been done,
	// metrics and /readyz tell so.
	LastGood bool
	// Stored tells how it stands with the documents of tenants in the store that
	// replicas share, at any time and from any goroutine. It returns nil where
	// there are none to follow. Nil is that there never are.
	Stored func() *Stored
	// Version is that of the program, for User-Agent and operators.
	Version string
}

// Gateway serves one configuration after another. Its methods are safe for
// concurrent use; Start and Shutdown are called once each.
type Gateway struct {
	log        *slog.Logger
	tracer     trace.Tracer
	tracing    bool
	newRoot    func(ctx context.Context, name string) (context.Context, trace.SpanContext)
	propagator propagation.TextMapPropagator
	w3c        bool // it is that of W3C trace context alone
	metrics    http.Handler
	adminAPI   http.Handler
	environ    config.Environ
	resolver   *net.Resolver
	version    string

	started   *config.File // what listeners and queues were made from
	current   atomic.Pointer[snapshot]
	reload    sync.Mutex // held while a snapshot is built and stored
	stats     *globalStats
	latencies latencies
	audit     *audit.Queue
	auditFile *audit.FileSink // nil unless the audit log is a file
	changes   *audit.Share    // of the audit queue, for what the admin API is asked for
	places    tenant.Places
	owners    *owners
	room      room
	bodies    bodies
	answering bodies // of known tenants
	exchanges sync.Pool

	fingerprints *dedupe.Fingerprints
	common       *common // nil unless replicas share state
	stored       func() *Stored

	public   *fasthttp.Server
	listener net.Listener // nil until Start has succeeded
	private  *http.Server
	admin    net.Listener

	privateTLS  atomic.Pointer[privateTLS] // nil where the private listener is plain
	certificate atomic.Pointer[tls.Certificate]
	clients     atomic.Pointer[clientTrust] // nil unless client certificates are asked for

	rediscoverEvery time.Duration
	stopRediscovery context.CancelFunc // nil until Start has succeeded

	ready    atomic.Bool
	draining atomic.Bool
	served   chan struct{} // closed when the public server has returned
	failed   chan error    // gets its error if it returned on its own
}

// New builds a gateway for f and serves nothing yet. It opens the audit log;
// Shutdown closes it, and must be called even if Start fails.
//
// Backends whose registration lists no subscriptions are asked for them, which
// takes up to the discovery timeout of f; New fails if one of them cannot be
// asked, unless f says that it is to be skipped. When ctx ends meanwhile, New
// returns its error; after that ctx is not used.
func New(ctx context.Context, f *config.File, o Options) (*Gateway, error) {
	g := &Gateway{
		log: o.Logger, tracing: o.Tracing, newRoot: o.NewRoot, propagator: o.Propagator, metrics: o.Metrics, adminAPI: o.AdminAPI, environ: o.Environ, resolver: o.Resolver, version: o.Version,
		stats:     new(globalStats),
		exchanges: sync.Pool{New: func() any { return new(exchange) }},
		served:    make(chan struct{}),
		failed:    make(chan error, 1),
		started:   f,
		owners:    newOwners(f.Metrics.Tenants),
		changes:   audit.NewShare(),

		fingerprints: dedupe.NewFingerprints(),
		stored:       o.Stored,

		rediscoverEvery: rediscoverEvery,
	}
	g.room.max = int64(f.Limits.ObserveBytes)
	g.bodies.max, g.bodies.each = int64(f.Limits.BodyBytes), int64(f.Limits.Body)
	g.answering.max = int64(max(f.Limits.BodyBytes/2, f.Limits.Body)) // an address alone has no more
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if g.environ == nil {
		g.environ = os.LookupEnv
	}
	if g.propagator == nil {
		g.propagator = propagation.TraceContext{}
	}
	_, g.w3c = g.propagator.(propagation.TraceContext)
	if o.TracerProvider == nil {
		o.TracerProvider = tracenoop.NewTracerProvider()
	}
	const scope = "github.com/ahp-gateway/ahp-gateway/gateway"
	g.tracer = o.TracerProvider.Tracer(scope)
	if o.MeterProvider == nil {
		o.MeterProvider = metricnoop.NewMeterProvider()
	}
	if err := g.openCommon(&f.Shared); err != nil {
		return nil, err
	}
	snap, err := g.assemble(ctx, f, nil, true)
	if err != nil {
		g.closeCommon()
		return nil, err
	}
	g.store(snap)
	g.loaded()
	if o.LastGood {
		g.stats.lastGood.Store(true)
		g.Rejected()
	}
	g.public = g.newPublic(f)
	err = g.instrument(o.MeterProvider.Meter(scope))
	if err == nil {
		err = g.instrumentCommon(o.MeterProvider.Meter(scope))
	}
	if err == nil {
		err = g.instrumentStored(o.MeterProvider.Meter(scope))
	}
	if err == nil {
		err = g.openAudit(f, o.Stdout)
	}
	if err != nil {
		g.closeCommon()
		closePeers(snap, nil)
		return nil, err
	}
	return g, nil
}

// panicked records a fault of ours that was contained.
func (g *Gateway) panicked(where string, r any) {
	g.stats.panics.Add(1)
	g.log.Error("contained a panic", "where", where, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
}
