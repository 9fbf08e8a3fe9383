package ahp

import "bytes"

// Response is a backend's answer to one hooks/intercept. The zero value is
// ready; Reset keeps the buffer for reuse.
type Response struct {
	// Body is the whole answer. The Backend fills it; everything below points into it.
	Body []byte
	// Effects is the raw JSON array of result.effects, or nil where the member
	// is absent, which draft reads as none.
	Effects []byte
}

// Reset empties r and keeps its buffer.
func (r *Response) Reset() { r.Body, r.Effects = r.Body[:0], nil }

// DecodeResponse reads r.Body as the answer to call and fills the rest of r.
//
// It accepts one strict JSON-RPC result with the call's id and snapshot; a
// JSON-RPC error is a failure of its own class. Whether the effects may be
// accepted is not decided here. AHP-RPC-001, AHP-VER-001, AHP-DEC-001.
func DecodeResponse(call *Call, r *Response) Failure {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.reset(r.Body)
	d := decoder{s: s}
	f := d.response(call, r)
	s.b = nil
	return f
}

func (d *decoder) response(call *Call, r *Response) Failure {
	if f := d.answer(call); !f.OK() {
		return f
	}
	switch {
	case d.has(fieldResultEffects) && d.kind(fieldResultEffects) != KindArray:
		return Failure{FailMissingResult, "result.effects is no list"}
	case !d.has(fieldResultEffects) && call.Version == V01:
		return Failure{FailMissingResult, "result.effects is missing"}
	}
	if call.Version == Draft {
		switch {
		case d.has(fieldResultManifest) || d.has(fieldResultConfiguration):
			return Failure{FailMalformedRPC, "result is that of another method"}
		case d.has(fieldResultExtensions) && (d.kind(fieldResultExtensions) != KindObject || d.s.foreign.has(nodeResultExtensions)):
			return Failure{FailMalformedRPC, "result.extensions is no object of reverse-DNS names"}
		}
	}
	r.Effects = d.raw(fieldResultEffects)
	return Failure{}
}

// answer checks what the answers to all methods have in common: one strict
// JSON-RPC result with the call's id and snapshot.
func (d *decoder) answer(call *Call) Failure {
	s := d.s
	if !s.scan(nodeRoot) {
		return Failure{FailMalformedJSON, "the answer is no strict JSON"}
	}
	if KindOf(s.b[skipSpace(s.b, 0):]) != KindObject || string(d.text(fieldJSONRPC)) != "2.0" || !d.has(fieldID) {
		return Failure{FailMalformedRPC, "the answer is no JSON-RPC 2.0 response"}
	}
	if d.has(fieldResult) == d.has(fieldError) {
		return Failure{FailMalformedRPC, "the answer has not exactly one of result and error"}
	}
	if d.has(fieldError) {
		return d.rpcError(call)
	}
	if !sameID(d.raw(fieldID), call.ID) {
		return Failure{FailIDMismatch, "the answer's id is not the request's"}
	}
	if d.kind(fieldResult) != KindObject {
		return Failure{FailMalformedRPC, "result is no object"}
	}
	switch {
	case !d.isText(fieldResultVersion):
		return Failure{FailMissingResult, "result.protocolVersion is missing"}
	case string(d.text(fieldResultVersion)) != call.Version.String():
		return Failure{FailVersionUnsupported, "result.protocolVersion is not the request's"}
	}
	return Failure{}
}

// rpcError classifies a JSON-RPC error answer. The error's own text is left
// out: it is the backend's, and no one has said that it holds no secret.
func (d *decoder) rpcError(call *Call) Failure {
	if d.kind(fieldError) != KindObject || !isInteger(d.raw(fieldErrorCode)) || !d.isText(fieldErrorMessage) {
		return Failure{FailMalformedRPC, "error has no code and message"}
	}
	// An error about a request whose id could not be read has the id null.
	if d.kind(fieldID) != KindNull && !sameID(d.raw(fieldID), call.ID) {
		return Failure{FailIDMismatch, "the error's id is not the request's"}
	}
	switch code := d.raw(fieldErrorCode); string(code) {
	case "-32001":
		return Failure{FailVersionUnsupported, "JSON-RPC error -32001"}
	case "-32002":
		return Failure{FailEventUnsupported, "JSON-RPC error -32002"}
	default:
		if len(code) > maxErrorCode {
			return Failure{FailRPCError, "JSON-RPC error"}
		}
		return Failure{FailRPCError, "JSON-RPC error " + string(code)}
	}
}

// maxErrorCode is how many digits of a backend's error code are told of.
const maxErrorCode = len("-2147483648")

// sameID reports whether two raw ids are the same: equal strings, however they
// are escaped, or the same number's text.
func sameID(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	return KindOf(a) == KindString && KindOf(b) == KindString && bytes.Equal(Text(a), Text(b))
}
