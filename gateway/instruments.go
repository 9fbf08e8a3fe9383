package gateway

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ahp-gateway/ahp-gateway/breaker"
)

// instrument is one counter family.
type instrument uint8

const (
	instrumentDecisions instrument = iota
	instrumentFailOpenPasses
	instrumentInexact
	instrumentSteps
	instrumentFailures
	instrumentDeliveries
	instrumentTransitions
	instrumentDedupe
	instrumentErrors
	instrumentNotifications
	instrumentRefused
	instrumentThrottled
	instrumentUnrecorded
	instrumentPanics
	instrumentReloads

	instrumentCount
)

var instruments = [instrumentCount]struct{ name, unit, description string }{
	instrumentDecisions:      {"ahp.gateway.decisions", "{decision}", "Intercept requests answered, by verdict."},
	instrumentFailOpenPasses: {"ahp.gateway.fail_open.passes", "{decision}", "Decisions without objection although a backend had failed open: alert on it."},
	instrumentInexact:        {"ahp.gateway.inexact", "{decision}", "Answers that permit less than was decided, because no effects can say exactly that."},
	instrumentSteps:          {"ahp.gateway.steps", "{step}", "Turns of a backend in a chain, by outcome."},
	instrumentFailures:       {"ahp.gateway.failures", "{failure}", "Operational failures of a backend, by class."},
	instrumentDeliveries:     {"ahp.gateway.deliveries", "{message}", "Observations and shadow calls to a backend, by result."},
	instrumentTransitions:    {"ahp.gateway.breaker.transitions", "{transition}", "Changes of a circuit breaker, by the state it entered."},
	instrumentDedupe:         {"ahp.gateway.dedupe", "{request}", "Intercept requests by what the event-id cache knew."},
	instrumentErrors:         {"ahp.gateway.errors", "{response}", "JSON-RPC errors answered, by code."},
	instrumentNotifications:  {"ahp.gateway.notifications", "{notification}", "hooks/observe notifications received, by result."},
	instrumentRefused:        {"ahp.gateway.refused", "{request}", "Requests refused before they were an event, by reason."},
	instrumentThrottled:      {"ahp.gateway.throttled", "{request}", "Requests of a tenant refused at its own limits, by reason: a harness that fails open on them passes unseen."},
	instrumentUnrecorded:     {"ahp.gateway.audit.unrecorded", "{record}", "Audit records of a tenant that were dropped, because the queue or its share of it was full."},
	instrumentPanics:         {"ahp.gateway.panics", "{panic}", "Faults of the gateway that were recovered."},
	instrumentReloads:        {"ahp.gateway.config.reloads", "{reload}", "Configuration reloads, by result."},
}

// latencies are the histograms of the request path. Options are kept as slices
// because only a slice that is passed on as it is costs no allocation.
type latencies struct {
	total, self, backend metric.Float64Histogram
	pass, deny, fault    []metric.RecordOption
}

