package audit

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stalled returns a queue for tenants whose sink has taken one record, which is
// nobody's, and takes no more until it is opened.
func stalled(size int, overflow Overflow, tenants int) (*Queue, *gated) {
	sink := newGated()
	q := NewQueue(sink, size, overflow, nil)
	q.Divide(tenants)
	q.Put(nil, &Record{})
	<-sink.entered
	return q, sink
}

// puts fails the test unless of n records of s that many are queued.
func puts(t *testing.T, who string, q *Queue, s *Share, n, want int) {
	t.Helper()
	queued := 0
	for range n {
		if q.Put(s, &Record{}) {
			queued++
		}
	}
	if queued != want {
		t.Errorf("%d of %d records of %s are queued; want %d", queued, n, who, want)
	}
}

// empty fails the test unless nobody holds any of q.
func empty(t *testing.T, q *Queue, shares ...*Share) {
	t.Helper()
	if n := q.active.Load(); n != 0 {
		t.Errorf("%d shares are active at rest; want 0", n)
	}
	for i, s := range shares {
		if held, waiting := s.held.Load(), s.waiting.Load(); held != 0 || waiting != 0 {
			t.Errorf("share %d at rest holds %d and %d wait; want none", i, held, waiting)
		}
	}
}

// However many records some put, the next finds space for its own.
func TestShare(t *testing.T) {
	const size = 64
	for _, flooding := range []int{1, 2, 3, 15} {
		synctest.Test(t, func(t *testing.T) {
			q, sink := stalled(size, Drop, flooding+1)
			var shares []*Share
			for range flooding {
				shares = append(shares, NewShare())
			}
			total := 0
			for range 10 * size {
				for _, s := range shares {
					if q.Put(s, &Record{}) {
						total++
					}
				}
			}
			share := size / (flooding + 1)
			if last := size - size/4; total < last || total > max(last, flooding*share) {
				t.Errorf("%d that flood have %d of %d records queued; want three quarters, and their shares of the last", flooding, total, size)
			}
			own := NewShare()
			left := min(size/(flooding+2), (size-total)*3/4)
			if left < 3 {
				t.Errorf("%d that flood leave %d of %d for the next; want some", flooding, left, size)
			}
			puts(t, "the neighbour", q, own, size, left)
			puts(t, "nobody", q, nil, size, size-total-left)
			sink.open()
			if err := q.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			empty(t, q, append(shares, own)...)
		})
	}
}

// Nor do those fill it that begin to flood one after the other, each of them under
// its share: the next one still finds space, then and while it is written.
func TestShareOfMany(t *testing.T) {
	for _, flooding := range []int{2, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			q, sink := stalled(DefaultSize, Drop, flooding+1)
			var shares []*Share
			flood := func(s *Share, n int) {
				for range n {
					q.Put(s, &Record{})
				}
			}
			for range flooding {
				shares = append(shares, NewShare())
				flood(shares[len(shares)-1], DefaultSize)
			}
			own := NewShare()
			puts(t, "the neighbour of a sink that stands still", q, own, 4, 4)
			for n := range 3 * DefaultSize {
				l := <-q.lines // as the writer does
				q.leave(l.from)
				q.recycle(l)
				for _, s := range shares {
					flood(s, 3)
				}
				if n%20 == 0 && !q.Put(own, &Record{}) {
					t.Errorf("%d that flood: the neighbour lost a record when %d were written; want none", flooding, n)
					break
				}
			}
			sink.open()
			if err := q.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			empty(t, q, append(shares, own)...)
		})
	}
}

// One that is alone may fill the queue, and what it holds counts when it no
// longer is.
func TestShareOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, sink := stalled(16, Drop, 1)
		one, other := NewShare(), NewShare()
		puts(t, "the only one", q, one, 14, 14)
		q.Divide(2)
		puts(t, "the first of two", q, one, 5, 0)
		puts(t, "the second", q, other, 5, 2)
		q.Divide(1)
		sink.open()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		puts(t, "one after Close", q, one, 1, 0)
		empty(t, q, one, other)
	})
}

// With Block, who is over its share waits for its own records to be written, at
// most as long as for a full queue, and the neighbour does not wait.
func TestShareBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, sink := stalled(16, Block, 2)
		hostile, neighbour := NewShare(), NewShare()
		puts(t, "the hostile one", q, hostile, 12, 12)
		begin := time.Now()
		puts(t, "the hostile one over its share", q, hostile, 1, 0)
		if took := time.Since(begin); took != MaxWait {
			t.Errorf("Put over the share took %v; want %v", took, MaxWait)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { puts(t, "the hostile one that waits", q, hostile, 1, 1) })
		}
		synctest.Wait()
		begin = time.Now()
		puts(t, "the neighbour", q, neighbour, 3, 3)
		if took := time.Since(begin); took != 0 {
			t.Errorf("Put of the neighbour took %v; want no time", took)
		}
		sink.open()
		all.Wait()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := q.Stats(), (Stats{Written: 1 + 12 + 8 + 3, Dropped: 1}); got != want {
			t.Errorf("Stats() = %+v; want %+v", got, want)
		}
		empty(t, q, hostile, neighbour)
	})
}

// Whoever waits for its share is let go when the queue is closed.
func TestShareCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, sink := stalled(4, Block, 2)
		s := NewShare()
		puts(t, "one", q, s, 3, 3)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { puts(t, "one that waits", q, s, 1, 0) })
		}
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- q.Close(t.Context()) }()
		all.Wait()
		sink.open()
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		empty(t, q, s)
	})
}

// Nothing of a share is lost, whoever puts and whenever the sink takes.
func TestShareConcurrently(t *testing.T) {
	const each = 500
	for _, overflow := range []Overflow{Drop, Block} {
		sink := &recorder{}
		q := NewQueue(sink, 8, overflow, nil)
		q.Divide(3)
		shares := []*Share{NewShare(), NewShare(), NewShare()}
		var wait sync.WaitGroup
		for i := range 3 * len(shares) {
			wait.Go(func() {
				r := typical()
				for range each {
					q.Put(shares[i%len(shares)], r)
				}
			})
		}
		wait.Wait()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := q.Stats()
		if got.Written+got.Dropped != 3*3*each || overflow == Block && got.Dropped != 0 {
			t.Errorf("%v: Stats() = %+v; want %d records in all, and none dropped with block", overflow, got, 3*3*each)
		}
		empty(t, q, shares...)
	}
}

// With Block nobody who waits for a share is forgotten, however many do.
func TestNobodyWaitsInVain(t *testing.T) {
	for round := range 300 {
		sink := &recorder{}
		q := NewQueue(sink, 2, Block, nil)
		q.Divide(3)
		shares := []*Share{NewShare(), NewShare()}
		var wait sync.WaitGroup
		for i := range 8 * len(shares) {
			wait.Go(func() {
				for range 20 {
					if !q.Put(shares[i%len(shares)], &Record{}) {
						t.Errorf("round %d: a record waited in vain", round)
					}
				}
			})
		}
		wait.Wait()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		empty(t, q, shares...)
		if t.Failed() {
			return
		}
	}
}

func BenchmarkPutOfShare(b *testing.B) {
	q := NewQueue(discard{}, DefaultSize, Block, nil)
	q.Divide(2)
	r, s := typical(), NewShare()
	b.ReportAllocs()
	for b.Loop() {
		q.Put(s, r)
	}
	if err := q.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
