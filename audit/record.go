package audit

import (
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// Bounds of one record. With them a line is at most about 1.6 KiB for each
// string and step of it, however hostile the caller.
const (
	// MaxString is how many bytes of any one string are written. A longer
	// string is cut on a rune boundary and its member is listed in "truncated".
	MaxString = 256
	// MaxSteps is how many steps are written; "steps_omitted" counts the rest.
	MaxSteps = 128
	// MaxInput is how many bytes of Input are written.
	MaxInput = 4096
)

// Record is what is known of one decision, or with Change set of one change of
// a tenant. Strings may be longer than what is
// written and may hold any bytes. Members that are zero are not written, except
// Time and Verdict.
type Record struct {
	// Time is when the message was accepted; written in UTC.
	Time time.Time
	// Tenant is the tenant's configured id.
	Tenant string
	// Version is the snapshot of the message, Method its JSON-RPC method.
	Version, Method string
	// EventID, Source, EventType, SessionID, CallID and Tool are the caller's own words.
	EventID, Source, EventType, SessionID, CallID, Tool string
	// Verdict is what the harness was answered.
	Verdict Verdict
	// Synthetic tells the gateway's own denial after a fail-closed failure
	// from a denial that a backend decided (AHP-FAIL-001).
	Synthetic bool
	// Code and Reason are those of the denial.
	Code, Reason string
	// ErrorCode is the JSON-RPC error code that was answered, 0 for none.
	ErrorCode int32
	// DeniedBy and Subscription are the backend and subscription that settled
	// a denial, explicit or synthetic.
	DeniedBy, Subscription string
	// Steps are the turns of the chain, in order.
	Steps []Step
	// Dedupe is how the event-id cache took part.
	Dedupe Dedupe
	// Shadow is true for the record of what a shadow subscription answered. It
	// stands beside the record of the decision, which it did not change, and is
	// written without a verdict.
	Shadow bool
	// Inexact is true where the answer permits less than the chain decided,
	// because no answer could say exactly that.
	Inexact bool
	// Generation is the number of the configuration snapshot that decided.
	Generation uint64
	// Duration is from acceptance to the settled decision; written in whole
	// microseconds.
	Duration time.Duration
	// TraceID is the W3C trace id in hexadecimal, if the request was traced.
	TraceID string
	// Input is the tool input as RedactInput returns it. Anything that is not
	// one line of JSON of at most MaxInput bytes is written as a string.
	Input []byte
	// Change is set in the record of a change that the admin API was asked for.
	// Of the other members such a record has Time, Tenant, Generation and
	// Duration, and no verdict.
	Change *Change
}

// Change is what the admin API was asked to do to a tenant.
type Change struct {
	// By is the start of the digest of the key that asked, or the name of the
	// client certificate with its kind, such as email:ops@example.com, or "" where
	// there was no good one.
	By string
	// Action is the API's name for it.
	Action string
	// Secret is the name of the stored secret that it is about, or "".
	Secret string
	// Before and After are the digests of the tenant's document, "" where there
	// was none or nothing was changed.
	Before, After string
	// Status is the HTTP status of the answer.
	Status int
}

// Outcome returns the stable name of what came of the change: "done",
// "refused", or "failed" for a fault of the gateway's own.
func (c *Change) Outcome() string {
	switch {
	case c.Status < 400:
		return "done"
	case c.Status < 500:
		return "refused"
	default:
		return "failed"
	}
}

// Step is one backend's turn in a chain.
type Step struct {
	// Backend and Subscription are the configured ids.
	Backend, Subscription string
	Outcome               Outcome
	// Effects are the families of the effects that were accepted.
	Effects ahp.EffectSet
	// Class and Detail are those of the operational failure, if there was one.
	Class  ahp.FailureClass
	Detail string
	// Duration is the whole turn; written in whole microseconds.
	Duration time.Duration
}

// Verdict is what a harness was answered. The zero value is written as "unknown".
type Verdict uint8

// The verdicts.
const (
	VerdictPass    Verdict = iota + 1 // no objection
	VerdictDeny                       // denied, by a backend or because one failed closed
	VerdictError                      // a JSON-RPC error
	VerdictChanged                    // effects other than a denial
)

// String returns the verdict's stable name in records and metric labels.
func (v Verdict) String() string {
	switch v {
	case VerdictPass:
		return "pass"
	case VerdictDeny:
		return "deny"
	case VerdictError:
		return "error"
	case VerdictChanged:
		return "changed"
	default:
		return "unknown"
	}
}

// Outcome is how one backend's turn ended. The zero value is written as "unknown".
type Outcome uint8

// The outcomes.
const (
	OutcomePass          Outcome = iota + 1 // no objection
	OutcomeDeny                             // an accepted deny
	OutcomeFailedOpen                       // an operational failure, passed over
	OutcomeFailedClosed                     // an operational failure that stopped the chain
	OutcomeShadowed                         // shadow mode: called off the request path; a record with Shadow follows
	OutcomeShadowPass                       // shadow mode: would have passed
	OutcomeShadowDeny                       // shadow mode: would have denied
	OutcomeShadowFailed                     // shadow mode: an operational failure
	OutcomeChanged                          // accepted effects other than a deny
	OutcomeShadowChanged                    // shadow mode: would have had such effects
	OutcomeNotCalled                        // the chain had stopped before its turn
)

// String returns the outcome's stable name in records and metric labels.
func (o Outcome) String() string {
	switch o {
	case OutcomePass:
		return "pass"
	case OutcomeDeny:
		return "deny"
	case OutcomeFailedOpen:
		return "failed_open"
	case OutcomeFailedClosed:
		return "failed_closed"
	case OutcomeShadowed:
		return "shadowed"
	case OutcomeShadowPass:
		return "shadow_pass"
	case OutcomeShadowDeny:
		return "shadow_deny"
	case OutcomeShadowFailed:
		return "shadow_failed"
	case OutcomeChanged:
		return "changed"
	case OutcomeShadowChanged:
		return "shadow_changed"
	case OutcomeNotCalled:
		return "not_called"
	default:
		return "unknown"
	}
}

// Dedupe is how the event-id cache took part in a decision. The zero value is
// that of a message that never reached it and is not written.
type Dedupe uint8

// The ways the event-id cache takes part.
const (
	DedupeMiss     Dedupe = iota + 1 // evaluated for this message
	DedupeHit                        // answered from memory
	DedupeJoined                     // shared an evaluation in flight
	DedupeConflict                   // same event id, other content: evaluated on its own
)

// String returns the stable name in records and metric labels, or "" for the
// zero value.
func (d Dedupe) String() string {
	switch d {
	case DedupeMiss:
		return "miss"
	case DedupeHit:
		return "hit"
	case DedupeJoined:
		return "joined"
	case DedupeConflict:
		return "conflict"
	default:
		return ""
	}
}
