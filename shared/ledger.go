package shared

import (
	"crypto/rand"
	"strconv"
	"sync"
	"time"
)

// tally is what is counted in a UTC day and in a UTC month, which are numbered
// as periods has it.
type tally struct{ day, inDay, month, inMonth int64 }

// periods numbers the UTC day and the UTC month of a time, since 1970.
func periods(now time.Time) (day, month int64) {
	now = now.UTC()
	return now.Unix() / (24 * 60 * 60), int64(now.Year()-1970)*12 + int64(now.Month())
}

// of returns what is counted in one day and in one month.
func (t *tally) of(day, month int64) (inDay, inMonth int64) {
	if t.day == day {
		inDay = t.inDay
	}
	if t.month == month {
		inMonth = t.inMonth
	}
	return inDay, inMonth
}

// add counts one request.
func (t *tally) add(day, month int64) {
	inDay, inMonth := t.of(day, month)
	*t = tally{day, inDay + 1, month, inMonth + 1}
}

// append adds t to the arguments of a script.
func (t *tally) append(args []string) []string {
	for _, n := range [...]int64{t.day, t.inDay, t.month, t.inMonth} {
		args = append(args, strconv.FormatInt(n, 10))
	}
	return args
}

// debt is what a replica has admitted by itself. The server adds one of that id
// once, and it is told of it until it has replied.
type debt struct {
	id string // "" if there is none, else idSize letters
	tally
}

// idSize is how long the id of a debt is: enough that no two are the same. The
// script relies on it.
const idSize = 16

// ledger is what one replica knows of what is counted under one name. The zero
// value knows nothing.
type ledger struct {
	mu sync.Mutex
	// known is what the server has told last, owing what it has been told of
	// without a reply yet, owed what it has not been told of, and unsure what it
	// may have counted: they add up to what is used.
	known, owed, unsure tally
	owing               debt
	// Until again, and at most until refused, the server need not be asked whether
	// full admits anybody: it has said no.
	full           quota
	again, refused time.Time
}

// open returns what the server is to be told with a request.
func (l *ledger) open() (known tally, owing debt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owing.id == "" && l.owed != (tally{}) {
		l.owing, l.owed = debt{rand.Text()[:idSize], l.owed}, tally{}
	}
	return l.known, l.owing
}

// settle takes over what the server has counted once it was told of a debt, which
// may be none.
func (l *ledger) settle(counted tally, told string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owing.id == told {
		l.owing = debt{}
	}
	l.unsure = tally{}
	// Replies may come in another order than the server gave them.
	inDay, inMonth := l.known.of(counted.day, counted.month)
	counted.inDay, counted.inMonth = max(counted.inDay, inDay), max(counted.inMonth, inMonth)
	l.known = counted
}

// refuse remembers that q is used up for a time.
func (l *ledger) refuse(q quota, now time.Time, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full, l.again, l.refused = q, now.Add(min(wait, askAgain)), now.Add(wait)
}

// over returns for how long q is used up, as far as that was asked just now.
func (l *ledger) over(q quota, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full != q || !now.Before(l.again) {
		return 0
	}
	return l.refused.Sub(now)
}

// alone admits a request without the server, by what is known and by the clock
// of the replica. It is owed unless the server may have counted it already.
func (l *ledger) alone(q quota, now time.Time, owed bool) (Standing, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	day, month := l.current(now)
	inDay, inMonth := l.sum(day, month)
	midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	switch {
	case q.day > 0 && inDay >= q.day:
		return OverQuota, midnight.Sub(now)
	case q.month > 0 && inMonth >= q.month:
		if _, next := periods(midnight); next != month {
			return OverQuota, midnight.Sub(now)
		}
		return OverQuota, 24 * time.Hour
	case owed:
		l.owed.add(day, month)
	default:
		l.unsure.add(day, month)
	}
	return Admitted, 0
}

// used returns what is used in the day and month of now.
func (l *ledger) used(now time.Time) (inDay, inMonth int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum(l.current(now))
}

// current returns the periods of now, or those that have just begun by the
// server's clock or before this one was set back a little.
func (l *ledger) current(now time.Time) (day, month int64) {
	day, month = periods(now)
	nextDay, nextMonth := false, false
	for _, t := range l.tallies() {
		nextDay, nextMonth = nextDay || t.day == day+1, nextMonth || t.month == month+1
	}
	if nextDay {
		day++
	}
	if nextMonth {
		month++
	}
	return day, month
}

func (l *ledger) sum(day, month int64) (inDay, inMonth int64) {
	for _, t := range l.tallies() {
		d, m := t.of(day, month)
		inDay, inMonth = inDay+d, inMonth+m
	}
	return inDay, inMonth
}

func (l *ledger) tallies() [4]*tally {
	return [...]*tally{&l.known, &l.owing.tally, &l.owed, &l.unsure}
}
