package shared

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// slow is a rate at which no test sees a token come back.
const slow = 0.001

// bucket returns an allowance by rate alone.
func bucket(st *Store, name string, rate float64, burst int) *Allowance {
	return st.Allowance(name, Terms{Rate: rate, Burst: burst}, nil)
}

// clocked has st run the script by a clock of the test, which is the server's
// for all stores that have it.
func clocked(st *Store) {
	st.scripts.take = rueidis.NewLuaScript(strings.Replace(takeScript, "redis.call('TIME')", "{redis.call('GET', 'clock'), '0'}", 1))
}

// setClock sets the clock of the test.
func setClock(s *redistest.Server, now time.Time) {
	s.Command("SET", "clock", strconv.FormatInt(now.Unix(), 10))
}

// admits fails the test unless a admits n requests and then no more, and returns
// how long the next one is told to wait.
func admits(t *testing.T, what string, a *Allowance, n int, over Standing) (wait time.Duration) {
	t.Helper()
	now := time.Now()
	for i := range n {
		if found, wait := a.Take(now); found != Admitted || wait != 0 {
			t.Fatalf("%s: Take() number %d = %d, %v; want admitted", what, i+1, found, wait)
		}
	}
	found, wait := a.Take(now)
	if found != over {
		t.Errorf("%s: Take() number %d = %d, %v; want %d", what, n+1, found, wait, over)
	}
	return wait
}

// stored returns the counts that the server has under a name.
func stored(t *testing.T, st *Store, name string) (v string) {
	t.Helper()
	c := st.conn.Load().client
	v, err := c.Do(t.Context(), c.B().Get().Key("test:quota:"+name).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
	return v
}

// A bucket is one for all replicas: together they take what one may.
func TestBucketIsShared(t *testing.T) {
	all := replicas(t, redistest.Start(t), 3)
	var taken atomic.Int32
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			found, wait := bucket(all[i%len(all)], "acme", slow, 20).Take(time.Now())
			switch {
			case found == Admitted:
				taken.Add(1)
			case found != OverRate:
				t.Errorf("Take() = %d; want admitted or over the rate", found)
			case wait <= 0 || wait > 1000*time.Second:
				t.Errorf("Take() = %v; want at most the time of one token", wait)
			}
		})
	}
	wg.Wait()
	if got := taken.Load(); got != 20 {
		t.Errorf("%d of 60 took a token; want the burst, 20", got)
	}
	admits(t, "another bucket", bucket(all[0], "other", slow, 1), 1, OverRate)
}

// Tokens come back by the server's clock, to the size of the bucket and no more.
func TestBucketFills(t *testing.T) {
	b := bucket(open(t, redistest.Start(t).Address), "b", 1e6, 3)
	for range 10 { // a token comes back in a microsecond
		found, _ := b.Take(time.Now())
		for found == OverRate {
			found, _ = b.Take(time.Now())
		}
		if found != Admitted {
			t.Fatalf("Take() = %d; want a token", found)
		}
	}
}

// A clock that was set back, or a bucket that has become smaller, holds nobody
// up for longer than an empty bucket does.
func TestBucketOfAnotherTime(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	server.Command("SET", "test:rate:b", "99999999999999999")
	if wait := admits(t, "another time", bucket(st, "b", slow, 5), 0, OverRate); wait <= 0 || wait > 1000*time.Second {
		t.Errorf("Take() = %v; want at most the time of one token", wait)
	}
	server.Command("SET", "test:rate:b", "rubbish")
	if found, _ := bucket(st, "b", slow, 5).Take(time.Now()); found != Admitted {
		t.Errorf("Take() from rubbish = %d; want a token", found)
	}
}

// Without a server nothing is known, at once, and the terms say what that means.
func TestAllowanceWithoutServer(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	server.Kill()
	for _, c := range []struct {
		terms Terms
		n     int
		over  Standing
	}{
		{Terms{Rate: slow, Burst: 5, Required: true}, 0, Unknown},
		{Terms{Day: 5, Required: true}, 0, Unknown},
		{Terms{Rate: slow, Burst: 5, Day: 7}, 7, OverQuota},
		{Terms{Rate: slow, Burst: 5, Month: 7}, 7, OverQuota},
		{Terms{Day: 9, Month: 7}, 7, OverQuota},
	} {
		if wait := admits(t, fmt.Sprintf("%+v", c.terms), st.Allowance("b", c.terms, nil), c.n, c.over); wait <= 0 || wait > 24*time.Hour {
			t.Errorf("%+v: wait = %v; want a day at most", c.terms, wait)
		}
	}
	a := bucket(st, "b", slow, 5)
	for range 20 { // the limiter in front of it has a rate of its own
		if found, _ := a.Take(time.Now()); found != Admitted {
			t.Errorf("Take() by rate without a server = %d; want admitted", found)
		}
	}
	if a := st.Allowance("b", Terms{Burst: 5, Required: true}, nil); a != nil {
		t.Errorf("Allowance() without a limit = %v; want none", a)
	}
}

