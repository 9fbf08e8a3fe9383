package dedupe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// roomy is a cache whose bounds a test does not reach.
var roomy = Settings{Entries: 1000, Bytes: 1 << 20, TTL: time.Minute}

func key(s string) Key { return KeyOf(s) }

var fingerprints = NewFingerprints()

func fingerprint(s string) (fp Fingerprint) {
	fingerprints.Make(&fp, []byte(s))
	return fp
}

// soon is a deadline that a test does not reach.
func soon() time.Time { return time.Now().Add(time.Second) }

// begin calls Begin and fails the test unless the outcome, the answer and the
// presence of a flight fit together and are the wanted ones.
func begin(t *testing.T, c *Cache, k, fp string, wantAnswer string, want Outcome) *Flight {
	t.Helper()
	answer, outcome, lead := c.Begin(key(k), fingerprint(fp), soon())
	if outcome != want || string(answer) != wantAnswer {
		t.Fatalf("Begin(%q, %q) = %q, %v; want %q, %v", k, fp, answer, outcome, wantAnswer, want)
	}
	if (lead != nil) != (want == Miss) {
		t.Fatalf("Begin(%q, %q): lead = %v with %v; want one for a miss only", k, fp, lead, outcome)
	}
	return lead
}

// store evaluates a question that nobody has asked yet.
func store(t *testing.T, c *Cache, k, fp, answer string) {
	t.Helper()
	begin(t, c, k, fp, "", Miss).Finish([]byte(answer), true)
}

func TestFinalAnswerIsRemembered(t *testing.T) {
	c := New(roomy)
	store(t, c, "k", "f", "deny")
	begin(t, c, "k", "f", "deny", Hit)
	begin(t, c, "k", "f", "deny", Hit)
	begin(t, c, "other", "f", "", Miss)
}

func TestAnswerThatIsNotFinalIsForgotten(t *testing.T) {
	c := New(roomy)
	begin(t, c, "k", "f", "", Miss).Finish([]byte("degraded"), false)
	store(t, c, "k", "f", "deny")
	begin(t, c, "k", "f", "deny", Hit)
}

// Same key, other content: never the remembered answer, and the remembered
// answer stays what it was.
func TestConflictWithRememberedAnswer(t *testing.T) {
	c := New(roomy)
	store(t, c, "k", "f", "allow")
	begin(t, c, "k", "other", "", Conflict)
	begin(t, c, "k", "other", "", Conflict)
	begin(t, c, "k", "f", "allow", Hit)
}

func TestConflictWithEvaluationInFlight(t *testing.T) {
	c := New(roomy)
	lead := begin(t, c, "k", "f", "", Miss)
	begin(t, c, "k", "other", "", Conflict)
	lead.Finish([]byte("allow"), true)
	begin(t, c, "k", "other", "", Conflict)
	begin(t, c, "k", "f", "allow", Hit)
}

func TestConcurrentDuplicatesAreOneEvaluation(t *testing.T) {
	for _, s := range []Settings{roomy, {}} {
		for _, final := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				c := New(s)
				evaluate := make(chan struct{})
				var outcomes [Abandoned + 1]atomic.Int64
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() {
						answer, outcome, lead := c.Begin(key("k"), fingerprint("f"), soon())
						outcomes[outcome].Add(1)
						if lead != nil {
							<-evaluate
							answer = []byte("deny")
							lead.Finish(answer, final)
						}
						if string(answer) != "deny" {
							t.Errorf("Begin = %q, %v; want deny", answer, outcome)
						}
					})
				}
				synctest.Wait()
				close(evaluate)
				all.Wait()
				if got := outcomes[Miss].Load(); got != 1 {
					t.Errorf("evaluations of 100 duplicates = %d; want 1", got)
				}
				if got := outcomes[Joined].Load(); got != 99 {
					t.Errorf("joins of 100 duplicates = %d; want 99", got)
				}
				if final && s.Entries > 0 {
					begin(t, c, "k", "f", "deny", Hit)
				} else {
					begin(t, c, "k", "f", "", Miss)
				}
			})
		}
	}
}

// waiter joins an evaluation in flight.
func waiter(c *Cache, deadline time.Time) <-chan Outcome {
	done := make(chan Outcome, 1)
	go func() {
		_, outcome, _ := c.Begin(key("k"), fingerprint("f"), deadline)
		done <- outcome
	}()
	synctest.Wait()
	return done
}

func TestPanickingLeaderReleasesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(roomy)
		lead := begin(t, c, "k", "f", "", Miss)
		joined := waiter(c, soon())
		func() {
			defer func() { recover() }()
			defer lead.Finish(nil, false)
			panic("evaluation failed")
		}()
		if got := <-joined; got != Abandoned {
			t.Errorf("outcome of a waiter = %v; want %v", got, Abandoned)
		}
		begin(t, c, "k", "f", "", Miss)
	})
}

func TestWaiterLeavesAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(roomy)
		lead := begin(t, c, "k", "f", "", Miss)
		start := time.Now()
		short, long := waiter(c, start.Add(time.Second)), waiter(c, start.Add(3*time.Second))
		if got := <-short; got != TimedOut {
			t.Errorf("outcome at the deadline = %v; want %v", got, TimedOut)
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("waited %v; want 1s", got)
		}
		if got := <-waiter(c, start); got != TimedOut {
			t.Errorf("outcome with a deadline that has passed = %v; want %v", got, TimedOut)
		}
		lead.Finish([]byte("deny"), false)
		if got := <-long; got != Joined {
			t.Errorf("outcome before the deadline = %v; want %v", got, Joined)
		}
	})
}

func TestOnlyTheFirstFinishCounts(t *testing.T) {
	c := New(roomy)
	lead := begin(t, c, "k", "f", "", Miss)
	lead.Finish([]byte("deny"), true)
	lead.Finish([]byte("allow"), true)
	lead.Finish(nil, false)
	begin(t, c, "k", "f", "deny", Hit)

	// A late second call must not end somebody else's evaluation of the key.
	late := begin(t, c, "k2", "f", "", Miss)
	late.Finish([]byte("degraded"), false)
	next := begin(t, c, "k2", "f", "", Miss)
	late.Finish([]byte("allow"), true)
	next.Finish([]byte("deny"), true)
	begin(t, c, "k2", "f", "deny", Hit)
}

func TestAnswerIsACopy(t *testing.T) {
	c := New(roomy)
	buffer := []byte("deny")
	begin(t, c, "k", "f", "", Miss).Finish(buffer, true)
	copy(buffer, "xxxx")
	begin(t, c, "k", "f", "deny", Hit)
}

func TestAnswerExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(roomy)
		store(t, c, "k", "f", "deny")
		time.Sleep(roomy.TTL - 1)
		begin(t, c, "k", "f", "deny", Hit) // a hit does not extend the time
		time.Sleep(time.Nanosecond)
		lead := begin(t, c, "k", "other", "", Miss) // what has expired conflicts with nothing
		lead.Finish([]byte("allow"), true)
		begin(t, c, "k", "other", "allow", Hit)
		if got, want := held(c), len("allow"); got != want {
			t.Errorf("bytes held = %d; want %d", got, want)
		}
	})
}

// held is the sum of what the shards believe they hold; it fails to be right
// if any path forgets to count.
func held(c *Cache) (n int) {
	for i := range c.shards {
		n += c.shards[i].bytes
	}
	return n
}

func TestEntriesBound(t *testing.T) {
	c := New(Settings{Entries: 3, Bytes: 1 << 20, TTL: time.Minute})
	for _, k := range []string{"a", "b", "c"} {
		store(t, c, k, "f", k)
	}
	begin(t, c, "a", "f", "a", Hit) // now b is the one that was not used for longest
	store(t, c, "d", "f", "d")
	for _, k := range []string{"a", "c", "d"} {
		begin(t, c, k, "f", k, Hit)
	}
	begin(t, c, "b", "f", "", Miss)
	if got := held(c); got != 3 {
		t.Errorf("bytes held = %d; want 3", got)
	}
}

func TestBytesBound(t *testing.T) {
	c := New(Settings{Entries: 10, Bytes: 10, TTL: time.Minute})
	store(t, c, "a", "f", "aaaa")
	store(t, c, "b", "f", "bbbb")
	store(t, c, "c", "f", "cccccc") // 14 bytes: a has to go
	begin(t, c, "b", "f", "bbbb", Hit)
	begin(t, c, "c", "f", "cccccc", Hit)
	if got := held(c); got != 10 {
		t.Errorf("bytes held = %d; want 10", got)
	}
	store(t, c, "d", "f", "dddddddddd") // all the others have to go
	begin(t, c, "d", "f", "dddddddddd", Hit)
	if got := held(c); got != 10 {
		t.Errorf("bytes held = %d; want 10", got)
	}
	store(t, c, "e", "f", "eeeeeeeeeee") // larger than the bound: shared, not remembered
	begin(t, c, "d", "f", "dddddddddd", Hit)
	for _, k := range []string{"a", "e"} {
		begin(t, c, k, "f", "", Miss)
	}
}

