package ahp

import "iter"

// EffectType is one effect family of the protocol. The zero value is none of them.
type EffectType uint8

// The effect families. 0.1 has EffectDeny alone.
const (
	EffectUnknown EffectType = iota
	EffectDeny
	EffectAllow
	EffectAsk
	EffectModify
	EffectMessage
	EffectReturn
	EffectFlow
	EffectInject

	effectTypeCount
)

var effectNames = [effectTypeCount]string{
	EffectUnknown: "unknown",
	EffectDeny:    "deny",
	EffectAllow:   "allow",
	EffectAsk:     "ask",
	EffectModify:  "modify",
	EffectMessage: "message",
	EffectReturn:  "return",
	EffectFlow:    "flow",
	EffectInject:  "inject",
}

// String returns the effect's type on the wire, or "unknown".
func (e EffectType) String() string {
	if e < effectTypeCount {
		return effectNames[e]
	}
	return "unknown"
}

// LookupEffect returns the effect family that snapshot v knows by that name.
func LookupEffect(v Version, name []byte) (EffectType, bool) {
	for e := EffectDeny; e < effectTypeCount; e++ {
		if effectNames[e] == string(name) && (v == Draft || e == EffectDeny) {
			return e, true
		}
	}
	return EffectUnknown, false
}

// EffectSet is a set of effect families.
type EffectSet uint16

// Has reports whether e is in the set.
func (s EffectSet) Has(e EffectType) bool { return s&(1<<e) != 0 }

// With returns the set with e in it.
func (s EffectSet) With(e EffectType) EffectSet { return s | 1<<e }

// All yields the families in the set, in their order above.
func (s EffectSet) All() iter.Seq[EffectType] {
	return func(yield func(EffectType) bool) {
		for e := EffectDeny; e < effectTypeCount; e++ {
			if s.Has(e) && !yield(e) {
				return
			}
		}
	}
}