// What is counted still, and limited no more, is admitted without a server too,
// and owed.
func TestNothingLimitedWithoutServer(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	a := st.Allowance("acme", Terms{Day: 3, Required: true}, nil)
	admits(t, "a quota", a, 3, OverQuota)
	a = st.Allowance("acme", Terms{Required: true}, a)
	server.Kill()
	for i := range 5 {
		if found, _ := a.Take(time.Now()); found != Admitted {
			t.Errorf("Take() number %d without a limit and without a server = %d; want admitted", i, found)
		}
	}
	if day, _, _ := a.Used(time.Now()); day != 8 {
		t.Errorf("Used() = %d; want 8", day)
	}
	if found, _ := st.Allowance("acme", Terms{Rate: slow, Burst: 5, Required: true}, a).Take(time.Now()); found != Unknown {
		t.Errorf("Take() with a rate again = %d; want unknown", found)
	}
}

// A quota is one for all replicas: together they take what one may, and what is
// refused, at the rate or the quota, takes nothing of either.
func TestQuotaIsShared(t *testing.T) {
	for _, terms := range []Terms{{Day: 40}, {Month: 40}, {Day: 40, Month: 50}, {Day: 40, Rate: 1e6, Burst: 1000}} {
		all := replicas(t, redistest.Start(t), 3)
		var each []*Allowance
		for _, st := range all {
			each = append(each, st.Allowance("acme", terms, nil))
		}
		var taken atomic.Int32
		var wg sync.WaitGroup
		for i := range 120 {
			wg.Go(func() {
				found, wait := each[i%len(each)].Take(time.Now())
				switch {
				case found == Admitted:
					taken.Add(1)
				case found != OverQuota || wait <= 0 || wait > 24*time.Hour:
					t.Errorf("%+v: Take() = %d, %v; want over the quota, for a day at most", terms, found, wait)
				}
			})
		}
		wg.Wait()
		if got := taken.Load(); got != 40 {
			t.Errorf("%+v: %d of 120 were admitted; want 40", terms, got)
		}
		for i, a := range each {
			if day, month, ok := a.Used(time.Now()); !ok || day > 40 || month != day || i == 0 && day == 0 {
				t.Errorf("%+v: Used() of replica %d = %d, %d, %t; want 40 at most, of the month as well", terms, i, day, month, ok)
			}
		}
		admits(t, "another name", all[0].Allowance("other", terms, nil), 40, OverQuota)
	}
	st := open(t, redistest.Start(t).Address)
	admits(t, "over the rate", st.Allowance("a", Terms{Rate: slow, Burst: 3, Day: 5}, nil), 3, OverRate)
	admits(t, "the rest of the quota", st.Allowance("a", Terms{Day: 5}, nil), 2, OverQuota)
	admits(t, "over the quota", st.Allowance("b", Terms{Rate: slow, Burst: 5, Day: 3}, nil), 3, OverQuota)
	admits(t, "the rest of the bucket", bucket(st, "b", slow, 5), 2, OverRate)
}

// A quota that is changed holds for what is counted already, and one that is
// taken away and comes back finds it.
func TestQuotaIsChanged(t *testing.T) {
	st := open(t, redistest.Start(t).Address)
	a := st.Allowance("acme", Terms{Day: 3}, nil)
	admits(t, "3 a day", a, 3, OverQuota)
	for _, c := range []struct {
		terms Terms
		n     int
	}{
		{Terms{Day: 5}, 2}, {Terms{Day: 2}, 0}, {Terms{Day: 9, Month: 6}, 1}, {Terms{Month: 7, Rate: 1e6, Burst: 100}, 1},
	} {
		a = st.Allowance("acme", c.terms, a)
		admits(t, fmt.Sprintf("%+v", c.terms), a, c.n, OverQuota)
	}
	if a = st.Allowance("acme", Terms{}, a); a == nil {
		t.Fatal("Allowance() without a quota, after one = nil; want one that counts")
	}
	for range 3 {
		if found, _ := a.Take(time.Now()); found != Admitted {
			t.Fatalf("Take() without a quota = %d; want admitted", found)
		}
	}
	admits(t, "10 again", st.Allowance("acme", Terms{Day: 11}, a), 1, OverQuota)
}