func TestBoundsHoldOverAllShards(t *testing.T) {
	for _, s := range []Settings{
		{Entries: 1024, Bytes: 4096, TTL: time.Minute},    // the bytes bind
		{Entries: 1024, Bytes: 1 << 20, TTL: time.Minute}, // the entries bind
	} {
		c := New(s)
		for i := range 10_000 {
			store(t, c, fmt.Sprint(i), "f", string(bytes.Repeat([]byte{'a'}, i%32+1)))
		}
		entries, size := 0, 0
		for i := range c.shards {
			for _, f := range c.shards[i].answers.Values() {
				entries, size = entries+1, size+len(f.answer)
			}
		}
		if entries > s.Entries || entries == 0 {
			t.Errorf("%+v: entries = %d; want 1 to %d", s, entries, s.Entries)
		}
		if size > s.Bytes || size != held(c) {
			t.Errorf("%+v: bytes = %d, counted %d; want them equal and at most %d", s, size, held(c), s.Bytes)
		}
	}
}

func TestAnyZeroSettingRemembersNothing(t *testing.T) {
	for _, s := range []Settings{{}, {Entries: 10}, {Entries: 10, Bytes: 10}, {Bytes: 10, TTL: 1}, {Entries: 10, TTL: time.Hour}, {Entries: -1, Bytes: -1, TTL: -1}} {
		c := New(s)
		store(t, c, "k", "f", "deny")
		begin(t, c, "k", "f", "", Miss)
		if got := held(c); got != 0 {
			t.Errorf("bytes held with %+v = %d; want 0", s, got)
		}
	}
}

// Tenants have a cache each and share nothing.
func TestCachesShareNothing(t *testing.T) {
	a, b := New(roomy), New(roomy)
	store(t, a, "k", "f", "allow")
	lead := begin(t, b, "k", "f", "", Miss)
	begin(t, a, "k", "f", "allow", Hit)
	lead.Finish([]byte("deny"), true)
	begin(t, a, "k", "f", "allow", Hit)
	begin(t, b, "k", "f", "deny", Hit)
}

// Every answer is a function of key and fingerprint, so an answer that reaches
// the wrong question is seen, whatever the interleaving.
func TestConcurrentUseNeverMixesAnswers(t *testing.T) {
	c := New(Settings{Entries: 8, Bytes: 200, TTL: time.Minute})
	var all sync.WaitGroup
	var misses atomic.Int64
	for g := range 8 {
		all.Go(func() {
			for i := range 3000 {
				n := uint64(i*(g+3)) % 24
				k, fp := fmt.Sprint("k", n), fmt.Sprint("f", uint64(i)%3/2)
				want := k + fp
				answer, outcome, lead := c.Begin(key(k), fingerprint(fp), time.Now().Add(time.Minute))
				switch outcome {
				case Hit, Joined:
					if string(answer) != want {
						t.Errorf("Begin(%q, %q) = %q, %v; want %q", k, fp, answer, outcome, want)
					}
				case Miss:
					misses.Add(1)
					if i%5 == 0 {
						lead.Finish(nil, false)
					} else {
						lead.Finish([]byte(want), i%3 != 0)
					}
				case TimedOut:
					t.Errorf("Begin(%q, %q) timed out; every flight is finished", k, fp)
				}
			}
		})
	}
	all.Wait()
	for i := range c.shards {
		if n := len(c.shards[i].flights); n != 0 {
			t.Errorf("flights left = %d; want 0", n)
		}
	}
	if misses.Load() == 0 {
		t.Error("no miss; want some")
	}
}

func TestOutcomeString(t *testing.T) {
	for o, want := range map[Outcome]string{Miss: "miss", Hit: "hit", Joined: "joined", Conflict: "conflict", TimedOut: "timed_out", Abandoned: "abandoned", 99: "unknown"} {
		if got := o.String(); got != want {
			t.Errorf("Outcome(%d).String() = %q; want %q", o, got, want)
		}
	}
}

