// Package dedupe remembers answers by key and lets equal questions that arrive
// at the same time share one evaluation. It knows nothing of what a key or an
// answer means, and one Cache serves one party: what must not be shared does
// not share a Cache.
//
// A key says which question it is, a fingerprint what exactly was asked. An
// answer is only ever given to a question with the same key and the same
// fingerprint; a question that reuses a key with other content is a Conflict
// and must be evaluated on its own.
package dedupe