// Days and months begin and end by the server's clock, in UTC, for all replicas
// at once, whatever their own say.
func TestQuotaBoundaries(t *testing.T) {
	server := redistest.Start(t)
	all := replicas(t, server, 2)
	at := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2027, month, day, hour, minute, 0, 0, time.UTC)
	}
	type step struct {
		at   time.Time
		n    int           // requests that are admitted
		wait time.Duration // of one more
	}
	for name, c := range map[string]struct {
		terms Terms
		steps []step
	}{
		"day": {Terms{Day: 3}, []step{
			{at(1, 31, 22, 0), 3, 2 * time.Hour},
			{at(1, 31, 23, 59), 0, time.Minute},
			{at(2, 1, 0, 0), 3, 24 * time.Hour},
			{at(1, 31, 23, 59), 0, time.Minute}, // set back a little
			{at(1, 1, 0, 0), 3, 24 * time.Hour}, // set back for good: anew
		}},
		"month": {Terms{Month: 5}, []step{
			{at(2, 27, 12, 0), 5, 24 * time.Hour},
			{at(2, 28, 18, 0), 0, 6 * time.Hour},
			{at(3, 1, 0, 0), 5, 24 * time.Hour},
			{at(3, 30, 0, 0), 0, 24 * time.Hour},
			{at(12, 31, 23, 0), 5, time.Hour}, // over the end of a year
			{at(13, 1, 0, 0), 5, 24 * time.Hour},
		}},
		"both": {Terms{Day: 2, Month: 3}, []step{
			{at(6, 1, 20, 0), 2, 4 * time.Hour},
			{at(6, 2, 20, 0), 1, 24 * time.Hour}, // a second one is within the day but not the month
			{at(7, 1, 20, 0), 2, 4 * time.Hour},
		}},
	} {
		for _, s := range c.steps {
			setClock(server, s.at)
			var each []*Allowance // anew, so that none refuses for a second what it has just refused
			for _, st := range all {
				clocked(st)
				each = append(each, st.Allowance(name, c.terms, nil))
			}
			for i := range s.n {
				if found, _ := each[i%2].Take(time.Now()); found != Admitted {
					t.Fatalf("%s, %v: Take() number %d = %d; want admitted", name, s.at, i+1, found)
				}
			}
			for _, a := range each {
				if wait := admits(t, fmt.Sprint(name, ", ", s.at), a, 0, OverQuota); wait != s.wait {
					t.Errorf("%s, %v: Take() over = wait %v; want %v", name, s.at, wait, s.wait)
				}
			}
		}
	}
}

// The script numbers days and months as the replicas do.
func TestQuotaCalendar(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	clocked(st)
	var years []int
	for y := 2024; y <= 2032; y++ {
		years = append(years, y)
	}
	for _, y := range append(years, 2096, 2099, 2100, 2101, 2200) {
		for month := range time.Month(12) {
			for _, now := range []time.Time{
				time.Date(y, month+1, 1, 0, 0, 0, 0, time.UTC), time.Date(y, month+2, 1, 0, 0, -1, 0, time.UTC),
			} {
				setClock(server, now)
				day, m := periods(now)
				a := st.Allowance(fmt.Sprint(now.Unix()), Terms{Day: 1}, nil)
				a.Take(time.Now())
				if got, want := a.ledger.known, (tally{day, 1, m, 1}); got != want {
					t.Errorf("counts at %v = %+v; want %+v", now, got, want)
				}
			}
		}
	}
}

