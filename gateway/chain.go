package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/decision"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
)

// exchange is everything that one intercept request needs while it is decided.
// Exchanges are pooled: nothing in one may be kept after release.
type exchange struct {
	g        *Gateway
	snap     *snapshot
	party    *party
	start    time.Time
	deadline time.Time // of the whole chain
	trace    traceHeaders
	ctx      context.Context // carries the server span, nothing else
	span     trace.Span      // the server span, if it is recorded
	parent   [55]byte        // what trace points to, if it is not

	msg     ahp.Message
	call    ahp.Call
	resp    ahp.Response // of the turn under way; the last effects live here until the answer is encoded
	terms   decision.Terms
	state   decision.State
	effects []decision.Effect // of the turn under way
	said    [][]byte          // the effects of the answer

	// The message as the backend under way may see it: the event (shown lies in
	// a projection, in the state or in the message), the capabilities and the
	// state.
	shown, capabilities, told, request []byte
	projections                        []projection // of the event as it stands
	// answer is what is remembered: the JSON-RPC message behind its note.
	answer []byte

	steps    []audit.Step
	backends time.Duration // spent waiting for backends

	verdict    verdict
	failure    *ahp.Error // the JSON-RPC error to answer, or nil
	failedOpen bool       // a failure was passed over
	inexact    bool       // the answer permits less than was decided
	by         *hop       // settled a denial, or nil
	place      int        // of by in the chain
	dedupe     dedupe.Outcome
	// fingerprint identifies the message, content and all.
	fingerprint dedupe.Fingerprint
	uncalled    []*hop // the part of the chain that was not reached
}

// projection is the event as one selection shows it.
type projection struct {
	selection int
	shown     []byte // the event itself where that is all of it
	buffer    []byte // holds shown where it is not
}

// final reports whether the answer may be remembered: one that an operational
// failure has touched is not what the backends would say on another day.
func (x *exchange) final() bool {
	return !x.failedOpen && (x.verdict == verdictPass || x.verdict == verdictDeny || x.verdict == verdictChanged)
}

var (
	unavailable   = &ahp.Error{Code: ahp.CodeUnavailable, Message: "Required policy backend unavailable"}
	inexpressible = &ahp.Error{Code: ahp.CodeBackendInternal, Message: "The decision cannot be expressed in the effects that were advertised"}
)

// decide runs the event's chain and leaves the answer in x.answer. Backends are
// called one after the other in registration order, and not any more after a
// deny or a fail-closed failure (AHP-COMP-001).
func (x *exchange) decide(doc *document) {
	x.terms = decision.ParseTerms(x.msg.Version, x.msg.Event.Type, x.msg.Capabilities.Raw)
	if x.msg.Version == ahp.Draft && x.msg.Event.Type == ahp.UserElicitationResult {
		x.terms.Asked = x.party.questions.of(&x.msg)
	}
	x.state.Start(&x.terms, x.msg.Event.Raw, x.msg.State)
	to := doc.of(x.msg.Event.Type)
	x.state.Shown = to.shown
	hops := to.intercept
	called := len(hops)
	for i, h := range hops {
		if x.msg.Halted {
			called = i
			break
		}
		if h.sub.Shadow {
			x.shadow(h)
			continue
		}
		if stop := x.turn(h); stop {
			x.place, called = i, i+1
			break
		}
	}
	x.uncalled = hops[called:]
	for _, h := range x.uncalled {
		x.step(h, audit.OutcomeNotCalled, ahp.Failure{}, 0)
	}
	x.encode()
}

// turn calls one backend and folds what it says. It reports whether the chain
// ends with it.
func (x *exchange) turn(h *hop) (stop bool) {
	began := time.Now()
	deadline, overBudget := began.Add(h.sub.Timeout), false
	if x.deadline.Before(deadline) {
		deadline, overBudget = x.deadline, true
	}
	x.address(h, deadline)
	x.call.Budgeted = overBudget
	failure := x.consult(h, began).Of(&x.call)
	took := time.Since(began)
	x.backends += took
	switch {
	case failure.OK():
		shown := x.shown
		if x.whole() {
			shown = nil
		}
		before := x.state.Event
		stop = x.state.Fold(x.effects, shown)
		if !ahp.Same(before, x.state.Event) {
			x.projections = x.projections[:0]
		}
		switch {
		case x.state.Denied:
			x.verdict, x.by = verdictDeny, h
			x.step(h, audit.OutcomeDeny, failure, took)
		case len(x.effects) > 0:
			x.verdict = verdictChanged
			x.step(h, audit.OutcomeChanged, failure, took)
		default:
			x.step(h, audit.OutcomePass, failure, took)
		}
		x.steps[len(x.steps)-1].Effects = families(x.effects)
		return stop
	case h.sub.FailClosed:
		x.verdict, x.by = verdictFailClosed, h
		x.state.FailClosed(x.snap.failClosed)
		x.step(h, audit.OutcomeFailedClosed, failure, took)
		return true
	default:
		x.failedOpen = true
		x.step(h, audit.OutcomeFailedOpen, failure, took)
		return false
	}
}

