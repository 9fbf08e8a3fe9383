package gateway

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/breaker"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// Counters on the request path are plain atomics that are found once, at
// assembly. The OTel instruments of instruments.go read them when somebody
// collects. The sets of a tenant and of a backend outlive reloads, so that no
// counter runs backwards, and go when the tenant or backend goes.

// counter is one time series.
type counter struct {
	atomic.Uint64
	instrument instrument
	attributes metric.MeasurementOption
}

// counters are the series of one owner, with the attributes that all of them share.
type counters struct {
	shared []attribute.KeyValue
	mu     sync.Mutex
	all    []*counter
}

// add makes a series with attributes beside the shared ones.
func (c *counters) add(i instrument, kv ...attribute.KeyValue) *counter {
	set := attribute.NewSet(append(append([]attribute.KeyValue(nil), c.shared...), kv...)...)
	n := &counter{instrument: i, attributes: metric.WithAttributeSet(set)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, n)
	return n
}

// each calls f for every series there is now.
func (c *counters) each(f func(*counter)) {
	c.mu.Lock()
	all := c.all
	c.mu.Unlock()
	for _, n := range all {
		f(n)
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
)

// refusal is why a request was answered before it was an event.
type refusal uint8

const (
	refusedFraming refusal = iota
	refusedPath
	refusedMethod
	refusedMediaType
	refusedBodySize
	refusedHeaderSize
	refusedTimeout
	refusedMalformed
	refusedCredential
	refusedTenant
	refusedRate
	refusedTenantInFlight
	refusedInFlight

	refusalCount
)

var refusalNames = [refusalCount]string{
	refusedFraming:        "framing",
	refusedPath:           "path",
	refusedMethod:         "method",
	refusedMediaType:      "media_type",
	refusedBodySize:       "body_size",
	refusedHeaderSize:     "header_size",
	refusedTimeout:        "timeout",
	refusedMalformed:      "malformed",
	refusedCredential:     "credential",
	refusedTenant:         "tenant",
	refusedRate:           "rate",
	refusedTenantInFlight: "tenant_in_flight",
	refusedInFlight:       "in_flight",
}

// globalStats count what belongs to no tenant.
type globalStats struct {
	counters
	refused  [refusalCount]*counter
	panics   *counter
	reloaded *counter
	rejected *counter // reloads

	inFlight   atomic.Int64
	crowded    atomic.Int64 // connections refused because of their address
	generation atomic.Uint64
	reloadOK   atomic.Bool
	reloadTime atomic.Int64 // Unix seconds of the last one that was done
}

func newGlobalStats() *globalStats {
	s := &globalStats{}
	for r := range s.refused {
		s.refused[r] = s.add(instrumentRefused, attrReason.String(refusalNames[r]))
	}
	s.panics = s.add(instrumentPanics)
	s.reloaded = s.add(instrumentReloads, attrResult.String("done"))
	s.rejected = s.add(instrumentReloads, attrResult.String("refused"))
	return s
}

// partyStats count one tenant's events.
type partyStats struct {
	counters
	pass, deny, failClosed, fault *counter // decisions
	changed, inexact              *counter
	failOpen                      *counter // passed although a backend had failed open
	dedupe                        [dedupe.Abandoned + 1]*counter
	errors                        map[ahp.Code]*counter
	observed, repeated, invalid   *counter // hooks/observe
	throttled                     [tenant.DeniedRate + 1]*counter
	attributes                    metric.MeasurementOption // of the tenant itself
}

func newPartyStats(id string) *partyStats {
	s := &partyStats{counters: counters{shared: []attribute.KeyValue{attrTenant.String(id)}}}
	s.attributes = metric.WithAttributeSet(attribute.NewSet(s.shared...))
	s.pass = s.add(instrumentDecisions, attrVerdict.String("pass"))
	s.deny = s.add(instrumentDecisions, attrVerdict.String("deny"))
	s.failClosed = s.add(instrumentDecisions, attrVerdict.String("fail_closed"))
	s.changed = s.add(instrumentDecisions, attrVerdict.String("changed"))
	s.inexact = s.add(instrumentInexact)
	s.fault = s.add(instrumentDecisions, attrVerdict.String("error"))
	s.failOpen = s.add(instrumentFailOpenPasses)
	for o := range s.dedupe {
		s.dedupe[o] = s.add(instrumentDedupe, attrOutcome.String(dedupe.Outcome(o).String()))
	}
	s.errors = make(map[ahp.Code]*counter)
	for _, code := range []ahp.Code{ahp.CodeParse, ahp.CodeInvalidRequest, ahp.CodeMethodNotFound, ahp.CodeInvalidParams,
		ahp.CodeInternal, ahp.CodeUnsupportedVersion, ahp.CodeUnsupportedEvent, ahp.CodeUnavailable, ahp.CodeBackendInternal} {
		s.errors[code] = s.add(instrumentErrors, attrCode.Int(int(code)))
	}
	s.observed = s.add(instrumentNotifications, attrResult.String("accepted"))
	s.repeated = s.add(instrumentNotifications, attrResult.String("repeated"))
	s.invalid = s.add(instrumentNotifications, attrResult.String("invalid"))
	for _, d := range []tenant.Denied{tenant.DeniedInFlight, tenant.DeniedRate} {
		s.throttled[d] = s.add(instrumentThrottled, attrReason.String(d.String()))
	}
	return s
}

// peerStats count one backend's turns and deliveries.
type peerStats struct {
	counters
	outcomes                   [audit.OutcomeNotCalled + 1]*counter
	delivered, failed, dropped *counter // observations and shadow calls
	transitions                [breaker.Open + 1]*counter
	lastFailure                atomic.Uint32            // an ahp.FailureClass
	attributes                 metric.MeasurementOption // of the backend itself
	duration                   []metric.RecordOption

	making   sync.Mutex // held while a counter of failures is made
	failures sync.Map   // ahp.FailureClass → *counter, made when first seen
}

func newPeerStats(tenant, backend string) *peerStats {
	s := &peerStats{counters: counters{shared: []attribute.KeyValue{attrTenant.String(tenant), attrBackend.String(backend)}}}
	for o := audit.OutcomePass; o <= audit.OutcomeNotCalled; o++ {
		s.outcomes[o] = s.add(instrumentSteps, attrOutcome.String(o.String()))
	}
	s.delivered = s.add(instrumentDeliveries, attrResult.String("delivered"))
	s.failed = s.add(instrumentDeliveries, attrResult.String("failed"))
	s.dropped = s.add(instrumentDeliveries, attrResult.String("dropped"))
	for st := range s.transitions {
		s.transitions[st] = s.add(instrumentTransitions, attrState.String(breaker.State(st).String()))
	}
	s.attributes = metric.WithAttributeSet(attribute.NewSet(s.shared...))
	s.duration = []metric.RecordOption{s.attributes}
	return s
}

// failure counts one operational failure.
func (s *peerStats) failure(c ahp.FailureClass) {
	if c.TripsBreaker() {
		s.lastFailure.Store(uint32(c))
	}
	if n, ok := s.failures.Load(c); ok {
		n.(*counter).Add(1)
		return
	}
	s.making.Lock()
	defer s.making.Unlock()
	n, ok := s.failures.Load(c)
	if !ok {
		n = s.add(instrumentFailures, attrClass.String(c.String()))
		s.failures.Store(c, n)
	}
	n.(*counter).Add(1)
}
