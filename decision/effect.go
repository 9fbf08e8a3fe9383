package decision

import "github.com/ahp-gateway/ahp-gateway/ahp"

// Operation is what a modify or flow effect does. The zero value is that of
// all other effects.
type Operation uint8

// The operations of modify and of flow.
const (
	Replace Operation = iota + 1
	Merge
	Stop
	Continue
)

// Effect is one admitted effect. Raw is its JSON as the backend wrote it. All
// slices point into the response, except for texts that were written with
// escapes.
type Effect struct {
	Type      ahp.EffectType
	Operation Operation
	Raw       []byte
	// Reason and Code of a deny, and the reason of a stop, are text without
	// quotes and escapes, nil where the member is absent.
	Reason []byte
	Code   []byte
	// Value is the raw value of a modify or a return, or the raw instruction of
	// a continue, nil where it has none.
	Value []byte
}

// part returns where inner, which was found in raw by ahp.Members or
// ahp.Elements, lies in it.
func part(raw, inner []byte) (start, end int) {
	start = cap(raw) - cap(inner)
	return start, start + len(inner)
}

// instructs reports whether e is a continue with an instruction.
func (e *Effect) instructs() bool { return e.Operation == Continue && e.Value != nil }

// moved returns e with its raw JSON in to, a copy of e.Raw. Reason and Code are
// those of effects that end a chain and stay behind.
func (e *Effect) moved(to []byte) Effect {
	m := Effect{Type: e.Type, Operation: e.Operation, Raw: to}
	if e.Value != nil {
		start, end := part(e.Raw, e.Value)
		m.Value = to[start:end]
	}
	return m
}
