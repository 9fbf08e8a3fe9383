package ahp

// FailureClass is why a backend's turn in a chain was an operational failure.
// It is what metrics labels, audit records and policy read; text is for people.
// The zero value means that there was no failure.
type FailureClass uint8

// The failure classes. Their names on the wire of metrics and audit records
// are those of String and never change meaning.
const (
	NoFailure FailureClass = iota

	// FailDeadline: no complete answer inside the subscription's timeoutMs.
	FailDeadline
	// FailBudget: the chain's own budget ended before this turn could.
	FailBudget
	// FailLate: an answer was complete but only after the deadline.
	FailLate
	// FailDNS: the backend's name did not resolve.
	FailDNS
	// FailConnect: the connection was refused or could not be opened.
	FailConnect
	// FailReset: an open connection was reset or closed before the answer was complete.
	FailReset
	// FailTLS: the TLS handshake or certificate verification failed.
	FailTLS
	// FailBlockedAddress: the dial policy forbids the resolved address.
	FailBlockedAddress
	// FailCredential: the gateway has no usable credential for the backend.
	FailCredential
	// FailUnauthorized: the backend answered 401 or 403.
	FailUnauthorized
	// FailRedirect: the backend answered 3xx; redirects are never followed.
	FailRedirect
	// FailStatus: any other status than 200.
	FailStatus
	// FailMediaType: the answer is not application/json.
	FailMediaType
	// FailOversize: the answer is larger than the configured limit.
	FailOversize
	// FailMalformedHTTP: the answer is not HTTP that can be read unambiguously.
	FailMalformedHTTP
	// FailMalformedJSON: the answer is not strict UTF-8 JSON.
	FailMalformedJSON
	// FailMalformedRPC: the answer is JSON but no JSON-RPC 2.0 response.
	FailMalformedRPC
	// FailIDMismatch: the response's id is not the request's.
	FailIDMismatch
	// FailRPCError: a JSON-RPC error that is none of the classes below.
	FailRPCError
	// FailVersionUnsupported: error -32001, or a result of another protocolVersion.
	FailVersionUnsupported
	// FailEventUnsupported: error -32002.
	FailEventUnsupported
	// FailMissingResult: a required result field is missing or of the wrong kind.
	FailMissingResult
	// FailEffectUnknown: an effect type, target, operation or field that the snapshot does not have.
	FailEffectUnknown
	// FailEffectMalformed: a known effect whose fields are wrong.
	FailEffectMalformed
	// FailEffectUnadvertised: an effect that this request did not advertise.
	FailEffectUnadvertised
	// FailEffectConflict: effects that cannot stand beside each other in one response.
	FailEffectConflict
	// FailConfiguration: the subscriptions that a backend advertises break the
	// rules of a registration, or none of them applies to this gateway.
	FailConfiguration
	// FailBreakerOpen: the circuit breaker let no call through.
	FailBreakerOpen
	// FailBulkheadFull: the backend's cap on calls in flight was reached.
	FailBulkheadFull
	// FailPoolExhausted: no connection became free in the gateway's own pool.
	FailPoolExhausted
	// FailInternal: a fault of the gateway itself while it served this turn.
	FailInternal

	// FailureClassCount is how many there are, NoFailure included.
	FailureClassCount
)

// failureClasses says of each class its name and whether it counts against the
// backend's circuit breaker. What is the gateway's own doing (its pool, its
// bulkhead, its budget, its credentials) is not the backend's failure; neither
// is an answer that arrived whole and in time, however little this request can
// use it: it costs no waiting, and whoever can provoke it with an event must
// not be able to turn the backend's denies off for the events of others.
var failureClasses = [FailureClassCount]struct {
	name  string
	trips bool
}{
	NoFailure:              {"none", false},
	FailDeadline:           {"deadline", true},
	FailBudget:             {"budget", false},
	FailLate:               {"late", true},
	FailDNS:                {"dns", true},
	FailConnect:            {"connect", true},
	FailReset:              {"reset", true},
	FailTLS:                {"tls", true},
	FailBlockedAddress:     {"blocked_address", false},
	FailCredential:         {"credential", false},
	FailUnauthorized:       {"unauthorized", true},
	FailRedirect:           {"redirect", true},
	FailStatus:             {"status", true},
	FailMediaType:          {"media_type", false},
	FailOversize:           {"oversize", false},
	FailMalformedHTTP:      {"malformed_http", true},
	FailMalformedJSON:      {"malformed_json", false},
	FailMalformedRPC:       {"malformed_rpc", false},
	FailIDMismatch:         {"id_mismatch", false},
	FailRPCError:           {"rpc_error", false},
	FailVersionUnsupported: {"version_unsupported", false},
	FailEventUnsupported:   {"event_unsupported", false},
	FailMissingResult:      {"missing_result", false},
	FailEffectUnknown:      {"effect_unknown", false},
	FailEffectMalformed:    {"effect_malformed", false},
	FailEffectUnadvertised: {"effect_unadvertised", false},
	FailEffectConflict:     {"effect_conflict", false},
	FailConfiguration:      {"configuration", false},
	FailBreakerOpen:        {"breaker_open", false},
	FailBulkheadFull:       {"bulkhead_full", false},
	FailPoolExhausted:      {"pool_exhausted", false},
	FailInternal:           {"internal", false},
}

// FailureClasses returns every class but NoFailure, in a fixed order.
func FailureClasses() []FailureClass {
	all := make([]FailureClass, 0, FailureClassCount-1)
	for c := NoFailure + 1; c < FailureClassCount; c++ {
		all = append(all, c)
	}
	return all
}

// String returns the stable name used in metrics labels and audit records.
func (c FailureClass) String() string {
	if c < FailureClassCount {
		return failureClasses[c].name
	}
	return "unknown"
}

// TripsBreaker reports whether a failure of this class is the backend's own
// and counts against its circuit breaker.
func (c FailureClass) TripsBreaker() bool {
	return c < FailureClassCount && failureClasses[c].trips
}

// Failure is one operational failure. The zero value means none.
type Failure struct {
	Class FailureClass
	// Detail is a short text for people: it goes to audit records and traces,
	// never to a harness and never to a metric label. It holds no secret and
	// nothing from an event; what it quotes of a backend is bounded.
	Detail string
}

// Of returns the failure as that of call: out of time under a deadline that is
// the chain's and not the subscription's own, it is the budget's.
func (f Failure) Of(call *Call) Failure {
	if call.Budgeted && (f.Class == FailDeadline || f.Class == FailLate) {
		f.Class = FailBudget
	}
	return f
}

// OK reports whether there was no failure.
func (f Failure) OK() bool { return f.Class == NoFailure }

// String returns "class" or "class: detail".
func (f Failure) String() string {
	if f.Detail == "" {
		return f.Class.String()
	}
	return f.Class.String() + ": " + f.Detail
}
