//go:build race

package decision

// The race detector makes the slow harness slower by far, and one chain is one
// goroutine's.
const manyChains = 10_000
