package decision

import "github.com/ahp-gateway/ahp-gateway/ahp"

// maxEffects is how many effects of one response are looked at. No honest answer
// comes near it, not even one that another gateway has composed, and each costs
// memory for as long as the event is decided.
const maxEffects = 4096

// Admit reads the effects of resp, a well-formed response to a request with
// these terms, and appends them to dst. It accepts all of them or none: one
// effect that is unknown, malformed, not advertised or in conflict with another
// is an operational failure of the whole response, a good deny beside it
// included (AHP-CAP-001, AHP-DEC-001). terms are what the backend was told,
// which may be less than what the harness told the gateway, and shown is the
// raw event as the backend saw it. dst is returned unchanged on failure.
func Admit(terms *Terms, shown []byte, resp *ahp.Response, dst []Effect) ([]Effect, ahp.Failure) {
	effects := dst
	for raw := range ahp.Elements(resp.Effects) {
		if len(effects)-len(dst) == maxEffects {
			return dst, conflict("more effects than can stand beside each other")
		}
		effects = append(effects, Effect{Raw: raw})
		if f := effects[len(effects)-1].admit(terms); !f.OK() {
			return dst, f
		}
	}
	if len(effects) == len(dst) {
		return effects, ahp.Failure{}
	}
	if f := admitAll(terms, shown, effects[len(dst):]); !f.OK() {
		return dst, f
	}
	return effects, ahp.Failure{}
}

func unadvertised(detail string) ahp.Failure {
	return ahp.Failure{Class: ahp.FailEffectUnadvertised, Detail: detail}
}

func malformed(detail string) ahp.Failure {
	return ahp.Failure{Class: ahp.FailEffectMalformed, Detail: detail}
}

func unknown(detail string) ahp.Failure {
	return ahp.Failure{Class: ahp.FailEffectUnknown, Detail: detail}
}

func conflict(detail string) ahp.Failure {
	return ahp.Failure{Class: ahp.FailEffectConflict, Detail: detail}
}

// admit reads the effect on its own.
func (e *Effect) admit(terms *Terms) ahp.Failure {
	if ahp.KindOf(e.Raw) != ahp.KindObject {
		return malformed("an effect is no object")
	}
	kind := ahp.Member(e.Raw, "type")
	if ahp.KindOf(kind) != ahp.KindString {
		return malformed("an effect has no type")
	}
	var known bool
	if e.Type, known = ahp.LookupEffect(terms.Version, ahp.Text(kind)); !known {
		return unknown("an effect's type is unknown")
	}
	switch {
	case !terms.Effects.Has(e.Type):
		return unadvertised("effect " + e.Type.String() + " was not advertised")
	case e.Type == ahp.EffectDeny:
		return e.deny(terms.Version)
	default:
		return e.control(terms)
	}
}

const unreadable = "an effect has a number that not every reader can hold"

// deny reads the members of a deny effect. In draft it is a closed object; in
// 0.1 members that the snapshot does not have are ignored (AHP-CORE-003).
func (e *Effect) deny(v ahp.Version) ahp.Failure {
	for name, value := range ahp.Members(e.Raw) {
		switch string(name) {
		case "type":
		case "reason":
			if e.Reason = ahp.Text(value); len(e.Reason) == 0 {
				return malformed("deny.reason is no non-empty string")
			}
		case "code":
			if e.Code = ahp.Text(value); !ahp.IsReverseDNS(e.Code) {
				return malformed("deny.code is no reverse-DNS name")
			}
		case "extensions":
			if ahp.KindOf(value) != ahp.KindObject {
				return malformed("deny.extensions is no object")
			}
			for key := range ahp.Members(value) {
				if !ahp.IsReverseDNS(key) {
					return malformed("deny.extensions has a key that is no reverse-DNS name")
				}
			}
			if v == ahp.Draft && !finite(value) {
				return malformed(unreadable)
			}
		default:
			if v == ahp.Draft {
				return unknown("deny has an unknown member")
			}
		}
	}
	if e.Reason == nil {
		return malformed("deny.reason is missing")
	}
	return ahp.Failure{}
}

