package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
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
	"golang.org/x/net/netutil"

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

// newPublic returns the server of the public listener: everything that fasthttp
// leaves unbounded by default is bounded.
func (g *Gateway) newPublic(f *config.File) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      g.handle,
		ErrorHandler:                 g.unreadable,
		Name:                         "ahp-gateway",
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		ReadBufferSize:               f.Limits.Headers,
		MaxRequestBodySize:           f.Limits.Body,
		ReadTimeout:                  f.Limits.ReadTimeout,
		WriteTimeout:                 f.Limits.WriteTimeout,
		IdleTimeout:                  f.Limits.IdleTimeout,
		Concurrency:                  f.Limits.Connections,
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		TCPKeepalive:                 true,
		Logger:                       serverLog{g.log},
	}
}

// serverLog takes fasthttp's own messages, which are about connections. Errors
// in them may quote what a caller sent, a credential as well as anything else:
// they stay out.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Printf(format string, args ...any) {
	for i, a := range args {
		if _, ok := a.(error); ok {
			args[i] = "(error withheld)"
		}
	}
	l.log.Debug(fmt.Sprintf(format, args...), "component", "http")
}

func (g *Gateway) openAudit(f *config.File, stdout io.Writer) error {
	var sink audit.Sink
	switch {
	case f.Audit.File != "":
		file, err := audit.NewFileSink(f.Audit.File)
		if err != nil {
			return fmt.Errorf("gateway: audit log: %w", err)
		}
		g.auditFile, sink = file, file
	case f.Audit.Stdout:
		if stdout == nil {
			stdout = os.Stdout
		}
		sink = audit.NewWriterSink(stdout)
	default:
		return nil
	}
	overflow, _ := audit.ParseOverflow(f.Audit.Overflow)
	g.audit = audit.NewQueue(sink, f.Limits.AuditQueue, overflow, g.log)
	g.audit.Divide(len(g.current.Load().parties))
	return nil
}

// store makes snap the one that requests are served from.
func (g *Gateway) store(snap *snapshot) {
	snap.claims.settle()
	g.current.Store(snap)
	g.room.tenants.Store(int64(len(snap.parties)))
	g.places.Divide(len(snap.parties))
	if g.audit != nil {
		g.audit.Divide(len(snap.parties))
	}
	for _, p := range snap.parties {
		if p.seat != nil {
			g.places.Weigh(p.seat, p.made.tenant.Weight)
		}
	}
	g.stats.generation.Store(snap.generation)
}

// loaded counts a configuration that was put to use.
func (g *Gateway) loaded() {
	g.stats.reloadOK.Store(true)
	g.stats.reloadTime.Store(time.Now().Unix())
}

// Start listens and serves. It returns once both listeners accept connections.
func (g *Gateway) Start() error {
	f := g.started
	public, err := net.Listen("tcp", f.Listen)
	if err != nil {
		return fmt.Errorf("gateway: listen: %w", err)
	}
	var secure *tls.Config
	if f.TLS.CertFile != "" {
		if err := g.loadCertificate(); err != nil {
			public.Close()
			return err
		}
		secure = g.handshakes()
	}
	if f.Admin != "off" {
		admin, err := net.Listen("tcp", f.Admin)
		if err != nil {
			public.Close()
			return fmt.Errorf("gateway: admin: %w", err)
		}
		admin = netutil.LimitListener(admin, privateConnections) // inside of TLS, which the server looks for
		if f.AdminTLS.CertFile != "" {
			secured, err := g.loadPrivateTLS()
			if err != nil {
				public.Close()
				admin.Close()
				return err
			}
			g.privateTLS.Store(secured)
			admin = tls.NewListener(admin, g.privateHandshakes())
		}
		g.admin, g.private = admin, g.newPrivate(admin.Addr())
		go func() {
			if err := g.private.Serve(admin); !errors.Is(err, http.ErrServerClosed) {
				g.log.Error("private listener stopped", "error", err)
			}
		}()
	}
	g.listener = newEntrance(public, secure, &g.bodies, &g.stats.crowded, f.Limits.ConnectionsPerIP, g.log)
	g.ready.Store(true)
	ctx, stop := context.WithCancel(context.Background())
	g.stopRediscovery = stop
	go g.rediscover(ctx, g.rediscoverEvery)
	go func() {
		defer close(g.served)
		if err := g.public.Serve(g.listener); g.ready.Swap(false) {
			g.failed <- fmt.Errorf("gateway: the public listener stopped: %w", cmp.Or(err, net.ErrClosed))
		}
	}()
	return nil
}

