package breaker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// fake is a backend made of functions.
type fake struct {
	intercept func(*ahp.Call) ahp.Failure
	observe   func(*ahp.Call) ahp.Failure
}

func (f *fake) Intercept(call *ahp.Call, _ *ahp.Response) ahp.Failure { return f.intercept(call) }
func (f *fake) Observe(call *ahp.Call) ahp.Failure                    { return f.observe(call) }

// scripted is a backend whose every answer is of the class last stored.
type scripted struct {
	class atomic.Uint32
	calls atomic.Int64
}

func (s *scripted) Intercept(*ahp.Call, *ahp.Response) ahp.Failure {
	s.calls.Add(1)
	return ahp.Failure{Class: ahp.FailureClass(s.class.Load())}
}

func (s *scripted) Observe(*ahp.Call) ahp.Failure { return s.Intercept(nil, nil) }

// intercept makes one call that the backend ends with class.
func intercept(b *Breaker, s *scripted, class ahp.FailureClass) ahp.Failure {
	s.class.Store(uint32(class))
	return b.Intercept(&ahp.Call{Deadline: time.Now().Add(time.Second)}, new(ahp.Response))
}

// trip opens a breaker of Volume 1.
func trip(t *testing.T, b *Breaker, s *scripted) {
	t.Helper()
	intercept(b, s, ahp.FailReset)
	wantState(t, b, Open)
}

func wantState(t *testing.T, b *Breaker, want State) {
	t.Helper()
	if got := b.State(); got != want {
		t.Fatalf("State() = %v; want %v", got, want)
	}
}

func wantClass(t *testing.T, what string, got ahp.Failure, want ahp.FailureClass) {
	t.Helper()
	if got.Class != want {
		t.Fatalf("%s = %v; want %v", what, got, want)
	}
}

func TestOpensByRatioAndVolume(t *testing.T) {
	// s succeeds, f fails, x fails without a verdict on the backend.
	classes := map[rune]ahp.FailureClass{'s': ahp.NoFailure, 'f': ahp.FailStatus, 'x': ahp.FailPoolExhausted}
	for _, c := range []struct {
		calls string
		want  State
	}{
		{"", Closed},
		{"fff", Closed},
		{"ffff", Open},
		{"sssf", Closed},
		{"sssff", Closed},
		{"sssfff", Open},
		{"sfsf", Open},
		{"ssssssss", Closed},
		{"xxxxxxxx", Closed},
		{"fffxxxx", Closed},
		{"xxxxffff", Open},
		{"fffxxxxf", Open},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := new(scripted)
			b := New(s, Settings{Volume: 4, Ratio: 0.5})
			for _, r := range c.calls {
				wantClass(t, fmt.Sprintf("Intercept in %q", c.calls), intercept(b, s, classes[r]), classes[r])
			}
			if got := b.State(); got != c.want {
				t.Errorf("State() after %q = %v; want %v", c.calls, got, c.want)
			}
		})
	}
}

// Of every failure class, only those that are the backend's own open the breaker.
func TestOnlyTrippingClassesCount(t *testing.T) {
	for _, class := range append(ahp.FailureClasses(), ahp.NoFailure) {
		s := new(scripted)
		b := New(s, Settings{Volume: 1})
		wantClass(t, "Intercept", intercept(b, s, class), class)
		want := Closed
		if class.TripsBreaker() {
			want = Open
		}
		if got := b.State(); got != want {
			t.Errorf("State() after %v = %v; want %v", class, got, want)
		}
	}
}

// Calls that are still in flight have not succeeded and must not thin the ratio.
func TestCallsInFlightDoNotThinTheRatio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var block atomic.Bool
		b := New(&fake{intercept: func(*ahp.Call) ahp.Failure {
			if block.Load() {
				<-release
				return ahp.Failure{}
			}
			return ahp.Failure{Class: ahp.FailConnect}
		}}, Settings{Volume: 2, Ratio: 1})
		block.Store(true)
		for range 10 {
			go b.Intercept(new(ahp.Call), new(ahp.Response))
		}
		synctest.Wait()
		block.Store(false)
		b.Intercept(new(ahp.Call), new(ahp.Response))
		b.Intercept(new(ahp.Call), new(ahp.Response))
		wantState(t, b, Open)
		close(release)
	})
}

