package routing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// subscription returns one that New accepts.
func subscription(hook, index int, m Mode, selectors ...string) Subscription {
	s := Subscription{
		BackendID: fmt.Sprintf("com.example.h%d", hook),
		ID:        fmt.Sprintf("%d.%d", hook, index),
		Hook:      hook,
		Index:     index,
		Mode:      m,
		Selectors: selectors,
	}
	if m == Intercept {
		s.Timeout = time.Second
	}
	return s
}

func mustNew(t testing.TB, v ahp.Version, subs ...Subscription) *Table {
	t.Helper()
	table, err := New(v, subs)
	if err != nil {
		t.Fatalf("New(%v, %v) = %v; want no error", v, subs, err)
	}
	return table
}

// ids are the local names of the matches, in their order.
func ids(table *Table, e ahp.EventType, m Mode) string {
	var s []string
	for _, sub := range table.Match(e, m) {
		s = append(s, sub.ID)
	}
	return strings.Join(s, " ")
}

// AHP-COMP-001: serial, in the order of hooks and then of subscriptions,
// whatever the selectors are.
func TestMatchIsInRegistrationOrder(t *testing.T) {
	table := mustNew(t, ahp.Draft,
		subscription(0, 0, Intercept, "*"),
		subscription(0, 1, Intercept, "tool.before"),
		subscription(0, 2, Observe, "*"),
		subscription(1, 0, Intercept, "turn.start", "tool.*"),
		subscription(2, 0, Observe, "tool.*"),
		subscription(2, 1, Intercept, "tool.before", "*", "tool.*"),
		subscription(3, 0, Intercept, "session.start"),
	)
	for _, c := range []struct {
		event ahp.EventType
		mode  Mode
		want  string
	}{
		{ahp.ToolBefore, Intercept, "0.0 0.1 1.0 2.1"},
		{ahp.ToolBefore, Observe, "0.2 2.0"},
		{ahp.ToolPermissionRequest, Intercept, "0.0 1.0 2.1"},
		{ahp.ToolPermissionResolved, Intercept, ""},
		{ahp.ToolPermissionResolved, Observe, "0.2 2.0"},
		{ahp.ToolBatchAfter, Intercept, "0.0 1.0 2.1"},
		{ahp.TurnStart, Intercept, "0.0 1.0 2.1"},
		{ahp.SessionStart, Intercept, "0.0 2.1 3.0"},
		{ahp.SessionEnd, Intercept, ""},
		{ahp.SessionEnd, Observe, "0.2"},
		{ahp.ToolError, Observe, ""},
		{ahp.EventUnknown, Intercept, ""},
		{ahp.EventUnknown, Observe, ""},
		{ahp.EventTypeCount, Intercept, ""},
		{255, Observe, ""},
		{ahp.ToolBefore, 0, ""},
		{ahp.ToolBefore, 9, ""},
	} {
		if got := ids(table, c.event, c.mode); got != c.want {
			t.Errorf("Match(%v, %v) = %q; want %q", c.event, c.mode, got, c.want)
		}
	}
	if got := table.Match(ahp.SessionEnd, Intercept); got != nil {
		t.Errorf("Match(session.end, intercept) = %v; want nil", got)
	}
}

