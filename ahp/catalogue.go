package ahp

// EventType is one event of the catalogue. The zero value is no event.
type EventType uint8

// The events of both snapshots. tool.error exists only in 0.1.
const (
	EventUnknown EventType = iota
	SessionStart
	SessionEnd
	ToolBefore
	ToolAfter
	ToolError
	ToolPermissionRequest
	ToolPermissionResolved
	ToolProgress
	ToolBatchAfter
	TurnStart
	TurnFinishBefore
	TurnEnd
	TurnProgress
	ModelRequestBefore
	ModelResponseAfter
	ModelError
	ModelSwitchBefore
	ModelSwitchAfter
	ContextCompactBefore
	ContextCompactAfter
	ConfigChangeBefore
	ConfigChangeAfter
	UserAttention
	UserElicitationRequest
	UserElicitationResult
	UserMessageInbound
	UserMessageOutbound
	HookFailure
	TaskChangeBefore
	TaskChangeAfter
	WorkspaceChangeBefore
	WorkspaceChangeAfter
	FileChanged

	EventTypeCount
)

// eventNames are the wire names, indexed by EventType.
var eventNames = [EventTypeCount]string{
	SessionStart:           "session.start",
	SessionEnd:             "session.end",
	ToolBefore:             "tool.before",
	ToolAfter:              "tool.after",
	ToolError:              "tool.error",
	ToolPermissionRequest:  "tool.permission.request",
	ToolPermissionResolved: "tool.permission.resolved",
	ToolProgress:           "tool.progress",
	ToolBatchAfter:         "tool.batch.after",
	TurnStart:              "turn.start",
	TurnFinishBefore:       "turn.finish.before",
	TurnEnd:                "turn.end",
	TurnProgress:           "turn.progress",
	ModelRequestBefore:     "model.request.before",
	ModelResponseAfter:     "model.response.after",
	ModelError:             "model.error",
	ModelSwitchBefore:      "model.switch.before",
	ModelSwitchAfter:       "model.switch.after",
	ContextCompactBefore:   "context.compact.before",
	ContextCompactAfter:    "context.compact.after",
	ConfigChangeBefore:     "config.change.before",
	ConfigChangeAfter:      "config.change.after",
	UserAttention:          "user.attention",
	UserElicitationRequest: "user.elicitation.request",
	UserElicitationResult:  "user.elicitation.result",
	UserMessageInbound:     "user.message.inbound",
	UserMessageOutbound:    "user.message.outbound",
	HookFailure:            "hook.failure",
	TaskChangeBefore:       "task.change.before",
	TaskChangeAfter:        "task.change.after",
	WorkspaceChangeBefore:  "workspace.change.before",
	WorkspaceChangeAfter:   "workspace.change.after",
	FileChanged:            "file.changed",
}

// String returns the event's name on the wire, or "unknown".
func (e EventType) String() string {
	if e == EventUnknown || e >= EventTypeCount {
		return "unknown"
	}
	return eventNames[e]
}

var eventByName = func() map[string]EventType {
	m := make(map[string]EventType, EventTypeCount)
	for e := EventUnknown + 1; e < EventTypeCount; e++ {
		m[eventNames[e]] = e
	}
	return m
}()

// LookupEvent returns the event that snapshot v knows by that exact name.
func LookupEvent(v Version, name string) (EventType, bool) {
	e, ok := eventByName[name]
	if !ok || !e.In(v) {
		return EventUnknown, false
	}
	return e, true
}

// In reports whether snapshot v has the event at all.
func (e EventType) In(v Version) bool { return e.Observable(v) || e.Interceptable(v) }

// Interceptable reports whether snapshot v lets a harness ask for a decision
// on the event. AHP-RPC-002.
func (e EventType) Interceptable(v Version) bool {
	switch v {
	case V01:
		return e == ToolBefore
	case Draft:
		switch e {
		case SessionStart, ConfigChangeBefore, TurnStart, TurnFinishBefore, ModelRequestBefore,
			ModelResponseAfter, ModelSwitchBefore, ToolBefore, ToolAfter, ToolPermissionRequest,
			ToolBatchAfter, ContextCompactBefore, ContextCompactAfter, TaskChangeBefore,
			UserElicitationRequest, UserElicitationResult, UserMessageInbound,
			UserMessageOutbound, WorkspaceChangeBefore:
			return true
		}
	}
	return false
}

// Observable reports whether snapshot v delivers the event by hooks/observe.
func (e EventType) Observable(v Version) bool {
	switch v {
	case V01:
		return e == ToolAfter || e == ToolError || e == SessionStart || e == SessionEnd
	case Draft:
		return e > EventUnknown && e < EventTypeCount && e != ToolError
	}
	return false
}
