package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

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
		lobby := newLobby(admin, privateConnections) // inside of TLS, which the server looks for
		admin = lobby
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
		g.private.ConnState = lobby.follow
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
