// Package decision is the pure part of a chain. Terms is what one request lets
// an answer do. Admit decides whether one backend's response may be accepted.
// State folds accepted responses into one: it holds the event as it stands,
// says what the next backend is to be shown, and finds the shortest effects
// that bring the harness from where it was to where the chain has come to.
//
// A harness that is answered with these effects is in the state that it would
// have reached with the backends registered directly. Where no effects can say
// that, the answer permits less, never more, and says that it is inexact.
//
// The package does no I/O, keeps no clock and holds no lock. Nothing in it is
// safe for concurrent use but what the types say.
package decision
