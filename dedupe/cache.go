package dedupe

import (
	"bytes"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Settings bound what a Cache remembers. If any of them is zero or less, the
// Cache remembers nothing; joining an evaluation in flight works all the same.
type Settings struct {
	Entries int           // answers remembered at most
	Bytes   int           // bytes of all remembered answers together, at most
	TTL     time.Duration // how long an answer is remembered
}

// Cache remembers final answers and joins equal evaluations in flight. It is
// safe for concurrent use, starts no goroutine, and holds next to nothing
// until it is first used. What is in flight is bounded by the callers.
//
// Both bounds are split evenly over the shards, so neither is ever exceeded
// but the oldest answer of a shard can be forgotten a little before either is
// reached. An answer larger than a shard's share of Bytes is not remembered.
type Cache struct {
	settings Settings
	first    sync.Once
	shards   []shard // allocated by first
}

// shard is the part of a Cache that one lock guards.
type shard struct {
	mu       sync.Mutex
	flights  map[Key]*Flight              // nil until something is in flight
	answers  *simplelru.LRU[Key, *Flight] // nil until something is remembered
	bytes    int                          // of all answers
	maxBytes int
	entries  int // 0 remembers nothing
	ttl      time.Duration
	_        [8]byte // fills a cache line of 64 bytes, so that no two locks share one
}

// Flight is one evaluation. Its leader alone may call Finish.
type Flight struct {
	key    Key
	fp     Fingerprint
	shard  *shard
	done   chan struct{} // made by the first that joins, closed by Finish
	ended  bool
	answer []byte
	// expires is when a remembered answer is forgotten.
	expires time.Time
}

// New returns an empty cache.
func New(s Settings) *Cache {
	if s.Entries <= 0 || s.Bytes <= 0 || s.TTL <= 0 {
		s = Settings{}
	}
	return &Cache{settings: s}
}

// allocate makes n shards, a power of two.
func (c *Cache) allocate(n int) {
	c.shards = make([]shard, n)
	for i := range c.shards {
		s := &c.shards[i]
		s.entries, s.maxBytes, s.ttl = c.settings.Entries/n, c.settings.Bytes/n, c.settings.TTL
	}
}

func (c *Cache) shard(k Key) *shard {
	c.first.Do(func() { c.allocate(shardsFor(c.settings.Entries)) })
	return &c.shards[index(k, len(c.shards))]
}

// Begin returns the remembered answer to the question (Hit), waits until
// deadline for the evaluation in flight (Joined, TimedOut, Abandoned), or says
// that the caller has to evaluate: as the leader of a new flight (Miss) or on
// its own (Conflict). answer is set for Hit and Joined only and must not be
// modified. lead is non-nil for Miss only, and Finish must then be called on
// it, or whoever joins waits until its deadline.
func (c *Cache) Begin(k Key, fp Fingerprint, deadline time.Time) (answer []byte, outcome Outcome, lead *Flight) {
	s := c.shard(k)
	s.mu.Lock()
	if f := s.remembered(k); f != nil {
		defer s.mu.Unlock()
		if f.fp != fp {
			return nil, Conflict, nil
		}
		return f.answer, Hit, nil
	}
	f := s.flights[k]
	if f == nil {
		f = &Flight{key: k, fp: fp, shard: s}
		if s.flights == nil {
			s.flights = make(map[Key]*Flight)
		}
		s.flights[k] = f
		s.mu.Unlock()
		return nil, Miss, f
	}
	if f.fp != fp {
		s.mu.Unlock()
		return nil, Conflict, nil
	}
	if f.done == nil {
		f.done = make(chan struct{})
	}
	done := f.done
	s.mu.Unlock()

	if !wait(done, deadline) {
		return nil, TimedOut, nil
	}
	if len(f.answer) == 0 {
		return nil, Abandoned, nil
	}
	return f.answer, Joined, nil
}

// Known returns the remembered answer to the question, or nil, whatever its
// content. It must not be modified.
func (c *Cache) Known(k Key) []byte {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.remembered(k); f != nil {
		return f.answer
	}
	return nil
}

// wait reports whether done was closed by the deadline.
func wait(done <-chan struct{}, deadline time.Time) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// Finish ends the evaluation with its answer, of which it keeps a copy where
// one is needed. The answer goes to everyone who has joined; it is remembered
// if it is final. An empty answer abandons the evaluation: nobody gets an
// answer and nothing is remembered. Only the first call counts, so that
// "defer lead.Finish(nil, false)" releases everyone even if the leader panics.
func (f *Flight) Finish(answer []byte, final bool) {
	s := f.shard
	remember := final && len(answer) > 0 && s.entries > 0 && len(answer) <= s.maxBytes
	var own []byte
	if remember {
		own = bytes.Clone(answer) // before the lock is taken, since it is almost always needed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.ended {
		return
	}
	f.ended = true
	delete(s.flights, f.key)
	if f.done != nil && own == nil {
		own = bytes.Clone(answer)
	}
	f.answer = own
	if f.done != nil {
		close(f.done)
		f.done = nil
	}
	if remember {
		s.remember(f)
	}
}

// remembered returns the answered flight of k unless there is none or it has expired.
func (s *shard) remembered(k Key) *Flight {
	if s.answers == nil {
		return nil
	}
	f, ok := s.answers.Get(k)
	if !ok {
		return nil
	}
	if !time.Now().Before(f.expires) {
		s.answers.Remove(k)
		s.bytes -= len(f.answer)
		return nil
	}
	return f
}

// remember adds an answered flight and forgets the least recently used ones
// until both bounds hold. f's key is not remembered already: there is at most
// one flight of a key, and none while its answer is remembered.
func (s *shard) remember(f *Flight) {
	if s.answers == nil {
		s.answers = newLRU[*Flight](s.entries)
	}
	for s.answers.Len() >= s.entries || s.bytes+len(f.answer) > s.maxBytes {
		_, oldest, _ := s.answers.RemoveOldest()
		s.bytes -= len(oldest.answer)
	}
	f.expires = time.Now().Add(s.ttl)
	s.answers.Add(f.key, f)
	s.bytes += len(f.answer)
}
