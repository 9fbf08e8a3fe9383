package ahp

import "strings"

// contentPaths say where draft events hold content parts: a member per segment,
// "*" for every element of a list. Nothing else in an event is looked at:
// native payloads and tool inputs may resemble parts without being any.
var contentPaths = [EventTypeCount][][]string{
	SessionStart:           paths("items.*.parts.*"),
	SessionEnd:             paths("items.*"),
	ToolBefore:             paths("items.*"),
	ToolAfter:              paths("items.*.parts.*", "fileChanges.*.before", "fileChanges.*.after"),
	ToolPermissionRequest:  paths("items.*"),
	ToolPermissionResolved: paths("items.*"),
	ToolProgress:           paths("items.*", "partialOutput.parts.*"),
	ToolBatchAfter:         paths("items.*"),
	TurnStart:              paths("items.*.parts.*"),
	TurnFinishBefore:       paths("items.*.parts.*"),
	TurnEnd:                paths("items.*.parts.*"),
	TurnProgress:           paths("items.*", "delta.parts.*"),
	ModelRequestBefore:     paths("items.*.parts.*"),
	ModelResponseAfter:     paths("items.*.parts.*"),
	ModelError:             paths("items.*"),
	ModelSwitchBefore:      paths("items.*"),
	ModelSwitchAfter:       paths("items.*"),
	ContextCompactBefore:   paths("items.*.parts.*", "instructions.*"),
	ContextCompactAfter:    paths("items.*.parts.*", "summary.*"),
	ConfigChangeBefore:     paths("items.*"),
	ConfigChangeAfter:      paths("items.*"),
	UserAttention:          paths("items.*", "attention.message.*", "attention.title.*"),
	UserElicitationRequest: paths("items.*", "elicitation.request"),
	UserElicitationResult:  paths("items.*", "elicitation.result"),
	UserMessageInbound:     paths("items.*", "message.messages.*.parts.*"),
	UserMessageOutbound:    paths("items.*", "message.messages.*.parts.*"),
	HookFailure:            paths("items.*"),
	TaskChangeBefore:       paths("items.*"),
	TaskChangeAfter:        paths("items.*"),
	WorkspaceChangeBefore:  paths("items.*"),
	WorkspaceChangeAfter:   paths("items.*"),
	FileChanged:            paths("items.*", "changes.*.before", "changes.*.after"),
}

func paths(dotted ...string) [][]string {
	split := make([][]string, len(dotted))
	for i, d := range dotted {
		split[i] = strings.Split(d, ".")
	}
	return split
}
