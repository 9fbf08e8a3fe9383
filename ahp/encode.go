package ahp

import "strconv"

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
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = appendID(dst, id)
	dst = append(dst, `,"result":{"protocolVersion":"`...)
	dst = append(dst, v.String()...)
	dst = append(dst, `","configuration":`...)
	dst = append(dst, configuration...)
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

// What backends are told to be able to return.
var (
	noEffects  = []byte(`{"effects":[]}`)
	denyEffect = []byte(`{"effects":["deny"]}`)
)

// AppendIntercept appends to dst the request a backend is sent: m.Body byte for
// byte, except that the event shows no more than v does and, where the harness
// advertised anything but a deny, the capabilities are those that this gateway
// can enforce itself (AHP-CAP-001). Where nothing has to change, callers can
// send m.Body itself: see Verbatim.
func (m *Message) AppendIntercept(dst []byte, v View) []byte {
	var space [3]edit
	edits := m.project(space[:0], v)
	if !m.Capabilities.DenyOnly {
		e := edit{m.Capabilities.self, noEffects}
		if m.Capabilities.Effects.Has(EffectDeny) {
			e.with = denyEffect
		}
		edits = append(edits, e)
	}
	return splice(dst, m.Body, span{0, uint32(len(m.Body))}, edits)
}

// Verbatim reports whether AppendIntercept would change nothing for view v.
func (m *Message) Verbatim(v View) bool { return m.Whole(v) && m.Capabilities.DenyOnly }

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
