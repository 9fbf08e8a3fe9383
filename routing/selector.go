package routing

import (
	"fmt"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// eventSet is a set of events, one bit per ahp.EventType.
type eventSet uint64

// The catalogue must fit into an eventSet; this fails to compile when it does not.
const _ = uint(64 - ahp.EventTypeCount)

func (s eventSet) has(e ahp.EventType) bool { return s&(1<<e) != 0 }

// resolve returns the events that selector covers in snapshot v and mode m: an
// intercept selector covers only events that can be intercepted, an observe
// selector only events that can be observed. "tool.*" covers every event whose
// first segment is tool, however many segments follow. AHP-REG-002.
func resolve(v ahp.Version, m Mode, selector string) (eventSet, error) {
	supported := ahp.EventType.Interceptable
	if m == Observe {
		supported = ahp.EventType.Observable
	}
	family, wild := "", selector == "*"
	if !wild {
		family, wild = strings.CutSuffix(selector, "*")
		wild = wild && isFamily(family)
	}
	if !wild {
		e, ok := ahp.LookupEvent(v, selector)
		if !ok {
			return 0, fmt.Errorf("event selector %.64q names no event of snapshot %s", selector, v)
		}
		if !supported(e, v) {
			return 0, fmt.Errorf("event %s of snapshot %s has no %s mode", e, v, m)
		}
		return 1 << e, nil
	}
	if v == ahp.V01 {
		return 0, fmt.Errorf("event selector %.64q: snapshot %s has exact names only", selector, v)
	}
	var set eventSet
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		if supported(e, v) && strings.HasPrefix(e.String(), family) {
			set |= 1 << e
		}
	}
	if set == 0 {
		return 0, fmt.Errorf("event selector %.64q covers no event with %s mode in snapshot %s", selector, m, v)
	}
	return set, nil
}

// isFamily reports whether prefix is one whole segment and its dot.
func isFamily(prefix string) bool {
	return len(prefix) > 1 && strings.IndexByte(prefix, '.') == len(prefix)-1
}
