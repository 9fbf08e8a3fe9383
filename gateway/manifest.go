package gateway

import (
	"encoding/json"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// manifest is the answer to hooks/capabilities: what the gateway can do as the
// harness of its backends. It promises the bounds of the snapshot; how much of
// them holds for one event is in that request's own capabilities.
var manifest = func() []byte {
	type object = map[string]any
	both := object{"replace": true, "merge": true}
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
		b := e.Bounds()
		var effects []string
		for f := ahp.EffectDeny; f <= ahp.EffectInject; f++ {
			if b.Effects.Has(f) && (f != ahp.EffectModify || editable(e)) {
				effects = append(effects, f.String())
			}
		}
		capabilities := object{"effects": effects}
		if b.Effects.Has(ahp.EffectModify) && editable(e) {
			capabilities["modify"] = object{b.Target: both}
		}
		if b.Effects.Has(ahp.EffectInject) {
			capabilities["inject"] = object{"context": object{"append": true, "deliverAt": []string{"now", "next_turn"}}}
		}
		switch {
		case b.Continue:
			capabilities["flow"] = object{"operations": []string{"stop", "continue"}, "remainingContinuations": 0, "continuationCount": 0}
		case b.Effects.Has(ahp.EffectFlow):
			capabilities["flow"] = object{"operations": []string{"stop"}}
		}
		event["modes"], event["capabilities"] = []string{"observe", "intercept"}, capabilities
	}
	gap := func(path, reason string) object { return object{"path": path, "reason": reason} }
	// All of it is made of strings and numbers, which always have a JSON form.
	b, _ := json.Marshal(object{
		"events": events,
		"gaps": []object{
			gap("events.capabilities", "a gateway passes on what the harness of each request advertises, which may be less"),
			gap("limits.maxUploadBytes", "attachments are not uploaded"),
		},
		"transports":                []string{"http"},
		"authentication":            []string{"bearer"},
		"toolPaths":                 []string{},
		"contentCategories":         []string{"text", "reasoning", "images", "audio", "video", "files"},
		"limits":                    object{"maxUploadBytes": 0, "minTimeoutMs": 1, "maxTimeoutMs": 600000},
		"managedPolicy":             object{"scopes": []string{"managed", "project", "user"}, "disableable": false},
		"correlationIdentityFields": []string{"event.source", "event.id", "parentEventId", "session.id", "call.id"},
	})
	return b
}()

// editable reports whether backends can modify an event that the snapshot names
// a target for. A user's messages have no place that its harness writes to, and
// of an answer to an elicitation the gateway does not know the form.
func editable(e ahp.EventType) bool {
	return e.Bounds().Path != nil && e != ahp.UserElicitationResult
}
