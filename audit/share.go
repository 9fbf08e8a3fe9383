package audit

import (
	"sync/atomic"
	"time"
)

// Share is what one tenant, or the admin API, holds of a Queue. It belongs to one of them, and may
// outlive any configuration.
//
// While there is plenty of space, whoever comes gets it. The last quarter of the
// queue is for tenants that hold no more than their share: the size by the number
// of those that hold anything, and of one more, for whom room is left. That is the
// rule of tenant.Places. Nor may one there hold more than three times what it
// leaves free: so that quarter is not filled by those either that begin to flood
// one after the other, each of them under its share, and the next one's records
// find space.
type Share struct {
	held    atomic.Int64
	waiting atomic.Int64
	freed   chan struct{} // told, while somebody waits, that less is held
}

// NewShare returns a share that holds nothing.
func NewShare() *Share { return &Share{freed: make(chan struct{}, 1)} }

// Divide says how many tenants the queue is for. Where there are fewer than two,
// as before the first call, one may fill it.
func (q *Queue) Divide(tenants int) { q.tenants.Store(int64(tenants)) }

// enter takes a place for a record of s, or reports that there is none for this
// tenant. A place that is taken is given back by leave.
func (q *Queue) enter(s *Share) bool {
	if s == nil {
		return true
	}
	// It is counted only once it is admitted: else one that is refused could keep
	// out, for a moment, another one that nobody wakes afterwards.
	for {
		held := s.held.Load()
		if !q.admits(held + 1) {
			return false
		}
		if s.held.CompareAndSwap(held, held+1) {
			if held == 0 {
				q.active.Add(1)
			}
			return true
		}
	}
}

// admits reports whether a share may hold so many now. It may always hold one.
func (q *Queue) admits(held int64) bool {
	size := int64(cap(q.lines))
	free := size - int64(len(q.lines))
	return free > max(size/4, 1) || q.tenants.Load() < 2 || held <= max(min(size/(q.active.Load()+1), 3*free), 1)
}

// leave gives back a place of s. Whoever takes the first counts s as active before
// it can leave, and whoever leaves last takes that back.
func (q *Queue) leave(s *Share) {
	if s == nil {
		return
	}
	if s.held.Add(-1) == 0 {
		q.active.Add(-1)
	}
	s.tell()
}

// tell wakes one of those that wait for a place of s.
func (s *Share) tell() {
	if s.waiting.Load() > 0 {
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}

// await takes a place of s as soon as there is one, until end, or until the queue
// is closed. Nobody waits in vain: who holds nothing gets a place, so that of those
// who do not there is one that leaves.
func (q *Queue) await(s *Share, end <-chan time.Time) bool {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	for !q.enter(s) {
		select {
		case <-s.freed:
		case <-q.stopping:
			return false
		case <-end:
			return false
		}
	}
	s.tell() // one word may stand for several places
	return true
}
