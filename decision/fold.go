package decision

import "github.com/ahp-gateway/ahp-gateway/ahp"

// State is what a chain has settled so far. The zero value is that of a chain
// that nothing has objected to, which is no grant (AHP-DEC-003).
type State struct {
	// Effects are the accepted effects, in the order they were accepted: the
	// answer to the harness.
	Effects []Effect
	// Denied is true once a deny was accepted.
	Denied bool
}

// Fold takes one backend's admitted effects into the state and reports whether
// the chain stops there. A deny stops it and nothing after it counts
// (AHP-COMP-001, AHP-DEC-002).
func (s *State) Fold(effects []Effect) (stop bool) {
	s.Effects = append(s.Effects, effects...)
	for _, e := range effects {
		s.Denied = s.Denied || e.Type == ahp.EffectDeny
	}
	return s.Denied
}

// Reset empties the state and keeps its buffer.
func (s *State) Reset() { s.Effects, s.Denied = s.Effects[:0], false }
