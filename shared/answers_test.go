package shared

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// Of all who ask in all replicas at once, one evaluates and all have its answer.
func TestOneEvaluates(t *testing.T) {
	all := replicas(t, redistest.Start(t), 3)
	for n := range 50 {
		var evaluated atomic.Int32
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				answer, got, lease := all[i%len(all)].Ask(question(fmt.Sprint("q", n), "m"))
				switch got {
				case Lead:
					evaluated.Add(1)
					lease.Finish([]byte("the answer"), time.Minute)
				case Hit, Joined:
					if string(answer) != "the answer" {
						t.Errorf("question %d: Ask = %q; want the answer", n, answer)
					}
				default:
					t.Errorf("question %d: Ask = %d; want Lead, Hit or Joined", n, got)
				}
			})
		}
		wg.Wait()
		if got := evaluated.Load(); got != 1 {
			t.Errorf("question %d: %d evaluations; want 1", n, got)
		}
	}
}

// Other content under the same key is never answered, in flight or after, and
// changes nothing.
func TestConflict(t *testing.T) {
	all := replicas(t, redistest.Start(t), 2)
	_, _, lease := all[0].Ask(question("q", "m"))
	answer, got, none := all[1].Ask(question("q", "other"))
	want(t, "Ask for other content in flight", answer, got, "", Conflict)
	if none != nil {
		t.Error("a conflict has a lease; want none")
	}
	lease.Finish([]byte("a"), time.Minute)
	answer, got, _ = all[1].Ask(question("q", "other"))
	want(t, "Ask for other content", answer, got, "", Conflict)
	answer, got, _ = all[1].Ask(question("q", "m"))
	want(t, "Ask", answer, got, "a", Hit)
}

// waiter asks on a goroutine, and returns once the server knows that it waits.
func waiter(t *testing.T, server *redistest.Server, st *Store, q *Question) <-chan func() ([]byte, Outcome, *Lease) {
	t.Helper()
	result := make(chan func() ([]byte, Outcome, *Lease), 1)
	go func() {
		answer, got, lease := st.Ask(q)
		result <- func() ([]byte, Outcome, *Lease) { return answer, got, lease }
	}()
	for server.Command("HEXISTS", "test:"+q.Key, "w") != ":1" {
	}
	return result
}

// An answer that may not be remembered is for those who wait already. Whoever
// comes after evaluates again.
func TestPassingAnswer(t *testing.T) {
	server := redistest.Start(t)
	all := replicas(t, server, 3)
	_, _, lease := all[0].Ask(question("q", "m"))
	joined := waiter(t, server, all[1], question("q", "m"))
	lease.Finish([]byte("degraded"), 0)
	later, got, next := all[2].Ask(question("q", "m"))
	want(t, "Ask after an answer that may not be remembered", later, got, "", Lead)
	answer, got, _ := (<-joined)()
	want(t, "Ask that waited", answer, got, "degraded", Joined)
	next.Finish([]byte("final"), time.Minute)
	answer, got, _ = all[1].Ask(question("q", "m"))
	want(t, "Ask in the end", answer, got, "final", Hit)
}

// Nobody waits: then nothing is left at all.
func TestPassingAnswerOfNobody(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	probes := server.Command("DBSIZE") // of the connection's own, for a moment
	_, _, lease := st.Ask(question("q", "m"))
	lease.Finish([]byte("degraded"), 0)
	if got := server.Command("EXISTS", "test:q", passing("test:q", lease.token)); got != ":0" {
		t.Errorf("keys left = %s (%s before); want none", got, probes)
	}
}

// A lease that is given back goes to one of those who wait.
func TestAbandoned(t *testing.T) {
	server := redistest.Start(t)
	all := replicas(t, server, 2)
	_, _, lease := all[0].Ask(question("q", "m"))
	next := waiter(t, server, all[1], question("q", "m"))
	lease.Finish(nil, 0)
	lease.Finish([]byte("too late"), time.Minute) // only the first counts
	answer, got, taken := (<-next)()
	want(t, "Ask that waited", answer, got, "", Lead)
	taken.Finish([]byte("a"), time.Minute)
	answer, got, _ = all[0].Ask(question("q", "m"))
	want(t, "Ask", answer, got, "a", Hit)
}

// A leader that dies, or is too slow, is followed by another, and changes
// nothing of what that one leaves.
func TestLeaseExpires(t *testing.T) {
	all := replicas(t, redistest.Start(t), 2)
	short := question("q", "m")
	short.Lease = 20 * time.Millisecond
	_, _, slow := all[0].Ask(short)
	answer, got, lease := all[1].Ask(question("q", "m")) // waits until then
	want(t, "Ask while the lease runs out", answer, got, "", Lead)
	slow.Finish([]byte("overtaken"), time.Minute)
	lease.Finish([]byte("a"), time.Minute)
	slow.finished.Store(false)
	slow.Finish([]byte("overtaken"), time.Minute)
	answer, got, _ = all[0].Ask(question("q", "m"))
	want(t, "Ask", answer, got, "a", Hit)
}

// Who waits has a deadline.
func TestWaitTimesOut(t *testing.T) {
	all := replicas(t, redistest.Start(t), 2)
	all[0].Ask(question("q", "m"))
	q := question("q", "m")
	q.Deadline = time.Now().Add(40 * time.Millisecond)
	answer, got, lease := all[1].Ask(q)
	want(t, "Ask", answer, got, "", TimedOut)
	if lease != nil {
		t.Error("a wait that timed out has a lease; want none")
	}
}

// Who waits when the server goes is let go.
func TestServerGoesWhileWaiting(t *testing.T) {
	server := redistest.Start(t)
	all := replicas(t, server, 2)
	all[0].Ask(question("q", "m"))
	waiting := waiter(t, server, all[1], question("q", "m"))
	server.Kill()
	answer, got, _ := (<-waiting)()
	want(t, "Ask", answer, got, "", Unavailable)
}