// instrument registers everything the gateway measures with meter.
func (g *Gateway) instrument(meter metric.Meter) error {
	var err error
	histogram := func(name, description string) metric.Float64Histogram {
		h, e := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description))
		if e != nil && err == nil {
			err = e
		}
		return h
	}
	verdict := func(v string) []metric.RecordOption {
		return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrVerdict.String(v)))}
	}
	g.latencies = latencies{
		total:   histogram("ahp.gateway.decision.duration", "Time from an accepted intercept request to its answer."),
		self:    histogram("ahp.gateway.self.duration", "The gateway's own share of a decision, without its backends."),
		backend: histogram("ahp.gateway.backend.duration", "Time of one intercept call to a backend."),
		pass:    verdict("pass"), deny: verdict("deny"), fault: verdict("error"),
	}

	var observed []metric.Observable
	var families [instrumentCount]metric.Int64ObservableCounter
	for i, def := range instruments {
		c, e := meter.Int64ObservableCounter(def.name, metric.WithUnit(def.unit), metric.WithDescription(def.description))
		if e != nil && err == nil {
			err = e
		}
		families[i] = c
		observed = append(observed, c)
	}
	gauge := func(name, unit, description string) metric.Int64ObservableGauge {
		c, e := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		if e != nil && err == nil {
			err = e
		}
		observed = append(observed, c)
		return c
	}
	inFlight := gauge("ahp.gateway.in_flight", "{request}", "Requests being served.")
	connections := gauge("ahp.gateway.connections", "{connection}", "Open connections of the public listener.")
	state := gauge("ahp.gateway.breaker.state", "", "State of a circuit breaker: 0 closed, 1 half open, 2 open; of those without a series of their own the worst.")
	queued := gauge("ahp.gateway.deliveries.queued", "{message}", "Observations and shadow calls waiting for a backend.")
	queuedBytes := gauge("ahp.gateway.deliveries.queued_bytes", "By", "Bytes of observations and shadow calls waiting.")
	auditDepth := gauge("ahp.gateway.audit.queued", "{record}", "Audit records waiting to be written.")
	auditRecords, e := meter.Int64ObservableCounter("ahp.gateway.audit.records", metric.WithUnit("{record}"),
		metric.WithDescription("Audit records, by what became of them."))
	if e != nil && err == nil {
		err = e
	}
	rejected, e := meter.Int64ObservableCounter("ahp.gateway.connections.rejected", metric.WithUnit("{connection}"),
		metric.WithDescription("Connections refused because a limit of connections was reached."))
	if e != nil && err == nil {
		err = e
	}
	observed = append(observed, auditRecords, rejected)
	skipped := gauge("ahp.gateway.discovery.skipped", "{backend}",
		"Backends left out because they could not be asked for their subscriptions: alert on it.")
	generation := gauge("ahp.gateway.config.generation", "", "Number of the configuration generation being served.")
	reloadOK := gauge("ahp.gateway.config.last_reload_successful", "", "1 if the last reload was done, 0 if it was refused.")
	lastGood := gauge("ahp.gateway.config.last_good", "", "1 while a configuration kept from before is served in place of one with a mistake: alert on it.")
	reloadTime := gauge("ahp.gateway.config.last_reload_success_timestamp", "s", "When the last reload was done, in Unix seconds.")
	if err != nil {
		return fmt.Errorf("gateway: instruments: %w", err)
	}

	states := [...]metric.MeasurementOption{
		metric.WithAttributes(attrResult.String("written")),
		metric.WithAttributes(attrResult.String("dropped")),
		metric.WithAttributes(attrResult.String("failed")),
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		report(o, families[:], globalSeries, g.stats, nil)
		o.ObserveInt64(inFlight, int64(g.places.Taken()))
		o.ObserveInt64(connections, int64(g.public.GetOpenConnectionsCount()))
		o.ObserveInt64(rejected, int64(g.public.GetRejectedConnectionsCount())+g.stats.crowded.Load())
		o.ObserveInt64(queuedBytes, g.room.used.Load())
		o.ObserveInt64(generation, int64(g.stats.generation.Load()))
		o.ObserveInt64(reloadTime, g.stats.reloadTime.Load())
		o.ObserveInt64(reloadOK, flag(g.stats.reloadOK.Load()))
		o.ObserveInt64(lastGood, flag(g.stats.lastGood.Load()))
		if g.audit != nil {
			s := g.audit.Stats()
			o.ObserveInt64(auditDepth, int64(s.Depth))
			for i, n := range []uint64{s.Written, s.Dropped, s.Errors} {
				o.ObserveInt64(auditRecords, int64(n), states[i])
			}
		}
		var rest struct{ skipped, state, queued int64 } // of those without series of their own
		for _, p := range g.current.Load().parties {
			if p.stats == g.owners.party {
				rest.skipped += p.skipped()
			} else {
				report(o, families[:], partySeries, p.stats, p.stats.shared)
				o.ObserveInt64(skipped, p.skipped(), p.stats.attributes)
			}
			for _, b := range p.peers {
				s, waiting := int64(stateValue(b.breaker.State())), int64(b.courier.waiting())
				if b.stats == g.owners.peer {
					rest.state, rest.queued = max(rest.state, s), rest.queued+waiting
					continue
				}
				report(o, families[:], peerSeries, b.stats, b.stats.shared)
				o.ObserveInt64(state, s, b.stats.attributes)
				o.ObserveInt64(queued, waiting, b.stats.attributes)
			}
		}
		if g.owners.used() {
			party, peer := g.owners.party, g.owners.peer
			report(o, families[:], partySeries, party, party.shared)
			report(o, families[:], peerSeries, peer, peer.shared)
			o.ObserveInt64(skipped, rest.skipped, party.attributes)
			o.ObserveInt64(state, rest.state, peer.attributes)
			o.ObserveInt64(queued, rest.queued, peer.attributes)
		}
		return nil
	}, observed...)
	if err != nil {
		return fmt.Errorf("gateway: instruments: %w", err)
	}
	return nil
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

func stateValue(s breaker.State) int {
	switch s {
	case breaker.Closed:
		return 0
	case breaker.HalfOpen:
		return 1
	default:
		return 2
	}
}

// measure records the latencies of one decision.
func (g *Gateway) measure(o []metric.RecordOption, total, backends time.Duration) {
	ctx := context.Background()
	g.latencies.total.Record(ctx, total.Seconds(), o...)
	g.latencies.self.Record(ctx, max(0, total-backends).Seconds())
}
