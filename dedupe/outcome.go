package dedupe

// Outcome is what Begin found. The zero value is Miss.
type Outcome uint8

// The outcomes. Their names on metrics and audit records are those of String.
const (
	// Miss: nobody has asked yet. The caller leads: it evaluates and calls
	// Flight.Finish.
	Miss Outcome = iota
	// Hit: the answer was remembered.
	Hit
	// Joined: the answer is that of an evaluation that was already in flight.
	Joined
	// Conflict: the key is known, or in flight, with another fingerprint. The
	// caller evaluates on its own; nothing is remembered or overwritten.
	Conflict
	// TimedOut: an evaluation was in flight and did not end by the deadline.
	TimedOut
	// Abandoned: an evaluation was in flight and ended without an answer. The
	// caller evaluates on its own or answers that it cannot.
	Abandoned
)

// String returns the outcome's stable name, or "unknown".
func (o Outcome) String() string {
	switch o {
	case Miss:
		return "miss"
	case Hit:
		return "hit"
	case Joined:
		return "joined"
	case Conflict:
		return "conflict"
	case TimedOut:
		return "timed_out"
	case Abandoned:
		return "abandoned"
	default:
		return "unknown"
	}
}
