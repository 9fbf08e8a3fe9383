package dedupe

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Seen is a bounded set of keys, each of which is in it for a fixed time. It
// is safe for concurrent use, starts no goroutine, and holds next to nothing
// until a key is added. A set that overflows forgets the key that was added
// first, so it can deny a key that was added but never claim one that was not.
type Seen struct {
	entries int
	ttl     time.Duration
	first   sync.Once
	shards  []seenShard // allocated by first
}

// seenShard is the part of a Seen that one lock guards.
type seenShard struct {
	mu   sync.Mutex
	keys *simplelru.LRU[Key, time.Time] // to the time of expiry; nil until a key is added
	_    [48]byte                       // fills a cache line of 64 bytes, so that no two locks share one
}

// NewSeen returns an empty set that holds at most entries keys, each for ttl.
// If either is zero or less it holds nothing.
func NewSeen(entries int, ttl time.Duration) *Seen {
	if entries <= 0 || ttl <= 0 {
		entries = 0
	}
	return &Seen{entries: entries, ttl: ttl}
}

// Add adds k and reports whether it was absent. Of concurrent calls with one
// key, exactly one gets true. Adding a key again does not extend its time. A
// set that holds nothing always reports true.
func (s *Seen) Add(k Key) (added bool) {
	if s.entries == 0 {
		return true
	}
	sh := s.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := time.Now()
	if sh.has(k, now) {
		return false
	}
	if sh.keys == nil {
		sh.keys = newLRU[time.Time](s.entries / len(s.shards))
	}
	sh.keys.Add(k, now.Add(s.ttl))
	return true
}

// Has reports whether k is in the set.
func (s *Seen) Has(k Key) bool {
	if s.entries == 0 {
		return false
	}
	sh := s.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.has(k, time.Now())
}

func (s *Seen) shard(k Key) *seenShard {
	s.first.Do(func() { s.shards = make([]seenShard, shardsFor(s.entries)) })
	return &s.shards[index(k, len(s.shards))]
}

// has reports whether k is in the shard and has not expired. It does not count
// as use: the order of a Seen is that of adding.
func (sh *seenShard) has(k Key, now time.Time) bool {
	if sh.keys == nil {
		return false
	}
	expires, ok := sh.keys.Peek(k)
	return ok && now.Before(expires)
}
