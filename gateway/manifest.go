package gateway

import (
	"encoding/json"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// EveryEffect is the set of all families.
const EveryEffect = ^ahp.EffectSet(0)

// Capabilities returns what a harness of draft may advertise at an event as its
// params.capabilities: those of the families that the event has, each with
// everything that can be said of it. Of continuations there are none left.
// AHP-CAP-001.
func Capabilities(e ahp.EventType, effects ahp.EffectSet) map[string]any {
	type object = map[string]any
	b := e.Bounds()
	effects &= answerable(e)
	names := []string{}
	for f := ahp.EffectDeny; f <= ahp.EffectInject; f++ {
		if effects.Has(f) {
			names = append(names, f.String())
		}
	}
	c := object{"effects": names}
	if effects.Has(ahp.EffectModify) {
		c["modify"] = object{b.Target: object{"replace": true, "merge": true}}
	}
	if effects.Has(ahp.EffectInject) {
		c["inject"] = object{"context": object{"append": true, "deliverAt": []string{"now", "next_turn"}}}
	}
	switch {
	case !effects.Has(ahp.EffectFlow):
	case b.Continue:
		c["flow"] = object{"operations": []string{"stop", "continue"}, "remainingContinuations": 0, "continuationCount": 0}
	default:
		c["flow"] = object{"operations": []string{"stop"}}
	}
	return c
}

// manifest is the answer to hooks/capabilities: what the gateway can do as the
// harness of its backends. It promises the bounds of the snapshot; how much of
// them holds for one event is in that request's own capabilities.
var manifest = func() []byte {
	type object = map[string]any
	var events []object
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		if !e.In(ahp.Draft) {
			continue
		}
		event := object{"event": e.String(), "modes": []string{"observe"}}
		events = append(events, event)
		if !e.Interceptable(ahp.Draft) {
			continue
		}
		event["modes"], event["capabilities"] = []string{"observe", "intercept"}, Capabilities(e, EveryEffect)
	}
	gap := func(path, reason string) object { return object{"path": path, "reason": reason} }
	// All of it is made of strings and numbers, which always have a JSON form.
	b, _ := json.Marshal(object{
		"events": events,
		"gaps": []object{
			gap("events.capabilities", "a gateway passes on what the harness of each request advertises, which may be less"),
			gap("limits.maxUploadBytes", "attachments are not uploaded"),
			gap("authentication.oauth", "client_credentials with a configured issuer; there is nobody to consent, and a 401 challenge is not followed"),
		},
		"transports":                []string{"http"},
		"authentication":            []string{"bearer", "oauth"},
		"toolPaths":                 []string{},
		"contentCategories":         []string{"text", "reasoning", "images", "audio", "video", "files"},
		"limits":                    object{"maxUploadBytes": 0, "minTimeoutMs": 1, "maxTimeoutMs": 600000},
		"managedPolicy":             object{"scopes": []string{"managed", "project", "user"}, "disableable": false},
		"correlationIdentityFields": []string{"event.source", "event.id", "parentEventId", "session.id", "call.id"},
	})
	return b
}()

// answerable are the effects that a backend may answer the event with. A user's
// messages have a target in the snapshot and no place that its harness writes
// to, so that they cannot be modified.
func answerable(e ahp.EventType) ahp.EffectSet {
	b := e.Bounds()
	var effects ahp.EffectSet
	for f := ahp.EffectDeny; f <= ahp.EffectInject; f++ {
		if b.Effects.Has(f) && (f != ahp.EffectModify || b.Path != nil) {
			effects = effects.With(f)
		}
	}
	return effects
}
