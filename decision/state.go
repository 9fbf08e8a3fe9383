package decision

import (
	"bytes"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// State is what a chain has settled so far, and where it began. The zero value
// is that of a chain of which nothing is known but that nothing has objected to
// it, which is no grant (AHP-DEC-003). A State is not safe for concurrent use.
type State struct {
	// Denied and Stopped say that the chain is over: nothing that comes later
	// lifts either (AHP-COMP-001, AHP-DEC-002).
	Denied, Stopped bool
	// Event is the raw event as it stands: the one that Start was given, byte
	// for byte but for what accepted effects have modified. It is valid until
	// the next Fold, Start or Reset.
	Event []byte
	// Effects are the accepted effects in the order they were accepted.
	Effects []Effect
	// Shown is to be set, after Start, to what of its content the harness was
	// asked to show. Where it may hold more than the event shows, a replacement
	// counts as a change even where what it puts there is what is shown. The
	// zero value stands for all of it.
	Shown ahp.ContentSelection

	terms     *Terms
	origin    []byte // the event that Start was given
	inherited inherited
	accepted  bool // a response was

	permission permission
	candidate  int // candidateInherited, or the count of Effects that it ends
	flow       flow
	remaining  int64
	continued  int    // 0, or the count of Effects that a continue ends
	replaced   bool   // a modification replaced the target
	blind      bool   // something that is not shown was replaced
	doubtful   bool   // and that may have voided a candidate, or not
	unfolded   []byte // the deny that a failure stands for, or nil

	lineage lineage
	buffer  []byte // holds what Effects point to
	spare   []byte // holds the event after the next modification
}

// inherited is what a chain begins with: the request's params.state.
type inherited struct {
	raw          []byte
	permission   permission
	candidate    []byte // raw, or nil
	flow         flow
	told         bool // of a flow, also where it is none
	instructions []byte
	injections   []byte
}

type permission uint8

const (
	permissionNone permission = iota
	permissionAllow
	permissionAsk
	permissionDeny
)

var permissions = [...]string{"none", "allow", "ask", "deny"}

type flow uint8

const (
	flowNone flow = iota
	flowContinue
	flowStop
)

var flows = [...]string{"none", "continue", "stop"}

// What State.candidate is where no effect has supplied it.
const (
	candidateNone      = 0
	candidateInherited = -1
)

// Start makes s the state of a chain that begins: with these terms, which are
// those of the harness and must not change while s is used, with its raw event
// and with its raw params.state, or nil where it sent none. Both are kept until
// the next Start or Reset and never changed.
func (s *State) Start(terms *Terms, event, state []byte) {
	s.Reset()
	s.terms, s.origin, s.Event = terms, event, event
	s.remaining = terms.Remaining
	if terms.Version != ahp.Draft || state == nil {
		return
	}
	in := inherited{raw: state}
	for name, value := range ahp.Members(state) {
		switch string(name) {
		case "permission":
			for p, text := range permissions {
				if text == string(ahp.Text(value)) {
					in.permission = permission(p)
				}
			}
		case "candidate":
			if ahp.KindOf(value) == ahp.KindObject {
				in.candidate = value
				s.candidate = candidateInherited
			}
		case "flow":
			in.told = true
			for f, text := range flows {
				if text == string(ahp.Text(value)) {
					in.flow = flow(f)
				}
			}
		case "instructions":
			in.instructions = value
		case "injections":
			in.injections = value
		}
	}
	s.inherited, s.permission, s.flow = in, in.permission, in.flow
	s.Denied, s.Stopped = in.permission == permissionDeny, in.flow == flowStop
}

// Reset empties the state and keeps its buffers for reuse, unless one large
// message has grown them.
func (s *State) Reset() {
	if s.owned() {
		s.spare = s.Event
	}
	clear(s.Effects)
	effects, buffer, spare := s.Effects[:0], kept(s.buffer), kept(s.spare)
	if cap(effects) > keptEffects {
		effects = nil
	}
	*s = State{}
	s.Effects, s.buffer, s.spare = effects, buffer, spare
}

// The largest buffers that Reset keeps, in bytes and in effects.
const (
	keptBytes   = 64 << 10
	keptEffects = 64
)

func kept(b []byte) []byte {
	if cap(b) > keptBytes {
		return nil
	}
	return b[:0]
}

// Fold takes one backend's admitted effects into the state and reports whether
// the chain stops there. shown is the raw event as the backend saw it, or nil
// where that was all of s.Event: edits are made to what the harness has, but
// what is a change is also what was one to the backend.
//
// Where the chain goes on, Fold copies what it keeps. The effects of the
// response that stops it must stay valid until Answer has returned.
func (s *State) Fold(effects []Effect, shown []byte) (stop bool) {
	s.accepted = true
	if len(effects) == 0 {
		return s.Denied || s.Stopped
	}
	first, modifies := len(s.Effects), false
	s.Effects = append(s.Effects, effects...)
	for i := range effects {
		e := &effects[i]
		s.Denied = s.Denied || e.Type == ahp.EffectDeny
		s.Stopped = s.Stopped || e.Operation == Stop
		modifies = modifies || e.Type == ahp.EffectModify
	}
	stop = s.Denied || s.Stopped
	if s.terms == nil || s.terms.Version != ahp.Draft {
		return stop
	}
	if !stop {
		s.keep(s.Effects[first:])
	}
	if modifies {
		changed, blind := s.modify(s.Effects[first:], shown)
		s.doubtful = !changed && (s.doubtful || blind && s.candidate > 0)
		if changed || blind {
			s.candidate = candidateNone
			if s.permission == permissionAllow {
				s.permission = permissionNone
			}
		}
	}
	s.settle(first)
	return stop
}

// keep copies the effects' bytes.
func (s *State) keep(effects []Effect) {
	for i := range effects {
		start := len(s.buffer)
		s.buffer = append(s.buffer, effects[i].Raw...)
		effects[i] = effects[i].moved(s.buffer[start:len(s.buffer):len(s.buffer)])
	}
}

// settle applies everything but modifications, in order.
func (s *State) settle(first int) {
	continues := false
	for i := first; i < len(s.Effects); i++ {
		switch e := &s.Effects[i]; e.Type {
		case ahp.EffectAsk:
			s.permission = permissionAsk
		case ahp.EffectAllow:
			if s.permission != permissionAsk {
				s.permission = permissionAllow
			}
		case ahp.EffectReturn:
			s.candidate, s.doubtful = i+1, false
		case ahp.EffectFlow:
			if e.Operation == Continue {
				continues, s.continued = true, i+1
			}
			if s.flow != flowStop {
				if s.flow = flowContinue; e.Operation == Stop {
					s.flow = flowStop
				}
			}
		}
	}
	// However many continues a response holds, they are one step.
	if continues && s.flow == flowContinue {
		s.remaining--
	}
}

// modify applies the modifications among effects to the event, in order, and
// reports whether they have changed it, or may have changed what it does not show.
func (s *State) modify(effects []Effect, shown []byte) (changed, blind bool) {
	start, end, ok := find(s.Event, s.terms.Event.Bounds().Path)
	if !ok {
		return false, false
	}
	if s.terms.Event == ahp.UserElicitationResult {
		return s.edit(effects, start, end), false
	}
	before := s.Event[start:end]
	seen := before
	if shown != nil {
		if from, to, ok := find(shown, s.terms.Event.Bounds().Path); ok {
			seen = shown[from:to]
		}
	}
	s.lineage.learn(s.terms.Event, before)
	var now target
	now.compose(effects)
	after := now.of(before)
	blind = now.base != nil && anyPart(before, s.Shown.MayHide)
	s.replaced, s.blind = s.replaced || now.base != nil, s.blind || blind
	changed = !equal(before, after) || !bytes.Equal(seen, before) && !equal(seen, now.of(seen))
	s.replace(start, end, after)
	return changed, blind
}

// edit applies edits of an elicitation's result, which lies in the text part at
// start. The snapshot counts every such edit as a change.
func (s *State) edit(effects []Effect, start, end int) (changed bool) {
	item := s.Event[start:end]
	result := inlined(item)
	for i := range effects {
		e := &effects[i]
		if e.Type != ahp.EffectModify {
			continue
		}
		edited, ok := edit(result, e)
		if !ok {
			return changed
		}
		result, changed = edited, true
		s.replaced = s.replaced || e.Operation == Replace
	}
	from, to := part(s.Event, ahp.Member(item, "text"))
	s.replace(from, to, appendQuoted(nil, compact(result)))
	return changed
}

// replace puts a value in the place of s.Event[start:end].
func (s *State) replace(start, end int, with []byte) {
	next := splice(s.spare[:0], s.Event, start, end, with)
	if s.spare = nil; s.owned() {
		s.spare = s.Event
	}
	s.Event = next
}

// owned reports whether s.Event lies in a buffer of the state's own.
func (s *State) owned() bool {
	return len(s.Event) > 0 && &s.Event[0] != &s.origin[0]
}

// FailClosed ends the chain with a deny for a backend whose failure must not
// let the operation pass. deny is the raw effect; what was accepted before
// stays accepted (AHP-FAIL-001).
func (s *State) FailClosed(deny []byte) {
	s.Denied, s.unfolded = true, deny
}
