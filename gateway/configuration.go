package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// TimeoutMargin is what a harness's deadline has to leave to the gateway and the
// network beyond the chain's worst case. One that gives up before the gateway
// answers applies its own failure policy, and where that is fail-open it loses
// a deny.
const TimeoutMargin = 250 * time.Millisecond

// advertised is one subscription of the answer to hooks/configuration.
type advertised struct {
	Events        []string          `json:"events"`
	Mode          string            `json:"mode"`
	TimeoutMs     int64             `json:"timeoutMs,omitempty"`
	FailurePolicy string            `json:"failurePolicy,omitempty"`
	IncludeNative bool              `json:"includeNative,omitempty"`
	Content       map[string]string `json:"content"`
}

// configuration returns the answer to hooks/configuration for a draft document:
// the subscriptions that a harness needs so that every backend behind the
// gateway gets what it asked for and every deadline fits. There is at most one
// for an event, and one for all events that need the same terms. It is nil if
// the document asks for nothing that the gateway serves.
func configuration(d *document, budget time.Duration) ([]byte, error) {
	if d.table.Version() != ahp.Draft {
		return nil, nil
	}
	var subscriptions []advertised
	add := func(e ahp.EventType, s advertised) {
		for i := range subscriptions {
			same := subscriptions[i]
			same.Events = nil
			if same.Mode == s.Mode && same.TimeoutMs == s.TimeoutMs && same.FailurePolicy == s.FailurePolicy &&
				same.IncludeNative == s.IncludeNative && maps.Equal(same.Content, s.Content) {
				subscriptions[i].Events = append(subscriptions[i].Events, e.String())
				return
			}
		}
		s.Events = []string{e.String()}
		subscriptions = append(subscriptions, s)
	}
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		// Observers of an event that is intercepted are told by the gateway.
		intercept, observe := d.intercept[e], d.observe[e]
		if !served(e) {
			intercept = nil
		}
		members := slices.Concat(intercept, observe)
		if len(members) == 0 {
			continue
		}
		s := advertised{Mode: "observe", Content: union(members)}
		for _, h := range members {
			s.IncludeNative = s.IncludeNative || h.view.Native
		}
		if len(intercept) > 0 {
			worst := min(d.table.WorstCase(e), budget)
			s.Mode, s.FailurePolicy = "intercept", "fail-open"
			s.TimeoutMs = int64((worst + TimeoutMargin + time.Millisecond - 1) / time.Millisecond)
			for _, h := range intercept {
				if h.sub.FailClosed && !h.sub.Shadow {
					s.FailurePolicy = "fail-closed"
				}
			}
		}
		add(e, s)
	}
	if len(subscriptions) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(map[string]any{"subscriptions": subscriptions})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return b, nil
}

// union returns the content selection that shows every hop what it selects.
func union(hops []*hop) map[string]string {
	all := ahp.ContentSelection{Default: ahp.SelectOmit, Categories: map[string]ahp.Selection{}}
	for _, h := range hops {
		all.Default = min(all.Default, h.view.Content.Default) // the lower shows more
		for category := range h.view.Content.Categories {
			all.Categories[category] = ahp.SelectOmit
		}
	}
	selection := map[string]string{"default": all.Default.String()}
	for category, most := range all.Categories {
		for _, h := range hops {
			most = min(most, h.view.Content.Of(category))
		}
		if most != all.Default {
			selection[category] = most.String()
		}
	}
	return selection
}

// served reports whether the gateway can decide the event in draft. Others that
// can be intercepted need effects that it does not compose, and so must not
// take for its own.
func served(e ahp.EventType) bool { return e == ahp.ToolBefore }
