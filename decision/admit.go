package decision

import "github.com/ahp-gateway/ahp-gateway/ahp"

// Effect is one admitted effect. Raw is its JSON as the backend wrote it; the
// others are text without quotes and escapes, nil where the member is absent.
// All of them point into the response.
type Effect struct {
	Type   ahp.EffectType
	Raw    []byte
	Reason []byte
	Code   []byte
}

// maxEffects is how many effects of one response are looked at. No honest answer
// comes near it, and each costs memory for as long as the event is decided.
const maxEffects = 256

// Admit reads the effects of resp, a well-formed response of snapshot v, and
// appends them to dst. It accepts all of them or none: one effect that is
// unknown, malformed, not advertised or in conflict with another is an
// operational failure of the whole response, a good deny beside it included
// (AHP-CAP-001, AHP-DEC-001). advertised is what the backend was told, which
// may be less than what the harness told the gateway. dst is returned
// unchanged on failure.
func Admit(v ahp.Version, advertised ahp.EffectSet, resp *ahp.Response, dst []Effect) ([]Effect, ahp.Failure) {
	effects := dst
	for raw := range ahp.Elements(resp.Effects) {
		e, f := admit(v, advertised, raw)
		switch {
		case !f.OK():
			return dst, f
		case len(effects)-len(dst) == maxEffects:
			return dst, ahp.Failure{Class: ahp.FailEffectConflict, Detail: "more effects than can stand beside each other"}
		}
		effects = append(effects, e)
	}
	if v == ahp.V01 && len(effects)-len(dst) > 1 {
		return dst, ahp.Failure{Class: ahp.FailEffectConflict, Detail: "more than one effect"}
	}
	return effects, ahp.Failure{}
}

func admit(v ahp.Version, advertised ahp.EffectSet, raw []byte) (Effect, ahp.Failure) {
	e := Effect{Raw: raw}
	if ahp.KindOf(raw) != ahp.KindObject {
		return e, ahp.Failure{Class: ahp.FailEffectMalformed, Detail: "an effect is no object"}
	}
	typed := false
	for name, value := range ahp.Members(raw) {
		if string(name) == "type" {
			if ahp.KindOf(value) != ahp.KindString {
				break
			}
			e.Type, typed = ahp.LookupEffect(v, ahp.Text(value))
			if !typed {
				return e, ahp.Failure{Class: ahp.FailEffectUnknown, Detail: "an effect's type is unknown"}
			}
		}
	}
	switch {
	case !typed:
		return e, ahp.Failure{Class: ahp.FailEffectMalformed, Detail: "an effect has no type"}
	case !advertised.Has(e.Type):
		return e, ahp.Failure{Class: ahp.FailEffectUnadvertised, Detail: "effect " + e.Type.String() + " was not advertised"}
	}
	// Only a deny is ever advertised to backends by this gateway.
	return e, e.deny(v)
}

// deny reads the members of a deny effect. In draft it is a closed object; in
// 0.1 members that the snapshot does not have are ignored (AHP-CORE-003).
func (e *Effect) deny(v ahp.Version) ahp.Failure {
	malformed := func(detail string) ahp.Failure {
		return ahp.Failure{Class: ahp.FailEffectMalformed, Detail: detail}
	}
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
		default:
			if v == ahp.Draft {
				return ahp.Failure{Class: ahp.FailEffectUnknown, Detail: "deny has an unknown member"}
			}
		}
	}
	if e.Reason == nil {
		return malformed("deny.reason is missing")
	}
	return ahp.Failure{}
}
