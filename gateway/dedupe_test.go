package gateway

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// 100 concurrent duplicates are one evaluation, and all of them get its answer
// (AHP-CORE-004).
func TestDuplicatesJoin(t *testing.T) {
	for _, v := range versions {
		b := fakebackend.Start(t, fakebackend.Behave("late"))
		r := start(t, open(registration(v, hook("com.example.b", b.URL, intercepts(v, "fail-closed", 10000)))))
		const n = 100
		var wg sync.WaitGroup
		answers := make([]string, n)
		for i := range n {
			wg.Go(func() { answers[i] = r.post("/hooks", event(v, "same")).body })
		}
		b.Await(1)
		// Whoever has not joined by now is answered from memory.
		b.Release()
		wg.Wait()
		for i, a := range answers {
			if a != answers[0] || !strings.Contains(a, `"effects":[]`) {
				t.Errorf("%s: duplicate %d = %s; want %s", v, i, a, answers[0])
			}
		}
		if got := b.Count(); got != 1 {
			t.Errorf("%s: %d duplicates made %d evaluations; want 1", v, n, got)
		}
		seen := map[string]int{}
		for _, record := range r.audit.await(n) {
			seen[str(record["dedupe"])]++
		}
		if seen["miss"] != 1 || seen["hit"]+seen["joined"] != n-1 {
			t.Errorf("%s: audit records by dedupe = %v; want 1 miss and %d hits or joins", v, seen, n-1)
		}
	}
}

// The same id with other content is never answered from the cache, whether the
// first is remembered or still under way.
func TestSameIDOtherContent(t *testing.T) {
	script := fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
		if strings.Contains(string(q.Body), "rm -rf") {
			return "deny:dangerous"
		}
		return "pass"
	})
	for _, v := range versions {
		b := fakebackend.Start(t, script)
		r := start(t, open(registration(v, hook("com.example.b", b.URL, intercepts(v, "fail-closed", 5000)))))
		harmless := event(v, "e1")
		dangerous := strings.Replace(harmless, "git status", "rm -rf /", 1)
		for i, c := range []struct{ body, want string }{
			{harmless, "pass"}, {dangerous, "deny: dangerous"}, {harmless, "pass"}, {dangerous, "deny: dangerous"},
		} {
			if a := r.post("/hooks", c.body); a.decision() != c.want {
				t.Errorf("%s: message %d = %s; want %s", v, i, a.body, c.want)
			}
		}
		// The first is remembered; the other is evaluated each time.
		if got := b.Count(); got != 3 {
			t.Errorf("%s: %d evaluations; want 3", v, got)
		}
		if got := str(r.audit.await(4)[1]["dedupe"]); got != "conflict" {
			t.Errorf("%s: audit record of other content says %q; want conflict", v, got)
		}
	}
}

func TestSameIDOtherContentInFlight(t *testing.T) {
	first := make(chan struct{})
	b := fakebackend.Start(t, fakebackend.WithScript(func(n int, q *fakebackend.Request) string {
		if n == 0 {
			close(first)
			return "late"
		}
		return "deny:other"
	}))
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 10000)))))
	var wg sync.WaitGroup
	wg.Go(func() {
		if a := r.post("/hooks", event01("e1")); a.decision() != "pass" {
			t.Errorf("first = %s; want pass", a.body)
		}
	})
	<-first
	if a := r.post("/hooks", strings.Replace(event01("e1"), "git status", "other", 1)); a.decision() != "deny: other" {
		t.Errorf("other content while the first is under way = %s; want its own deny", a.body)
	}
	b.Release()
	wg.Wait()
}

// An answer that a failure has touched is not what the backends would say on
// another day: it is forgotten, under either policy.
func TestDegradedAnswersAreNotRemembered(t *testing.T) {
	for _, policy := range []string{"fail-open", "fail-closed"} {
		b := fakebackend.Start(t, fakebackend.Behave("status-500", "deny:on second thought", "pass"))
		r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", policy, 5000)))))
		degraded := map[string]string{"fail-open": "pass", "fail-closed": "deny: Required policy backend unavailable. (io.ahp-gateway.fail_closed)"}[policy]
		for i, want := range []string{degraded, "deny: on second thought", "deny: on second thought"} {
			if a := r.post("/hooks", event01("e1")); a.decision() != want {
				t.Errorf("%s: delivery %d = %s; want %s", policy, i, a.body, want)
			}
		}
		if got := b.Count(); got != 2 {
			t.Errorf("%s: %d evaluations; want 2", policy, got)
		}
	}
}

// A reload starts a new generation: what an old configuration decided answers
// nothing any more.
func TestReloadForgetsAnswers(t *testing.T) {
	before := fakebackend.Start(t, fakebackend.Behave("pass"))
	after := fakebackend.Start(t, fakebackend.Behave("deny:new policy"))
	text := func(b *fakebackend.Server) string {
		return open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))))
	}
	r := start(t, text(before))
	if a := r.post("/hooks", event01("e1")); a.decision() != "pass" {
		t.Fatalf("before the reload = %s; want pass", a.body)
	}
	if _, err := r.Reload(t.Context(), parse(t, text(after))); err != nil {
		t.Fatalf("Reload() = %v; want none", err)
	}
	if a := r.post("/hooks", event01("e1")); a.decision() != "deny: new policy" {
		t.Errorf("after the reload = %s; want the new backend's deny", a.body)
	}
	records := r.audit.await(2)
	if records[0]["generation"] != 1.0 || records[1]["generation"] != 2.0 {
		t.Errorf("generations in audit records = %v, %v; want 1, 2", records[0]["generation"], records[1]["generation"])
	}
}

// A remembered deny stays a deny: its verdict is recorded with it.
func TestRememberedDeny(t *testing.T) {
	b := fakebackend.Start(t, fakebackend.Behave("deny:no", "pass"))
	r := start(t, open(registration("draft", hook("com.example.b", b.URL, intercepts("draft", "fail-open", 5000)))))
	for i := range 3 {
		if a := r.post("/hooks", eventDraft("e1")); a.decision() != "deny: no" {
			t.Errorf("delivery %d = %s; want deny: no", i, a.body)
		}
	}
	for i, record := range r.audit.await(3) {
		want := []string{"miss", "hit", "hit"}[i]
		if str(record["reason"]) != "no" || str(record["denied_by"]) != "com.example.b" {
			t.Errorf("record %d = %v; want the reason and who denied", i, record)
		}
		if str(record["verdict"]) != "deny" || str(record["dedupe"]) != want {
			t.Errorf("record %d = verdict %v, dedupe %v; want deny, %s", i, record["verdict"], record["dedupe"], want)
		}
	}
}

// The cache's bounds hold, and what falls out is evaluated again.
func TestDedupeBounds(t *testing.T) {
	b := fakebackend.Start(t)
	r := start(t, open(registration("0.1", hook("com.example.b", b.URL, intercepts("0.1", "fail-closed", 5000))), "dedupe: {entries: 8}"))
	for range 2 {
		for i := range 100 {
			r.post("/hooks", event01(fmt.Sprintf("e%d", i)))
		}
	}
	if got := b.Count(); got < 150 {
		t.Errorf("200 deliveries of 100 events with room for 8 made %d evaluations; want most of them", got)
	}
}
