package gateway

import (
	"context"
	"errors"
	"fmt"
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
	failure ahp.Failure // the backend was skipped, unless there is none
}

// skipped returns how many backends were left out.
func (p *party) skipped() (n int64) {
	for _, d := range p.discovered {
		if !d.failure.OK() {
			n++
		}
	}
	return n
}

// inquiry is one backend being asked for its subscriptions.
type inquiry struct {
	tenant *config.Tenant
	party  *party
	hook   *config.Hook
	peer   *peer

	subscriptions []config.Subscription
	warnings      []config.Mistake
	failure       ahp.Failure
}

// discover asks the backends of s whose registration lists no subscriptions for
// those that they want, all of them within f's discovery timeout, and returns
// the part of them that the gateway serves. A backend that cannot be asked
// makes it fail or is skipped, as f says. When ctx ends meanwhile it returns at
// once; what is still under way then ends with the timeout, and is not looked at.
func (g *Gateway) discover(ctx context.Context, s *snapshot, peers map[*config.Hook]*peer) (map[*config.Hook][]config.Subscription, error) {
	f := s.file
	deadline := time.Now().Add(f.Discovery.Timeout)
	var all []*inquiry
	var asking sync.WaitGroup
	for i := range f.Tenants {
		t := &f.Tenants[i]
		first := len(all)
		for _, r := range t.Registrations {
			for j := range r.Hooks {
				if h := &r.Hooks[j]; h.Discover {
					all = append(all, &inquiry{tenant: t, party: s.parties[i], hook: h, peer: peers[h]})
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

// inquire asks one backend. It goes past the backend's breaker: whether its
// decisions have failed lately says nothing about this question.
func (g *Gateway) inquire(q *inquiry, budget time.Duration, deadline time.Time) {
	defer func() {
		if r := recover(); r != nil {
			g.panicked("discovery", r)
			q.failure = ahp.Failure{Class: ahp.FailInternal, Detail: "a fault of the gateway"}
		}
	}()
	data, failure := q.peer.client.Configuration(deadline)
	if !failure.OK() {
		q.failure = failure
		return
	}
	subs, warnings, err := config.ParseConfiguration(q.hook.ID, data, budget, q.tenant.Backends[q.hook.ID].Shadow)
	q.warnings = warnings
	if err != nil {
		q.failure = ahp.Failure{Class: ahp.FailConfiguration, Detail: firstOf(config.AsMistakes(err))}
		return
	}
	if q.subscriptions = applicable(subs); len(q.subscriptions) == 0 {
		q.failure = ahp.Failure{Class: ahp.FailConfiguration, Detail: "no advertised subscription applies to this gateway"}
	}
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

// found notes the outcome of every inquiry, and fails unless all of them went
// well or those that did not may be skipped.
func (g *Gateway) found(all []*inquiry, skip bool) (map[*config.Hook][]config.Subscription, error) {
	subscriptions := make(map[*config.Hook][]config.Subscription, len(all))
	failed, text := 0, ""
	for _, q := range all {
		log := g.log.With("tenant", q.tenant.ID, "backend", q.hook.ID)
		for i, w := range q.warnings {
			if i == maxWarningsShown {
				log.Warn("more configuration warnings", "count", len(q.warnings)-i)
				break
			}
			log.Warn("configuration warning", "warning", w.String())
		}
		q.party.discovered = append(q.party.discovered, discovery{q.peer, q.failure})
		switch {
		case q.failure.OK():
			subscriptions[q.hook] = q.subscriptions
			log.Info("subscriptions discovered", "intercept", eventsOf(q.subscriptions, config.Intercept), "observe", eventsOf(q.subscriptions, config.Observe))
			continue
		case skip:
			log.Warn("backend skipped, its policy does not hold: its subscriptions could not be discovered", "failure", q.failure.String())
		default:
			if failed++; failed <= maxFailuresShown {
				text += fmt.Sprintf("; tenant %s: backend %s: %s", q.tenant.ID, q.hook.ID, q.failure)
			}
		}
		q.peer.stats.failure(q.failure.Class)
	}
	if failed == 0 {
		return subscriptions, nil
	}
	if more := failed - maxFailuresShown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return nil, errors.New("gateway: discovery of subscriptions failed" + text)
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
