package gateway

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/breaker"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// Counters on the request path are plain atomics in a struct for each owner: the
// process, a tenant, a backend. The OTel instruments of instruments.go read them
// when somebody collects, by the tables below. The counters of a tenant and of a
// backend outlive reloads, so that none runs backwards, and go when the tenant
// or backend goes.

// timeSeries is one time series that each owner of type T has.
type timeSeries[T any] struct {
	instrument instrument
	label      attribute.KeyValue // beside the owner's; not valid where there is none
	// always is true where the series is there before it first counts: an alert
	// on its increase would else miss the first. The others of an idle tenant
	// would only cost memory.
	always bool
	of     func(*T) *atomic.Uint64
}

// report observes those of an owner's series that there are.
func report[T any](o metric.Observer, families []metric.Int64ObservableCounter, all []timeSeries[T], owner *T, shared []attribute.KeyValue) {
	labels := append(make([]attribute.KeyValue, 0, len(shared)+1), shared...)
	for i := range all {
		s := &all[i]
		n := s.of(owner).Load()
		if n == 0 && !s.always {
			continue
		}
		own := labels
		if s.label.Valid() {
			own = append(labels, s.label)
		}
		o.ObserveInt64(families[s.instrument], int64(n), metric.WithAttributes(own...))
	}
}

// Attribute keys. None of their values is ever chosen by a caller.
const (
	attrTenant  = attribute.Key("ahp.tenant")
	attrBackend = attribute.Key("ahp.backend")
	attrVerdict = attribute.Key("ahp.verdict")
	attrOutcome = attribute.Key("ahp.outcome")
	attrClass   = attribute.Key("ahp.failure.class")
	attrReason  = attribute.Key("ahp.reason")
	attrCode    = attribute.Key("rpc.jsonrpc.error_code")
	attrState   = attribute.Key("ahp.breaker.state")
	attrResult  = attribute.Key("ahp.result")
	attrShared  = attribute.Key("ahp.shared.operation")
)

// refusal is why a request was answered before it was an event.
type refusal uint8

const (
	refusedFraming refusal = iota
	refusedPath
	refusedMethod
	refusedMediaType
	refusedBodySize
	refusedBodies
	refusedHeaderSize
	refusedTimeout
	refusedMalformed
	refusedCredential
	refusedTenant
	refusedScope
	refusedIssuer
	refusedRate
	refusedQuota
	refusedTenantInFlight
	refusedTenantBodies
	refusedShare
	refusedInFlight
	refusedShared

	refusalCount
)

var refusalNames = [refusalCount]string{
	refusedFraming:        "framing",
	refusedPath:           "path",
	refusedMethod:         "method",
	refusedMediaType:      "media_type",
	refusedBodySize:       "body_size",
	refusedBodies:         "bodies",
	refusedHeaderSize:     "header_size",
	refusedTimeout:        "timeout",
	refusedMalformed:      "malformed",
	refusedCredential:     "credential",
	refusedTenant:         "tenant",
	refusedScope:          "scope",
	refusedIssuer:         "issuer",
	refusedRate:           "rate",
	refusedQuota:          "quota",
	refusedTenantInFlight: "tenant_in_flight",
	refusedTenantBodies:   "tenant_bodies",
	refusedShare:          "share",
	refusedInFlight:       "in_flight",
	refusedShared:         "shared",
}

// globalStats count what belongs to no tenant.
type globalStats struct {
	refused  [refusalCount]atomic.Uint64
	panics   atomic.Uint64
	reloaded atomic.Uint64
	rejected atomic.Uint64 // reloads

	crowded    atomic.Int64 // connections refused because of their address
	generation atomic.Uint64
	reloadOK   atomic.Bool
	lastGood   atomic.Bool  // what is served is Options.LastGood still
	reloadTime atomic.Int64 // Unix seconds of the last one that was done
	refusedAt  atomic.Int64 // likewise, of the first that was refused since; 0 for none
}

// trouble says for /readyz that what is served is not what the files say.
func (s *globalStats) trouble() string {
	at := s.refusedAt.Load()
	if at == 0 || s.lastGood.Load() { // which says as much
		return ""
	}
	return "\nconfiguration: reloads are refused since " + time.Unix(at, 0).UTC().Format(time.RFC3339) + ", and what was loaded before is served: the log says why"
}

var globalSeries = func() (all []timeSeries[globalStats]) {
	add := func(i instrument, label attribute.KeyValue, of func(*globalStats) *atomic.Uint64) {
		all = append(all, timeSeries[globalStats]{i, label, true, of})
	}
	for r := range refusalCount {
		add(instrumentRefused, attrReason.String(refusalNames[r]), func(s *globalStats) *atomic.Uint64 { return &s.refused[r] })
	}
	add(instrumentPanics, attribute.KeyValue{}, func(s *globalStats) *atomic.Uint64 { return &s.panics })
	add(instrumentReloads, attrResult.String("done"), func(s *globalStats) *atomic.Uint64 { return &s.reloaded })
	add(instrumentReloads, attrResult.String("refused"), func(s *globalStats) *atomic.Uint64 { return &s.rejected })
	return all
}()

// partyStats count one tenant's events.
type partyStats struct {
	pass, deny, failClosed, fault atomic.Uint64 // decisions
	changed, inexact              atomic.Uint64
	failOpen                      atomic.Uint64 // passed although a backend had failed open
	dedupe                        [dedupe.Abandoned + 1]atomic.Uint64
	errors                        [len(errorCodes) + 1]atomic.Uint64 // the last is of no code there
	observed, repeated, invalid   atomic.Uint64                      // hooks/observe
	throttled                     [tenant.DeniedUnknown + 1]atomic.Uint64
	unrecorded                    atomic.Uint64 // audit records

	shared     []attribute.KeyValue
	attributes metric.MeasurementOption // of the tenant itself
}

