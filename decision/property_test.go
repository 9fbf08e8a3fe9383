package decision

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

var (
	cases = flag.Int("cases", manyChains, "chains that TestDirectIsComposed makes up")
	seed  = flag.Uint64("seed", 1, "the seed of TestDirectIsComposed")
)

// TestDirectIsComposed holds chains against a harness with the same backends
// registered directly, turn by turn, and then the one composed answer against
// it: invariant 3 of the gateway.
func TestDirectIsComposed(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // nothing here lives long
	var next, failures atomic.Int64
	var group sync.WaitGroup
	var mu sync.Mutex
	count := tally{}
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			var state State
			mine := tally{}
			for i := next.Add(1); i <= int64(*cases) && failures.Load() < 3; i = next.Add(1) {
				r := source{rand.New(rand.NewPCG(*seed, uint64(i)))}
				s := r.scenario()
				if err := s.check(r, &state, mine); err != nil {
					failures.Add(1)
					t.Errorf("case %d: %v\nevent %s\nquestion %s\ncapabilities %s\nstate %s\nturns %s", i, err,
						encoded(s.event), encoded(s.asked), encoded(s.caps), encoded(s.state), encoded(s.script()))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for what, n := range mine {
				count[what] += n
			}
		})
	}
	group.Wait()
	t.Logf("%d chains: %v", *cases, count)
	// What is never put to the test is not shown.
	for _, what := range []string{"accepted", "refused", "modified", "candidate", "ask", "denied", "failed closed", "stopped", "continued", "inexact", "error", "hidden"} {
		if count[what] == 0 {
			t.Errorf("no chain was %s; want some", what)
		}
	}
}

// tally counts what the scenarios came to.
type tally map[string]int

func (s *scenario) script() (turns []any) {
	for _, t := range s.turns {
		turns = append(turns, dict{"effects": t.effects, "hide": t.hide, "closed": t.closed})
	}
	return turns
}

var failClosed = ahp.AppendDeny(nil, "Required policy backend unavailable.", "")

// check runs the scenario both ways.
func (s *scenario) check(r source, state *State, count tally) error {
	direct := newHarness(s.event, s.caps, s.state, s.asked)
	event, caps := r.written(s.event), r.written(s.caps)
	kind, ok := ahp.LookupEvent(ahp.Draft, direct.kind())
	if !ok {
		return errors.New("no such event")
	}
	terms := ParseTerms(ahp.Draft, kind, caps)
	if s.asked != nil {
		terms.Asked = r.written(s.asked)
	}
	var given []byte
	if s.state != nil {
		given = r.written(s.state)
	}
	state.Start(&terms, event, given)
	closed := false
	for i, turn := range s.turns {
		if direct.halted() != (state.Denied || state.Stopped) {
			return fmt.Errorf("before turn %d: denied %t, stopped %t; want halted %t", i, state.Denied, state.Stopped, direct.halted())
		}
		if direct.halted() {
			break
		}
		if err := told(state, caps, given, direct); err != nil {
			return fmt.Errorf("before turn %d: %w", i, err)
		}
		before := direct.event
		view, shown := before, []byte(nil)
		if turn.hide {
			view = hidden(view).(dict)
			shown = encoded(view)
			count["hidden"]++
		}
		refused := direct.accept(view, turn.effects)
		now, effects, failure := state.Terms(), []Effect(nil), state.Sendable()
		response := ahp.Response{Effects: r.written(turn.effects)}
		if failure.OK() {
			whole := shown
			if whole == nil {
				whole = state.Event
			}
			effects, failure = Admit(&now, whole, &response, nil)
		}
		if failure.OK() != (refused == nil) {
			return fmt.Errorf("turn %d: %v; want refused %t", i, failure, refused != nil)
		}
		switch {
		case failure.OK():
			count["accepted"]++
			if stop := state.Fold(effects, shown); !stop {
				// The backend's buffer is used again.
				for i := range response.Effects {
					response.Effects[i] = 'x'
				}
			}
		case turn.closed:
			count["failed closed"]++
			closed, direct.denied = true, true
			state.FailClosed(failClosed)
		default:
			count["refused"]++
		}
		if !state.owned() && sameReference(before, direct.event) {
			continue
		}
		if err := sameEvent(state, event, direct); err != nil {
			return fmt.Errorf("after turn %d: %w", i, err)
		}
	}
	return s.compare(state, direct, closed, count)
}

