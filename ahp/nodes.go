package ahp

// node is an object of a message whose members mean something to the decoder.
type node uint8

const (
	nodeOpaque node = iota // anything else: validated, not looked into
	nodeRoot
	nodeParams
	nodeEvent
	nodeSession
	nodeAgent
	nodeTool
	nodeToolError
	nodeCall
	nodeHarness
	nodeNative
	nodeCapabilities
	nodeState
	nodeExtensions
	nodeParamsExtensions
	nodeResultExtensions
	nodeResult
	nodeError
)

// nodeSet is a set of nodes.
type nodeSet uint32

func (s nodeSet) has(n node) bool { return s&(1<<n) != 0 }

// field is the value of one known member of one known node.
type field uint8

const (
	fieldNone field = iota
	fieldJSONRPC
	fieldID
	fieldMethod
	fieldParams
	fieldResult
	fieldError
	fieldVersion // of params
	fieldEvent
	fieldCapabilities
	fieldState
	fieldParamsExtensions
	fieldEventID
	fieldSource
	fieldType
	fieldTime
	fieldSession
	fieldTool
	fieldCall
	fieldHarness
	fieldPath
	fieldNative
	fieldItems
	fieldExtensions
	fieldOutcome
	fieldExecution
	fieldDuration
	fieldFileChanges
	fieldSessionID
	fieldCwd
	fieldWorkspaceRoots
	fieldModel
	fieldAgent
	fieldAgentID
	fieldAgentType
	fieldCallID01 // tool.callId of 0.1
	fieldToolName
	fieldToolKind
	fieldToolInput
	fieldToolOutput
	fieldToolError
	fieldToolErrorMessage
	fieldToolOrigin
	fieldToolMCP
	fieldCallID // call.id of draft
	fieldCallSynthesized
	fieldHarnessName
	fieldHarnessVersion
	fieldNativeProvider
	fieldNativeEventName
	fieldNativePayload
	fieldEffects // of capabilities
	fieldPermission
	fieldCandidate
	fieldFlow
	fieldInstructions
	fieldInjections
	fieldResultVersion
	fieldResultEffects
	fieldResultManifest
	fieldResultConfiguration
	fieldResultExtensions
	fieldErrorCode
	fieldErrorMessage

	fieldCount
)

// known says what the member of node n with that name is: which field holds
// its value and which node its value is. It also notes the nodes with a member
// that it does not know, or that is no reverse-DNS name among extensions:
// some objects of the protocol are closed.
func (s *scanner) known(n node, name []byte) (field, node) {
	switch n {
	case nodeRoot:
		switch string(name) {
		case "jsonrpc":
			return fieldJSONRPC, nodeOpaque
		case "id":
			return fieldID, nodeOpaque
		case "method":
			return fieldMethod, nodeOpaque
		case "params":
			return fieldParams, nodeParams
		case "result":
			return fieldResult, nodeResult
		case "error":
			return fieldError, nodeError
		}
	case nodeParams:
		switch string(name) {
		case "protocolVersion":
			return fieldVersion, nodeOpaque
		case "event":
			return fieldEvent, nodeEvent
		case "capabilities":
			return fieldCapabilities, nodeCapabilities
		case "state":
			return fieldState, nodeState
		case "extensions":
			return fieldParamsExtensions, nodeParamsExtensions
		}
	case nodeEvent:
		switch string(name) {
		case "id":
			return fieldEventID, nodeOpaque
		case "source":
			return fieldSource, nodeOpaque
		case "type":
			return fieldType, nodeOpaque
		case "time":
			return fieldTime, nodeOpaque
		case "session":
			return fieldSession, nodeSession
		case "tool":
			return fieldTool, nodeTool
		case "call":
			return fieldCall, nodeCall
		case "harness":
			return fieldHarness, nodeHarness
		case "path":
			return fieldPath, nodeOpaque
		case "native":
			return fieldNative, nodeNative
		case "items":
			return fieldItems, nodeOpaque
		case "extensions":
			return fieldExtensions, nodeExtensions
		case "outcome":
			return fieldOutcome, nodeOpaque
		case "execution":
			return fieldExecution, nodeOpaque
		case "durationMs":
			return fieldDuration, nodeOpaque
		case "fileChanges":
			return fieldFileChanges, nodeOpaque
		}
	case nodeSession:
		switch string(name) {
		case "id":
			return fieldSessionID, nodeOpaque
		case "cwd":
			return fieldCwd, nodeOpaque
		case "workspaceRoots":
			return fieldWorkspaceRoots, nodeOpaque
		case "model":
			return fieldModel, nodeOpaque
		case "agent":
			return fieldAgent, nodeAgent
		}
	case nodeAgent:
		switch string(name) {
		case "id":
			return fieldAgentID, nodeOpaque
		case "type":
			return fieldAgentType, nodeOpaque
		}
	case nodeTool:
		switch string(name) {
		case "callId":
			// Not a member of draft's closed object.
			s.foreign |= 1 << nodeTool
			return fieldCallID01, nodeOpaque
		case "name":
			return fieldToolName, nodeOpaque
		case "kind":
			return fieldToolKind, nodeOpaque
		case "input":
			return fieldToolInput, nodeOpaque
		case "output":
			s.foreign |= 1 << nodeTool
			return fieldToolOutput, nodeOpaque
		case "error":
			s.foreign |= 1 << nodeTool
			return fieldToolError, nodeToolError
		case "origin":
			return fieldToolOrigin, nodeOpaque
		case "mcp":
			return fieldToolMCP, nodeOpaque
		}
	case nodeToolError:
		if string(name) == "message" {
			return fieldToolErrorMessage, nodeOpaque
		}
	case nodeCall:
		switch string(name) {
		case "id":
			return fieldCallID, nodeOpaque
		case "synthesized":
			return fieldCallSynthesized, nodeOpaque
		}
	case nodeHarness:
		switch string(name) {
		case "name":
			return fieldHarnessName, nodeOpaque
		case "version":
			return fieldHarnessVersion, nodeOpaque
		}
	case nodeNative:
		switch string(name) {
		case "provider":
			return fieldNativeProvider, nodeOpaque
		case "eventName":
			return fieldNativeEventName, nodeOpaque
		case "payload":
			return fieldNativePayload, nodeOpaque
		}
	case nodeCapabilities:
		if string(name) == "effects" {
			return fieldEffects, nodeOpaque
		}
	case nodeState:
		switch string(name) {
		case "permission":
			return fieldPermission, nodeOpaque
		case "candidate":
			return fieldCandidate, nodeOpaque
		case "flow":
			return fieldFlow, nodeOpaque
		case "instructions":
			return fieldInstructions, nodeOpaque
		case "injections":
			return fieldInjections, nodeOpaque
		}
	case nodeExtensions, nodeParamsExtensions, nodeResultExtensions:
		if IsReverseDNS(name) {
			return fieldNone, nodeOpaque
		}
	case nodeResult:
		switch string(name) {
		case "protocolVersion":
			return fieldResultVersion, nodeOpaque
		case "effects":
			return fieldResultEffects, nodeOpaque
		case "manifest":
			return fieldResultManifest, nodeOpaque
		case "configuration":
			return fieldResultConfiguration, nodeOpaque
		case "extensions":
			return fieldResultExtensions, nodeResultExtensions
		}
	case nodeError:
		switch string(name) {
		case "code":
			return fieldErrorCode, nodeOpaque
		case "message":
			return fieldErrorMessage, nodeOpaque
		}
	}
	s.foreign |= 1 << n
	return fieldNone, nodeOpaque
}
