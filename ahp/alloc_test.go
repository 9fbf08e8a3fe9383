//go:build !race

package ahp

import "testing"

// The race detector makes sync.Pool forget at random, so allocations are
// counted without it.

// TestAllocations: the request path of a message without escapes makes no
// garbage.
func TestAllocations(t *testing.T) {
	for _, path := range []string{intercept01, interceptDraft} {
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
		dst := make([]byte, 0, 2*len(body))
		if got := testing.AllocsPerRun(1000, func() {
			m.AppendIntercept(dst, View{})
			m.AppendObserve(dst, View{})
		}); got != 0 {
			t.Errorf("AppendIntercept and AppendObserve of %s allocate %v times; want 0", path, got)
		}
	}
}
