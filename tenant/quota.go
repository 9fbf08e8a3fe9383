package tenant

import (
	"sync/atomic"
	"time"
)

// Quota is how many requests one tenant may have admitted in a UTC day and in
// a UTC month. 0 is unlimited.
type Quota struct{ Day, Month int }

// maxQuotaRetry bounds what is asked of a caller over its quota: the end of a
// month may be far away, and a quota may be raised before.
const maxQuotaRetry = 24 * time.Hour

// Usage counts the admitted requests of one tenant in the UTC day and month
// under way. The zero value has counted none. It is safe for concurrent use,
// and does not hold the quota, so that it can outlive a change of it.
type Usage struct{ day, month period }

// Take counts a request at now, or reports that q admits no more of them in
// the day or month under way, and when a period ends that is used up, a day
// later at most. A refused request is not counted.
func (u *Usage) Take(q Quota, now time.Time) (retryAfter time.Duration, ok bool) {
	now = now.UTC()
	day, month := dayOf(now), monthOf(now)
	if !u.day.take(day, q.Day) {
		return now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now), false
	}
	if !u.month.take(month, q.Month) {
		u.day.giveBack(day)
		next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		return min(next.Sub(now), maxQuotaRetry), false
	}
	return 0, true
}

// Used returns how many requests were admitted in the UTC day and in the UTC
// month of now.
func (u *Usage) Used(now time.Time) (day, month int) {
	now = now.UTC()
	return u.day.used(dayOf(now)), u.month.used(monthOf(now))
}

// dayOf numbers a UTC day since 1970, and monthOf a UTC month.
func dayOf(now time.Time) uint64   { return uint64(max(now.Unix(), 0) / (24 * 60 * 60)) }
func monthOf(now time.Time) uint64 { return uint64(max(now.Year()-1970, 0)*12 + int(now.Month())) }

// period counts in one day or month after the other: its number and the count
// are one word, so that the first request of a new one starts at zero, whoever
// else is counting.
type period struct{ word atomic.Uint64 }

const (
	countBits = 40
	countMask = 1<<countBits - 1
)

// take adds one to the count of a period, unless that has reached a limit
// above zero.
func (p *period) take(number uint64, limit int) bool {
	for {
		was := p.word.Load()
		number := current(was, number)
		n := was & countMask
		if was>>countBits != number {
			n = 0
		}
		if limit > 0 && n >= uint64(limit) || n == countMask {
			return false
		}
		if p.word.CompareAndSwap(was, number<<countBits|(n+1)) {
			return true
		}
	}
}

// current returns the number of the period that a request of period number
// counts in: its own, but that of the word if the word has just begun the next
// one. A clock that is set back further starts the count anew: waiting for it
// to catch up could take for ever.
func current(word, number uint64) uint64 {
	if word>>countBits == number+1 {
		return number + 1
	}
	return number
}

// giveBack takes one from the count, unless another period has begun.
func (p *period) giveBack(number uint64) {
	for {
		was := p.word.Load()
		if was>>countBits != number || was&countMask == 0 || p.word.CompareAndSwap(was, was-1) {
			return
		}
	}
}

// used returns the count of a period.
func (p *period) used(number uint64) int {
	was := p.word.Load()
	if was>>countBits != current(was, number) {
		return 0
	}
	return int(was & countMask)
}
