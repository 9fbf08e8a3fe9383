package ahp

import "time"

// Call is one message on its way to a backend.
type Call struct {
	// Body is the whole JSON-RPC message. The backend neither changes nor
	// keeps it after it returns.
	Body []byte
	// ID is the raw JSON of the request's id that an answer must equal, as a
	// span of Body. Nil for a notification.
	ID []byte
	// Version is the snapshot the message is written in.
	Version Version
	// Deadline bounds everything: credentials, connect, send, the backend's
	// work, receive and parse (AHP-FAIL-002). It is never zero.
	Deadline time.Time
	// Budgeted says that Deadline is what is left of the chain's budget, and
	// sooner than the subscription's own: missing it is not the backend's failure.
	Budgeted bool
	// Traceparent and Tracestate are W3C trace context header values, or "".
	Traceparent, Tracestate string
}

// Backend is one policy backend behind whatever lies between it and the chain:
// the network, a circuit breaker, a test. Implementations are safe for
// concurrent use, never panic on a backend's answer, and always return by
// call.Deadline plus scheduling delay.
type Backend interface {
	// Intercept sends a hooks/intercept request and decodes the correlated
	// response into resp. A zero Failure means that resp holds a well-formed
	// JSON-RPC result of the call's snapshot with the call's id; whether its
	// effects may be accepted is for package decision. On failure the contents
	// of resp are meaningless.
	Intercept(call *Call, resp *Response) Failure
	// Observe sends a hooks/observe notification. Only 202 and 204 without a
	// body are success.
	Observe(call *Call) Failure
}
