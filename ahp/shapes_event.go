package ahp

import "slices"

// The shapes of draft events. The decoder reads what all events have in common
// before it knows which event it has; those members are marked as read.

var (
	extensions = func() *shape {
		s := object().named("extensions", "Opaque values under reverse-DNS names.")
		s.dotted = true
		return s
	}()
	counters = object().with(count)
	session  = object(
		need("id", filled),
		opt("cwd", text),
		opt("workspaceRoots", list(text)),
		opt("model", text),
		opt("agent", object(need("id", filled), opt("type", text))),
		opt("synthesized", boolean),
		opt("counters", object(
			opt("turns", count),
			opt("modelRequests", count),
			opt("toolCalls", count),
			opt("inputTokens", count),
			opt("outputTokens", count),
		).with(count).named("sessionCounters", "What a session counted so far. What is not told is not known.")),
	).named("session", "The session an event belongs to.")
	harness = closed(need("name", filled), need("version", filled)).
		named("harness", "The agent runtime that sends the event (AHP-CORE-005).")
	// identity is what an event calls a thing by. Of a turn, events that are
	// not about turns and models tell more than that.
	identity = closed(need("id", filled), opt("synthesized", boolean)).
			named("identity", "What a thing is called, and whether the harness made that up.")
	openTurn = object(need("id", filled), opt("synthesized", boolean))
	gaps     = list(object(need("path", filled), need("reason", filled)).
			named("missing", "A member of the event that could not be told."))
)

// event is the shape of one event: what all have in common, then its own.
func event(e EventType, own ...member) *shape {
	common := []member{
		need("id", filled).asRead(),
		need("source", absolute).asRead(),
		need("type", enum(e.String())).asRead(),
		need("time", dateTime).asRead(),
		need("harness", harness).asRead(),
		opt("extensions", extensions).asRead(),
		opt("native", anything),
		opt("session", session),
		opt("parentEventId", filled),
		opt("turn", openTurn),
		opt("items", parts),
		opt("gaps", gaps),
		opt("synthesized", boolean),
	}
	// An event's own word on a common member replaces the common one.
	for _, m := range own {
		common = slices.DeleteFunc(common, func(c member) bool { return c.name == m.name })
	}
	return object(append(common, own...)...).named(e.String(), "The payload of "+e.String()+".")
}

// The shapes of execution.
var (
	model = closed(need("id", filled), need("provider", filled)).
		named("model", "A model and who provides it.")
	attempt = closed(need("id", filled), need("number", positive), opt("synthesized", boolean)).
		named("attempt", "One try of a model request.")
	failure = closed(
		need("message", filled),
		need("class", filled),
		opt("code", filled),
		opt("status", choice("non-empty string or integer", filled, integer)),
		opt("native", anything),
	).named("error", "What went wrong.")
	cost = closed(need("amount", amount), need("currency", currency), need("basis", enum("billed", "reported", "estimated")))

	execution = executionOf("execution", "Whether something was executed or why not.",
		[]string{"executed", "skipped"}, "supplied_result", "policy", "cancelled", "timeout", "other")
	// Where a model is concerned, only a supplied result can be in its place.
	suppliedExecution = executionOf("suppliedExecution", "Executed, or skipped for a result that was supplied.",
		[]string{"executed", "skipped"}, "supplied_result")
	realExecution = executionOf("realExecution", "Executed.", []string{"executed"})

	attemptUsage = usageOf("attemptUsage", "What one attempt used.", "amount", "attempt", "provider", "estimate")
	turnUsage    = usageOf("turnUsage", "What a turn used so far.", "total", "turn", "provider", "estimate", "mixed")
)

// The bits of an execution are those of its status, then those of its reason.
const bitSkipped = 1 << 1

var bitPolicy = func() uint64 {
	return execution.members[execution.index("reason")].shape.bits("policy")
}()

func executionOf(name, about string, statuses []string, reasons ...string) *shape {
	status := enum(statuses...)
	if len(reasons) == 0 {
		return closed(need("status", status).asShown()).named(name, about)
	}
	reason := enum(reasons...).shifted(uint8(len(statuses)))
	members := []member{need("status", status).asShown(), opt("reason", reason).asShown()}
	if len(reasons) > 1 {
		members = append(members, opt("detail", filled))
	}
	s := closed(members...).named(name, about)
	s.obeying(
		rule{when: []cond{s.is("status", "skipped")}, need: []string{"reason"}},
		rule{when: []cond{s.is("status", "executed")}, ban: []string{"reason"}, because: "beside executed"},
	)
	if len(reasons) > 1 {
		s.obeying(
			rule{when: []cond{s.is("status", "executed")}, ban: []string{"detail"}, because: "beside executed"},
			rule{when: []cond{s.is("reason", "supplied_result")}, ban: []string{"detail"}, because: "beside supplied_result"},
		)
	}
	return s
}

