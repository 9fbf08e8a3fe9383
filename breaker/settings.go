package breaker

import (
	"cmp"
	"time"
)

// Settings configure a Breaker. The zero value of a field means its default.
type Settings struct {
	// Disabled turns the circuit breaker off. The bulkhead stays.
	Disabled bool
	// Window is what the failure ratio looks back on. Default 10s.
	Window time.Duration
	// Buckets is the number of steps in which the window rolls. Default 10.
	Buckets int
	// Volume is how many calls must have ended inside the window before the
	// breaker may open. Default 20.
	Volume int
	// Ratio is the share of failed calls that opens the breaker, above 0 and
	// at most 1. Default 0.5.
	Ratio float64
	// OpenFor is how long no call goes through before probes do. Default 5s.
	OpenFor time.Duration
	// Probes is how many calls go through while half open, and how many of
	// them must succeed to close the breaker: all of them. Default 3.
	Probes int
	// InFlight caps the intercept calls in flight to the backend. Default 256.
	InFlight int
	// OnChange is called on every change of state, or is nil. It runs under
	// the circuit breaker's lock and delays every other call to the backend:
	// it may only bump an atomic or send without blocking, and must never call
	// a method of the Breaker, which would deadlock.
	OnChange func(from, to State)
}

// withDefaults returns s with every zero or negative number replaced.
func (s Settings) withDefaults() Settings {
	s.Window = cmp.Or(max(s.Window, 0), 10*time.Second)
	s.Buckets = cmp.Or(max(s.Buckets, 0), 10)
	s.Volume = cmp.Or(max(s.Volume, 0), 20)
	s.Ratio = cmp.Or(max(s.Ratio, 0), 0.5)
	s.OpenFor = cmp.Or(max(s.OpenFor, 0), 5*time.Second)
	s.Probes = cmp.Or(max(s.Probes, 0), 3)
	s.InFlight = cmp.Or(max(s.InFlight, 0), 256)
	return s
}