// sameReference reports whether two objects are one, and not just equal.
func sameReference(a, b dict) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// told compares what the next backend is told.
func told(state *State, caps, given []byte, direct *harness) error {
	want := direct.state()
	text := state.AppendState(nil)
	if untouched := !direct.spent; untouched && !bytes.Equal(text, given) || !untouched && !sameValue(decoded(text), want) {
		return fmt.Errorf("AppendState = %s; want %s", text, encoded(want))
	}
	text = state.AppendCapabilities(nil, caps)
	if plain := !direct.spent || !direct.budgeted; plain && !bytes.Equal(text, caps) || !plain && !sameValue(decoded(text), direct.capabilities()) {
		return fmt.Errorf("AppendCapabilities = %s; want %s", text, encoded(direct.capabilities()))
	}
	return nil
}

// sameEvent compares the event as it stands, of which nothing but the modify
// target may have been touched.
func sameEvent(state *State, event []byte, direct *harness) error {
	if got := decoded(state.Event); !sameValue(got, reworded(direct.event)) && !sameValue(reworded(got), reworded(direct.event)) {
		return fmt.Errorf("Event = %s; want %s", state.Event, encoded(direct.event))
	}
	path := state.terms.Event.Bounds().Path
	start, end, ok := find(event, path)
	from, to, also := find(state.Event, path)
	if ok != also || ok && !(bytes.Equal(event[:start], state.Event[:from]) && bytes.Equal(event[end:], state.Event[to:])) || !ok && !bytes.Equal(event, state.Event) {
		return fmt.Errorf("Event = %s; want %s beside the target", state.Event, event)
	}
	return nil
}

// reworded decodes the text of an elicitation's result, whose members have no
// order.
func reworded(event any) any {
	text, ok := at(event, "elicitation", "result", "text").(string)
	if !ok {
		return event
	}
	return put(event, decoded([]byte(text)), "elicitation", "result", "text")
}

// hidden is the event as a backend sees it that asked for no texts.
func hidden(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = hidden(v[i])
		}
		return list
	case dict:
		d := dict{}
		part := v["kind"] == "text" && v["selection"] == "body"
		for name, value := range v {
			switch {
			case part && name == "text":
			case part && name == "selection":
				d[name] = "metadata"
			case name == "tool" || name == "extensions":
				d[name] = value
			default:
				d[name] = hidden(value)
			}
		}
		return d
	}
	return v
}