func usageOf(name, about, kind, scope string, provenances ...string) *shape {
	return closed(
		need("kind", enum(kind)),
		need("scope", enum(scope)),
		need("completeness", enum("complete", "partial", "unknown")),
		need("provenance", enum(provenances...)),
		opt("inputTokens", count),
		opt("outputTokens", count),
		opt("cacheReadTokens", count),
		opt("cacheWriteTokens", count),
		opt("cost", cost),
	).named(name, about)
}

// The shapes of tools.
var (
	connection = func() *shape {
		// What a connection of one transport does not tell, its gaps do.
		gap := closed(need("path", openEnum("url", "command", "args", "cwd", "addressForm", "address")).asShown(), need("reason", filled))
		transport := &shape{kind: shapeScheme, what: "transport", values: []string{"http", "sse", "stdio"}}
		s := closed(
			need("transport", transport),
			opt("url", httpURL),
			opt("command", filled),
			opt("args", list(text)),
			opt("cwd", filled),
			opt("addressForm", filled),
			opt("address", filled),
			opt("gaps", list(gap).some()),
		).named("connection", "How an MCP server is reached.")
		told := map[string][]string{"url": {"http", "sse"}, "command": {"stdio"}, "args": {"stdio"}, "cwd": {"stdio"}}
		for _, name := range []string{"url", "command", "args", "cwd", "addressForm", "address"} {
			of := has("transport", bitOther)
			other := hasNot("transport", bitOther)
			if values := told[name]; values != nil {
				of, other = s.is("transport", values...), s.isNot("transport", values...)
			}
			s.obeying(
				rule{when: []cond{of, hasNot("gaps", gap.members[0].shape.bits(name))}, need: []string{name}, because: "and not among gaps"},
				rule{when: []cond{other}, ban: []string{name}, because: "beside that transport"},
			)
		}
		return s
	}()
	mcp = closed(
		need("server", closed(need("id", filled), opt("name", filled))),
		need("toolName", filled),
		need("provenance", enum("runtime", "inferred")),
		need("connection", connection),
	).named("mcp", "The MCP server and tool behind a tool call.")
	tool = func() *shape {
		s := closed(
			need("name", filled),
			opt("kind", filled),
			need("input", opaque),
			need("origin", enum("native", "mcp")),
			opt("mcp", mcp),
		).named("tool", "A tool and what it is called with.")
		return s.obeying(
			rule{when: []cond{s.is("origin", "mcp")}, need: []string{"mcp"}},
			rule{when: []cond{s.is("origin", "native")}, ban: []string{"mcp"}, because: "beside origin native"},
		)
	}()
	batch = closed(need("id", filled), need("callIds", set(filled).some()), opt("synthesized", boolean)).
		named("batch", "The calls that were made together.")
	outcome    = enum("ok", "error", "denied", "cancelled", "timeout")
	fileChange = func() *shape {
		s := closed(
			need("path", filled),
			need("change", enum("created", "modified", "deleted", "moved")),
			opt("previousPath", filled),
			opt("before", contentPart),
			opt("after", contentPart),
		).named("fileChange", "What a tool did to a file.")
		return s.obeying(
			rule{when: []cond{s.is("change", "moved")}, need: []string{"previousPath"}},
			rule{when: []cond{s.is("change", "created")}, ban: []string{"before"}, because: "of a created file"},
			rule{when: []cond{s.is("change", "deleted")}, ban: []string{"after"}, because: "of a deleted file"},
		)
	}()
	batchCall = func() *shape {
		s := closed(
			need("call", identity),
			need("tool", tool),
			need("path", filled),
			opt("batch", batch),
			need("outcome", outcome),
			need("execution", execution),
		).named("batchCall", "One call of a batch and how it ended.")
		return s.obeying(rule{when: []cond{s.is("outcome", "denied")}, must: []cond{has("execution", bitPolicy)}, because: "of a denied call is not skipped by policy"})
	}()
)

func openEnum(values ...string) *shape {
	s := enum(values...)
	s.open, s.what = true, "non-empty string"
	return s
}

