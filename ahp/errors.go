package ahp

// Code is a JSON-RPC 2.0 error code as the protocol uses it.
type Code int32

// Error codes of JSON-RPC and of the protocol.
const (
	CodeParse              Code = -32700
	CodeInvalidRequest     Code = -32600
	CodeMethodNotFound     Code = -32601
	CodeInvalidParams      Code = -32602
	CodeInternal           Code = -32603
	CodeUnsupportedVersion Code = -32001 // unsupported_protocol_version
	CodeUnsupportedEvent   Code = -32002 // unsupported_event
	CodeUnavailable        Code = -32003 // backend_unavailable
	CodeBackendInternal    Code = -32004 // backend_internal_error
)

// Error is a JSON-RPC error answer. Message is a fixed text of ours, with at
// most the path of a member; it never quotes what the caller sent.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return e.Message }
