package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/backend"
	"github.com/ahp-gateway/ahp-gateway/breaker"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
	"github.com/ahp-gateway/ahp-gateway/routing"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// peerKey identifies a backend as it is configured: a backend that keeps its
// key over a reload is kept itself.
type peerKey struct {
	tenant, id string
	settings   [sha256.Size]byte
}

// assemble builds the snapshot of f. What previous has and f does not change
// (tenants as a whole, or else their backends, limiters and statistics) is taken
// over; previous may be nil and is not changed in any case. Backends that list no
// subscriptions are asked for them: where ask is set all of them, otherwise those
// of tenants that have changed. That takes as long as f's discovery may; when ctx
// ends it gives up.
func (g *Gateway) assemble(ctx context.Context, f *config.File, previous *snapshot, ask bool) (*snapshot, error) {
	v, err := g.openVault(f, previous)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return g.assembleFrom(ctx, v, f, previous, ask)
}

// assembleFrom is assemble with what is read from v.
func (g *Gateway) assembleFrom(ctx context.Context, v *vault, f *config.File, previous *snapshot, ask bool) (_ *snapshot, err error) {
	s := &snapshot{
		vault:      v,
		generation: 1,
		file:       f,
		claims:     g.owners.claim(),
		budget:     f.Limits.Budget,
		failClosed: ahp.AppendDeny(nil, f.FailClosed.Reason, f.FailClosed.Code),
	}
	known := make(map[string]*party)
	sameRest := false
	if previous != nil {
		s.generation, sameRest = previous.generation+1, f.SameButTenants(previous.file)
		for _, p := range previous.parties {
			known[p.id] = p
		}
	}
	entries := make([]tenant.Entry, len(f.Tenants))
	peers := make(map[*config.Hook]*peer)
	for i := range f.Tenants {
		t := &f.Tenants[i]
		p := known[t.ID]
		if !sameRest || !v.unchanged(t, p, ask) {
			if p, err = g.assembleParty(s, v, t, p, peers); err != nil {
				return nil, fmt.Errorf("gateway: tenant %s: %w", t.ID, err)
			}
		}
		entries[i] = entryOf(t)
		s.parties = append(s.parties, p)
	}
	if err := g.assembleCredentials(s, entries, previous); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if err := g.assembleDocuments(ctx, s, previous, peers); err != nil {
		closePeers(s, previous)
		return nil, err
	}
	v.tidy(f)
	return s, nil
}

// closePeers closes the clients of s that kept, which may be nil, has not got.
func closePeers(s, kept *snapshot) {
	keep := make(map[*peer]bool)
	if kept != nil {
		for _, p := range kept.parties {
			for _, b := range p.peers {
				keep[b] = true
			}
		}
	}
	for _, p := range s.parties {
		for _, b := range p.peers {
			if !keep[b] {
				b.client.Close()
			}
		}
	}
}

// assembleParty returns the tenant at work, still without documents, and adds
// its backends to peers.
func (g *Gateway) assembleParty(s *snapshot, v *vault, t *config.Tenant, previous *party, peers map[*config.Hook]*peer) (*party, error) {
	f := s.file
	p := &party{
		id:      t.ID,
		made:    v.makingOf(t),
		answers: dedupe.New(dedupe.Settings{Entries: f.Dedupe.Entries, Bytes: f.Dedupe.Bytes, TTL: f.Dedupe.TTL}),
	}
	limits := tenant.Limits{InFlight: t.InFlight, Rate: t.Rate, Burst: t.Burst}
	if previous != nil {
		p.stats, p.observed, p.questions, p.share = previous.stats, previous.observed, previous.questions, previous.share
		p.bodies = previous.bodies
		if previous.limiter.Limits == limits {
			p.limiter = previous.limiter
		}
		p.seat, p.records, p.allowance = previous.seat, previous.records, previous.allowance
	} else {
		p.stats = s.claims.partyStats(t.ID)
		p.observed = dedupe.NewSeen(observedEvents, observedFor)
		p.questions = newQuestions()
		p.share = new(share)
		p.bodies = new(atomic.Int64)
	}
	if p.limiter == nil {
		p.limiter = tenant.NewLimiter(limits)
		if previous != nil {
			p.limiter.Continue(previous.limiter)
		}
	}
	if p.seat == nil && !t.Open { // an open one is alone
		p.seat = tenant.NewSeat(t.Weight)
	}
	if p.records == nil { // with which it is not: there is the admin API
		p.records = audit.NewShare()
	}
	p.allowance = g.allowanceOf(t, p.allowance)
	for _, r := range t.Registrations {
		for i := range r.Hooks {
			h := &r.Hooks[i]
			b, err := g.assemblePeer(s, v, t, h, p, previous)
			if err != nil {
				return nil, fmt.Errorf("snapshot %s: backend %s: %w", r.Version, h.ID, err)
			}
			peers[h] = b
		}
	}
	return p, nil
}

