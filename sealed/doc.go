// Package sealed keeps the secrets of tenants in a folder, each in a file of its
// own that is encrypted and bound to its tenant and name: a file that was
// changed, or put in another's place, does not open.
package sealed
