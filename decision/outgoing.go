package decision

import (
	"strconv"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// Terms returns what the next backend is to be told that it can return: the
// harness's terms with the continuations that are left.
func (s *State) Terms() Terms {
	t := *s.terms
	t.Remaining = s.remaining
	return t
}

// Sendable reports, as a failure, why the event as it stands cannot be sent to
// any backend any more, as a harness would not send it either: an accepted
// modification has moved a message or a part that had another place. Every turn
// that is left fails with it, each under its own failure policy.
func (s *State) Sendable() ahp.Failure {
	if !s.owned() || !carries(s.terms.Event) {
		return ahp.Failure{}
	}
	start, end, ok := find(s.Event, s.terms.Event.Bounds().Path)
	if !ok || !s.lineage.keeps(s.Event[start:end]) {
		return conflict("an accepted modification moved content that had its place")
	}
	return ahp.Failure{}
}

// AppendState appends to dst the params.state that the next backend is shown:
// the harness's own until a response was accepted, and nothing where it had
// none; then where the chain has come to.
func (s *State) AppendState(dst []byte) []byte {
	in := s.inherited
	if !s.accepted {
		return append(dst, in.raw...)
	}
	dst = append(dst, `{"permission":"`...)
	dst = append(dst, permissions[s.permission]...)
	dst = append(dst, `","candidate":`...)
	switch s.candidate {
	case candidateNone:
		dst = append(dst, `null`...)
	case candidateInherited:
		dst = append(dst, in.candidate...)
	default:
		dst = append(dst, `{"value":`...)
		dst = append(dst, s.Effects[s.candidate-1].Value...)
		dst = append(dst, '}')
	}
	if s.flow != flowNone || in.told {
		dst = append(dst, `,"flow":"`...)
		dst = append(dst, flows[s.flow]...)
		dst = append(dst, '"')
	}
	first := true
	list := func(name string, element []byte) {
		if first {
			dst = append(dst, `,"`...)
			dst = append(dst, name...)
			dst = append(dst, `":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, element...)
		first = false
	}
	for e := range ahp.Elements(in.instructions) {
		list("instructions", e)
	}
	for i := range s.Effects {
		if e := &s.Effects[i]; e.instructs() {
			list("instructions", e.Value)
		}
	}
	switch {
	case !first:
		dst = append(dst, ']')
	case in.instructions != nil || s.flow != flowNone && s.terms.Budgeted:
		dst = append(dst, `,"instructions":[]`...)
	}
	first = true
	for e := range ahp.Elements(in.injections) {
		list("injections", e)
	}
	for i := range s.Effects {
		if e := &s.Effects[i]; e.Type == ahp.EffectInject {
			list("injections", e.Raw)
		}
	}
	if !first {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// AppendCapabilities appends to dst the harness's raw params.capabilities with
// the continuations that are left: byte for byte the same where there is no
// budget or nothing of it was spent.
func (s *State) AppendCapabilities(dst, raw []byte) []byte {
	flow := ahp.Member(raw, "flow")
	if s.terms == nil || !s.accepted || !s.terms.Budgeted || flow == nil {
		return append(dst, raw...)
	}
	start, end := part(raw, flow)
	left := strconv.AppendInt(nil, s.remaining, 10)
	told := ahp.Member(flow, "remainingContinuations")
	switch {
	case told == nil:
		return splice(dst, raw, start, end, appendMember(nil, flow, "remainingContinuations", left))
	case s.remaining == s.terms.Remaining:
		return append(dst, raw...)
	}
	start, end = part(raw, told)
	return splice(dst, raw, start, end, left)
}
