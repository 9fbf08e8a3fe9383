//go:build !race

package decision

const manyChains = 200_000
