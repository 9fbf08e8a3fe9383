// Package ahp holds the Agent Hooks Protocol as this gateway speaks it: wire
// types, strict decoding and encoding, the event and effect catalogue of both
// snapshots as data, error codes, failure classes, and the Backend interface.
//
// Decoding is span based: a decoded message points into the bytes it was given
// and copies nothing, so an event that nobody modifies is forwarded byte for
// byte. Whoever decodes must keep those bytes alive and unchanged for as long
// as the decoded value is in use.
package ahp
