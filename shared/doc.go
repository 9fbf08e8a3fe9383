// Package shared keeps in Redis or Valkey what the replicas of a gateway have
// in common: the answers to events, so that an event which reaches several
// replicas is evaluated once, the token buckets of rates and the counts of
// quotas, and documents that every replica follows.
//
// It knows nothing of AHP. Nothing here ever has to work: every call has a
// deadline, a server that does not answer is left alone, and the caller is told
// that it got nothing and decides what that means. What is read is data from
// outside, and the caller has to check it.
//
// The server is a single one, or something that looks like one. Its own clock
// is the only one that is compared between replicas.
package shared
