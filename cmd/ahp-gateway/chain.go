package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/gateway"
	"github.com/ahp-gateway/ahp-gateway/routing"
)

// chain is how long the interception of one event can take.
type chain struct {
	Tenant          string `json:"tenant,omitempty"`
	ProtocolVersion string `json:"protocolVersion"`
	Event           string `json:"event"`
	// Backends is how many subscriptions are called in turn; those in shadow
	// mode are not waited for.
	Backends int `json:"backends"`
	// WorstCaseMs is how long they take together at worst, and TimeoutMs what
	// the harness must set for the gateway.
	WorstCaseMs int64 `json:"worstCaseMs"`
	TimeoutMs   int64 `json:"timeoutMs"`
	// CappedByBudget is set where limits.budget ends the chain before its
	// backends' own timeouts would.
	CappedByBudget bool `json:"cappedByBudget"`
	// Incomplete is set where a backend of the document is asked for its
	// subscriptions only when it is loaded, which may add to this chain.
	Incomplete bool `json:"incomplete"`
}

// String returns the chain as one line for people.
func (c chain) String() string {
	about := where(c.Tenant, c.ProtocolVersion+" "+c.Event)
	var calls string
	switch c.Backends {
	case 0:
		calls = "calls in shadow mode only, so that nothing is ever denied"
	case 1:
		calls = "1 call"
	default:
		calls = fmt.Sprintf("%d calls in turn", c.Backends)
	}
	capped := ""
	if c.CappedByBudget {
		capped = " (capped by limits.budget)"
	}
	incomplete := ""
	if c.Incomplete {
		incomplete = " (incomplete: without what is discovered)"
	}
	return fmt.Sprintf("%s: %s, %d ms at worst%s: set timeoutMs to at least %d in the harness%s", about, calls, c.WorstCaseMs, capped, c.TimeoutMs, incomplete)
}

// tableOf returns the table of what a registration document itself subscribes to.
func tableOf(reg *config.Registration) (*routing.Table, error) {
	var subs []routing.Subscription
	for i := range reg.Hooks {
		h := &reg.Hooks[i]
		for j := range h.Subscriptions {
			s := &h.Subscriptions[j]
			mode := routing.Intercept
			if s.Mode == config.Observe {
				mode = routing.Observe
			}
			subs = append(subs, routing.Subscription{
				BackendID: h.ID, ID: s.ID, Hook: i, Index: j, Mode: mode, Selectors: s.Selectors, Timeout: s.Timeout,
				FailClosed: s.FailClosed, Managed: s.Managed, IncludeNative: s.IncludeNative, Shadow: s.Shadow, Content: s.Content,
			})
		}
	}
	return routing.New(reg.Version, subs)
}

// chainsOf times the chains of a document, one for each event that has one. A
// budget of 0 is none.
func chainsOf(tenant string, budget time.Duration, table *routing.Table, incomplete bool) []chain {
	var chains []chain
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		matches := table.Match(e, routing.Intercept)
		if len(matches) == 0 {
			continue
		}
		c := chain{Tenant: tenant, ProtocolVersion: table.Version().String(), Event: e.String(), Incomplete: incomplete}
		for _, s := range matches {
			if !s.Shadow {
				c.Backends++
			}
		}
		c.WorstCaseMs, c.TimeoutMs, c.CappedByBudget = timesOf(table, e, budget)
		chains = append(chains, c)
	}
	return chains
}

// timesOf returns how long the chain of an event takes at worst, what a harness
// must set for it, and whether the budget, of which 0 is none, ends it before
// its backends' own timeouts would.
func timesOf(table *routing.Table, e ahp.EventType, budget time.Duration) (worstCaseMs, timeoutMs int64, capped bool) {
	worst := table.WorstCase(e)
	if capped = budget > 0 && worst > budget; capped {
		worst = budget
	}
	return ceilMs(worst), ceilMs(worst + gateway.TimeoutMargin), capped
}

// harness is how a harness of draft has to be registered with the gateway.
type harness struct {
	Tenant          string `json:"tenant,omitempty"`
	ProtocolVersion string `json:"protocolVersion"`
	// Subscriptions are those that the gateway answers hooks/configuration with,
	// as far as they are known before anything is called.
	Subscriptions []gateway.Subscription `json:"subscriptions"`
	// Incomplete is set where a backend of the document is asked for its
	// subscriptions only when it is loaded.
	Incomplete bool `json:"incomplete"`
}

// String returns the subscriptions, one on a line, for people to copy.
func (h harness) String() string {
	var b strings.Builder
	b.WriteString(where(h.Tenant, h.ProtocolVersion))
	b.WriteString(": a harness that does not ask hooks/configuration needs these subscriptions")
	if h.Incomplete {
		b.WriteString(" (incomplete: without what is discovered)")
	}
	b.WriteByte(':')
	for _, s := range h.Subscriptions {
		b.WriteString("\n  ")
		b.Write(marshal(s))
	}
	return b.String()
}

// discovered is a backend that is asked for its subscriptions at load.
type discovered struct {
	Tenant          string `json:"tenant,omitempty"`
	ProtocolVersion string `json:"protocolVersion"`
	Backend         string `json:"backend"`
}

// String returns the backend as one line for people.
func (d discovered) String() string {
	return where(d.Tenant, d.ProtocolVersion+" "+d.Backend) +
		": its subscriptions are discovered at load by hooks/configuration; their time is to be added, and the gateway's own hooks/configuration tells harnesses the sum"
}

// discoveredOf returns the backends of a document that list no subscriptions.
func discoveredOf(tenant string, reg *config.Registration) []discovered {
	var all []discovered
	for i := range reg.Hooks {
		if h := &reg.Hooks[i]; h.Discover {
			all = append(all, discovered{tenant, reg.Version.String(), h.ID})
		}
	}
	return all
}

// where puts the tenant, if there is one, before what a line is about.
func where(tenant, what string) string {
	if tenant == "" {
		return what
	}
	return "tenant " + tenant + ": " + what
}

// ceilMs returns d in milliseconds, rounded up: a timeout must not be short.
func ceilMs(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
