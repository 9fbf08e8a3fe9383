package breaker

import "github.com/sony/gobreaker/v2"

// State is what a Breaker does with the next call. The zero value is Closed.
type State uint8

// The states. Their names on metrics are those of String.
const (
	Closed   State = iota // calls go through
	HalfOpen              // a few calls go through as probes
	Open                  // no call goes through
)

// String returns "closed", "half_open", "open", or "unknown".
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case HalfOpen:
		return "half_open"
	case Open:
		return "open"
	default:
		return "unknown"
	}
}

// stateOf translates the library's state. One that it may grow later reads as
// Open, the state that claims least.
func stateOf(s gobreaker.State) State {
	switch s {
	case gobreaker.StateClosed:
		return Closed
	case gobreaker.StateHalfOpen:
		return HalfOpen
	default:
		return Open
	}
}
