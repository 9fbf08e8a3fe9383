package gateway

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/routing"
)

const (
	// inquiriesPerTenant is how many backends of one tenant are asked at once.
	// Tenants do not share it: slow backends of one of them must not use up the
	// time of another's.
	inquiriesPerTenant = 16
	// maxFailuresShown and maxWarningsShown bound what is said about one load,
	// and about one backend.
	maxFailuresShown = 10
	maxWarningsShown = 10
)

// discovery is how a backend that lists no subscriptions answered when it was
// asked for them.
type discovery struct {
	peer    *peer
	hook    *config.Hook
	data    []byte      // the configuration that holds; nil if the backend was skipped
	failure ahp.Failure // of the last time it was asked
}

// source is what makes a backend the same one over a reload, as far as what it
// asks for is concerned: who is asked, for whom. Other settings may change.
type source struct{ tenant, id, url string }

// skipped reports whether the backend's policy does not hold.
func (d discovery) skipped() bool { return d.data == nil }

// String says for an operator how it went.
func (d discovery) String() string {
	switch {
	case d.failure.OK():
		return "done"
	case d.skipped():
		return d.failure.String()
	default:
		return d.failure.String() + " (its earlier subscriptions hold)"
	}
}

// skipped returns how many backends were left out.
func (p *party) skipped() (n int64) {
	for _, d := range p.discovered {
		if d.skipped() {
			n++
		}
	}
	return n
}

// Skipped returns the ids of those backends of a tenant whose policy does not hold,
// because they have never said which subscriptions they want. It is safe for
// concurrent use.
func (g *Gateway) Skipped(tenant string) (backends []string) {
	for _, p := range g.current.Load().parties {
		if p.id != tenant {
			continue
		}
		for _, d := range p.discovered {
			if d.skipped() {
				backends = append(backends, d.hook.ID)
			}
		}
	}
	return backends
}

// inquiry is one backend being asked for its subscriptions.
type inquiry struct {
	tenant *config.Tenant
	party  *party
	hook   *config.Hook
	peer   *peer
	same   bool   // the tenant's file has not changed
	before []byte // what the peer answered an earlier time, or nil

	data          []byte
	subscriptions []config.Subscription
	warnings      []config.Mistake
	failure       ahp.Failure
}