// consult sends x.call and admits the answer into x.effects. The call's deadline
// covers all of it (AHP-FAIL-002).
func (x *exchange) consult(h *hop, now time.Time) (failure ahp.Failure) {
	if !now.Before(x.call.Deadline) {
		return ahp.Failure{Class: ahp.FailDeadline, Detail: "no time was left"}
	}
	defer func() {
		if r := recover(); r != nil {
			x.g.panicked("turn", r)
			failure = ahp.Failure{Class: ahp.FailInternal, Detail: "the gateway failed"}
		}
	}()
	if failure = x.state.Sendable(); !failure.OK() {
		return failure
	}
	span := x.g.startCall(x, h)
	x.resp.Reset()
	if failure = h.peer.breaker.Intercept(&x.call, &x.resp); failure.OK() {
		terms := x.state.Terms()
		x.effects, failure = decision.Admit(&terms, x.shown, &x.resp, x.effects[:0])
		if failure.OK() && !time.Now().Before(x.call.Deadline) {
			failure = ahp.Failure{Class: ahp.FailLate, Detail: "the answer was complete only after the deadline"}
		}
	}
	endCall(span, failure)
	return failure
}

// address makes x.call the request that h may see as the chain stands: the
// harness's own, byte for byte, but for what was accepted and what h may not see.
func (x *exchange) address(h *hop, deadline time.Time) {
	x.call = ahp.Call{ID: x.msg.ID, Version: x.msg.Version, Deadline: deadline,
		Traceparent: x.trace.parent, Tracestate: x.trace.state}
	x.shown = x.show(h)
	if x.msg.Version == ahp.Draft {
		x.capabilities = x.state.AppendCapabilities(x.capabilities[:0], x.msg.Capabilities.Raw)
		x.told = x.state.AppendState(x.told[:0])
		x.call.Body = x.msg.Compose(x.request[:0], x.shown, x.capabilities, x.told)
	} else {
		capabilities := x.msg.Capabilities.Raw
		if !x.msg.Capabilities.DenyOnly {
			capabilities = ahp.DenyAlone // effects of others' making cannot be composed (AHP-CAP-001)
		}
		x.call.Body = x.msg.Compose(x.request[:0], x.shown, capabilities, nil)
	}
	if !ahp.Same(x.call.Body, x.msg.Body) {
		x.request = x.call.Body
	}
}

// show returns the event as h may see it, which is worked out once for all that
// select the same.
func (x *exchange) show(h *hop) []byte {
	n := len(x.projections)
	for i := range x.projections {
		if x.projections[i].selection == h.selection {
			return x.projections[i].shown
		}
	}
	if n < cap(x.projections) {
		x.projections = x.projections[:n+1] // with the buffer of an earlier one
	} else {
		x.projections = append(x.projections, projection{})
	}
	p := &x.projections[n]
	p.selection, p.shown = h.selection, x.msg.Shown(p.buffer[:0], x.state.Event, h.view)
	if !ahp.Same(p.shown, x.state.Event) {
		p.buffer = p.shown
	}
	return p.shown
}

// whole reports whether the backend under way sees all of the event.
func (x *exchange) whole() bool { return ahp.Same(x.shown, x.state.Event) }

// families returns the families of the effects.
func families(effects []decision.Effect) (set ahp.EffectSet) {
	for i := range effects {
		set = set.With(effects[i].Type)
	}
	return set
}

// step records one turn.
func (x *exchange) step(h *hop, o audit.Outcome, f ahp.Failure, took time.Duration) {
	h.peer.stats.outcomes[o].Add(1)
	if !f.OK() {
		h.peer.failure(f.Class)
	}
	if o != audit.OutcomeNotCalled {
		x.g.latencies.backend.Record(context.Background(), took.Seconds(), h.peer.stats.duration...)
	}
	x.steps = append(x.steps, audit.Step{Backend: h.sub.BackendID, Subscription: h.sub.ID, Outcome: o,
		Class: f.Class, Detail: f.Detail, Duration: took})
}