// errorCodes are those of the JSON-RPC errors that the gateway answers.
var errorCodes = [...]ahp.Code{ahp.CodeParse, ahp.CodeInvalidRequest, ahp.CodeMethodNotFound, ahp.CodeInvalidParams, ahp.CodeInternal,
	ahp.CodeUnsupportedVersion, ahp.CodeUnsupportedEvent, ahp.CodeUnavailable, ahp.CodeBackendInternal}

// answered counts one error.
func (s *partyStats) answered(code ahp.Code) {
	i := 0
	for i < len(errorCodes) && errorCodes[i] != code {
		i++
	}
	s.errors[i].Add(1)
}

var partySeries = func() (all []timeSeries[partyStats]) {
	add := func(i instrument, always bool, label attribute.KeyValue, of func(*partyStats) *atomic.Uint64) {
		all = append(all, timeSeries[partyStats]{i, label, always, of})
	}
	verdict := func(name string, of func(*partyStats) *atomic.Uint64) {
		add(instrumentDecisions, true, attrVerdict.String(name), of)
	}
	verdict("pass", func(s *partyStats) *atomic.Uint64 { return &s.pass })
	verdict("deny", func(s *partyStats) *atomic.Uint64 { return &s.deny })
	verdict("fail_closed", func(s *partyStats) *atomic.Uint64 { return &s.failClosed })
	verdict("changed", func(s *partyStats) *atomic.Uint64 { return &s.changed })
	verdict("error", func(s *partyStats) *atomic.Uint64 { return &s.fault })
	add(instrumentInexact, true, attribute.KeyValue{}, func(s *partyStats) *atomic.Uint64 { return &s.inexact })
	add(instrumentFailOpenPasses, true, attribute.KeyValue{}, func(s *partyStats) *atomic.Uint64 { return &s.failOpen })
	for o := range dedupe.Abandoned + 1 {
		add(instrumentDedupe, false, attrOutcome.String(o.String()), func(s *partyStats) *atomic.Uint64 { return &s.dedupe[o] })
	}
	for i, code := range errorCodes {
		add(instrumentErrors, false, attrCode.Int(int(code)), func(s *partyStats) *atomic.Uint64 { return &s.errors[i] })
	}
	add(instrumentNotifications, false, attrResult.String("accepted"), func(s *partyStats) *atomic.Uint64 { return &s.observed })
	add(instrumentNotifications, false, attrResult.String("repeated"), func(s *partyStats) *atomic.Uint64 { return &s.repeated })
	add(instrumentNotifications, false, attrResult.String("invalid"), func(s *partyStats) *atomic.Uint64 { return &s.invalid })
	for _, d := range []tenant.Denied{tenant.DeniedInFlight, tenant.DeniedRate, tenant.DeniedQuota, tenant.DeniedShare, tenant.DeniedBodies, tenant.DeniedUnknown} {
		add(instrumentThrottled, d != tenant.DeniedUnknown, attrReason.String(d.String()), func(s *partyStats) *atomic.Uint64 { return &s.throttled[d] })
	}
	add(instrumentUnrecorded, true, attribute.KeyValue{}, func(s *partyStats) *atomic.Uint64 { return &s.unrecorded })
	return all
}()

func newPartyStats(id string) *partyStats {
	s := &partyStats{shared: []attribute.KeyValue{attrTenant.String(id)}}
	s.attributes = metric.WithAttributeSet(attribute.NewSet(s.shared...))
	return s
}

// peerStats count one backend's turns and deliveries.
type peerStats struct {
	outcomes                   [audit.OutcomeNotCalled + 1]atomic.Uint64
	delivered, failed, dropped atomic.Uint64 // observations and shadow calls
	transitions                [breaker.Open + 1]atomic.Uint64
	failures                   [ahp.FailureClassCount]atomic.Uint64

	shared     []attribute.KeyValue
	attributes metric.MeasurementOption // of the backend itself
	duration   []metric.RecordOption
}

var peerSeries = func() (all []timeSeries[peerStats]) {
	add := func(i instrument, always bool, label attribute.KeyValue, of func(*peerStats) *atomic.Uint64) {
		all = append(all, timeSeries[peerStats]{i, label, always, of})
	}
	for o := audit.OutcomePass; o <= audit.OutcomeNotCalled; o++ {
		add(instrumentSteps, false, attrOutcome.String(o.String()), func(s *peerStats) *atomic.Uint64 { return &s.outcomes[o] })
	}
	add(instrumentDeliveries, false, attrResult.String("delivered"), func(s *peerStats) *atomic.Uint64 { return &s.delivered })
	add(instrumentDeliveries, true, attrResult.String("failed"), func(s *peerStats) *atomic.Uint64 { return &s.failed })
	add(instrumentDeliveries, true, attrResult.String("dropped"), func(s *peerStats) *atomic.Uint64 { return &s.dropped })
	for state := range breaker.Open + 1 {
		add(instrumentTransitions, state == breaker.Open, attrState.String(state.String()), func(s *peerStats) *atomic.Uint64 { return &s.transitions[state] })
	}
	for _, c := range ahp.FailureClasses() {
		add(instrumentFailures, false, attrClass.String(c.String()), func(s *peerStats) *atomic.Uint64 { return &s.failures[c] })
	}
	return all
}()

func newPeerStats(tenant, backend string) *peerStats {
	s := &peerStats{shared: []attribute.KeyValue{attrTenant.String(tenant), attrBackend.String(backend)}}
	s.attributes = metric.WithAttributeSet(attribute.NewSet(s.shared...))
	s.duration = []metric.RecordOption{s.attributes}
	return s
}