func TestForgetsByRollingWindow(t *testing.T) {
	for _, c := range []struct {
		buckets      int
		first, later time.Duration // three failures at first, one at first+later
		want         State
	}{
		{10, 0, 9 * time.Second, Open},
		{10, 0, 10 * time.Second, Closed},
		// A window that is cleared as a whole every 10s would have forgotten.
		{10, 6 * time.Second, 6 * time.Second, Open},
		{10, 9 * time.Second, 9 * time.Second, Open},
		{10, 9 * time.Second, 10 * time.Second, Closed},
		{3, 0, 9 * time.Second, Open},
		{3, 0, 11 * time.Second, Closed}, // 3 buckets do not divide 10s
		{3, 0, time.Hour, Closed},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := new(scripted)
			b := New(s, Settings{Window: 10 * time.Second, Buckets: c.buckets, Volume: 4, Ratio: 1})
			time.Sleep(c.first)
			for range 3 {
				intercept(b, s, ahp.FailDeadline)
			}
			time.Sleep(c.later)
			intercept(b, s, ahp.FailDeadline)
			if got := b.State(); got != c.want {
				t.Errorf("State() with %d buckets, failures at %v and %v later = %v; want %v", c.buckets, c.first, c.later, got, c.want)
			}
		})
	}
}

// A window shorter than its buckets can divide still forgets.
func TestTinyWindowForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(scripted)
		b := New(s, Settings{Window: 5 * time.Nanosecond, Buckets: 10, Volume: 2})
		intercept(b, s, ahp.FailConnect)
		time.Sleep(time.Second)
		intercept(b, s, ahp.FailConnect)
		wantState(t, b, Closed)
	})
}

func TestOpenLetsNoCallThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(scripted)
		b := New(s, Settings{Volume: 1, OpenFor: 5 * time.Second})
		trip(t, b, s)
		before := s.calls.Load()
		wantClass(t, "Intercept while open", intercept(b, s, ahp.NoFailure), ahp.FailBreakerOpen)
		if got := s.calls.Load(); got != before {
			t.Errorf("calls to an open backend = %d; want %d", got-before, 0)
		}
		if got := b.InFlight(); got != 0 {
			t.Errorf("InFlight() after a refusal = %d; want 0", got)
		}
		time.Sleep(5*time.Second + 1)
		wantState(t, b, HalfOpen)
	})
}

func TestHalfOpenAdmitsProbesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const probes = 3
		s := new(scripted)
		release := make(chan struct{})
		var block atomic.Bool
		b := New(&fake{intercept: func(*ahp.Call) ahp.Failure {
			if block.Load() {
				<-release
			}
			return s.Intercept(nil, nil)
		}}, Settings{Volume: 1, OpenFor: time.Second, Probes: probes})
		trip(t, b, s)
		time.Sleep(time.Second + 1)

		block.Store(true)
		s.class.Store(uint32(ahp.NoFailure))
		var admitted, refused atomic.Int64
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				switch f := b.Intercept(new(ahp.Call), new(ahp.Response)); f.Class {
				case ahp.NoFailure:
					admitted.Add(1)
				case ahp.FailBreakerOpen:
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if got := b.InFlight(); got != probes {
			t.Errorf("InFlight() while half open = %d; want %d", got, probes)
		}
		if got := refused.Load(); got != 10-probes {
			t.Errorf("refused while half open = %d; want %d", got, 10-probes)
		}
		wantState(t, b, HalfOpen)
		close(release)
		all.Wait()
		if got := admitted.Load(); got != probes {
			t.Errorf("admitted while half open = %d; want %d", got, probes)
		}
		wantState(t, b, Closed)
	})
}

func TestHalfOpenNeedsEveryProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(scripted)
		b := New(s, Settings{Volume: 1, OpenFor: time.Second, Probes: 2})
		trip(t, b, s)
		time.Sleep(time.Second + 1)
		intercept(b, s, ahp.NoFailure)
		wantState(t, b, HalfOpen)
		intercept(b, s, ahp.FailTLS)
		wantState(t, b, Open)
		time.Sleep(time.Second + 1)
		intercept(b, s, ahp.NoFailure)
		intercept(b, s, ahp.NoFailure)
		wantState(t, b, Closed)
	})
}

// A probe without a verdict neither opens nor closes, and gives its place back.
func TestHalfOpenProbeWithoutVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(scripted)
		b := New(s, Settings{Volume: 1, OpenFor: time.Second, Probes: 1})
		trip(t, b, s)
		time.Sleep(time.Second + 1)
		for range 5 {
			wantClass(t, "Intercept", intercept(b, s, ahp.FailPoolExhausted), ahp.FailPoolExhausted)
			wantState(t, b, HalfOpen)
		}
		wantClass(t, "Intercept", intercept(b, s, ahp.NoFailure), ahp.NoFailure)
		wantState(t, b, Closed)
	})
}

// A probe that hangs until its deadline counts as failed, and the breaker goes
// on to probe again.
func TestHangingProbeDoesNotJam(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(scripted)
		var hang atomic.Bool
		b := New(&fake{intercept: func(call *ahp.Call) ahp.Failure {
			if hang.Load() {
				time.Sleep(time.Until(call.Deadline))
				return ahp.Failure{Class: ahp.FailDeadline}
			}
			return s.Intercept(call, nil)
		}}, Settings{Volume: 1, OpenFor: time.Second, Probes: 1})
		trip(t, b, s)
		time.Sleep(time.Second + 1)

		hang.Store(true)
		done := make(chan ahp.Failure)
		go func() { done <- intercept(b, s, ahp.NoFailure) }()
		synctest.Wait()
		wantClass(t, "Intercept beside a hanging probe", intercept(b, s, ahp.NoFailure), ahp.FailBreakerOpen)
		wantClass(t, "hanging probe", <-done, ahp.FailDeadline)
		wantState(t, b, Open)

		hang.Store(false)
		time.Sleep(time.Second + 1)
		wantClass(t, "next probe", intercept(b, s, ahp.NoFailure), ahp.NoFailure)
		wantState(t, b, Closed)
	})
}

// A call that began before the breaker opened says nothing about the backend
// that is being probed now.
func TestOldCallIsNoProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(scripted)
		release, ended := make(chan struct{}), make(chan struct{})
		var block atomic.Bool
		b := New(&fake{intercept: func(*ahp.Call) ahp.Failure {
			if block.Load() {
				<-release
				return ahp.Failure{}
			}
			return s.Intercept(nil, nil)
		}}, Settings{Volume: 1, OpenFor: time.Second, Probes: 1})
		block.Store(true)
		go func() {
			b.Intercept(new(ahp.Call), new(ahp.Response))
			close(ended)
		}()
		synctest.Wait()
		block.Store(false)
		trip(t, b, s)
		time.Sleep(time.Second + 1)
		wantState(t, b, HalfOpen)
		close(release)
		<-ended
		wantState(t, b, HalfOpen)
	})
}

func TestPanicPassesThroughWithoutVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(scripted)
		var boom atomic.Bool
		b := New(&fake{intercept: func(*ahp.Call) ahp.Failure {
			if boom.Load() {
				panic("boom")
			}
			return s.Intercept(nil, nil)
		}}, Settings{Volume: 1, OpenFor: time.Second, Probes: 1, InFlight: 1})
		panics := func() (v any) {
			defer func() { v = recover() }()
			boom.Store(true)
			defer boom.Store(false)
			b.Intercept(new(ahp.Call), new(ahp.Response))
			return nil
		}
		if got := panics(); got != "boom" {
			t.Errorf("recover() = %v; want boom", got)
		}
		wantState(t, b, Closed)
		if got := b.InFlight(); got != 0 {
			t.Errorf("InFlight() after a panic = %d; want 0", got)
		}
		trip(t, b, s)
		time.Sleep(time.Second + 1)
		if got := panics(); got != "boom" {
			t.Errorf("recover() while half open = %v; want boom", got)
		}
		wantState(t, b, HalfOpen)
		wantClass(t, "probe after a panic", intercept(b, s, ahp.NoFailure), ahp.NoFailure)
		wantState(t, b, Closed)
	})
}