// control reads an effect of draft that is no deny.
func (e *Effect) control(terms *Terms) ahp.Failure {
	for name, value := range ahp.Members(e.Raw) {
		f := ahp.Failure{}
		switch string(name) {
		case "target":
			f = e.target(terms, ahp.Text(value))
		case "operation":
			f = e.operate(terms, ahp.Text(value))
		case "deliverAt":
			f = e.deliver(terms, ahp.Text(value))
		case "reason":
			e.Reason = ahp.Text(value)
		case "instruction", "value":
			e.Value = value
		case "type", "text":
		default:
			f = unknown(e.Type.String() + " has an unknown member")
		}
		if !f.OK() {
			return f
		}
	}
	if _, wrong := terms.Event.CheckEffect(e.Raw); wrong != "" {
		return malformed(wrong)
	}
	switch {
	case e.Value != nil && !finite(e.Value):
		return malformed(unreadable)
	case e.Type == ahp.EffectModify && terms.Event.Bounds().Path == nil:
		return unadvertised("no harness of this snapshot can make this modification")
	case e.Type == ahp.EffectModify && waits(e.Value):
		return malformed("modify.value has an attachment that was not uploaded")
	case e.Operation == Continue && terms.Remaining <= 0:
		return unadvertised("no continuation is left")
	}
	return ahp.Failure{}
}

// target reads what a modify is about. Of other effects CheckEffect does.
func (e *Effect) target(terms *Terms, name []byte) ahp.Failure {
	if e.Type != ahp.EffectModify || string(name) == terms.Event.Bounds().Target {
		return ahp.Failure{}
	}
	for other := range ahp.EventTypeCount {
		if target := other.Bounds().Target; target != "" && target == string(name) {
			return unadvertised("modify.target was not advertised")
		}
	}
	return unknown("modify.target is unknown")
}

func (e *Effect) operate(terms *Terms, name []byte) ahp.Failure {
	switch string(name) {
	case "replace":
		e.Operation = Replace
	case "merge":
		e.Operation = Merge
	case "stop":
		e.Operation = Stop
	case "continue":
		e.Operation = Continue
	}
	isFlow := e.Operation == Stop || e.Operation == Continue
	switch {
	case e.Type == ahp.EffectInject: // its one operation is for CheckEffect
		e.Operation = 0
	case e.Type != ahp.EffectModify && e.Type != ahp.EffectFlow || e.Operation == 0 || isFlow != (e.Type == ahp.EffectFlow):
		return unknown(e.Type.String() + ".operation is unknown")
	case !terms.operates(e.Operation):
		return unadvertised(e.Type.String() + ".operation was not advertised")
	}
	return ahp.Failure{}
}

func (e *Effect) deliver(terms *Terms, name []byte) ahp.Failure {
	switch string(name) {
	case "now", "next_turn":
		if string(name) == "now" && !terms.Now || string(name) == "next_turn" && !terms.NextTurn {
			return unadvertised(e.Type.String() + ".deliverAt was not advertised")
		}
		return ahp.Failure{}
	default:
		return unknown(e.Type.String() + ".deliverAt is unknown")
	}
}

// admitAll checks what effects ask of one another and of the event that the
// backend saw.
func admitAll(terms *Terms, shown []byte, effects []Effect) ahp.Failure {
	if terms.Version == ahp.V01 {
		if len(effects) > 1 {
			return conflict("more than one effect")
		}
		return ahp.Failure{}
	}
	switch terms.Event {
	case ahp.ContextCompactBefore, ahp.ContextCompactAfter:
		return admitCompaction(terms, shown, effects)
	case ahp.UserElicitationRequest:
		return admitAnswer(terms, shown, effects)
	case ahp.UserElicitationResult:
		return admitEdits(terms, shown, effects)
	}
	return ahp.Failure{}
}

// admitCompaction checks that what is edited, or stood in for, was shown as
// text, and that text stands in for it.
func admitCompaction(terms *Terms, shown []byte, effects []Effect) ahp.Failure {
	looked, texts := false, false
	for i := range effects {
		e := &effects[i]
		if e.Type != ahp.EffectModify && e.Type != ahp.EffectReturn {
			continue
		}
		if !looked {
			looked, texts = true, areTexts(ahp.Member(shown, terms.Event.Bounds().Target))
		}
		switch {
		case !texts:
			return unadvertised("the text that is edited was not shown")
		case !areTexts(e.Value):
			return malformed(e.Type.String() + ".value has a part that shows no text")
		}
	}
	return ahp.Failure{}
}
