// Package routing decides which subscriptions an event goes to, in which
// order. A Table is built once per registration document and never changes:
// selectors are resolved when it is built, so a match is two array accesses.
package routing
