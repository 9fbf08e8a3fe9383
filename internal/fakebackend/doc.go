// Package fakebackend is a scripted policy backend for tests and benchmarks.
//
// It listens on a real loopback port and answers Agent Hooks Protocol messages
// either well or badly, down to the bytes on the wire. What it does with a
// request is named by a string, so that a table of test cases can be a data
// file; Names lists them. Names that take an argument are written
// "name:argument".
//
// The well-behaved answers go through a fasthttp server and are fast enough to
// load a gateway; the others take the connection over after the request has
// been read and write to it by hand.
//
// The package is for tests: it keeps no secret, bounds nothing and listens on
// loopback only.
package fakebackend
