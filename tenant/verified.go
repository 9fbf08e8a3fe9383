package tenant

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// How many tokens are remembered, and over how many locks, a power of two.
const (
	verifiedTokens = 10_000
	verifiedShards = 16
)

// verified remembers tokens that were found good by their SHA-256, so that a
// request costs no signature. It is safe for concurrent use.
type verified[T any] struct {
	shards [verifiedShards]verifiedShard[T]
}

type verifiedShard[T any] struct {
	mu  sync.Mutex
	lru *simplelru.LRU[[sha256.Size]byte, admission[T]]
}

// admission is a token that was found good, and for how long that holds.
type admission[T any] struct {
	member *member[T]
	token
}

func newVerified[T any]() *verified[T] {
	v := new(verified[T])
	for i := range v.shards {
		lru, err := simplelru.NewLRU[[sha256.Size]byte, admission[T]](verifiedTokens/verifiedShards, nil)
		if err != nil {
			panic("tenant: " + err.Error()) // a size that is not positive is a bug above
		}
		v.shards[i].lru = lru
	}
	return v
}

func (v *verified[T]) shard(digest [sha256.Size]byte) *verifiedShard[T] {
	// A digest is spread evenly already.
	return &v.shards[digest[0]&(verifiedShards-1)]
}

// get returns the member of a token that is known to be good now, or nil.
func (v *verified[T]) get(digest [sha256.Size]byte, now time.Time) *member[T] {
	s := v.shard(digest)
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.lru.Get(digest)
	if !ok {
		return nil
	}
	if !a.holds(now) {
		s.lru.Remove(digest)
		return nil
	}
	return a.member
}

// add remembers a token.
func (v *verified[T]) add(digest [sha256.Size]byte, m *member[T], t token) {
	s := v.shard(digest)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lru.Add(digest, admission[T]{m, t})
}
