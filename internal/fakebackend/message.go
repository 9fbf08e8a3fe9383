package fakebackend

import "encoding/json"

// Message is what the server reads of a JSON-RPC message in order to answer
// it. Members that are missing or of another type are empty.
type Message struct {
	// RPCMethod is the member "method", for example "hooks/intercept".
	RPCMethod string
	// ID is the raw JSON of the member "id", or nil for a notification.
	ID json.RawMessage
	// Version is params.protocolVersion.
	Version string
	// EventType is params.event.type.
	EventType string
	// EventID is params.event.id.
	EventID string
}

func readMessage(body []byte) Message {
	var wire struct {
		Method string
		ID     json.RawMessage
		Params struct {
			ProtocolVersion string
			Event           struct{ ID, Type string }
		}
	}
	// A body that is no message leaves the members empty; the answer then
	// correlates with nothing, which is what a test of such a body wants.
	_ = json.Unmarshal(body, &wire)
	return Message{
		RPCMethod: wire.Method,
		ID:        wire.ID,
		Version:   wire.Params.ProtocolVersion,
		EventType: wire.Params.Event.Type,
		EventID:   wire.Params.Event.ID,
	}
}

// clone returns m without memory of the request that it was read from.
func (m Message) clone() Message {
	m.ID = append(json.RawMessage(nil), m.ID...)
	return m
}
