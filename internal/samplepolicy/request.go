package samplepolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The protocol's error codes that these backends use.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeUnsupportedVersion = -32001
	codeUnsupportedEvent   = -32002
)

// maxDepth is how deep a message may nest.
const maxDepth = 128

// call is what a policy looks at: one tool call before it runs.
type call struct {
	// kind is one of the portable kinds, or "" where the event does not say.
	kind  string
	name  string
	input map[string]any
}

// request is a message that was read. A notification has a nil id.
type request struct {
	id      any
	version string
	call    call
}

// rpcError is the error member of an answer.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func failure(code int, message string) *rpcError { return &rpcError{Code: code, Message: message} }

// parseRequest reads one message. With an error, the request's id is the one
// to answer with, nil if there is none. A notification is never an error.
func parseRequest(body []byte) (request, *rpcError) {
	value, err := parseJSON(body)
	if err != nil {
		return request{}, failure(codeParse, "Parse error")
	}
	// Members are looked up in maps on purpose: struct decoding ignores case,
	// so "Input" beside "input" could show a policy other text than the tool gets.
	message, ok := value.(map[string]any)
	if !ok {
		return request{}, failure(codeInvalidRequest, "The message must be one object")
	}
	id, hasID := message["id"]
	method, hasMethod := message["method"].(string)
	if message["jsonrpc"] == "2.0" && hasMethod && !hasID {
		return request{}, nil
	}
	switch id.(type) {
	case string, json.Number:
	default:
		return request{}, failure(codeInvalidRequest, "id must be a string or a number")
	}
	req := request{id: id}
	switch {
	case message["jsonrpc"] != "2.0":
		return req, failure(codeInvalidRequest, `jsonrpc must be "2.0"`)
	case !hasMethod:
		return req, failure(codeInvalidRequest, "method must be a string")
	case method == "hooks/observe":
		return req, failure(codeInvalidRequest, "hooks/observe is a notification and has no id")
	case method != "hooks/intercept":
		return req, failure(codeMethodNotFound, "Method not found")
	}
	params := message["params"]
	if req.version = stringAt(params, "protocolVersion"); req.version == "" {
		return req, invalid("params.protocolVersion", "a non-empty string")
	}
	required, ok := requiredStrings[req.version]
	if !ok {
		return req, &rpcError{codeUnsupportedVersion, "unsupported_protocol_version",
			map[string]any{"supported": []string{"0.1", "draft"}}}
	}
	if stringAt(params, "event.id") == "" || stringAt(params, "event.id") != id {
		return req, invalid("params.event.id", "the request's id")
	}
	if stringAt(params, "event.type") == "" {
		return req, invalid("params.event.type", "a non-empty string")
	}
	effects, ok := at(params, "capabilities.effects").([]any)
	if !ok {
		return req, invalid("params.capabilities.effects", "an array")
	}
	if stringAt(params, "event.type") != "tool.before" {
		return req, failure(codeUnsupportedEvent, "unsupported_event")
	}
	if !slices.Contains(effects, any("deny")) {
		return req, invalid("params.capabilities.effects", `an array that holds "deny"`)
	}
	for _, path := range required {
		if stringAt(params, path) == "" {
			return req, invalid("params."+path, "a non-empty string")
		}
	}
	req.call.name = stringAt(params, "event.tool.name")
	if req.call.input, ok = at(params, "event.tool.input").(map[string]any); !ok {
		return req, invalid("params.event.tool.input", "an object")
	}
	kind := stringAt(params, "event.tool.kind")
	if slices.Contains(toolKinds, kind) {
		req.call.kind = kind
	} else if req.version == "0.1" {
		return req, invalid("params.event.tool.kind", "one of "+strings.Join(toolKinds, ", "))
	}
	return req, nil
}

// toolKinds are the portable tool kinds. draft has others too, and they say
// nothing to these policies.
var toolKinds = []string{"shell", "file_read", "file_write", "file_edit", "search", "fetch", "task", "mcp", "other"}

// requiredStrings are the members of params that a tool.before event must have
// in each snapshot, beside those that both check alike.
var requiredStrings = map[string][]string{
	"0.1": {"event.source", "event.time", "event.session.id",
		"event.tool.name", "event.tool.kind", "event.tool.callId"},
	"draft": {"event.source", "event.time", "event.harness.name", "event.harness.version",
		"event.call.id", "event.tool.name", "event.tool.origin", "event.path"},
}

func invalid(path, want string) *rpcError {
	return failure(codeInvalidParams, path+" must be "+want)
}

// at returns the member of v at a dotted path, or nil.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// stringAt returns the string at a dotted path, or "".
func stringAt(v any, path string) string {
	s, _ := at(v, path).(string)
	return s
}

// parseJSON reads one JSON value. It refuses what two readers could understand
// differently, because the tool may be the other reader: a member that occurs
// twice and invalid UTF-8, both of which encoding/json lets pass.
func parseJSON(body []byte) (any, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, errors.New("not one JSON value in UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return parseValue(dec, maxDepth)
}

// parseValue reads the next value of dec, which may nest depth deep.
func parseValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == 0 {
		return nil, errors.New("nested too deep")
	}
	object, array := map[string]any{}, []any{}
	for dec.More() {
		var name string
		if delim == '{' {
			token, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name = token.(string)
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("member %.64q occurs twice", name)
			}
		}
		value, err := parseValue(dec, depth-1)
		if err != nil {
			return nil, err
		}
		if delim == '{' {
			object[name] = value
		} else {
			array = append(array, value)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if delim == '{' {
		return object, nil
	}
	return array, nil
}
