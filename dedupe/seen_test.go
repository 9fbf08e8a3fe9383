package dedupe

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSeenAddsOnce(t *testing.T) {
	s := NewSeen(10, time.Minute)
	if s.Has(key("k")) {
		t.Error("Has(k) = true before Add; want false")
	}
	for i, want := range []bool{true, false, false} {
		if got := s.Add(key("k")); got != want {
			t.Errorf("Add(k) number %d = %v; want %v", i+1, got, want)
		}
	}
	if !s.Has(key("k")) || s.Has(key("other")) {
		t.Errorf("Has(k), Has(other) = %v, %v; want true, false", s.Has(key("k")), s.Has(key("other")))
	}
}

func TestSeenConcurrentAddsHaveOneWinner(t *testing.T) {
	s := NewSeen(1000, time.Minute)
	for k := range 50 {
		var added atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if s.Add(key(fmt.Sprint(k))) {
					added.Add(1)
				}
			})
		}
		all.Wait()
		if got := added.Load(); got != 1 {
			t.Fatalf("Add(%d) = true for %d of 20 callers; want 1", k, got)
		}
	}
}

func TestSeenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSeen(10, time.Minute)
		s.Add(key("k"))
		time.Sleep(time.Minute - 1)
		if s.Add(key("k")) {
			t.Error("Add(k) before its time was up = true; want false")
		}
		time.Sleep(time.Nanosecond) // the second Add has not extended the time
		if s.Has(key("k")) {
			t.Error("Has(k) after its time = true; want false")
		}
		if !s.Add(key("k")) {
			t.Error("Add(k) after its time = false; want true")
		}
		time.Sleep(time.Minute - 1)
		if !s.Has(key("k")) {
			t.Error("Has(k) after it was added anew = false; want true")
		}
	})
}

func TestSeenForgetsTheFirstAdded(t *testing.T) {
	s := NewSeen(3, time.Minute)
	for _, k := range []string{"a", "b", "c"} {
		s.Add(key(k))
	}
	s.Add(key("a")) // neither asking nor adding again makes a key younger
	s.Has(key("a"))
	s.Add(key("d"))
	for k, want := range map[string]bool{"a": false, "b": true, "c": true, "d": true} {
		if got := s.Has(key(k)); got != want {
			t.Errorf("Has(%q) = %v; want %v", k, got, want)
		}
	}
}

func TestSeenIsBounded(t *testing.T) {
	const entries = 1024
	s := NewSeen(entries, time.Minute)
	for i := range 10 * entries {
		s.Add(key(fmt.Sprint(i)))
	}
	held := 0
	for i := range s.shards {
		held += s.shards[i].keys.Len()
	}
	if held > entries || held == 0 {
		t.Errorf("keys held = %d; want 1 to %d", held, entries)
	}
}

func TestSeenThatHoldsNothing(t *testing.T) {
	for _, s := range []*Seen{NewSeen(0, time.Minute), NewSeen(10, 0), NewSeen(-1, -1)} {
		for range 2 {
			if !s.Add(key("k")) {
				t.Error("Add(k) = false; want true")
			}
		}
		if s.Has(key("k")) {
			t.Error("Has(k) = true; want false")
		}
	}
}

func BenchmarkSeenAdd(b *testing.B) {
	s := NewSeen(8192, time.Hour)
	var next atomic.Uint64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Add(numbered(next.Add(1)))
		}
	})
}
