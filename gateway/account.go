package gateway

import (
	"strings"
	"time"
	"unsafe"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/audit"
)

// verdict is how an exchange ended: what is counted and recorded of it.
type verdict uint8

const (
	verdictPass       verdict = iota
	verdictDeny               // a backend denied
	verdictFailClosed         // a failure denied
	verdictError              // a JSON-RPC error was answered
	verdictChanged            // no denial, but effects
)

// name returns the verdict as the audit record has it.
func (v verdict) name() audit.Verdict {
	switch v {
	case verdictPass:
		return audit.VerdictPass
	case verdictError:
		return audit.VerdictError
	case verdictChanged:
		return audit.VerdictChanged
	default:
		return audit.VerdictDeny
	}
}

// A note stands in front of every answer, so that it is remembered with it: the
// verdict, whether a failure was passed over, and the place in the chain of the
// hop that settled a denial. It holds for one generation of the configuration,
// as the answer does.
const noteSize = 4

func (x *exchange) appendNote(dst []byte) []byte {
	open := byte(0)
	if x.failedOpen {
		open = 1
	}
	return append(dst, byte(x.verdict), open, byte(x.place>>8), byte(x.place))
}

// readNote takes over what is noted of a remembered or shared answer.
func (x *exchange) readNote(doc *document) {
	x.verdict, x.failedOpen = verdict(x.answer[0]), x.answer[1] == 1
	switch x.verdict {
	case verdictError:
		x.failure = unavailable // the only error that a chain ends with
	case verdictDeny, verdictFailClosed:
		x.place = int(x.answer[2])<<8 | int(x.answer[3])
		x.by = doc.of(x.msg.Event.Type).intercept[x.place]
	}
}

// account counts, measures and records an answered intercept request.
func (g *Gateway) account(x *exchange) {
	took := time.Since(x.start)
	s := x.party.stats
	switch x.verdict {
	case verdictPass, verdictChanged:
		if x.verdict == verdictPass {
			s.pass.Add(1)
		} else {
			s.changed.Add(1)
		}
		if x.failedOpen {
			s.failOpen.Add(1)
		}
		g.measure(g.latencies.pass, took, x.backends)
	case verdictDeny:
		s.deny.Add(1)
		g.measure(g.latencies.deny, took, x.backends)
	case verdictFailClosed:
		s.failClosed.Add(1)
		g.measure(g.latencies.deny, took, x.backends)
	default:
		s.fault.Add(1)
		g.measure(g.latencies.fault, took, x.backends)
	}
	if x.inexact {
		s.inexact.Add(1)
	}
	if x.failure != nil {
		s.answered(x.failure.Code)
	}
	if g.audit == nil {
		return
	}
	r := x.record()
	r.Duration = took
	if x.span != nil {
		r.TraceID = x.span.SpanContext().TraceID().String()
	}
	g.put(x.party, &r)
}

// record describes the exchange. Its strings point into the request.
func (x *exchange) record() audit.Record {
	m := &x.msg
	r := audit.Record{
		Time: x.start, Tenant: x.party.id, Version: m.Version.String(), Method: m.Method.String(),
		EventID: text(m.Event.ID), Source: text(m.Event.Source), EventType: m.Event.Type.String(),
		SessionID: text(m.Event.SessionID), CallID: text(m.Event.CallID), Tool: text(m.Event.ToolName),
		Verdict: x.verdict.name(), Synthetic: x.verdict == verdictFailClosed, Steps: x.steps,
		Dedupe: dedupeNames[x.dedupe], Inexact: x.inexact, Generation: x.snap.generation,
	}
	if x.by != nil {
		r.DeniedBy, r.Subscription = x.by.sub.BackendID, x.by.sub.ID
	}
	switch {
	case x.failure != nil:
		r.ErrorCode = int32(x.failure.Code)
	case x.verdict == verdictFailClosed:
		r.Reason, r.Code = x.snap.file.FailClosed.Reason, x.snap.file.FailClosed.Code
	case x.verdict == verdictDeny:
		r.Reason, r.Code = denial(x.answer[noteSize:])
	}
	if x.snap.file.Audit.Inputs {
		r.Input = audit.RedactInput(nil, m.Event.Input)
	}
	return r
}

// denial reads the first deny of an answer of ours.
func denial(answer []byte) (reason, code string) {
	for effect := range ahp.Elements(ahp.Member(ahp.Member(answer, "result"), "effects")) {
		if string(ahp.Text(ahp.Member(effect, "type"))) == "deny" {
			return text(ahp.Text(ahp.Member(effect, "reason"))), text(ahp.Text(ahp.Member(effect, "code")))
		}
	}
	return "", ""
}

// text views b as a string without copying. The string dies with the request.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// detach returns r with nothing in it that points into a request.
func detach(r audit.Record) audit.Record {
	for _, s := range [...]*string{&r.EventID, &r.Source, &r.SessionID, &r.CallID, &r.Tool, &r.Reason, &r.Code} {
		*s = strings.Clone(*s)
	}
	r.Steps = nil
	return r
}
