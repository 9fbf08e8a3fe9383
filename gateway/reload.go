package gateway

import (
	"context"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// store makes snap the one that requests are served from.
func (g *Gateway) store(snap *snapshot) {
	snap.claims.settle()
	g.current.Store(snap)
	g.room.tenants.Store(int64(len(snap.parties)))
	g.places.Divide(len(snap.parties))
	g.divideAudit(len(snap.parties))
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
	g.stats.refusedAt.Store(0)
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
	g.stats.refusedAt.CompareAndSwap(0, time.Now().Unix())
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