func TestBulkhead(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			b := New(&fake{intercept: func(*ahp.Call) ahp.Failure {
				<-release
				return ahp.Failure{}
			}}, Settings{Disabled: disabled, Volume: 1, InFlight: 2})
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { b.Intercept(new(ahp.Call), new(ahp.Response)) })
			}
			synctest.Wait()
			for range 10 {
				wantClass(t, "Intercept beyond InFlight", b.Intercept(new(ahp.Call), new(ahp.Response)), ahp.FailBulkheadFull)
			}
			if got := b.InFlight(); got != 2 {
				t.Errorf("InFlight() = %d; want 2", got)
			}
			wantState(t, b, Closed)
			close(release)
			all.Wait()
			wantClass(t, "Intercept after release", b.Intercept(new(ahp.Call), new(ahp.Response)), ahp.NoFailure)
			if got := b.InFlight(); got != 0 {
				t.Errorf("InFlight() = %d; want 0", got)
			}
		})
	}
}

func TestObserveTakesNothingFromDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(scripted)
		release := make(chan struct{})
		var block atomic.Bool
		b := New(&fake{
			intercept: func(*ahp.Call) ahp.Failure {
				if block.Load() {
					<-release
				}
				return s.Intercept(nil, nil)
			},
			observe: s.Observe,
		}, Settings{Volume: 1, OpenFor: time.Second, Probes: 1, InFlight: 1})

		s.class.Store(uint32(ahp.FailConnect))
		for range 10 {
			wantClass(t, "Observe", b.Observe(new(ahp.Call)), ahp.FailConnect)
		}
		wantState(t, b, Closed)

		block.Store(true)
		var all sync.WaitGroup
		all.Go(func() { b.Intercept(new(ahp.Call), new(ahp.Response)) })
		synctest.Wait()
		wantClass(t, "Observe beside a full bulkhead", b.Observe(new(ahp.Call)), ahp.FailConnect)
		block.Store(false)
		close(release)
		all.Wait()
		wantState(t, b, Open)

		before := s.calls.Load()
		wantClass(t, "Observe while open", b.Observe(new(ahp.Call)), ahp.FailBreakerOpen)
		if got := s.calls.Load() - before; got != 0 {
			t.Errorf("observations of an open backend = %d; want 0", got)
		}

		time.Sleep(time.Second + 1)
		s.class.Store(uint32(ahp.NoFailure))
		wantClass(t, "Observe while half open", b.Observe(new(ahp.Call)), ahp.NoFailure)
		wantState(t, b, HalfOpen)
		wantClass(t, "probe after an observation", intercept(b, s, ahp.NoFailure), ahp.NoFailure)
		wantState(t, b, Closed)
	})
}

func TestDisabledNeverOpens(t *testing.T) {
	s := new(scripted)
	b := New(s, Settings{Disabled: true, Volume: 1})
	for range 100 {
		wantClass(t, "Intercept", intercept(b, s, ahp.FailConnect), ahp.FailConnect)
	}
	wantState(t, b, Closed)
}

func TestOnChangeReportsEveryTransitionInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type change struct{ from, to State }
		changes := make(chan change, 16)
		s := new(scripted)
		b := New(s, Settings{Volume: 1, OpenFor: time.Second, Probes: 1, OnChange: func(from, to State) {
			select {
			case changes <- change{from, to}:
			default:
			}
		}})
		trip(t, b, s)
		time.Sleep(time.Second + 1)
		intercept(b, s, ahp.FailStatus)
		time.Sleep(time.Second + 1)
		intercept(b, s, ahp.NoFailure)
		for _, want := range []change{{Closed, Open}, {Open, HalfOpen}, {HalfOpen, Open}, {Open, HalfOpen}, {HalfOpen, Closed}} {
			select {
			case got := <-changes:
				if got != want {
					t.Errorf("OnChange(%v, %v); want (%v, %v)", got.from, got.to, want.from, want.to)
				}
			default:
				t.Errorf("OnChange not called; want (%v, %v)", want.from, want.to)
			}
		}
		if n := len(changes); n != 0 {
			t.Errorf("%d more changes; want none", n)
		}
	})
}

