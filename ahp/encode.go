package ahp

import (
	"bytes"
	"strconv"
)

// AppendResult appends a JSON-RPC result to dst: the id as the caller wrote it,
// and the raw effects in order. AHP-VER-001, AHP-DEC-001.
func AppendResult(dst, id []byte, v Version, effects ...[]byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = appendID(dst, id)
	dst = append(dst, `,"result":{"protocolVersion":"`...)
	dst = append(dst, v.String()...)
	dst = append(dst, `","effects":[`...)
	for i, e := range effects {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, e...)
	}
	return append(dst, `]}}`...)
}

// AppendConfiguration appends the answer to hooks/configuration to dst:
// configuration is the raw JSON object of what is advertised.
func AppendConfiguration(dst, id []byte, v Version, configuration []byte) []byte {
	return appendNamed(dst, id, v, "configuration", configuration)
}

// AppendManifest appends the answer to hooks/capabilities to dst: manifest is
// the raw JSON object.
func AppendManifest(dst, id []byte, v Version, manifest []byte) []byte {
	return appendNamed(dst, id, v, "manifest", manifest)
}

// appendNamed appends a result with one raw member beside the version.
func appendNamed(dst, id []byte, v Version, name string, value []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = appendID(dst, id)
	dst = append(dst, `,"result":{"protocolVersion":"`...)
	dst = append(dst, v.String()...)
	dst = append(dst, `","`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	dst = append(dst, value...)
	return append(dst, `}}`...)
}

// AppendError appends a JSON-RPC error to dst. An unsupported version tells the
// supported ones, of which there is at least one, in data.
func AppendError(dst, id []byte, e *Error, supported ...Version) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = appendID(dst, id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":"`...)
	dst = appendText(dst, e.Message)
	dst = append(dst, '"')
	if e.Code == CodeUnsupportedVersion {
		dst = append(dst, `,"data":{"supported":[`...)
		for i, v := range supported {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, '"')
			dst = append(dst, v.String()...)
			dst = append(dst, '"')
		}
		dst = append(dst, `]}`...)
	}
	return append(dst, `}}`...)
}

func appendID(dst, id []byte) []byte {
	if id == nil {
		return append(dst, `null`...)
	}
	return append(dst, id...)
}

// AppendDeny appends a deny effect to dst. code may be empty.
func AppendDeny(dst []byte, reason, code string) []byte {
	dst = append(dst, `{"type":"deny","reason":"`...)
	dst = appendText(dst, reason)
	dst = append(dst, '"')
	if code != "" {
		dst = append(dst, `,"code":"`...)
		dst = appendText(dst, code)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// appendText appends valid UTF-8 as the content of a JSON string.
func appendText(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// DenyAlone are the capabilities of a request that lets a backend deny, and
// nothing else.
var DenyAlone = []byte(`{"effects":["deny"]}`)

// Shown returns what view v shows of event, which is m's own raw event or what
// has become of it: event itself where that is all of it, and otherwise dst with
// the rest appended.
func (m *Message) Shown(dst, event []byte, v View) []byte {
	of := m
	if !Same(event, m.Event.Raw) {
		of = m.with(event)
	}
	if of.Whole(v) {
		return event
	}
	var space [3]edit
	return splice(dst, of.Body, of.Event.self, of.project(space[:0], v))
}

// with returns a message that is nothing but another event in the place of m's.
func (m *Message) with(event []byte) *Message {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.reset(event)
	s.scan(nodeEvent) // it is JSON: it was decoded, or spliced from what was
	other := &Message{Body: event, Version: m.Version}
	other.Event = Event{Type: m.Event.Type, Raw: event, self: span{0, uint32(len(event))}, native: s.native}
	if m.Version == Draft {
		walkParts(event, m.Event.Type, func([]byte) bool { other.Event.hasContent = true; return false })
	}
	s.b = nil
	return other
}

// Same reports whether two slices are the same bytes of memory: whether Shown or
// Compose has given back what it was given.
func Same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// Compose returns m with another raw event, capabilities and state, byte for
// byte but for what differs: m.Body itself where nothing does, and otherwise dst
// with the message appended. An empty state leaves m's own, or none.
func (m *Message) Compose(dst, event, capabilities, state []byte) []byte {
	var space [3]edit
	edits := space[:0]
	if !Same(event, m.Event.Raw) {
		edits = append(edits, edit{m.Event.self, event})
	}
	if !bytes.Equal(capabilities, m.Capabilities.Raw) {
		edits = append(edits, edit{m.Capabilities.self, capabilities})
	}
	if len(state) > 0 && !bytes.Equal(state, m.State) {
		at := m.state
		if !at.present() {
			at = span{m.Capabilities.self.end, m.Capabilities.self.end}
			state = append([]byte(`,"state":`), state...)
		}
		edits = append(edits, edit{at, state})
	}
	if len(edits) == 0 {
		return m.Body
	}
	return splice(dst, m.Body, span{0, uint32(len(m.Body))}, edits)
}

// AppendObserve appends to dst a hooks/observe notification about m's event as
// view v shows it.
func (m *Message) AppendObserve(dst []byte, v View) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"`...)
	dst = append(dst, m.Version.String()...)
	dst = append(dst, `","event":`...)
	var space [2]edit
	dst = splice(dst, m.Body, m.Event.self, m.project(space[:0], v))
	return append(dst, `}}`...)
}