// discover asks the backends of s whose registration lists no subscriptions for
// those that they want, all of them within f's discovery timeout, and returns
// the part of them that the gateway serves. A backend that cannot be asked
// makes it fail or is skipped, as f says; one that previous has, with the same
// URL, is not skipped then, but keeps what it asked for before. So does one of a
// tenant whose own file has not changed, whatever f says: nobody else's change
// has to wait for it. Parties that were taken over whole are not asked for. When
// ctx ends meanwhile it returns at once; what is still under way then ends with
// the timeout, and is not looked at.
func (g *Gateway) discover(ctx context.Context, s, previous *snapshot, peers map[*config.Hook]*peer) (map[*config.Hook][]config.Subscription, error) {
	f := s.file
	before := make(map[source][]byte)
	known := make(map[string]*party)
	if previous != nil {
		for _, p := range previous.parties {
			known[p.id] = p
			for _, d := range p.discovered {
				before[source{p.id, d.hook.ID, d.hook.URL}] = d.data
			}
		}
	}
	deadline := time.Now().Add(f.Discovery.Timeout)
	var all []*inquiry
	var asking sync.WaitGroup
	for i := range f.Tenants {
		t := &f.Tenants[i]
		if s.parties[i].supported != nil {
			continue
		}
		first := len(all)
		same := known[t.ID] != nil && t.Unchanged(&known[t.ID].made.tenant)
		for _, r := range t.Registrations {
			for j := range r.Hooks {
				if h := &r.Hooks[j]; h.Discover {
					all = append(all, &inquiry{tenant: t, party: s.parties[i], hook: h, peer: peers[h], same: same, before: before[source{t.ID, h.ID, h.URL}]})
				}
			}
		}
		own, next := all[first:len(all):len(all)], new(atomic.Int64)
		for range min(len(own), inquiriesPerTenant) {
			asking.Go(func() {
				for n := next.Add(1); int(n) <= len(own) && ctx.Err() == nil; n = next.Add(1) {
					g.inquire(own[n-1], f.Limits.Budget, deadline)
				}
			})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	answered := make(chan struct{})
	go func() {
		asking.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil { // not all were asked then
		return nil, err
	}
	return g.found(all, f.Discovery.OnFailure == "skip")
}

// inquire asks one backend, and falls back on what it answered before.
func (g *Gateway) inquire(q *inquiry, budget time.Duration, deadline time.Time) {
	q.failure = g.ask(q, budget, deadline)
	if !q.failure.OK() && q.before != nil {
		// What the file says of it may have changed. What held under the old
		// one is kept only if it does under the new.
		warnings := q.warnings
		q.read(q.before, budget)
		q.warnings = warnings
	}
}

// ask asks one backend. It goes past the backend's breaker: whether its
// decisions have failed lately says nothing about this question.
func (g *Gateway) ask(q *inquiry, budget time.Duration, deadline time.Time) (failure ahp.Failure) {
	defer func() {
		if r := recover(); r != nil {
			g.panicked("discovery", r)
			failure = ahp.Failure{Class: ahp.FailInternal, Detail: "a fault of the gateway"}
		}
	}()
	data, failure := q.peer.client.Configuration(deadline)
	if !failure.OK() {
		return failure
	}
	return q.read(data, budget)
}

// read takes what a backend has advertised.
func (q *inquiry) read(data []byte, budget time.Duration) ahp.Failure {
	subs, warnings, err := config.ParseConfiguration(q.hook.ID, data, budget, q.tenant.Backends[q.hook.ID].Shadow)
	q.warnings = warnings
	if err != nil {
		return ahp.Failure{Class: ahp.FailConfiguration, Detail: firstOf(config.AsMistakes(err))}
	}
	subs = applicable(subs)
	if len(subs) == 0 {
		return ahp.Failure{Class: ahp.FailConfiguration, Detail: "no advertised subscription applies to this gateway"}
	}
	q.data, q.subscriptions = data, subs
	return ahp.Failure{}
}

// firstOf returns the first of mistakes, without the backend's name, and how
// many more there are.
func firstOf(ms config.Mistakes) string {
	first := ms[0]
	text := first.What + ": " + first.Instead
	if first.Path != "" {
		text = first.Path + ": " + text
	}
	if len(ms) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(ms)-1)
	}
	return text
}

// applicable returns what of the advertised subscriptions the gateway serves,
// with the events by name. A harness keeps the part of a selector that its host
// supports, and drops a subscription of which nothing is left.
func applicable(advertised []config.Subscription) []config.Subscription {
	var subs []config.Subscription
	for _, sub := range advertised {
		mode := modeOf(sub.Mode)
		table, err := routing.New(ahp.Draft, []routing.Subscription{{Mode: mode, Selectors: sub.Selectors, Timeout: sub.Timeout}})
		if err != nil {
			continue // covers no event; the configuration has been checked
		}
		sub.Selectors = nil
		for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
			if len(table.Match(e, mode)) > 0 {
				sub.Selectors = append(sub.Selectors, e.String())
			}
		}
		if len(sub.Selectors) > 0 {
			subs = append(subs, sub)
		}
	}
	return subs
}

// Unasked is the error where a configuration is refused because backends cannot be
// asked for their subscriptions.
type Unasked struct {
	// Tenants are the ids of theirs, each as often as it has such backends.
	Tenants []string
	text    string
}

func (u *Unasked) Error() string { return u.text }