// The shapes of interaction, tasks and workspaces.
var (
	elicitationMode = enum("form", "url")
	change          = []member{need("source", filled), need("scope", filled), need("settings", list(filled)), need("summary", filled), opt("path", filled)}
	task            = closed(
		need("id", filled),
		need("operation", enum("create", "update", "remove")),
		need("change", opaque),
		opt("prior", opaque),
		opt("description", text),
		opt("synthesized", boolean),
	).named("task", "A task and what is done to it.")
	workspaceChange = func() *shape {
		s := closed(opt("cwd", filled), opt("workspaceRoots", set(filled))).
			named("workspaceChange", "Where the agent works.")
		s.filled = true
		return s
	}()
	workspace = closed(
		need("kind", enum("cwd", "roots", "switch")),
		need("change", workspaceChange),
		opt("prior", workspaceChange),
		opt("reason", text),
	).named("workspace", "What changes about where the agent works.")
)

// ofTool are the members of every event about one tool call.
func ofTool(own ...member) []member {
	return append([]member{need("call", identity), need("tool", tool), need("path", filled), opt("batch", batch)}, own...)
}

// ofTurn are those of events that tell no more of a turn than its identity.
func ofTurn(own ...member) []member { return append([]member{opt("turn", identity)}, own...) }

// eventShapes are the shapes of draft's events.
var eventShapes = [EventTypeCount]*shape{
	SessionStart: func() *shape {
		s := event(SessionStart,
			need("session", session),
			need("items", messageList),
			need("trigger", enum("startup", "resume", "clear", "compact", "fork")),
			opt("resumedFrom", identity),
			need("permissionMode", filled),
			need("manifest", manifest),
			ban("tool"), ban("outcome"),
		)
		return s.obeying(rule{when: []cond{s.is("trigger", "clear", "fork")}, need: []string{"resumedFrom"}})
	}(),
	SessionEnd: event(SessionEnd,
		need("session", session),
		need("outcome", enum("completed", "cancelled", "error", "unknown")),
		need("reason", filled),
		opt("counters", counters),
		ban("tool"),
	),
	ToolBefore: event(ToolBefore, ofTool(ban("outcome"), ban("execution"), ban("durationMs"), ban("fileChanges"))...),
	ToolAfter: func() *shape {
		s := event(ToolAfter, ofTool(
			need("items", messageList),
			need("outcome", outcome),
			need("execution", execution),
			opt("error", failure),
			opt("durationMs", amount),
			opt("fileChanges", list(fileChange)),
		)...)
		return s.obeying(
			rule{when: []cond{s.is("outcome", "error")}, need: []string{"error"}},
			rule{when: []cond{s.isNot("outcome", "error")}, ban: []string{"error"}, because: "beside that outcome"},
			rule{when: []cond{s.is("outcome", "denied")}, must: []cond{has("execution", bitPolicy)}, because: "of a denied call is not skipped by policy"},
			rule{when: []cond{has("execution", bitSkipped)}, ban: []string{"durationMs", "fileChanges"}, because: "of a skipped call"},
		)
	}(),
	ToolPermissionRequest: event(ToolPermissionRequest, ofTurn(ofTool(
		need("suggestions", list(opaque)),
		need("sandboxBypass", boolean),
		ban("decision"), ban("decidedBy"), ban("outcome"), ban("execution"),
	)...)...),
	ToolPermissionResolved: event(ToolPermissionResolved, ofTurn(ofTool(
		need("decision", enum("allow", "deny")),
		need("decidedBy", enum("user", "policy", "hook", "auto", "classifier")),
	)...)...),
	ToolProgress: event(ToolProgress, ofTurn(ofTool(
		need("partialOutput", canonical),
		need("backgrounded", boolean),
		ban("outcome"), ban("execution"),
	)...)...),
	ToolBatchAfter: event(ToolBatchAfter, ofTurn(need("batch", identity), need("calls", list(batchCall).some()))...),
	TurnStart: event(TurnStart,
		need("turn", identity),
		need("items", messageList),
		need("trigger", enum("user", "continuation", "hook", "external")),
		opt("expandedFrom", filled),
	),
	TurnFinishBefore: event(TurnFinishBefore, turnEnd()...),
	TurnEnd: func() *shape {
		s := event(TurnEnd, turnEnd(opt("error", failure))...)
		return s.obeying(rule{when: []cond{s.is("outcome", "completed")}, ban: []string{"error"}, because: "of a completed turn"})
	}(),
	TurnProgress: event(TurnProgress,
		need("turn", identity),
		need("item", identity),
		need("delta", canonical),
		need("final", boolean),
	),
	ModelRequestBefore: event(ModelRequestBefore, ofTurn(
		need("items", messageList),
		need("model", model),
		need("attempt", attempt),
		need("params", opaque),
		ban("usage"), ban("execution"), ban("finishReason"), ban("latencyMs"), ban("error"),
	)...),
	ModelResponseAfter: event(ModelResponseAfter, ofTurn(
		need("items", messageList),
		need("model", model),
		need("attempt", attempt),
		need("execution", suppliedExecution),
		opt("usage", attemptUsage),
		need("finishReason", filled),
		opt("latencyMs", amount),
		ban("error"),
	)...).obeying(rule{when: []cond{has("execution", bitSkipped)}, ban: []string{"usage", "latencyMs"}, because: "of a skipped request"}),
	ModelError: event(ModelError, ofTurn(
		need("model", model),
		need("attempt", attempt),
		need("execution", realExecution),
		need("error", failure),
		opt("usage", attemptUsage),
		opt("latencyMs", amount),
		opt("recovery", filled),
		ban("finishReason"),
	)...),
	ModelSwitchBefore: event(ModelSwitchBefore, ofTurn(
		need("current", model),
		need("proposed", model),
		need("reason", filled),
		opt("pricing", closed(need("currency", currency), opt("inputPerMillionTokens", amount), opt("outputPerMillionTokens", amount))),
		ban("previous"),
	)...),
	ModelSwitchAfter: event(ModelSwitchAfter, ofTurn(
		need("previous", model),
		need("current", model),
		need("reason", filled),
		ban("proposed"),
	)...),
	ContextCompactBefore: event(ContextCompactBefore, ofTurn(
		need("items", messageList),
		need("trigger", enum("auto", "manual", "hook")),
		opt("instructions", textParts),
		opt("tokenCounts", closed(opt("before", count))),
		ban("summary"), ban("removed"), ban("execution"),
	)...),
	ContextCompactAfter: event(ContextCompactAfter, ofTurn(
		opt("items", messageList),
		need("summary", textParts),
		need("removed", list(closed(need("id", filled)))),
		opt("tokenCounts", closed(opt("before", count), opt("after", count))),
		need("execution", suppliedExecution),
	)...),
	ConfigChangeBefore: event(ConfigChangeBefore, need("change", closed(change...))),
	ConfigChangeAfter:  event(ConfigChangeAfter, need("change", closed(append(slices.Clone(change), opt("mcpServers", list(opaque)))...))),
	UserAttention: event(UserAttention, need("attention", closed(
		need("kind", filled),
		need("message", textParts),
		need("title", textParts),
	))),
	UserElicitationRequest: event(UserElicitationRequest, need("elicitation", closed(
		need("server", filled),
		need("mode", elicitationMode),
		opt("request", textPart),
	))),
	UserElicitationResult: event(UserElicitationResult, need("elicitation", closed(
		need("server", filled),
		need("mode", elicitationMode),
		opt("result", textPart),
		need("action", enum("accept", "decline", "cancel")),
	))),
	UserMessageInbound: event(UserMessageInbound, need("message", closed(
		need("channel", filled),
		need("sender", filled),
		need("messages", list(userMessage)),
	))),
	UserMessageOutbound: event(UserMessageOutbound, need("message", closed(
		need("channel", filled),
		need("messages", list(assistantMessage)),
	))),
	HookFailure: event(HookFailure,
		need("failure", closed(
			need("backendId", filled),
			need("reason", filled),
			need("policy", enum("fail-open", "fail-closed")),
		)),
		need("parentEventId", filled),
	),
	TaskChangeBefore:      event(TaskChangeBefore, need("task", task)),
	TaskChangeAfter:       event(TaskChangeAfter, need("task", task)),
	WorkspaceChangeBefore: event(WorkspaceChangeBefore, need("workspace", workspace)),
	WorkspaceChangeAfter:  event(WorkspaceChangeAfter, need("workspace", workspace)),
	FileChanged: event(FileChanged, need("changes", list(closed(
		need("path", filled),
		need("operation", enum("create", "update", "remove")),
		need("agentCaused", boolean),
		opt("before", contentPart),
		opt("after", contentPart),
	)).some())),
}

// turnEnd are the members of the events at the end of a turn.
func turnEnd(own ...member) []member {
	return append([]member{
		need("turn", identity),
		need("items", messageList),
		need("outcome", enum("completed", "failed", "cancelled", "max_iterations")),
		opt("lastAssistantItem", identity),
		need("continuationCount", count),
		opt("usage", turnUsage),
	}, own...)
}
