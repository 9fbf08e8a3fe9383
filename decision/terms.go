package decision

import (
	"math"
	"strconv"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// Terms is what one request lets an answer do: what it advertised, within what
// the snapshot lets anyone do at its event (AHP-CAP-001). The zero value lets
// it do nothing.
type Terms struct {
	Version ahp.Version
	Event   ahp.EventType
	Effects ahp.EffectSet
	// Replace and Merge are the operations on the event's one modify target.
	Replace, Merge bool
	// Stop and Continue are the flow operations.
	Stop, Continue bool
	// Budgeted is true where the request told a continuation budget, and
	// Remaining is what is left of it.
	Budgeted  bool
	Remaining int64
	// Now and NextTurn say when injections may be delivered.
	Now, NextTurn bool
	// Form and URL are the modes of elicitation that hooks may answer.
	Form, URL bool
	// Asked is the raw event of the user.elicitation.request that a
	// user.elicitation.result answers, for who has it. The result's edits are
	// held against the form in it; without it they are refused.
	Asked []byte
}

// ParseTerms reads the raw params.capabilities of a request. What is malformed
// is not advertised.
func ParseTerms(v ahp.Version, e ahp.EventType, capabilities []byte) Terms {
	t := Terms{Version: v, Event: e}
	var remaining, count, maximum int64
	var told bool
	for name, value := range ahp.Members(capabilities) {
		switch string(name) {
		case "effects":
			for raw := range ahp.Elements(value) {
				if effect, ok := ahp.LookupEffect(v, ahp.Text(raw)); ok {
					t.Effects = t.Effects.With(effect)
				}
			}
		case "modify":
			for target, operations := range ahp.Members(value) {
				if string(target) == e.Bounds().Target {
					t.Replace, t.Merge = isTrue(ahp.Member(operations, "replace")), isTrue(ahp.Member(operations, "merge"))
				}
			}
		case "flow":
			for name, value := range ahp.Members(value) {
				switch string(name) {
				case "operations":
					for raw := range ahp.Elements(value) {
						switch string(ahp.Text(raw)) {
						case "stop":
							t.Stop = true
						case "continue":
							t.Continue = e.Bounds().Continue
						}
					}
				case "remainingContinuations":
					remaining, told, t.Budgeted = count64(value), true, true
				case "continuationCount":
					count, t.Budgeted = count64(value), true
				case "maxContinuations":
					maximum, t.Budgeted = count64(value), true
				}
			}
		case "inject":
			context := ahp.Member(value, "context")
			if !isTrue(ahp.Member(context, "append")) {
				break
			}
			for raw := range ahp.Elements(ahp.Member(context, "deliverAt")) {
				switch string(ahp.Text(raw)) {
				case "now":
					t.Now = true
				case "next_turn":
					t.NextTurn = true
				}
			}
		case "elicitation":
			t.Form = ahp.KindOf(ahp.Member(value, "form")) == ahp.KindObject
			t.URL = ahp.KindOf(ahp.Member(value, "url")) == ahp.KindObject
		}
	}
	if v == ahp.V01 {
		return Terms{Version: v, Event: e, Effects: t.Effects}
	}
	t.Effects &= e.Bounds().Effects
	if t.Remaining = remaining; !told {
		t.Remaining = max(0, maximum-count)
	}
	return t
}

// operates reports whether the terms have the operation.
func (t *Terms) operates(o Operation) bool {
	switch o {
	case Replace:
		return t.Replace
	case Merge:
		return t.Merge
	case Stop:
		return t.Stop
	case Continue:
		return t.Continue
	default:
		return false
	}
}

func isTrue(raw []byte) bool { return string(raw) == "true" }

// count64 returns the count that raw is, as near to it as an int64 comes. What
// is no number counts as 0.
func count64(raw []byte) int64 {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f > 0:
		return int64(f)
	default:
		return 0
	}
}
