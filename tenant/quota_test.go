package tenant

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// at is a time of the test's year, in UTC.
func at(month time.Month, day, hour, minute int) time.Time {
	return time.Date(2027, month, day, hour, minute, 0, 0, time.UTC)
}

func TestQuota(t *testing.T) {
	type step struct {
		at    time.Time
		take  int           // requests that are admitted
		retry time.Duration // of one more; 0 if that is admitted too
	}
	for name, c := range map[string]struct {
		quota Quota
		steps []step
	}{
		"none": {Quota{}, []step{{at(1, 1, 0, 0), 1000, 0}}},
		"day": {Quota{Day: 3}, []step{
			{at(1, 31, 22, 0), 3, 2 * time.Hour},
			{at(1, 31, 23, 59), 0, time.Minute},
			{at(2, 1, 0, 0), 3, 24 * time.Hour},
		}},
		"month": {Quota{Month: 5}, []step{
			{at(2, 27, 12, 0), 4, 0},
			{at(2, 28, 18, 0), 0, 6 * time.Hour},
			{at(2, 28, 23, 30), 0, 30 * time.Minute},
			{at(3, 1, 0, 0), 5, 24 * time.Hour}, // the end is further than a day away
			{at(3, 30, 0, 0), 0, 24 * time.Hour},
			{at(12, 31, 23, 0), 5, time.Hour}, // over the end of a year
			{at(13, 1, 0, 0), 5, 24 * time.Hour},
		}},
		"both": {Quota{Day: 2, Month: 3}, []step{
			{at(6, 1, 20, 0), 2, 4 * time.Hour},
			{at(6, 2, 20, 0), 1, 24 * time.Hour}, // a second one is within the day but not the month
			{at(7, 1, 20, 0), 2, 4 * time.Hour},
		}},
		"another zone": {Quota{Day: 1}, []step{
			{at(5, 1, 23, 0).In(time.FixedZone("east", 5*60*60)), 1, time.Hour},
			{at(5, 2, 1, 0).In(time.FixedZone("west", -5*60*60)), 1, 23 * time.Hour},
		}},
	} {
		var u Usage
		for _, s := range c.steps {
			for i := range s.take {
				if retry, ok := u.Take(c.quota, s.at); !ok {
					t.Fatalf("%s: Take(%v) number %d = %v, refused; want admitted", name, s.at, i+1, retry)
				}
			}
			day, month := u.Used(s.at)
			for range 3 { // a refused one is not counted: the next is told the same
				retry, ok := u.Take(c.quota, s.at)
				if retry != s.retry || ok != (s.retry == 0) {
					t.Errorf("%s: Take(%v) over = %v, %t; want %v, %t", name, s.at, retry, ok, s.retry, s.retry == 0)
				}
				if ok {
					break
				}
				if d, m := u.Used(s.at); d != day || m != month {
					t.Errorf("%s: Used(%v) after a refusal = %d, %d; want %d, %d", name, s.at, d, m, day, month)
				}
			}
		}
	}
}

// A quota that is raised admits more, one that is lowered none, and what was
// counted stays.
func TestQuotaChanges(t *testing.T) {
	var u Usage
	now := at(4, 4, 4, 4)
	for _, c := range []struct {
		quota Quota
		ok    bool
		used  int
	}{
		{Quota{Day: 1}, true, 1}, {Quota{Day: 1}, false, 1}, {Quota{Day: 2}, true, 2}, {Quota{}, true, 3},
		{Quota{Month: 3}, false, 3}, {Quota{Day: 1, Month: 9}, false, 3}, {Quota{Day: 9, Month: 9}, true, 4},
	} {
		if _, ok := u.Take(c.quota, now); ok != c.ok {
			t.Errorf("Take(%+v) = %t; want %t", c.quota, ok, c.ok)
		}
		if day, month := u.Used(now); day != c.used || month != c.used {
			t.Errorf("Used() after Take(%+v) = %d, %d; want %d", c.quota, day, month, c.used)
		}
	}
}

// Requests around midnight come in any order, and a clock may be set back.
func TestQuotaClock(t *testing.T) {
	var u Usage
	q := Quota{Day: 3}
	before, after := at(8, 31, 23, 59), at(9, 1, 0, 0)
	for _, c := range []struct {
		now        time.Time
		ok         bool
		day, month int // used, of now
	}{
		{before, true, 1, 1}, {before, true, 2, 2},
		{after, true, 1, 1},
		{before, true, 2, 2}, // counts in the new day
		{after, true, 3, 3},
		{before, false, 3, 3},
		{at(6, 1, 0, 0), true, 1, 1}, // set back for good: anew
	} {
		if _, ok := u.Take(q, c.now); ok != c.ok {
			t.Errorf("Take(%v) = %t; want %t", c.now, ok, c.ok)
		}
		if day, month := u.Used(c.now); day != c.day || month != c.month {
			t.Errorf("Used(%v) = %d, %d; want %d, %d", c.now, day, month, c.day, c.month)
		}
	}
	if day, month := u.Used(at(6, 2, 0, 0)); day != 0 || month != 1 {
		t.Errorf("Used(the next day) = %d, %d; want 0, 1", day, month)
	}
}

// However many ask at once, just the quota is admitted in every period.
func TestQuotaConcurrently(t *testing.T) {
	const days, quota = 4, 100
	var u Usage
	var admitted [days]atomic.Int64
	for day := range days {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range quota {
					if _, ok := u.Take(Quota{Day: quota, Month: quota * days}, at(1, 1+day, rand.IntN(24), 0)); ok {
						admitted[day].Add(1)
					}
				}
			})
		}
		all.Wait()
		if got := admitted[day].Load(); got != quota {
			t.Errorf("day %d admitted %d; want %d", day, got, quota)
		}
	}
	if day, month := u.Used(at(1, days, 0, 0)); day != quota || month != quota*days {
		t.Errorf("Used() = %d, %d; want %d, %d", day, month, quota, quota*days)
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	var u Usage
	now := at(1, 1, 1, 1)
	if got := testing.AllocsPerRun(100, func() { u.Take(Quota{Day: 50, Month: 60}, now) }); got != 0 {
		t.Errorf("allocations of Take = %v; want 0", got)
	}
}
