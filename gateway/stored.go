package gateway

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/shared"
)

// Stored is how it stands with the tenants' documents in the store that replicas
// share. Whoever follows them tells the gateway, which tells operators.
type Stored struct {
	// Known is whether they have been read since the process started.
	Known bool
	// Kept is how many are served from before the start, while Known is not set.
	Kept int
	// Outage is why they cannot be followed at present, or OK.
	Outage shared.Class
	// LeftOut is how many of them cannot be served, because of what they say.
	LeftOut int
	// Lost is how many are served although the store has lost them.
	Lost int
	// Held is since when what the store has is not served although it is known,
	// because the gateway cannot serve it. It is zero where all is well.
	Held time.Time
	// Store is where they are.
	Store *shared.Store
}

// Follow serves f, which differs from what is served in nothing but tenants of the
// store, while the files that it was made from may have a mistake: what was
// read of them is not read again, nor is what they name, and it counts as no
// reload. Only backends of tenants that have changed are asked for their
// subscriptions. Once f is served commit, unless it is nil, puts in place what has
// changed. On error, also of commit, what was served before is.
func (g *Gateway) Follow(ctx context.Context, f *config.File, commit func() error) error {
	g.reload.Lock()
	defer g.reload.Unlock()
	old := g.current.Load()
	v := *old.vault
	v.files, v.settled = maps.Clone(v.files), true
	// What documents name was read again for f, which tells from its digest whether
	// a tenant is the same as before: it must not be another content that is used.
	b := &f.Backend
	maps.DeleteFunc(v.files, func(path string, _ []byte) bool {
		return !slices.Contains([]string{b.CAFile, b.IssuerCAFile, b.ClientCertFile, b.ClientKeyFile}, path)
	})
	snap, err := g.assembleFrom(ctx, &v, f, old, false)
	if err != nil {
		return err
	}
	g.store(snap)
	if commit != nil {
		if err := commit(); err != nil {
			g.store(old)
			closePeers(snap, old)
			return err
		}
	}
	closePeers(old, snap)
	return nil
}

// storeTimeout is how long a call for documents may take at least.
const storeTimeout = 2 * time.Second

// OpenStore returns the server of r by whose documents the gateway goes, with
// what told takes as OnChange. A server that is not there is no error: it may
// come. A password or a trust root that cannot be had is one.
func OpenStore(r *config.Redis, environ config.Environ, told func(c shared.Class, reply string)) (*shared.Store, error) {
	if environ == nil {
		environ = os.LookupEnv
	}
	s, err := storeSettings(r, environ)
	if err != nil {
		return nil, err
	}
	// No request waits for it, and a reply may be large.
	s.Timeout, s.OnChange = max(s.Timeout, storeTimeout), told
	return shared.Open(s), nil
}

// missesTenants reports whether there may be tenants that are not known yet, so
// that a credential of nobody's may be good all the same.
func (g *Gateway) missesTenants() bool {
	if g.stored == nil {
		return false
	}
	s := g.stored()
	return s != nil && !s.Known
}

// trouble says for /readyz what is wrong with the documents. Requests are served
// by those that are known, so that is no reason to get none.
func (s *Stored) trouble() string {
	text := ""
	switch {
	case s == nil:
		return ""
	case !s.Known && s.Kept > 0:
		text = "\nstored tenants: " + s.Outage.String() + ": those that were kept from before the start are served, and none can be changed"
	case !s.Known:
		text = "\nstored tenants: " + s.Outage.String() + ": none of them is known yet"
	case s.Outage != shared.OK:
		text = "\nstored tenants: " + s.Outage.String() + ": those that are known are served, and none can be changed"
	}
	if s.Lost > 0 {
		text += "\nstored tenants: the store has lost " + strconv.Itoa(s.Lost) + " that are still served: restore it, or send SIGHUP to go by what it has"
	}
	if !s.Held.IsZero() {
		text += "\nstored tenants: since " + s.Held.UTC().Format(time.RFC3339) + " what has changed in the store is not served, removed tenants and keys included: the log says why"
	}
	if s.LeftOut > 0 {
		text += "\nstored tenants: documents that are left out: " + strconv.Itoa(s.LeftOut) + ": the log says why"
	}
	return text
}

// instrumentStored registers what is measured of the documents.
func (g *Gateway) instrumentStored(meter metric.Meter) error {
	if g.stored == nil {
		return nil
	}
	var err error
	gauge := func(name, description string) metric.Int64ObservableGauge {
		i, e := meter.Int64ObservableGauge(name, metric.WithDescription(description))
		if e != nil && err == nil {
			err = e
		}
		return i
	}
	available := gauge("ahp.gateway.stored.available", "1 while the documents of tenants in the store that replicas share are followed, 0 while they cannot be: alert on it.")
	leftOut := gauge("ahp.gateway.stored.left_out", "Documents of tenants in the store that are not served because they have mistakes: alert on it.")
	lost := gauge("ahp.gateway.stored.lost", "Tenants that are served although the store has lost their documents: alert on it.")
	held := gauge("ahp.gateway.stored.held", "1 while what has changed in the store that replicas share cannot be served here, removed tenants and keys included: alert on it.")
	failures, e := meter.Int64ObservableCounter("ahp.gateway.stored.failures", metric.WithUnit("{operation}"),
		metric.WithDescription("Operations on the documents of tenants in the store that got nothing, by operation and class."))
	if err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("gateway: instruments: %w", err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := g.stored()
		if s == nil {
			return nil
		}
		up := int64(0)
		if s.Known && s.Outage == shared.OK {
			up = 1
		}
		o.ObserveInt64(available, up)
		o.ObserveInt64(leftOut, int64(s.LeftOut))
		o.ObserveInt64(lost, int64(s.Lost))
		o.ObserveInt64(held, flag(!s.Held.IsZero()))
		for _, op := range []shared.Operation{shared.Read, shared.Write} {
			observeFailures(o, failures, s.Store, op)
		}
		return nil
	}, available, leftOut, lost, held, failures)
	if err != nil {
		return fmt.Errorf("gateway: instruments: %w", err)
	}
	return nil
}

// observeFailures observes the failures of one operation, by class.
func observeFailures(o metric.Observer, failures metric.Int64Observable, s *shared.Store, op shared.Operation) {
	for class := shared.OK + 1; class < shared.ClassCount; class++ {
		o.ObserveInt64(failures, int64(s.Failures[op][class].Load()),
			metric.WithAttributes(attrShared.String(op.String()), attrClass.String(class.String())))
	}
}