// Failed receives an error if the public listener stops without a Shutdown: the
// process then serves nobody and should end.
func (g *Gateway) Failed() <-chan error { return g.failed }

// URL returns the base URL of the public listener after Start.
func (g *Gateway) URL() string {
	scheme := "http"
	if g.current.Load().file.TLS.CertFile != "" {
		scheme = "https"
	}
	return scheme + "://" + g.listener.Addr().String()
}

// AdminURL returns the base URL of the private listener after Start, or "".
func (g *Gateway) AdminURL() string {
	if g.admin == nil {
		return ""
	}
	scheme := "http"
	if g.privateTLS.Load() != nil {
		scheme = "https"
	}
	return scheme + "://" + g.admin.Addr().String()
}

// Reload serves f from the next request on. Requests under way finish with the
// snapshot they began with. On error nothing changes. It returns the settings
// in which f differs from what the process was started with, and which take a
// restart to apply.
//
// As in New, backends are asked for their subscriptions, also those that were
// asked before; requests do not wait for that. When ctx ends meanwhile, Reload
// returns its error and nothing has changed.
func (g *Gateway) Reload(ctx context.Context, f *config.File) (restart []string, err error) {
	restart, err = g.propose(ctx, f, nil, true)
	if err != nil && ctx.Err() == nil {
		g.Rejected()
	}
	return restart, err
}

// Propose is Reload for a configuration that is not in place yet: one that is
// refused does not count as rejected, because what is in place is still good.
// Only backends of tenants that have changed are asked for their subscriptions.
// Once f is served commit puts it in place; where that fails, what was served
// before is served again, with all that it knows, and Propose returns commit's
// error.
func (g *Gateway) Propose(ctx context.Context, f *config.File, commit func() error) (restart []string, err error) {
	return g.propose(ctx, f, commit, false)
}

func (g *Gateway) propose(ctx context.Context, f *config.File, commit func() error, ask bool) (restart []string, err error) {
	g.reload.Lock()
	defer g.reload.Unlock()
	old := g.current.Load()
	snap, err := g.assemble(ctx, f, old, ask)
	// Certificates may have been renewed, and a root of clients been taken away,
	// also where another setting of the same listener waits for a restart.
	secured := g.privateTLS.Load()
	if err == nil && secured != nil {
		switch fresh, failed := g.loadPrivateTLS(); {
		case failed == nil:
			secured = fresh
		case sameFiles(&f.AdminTLS, &g.started.AdminTLS):
			closePeers(snap, old)
			err = failed
		default:
			g.log.Warn("the files of adminTLS that are in use until a restart cannot be read again", "error", failed)
		}
	}
	if err == nil && g.certificate.Load() != nil {
		switch failed := g.loadCertificate(); {
		case failed == nil:
		case f.TLS == g.started.TLS:
			closePeers(snap, old)
			err = failed
		default:
			g.log.Warn("the files of tls that are in use until a restart cannot be read again", "error", failed)
		}
	}
	if err != nil {
		return nil, err
	}
	g.store(snap)
	if commit != nil {
		if err := commit(); err != nil {
			g.store(old)
			closePeers(snap, old)
			return nil, err
		}
	}
	g.loaded()
	g.privateTLS.Store(secured)
	g.stats.reloaded.Add(1)
	g.stats.lastGood.Store(false)
	closePeers(old, snap)
	if g.auditFile != nil { // so that a log rotator needs nothing but SIGHUP
		if err := g.auditFile.Reopen(); err != nil {
			g.log.Error("audit log cannot be reopened", "error", err)
		}
	}
	return needRestart(g.started, f), nil
}

// Generation returns the number of the snapshot that requests are served from.
func (g *Gateway) Generation() uint64 { return g.current.Load().generation }

