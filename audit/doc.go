// Package audit writes one record for each decision of the gateway: a JSON
// object on a line of its own, handed over a bounded queue to a sink, so that
// neither a slow disk nor a full one holds a decision up.
//
// What a record holds is bounded member by member, see Record. Inputs of tools
// are not part of it unless the operator asks for them, and then only after
// RedactInput.
package audit
