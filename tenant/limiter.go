package tenant

import (
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Limits are what one tenant may ask of the gateway. They are comparable, so a
// reload can tell whether a tenant's Limiter may live on.
type Limits struct {
	// InFlight caps the tenant's requests being served. 0 sets no cap of its own.
	InFlight int
	// Rate is the requests per second that are admitted in the long run.
	// 0 is unlimited.
	Rate float64
	// Burst is how many requests are admitted at once on top of the rate.
	// Default Rate rounded up. It means nothing when Rate is 0.
	Burst int
}

// Denied is why a request was refused at a limit. The zero value is that it
// was not.
type Denied uint8

// The reasons.
const (
	Admitted Denied = iota
	// DeniedInFlight: the tenant has as many requests being served as it may.
	DeniedInFlight
	// DeniedRate: the tenant has sent requests faster than it may.
	DeniedRate
	// DeniedQuota: the tenant has had as many requests admitted in this day or
	// month as it may.
	DeniedQuota
	// DeniedShare: what is left of the gateway's places for requests in flight
	// is for tenants that hold less of them.
	DeniedShare
	// DeniedBodies: the tenant's bodies fill its share of the room for them.
	DeniedBodies
	// DeniedPlaces: the gateway has as many requests in flight as it may.
	DeniedPlaces
	// DeniedUnknown: whether the tenant is over its rate or its quota could not be
	// found out, and requests are not admitted without.
	DeniedUnknown
)

// String returns the reason's stable name, or "unknown".
func (d Denied) String() string {
	switch d {
	case Admitted:
		return "admitted"
	case DeniedInFlight:
		return "in_flight"
	case DeniedRate:
		return "rate"
	case DeniedQuota:
		return "quota"
	case DeniedShare:
		return "share"
	case DeniedBodies:
		return "bodies"
	case DeniedPlaces:
		return "places"
	case DeniedUnknown:
		return "rate_unknown"
	default:
		return "unknown"
	}
}

const (
	// busyRetry is what is asked of a caller over the in-flight cap: nobody
	// knows when a place becomes free, and calls last seconds at most.
	busyRetry = time.Second
	// maxRetry bounds what is asked of a caller over a very low rate.
	maxRetry = time.Hour
)

// Limiter admits one tenant's requests. It is safe for concurrent use and
// starts no goroutine. It does not belong to a Directory, so that it can
// outlive one in a reload that does not change the tenant's limits.
type Limiter struct {
	// Limits are those that the limiter was made with. Read only.
	Limits   Limits
	inFlight *atomic.Int64
	tokens   *rate.Limiter // nil when unlimited
}

// NewLimiter returns a limiter with a full bucket. A limit that is not above
// zero is not enforced.
func NewLimiter(l Limits) *Limiter {
	lim := &Limiter{Limits: l, inFlight: new(atomic.Int64)}
	if l.Rate > 0 {
		burst := l.Burst
		if burst <= 0 {
			burst = int(math.Ceil(min(l.Rate, math.MaxInt32)))
		}
		lim.tokens = rate.NewLimiter(rate.Limit(l.Rate), burst)
	}
	return lim
}

// Continue has l count its requests in flight in one with those of previous, so
// that its cap holds for both together when other limits take previous's place.
// l must not be in use yet; previous may be, and goes on by its own cap.
func (l *Limiter) Continue(previous *Limiter) { l.inFlight = previous.inFlight }

// Acquire admits a request, or says why not and how long the caller should
// wait before it tries again. Every admitted request must be followed by one
// Release; a denied one takes nothing: no place, and no token.
func (l *Limiter) Acquire() (denied Denied, retryAfter time.Duration) {
	if !l.enter() {
		return DeniedInFlight, busyRetry
	}
	if l.tokens == nil {
		return Admitted, 0
	}
	now := time.Now()
	if l.tokens.AllowN(now, 1) {
		return Admitted, 0
	}
	l.Release()
	// Rounded up, so that a caller that waits this long finds a token if no
	// other request has taken it.
	seconds := (1 - l.tokens.TokensAt(now)) / l.Limits.Rate
	return DeniedRate, time.Duration(math.Ceil(min(max(seconds, 0), maxRetry.Seconds()) * float64(time.Second)))
}

// enter takes a place among the requests in flight, or reports that there is
// none. It never takes more than the cap for a moment, so it refuses nobody wrongly.
func (l *Limiter) enter() bool {
	for {
		n := l.inFlight.Load()
		if l.Limits.InFlight > 0 && n >= int64(l.Limits.InFlight) {
			return false
		}
		if l.inFlight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends an admitted request.
func (l *Limiter) Release() { l.inFlight.Add(-1) }
