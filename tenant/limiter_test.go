package tenant

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// acquire fails the test unless Acquire says want.
func acquire(t *testing.T, l *Limiter, want Denied) time.Duration {
	t.Helper()
	got, retryAfter := l.Acquire()
	if got != want || (retryAfter > 0) != (want != Admitted) {
		t.Fatalf("Acquire() = %v, %v; want %v, and a time to wait only if denied", got, retryAfter, want)
	}
	return retryAfter
}

func TestInFlightCap(t *testing.T) {
	l := NewLimiter(Limits{InFlight: 2})
	acquire(t, l, Admitted)
	acquire(t, l, Admitted)
	for range 10 {
		acquire(t, l, DeniedInFlight)
	}
	l.Release()
	acquire(t, l, Admitted)
	acquire(t, l, DeniedInFlight)
}

func TestRateAndRetryAfter(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		burst  int           // requests admitted at once
		retry  time.Duration // after those
	}{
		{Limits{Rate: 10, Burst: 3}, 3, 100 * time.Millisecond},
		{Limits{Rate: 10}, 10, 100 * time.Millisecond},
		{Limits{Rate: 2.5}, 3, 400 * time.Millisecond},
		{Limits{Rate: 0.5}, 1, 2 * time.Second},
		{Limits{Rate: 0.5, Burst: -1}, 1, 2 * time.Second},
		{Limits{Rate: 1e-9, Burst: 1}, 1, time.Hour}, // bounded
		{Limits{Rate: 5e-324, Burst: 1}, 1, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter(c.limits)
			for range c.burst {
				acquire(t, l, Admitted)
			}
			retryAfter := acquire(t, l, DeniedRate)
			if retryAfter != c.retry {
				t.Errorf("%+v: retryAfter = %v; want %v", c.limits, retryAfter, c.retry)
			}
			if c.retry == time.Hour {
				return
			}
			time.Sleep(retryAfter) // who waits that long is admitted, once
			acquire(t, l, Admitted)
			acquire(t, l, DeniedRate)
		})
	}
}

// A caller that waits as it was told is always admitted, also where the rate
// divides no second evenly.
func TestRetryAfterIsEnough(t *testing.T) {
	for _, rate := range []float64{3, 7, 0.3, 999, 1e5 / 7} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter(Limits{Rate: rate, Burst: 1})
			for i := range 500 {
				got, retryAfter := l.Acquire()
				if got == DeniedRate {
					time.Sleep(retryAfter)
					if got, again := l.Acquire(); got != Admitted {
						t.Fatalf("rate %v, request %d: Acquire() after %v = %v, %v; want %v", rate, i, retryAfter, got, again, Admitted)
					}
				}
				time.Sleep(time.Duration(i) * 17 * time.Microsecond)
			}
		})
	}
}

// A denied request takes nothing: neither a place from those that the rate
// admits, nor a token from those that find a place.
func TestDeniedRequestsTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(Limits{InFlight: 1, Rate: 1, Burst: 2})
		acquire(t, l, Admitted)
		for range 10 {
			acquire(t, l, DeniedInFlight) // takes no token
		}
		l.Release()
		acquire(t, l, Admitted) // the second token
		l.Release()
		for range 10 {
			acquire(t, l, DeniedRate) // takes no place
		}
		time.Sleep(time.Second)
		acquire(t, l, Admitted)
	})
}

func TestNoLimits(t *testing.T) {
	for _, limits := range []Limits{{}, {Burst: 1}, {InFlight: -1, Rate: -1}, {Rate: math.Inf(1), Burst: 1}} {
		l := NewLimiter(limits)
		for i := range 1000 {
			if got, _ := l.Acquire(); got != Admitted {
				t.Fatalf("%+v: Acquire() number %d = %v; want %v", limits, i+1, got, Admitted)
			}
		}
		if l.Limits != limits {
			t.Errorf("Limits = %+v; want %+v", l.Limits, limits)
		}
	}
}

func TestConcurrentAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 5
		l := NewLimiter(Limits{InFlight: limit, Rate: 1000, Burst: 10})
		var now, most, admitted, denied atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 50 {
					if d, retryAfter := l.Acquire(); d != Admitted {
						denied.Add(1)
						time.Sleep(retryAfter)
						continue
					}
					n := now.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					time.Sleep(time.Millisecond)
					now.Add(-1)
					admitted.Add(1)
					l.Release()
				}
			})
		}
		all.Wait()
		if got := most.Load(); got > limit {
			t.Errorf("requests at once = %d; want at most %d", got, limit)
		}
		if admitted.Load() == 0 || denied.Load() == 0 {
			t.Errorf("admitted, denied = %d, %d; want some of both", admitted.Load(), denied.Load())
		}
		// Nothing is lost: at rest, all places are free.
		time.Sleep(time.Second)
		for range limit {
			acquire(t, l, Admitted)
		}
		acquire(t, l, DeniedInFlight)
	})
}

func TestAcquireAllocatesNothing(t *testing.T) {
	for _, limits := range []Limits{{InFlight: 10, Rate: 1e9}, {Rate: 1e-9, Burst: 1}} {
		l := NewLimiter(limits)
		if got := testing.AllocsPerRun(100, func() {
			if d, _ := l.Acquire(); d == Admitted {
				l.Release()
			}
		}); got != 0 {
			t.Errorf("%+v: allocations of Acquire = %v; want 0", limits, got)
		}
	}
}

func BenchmarkAcquire(b *testing.B) {
	for _, rate := range []float64{0, 1e9} {
		l := NewLimiter(Limits{InFlight: 1 << 20, Rate: rate})
		b.Run(fmt.Sprintf("rate=%g", rate), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if d, _ := l.Acquire(); d == Admitted {
						l.Release()
					}
				}
			})
		})
	}
}

// A limiter that takes another's place counts the requests that came in by that.
func TestLimiterContinues(t *testing.T) {
	before, after := NewLimiter(Limits{InFlight: 2, Rate: 1000}), NewLimiter(Limits{InFlight: 3})
	for range 2 {
		if got, _ := before.Acquire(); got != Admitted {
			t.Fatalf("Acquire() = %v; want %v", got, Admitted)
		}
	}
	after.Continue(before)
	for i, want := range []Denied{Admitted, DeniedInFlight} {
		if got, _ := after.Acquire(); got != want {
			t.Errorf("Acquire() %d of the one that continues = %v; want %v", i, got, want)
		}
	}
	before.Release()
	if got, _ := before.Acquire(); got != DeniedInFlight { // a cap of 2, and 2 are left
		t.Errorf("Acquire() of the one before = %v; want %v", got, DeniedInFlight)
	}
	if got, _ := after.Acquire(); got != Admitted {
		t.Errorf("Acquire() once one of before has ended = %v; want %v", got, Admitted)
	}
	for range 3 {
		after.Release()
	}
	if n := before.inFlight.Load(); n != 0 {
		t.Errorf("at rest %d are in flight; want 0", n)
	}
}