func TestShardsFor(t *testing.T) {
	for entries, want := range map[int]int{0: maxShards, 1: 1, 63: 1, 127: 1, 128: 2, 512: 8, minShare * maxShards: maxShards, 1 << 20: maxShards} {
		if got := shardsFor(entries); got != want {
			t.Errorf("shardsFor(%d) = %d; want %d", entries, got, want)
		}
	}
}

func TestHitAllocatesNothing(t *testing.T) {
	c := New(roomy)
	store(t, c, "k", "f", "deny")
	k, fp, deadline := key("k"), fingerprint("f"), soon()
	if got := testing.AllocsPerRun(100, func() { c.Begin(k, fp, deadline) }); got != 0 {
		t.Errorf("allocations of a hit = %v; want 0", got)
	}
}

// numbered is a key that spreads over the shards without hashing in the loop.
func numbered(n uint64) (k Key) {
	binary.LittleEndian.PutUint64(k[:], n*0x9e3779b97f4a7c15>>8)
	return k
}

// BenchmarkShards is what maxShards was chosen by: misses and hits of a full
// cache, from every processor at once. Run it with -cpu.
func BenchmarkShards(b *testing.B) {
	answer := bytes.Repeat([]byte{'a'}, 128)
	for _, n := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("shards=%d", n), func(b *testing.B) {
			c := New(Settings{Entries: 8192, Bytes: 8 << 20, TTL: time.Hour})
			c.first.Do(func() { c.allocate(n) })
			var next atomic.Uint64
			deadline := time.Now().Add(time.Hour)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					k := numbered(next.Add(1))
					_, _, lead := c.Begin(k, Fingerprint{}, deadline)
					lead.Finish(answer, true)
					c.Begin(k, Fingerprint{}, deadline)
				}
			})
		})
	}
}

func BenchmarkHit(b *testing.B) {
	c := New(roomy)
	_, _, lead := c.Begin(Key{}, Fingerprint{}, time.Time{})
	lead.Finish([]byte("deny"), true)
	b.ReportAllocs()
	for b.Loop() {
		c.Begin(Key{}, Fingerprint{}, time.Time{})
	}
}

// BenchmarkMiss leads and finishes a flight that is remembered, or not.
func BenchmarkMiss(b *testing.B) {
	answer := bytes.Repeat([]byte{'a'}, 128)
	for _, final := range []bool{true, false} {
		b.Run(fmt.Sprintf("final=%v", final), func(b *testing.B) {
			c := New(Settings{Entries: 8192, Bytes: 8 << 20, TTL: time.Hour})
			var n uint64
			b.ReportAllocs()
			for b.Loop() {
				n++
				_, _, lead := c.Begin(numbered(n), Fingerprint{}, time.Time{})
				lead.Finish(answer, final)
			}
		})
	}
}

// idle keeps BenchmarkIdle's caches from being optimised away.
var idle *Cache

// BenchmarkIdle reports what a cache costs that is never used, and one that was used once.
func BenchmarkIdle(b *testing.B) {
	b.Run("unused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			idle = New(roomy)
		}
	})
	b.Run("usedOnce", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			idle = New(roomy)
			_, _, lead := idle.Begin(Key{}, Fingerprint{}, time.Time{})
			lead.Finish([]byte("deny"), true)
		}
	})
}

// Known sees what Begin would answer, for any content, and begins nothing.
func TestKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Settings{Entries: 10, Bytes: 1000, TTL: time.Minute})
		k := KeyOf("a")
		if got := c.Known(k); got != nil {
			t.Errorf("Known before anything = %q; want nil", got)
		}
		_, how, lead := c.Begin(k, Fingerprint{}, time.Now())
		if got := c.Known(k); got != nil || how != Miss {
			t.Errorf("Known in flight = %q after %v; want nil after %v", got, how, Miss)
		}
		lead.Finish([]byte("answer"), true)
		if got := c.Known(k); string(got) != "answer" {
			t.Errorf("Known = %q; want the answer", got)
		}
		time.Sleep(time.Minute)
		if got := c.Known(k); got != nil {
			t.Errorf("Known after the TTL = %q; want nil", got)
		}
	})
}
