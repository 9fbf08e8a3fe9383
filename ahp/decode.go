package ahp

import (
	"bytes"
	"sync"
)

// Method is a JSON-RPC method of the protocol. The zero value is none of them.
type Method uint8

// The methods. Capabilities and configuration exist in draft only.
const (
	MethodUnknown Method = iota
	MethodIntercept
	MethodObserve
	MethodCapabilities
	MethodConfiguration
)

// String returns the method's name on the wire, or "unknown".
func (m Method) String() string {
	switch m {
	case MethodIntercept:
		return "hooks/intercept"
	case MethodObserve:
		return "hooks/observe"
	case MethodCapabilities:
		return "hooks/capabilities"
	case MethodConfiguration:
		return "hooks/configuration"
	default:
		return "unknown"
	}
}

func parseMethod(name []byte) Method {
	switch string(name) {
	case "hooks/intercept":
		return MethodIntercept
	case "hooks/observe":
		return MethodObserve
	case "hooks/capabilities":
		return MethodCapabilities
	case "hooks/configuration":
		return MethodConfiguration
	default:
		return MethodUnknown
	}
}

// Message is a harness's request or notification. Its byte slices are spans of
// Body, except for strings that were written with escapes.
type Message struct {
	Body []byte
	// Method is the JSON-RPC method; only intercept and observe carry an event.
	Method Method
	// Notification is true without an id: the message is never answered.
	Notification bool
	// ID is the raw JSON of the request's id, or nil.
	ID           []byte
	Version      Version
	Event        Event
	Capabilities Capabilities
	// State is the raw params.state of draft, or nil.
	State []byte
	state span // of State
	// Halted is true where params.state already holds a deny or a stop: a
	// harness in that state calls no interceptor any more.
	Halted bool
}

// Event is the event of a Message. Raw members are JSON; the others are text
// without quotes and escapes, nil where the member is absent.
type Event struct {
	Type      EventType
	Raw       []byte
	ID        []byte
	Source    []byte
	SessionID []byte
	CallID    []byte
	ToolName  []byte
	Input     []byte // raw tool.input, or nil

	self       span // the event itself
	native     span // its native member, from the name to the end of the value
	hasContent bool // it has content parts
}

// Capabilities is what a harness advertised for one interception. AHP-CAP-001.
type Capabilities struct {
	// Raw is the object, and Effects the known families in its effects.
	Raw     []byte
	Effects EffectSet
	// DenyOnly is true where the effects are exactly ["deny"].
	DenyOnly bool

	self span
}

// scanners holds scanners for reuse: they keep their stack of names.
var scanners = sync.Pool{New: func() any { return &scanner{names: make([]memberName, 0, 4*manyNames)} }}

// Decode reads one request or notification of a harness from body into m.
//
// A non-nil Error is what the harness is to be told, unless m.Notification is
// set: then it is told nothing. m.ID is set as soon as an id could be read.
// Checks run in the order parse, envelope, method, version, params, event, and
// the first that fails decides (AHP-RPC-001, AHP-VER-001, AHP-CAP-002,
// AHP-TB-001). Decode keeps body in m and changes neither.
func Decode(body []byte, m *Message) *Error {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.reset(body)
	*m = Message{Body: body}
	d := decoder{s: s, m: m}
	err := d.decode()
	s.b = nil
	return err
}

// decoder checks what a scanner found and fills a Message from it.
type decoder struct {
	s *scanner
	m *Message
}

func (d *decoder) raw(f field) []byte  { return d.s.fields[f].of(d.s.b) }
func (d *decoder) text(f field) []byte { return Text(d.raw(f)) }
func (d *decoder) kind(f field) Kind   { return KindOf(d.raw(f)) }
func (d *decoder) has(f field) bool    { return d.s.fields[f].present() }
func (d *decoder) isText(f field) bool { return d.kind(f) == KindString }
func (d *decoder) filled(f field) bool { return len(d.raw(f)) > 2 && d.isText(f) }

// invalid is the answer to something that is no JSON-RPC request: it is never a
// notification, and its id, if it has one, is not to be relied on.
func (d *decoder) invalid(why string) *Error {
	d.m.Notification, d.m.ID = false, nil
	return &Error{Code: CodeInvalidRequest, Message: "Invalid Request: " + why}
}

func params(message string) *Error { return &Error{Code: CodeInvalidParams, Message: message} }

