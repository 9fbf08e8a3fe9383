package ahp

// Bounds is what draft lets a backend do at one event, whatever a request
// advertises. AHP-CAP-001.
type Bounds struct {
	Effects EffectSet
	// Target names the one value of the event that a modify may change, or is
	// empty.
	Target string
	// Path leads from the event to that value. It is nil where the event has no
	// target, and at user.message.inbound and .outbound: the pinned snapshot
	// names targets there, but its harness has no place to write them to and
	// refuses every answer that tries.
	Path []string
	// Continue is true where a flow effect may continue and not only stop.
	Continue bool
}

func someEffects(list ...EffectType) (s EffectSet) {
	for _, e := range list {
		s = s.With(e)
	}
	return s
}

var bounds = [EventTypeCount]Bounds{
	SessionStart:       {Effects: someEffects(EffectInject, EffectMessage)},
	ConfigChangeBefore: {Effects: someEffects(EffectDeny, EffectMessage)},
	TurnStart: {
		Effects: someEffects(EffectDeny, EffectModify, EffectInject, EffectFlow, EffectMessage),
		Target:  "prompt", Path: []string{"items"},
	},
	TurnFinishBefore: {
		Effects: someEffects(EffectModify, EffectFlow, EffectMessage),
		Target:  "response", Path: []string{"items"}, Continue: true,
	},
	ModelRequestBefore: {
		Effects: someEffects(EffectDeny, EffectModify, EffectInject, EffectReturn, EffectFlow, EffectMessage),
		Target:  "request", Path: []string{"items"},
	},
	ModelResponseAfter: {
		Effects: someEffects(EffectModify, EffectFlow, EffectMessage),
		Target:  "response", Path: []string{"items"},
	},
	ModelSwitchBefore: {Effects: someEffects(EffectDeny, EffectFlow, EffectMessage)},
	ToolBefore: {
		Effects: someEffects(EffectDeny, EffectAllow, EffectAsk, EffectModify, EffectInject, EffectFlow, EffectReturn, EffectMessage),
		Target:  "input", Path: []string{"tool", "input"},
	},
	ToolAfter: {
		Effects: someEffects(EffectModify, EffectInject, EffectFlow, EffectMessage),
		Target:  "output", Path: []string{"items"}, Continue: true,
	},
	ToolPermissionRequest: {
		Effects: someEffects(EffectAllow, EffectDeny, EffectModify, EffectFlow, EffectMessage),
		Target:  "input", Path: []string{"tool", "input"},
	},
	ToolBatchAfter: {Effects: someEffects(EffectFlow, EffectInject, EffectMessage)},
	ContextCompactBefore: {
		Effects: someEffects(EffectDeny, EffectModify, EffectReturn, EffectInject, EffectMessage),
		Target:  "instructions", Path: []string{"instructions"},
	},
	ContextCompactAfter: {
		Effects: someEffects(EffectInject, EffectModify, EffectMessage),
		Target:  "summary", Path: []string{"summary"},
	},
	TaskChangeBefore:       {Effects: someEffects(EffectDeny, EffectMessage)},
	UserElicitationRequest: {Effects: someEffects(EffectDeny, EffectReturn, EffectMessage)},
	UserElicitationResult: {
		Effects: someEffects(EffectModify, EffectMessage),
		Target:  "content", Path: []string{"elicitation", "result"},
	},
	UserMessageInbound: {
		Effects: someEffects(EffectDeny, EffectModify, EffectMessage),
		Target:  "prompt",
	},
	UserMessageOutbound: {
		Effects: someEffects(EffectDeny, EffectModify, EffectMessage),
		Target:  "content",
	},
	WorkspaceChangeBefore: {
		Effects: someEffects(EffectDeny, EffectModify, EffectMessage),
		Target:  "workspace", Path: []string{"workspace", "change"},
	},
}

// Bounds returns what draft lets a backend do at the event; of an event that
// cannot be intercepted that is nothing.
func (e EventType) Bounds() *Bounds {
	if e >= EventTypeCount {
		e = EventUnknown
	}
	return &bounds[e]
}
