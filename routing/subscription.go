package routing

import (
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// Mode is how a subscription is called. The zero value is no mode.
type Mode uint8

// The subscription modes.
const (
	Intercept Mode = iota + 1 // asked for a decision, in turn
	Observe                   // told once the decision is settled

	modeCount
)

// String returns the mode's name in a registration document, or "unknown".
func (m Mode) String() string {
	switch m {
	case Intercept:
		return "intercept"
	case Observe:
		return "observe"
	default:
		return "unknown"
	}
}

// Subscription is one entry of one backend's subscriptions, with the backend
// that answers for it. A Table hands out shared pointers to subscriptions, so
// nothing reachable from one is changed once the Table exists.
type Subscription struct {
	// BackendID is the reverse-DNS id of the hook.
	BackendID string
	// ID is the subscription's local name, or "". It never goes on the wire.
	ID string
	// Hook and Index are the position in the document: the hook's index in
	// hooks, then the subscription's index in that hook.
	Hook, Index int
	// Mode is how the subscription is called.
	Mode Mode
	// Selectors are exact event names and, in draft, "family.*" and "*".
	Selectors []string
	// Timeout bounds one intercept call. It is zero for an observe subscription.
	Timeout time.Duration
	// FailClosed is the effective failure policy: true denies the event when
	// the call fails, false goes on unchanged.
	FailClosed bool
	// Managed is true where scope is managed or disableable is false.
	Managed bool
	// IncludeNative lets the backend see the event's native member.
	IncludeNative bool
	// Shadow calls and records the backend but never uses its answer.
	Shadow bool
	// Content is how much of an event's content the backend may see.
	Content ahp.ContentSelection
	// Backend answers the calls. It may be nil in a table that is only asked
	// which subscriptions match and how long they take.
	Backend ahp.Backend
}