// How long and for how many events of a tenant it is remembered that their
// observers have been told.
const (
	observedEvents = 16384
	observedFor    = 10 * time.Minute
)

// assembleDocuments gives the parties of s their documents, once it is known
// what the backends that list no subscriptions want.
func (g *Gateway) assembleDocuments(ctx context.Context, s, previous *snapshot, peers map[*config.Hook]*peer) error {
	discovered, err := g.discover(ctx, s, previous, peers)
	if err != nil {
		return err
	}
	for i := range s.file.Tenants {
		t, p := &s.file.Tenants[i], s.parties[i]
		if p.supported != nil {
			continue // it was taken over with its documents
		}
		for _, r := range t.Registrations {
			d, err := assembleDocument(r, peers, discovered, s.budget)
			if err != nil {
				return fmt.Errorf("gateway: tenant %s: snapshot %s: %w", t.ID, r.Version, err)
			}
			p.documents[r.Version] = d
		}
		for _, v := range ahp.Versions {
			if p.documents[v] != nil {
				p.supported = append(p.supported, v)
			}
		}
		if g.common != nil {
			p.questionKeys = questionKeys(g.version, s.file, t, peers, discovered)
		}
	}
	return nil
}

func assembleDocument(r *config.Registration, peers map[*config.Hook]*peer, discovered map[*config.Hook][]config.Subscription, budget time.Duration) (*document, error) {
	var subs []routing.Subscription
	hops := make(map[[2]int]*hop)
	var views []ahp.View // the distinct ones
	for i := range r.Hooks {
		h := &r.Hooks[i]
		b, own := peers[h], h.Subscriptions
		if h.Discover {
			own = discovered[h]
		}
		for j := range own {
			c := &own[j]
			subs = append(subs, routing.Subscription{
				BackendID: h.ID, ID: c.ID, Hook: i, Index: j, Mode: modeOf(c.Mode), Selectors: c.Selectors, Timeout: c.Timeout,
				FailClosed: c.FailClosed, Managed: c.Managed, IncludeNative: c.IncludeNative, Shadow: c.Shadow,
				Content: c.Content, Backend: b.breaker,
			})
			view := ahp.View{Native: c.IncludeNative, Content: c.Content}
			selection := slices.IndexFunc(views, view.Equal)
			if selection < 0 {
				selection, views = len(views), append(views, view)
			}
			hops[[2]int{i, j}] = &hop{peer: b, view: view, selection: selection}
		}
	}
	table, err := routing.New(r.Version, subs)
	if err != nil {
		return nil, err
	}
	d := &document{routes: make([]route, 1)}
	resolve := func(matched []*routing.Subscription) (to []*hop) {
		for _, sub := range matched {
			h := hops[[2]int{sub.Hook, sub.Index}]
			h.sub = sub
			to = append(to, h)
		}
		return to
	}
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		intercept, observe := table.Match(e, routing.Intercept), table.Match(e, routing.Observe)
		if len(intercept)+len(observe) == 0 {
			continue
		}
		r := route{intercept: resolve(intercept), observe: resolve(observe)}
		if len(intercept) > 0 && table.Version() == ahp.Draft {
			r.shown = union(slices.Concat(intercept, observe))
		}
		d.route[e] = uint8(len(d.routes))
		d.routes = append(d.routes, r)
	}
	d.routes = slices.Clip(d.routes)
	if d.configuration, err = configuration(table, budget); err != nil {
		return nil, err
	}
	return d, nil
}

func modeOf(m config.Mode) routing.Mode {
	if m == config.Observe {
		return routing.Observe
	}
	return routing.Intercept
}

