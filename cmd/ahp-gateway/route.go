package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/routing"
)

// route is who is told of one event, and how long its chain can take.
type route struct {
	// Calls are those that decide, in turn, and Observers who hears of it after.
	Calls     []routeCall `json:"calls"`
	Observers []string    `json:"observers"`
	// WorstCaseMs and TimeoutMs are those of validate.
	WorstCaseMs    int64 `json:"worstCaseMs"`
	TimeoutMs      int64 `json:"timeoutMs"`
	CappedByBudget bool  `json:"cappedByBudget"`
}

// routeCall is one subscription of a chain.
type routeCall struct {
	Backend       string `json:"backend"`
	Subscription  string `json:"subscription,omitempty"`
	TimeoutMs     int64  `json:"timeoutMs"`
	FailurePolicy string `json:"failurePolicy"`
	Shadow        bool   `json:"shadow"`
}

func (r *route) equal(o *route) bool {
	return slices.Equal(r.Calls, o.Calls) && slices.Equal(r.Observers, o.Observers) &&
		r.WorstCaseMs == o.WorstCaseMs && r.TimeoutMs == o.TimeoutMs && r.CappedByBudget == o.CappedByBudget
}

// String returns the route as one line for people.
func (r *route) String() string {
	var parts []string
	for _, c := range r.Calls {
		shadow := ""
		if c.Shadow {
			shadow = ", in shadow mode"
		}
		parts = append(parts, fmt.Sprintf("%s (%d ms, %s%s)", named(c.Backend, c.Subscription), c.TimeoutMs, c.FailurePolicy, shadow))
	}
	line := "nobody decides"
	if len(r.Calls) > 0 {
		capped := ""
		if r.CappedByBudget {
			capped = ", capped by limits.budget"
		}
		line = fmt.Sprintf("%s: %d ms at worst%s, timeoutMs at least %d", strings.Join(parts, ", then "), r.WorstCaseMs, capped, r.TimeoutMs)
	}
	if len(r.Observers) > 0 {
		line += "; observed by " + strings.Join(r.Observers, ", ")
	}
	return line
}

// named returns a backend's name with that of its subscription, if it has one.
func named(backend, subscription string) string {
	if subscription == "" {
		return backend
	}
	return backend + "/" + subscription
}

// eventRoute is the route of one event of one snapshot.
type eventRoute struct {
	version ahp.Version
	event   ahp.EventType
	route
}

// routesOf returns the routes of a tenant, which may be nil, in the order of its
// documents and of events.
func routesOf(t *config.Tenant, budget time.Duration) ([]eventRoute, error) {
	if t == nil {
		return nil, nil
	}
	var all []eventRoute
	for _, reg := range t.Registrations {
		table, err := tableOf(reg)
		if err != nil {
			return nil, err
		}
		for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
			calls, observers := table.Match(e, routing.Intercept), table.Match(e, routing.Observe)
			if len(calls)+len(observers) == 0 {
				continue
			}
			r := route{Calls: []routeCall{}, Observers: []string{}}
			for _, s := range calls {
				policy := "fail-open"
				if s.FailClosed {
					policy = "fail-closed"
				}
				r.Calls = append(r.Calls, routeCall{s.BackendID, s.ID, ceilMs(s.Timeout), policy, s.Shadow})
			}
			for _, s := range observers {
				r.Observers = append(r.Observers, named(s.BackendID, s.ID))
			}
			if len(calls) > 0 {
				r.WorstCaseMs, r.TimeoutMs, r.CappedByBudget = timesOf(table, e, budget)
			}
			all = append(all, eventRoute{reg.Version, e, r})
		}
	}
	return all, nil
}
