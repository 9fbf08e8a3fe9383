package ahp

// effectShapes are the shapes of the effects that draft lets a backend answer
// one event with. Which of them a request advertised is not their matter.
var effectShapes = func() (shapes [EventTypeCount][effectTypeCount]*shape) {
	for t := range EventTypeCount {
		b := t.Bounds()
		for e := EffectDeny; e < effectTypeCount; e++ {
			if b.Effects.Has(e) {
				shapes[t][e] = effectShape(t, e, b)
			}
		}
	}
	return shapes
}()

func effectShape(t EventType, e EffectType, b *Bounds) *shape {
	of := need("type", enum(e.String()))
	switch e {
	case EffectDeny:
		return denyEffectShape
	case EffectInject:
		return injectEffect
	case EffectMessage:
		return closed(of, need("text", text)).named("messageEffect", "A text for the user.")
	case EffectModify:
		return closed(of, need("target", enum(b.Target)), need("operation", enum("replace", "merge")), need("value", modifyValue(t))).
			named("modifyEffect."+t.String(), "A change of what "+t.String()+" is about.")
	case EffectReturn:
		return closed(of, need("value", returnValue(t))).
			named("returnEffect."+t.String(), "What is to stand in place of the execution at "+t.String()+".")
	case EffectFlow:
		if !b.Continue {
			return closed(of, need("operation", enum("stop")), need("reason", filled)).named("stopEffect", "An end of the turn.")
		}
		s := closed(of, need("operation", enum("stop", "continue")), opt("reason", filled), opt("instruction", filled)).
			named("flowEffect", "An end of the turn, or one step more.")
		return s.obeying(
			rule{when: []cond{s.is("operation", "stop")}, need: []string{"reason"}, because: "beside stop"},
			rule{when: []cond{s.is("operation", "stop")}, ban: []string{"instruction"}, because: "beside stop"},
			rule{when: []cond{s.is("operation", "continue")}, ban: []string{"reason"}, because: "beside continue"},
		)
	default: // allow and ask
		return closed(of).named(e.String()+"Effect", "A permission: "+e.String()+".")
	}
}

var denyEffectShape = closed(
	need("type", enum("deny")),
	need("reason", filled),
	opt("code", dotted),
	opt("extensions", extensions),
).named("denyEffect", "A refusal, with its reason.")

var injectEffect = closed(
	need("type", enum("inject")),
	need("target", enum("context")),
	need("operation", enum("append")),
	need("deliverAt", deliverAt),
	need("value", messageList),
).named("injectEffect", "Messages for the context of the model.")

// modifyValue is what the value of a modify at the event has to be.
func modifyValue(t EventType) *shape {
	switch t {
	case ToolBefore, ToolPermissionRequest:
		return opaque
	case ContextCompactBefore, ContextCompactAfter:
		return textParts
	case UserElicitationResult:
		return formAnswers
	case WorkspaceChangeBefore:
		return workspaceChange
	default:
		return messageList
	}
}

// returnValue is what the value of a return at the event has to be.
func returnValue(t EventType) *shape {
	switch t {
	case ModelRequestBefore:
		return messageList
	case ContextCompactBefore:
		return textParts
	case UserElicitationRequest:
		return elicitResult
	default:
		return anything
	}
}

// CheckEffect holds one effect of a draft answer, as a decoder of this package
// has found it, against what draft lets a backend answer the event with: its
// family, the members of its closed object, and the kind of its value. It
// returns the family, and what is wrong or "": a fixed text with the path of
// the first member at fault. Whether the request advertised the effect is for
// the caller. It does not allocate for an effect that is right and has no
// escapes in it. AHP-CAP-001.
func (t EventType) CheckEffect(raw []byte) (e EffectType, wrong string) {
	if KindOf(raw) != KindObject {
		return EffectUnknown, "effect is no object"
	}
	if e, _ = LookupEffect(Draft, Text(Member(raw, "type"))); e == EffectUnknown {
		return e, "effect.type is none of the snapshot's"
	}
	s := effectShapes[min(t, EventTypeCount-1)][e]
	if s == nil || t >= EventTypeCount {
		return e, "effect.type is none of the event's"
	}
	w := walker{b: raw}
	if !w.fits(s, 0) {
		return e, w.misfit("effect")
	}
	return e, ""
}
