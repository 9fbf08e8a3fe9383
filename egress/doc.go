// Package egress says which addresses the gateway may dial on somebody else's
// word: a backend's URL, an issuer's, or what their names resolve to.
package egress
