//go:build !race

package ahp

import "testing"

// The race detector makes sync.Pool forget at random, so allocations are
// counted without it.

// TestAllocations: the request path of a message without escapes makes no
// garbage.
func TestAllocations(t *testing.T) {
	for _, path := range append([]string{intercept01, interceptDraft}, deepDraft...) {
		body := message(t, path)
		var m Message
		if got := testing.AllocsPerRun(1000, func() {
			if err := Decode(body, &m); err != nil {
				t.Fatalf("Decode(%s) = %v; want nil", path, err)
			}
		}); got != 0 {
			t.Errorf("Decode(%s) allocates %v times; want 0", path, got)
		}
	}
	effect := []byte(`{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":[{"id":"m","role":"user","parts":[]}]}`)
	if got := testing.AllocsPerRun(1000, func() {
		if _, wrong := TurnStart.CheckEffect(effect); wrong != "" {
			t.Fatalf("CheckEffect(%s) = %s; want it right", effect, wrong)
		}
	}); got != 0 {
		t.Errorf("CheckEffect(%s) allocates %v times; want 0", effect, got)
	}
	for _, path := range []string{empty01, deny01, error01, absentDraft, denyDraft} {
		call := callOf(path)
		r := Response{Body: message(t, path)}
		if got := testing.AllocsPerRun(1000, func() { DecodeResponse(call, &r) }); got != 0 {
			t.Errorf("DecodeResponse(%s) allocates %v times; want 0", path, got)
		}
	}
	for _, path := range []string{interceptFull01, fullDraft} {
		body := message(t, path)
		var m Message
		if err := Decode(body, &m); err != nil {
			t.Fatalf("Decode(%s) = %v; want nil", path, err)
		}
		dst, shown := make([]byte, 0, 2*len(body)), make([]byte, 0, 2*len(body))
		if got := testing.AllocsPerRun(1000, func() {
			m.Compose(dst, m.Shown(shown, m.Event.Raw, View{}), DenyAlone, m.State)
			m.AppendObserve(dst, View{})
		}); got != 0 {
			t.Errorf("Compose, Shown and AppendObserve of %s allocate %v times; want 0", path, got)
		}
	}
}