// assemblePeer returns the tenant's backend for h: that of the other document
// or of the previous snapshot if nothing about it has changed.
func (g *Gateway) assemblePeer(s *snapshot, v *vault, t *config.Tenant, h *config.Hook, p, previous *party) (*peer, error) {
	f, own := s.file, t.Backends[h.ID]
	settings := g.backendConfig(f, v, t, h, own)
	trust, err := v.identify(&settings, &own)
	if err != nil {
		return nil, err
	}
	made := own
	made.Shadow = nil // is a matter of subscriptions
	key := peerKey{t.ID, h.ID, digest(&settings, made, trust, f.Limits.ObserveQueue)}
	var stats *peerStats
	for _, from := range []*party{p, previous} {
		if from == nil {
			continue
		}
		for _, b := range from.peers {
			if b.key == key {
				if from == previous {
					p.peers = append(p.peers, b)
				}
				return b, nil
			}
			if b.id == h.ID && stats == nil {
				stats = b.stats
			}
		}
	}
	client, err := backend.New(settings)
	if err != nil {
		return nil, err
	}
	if stats == nil {
		stats = s.claims.peerStats(p, h.ID)
	}
	b := &peer{tenant: t.ID, id: h.ID, key: key, decides: deciding(&settings, trust), client: client, stats: stats}
	b.breaker = breaker.New(client, breaker.Settings{
		Disabled: own.Breaker.Disabled, Window: own.Breaker.Window, Buckets: own.Breaker.Buckets, Volume: own.Breaker.Volume,
		Ratio: own.Breaker.Ratio, OpenFor: own.Breaker.OpenFor, Probes: own.Breaker.Probes, InFlight: own.InFlight,
		OnChange: func(_, to breaker.State) {
			stats.transitions[to].Add(1)
			go g.announce(b, to) // a log may take its time, and the breaker's lock is held
		},
	})
	b.courier = newCourier(stats, &g.room, p.share, f.Limits.ObserveQueue, g.log)
	p.peers = append(p.peers, b)
	return b, nil
}

// announce logs a breaker that has opened or closed.
func (g *Gateway) announce(b *peer, to breaker.State) {
	switch to {
	case breaker.Open:
		g.log.Warn("circuit breaker opened: the backend is not asked for now", "tenant", b.tenant, "backend", b.id,
			"last_failure", ahp.FailureClass(b.lastFailure.Load()).String())
	case breaker.Closed:
		g.log.Info("circuit breaker closed: the backend is asked again", "tenant", b.tenant, "backend", b.id)
	}
}

// digest covers everything that a peer is made from, secrets included.
func digest(c *backend.Config, own config.BackendSettings, trust []byte, queue int) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %d %+v %q %d %+v", c.URL, c.Bearer, c.CredentialError, c.Headers, c.MaxResponse,
		c.Dial, trust, queue, own)
	if a := c.OAuth; a != nil {
		fmt.Fprintf(h, " %q %q %q %q %q %+v", a.Issuer, a.Resource, a.ClientID, a.ClientSecret, a.Scopes, a.Dial)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// deciding covers what peer.decides is of, secrets included.
func deciding(c *backend.Config, trust []byte) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %+v %q", c.Bearer, c.CredentialError, c.Headers, c.Dial, trust)
	if a := c.OAuth; a != nil {
		fmt.Fprintf(h, " %q %+v", a.ClientSecret, a.Dial)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func (g *Gateway) backendConfig(f *config.File, v *vault, t *config.Tenant, h *config.Hook, own config.BackendSettings) backend.Config {
	c := backend.Config{
		ID: h.ID, URL: h.URL, MaxResponse: f.Limits.Response, Connections: own.Connections, Retry: own.Retry,
		UserAgent: "ahp-gateway/" + g.version,
		Dial:      own.Egress(hostOf(h.URL)), Resolver: g.resolver,
	}
	// A secret that cannot be had now fails the calls, not the configuration:
	// that is what a harness with the same registration would do. It never
	// turns a call into an anonymous one.
	if h.Bearer != nil {
		token, err := v.secret(t, *h.Bearer)
		if err != nil {
			c.CredentialError = err.Error()
		}
		c.Bearer = token
	}
	if h.OAuth != nil {
		var err error
		if c.OAuth, err = v.oauthOf(t, h, &own); err != nil {
			c.CredentialError = err.Error()
		}
	}
	for _, header := range h.Headers {
		value := header.Value
		if header.Secret != nil {
			var err error
			if value, err = v.secret(t, *header.Secret); err != nil {
				c.CredentialError = err.Error()
			}
		}
		c.Headers = append(c.Headers, backend.Header{Name: header.Name, Value: value})
	}
	if c.CredentialError != "" && t.Secrets.Stored {
		g.log.Error("a secret cannot be had: calls to the backend fail", "tenant", t.ID, "backend", h.ID, "error", c.CredentialError)
	}
	return c
}

// isLoopback reports whether a URL names a loopback address itself.
func isLoopback(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	if strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && addr.Unmap().IsLoopback()
}
