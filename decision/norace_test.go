//go:build !race

package decision

const manyChains = 100_000