// Rejected counts a configuration that was refused before it came to Reload.
func (g *Gateway) Rejected() {
	g.stats.rejected.Add(1)
	g.stats.reloadOK.Store(false)
}

// needRestart names what differs and is fixed while the process lives.
func needRestart(old, f *config.File) []string {
	var names []string
	differ := func(name string, different bool) {
		if different {
			names = append(names, name)
		}
	}
	a, b := old.Limits, f.Limits
	differ("listen", old.Listen != f.Listen)
	differ("admin", old.Admin != f.Admin)
	differ("adminTLS", !sameFiles(&old.AdminTLS, &f.AdminTLS))
	differ("tls", old.TLS != f.TLS)
	differ("log", old.Log != f.Log)
	differ("audit", old.Audit.File != f.Audit.File || old.Audit.Stdout != f.Audit.Stdout || old.Audit.Overflow != f.Audit.Overflow)
	differ("metrics", old.Metrics != f.Metrics)
	differ("shared", old.Shared != f.Shared)
	differ("limits.body", a.Body != b.Body)
	differ("limits.bodyBytes", a.BodyBytes != b.BodyBytes)
	differ("limits.headers", a.Headers != b.Headers)
	differ("limits.readTimeout", a.ReadTimeout != b.ReadTimeout)
	differ("limits.writeTimeout", a.WriteTimeout != b.WriteTimeout)
	differ("limits.idleTimeout", a.IdleTimeout != b.IdleTimeout)
	differ("limits.connections", a.Connections != b.Connections)
	differ("limits.connectionsPerIP", a.ConnectionsPerIP != b.ConnectionsPerIP)
	differ("limits.observeBytes", a.ObserveBytes != b.ObserveBytes)
	differ("limits.auditQueue", a.AuditQueue != b.AuditQueue)
	return names
}

// lingering is how long after the public listener has closed a connection may
// still bring a request: until then it is told to close with the answer,
// instead of being closed under a request that is already on its way.
const lingering = time.Second

// auditFlush is how long the audit log may take to be written at the end, over
// and above the time that the rest of a shutdown has.
const auditFlush = 2 * time.Second

// Shutdown stops serving without losing anything that was accepted: readiness
// fails, the listener closes, requests under way and on open connections are
// answered, and the queues are emptied. It gives up when ctx ends and returns
// its error; the process may exit in either case.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.ready.Store(false)
	var failed error
	if g.stopRediscovery != nil {
		g.stopRediscovery() // a backend that it may be waiting for is not waited for
	}
	if g.listener != nil {
		// Only then are callers told to close: whoever came back while it was
		// still open would be reset in its backlog.
		g.listener.Close()
		g.draining.Store(true)
		select {
		case <-g.served:
		case <-ctx.Done():
		}
		g.linger(ctx)
		if err := g.public.ShutdownWithContext(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
			failed = fmt.Errorf("gateway: requests were still under way: %w", err)
		}
	}
	g.room.closing.Store(true)
	if err := g.room.drain(ctx); err != nil {
		failed = errors.Join(failed, fmt.Errorf("gateway: observations were still waiting: %w", err))
	}
	if g.audit != nil {
		// Whatever else has used the time up, the records get some.
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditFlush)
		defer cancel()
		if err := g.audit.Close(flush); err != nil {
			failed = errors.Join(failed, fmt.Errorf("gateway: %w", err))
		}
	}
	g.closeCommon()
	closePeers(g.current.Load(), nil)
	if g.private != nil {
		if err := g.private.Shutdown(ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("gateway: private listener: %w", err))
		}
	}
	return failed
}

// linger waits until no connection is open, at most for a while.
func (g *Gateway) linger(ctx context.Context) {
	end := time.NewTimer(lingering)
	defer end.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	// The server takes one off for its listener, which is closed already.
	for g.public.GetOpenConnectionsCount()+1 > 0 {
		select {
		case <-tick.C:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// panicked records a fault of ours that was contained.
func (g *Gateway) panicked(where string, r any) {
	g.stats.panics.Add(1)
	g.log.Error("contained a panic", "where", where, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
}