func (d *decoder) decode() *Error {
	s, m := d.s, d.m
	if !s.scan(nodeRoot) {
		return &Error{Code: CodeParse, Message: "Parse error"}
	}
	if KindOf(s.b[skipSpace(s.b, 0):]) != KindObject {
		return d.invalid("not an object")
	}
	switch d.kind(fieldID) {
	case KindNone:
		m.Notification = true
	case KindString, KindNull:
		m.ID = d.raw(fieldID)
	case KindNumber:
		if !isInteger(d.raw(fieldID)) {
			return d.invalid("id is no integer")
		}
		m.ID = d.raw(fieldID)
	default:
		return d.invalid("id is neither string nor integer")
	}
	if string(d.text(fieldJSONRPC)) != "2.0" {
		return d.invalid(`jsonrpc is not "2.0"`)
	}
	if !d.isText(fieldMethod) {
		return d.invalid("method is no string")
	}
	if m.Method = parseMethod(d.text(fieldMethod)); m.Method == MethodUnknown {
		return &Error{Code: CodeMethodNotFound, Message: "Method not found"}
	}
	if d.isText(fieldVersion) {
		v, ok := ParseVersion(string(d.text(fieldVersion)))
		if !ok {
			return &Error{Code: CodeUnsupportedVersion, Message: "Unsupported AHP protocol version"}
		}
		m.Version = v
	}
	return d.params()
}

// isInteger reports whether raw is a number without fraction and exponent.
func isInteger(raw []byte) bool {
	return KindOf(raw) == KindNumber && !bytes.ContainsAny(raw, ".eE")
}

// params checks everything below params. The version is known or missing here.
func (d *decoder) params() *Error {
	m := d.m
	switch {
	case d.kind(fieldParams) != KindObject:
		return params("params is no object")
	case m.Version == 0:
		return params("params.protocolVersion is missing")
	case m.Version == V01 && (m.Method == MethodCapabilities || m.Method == MethodConfiguration):
		return &Error{Code: CodeMethodNotFound, Message: "Method not found"}
	case m.Method == MethodCapabilities || m.Method == MethodConfiguration:
		if d.s.foreign.has(nodeParams) || d.has(fieldEvent) || d.has(fieldCapabilities) || d.has(fieldState) || d.has(fieldParamsExtensions) {
			return params("params has more than protocolVersion")
		}
		if m.Notification {
			return params("the method is a request's and there is no id")
		}
		if d.kind(fieldID) == KindNull || d.isText(fieldID) && !d.filled(fieldID) {
			return params("id is empty")
		}
		return nil
	case m.Method == MethodObserve && !m.Notification:
		return params("hooks/observe is a notification and has no id")
	case d.kind(fieldEvent) != KindObject:
		return params("params.event is no object")
	}
	if err := d.common(); err != nil {
		return err
	}
	t := d.eventType()
	if m.Method == MethodIntercept {
		if err := d.intercept(t); err != nil {
			return err
		}
	}
	if t == EventUnknown {
		return &Error{Code: CodeUnsupportedEvent, Message: "Unsupported event"}
	}
	m.Event.Type = t
	if m.Version == V01 {
		return d.payload01(t)
	}
	return d.payloadDraft(t)
}

// eventType returns the event, if the snapshot has it for the method.
func (d *decoder) eventType() EventType {
	t, ok := eventByName[string(d.text(fieldType))]
	if !ok || d.m.Method == MethodIntercept && !t.Interceptable(d.m.Version) || d.m.Method == MethodObserve && !t.Observable(d.m.Version) {
		return EventUnknown
	}
	return t
}

