package dedupe

import "github.com/hashicorp/golang-lru/v2/simplelru"

// maxShards is how many locks a large cache is spread over, and minShare how
// many entries a shard has at least: a smaller share would forget too much of
// what an uneven spread of keys puts into it. Chosen by BenchmarkShards.
const (
	maxShards = 16
	minShare  = 64
)

// shardsFor returns the number of shards for a number of entries, a power of
// two. What remembers nothing has no share to keep and gets the most.
func shardsFor(entries int) int {
	n := maxShards
	for entries > 0 && n > 1 && entries/n < minShare {
		n /= 2
	}
	return n
}

// index returns the shard of k among n, a power of two of at most 256. A key
// is a SHA-256, so any of its bytes spreads evenly.
func index(k Key, n int) int { return int(k[0]) & (n - 1) }

// newLRU returns an empty list of at most size entries, size being positive.
func newLRU[V any](size int) *simplelru.LRU[Key, V] {
	lru, err := simplelru.NewLRU[Key, V](size, nil)
	if err != nil {
		panic("dedupe: " + err.Error()) // a size that is not positive is a bug of the caller above
	}
	return lru
}