// Every request that replicas admit while the server is away is added once, and
// what it had counted is not lost with its data.
func TestQuotaOverAnOutage(t *testing.T) {
	for _, c := range []struct {
		name     string
		forgets  bool
		away, up func(*redistest.Server, *redistest.Link)
	}{
		{"killed", true, func(s *redistest.Server, _ *redistest.Link) { s.Kill() }, func(s *redistest.Server, _ *redistest.Link) { s.Restart() }},
		{"cut off", false, func(_ *redistest.Server, l *redistest.Link) { l.Cut() }, func(_ *redistest.Server, l *redistest.Link) { l.Mend() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t)
			link := server.Connect()
			var each []*Allowance
			var back []<-chan Class
			for range 2 {
				change, told := changes()
				st := open(t, link.Address, change, func(s *Settings) { s.Timeout = time.Second })
				each, back = append(each, st.Allowance("acme", Terms{Month: 100}, nil)), append(back, told)
			}
			for i := range 40 {
				if found, _ := each[i%2].Take(time.Now()); found != Admitted {
					t.Fatalf("Take() number %d = %d; want admitted", i+1, found)
				}
			}
			c.away(server, link)
			for i, a := range each { // until the server is known to be away
				for a.store.Outage() == OK {
					a.Take(time.Now())
				}
				for class := range back[i] {
					if class != OK {
						break
					}
				}
			}
			for _, a := range each {
				for range 10 {
					if found, _ := a.Take(time.Now()); found != Admitted {
						t.Errorf("Take() without the server = %d; want admitted", found)
					}
				}
			}
			owed := int64(0)
			for _, a := range each {
				owed += a.ledger.owed.inMonth + a.ledger.owing.inMonth
			}
			if owed < 20 || owed > 24 {
				t.Fatalf("%d are owed; want 20, and some that were sent and failed", owed)
			}
			c.up(server, link)
			for i := range each {
				for class := range back[i] {
					if class == OK {
						break
					}
				}
			}
			admitted := 0
			for i := 0; i < 200; i++ {
				if found, _ := each[i%2].Take(time.Now()); found == Admitted {
					admitted++
				} else if found != OverQuota {
					t.Errorf("Take() once the server is back = %d; want admitted or over the quota", found)
				}
			}
			want, most := 60-int(owed), 60-int(owed)
			if c.forgets {
				most++ // the replica that comes first has been told of all but the other's last
			}
			if admitted > most || admitted < want-8 {
				t.Errorf("%d were admitted once the server was back; want %d, or less by those it had got without a reply", admitted, want)
			}
		})
	}
}

// A debt is added once, however often the server is told of it.
func TestDebtIsAddedOnce(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	a := st.Allowance("acme", Terms{Day: 1000, Month: 1000}, nil)
	l := a.ledger
	for range 50 {
		l.alone(a.quota, time.Now(), true)
	}
	known, owed := l.open()
	args := owed.append(append(known.append(append([]string(nil), a.limits...)), owed.id))
	for i := range int64(5) { // the replies are lost
		if found, _, counted, class := a.ask(time.Now(), args); class != OK || found != Admitted || counted.inDay != 51+i || counted.inMonth != 51+i {
			t.Fatalf("request %d with the same debt = %d, %+v, %v; want %d counted", i, found, counted, class, 51+i)
		}
	}
	l.settle(known, "") // a reply to who did not tell of it
	if l.owing.id != owed.id {
		t.Errorf("the debt is %v after a reply to another call; want %v still", l.owing, owed)
	}
	l.alone(a.quota, time.Now(), true) // one more, meanwhile
	if day, month, _ := a.Used(time.Now()); day != 51 || month != 51 {
		t.Errorf("Used() = %d, %d; want 51, which is all that this replica knows of", day, month)
	}
	// With the reply comes what is known; the one more is told of next.
	for i, want := range []int64{56, 58} {
		if found, _ := a.Take(time.Now()); found != Admitted || l.known.inDay != want || l.known.inMonth != want {
			t.Errorf("Take() %d = %d with %+v counted; want %d", i, found, l.known, want)
		}
	}
	if l.owing != (debt{}) || l.owed != (tally{}) || l.unsure != (tally{}) {
		t.Errorf("owing, owed, unsure at rest = %v, %v, %v; want none", l.owing, l.owed, l.unsure)
	}
}

// What is owed of a day that is over counts in its month only, and what is owed
// of a month that is over in none.
func TestDebtOfThePast(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	clocked(st)
	now := time.Date(2027, 5, 31, 23, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after      time.Duration
		day, month int64
	}{
		{0, 6, 6}, {time.Hour, 1, 1}, {-time.Hour * 24, 6, 6}, // the replica's clock is ahead
	} {
		setClock(server, now.Add(c.after))
		a := st.Allowance(fmt.Sprint(c.after), Terms{Day: 100}, nil)
		for range 5 {
			a.ledger.alone(a.quota, now, true)
		}
		a.Take(time.Now())
		if got := a.ledger.known; got.inDay != c.day || got.inMonth != c.month {
			t.Errorf("counts %v after the debt = %+v; want %d and %d", c.after, got, c.day, c.month)
		}
	}
	setClock(server, now.Add(-24*time.Hour))
	a := st.Allowance("yesterday", Terms{Day: 100}, nil)
	for range 5 {
		a.ledger.alone(a.quota, now.Add(-48*time.Hour), true)
	}
	a.Take(time.Now())
	if got := a.ledger.known; got.inDay != 1 || got.inMonth != 6 {
		t.Errorf("counts a day after the debt = %+v; want 1 in the day and 6 in the month", got)
	}
}