// common checks and takes the members that every event has.
func (d *decoder) common() *Error {
	m, e := d.m, &d.m.Event
	switch {
	case !d.filled(fieldEventID):
		return params("params.event.id is no non-empty string")
	case !d.isText(fieldSource) || !isURI(d.text(fieldSource)):
		return params("params.event.source is no absolute URI")
	case !d.isText(fieldType):
		return params("params.event.type is no string")
	case !d.isText(fieldTime) || !isDateTime(d.text(fieldTime)):
		return params("params.event.time is no RFC 3339 date-time")
	case d.has(fieldExtensions) && (d.kind(fieldExtensions) != KindObject || d.s.foreign.has(nodeExtensions)):
		return params("params.event.extensions is no object of reverse-DNS names") // AHP-EXT-001
	case d.has(fieldSession) || m.Version == V01:
		if err := d.session(); err != nil {
			return err
		}
	}
	if m.Version == V01 && d.has(fieldNative) && (d.kind(fieldNative) != KindObject ||
		!d.isText(fieldNativeProvider) || !d.isText(fieldNativeEventName) || !d.has(fieldNativePayload)) {
		return params("params.event.native is no {provider, eventName, payload}")
	}
	if m.Version == Draft && (d.kind(fieldHarness) != KindObject || !d.filled(fieldHarnessName) ||
		!d.filled(fieldHarnessVersion) || d.s.foreign.has(nodeHarness)) {
		return params("params.event.harness is no {name, version}") // AHP-CORE-005
	}
	e.Raw, e.self = d.raw(fieldEvent), d.s.fields[fieldEvent]
	e.ID, e.Source = d.text(fieldEventID), d.text(fieldSource)
	e.SessionID = d.text(fieldSessionID)
	e.ToolName = d.text(fieldToolName)
	if e.CallID = d.text(fieldCallID); m.Version == V01 {
		e.CallID = d.text(fieldCallID01)
	}
	e.Input = d.raw(fieldToolInput)
	e.native = d.s.native
	return nil
}

func (d *decoder) session() *Error {
	switch {
	case d.kind(fieldSession) != KindObject || !d.isText(fieldSessionID):
		return params("params.event.session has no id")
	case !d.filled(fieldSessionID):
		return params("params.event.session.id is empty")
	case d.has(fieldCwd) && !d.isText(fieldCwd):
		return params("params.event.session.cwd is no string")
	case d.has(fieldModel) && !d.isText(fieldModel):
		return params("params.event.session.model is no string")
	case d.has(fieldWorkspaceRoots) && !isTexts(d.raw(fieldWorkspaceRoots)):
		return params("params.event.session.workspaceRoots is no list of strings")
	case d.has(fieldAgent) && (d.kind(fieldAgent) != KindObject || !d.filled(fieldAgentID) ||
		d.has(fieldAgentType) && !d.isText(fieldAgentType)):
		return params("params.event.session.agent has no id")
	}
	return nil
}

// isTexts reports whether raw is an array of strings.
func isTexts(raw []byte) bool {
	if KindOf(raw) != KindArray {
		return false
	}
	for e := range Elements(raw) {
		if KindOf(e) != KindString {
			return false
		}
	}
	return true
}

// intercept checks and takes what only a hooks/intercept has. Of an event that
// cannot be intercepted, the unknown one, it does so as far as it can be told.
func (d *decoder) intercept(t EventType) *Error {
	m := d.m
	if m.Notification {
		return params("hooks/intercept is a request and has an id")
	}
	if !d.isText(fieldID) || string(d.text(fieldID)) != string(m.Event.ID) {
		return params("id is not params.event.id")
	}
	if m.Version == Draft && d.has(fieldParamsExtensions) &&
		(d.kind(fieldParamsExtensions) != KindObject || d.s.foreign.has(nodeParamsExtensions)) {
		return params("params.extensions is no object of reverse-DNS names")
	}
	if d.kind(fieldCapabilities) != KindObject || d.kind(fieldEffects) != KindArray {
		return params("params.capabilities.effects is no list")
	}
	c := &m.Capabilities
	c.Raw, c.self = d.raw(fieldCapabilities), d.s.fields[fieldCapabilities]
	count := 0
	for raw := range Elements(d.raw(fieldEffects)) {
		if KindOf(raw) != KindString {
			return params("params.capabilities.effects is no list of strings")
		}
		name := Text(raw)
		e, ok := LookupEffect(m.Version, name)
		switch {
		case !ok && !IsReverseDNS(name):
			return params("params.capabilities.effects has an unknown effect")
		case ok && c.Effects.Has(e):
			return params("params.capabilities.effects names an effect twice")
		case ok:
			c.Effects = c.Effects.With(e)
		}
		count++
	}
	c.DenyOnly = count == 1 && c.Effects.Has(EffectDeny)
	if m.Version == V01 && !c.Effects.Has(EffectDeny) {
		return params("params.capabilities.effects lacks deny") // AHP-CAP-002
	}
	if m.Version == V01 {
		return nil
	}
	if err := d.capabilities(t); err != nil {
		return err
	}
	if d.has(fieldState) {
		return d.state(t)
	}
	return nil
}

