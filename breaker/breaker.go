package breaker

import (
	"errors"
	"math"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// errBackend and errOurs tell the circuit breaker how a call ended. They are
// fixed values so that reporting a failure allocates nothing.
var (
	errBackend = errors.New("backend failed")
	errOurs    = errors.New("no verdict on the backend")
)

// Breaker is an ahp.Backend behind a bulkhead and a circuit breaker. It is
// safe for concurrent use and starts no goroutine.
type Breaker struct {
	backend ahp.Backend
	places  chan struct{}                          // one element for each call in flight
	circuit *gobreaker.CircuitBreaker[ahp.Failure] // nil when disabled
}

var _ ahp.Backend = (*Breaker)(nil)

// New returns a closed breaker around b. Zero settings mean their defaults.
//
// The circuit breaker relies on b to return by the call's deadline, as
// ahp.Backend demands: a half-open probe that never returned would keep its
// place for ever.
func New(b ahp.Backend, s Settings) *Breaker {
	s = s.withDefaults()
	br := &Breaker{backend: b, places: make(chan struct{}, s.InFlight)}
	if s.Disabled {
		return br
	}
	// The bucket is rounded up, so that it is never zero, which would never
	// forget, and the window is exactly Buckets of them.
	bucket := (s.Window + time.Duration(s.Buckets) - 1) / time.Duration(s.Buckets)
	settings := gobreaker.Settings{
		MaxRequests:  uint32(min(s.Probes, math.MaxInt32)),
		Interval:     bucket * time.Duration(s.Buckets),
		BucketPeriod: bucket,
		Timeout:      s.OpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			// Calls still in flight and calls without a verdict are in
			// c.Requests too and must not thin the ratio.
			ended := int(c.TotalSuccesses) + int(c.TotalFailures)
			return ended >= s.Volume && float64(c.TotalFailures) >= s.Ratio*float64(ended)
		},
		// Whatever is neither a success nor errBackend has no verdict: errOurs,
		// and the error that the library makes of a panic.
		IsExcluded: func(err error) bool { return err != nil && err != errBackend },
	}
	if s.OnChange != nil {
		settings.OnStateChange = func(_ string, from, to gobreaker.State) {
			s.OnChange(stateOf(from), stateOf(to))
		}
	}
	br.circuit = gobreaker.NewCircuitBreaker[ahp.Failure](settings)
	return br
}

// Intercept calls the backend unless the circuit breaker lets no call through
// (FailBreakerOpen), or no place in the bulkhead becomes free by the call's
// deadline (FailBulkheadFull): a backend that has much to do is waited for, as
// it would be without a bulkhead.
//
// A well-formed answer is a success, a deny like any other. A failure counts
// against the backend only if its class does (ahp.FailureClass.TripsBreaker);
// any other leaves the circuit breaker as it was and gives a half-open probe's
// place back. So does a panic, which passes through: it is the gateway's own
// fault, and whoever can provoke one with an event must not be able to turn a
// backend off for the events of others.
func (b *Breaker) Intercept(call *ahp.Call, resp *ahp.Response) ahp.Failure {
	if b.State() == Open {
		return ahp.Failure{Class: ahp.FailBreakerOpen} // nobody waits for what will not happen
	}
	if !b.enter(call.Deadline) {
		return ahp.Failure{Class: ahp.FailBulkheadFull, Detail: "too many calls to the backend are in flight"}
	}
	defer func() { <-b.places }()
	if b.circuit == nil {
		return b.backend.Intercept(call, resp).Of(call)
	}
	failure, err := b.circuit.Execute(func() (ahp.Failure, error) {
		f := b.backend.Intercept(call, resp).Of(call)
		switch {
		case f.OK():
			return f, nil
		case f.Class.TripsBreaker():
			return f, errBackend
		default:
			return f, errOurs
		}
	})
	if err == gobreaker.ErrOpenState || err == gobreaker.ErrTooManyRequests {
		return ahp.Failure{Class: ahp.FailBreakerOpen}
	}
	return failure
}

// enter takes a place in the bulkhead, or reports that none was free until the
// deadline.
func (b *Breaker) enter(deadline time.Time) bool {
	select {
	case b.places <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case b.places <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

// Observe calls the backend unless the circuit breaker is open
// (FailBreakerOpen). Observation takes nothing from the decisions: it needs no
// place in the bulkhead, since its own queue bounds it, is no probe, and its
// outcome neither opens nor closes the circuit breaker.
func (b *Breaker) Observe(call *ahp.Call) ahp.Failure {
	if b.State() == Open {
		return ahp.Failure{Class: ahp.FailBreakerOpen}
	}
	return b.backend.Observe(call)
}

// State returns the circuit breaker's state now; a disabled one is Closed.
func (b *Breaker) State() State {
	if b.circuit == nil {
		return Closed
	}
	return stateOf(b.circuit.State())
}

// InFlight returns the number of intercept calls in flight now.
func (b *Breaker) InFlight() int { return len(b.places) }