// compare holds the composed answer against the direct harness.
func (s *scenario) compare(state *State, direct *harness, closed bool, count tally) error {
	a := state.Answer(nil)
	via := newHarness(s.event, s.caps, s.state, s.asked)
	canDeny := has(s.caps["effects"], "deny")
	if _, _, ok := via.question(via.event); via.kind() == "user.elicitation.request" && !ok {
		canDeny = false
	}
	voidedCandidate := at(s.state, "candidate") != nil && direct.candidate == nil && sameValue(s.event, direct.event) && via.kind() != "user.elicitation.result"
	voidedAllow := at(s.state, "permission") == "allow" && direct.permission == "none" && sameValue(s.event, direct.event) && via.kind() != "user.elicitation.result"
	switch a.Code {
	case 0:
	case ahp.CodeUnavailable:
		count["error"]++
		if !closed || canDeny {
			return fmt.Errorf("Answer = error %d; want a deny", a.Code)
		}
		return nil
	case ahp.CodeBackendInternal:
		count["error"]++
		canAsk := has(s.caps["effects"], "ask") && !voidedCandidate
		if canDeny || canAsk || !voidedCandidate && !voidedAllow || direct.halted() {
			return fmt.Errorf("Answer = error %d; want effects", a.Code)
		}
		return nil
	default:
		return fmt.Errorf("Answer = error %d; want another", a.Code)
	}
	var effects []any
	for _, raw := range a.Effects {
		effects = append(effects, decoded(raw))
	}
	if via.halted() {
		if len(effects) > 0 {
			return fmt.Errorf("Answer = %s to a harness that has settled; want none", encoded(effects))
		}
		return nil
	}
	if err := via.accept(via.event, effects); err != nil {
		return fmt.Errorf("Answer = %s, %w", encoded(effects), err)
	}
	if !sameValue(reworded(via.event), reworded(direct.event)) || !sameValue(via.steps, direct.steps) ||
		!sameValue(via.injections, direct.injections) || !sameValue(via.messages, direct.messages) {
		return fmt.Errorf("Answer = %s makes event %s, instructions %s, injections %s, messages %s; want %s, %s, %s, %s", encoded(effects),
			encoded(via.event), encoded(via.steps), encoded(via.injections), encoded(via.messages),
			encoded(direct.event), encoded(direct.steps), encoded(direct.injections), encoded(direct.messages))
	}
	flowed := via.flow == direct.flow || via.flow == "none" && direct.flow == "" || via.flow == "" && direct.flow == "none"
	exact := flowed && via.denied == direct.denied && (via.denied || via.permission == direct.permission) && sameValue(via.candidate, direct.candidate)
	for what, is := range map[string]bool{
		"denied": direct.denied, "stopped": direct.flow == "stop", "continued": direct.flow == "continue", "ask": direct.permission == "ask",
		"candidate": direct.candidate != nil, "modified": !sameValue(s.event, direct.event), "inexact": a.Inexact,
	} {
		if is {
			count[what]++
		}
	}
	got := func() error {
		return fmt.Errorf("Answer = %s, inexact %t, makes denied %t, permission %s, flow %q, candidate %s; want %t, %s, %q, %s", encoded(effects), a.Inexact,
			via.denied, via.permission, via.flow, encoded(via.candidate), direct.denied, direct.permission, direct.flow, encoded(direct.candidate))
	}
	if !a.Inexact {
		if !exact {
			return got()
		}
		return s.minimal(effects, via)
	}
	settledTwice := via.kind() == "user.elicitation.request" && direct.denied && direct.candidate != nil
	if exact || !voidedCandidate && !voidedAllow && !settledTwice {
		return fmt.Errorf("%w: effects that say it exist", got())
	}
	less := via.denied || direct.flow == "stop" && via.flow == "stop" ||
		via.permission == "ask" && direct.permission == "none" && sameValue(via.candidate, direct.candidate)
	if !less || direct.denied && !via.denied {
		return fmt.Errorf("%w: it permits more", got())
	}
	return nil
}

// minimal reports an effect that could be left out of the answer.
func (s *scenario) minimal(effects []any, want *harness) error {
	for i, e := range effects {
		rest := append(append([]any{}, effects[:i]...), effects[i+1:]...)
		h := newHarness(s.event, s.caps, s.state, s.asked)
		if err := h.accept(h.event, rest); err != nil {
			continue
		}
		if sameValue(h.event, want.event) && h.permission == want.permission && h.denied == want.denied && h.flow == want.flow && h.left == want.left &&
			sameValue(h.candidate, want.candidate) && sameValue(h.steps, want.steps) && sameValue(h.injections, want.injections) &&
			sameValue(h.messages, want.messages) && !(at(e, "type") == "modify" && at(e, "operation") == "replace") {
			return fmt.Errorf("Answer = %s; want it without %s", encoded(effects), encoded(e))
		}
	}
	return nil
}