// capabilities checks params.capabilities of draft.
func (d *decoder) capabilities(t EventType) *Error {
	s := capabilityShapes[t]
	if s == nil {
		s = anyCapabilities
	} else if c := &d.m.Capabilities; c.DenyOnly && t.Bounds().Effects.Has(EffectDeny) && !d.s.foreign.has(nodeCapabilities) {
		return nil
	}
	return d.fits(s, fieldCapabilities, "params.capabilities")
}

// state checks params.state of draft.
func (d *decoder) state(t EventType) *Error {
	if d.kind(fieldState) != KindObject {
		return params("params.state is no object")
	}
	switch string(d.text(fieldPermission)) {
	case "none", "allow", "ask":
	case "deny":
		d.m.Halted = true
	default:
		return params("params.state.permission is none of none, allow, ask, deny")
	}
	d.m.Halted = d.m.Halted || string(d.text(fieldFlow)) == "stop"
	if d.kind(fieldCandidate) != KindNull || d.has(fieldFlow) || d.has(fieldInstructions) || d.has(fieldInjections) {
		if err := d.fits(stateShapes[t], fieldState, "params.state"); err != nil {
			return err
		}
	}
	d.m.State, d.m.state = d.raw(fieldState), d.s.fields[fieldState]
	return nil
}

// fits holds a known member against a shape.
func (d *decoder) fits(s *shape, f field, path string) *Error {
	w := walker{b: d.s.b}
	if !w.fits(s, int(d.s.fields[f].start)) {
		return params(w.misfit(path))
	}
	d.m.Event.hasContent = d.m.Event.hasContent || f == fieldEvent && w.content
	return nil
}

func (d *decoder) payload01(t EventType) *Error {
	switch t {
	case SessionStart, SessionEnd:
		if d.has(fieldTool) {
			return params("params.event.tool stands in an event that is about no tool")
		}
		if t == SessionEnd && d.has(fieldOutcome) {
			switch string(d.text(fieldOutcome)) {
			case "completed", "cancelled", "error", "unknown":
			default:
				return params("params.event.outcome is none of completed, cancelled, error, unknown")
			}
		}
		return nil
	}
	switch {
	case d.kind(fieldTool) != KindObject:
		return params("params.event.tool is no object")
	case !d.filled(fieldCallID01):
		return params("params.event.tool.callId is no non-empty string")
	case !d.filled(fieldToolName):
		return params("params.event.tool.name is no non-empty string")
	case d.kind(fieldToolInput) != KindObject:
		return params("params.event.tool.input is no object")
	case d.has(fieldToolMCP) && d.kind(fieldToolMCP) != KindObject:
		return params("params.event.tool.mcp is no object")
	case t != ToolAfter && d.has(fieldToolOutput):
		return params("params.event.tool.output stands outside tool.after")
	case t != ToolError && d.has(fieldToolError):
		return params("params.event.tool.error stands outside tool.error")
	case t == ToolError && (d.kind(fieldToolError) != KindObject || !d.has(fieldToolErrorMessage)):
		// The snapshot says of the message that it is there, not what it is.
		return params("params.event.tool.error has no message")
	}
	switch string(d.text(fieldToolKind)) {
	case "shell", "file_read", "file_write", "file_edit", "search", "fetch", "task", "mcp", "other":
		return nil
	default:
		return params("params.event.tool.kind is none of the snapshot's kinds")
	}
}

func (d *decoder) payloadDraft(t EventType) *Error {
	if t == ToolBefore && d.isPlainCall() {
		return nil
	}
	return d.fits(eventShapes[t], fieldEvent, "params.event")
}

// isPlainCall reports whether a tool.before has no members but the usual ones
// and those are as they should be: most are, and the scanner has seen to them
// already.
func (d *decoder) isPlainCall() bool {
	const usual = 1<<nodeEvent | 1<<nodeSession | 1<<nodeCall | 1<<nodeTool
	return d.s.foreign&usual == 0 &&
		d.kind(fieldCall) == KindObject && d.filled(fieldCallID) && (!d.has(fieldCallSynthesized) || d.kind(fieldCallSynthesized) == KindBool) &&
		d.filled(fieldPath) &&
		d.kind(fieldTool) == KindObject && d.filled(fieldToolName) && d.kind(fieldToolInput) == KindObject &&
		(!d.has(fieldToolKind) || d.filled(fieldToolKind)) && string(d.text(fieldToolOrigin)) == "native" && !d.has(fieldToolMCP) &&
		!d.has(fieldItems) && !d.has(fieldOutcome) && !d.has(fieldExecution) && !d.has(fieldDuration) && !d.has(fieldFileChanges)
}