// AHP-REG-002: for every snapshot, mode, selector and event of the catalogue,
// a selector either is refused or covers exactly the events that it names and
// that the mode has.
func TestSelectorsOverTheWholeCatalogue(t *testing.T) {
	selectors := []string{"*"}
	for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
		family, _, _ := strings.Cut(e.String(), ".")
		selectors = append(selectors, e.String(), family+".*")
	}
	slices.Sort(selectors)
	for _, v := range ahp.Versions {
		for _, m := range []Mode{Intercept, Observe} {
			for _, sel := range slices.Compact(slices.Clone(selectors)) {
				var want []string
				if v == ahp.Draft || !strings.HasSuffix(sel, "*") {
					for e := ahp.EventUnknown + 1; e < ahp.EventTypeCount; e++ {
						has := e.Interceptable(v)
						if m == Observe {
							has = e.Observable(v)
						}
						named := sel == "*" || sel == e.String() || strings.HasSuffix(sel, ".*") && strings.Split(e.String(), ".")[0] == strings.Split(sel, ".")[0]
						if has && named {
							want = append(want, e.String())
						}
					}
				}
				table, err := New(v, []Subscription{subscription(0, 0, m, sel)})
				if (err != nil) != (want == nil) {
					t.Errorf("New(%v, %v %q) = %v; want an error: %v", v, m, sel, err, want == nil)
				}
				if err != nil {
					continue
				}
				var got []string
				for e := range ahp.EventTypeCount {
					if len(table.Match(e, m)) == 1 {
						got = append(got, e.String())
					}
					if other := Intercept + Observe - m; len(table.Match(e, other)) != 0 {
						t.Errorf("%v %v %q matches %v in mode %v; want no match", v, m, sel, e, other)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%v %v %q covers %q; want %q", v, m, sel, got, want)
				}
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	intercept := subscription(0, 0, Intercept, "tool.before")
	edit := func(f func(*Subscription)) []Subscription {
		s := intercept
		f(&s)
		return []Subscription{s}
	}
	selectors := func(m Mode, sel ...string) []Subscription { return []Subscription{subscription(0, 0, m, sel...)} }
	again := subscription(0, 1, Intercept, "tool.before")
	for _, c := range []struct {
		name string
		v    ahp.Version
		subs []Subscription
		want string
	}{
		{"no snapshot", 0, nil, "unknown snapshot 0"},
		{"unknown snapshot", 9, nil, "unknown snapshot 9"},
		{"no mode", ahp.Draft, edit(func(s *Subscription) { s.Mode = 0 }), "unknown mode 0"},
		{"unknown mode", ahp.Draft, edit(func(s *Subscription) { s.Mode = 3 }), "unknown mode 3"},
		{"no timeout", ahp.Draft, edit(func(s *Subscription) { s.Timeout = 0 }), "timeout 0s of an intercept subscription is not positive"},
		{"negative timeout", ahp.Draft, edit(func(s *Subscription) { s.Timeout = -1 }), "is not positive"},
		{"no selector", ahp.Draft, selectors(Intercept), "no event selector"},
		{"repeated selector", ahp.Draft, selectors(Intercept, "*", "*"), `event selector "*" is repeated`},
		{"empty selector", ahp.Draft, selectors(Intercept, ""), `event selector "" names no event of snapshot draft`},
		{"unknown event", ahp.Draft, selectors(Intercept, "tool.never"), `event selector "tool.never" names no event of snapshot draft`},
		{"event of the other snapshot", ahp.Draft, selectors(Observe, "tool.error"), "names no event of snapshot draft"},
		{"upper case", ahp.Draft, selectors(Intercept, "Tool.Before"), "names no event"},
		{"space", ahp.Draft, selectors(Intercept, "tool.before "), "names no event"},
		{"two-segment family", ahp.Draft, selectors(Intercept, "tool.permission.*"), `event selector "tool.permission.*" names no event`},
		{"family without dot", ahp.Draft, selectors(Intercept, "tool*"), "names no event"},
		{"family without name", ahp.Draft, selectors(Intercept, ".*"), "names no event"},
		{"two stars", ahp.Draft, selectors(Intercept, "**"), "names no event"},
		{"star inside", ahp.Draft, selectors(Intercept, "*.before"), "names no event"},
		{"family of stars", ahp.Draft, selectors(Intercept, "*.*"), `event selector "*.*" covers no event with intercept mode`},
		{"unknown family", ahp.Draft, selectors(Observe, "tools.*"), `event selector "tools.*" covers no event with observe mode in snapshot draft`},
		{"family that cannot be intercepted", ahp.Draft, selectors(Intercept, "file.*"), "covers no event with intercept mode"},
		{"event that cannot be intercepted", ahp.Draft, selectors(Intercept, "tool.progress"), "event tool.progress of snapshot draft has no intercept mode"},
		{"0.1 event that cannot be observed", ahp.V01, selectors(Observe, "tool.before"), "event tool.before of snapshot 0.1 has no observe mode"},
		{"0.1 wildcard", ahp.V01, selectors(Intercept, "*"), `event selector "*": snapshot 0.1 has exact names only`},
		{"0.1 family", ahp.V01, selectors(Observe, "session.*"), "has exact names only"},
		{"0.1 backend twice", ahp.V01, []Subscription{intercept, again}, `hooks[0].subscriptions[1]: backend "com.example.h0" already has a subscription to intercept tool.before`},
		{"hooks out of order", ahp.Draft, []Subscription{subscription(1, 0, Observe, "*"), subscription(0, 0, Observe, "*")}, "hooks[0].subscriptions[0] stands after hooks[1].subscriptions[0]"},
		{"subscriptions out of order", ahp.Draft, []Subscription{subscription(1, 1, Observe, "*"), subscription(1, 0, Observe, "*")}, "hooks[1].subscriptions[0] stands after hooks[1].subscriptions[1]"},
		{"good before bad", ahp.Draft, []Subscription{intercept, subscription(2, 3, Observe, "x")}, "hooks[2].subscriptions[3]: "},
	} {
		table, err := New(c.v, c.subs)
		if err == nil || table != nil || !strings.HasPrefix(err.Error(), "routing: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: New = %v, %v; want nil and an error with %q", c.name, table, err, c.want)
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	_, err := New(ahp.Draft, []Subscription{subscription(0, 0, Observe, strings.Repeat("x", 1<<20))})
	if err == nil || len(err.Error()) > 512 {
		t.Errorf("New with a selector of 1 MiB = an error of %d bytes; want at most 512", len(fmt.Sprint(err)))
	}
}

// In draft, distinct subscriptions of one backend are independent.
func TestDraftBackendTwice(t *testing.T) {
	table := mustNew(t, ahp.Draft, subscription(0, 0, Intercept, "tool.before"), subscription(0, 1, Intercept, "tool.before"))
	if got, want := ids(table, ahp.ToolBefore, Intercept), "0.0 0.1"; got != want {
		t.Errorf("Match(tool.before, intercept) = %q; want %q", got, want)
	}
}

func TestV01BackendInBothModes(t *testing.T) {
	table := mustNew(t, ahp.V01, subscription(0, 0, Intercept, "tool.before"), subscription(0, 1, Observe, "tool.after", "tool.error"))
	for e, want := range map[ahp.EventType]string{ahp.ToolAfter: "0.1", ahp.ToolError: "0.1", ahp.ToolBefore: ""} {
		if got := ids(table, e, Observe); got != want {
			t.Errorf("Match(%v, observe) = %q; want %q", e, got, want)
		}
	}
	if got := table.Version(); got != ahp.V01 {
		t.Errorf("Version() = %v; want %v", got, ahp.V01)
	}
}

func TestWorstCase(t *testing.T) {
	a, b, c := subscription(0, 0, Intercept, "*"), subscription(1, 0, Intercept, "tool.*"), subscription(2, 0, Observe, "*")
	a.Timeout, b.Timeout = 750*time.Millisecond, 5*time.Second
	shadow := subscription(3, 0, Intercept, "*")
	shadow.Timeout, shadow.Shadow = time.Hour, true // takes none of the chain's time
	table := mustNew(t, ahp.Draft, a, b, c, shadow)
	for e, want := range map[ahp.EventType]time.Duration{
		ahp.ToolBefore: 5750 * time.Millisecond, ahp.TurnStart: 750 * time.Millisecond, ahp.ToolProgress: 0, ahp.EventTypeCount: 0,
	} {
		if got := table.WorstCase(e); got != want {
			t.Errorf("WorstCase(%v) = %v; want %v", e, got, want)
		}
	}
}

// Nothing that a caller does to its own slices reaches the table.
func TestTableIsImmutable(t *testing.T) {
	subs := []Subscription{
		subscription(0, 0, Observe, "*"),
		subscription(1, 0, Observe, "session.end"),
		subscription(2, 0, Observe, "session.end"),
	}
	table := mustNew(t, ahp.Draft, subs...)
	subs[0].ID, subs[1].Mode = "changed", Intercept
	_ = append(table.Match(ahp.ToolAfter, Observe), &subs[1])
	if got, want := ids(table, ahp.ToolAfter, Observe), "0.0"; got != want {
		t.Errorf("Match(tool.after, observe) = %q; want %q", got, want)
	}
	if got, want := ids(table, ahp.SessionEnd, Observe), "0.0 1.0 2.0"; got != want {
		t.Errorf("Match(session.end, observe) = %q; want %q", got, want)
	}
	if got := cap(table.Match(ahp.SessionEnd, Observe)); got != 3 {
		t.Errorf("cap of 3 matches = %d; want 3, so that an append copies", got)
	}
}

func TestEmptyTable(t *testing.T) {
	table := mustNew(t, ahp.V01)
	if got := table.Match(ahp.ToolBefore, Intercept); got != nil {
		t.Errorf("Match of an empty table = %v; want nil", got)
	}
}

func TestModeString(t *testing.T) {
	for m, want := range map[Mode]string{Intercept: "intercept", Observe: "observe", 0: "unknown", 7: "unknown"} {
		if got := m.String(); got != want {
			t.Errorf("Mode(%d).String() = %q; want %q", m, got, want)
		}
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	table := mustNew(t, ahp.Draft, subscription(0, 0, Intercept, "*"))
	if got := testing.AllocsPerRun(100, func() { table.Match(ahp.ToolBefore, Intercept) }); got != 0 {
		t.Errorf("allocations of Match = %v; want 0", got)
	}
}

func BenchmarkMatch(b *testing.B) {
	table := mustNew(b, ahp.Draft, subscription(0, 0, Intercept, "*"), subscription(1, 0, Intercept, "tool.*"))
	b.ReportAllocs()
	for b.Loop() {
		table.Match(ahp.ToolBefore, Intercept)
	}
}