// found notes the outcome of every inquiry, and fails unless all of them went
// well or those that did not may be skipped or keep what they asked for before.
func (g *Gateway) found(all []*inquiry, skip bool) (map[*config.Hook][]config.Subscription, error) {
	subscriptions := make(map[*config.Hook][]config.Subscription, len(all))
	var failed []string
	text := ""
	for _, q := range all {
		log := g.log.With("tenant", q.tenant.ID, "backend", q.hook.ID)
		for i, w := range q.warnings {
			if i == maxWarningsShown {
				log.Warn("more configuration warnings", "count", len(q.warnings)-i)
				break
			}
			log.Warn("configuration warning", "warning", w.String())
		}
		q.party.discovered = append(q.party.discovered, discovery{q.peer, q.hook, q.data, q.failure})
		subscriptions[q.hook] = q.subscriptions
		switch {
		case q.failure.OK():
			log.Info("subscriptions discovered", "intercept", eventsOf(q.subscriptions, config.Intercept), "observe", eventsOf(q.subscriptions, config.Observe))
			continue
		case (skip || q.same) && q.data != nil:
			log.Warn("the backend's earlier subscriptions hold: they could not be discovered again", "failure", q.failure.String())
		case skip:
			log.Warn("backend skipped, its policy does not hold: its subscriptions could not be discovered", "failure", q.failure.String())
		default:
			if failed = append(failed, q.tenant.ID); len(failed) <= maxFailuresShown {
				text += fmt.Sprintf("; tenant %s: backend %s: %s", q.tenant.ID, q.hook.ID, q.failure)
			}
		}
		q.peer.failure(q.failure.Class)
	}
	if len(failed) == 0 {
		return subscriptions, nil
	}
	if more := len(failed) - maxFailuresShown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return nil, &Unasked{failed, "gateway: discovery of subscriptions failed" + text +
		"; have the backend running and its secret set first, list its subscriptions in the registration until then, or set discovery.onFailure to skip"}
}

// eventsOf returns the events of the subscriptions of a mode, each once.
func eventsOf(subs []config.Subscription, mode config.Mode) []string {
	seen := make(map[string]bool)
	events := []string{}
	for _, sub := range subs {
		for _, event := range sub.Selectors {
			if sub.Mode == mode && !seen[event] {
				seen[event] = true
				events = append(events, event)
			}
		}
	}
	return events
}

// rediscoverEvery is how often a backend that could not be asked is asked again.
const rediscoverEvery = 30 * time.Second

// rediscover asks, until ctx ends, the backends again that could not be asked,
// and assembles the configuration anew when one of them answers.
func (g *Gateway) rediscover(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := g.askAgain(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn("the configuration could not be assembled with a backend that answers again", "error", err)
		}
	}
}

// askAgain is one attempt of rediscover. Asking everybody is worth it only once
// somebody answers with what can be served.
func (g *Gateway) askAgain(ctx context.Context) error {
	old := g.current.Load()
	var failing []*inquiry
	for i, p := range old.parties {
		for _, d := range p.discovered {
			if !d.failure.OK() {
				failing = append(failing, &inquiry{tenant: &old.file.Tenants[i], party: p, hook: d.hook, peer: d.peer})
			}
		}
	}
	if !g.answers(ctx, failing, old.file) {
		return nil
	}
	g.reload.Lock()
	defer g.reload.Unlock()
	if g.current.Load() != old {
		return nil // a reload has asked them
	}
	snap, err := g.assemble(ctx, old.file, old, true)
	if err != nil {
		return err
	}
	for i, p := range snap.parties {
		// Of another tenant's backend nobody has to know: what is remembered
		// for a tenant holds where its backends are those of before, credentials
		// and trust included, and want what they wanted.
		if p != old.parties[i] && slices.Equal(p.peers, old.parties[i].peers) && slices.EqualFunc(p.discovered, old.parties[i].discovered, func(a, b discovery) bool { return bytes.Equal(a.data, b.data) }) {
			p.answers = old.parties[i].answers
		}
	}
	g.store(snap)
	closePeers(old, snap)
	return nil
}

// answers reports whether one of the backends tells subscriptions that can be
// served.
func (g *Gateway) answers(ctx context.Context, all []*inquiry, f *config.File) bool {
	deadline := time.Now().Add(f.Discovery.Timeout)
	var next atomic.Int64
	var found atomic.Bool
	var asking sync.WaitGroup
	for range min(len(all), 4*inquiriesPerTenant) {
		asking.Go(func() {
			for n := next.Add(1); int(n) <= len(all) && ctx.Err() == nil && !found.Load(); n = next.Add(1) {
				if failure := g.ask(all[n-1], f.Limits.Budget, deadline); failure.OK() {
					found.Store(true)
				}
			}
		})
	}
	asking.Wait()
	return found.Load()
}
