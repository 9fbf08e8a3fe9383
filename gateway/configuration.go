package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/routing"
)

// TimeoutMargin is what a harness's deadline has to leave to the gateway and the
// network beyond the chain's worst case. One that gives up before the gateway
// answers applies its own failure policy, and where that is fail-open it loses
// a deny.
const TimeoutMargin = 250 * time.Millisecond

// Subscription is one subscription that a harness needs with the gateway, as
// hooks/configuration and registration documents write it.
type Subscription struct {
	Events        []string          `json:"events"`
	Mode          string            `json:"mode"`
	TimeoutMs     int64             `json:"timeoutMs,omitempty"`
	FailurePolicy string            `json:"failurePolicy,omitempty"`
	IncludeNative bool              `json:"includeNative,omitempty"`
	Content       map[string]string `json:"content"`
}

// Subscriptions returns the subscriptions that a harness needs so that every
// backend of a draft document gets what it asked for and every deadline fits.
// There is at most one of each mode for an event, and one for all events that
// need the same terms. t is the document's table, and budget that of the whole
// chain, 0 for none. Of a document of another snapshot there are none.
func Subscriptions(t *routing.Table, budget time.Duration) []Subscription {
	if t.Version() != ahp.Draft {
		return nil
	}
	var all []Subscription
	add := func(e ahp.EventType, s Subscription) {
		for i := range all {
			same := all[i]
			same.Events = nil
			if same.Mode == s.Mode && same.TimeoutMs == s.TimeoutMs && same.FailurePolicy == s.FailurePolicy &&
				same.IncludeNative == s.IncludeNative && maps.Equal(same.Content, s.Content) {
				all[i].Events = append(all[i].Events, e.String())
				return
			}
		}
		s.Events = []string{e.String()}
		all = append(all, s)
	}
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		// Whichever way the event comes, and first if it comes twice, it has to
		// show what anybody asked for: who is not called observes.
		intercept, observe := t.Match(e, routing.Intercept), t.Match(e, routing.Observe)
		both := slices.Concat(intercept, observe)
		if len(intercept) > 0 {
			s := Subscription{Mode: "intercept", FailurePolicy: "fail-open"}
			s.show(both)
			worst := t.WorstCase(e)
			if budget > 0 {
				worst = min(worst, budget)
			}
			s.TimeoutMs = int64((worst + TimeoutMargin + time.Millisecond - 1) / time.Millisecond)
			for _, sub := range intercept {
				if sub.FailClosed && !sub.Shadow {
					s.FailurePolicy = "fail-closed"
				}
			}
			add(e, s)
		}
		// Who edits an answer has to know the whole question. Asking for more of
		// it in the interception would make that fail where there is no more.
		asks := e == ahp.UserElicitationRequest && len(t.Match(ahp.UserElicitationResult, routing.Intercept)) > 0
		if len(observe) > 0 || asks {
			// For a harness that cannot have the event intercepted; from others
			// it is a repetition, which goes nowhere.
			s := Subscription{Mode: "observe"}
			s.show(both)
			if asks {
				s.Content = map[string]string{"default": ahp.SelectBody.String()}
			}
			add(e, s)
		}
	}
	return all
}

// configuration returns the answer to hooks/configuration, or nil if there is
// nothing to subscribe to.
func configuration(t *routing.Table, budget time.Duration) ([]byte, error) {
	subscriptions := Subscriptions(t, budget)
	if len(subscriptions) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(map[string]any{"subscriptions": subscriptions})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return b, nil
}

// show sets what of an event the subscribers have to be shown.
func (s *Subscription) show(subscribers []*routing.Subscription) {
	all := union(subscribers)
	s.Content = map[string]string{"default": all.Default.String()}
	for category, selection := range all.Categories {
		s.Content[category] = selection.String()
	}
	for _, sub := range subscribers {
		s.IncludeNative = s.IncludeNative || sub.IncludeNative
	}
}

// union returns the content selection that shows every subscriber what it selects.
func union(subscribers []*routing.Subscription) ahp.ContentSelection {
	all := ahp.ContentSelection{Default: ahp.SelectOmit, Categories: map[string]ahp.Selection{}}
	for _, sub := range subscribers {
		all.Default = min(all.Default, sub.Content.Default) // the lower shows more
		for category := range sub.Content.Categories {
			all.Categories[category] = ahp.SelectOmit
		}
	}
	for category, most := range all.Categories {
		for _, sub := range subscribers {
			most = min(most, sub.Content.Of(category))
		}
		if all.Categories[category] = most; most == all.Default {
			delete(all.Categories, category)
		}
	}
	return all
}