// Many callers, every outcome, a bulkhead, changes of state: nothing
// deadlocks, nothing leaks, the bulkhead holds.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8
		var now, most, changes atomic.Int64
		b := New(&fake{
			intercept: func(call *ahp.Call) ahp.Failure {
				n := now.Add(1)
				defer now.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(time.Millisecond)
				return ahp.Failure{Class: ahp.FailureClass(call.Body[0])}
			},
			observe: func(*ahp.Call) ahp.Failure { return ahp.Failure{} },
		}, Settings{Volume: 3, Ratio: 0.1, OpenFor: 10 * time.Millisecond, Probes: 2, InFlight: limit, OnChange: func(State, State) { changes.Add(1) }})
		classes := []ahp.FailureClass{ahp.NoFailure, ahp.FailConnect, ahp.FailPoolExhausted}
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				for j := range 200 {
					b.Intercept(&ahp.Call{Body: []byte{byte(classes[(i+j)%len(classes)])}}, new(ahp.Response))
					b.Observe(new(ahp.Call))
					b.State()
					time.Sleep(time.Millisecond)
				}
			})
		}
		all.Wait()
		if got := most.Load(); got > limit {
			t.Errorf("calls at once = %d; want at most %d", got, limit)
		}
		if got := b.InFlight(); got != 0 {
			t.Errorf("InFlight() at rest = %d; want 0", got)
		}
		if changes.Load() == 0 {
			t.Error("the breaker never changed its state; want it to")
		}
	})
}

func TestStateString(t *testing.T) {
	for s, want := range map[State]string{Closed: "closed", HalfOpen: "half_open", Open: "open", 9: "unknown"} {
		if got := s.String(); got != want {
			t.Errorf("State(%d).String() = %q; want %q", s, got, want)
		}
	}
}

func TestZeroSettingsMeanDefaults(t *testing.T) {
	want := Settings{Window: 10 * time.Second, Buckets: 10, Volume: 20, Ratio: 0.5, OpenFor: 5 * time.Second, Probes: 3, InFlight: 256}
	for _, in := range []Settings{{}, {Window: -1, Buckets: -1, Volume: -1, Ratio: -1, OpenFor: -1, Probes: -1, InFlight: -1}} {
		got := in.withDefaults()
		got.OnChange = nil
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("withDefaults(%v) = %v; want %v", in, got, want)
		}
	}
}

func TestClosedPathAllocatesNothing(t *testing.T) {
	s := new(scripted)
	b := New(s, Settings{Volume: 1 << 30})
	call, resp := &ahp.Call{Deadline: time.Now()}, new(ahp.Response)
	for _, class := range []ahp.FailureClass{ahp.NoFailure, ahp.FailConnect, ahp.FailPoolExhausted} {
		s.class.Store(uint32(class))
		if got := testing.AllocsPerRun(100, func() { b.Intercept(call, resp) }); got != 0 {
			t.Errorf("allocations of Intercept with %v = %v; want 0", class, got)
		}
	}
	if got := testing.AllocsPerRun(100, func() { b.Observe(call) }); got != 0 {
		t.Errorf("allocations of Observe = %v; want 0", got)
	}
}

func BenchmarkIntercept(b *testing.B) {
	for _, disabled := range []bool{false, true} {
		br := New(new(scripted), Settings{Disabled: disabled, InFlight: 1 << 20})
		b.Run(fmt.Sprintf("disabled=%v", disabled), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				call, resp := new(ahp.Call), new(ahp.Response)
				for pb.Next() {
					br.Intercept(call, resp)
				}
			})
		})
	}
}
