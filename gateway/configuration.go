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
// gateway gets what it asked for and every deadline fits. There is at most one of
// each mode for an event, and one for all events that need the same terms. It is
// nil if the document asks for nothing.
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
		// Whichever way the event comes, and first if it comes twice, it has to
		// show what anybody asked for: who is not called observes.
		intercept, observe := d.intercept[e], d.observe[e]
		all := slices.Concat(intercept, observe)
		if len(intercept) > 0 {
			s := advertised{Mode: "intercept", FailurePolicy: "fail-open"}
			s.show(all)
			worst := min(d.table.WorstCase(e), budget)
			s.TimeoutMs = int64((worst + TimeoutMargin + time.Millisecond - 1) / time.Millisecond)
			for _, h := range intercept {
				if h.sub.FailClosed && !h.sub.Shadow {
					s.FailurePolicy = "fail-closed"
				}
			}
			add(e, s)
		}
		// Who edits an answer has to know the whole question. Asking for more of
		// it in the interception would make that fail where there is no more.
		asks := e == ahp.UserElicitationRequest && len(d.intercept[ahp.UserElicitationResult]) > 0
		if len(observe) > 0 || asks {
			// For a harness that cannot have the event intercepted; from others
			// it is a repetition, which goes nowhere.
			s := advertised{Mode: "observe"}
			s.show(all)
			if asks {
				s.Content = map[string]string{"default": ahp.SelectBody.String()}
			}
			add(e, s)
		}
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

// show sets what of an event the hops have to be shown.
func (s *advertised) show(hops []*hop) {
	all := union(hops)
	s.Content = map[string]string{"default": all.Default.String()}
	for category, selection := range all.Categories {
		s.Content[category] = selection.String()
	}
	for _, h := range hops {
		s.IncludeNative = s.IncludeNative || h.view.Native
	}
}

// union returns the content selection that shows every hop what it selects.
func union(hops []*hop) ahp.ContentSelection {
	all := ahp.ContentSelection{Default: ahp.SelectOmit, Categories: map[string]ahp.Selection{}}
	for _, h := range hops {
		all.Default = min(all.Default, h.view.Content.Default) // the lower shows more
		for category := range h.view.Content.Categories {
			all.Categories[category] = ahp.SelectOmit
		}
	}
	for category, most := range all.Categories {
		for _, h := range hops {
			most = min(most, h.view.Content.Of(category))
		}
		if all.Categories[category] = most; most == all.Default {
			delete(all.Categories, category)
		}
	}
	return all
}
