// Package decision is the pure part of a chain: Admit decides whether one
// backend's response may be accepted, and State folds accepted responses into
// the one decision that the harness is answered. It does no I/O, keeps no
// clock and holds no lock.
package decision