// However many debts there are, one name has one key, of bounded size, that
// expires by itself.
func TestQuotaKeysAreBounded(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	a := st.Allowance("acme", Terms{Day: 100_000, Rate: 1e6, Burst: 1000}, nil)
	for range 500 {
		a.ledger.alone(a.quota, time.Now(), true)
		if found, _ := a.Take(time.Now()); found != Admitted {
			t.Fatalf("Take() = %d; want admitted", found)
		}
	}
	if got := a.ledger.known.inDay; got != 1000 {
		t.Errorf("%d are counted; want 1000", got)
	}
	v := stored(t, st, "acme")
	if ids := strings.Fields(v)[4:]; len(ids) != 64 || len(ids[0]) != idSize || len(ids[63]) != idSize || len(v) > 1300 {
		t.Errorf("the key has %d bytes and %d ids; want 64 of %d letters", len(v), len(ids), idSize)
	}
	if got := server.Command("DBSIZE"); got != ":3" && got != ":2" { // the probe's may be there still, the bucket's gone
		t.Errorf("DBSIZE = %s; want the bucket's and the count's", got)
	}
	ttl, err := strconv.ParseInt(strings.TrimPrefix(server.Command("PTTL", "test:quota:acme"), ":"), 10, 64)
	if month := 32 * 24 * time.Hour; err != nil || ttl <= 0 || time.Duration(ttl)*time.Millisecond > month {
		t.Errorf("PTTL = %d, %v; want %v at most", ttl, err, month)
	}
}

// A flood over a quota does not reach the server.
func TestQuotaHoldsBackAFlood(t *testing.T) {
	server := redistest.Start(t)
	a := open(t, server.Address).Allowance("acme", Terms{Day: 1}, nil)
	now := time.Now()
	a.Take(now)
	_, first := a.Take(now)
	server.Command("DEL", "test:quota:acme")
	for i := range 1000 { // a call would leave a key
		if found, wait := a.Take(now.Add(time.Duration(i) * time.Millisecond / 2)); found != OverQuota || wait > first {
			t.Fatalf("Take() = %d, %v; want over the quota for %v at most", found, wait, first)
		}
	}
	if got := server.Command("EXISTS", "test:quota:acme"); got != ":0" {
		t.Errorf("EXISTS = %s; want no call", got)
	}
	// A second later it is asked again, and has not forgotten.
	if found, _ := a.Take(now.Add(askAgain)); found != OverQuota || server.Command("EXISTS", "test:quota:acme") != ":1" {
		t.Errorf("Take() a second later = %d; want the server asked, and over the quota still", found)
	}
}

// What lies in the server and is no count counts nothing, and what replies
// otherwise than the script is not believed.
func TestQuotaFromRubbish(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	server.Command("SET", "test:quota:acme", "rubbish")
	admits(t, "rubbish", st.Allowance("acme", Terms{Day: 2}, nil), 2, OverQuota)
	for _, reply := range []string{"{}", "{0}", "{0, 0}", "{1, 0}", "{3, 1, 2, 3, 4, 5}", "{2, 0, 1, 1, 1, 1}", "{0, -1, 1, 1, 1, 1}", "{'x', 0, 1, 1, 1, 1}", "'OK'", "false"} {
		st.scripts.take = rueidis.NewLuaScript("return " + reply)
		if found, _ := st.Allowance("b", Terms{Day: 2, Required: true}, nil).Take(time.Now()); found != Unknown {
			t.Errorf("Take() with the reply %s = %d; want unknown", reply, found)
		}
	}
	if got := st.Failures[Take][Malformed].Load(); got == 0 {
		t.Error("no reply was counted as malformed")
	}
	server.Command("DEL", "test:quota:w")
	server.Command("HSET", "test:quota:w", "a", "b") // of another type
	st.scripts.take = rueidis.NewLuaScript(takeScript)
	if found, _ := st.Allowance("w", Terms{Day: 2, Required: true}, nil).Take(time.Now()); found != Unknown {
		t.Errorf("Take() from another type = %d; want unknown", found)
	}
}
