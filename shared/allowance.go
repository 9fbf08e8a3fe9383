package shared

import (
	"math"
	"strconv"
	"time"
)

// Terms are what an Allowance admits. A limit that is not above zero is none.
type Terms struct {
	// Rate is the requests per second that are admitted in the long run, and
	// Burst how many at once. More than a million a second are that many.
	Rate  float64
	Burst int
	// Day and Month are how many requests are admitted in a UTC day and month.
	Day, Month int
	// Required admits nobody while the server cannot be asked, if anything is limited.
	Required bool
}

// quota are the limits of a day and a month, 0 for none.
type quota struct{ day, month int64 }

// Allowance is what replicas together admit under one name: by a token bucket,
// by counts of the UTC day and month under way, or by both. It is safe for
// concurrent use.
//
// A request takes one round trip, and is counted if it is admitted. The days are
// those of the server's clock, whatever the replicas' say. While the server
// cannot be asked each replica admits by itself what is left of the quota as far
// as it knows, and adds that at its next call that the server replies to, once
// however often that takes. Of a call without a reply nothing is known: it is
// counted if the server got it, and not added.
type Allowance struct {
	store  *Store
	terms  Terms
	quota  quota
	keys   []string
	limits []string // the first arguments of the script
	ledger *ledger  // nil where nothing is counted
}

// Standing is what Take found.
type Standing uint8

// The standings.
const (
	Admitted Standing = iota
	OverRate
	OverQuota
	// Unknown: the server could not be asked, and has to be.
	Unknown
)

const (
	// askAgain is how long a request is asked to wait that has to be counted and
	// cannot, and for how long the server is not asked again for what is over a
	// quota, so that a flood does not reach it.
	askAgain = time.Second
	// maxRateWait bounds what is asked of a caller over a very low rate.
	maxRateWait = time.Hour
)

// Allowance returns the allowance of a name, or nil where the terms limit
// nothing. Whoever takes from it by other terms takes from the same one. What
// previous, which may be nil and is of the same name, has counted is counted on,
// also without a quota, so that one that comes back finds it.
func (s *Store) Allowance(name string, t Terms, previous *Allowance) *Allowance {
	a := &Allowance{store: s, terms: t, quota: quota{int64(max(t.Day, 0)), int64(max(t.Month, 0))},
		keys: []string{s.settings.Prefix + ":rate:" + name}, limits: []string{"0", "0"}}
	if t.Rate > 0 {
		a.limits = []string{strconv.FormatFloat(math.Max(1e6/t.Rate, 1), 'f', -1, 64), strconv.Itoa(t.Burst)}
	}
	switch {
	case previous != nil && previous.ledger != nil:
		a.ledger = previous.ledger
	case a.quota != quota{}:
		a.ledger = new(ledger)
	case t.Rate > 0:
		return a
	default:
		return nil
	}
	a.keys = append(a.keys, s.settings.Prefix+":quota:"+name)
	a.limits = append(a.limits, strconv.FormatInt(a.quota.day, 10), strconv.FormatInt(a.quota.month, 10))
	return a
}

// Take admits a request at now, or says why not and how long until one may be
// admitted: the rest of the period, a day at most, or of a rate an hour at most.
func (a *Allowance) Take(now time.Time) (found Standing, wait time.Duration) {
	if a.ledger == nil {
		if found, wait, _, class := a.ask(now, a.limits); class == OK {
			return found, wait
		}
		if a.terms.Required {
			return Unknown, askAgain
		}
		return Admitted, 0
	}
	if wait := a.ledger.over(a.quota, now); wait > 0 {
		return OverQuota, wait
	}
	known, owed := a.ledger.open()
	args := make([]string, 0, 16)
	args = append(known.append(append(args, a.limits...)), owed.id)
	found, wait, counted, class := a.ask(now, owed.append(args))
	switch {
	case class != OK && a.terms.Required && (a.quota != quota{} || a.terms.Rate > 0):
		return Unknown, askAgain
	case class != OK:
		// These say that the server has not run the script.
		return a.ledger.alone(a.quota, now, class == Skipped || class == Busy || class == Refused)
	case found != OverRate:
		a.ledger.settle(counted, owed.id)
		if found == OverQuota {
			a.ledger.refuse(a.quota, now, wait)
		}
	}
	return found, wait
}

// ask runs the script. Unless it found a request over its rate, counted is what
// the server has counted.
func (a *Allowance) ask(now time.Time, args []string) (found Standing, wait time.Duration, counted tally, class Class) {
	// Longer than the store's own timeout, which therefore holds.
	r, class := a.store.call(Take, a.store.scripts.take, now.Add(time.Hour), a.keys, args)
	if class != OK {
		return Unknown, 0, tally{}, class
	}
	reply, err := r.AsIntSlice()
	if err == nil && len(reply) >= 2 && reply[1] >= 0 {
		const most = int64(math.MaxInt64 / time.Microsecond)
		wait = time.Duration(min(reply[1], most)) * time.Microsecond
		switch {
		case len(reply) == 2 && reply[0] == 0 && a.ledger == nil:
			return Admitted, 0, tally{}, OK
		case len(reply) == 2 && reply[0] == 1 && wait > 0:
			return OverRate, min(wait, maxRateWait), tally{}, OK
		case len(reply) == 6 && a.ledger != nil:
			counted = tally{reply[2], reply[3], reply[4], reply[5]}
			if reply[0] == 0 {
				return Admitted, 0, counted, OK
			}
			if reply[0] == 2 && wait > 0 {
				return OverQuota, wait, counted, OK
			}
		}
	}
	a.store.Failures[Take][Malformed].Add(1)
	return Unknown, 0, tally{}, Malformed
}

// Used returns how many requests are counted in the UTC day and month of now, as
// far as this replica knows, and whether any are counted at all.
func (a *Allowance) Used(now time.Time) (day, month int, counted bool) {
	if a.ledger == nil {
		return 0, 0, false
	}
	d, m := a.ledger.used(now)
	return int(d), int(m), true
}