// A server that forgets everything forgets leases: the question is evaluated
// again, and the first leader's answer reaches nobody.
func TestFlushed(t *testing.T) {
	server := redistest.Start(t)
	all := replicas(t, server, 2)
	_, _, first := all[0].Ask(question("q", "m"))
	server.Command("FLUSHALL")
	first.Finish([]byte("first"), time.Minute)
	answer, got, second := all[1].Ask(question("q", "m"))
	want(t, "Ask after a flush", answer, got, "", Lead)
	second.Finish([]byte("second"), time.Minute)
	answer, got, _ = all[0].Ask(question("q", "m"))
	want(t, "Ask", answer, got, "second", Hit)
	// Scripts are forgotten as well.
	server.Command("SCRIPT", "FLUSH")
	answer, got, _ = all[0].Ask(question("q", "m"))
	want(t, "Ask without scripts", answer, got, "second", Hit)
}

// A lease whose grant got lost is used all the same, so that nobody waits for
// its end.
func TestLostGrant(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address, func(s *Settings) { s.Timeout = 100 * time.Millisecond })
	server.Pause()
	_, got, lease := st.Ask(question("q", "m"))
	if got != Unavailable {
		t.Fatalf("Ask of a paused server = %d; want Unavailable", got)
	}
	server.Resume()
	for server.Command("EXISTS", "test:q") != ":1" {
	}
	lease.Finish([]byte("a"), time.Minute)
	other := open(t, server.Address)
	if answer, got, _ := other.Ask(question("q", "m")); string(answer) != "a" || got != Hit && got != Joined {
		t.Errorf("Ask = %q, %d; want the answer under the lost grant", answer, got)
	}
}

// A lease that could not be ended while the server was out of reach is given back
// when it is there again: nobody waits for its end.
func TestOrphans(t *testing.T) {
	server := redistest.Start(t)
	link := server.Connect()
	told, change := changes()
	st := open(t, link.Address, told, func(s *Settings) { s.Timeout = 250 * time.Millisecond })
	answer, got, lease := st.Ask(question("q", "m"))
	want(t, "Ask", answer, got, "", Lead)
	link.Cut()
	for range patience {
		st.Ask(question("other", "m"))
	}
	lease.Finish([]byte("nobody's"), time.Minute)
	<-change
	link.Mend()
	<-change
	q := question("q", "m")
	q.Deadline = time.Now().Add(10 * time.Second) // long before the lease ends
	answer, got, _ = open(t, server.Address).Ask(q)
	want(t, "Ask of another replica", answer, got, "", Lead)
	if got := len(st.orphans.leases); got != 0 {
		t.Errorf("%d orphans are left; want none", got)
	}
}

// What no replica left there is nobody's answer.
func TestOddValues(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	server.Command("SET", "test:string", "x")
	if _, got, _ := st.Ask(question("string", "m")); got != Unavailable {
		t.Errorf("Ask for a key of another type = %d; want Unavailable", got)
	}
	q := question("halved", "m")
	_, _, _ = st.Ask(q)
	server.Command("HDEL", "test:halved", "t")
	if _, got, lease := st.Ask(q); got != Odd || lease != nil {
		t.Errorf("Ask for a question without a lease and an answer = %d, %v; want Odd, none", got, lease)
	}
	server.Command("HSET", "test:long", "f", "x")
	if _, got, _ := st.Ask(question("long", "m")); got != Conflict {
		t.Errorf("Ask for a foreign fingerprint = %d; want Conflict", got)
	}
	if got := st.Failures[Begin][Malformed].Load(); got != 1 {
		t.Errorf("%d malformed; want 1", got)
	}
	if got := st.Failures[Begin][Refused].Load(); got != 1 {
		t.Errorf("%d refused; want 1", got)
	}
}

// An answer that is too large is given to nobody.
func TestLargeAnswer(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	for size, wanted := range map[int]Outcome{MaxAnswer: Hit, MaxAnswer + 1: Lead} {
		q := question(fmt.Sprint(size), "m")
		_, _, lease := st.Ask(q)
		lease.Finish([]byte(strings.Repeat("x", size)), time.Minute)
		if answer, got, _ := st.Ask(q); got != wanted || got == Hit && len(answer) != size {
			t.Errorf("Ask for an answer of %d bytes = %d bytes, %d; want %d", size, len(answer), got, wanted)
		}
	}
}

// Databases and prefixes of one server have nothing in common.
func TestDatabasesAndPrefixes(t *testing.T) {
	server := redistest.Start(t)
	for _, change := range []func(*Settings){
		func(*Settings) {}, func(s *Settings) { s.Database = 3 }, func(s *Settings) { s.Prefix = "other" },
	} {
		st := open(t, server.Address, change)
		answer, got, _ := st.Ask(question("q", "m"))
		want(t, "Ask", answer, got, "", Lead)
		admits(t, "an allowance", st.Allowance("b", Terms{Rate: slow, Burst: 5, Day: 1}, nil), 1, OverQuota)
	}
}

// Everything that is left expires.
func TestEverythingExpires(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	st.Ask(question("leased", "m"))
	_, _, lease := st.Ask(question("answered", "m"))
	lease.Finish([]byte("a"), time.Minute)
	st.Allowance("b", Terms{Rate: 1, Burst: 1, Day: 1}, nil).Take(time.Now())
	for _, key := range []string{"leased", "answered", "rate:b", "quota:b"} {
		if got := server.Command("PTTL", "test:"+key); strings.HasPrefix(got, ":-") || got == ":0" {
			t.Errorf("PTTL of %s = %s; want a time", key, got)
		}
	}
}
