package decision

import "github.com/ahp-gateway/ahp-gateway/ahp"

// Answer is what a harness is told of a chain.
type Answer struct {
	// Effects are raw, in an order that the harness accepts. They point into
	// the state.
	Effects [][]byte
	// Inexact is true where no effects bring the harness to the state that the
	// chain has settled: what is answered permits less.
	Inexact bool
	// Code is not zero where the harness is to be answered with that JSON-RPC
	// error instead, because it accepts no effects that permit little enough.
	Code ahp.Code
}

// restrained are the effects that stand for a state that cannot be said.
var (
	askEffect  = []byte(`{"type":"ask"}`)
	denyEffect = ahp.AppendDeny(nil, "What policy decided on cannot be carried out here.", "io.ahp-gateway.inexact")
)

// Answer returns the shortest effects that bring the harness from its own event
// and state to the settled ones, by operations that it advertised. What it
// appends to dst is valid as long as the effects that were folded are.
//
// A state that no effects can say is answered with the nearest that permits
// less: an ask or a deny in place of an allow that was taken back, a deny in
// place of a candidate that was, or of which only the harness knows whether it was.
func (s *State) Answer(dst [][]byte) Answer {
	a := Answer{Effects: dst}
	if s.terms == nil || s.terms.Version != ahp.Draft {
		for i := range s.Effects {
			a.Effects = append(a.Effects, s.Effects[i].Raw)
		}
		return s.denied(a, dst)
	}
	changed := s.sayModification(&a)
	for i := range s.Effects {
		if e := &s.Effects[i]; e.Type == ahp.EffectMessage || e.Type == ahp.EffectInject {
			a.Effects = append(a.Effects, e.Raw)
		}
	}
	lost := s.sayCandidate(&a, changed)
	lost = s.sayPermission(&a, changed, lost)
	s.sayFlow(&a)
	if s.Denied {
		return s.denied(a, dst)
	}
	if lost == nothing {
		return a
	}
	a.Inexact = true
	switch {
	case s.Stopped: // nothing that was lost can pass
	case lost == allow && s.terms.Effects.Has(ahp.EffectAsk):
		a.Effects = append(a.Effects, askEffect)
	case s.CanDeny():
		a.Effects = append(a.Effects, denyEffect)
	default:
		a.Effects, a.Code = dst, ahp.CodeBackendInternal
	}
	return a
}

// loss is what a harness keeps though the chain has taken it back.
type loss uint8

const (
	nothing loss = iota
	allow
	candidate
)

// CanDeny reports whether the harness accepts a deny in its answer.
func (s *State) CanDeny() bool {
	if s.terms == nil || !s.terms.Effects.Has(ahp.EffectDeny) {
		return s.terms == nil
	}
	if s.terms.Version != ahp.Draft || s.terms.Event != ahp.UserElicitationRequest {
		return true
	}
	_, ok := s.terms.answerable(s.origin)
	return ok
}

// denied adds the deny that ended the chain to what was said before, which
// began with dst.
func (s *State) denied(a Answer, dst [][]byte) Answer {
	if s.unfolded != nil {
		if !s.CanDeny() {
			return Answer{Effects: dst, Code: ahp.CodeUnavailable}
		}
		a.Effects = append(a.Effects, s.unfolded)
		return a
	}
	if s.terms == nil || s.terms.Version != ahp.Draft {
		return a
	}
	for i := range s.Effects {
		if e := &s.Effects[i]; e.Type == ahp.EffectDeny {
			a.Effects = append(a.Effects, e.Raw)
			break
		}
	}
	return a
}

// sayModification adds the one modification that makes the harness's event what
// it is now, and reports whether it changes it. A replacement says everything
// that the event shows; merges alone leave what it does not show as it is, so
// they stay a merge.
func (s *State) sayModification(a *Answer) (changed bool) {
	if !s.owned() {
		return false
	}
	path := s.terms.Event.Bounds().Path
	start, end, _ := find(s.origin, path)
	from, to, _ := find(s.Event, path)
	before, after := s.origin[start:end], s.Event[from:to]
	var only []byte
	var merges [][]byte
	for i := range s.Effects {
		if e := &s.Effects[i]; e.Type == ahp.EffectModify {
			only, merges = e.Raw, append(merges, e.Value)
		}
	}
	elicitation := s.terms.Event == ahp.UserElicitationResult
	changed = s.blind || !equal(before, after)
	if elicitation && (s.inherited.candidate != nil || s.inherited.permission == permissionAllow) {
		changed = true // as every edit of an answer is
	}
	switch {
	case !changed && !(s.replaced && ahp.KindOf(before) == ahp.KindArray && hides(before)):
	case len(merges) == 1:
		a.Effects = append(a.Effects, only)
	case s.replaced && elicitation:
		a.Effects = append(a.Effects, s.modification("replace", ahp.Member(inlined(after), "content")))
	case s.replaced:
		a.Effects = append(a.Effects, s.modification("replace", after))
	default:
		a.Effects = append(a.Effects, s.modification("merge", merge(merges)))
	}
	return changed
}

// modification returns a modify effect on the event's target.
func (s *State) modification(operation string, value []byte) []byte {
	raw := append([]byte(`{"type":"modify","target":"`), s.terms.Event.Bounds().Target...)
	raw = append(raw, `","operation":"`...)
	raw = append(raw, operation...)
	raw = append(raw, `","value":`...)
	raw = append(raw, value...)
	return append(raw, '}')
}

// sayCandidate adds the return that supplies the settled candidate.
func (s *State) sayCandidate(a *Answer, changed bool) loss {
	switch {
	case s.candidate > 0 && s.Denied && s.terms.Event == ahp.UserElicitationRequest:
		// A question is settled once. A denied one has no answer to pass.
		a.Inexact = true
	case s.candidate > 0:
		a.Effects = append(a.Effects, s.Effects[s.candidate-1].Raw)
	case s.candidate == candidateNone && (s.doubtful && !s.Denied || s.inherited.candidate != nil && !changed):
		a.Inexact = true
		return candidate
	}
	return nothing
}

// sayPermission adds the settled permission unless the harness has it already.
func (s *State) sayPermission(a *Answer, changed bool, lost loss) loss {
	has := s.inherited.permission
	if has == permissionAllow && changed {
		has = permissionNone
	}
	switch {
	case s.Denied || s.permission == has:
	case s.permission == permissionNone:
		a.Inexact = true
		if lost == nothing {
			return allow
		}
	default:
		said := ahp.EffectAllow
		if s.permission == permissionAsk {
			said = ahp.EffectAsk
		}
		for i := range s.Effects {
			if e := &s.Effects[i]; e.Type == said {
				a.Effects = append(a.Effects, e.Raw)
				break
			}
		}
	}
	return lost
}

// sayFlow adds the continues with their instructions, one without if there are
// none, and the stop.
func (s *State) sayFlow(a *Answer) {
	said := false
	for i := range s.Effects {
		if e := &s.Effects[i]; e.instructs() {
			a.Effects = append(a.Effects, e.Raw)
			said = true
		}
	}
	if s.continued > 0 && !said && s.flow == flowContinue {
		a.Effects = append(a.Effects, s.Effects[s.continued-1].Raw)
	}
	for i := range s.Effects {
		if e := &s.Effects[i]; e.Operation == Stop {
			a.Effects = append(a.Effects, e.Raw)
			break
		}
	}
}