// encode turns the settled state into the answer: the effects that bring the
// harness to it. A fail-closed failure is a deny with a generic reason, or, where
// the harness cannot enforce a deny, the error that makes it apply its own
// policy (AHP-FAIL-001). What no effects can say is answered with less.
func (x *exchange) encode() {
	a := x.state.Answer(x.said[:0])
	x.said, x.inexact = a.Effects, a.Inexact
	switch a.Code {
	case 0:
		x.answer = ahp.AppendResult(x.begin(), x.msg.ID, x.msg.Version, a.Effects...)
	case ahp.CodeUnavailable:
		x.fail(unavailable)
	default:
		x.fail(inexpressible)
	}
}

// fail makes a JSON-RPC error the answer.
func (x *exchange) fail(err *ahp.Error) {
	x.verdict, x.failure = verdictError, err
	x.answer = ahp.AppendError(x.begin(), x.msg.ID, err, x.party.supported...)
}

// begin empties the answer but for the note in front.
func (x *exchange) begin() []byte { return x.appendNote(x.answer[:0]) }

// settle tells the observers of the settled event, and in draft the
// interceptors that were not called any more, once for each content of it. In
// 0.1 what can be intercepted cannot be observed.
func (x *exchange) settle(doc *document) {
	observers := doc.of(x.msg.Event.Type).observe
	if x.msg.Version != ahp.Draft || len(observers)+len(x.uncalled) == 0 {
		return
	}
	if x.party.observed.Add(dedupe.KeyOf(x.msg.Event.Source, x.msg.Event.ID, x.fingerprint[:])) {
		body := x.msg.Compose(nil, x.state.Event, x.msg.Capabilities.Raw, nil)
		x.g.observe(body, x.msg.Version, x.trace, slices.Concat(observers, x.uncalled)...)
	}
}

// occurrence is the key under which it is remembered that an event has been
// told of: what a hooks/observe says later is no news.
func occurrence(m *ahp.Message) dedupe.Key {
	return dedupe.KeyOf(m.Version.String(), text(m.Event.Source), text(m.Event.ID), m.Event.Type.String())
}

// shadow sends h the request it would get if it counted, off the request path:
// its answer is recorded and never used, and its time is nobody's.
func (x *exchange) shadow(h *hop) {
	x.address(h, time.Time{})
	body := append([]byte(nil), x.call.Body...)
	id := append([]byte(nil), x.call.ID...)
	shown := append([]byte(nil), x.shown...)
	record := detach(x.record())
	g, p, call, terms := x.g, x.party, x.call, x.state.Terms()
	call.Traceparent, call.Tracestate = strings.Clone(call.Traceparent), strings.Clone(call.Tracestate)
	x.steps = append(x.steps, audit.Step{Backend: h.sub.BackendID, Subscription: h.sub.ID, Outcome: audit.OutcomeShadowed})
	h.peer.courier.send(parcel{size: len(body), deliver: func() bool {
		began := time.Now()
		call.Body, call.ID, call.Deadline = body, id, began.Add(h.sub.Timeout)
		var resp ahp.Response
		// Past the breaker: what a shadow does must not close the backend to
		// subscriptions that count.
		failure := h.peer.client.Intercept(&call, &resp)
		var effects []decision.Effect
		if failure.OK() {
			effects, failure = decision.Admit(&terms, shown, &resp, nil)
		}
		outcome := audit.OutcomeShadowPass
		switch {
		case !failure.OK():
			outcome = audit.OutcomeShadowFailed
			h.peer.failure(failure.Class)
		case slices.ContainsFunc(effects, func(e decision.Effect) bool { return e.Type == ahp.EffectDeny }):
			outcome = audit.OutcomeShadowDeny
		case len(effects) > 0:
			outcome = audit.OutcomeShadowChanged
		}
		h.peer.stats.outcomes[outcome].Add(1)
		if g.audit != nil {
			record.Shadow, record.Duration = true, time.Since(began)
			record.Steps = []audit.Step{{Backend: h.sub.BackendID, Subscription: h.sub.ID, Outcome: outcome, Effects: families(effects),
				Class: failure.Class, Detail: failure.Detail, Duration: record.Duration}}
			g.put(p, &record)
		}
		return failure.OK()
	}})
}
