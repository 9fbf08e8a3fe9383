package routing

import (
	"fmt"
	"slices"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// Table maps an event and a mode to the subscriptions that are called for it.
// It is immutable and safe for concurrent use.
type Table struct {
	version ahp.Version
	matches [modeCount][ahp.EventTypeCount][]*Subscription
}

// New returns the table of one registration document of snapshot v. subs are
// in registration order: the order of hooks, then that of each hook's
// subscriptions (AHP-COMP-001). New copies the slice but keeps the slices and
// maps inside its elements, which must not change afterwards. An empty table
// is valid and matches nothing.
//
// New refuses, whole and before use, what it cannot route without guessing:
// an unknown snapshot or mode, a selector that is invalid, repeated or covers
// no event of its mode, an intercept subscription without a timeout, positions
// that go backwards, and in 0.1 a backend that is subscribed to the same event
// and mode twice (AHP-REG-002).
func New(v ahp.Version, subs []Subscription) (*Table, error) {
	if !slices.Contains(ahp.Versions[:], v) {
		return nil, fmt.Errorf("routing: unknown snapshot %d", v)
	}
	t := &Table{version: v}
	own := slices.Clone(subs)
	for i := range own {
		s := &own[i]
		if i > 0 && before(s, &own[i-1]) {
			return nil, fmt.Errorf("routing: hooks[%d].subscriptions[%d] stands after hooks[%d].subscriptions[%d]",
				s.Hook, s.Index, own[i-1].Hook, own[i-1].Index)
		}
		if err := t.add(s); err != nil {
			return nil, fmt.Errorf("routing: hooks[%d].subscriptions[%d]: %w", s.Hook, s.Index, err)
		}
	}
	return t, nil
}

// before reports whether a's position in the document is before b's.
func before(a, b *Subscription) bool {
	return a.Hook < b.Hook || a.Hook == b.Hook && a.Index < b.Index
}

// add appends s to every event that its selectors cover, once per event.
func (t *Table) add(s *Subscription) error {
	switch {
	case s.Mode != Intercept && s.Mode != Observe:
		return fmt.Errorf("unknown mode %d", s.Mode)
	case s.Mode == Intercept && s.Timeout <= 0:
		return fmt.Errorf("timeout %v of an intercept subscription is not positive", s.Timeout)
	case len(s.Selectors) == 0:
		return fmt.Errorf("no event selector")
	}
	var covered eventSet
	for i, sel := range s.Selectors {
		if slices.Contains(s.Selectors[:i], sel) {
			return fmt.Errorf("event selector %.64q is repeated", sel)
		}
		set, err := resolve(t.version, s.Mode, sel)
		if err != nil {
			return err
		}
		covered |= set
	}
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		if !covered.has(e) {
			continue
		}
		row := &t.matches[s.Mode][e]
		if t.version == ahp.V01 && slices.ContainsFunc(*row, func(o *Subscription) bool { return o.BackendID == s.BackendID }) {
			return fmt.Errorf("backend %.128q already has a subscription to %s %s", s.BackendID, s.Mode, e)
		}
		*row = append(*row, s)
	}
	return nil
}

// Version returns the snapshot of the document that the table was built from.
func (t *Table) Version() ahp.Version { return t.version }

// Match returns the subscriptions that are called for event e in mode m, in
// registration order, or nil when there are none. The slice and what it points
// to are shared: read only. Match allocates nothing.
func (t *Table) Match(e ahp.EventType, m Mode) []*Subscription {
	if e >= ahp.EventTypeCount || m >= modeCount {
		return nil
	}
	row := t.matches[m][e]
	return row[:len(row):len(row)]
}

// WorstCase returns how long the intercept chain of event e takes when every
// backend answers just inside its timeout. The harness's own timeoutMs for the
// gateway must be longer. Shadow subscriptions take none of the chain's time.
// It is zero when nothing intercepts e.
func (t *Table) WorstCase(e ahp.EventType) time.Duration {
	var sum time.Duration
	for _, s := range t.Match(e, Intercept) {
		if !s.Shadow {
			sum += s.Timeout
		}
	}
	return sum
}
