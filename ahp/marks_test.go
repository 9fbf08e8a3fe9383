package ahp

import (
	"math/rand/v2"
	"testing"
)

// TestMarks compares what the processor's instructions find, and what the
// portable code finds, with each byte looked at by itself.
func TestMarks(t *testing.T) {
	check := func(b *[block]byte) {
		t.Helper()
		var special, foreign uint64
		for i, c := range b {
			if c < 0x20 || c == '"' || c == '\\' {
				special |= 1 << i
			}
			if c >= 0x80 {
				foreign |= 1 << i
			}
		}
		if s, f := marks(b); s != special || f != foreign {
			t.Fatalf("marks(%q) = %064b, %064b, want %064b, %064b", b, s, f, special, foreign)
		}
		if s, f := marksInGo(b); s != special || f != foreign {
			t.Fatalf("marksInGo(%q) = %064b, %064b, want %064b, %064b", b, s, f, special, foreign)
		}
	}
	var b [block]byte
	for at := range b {
		for c := range 256 {
			for i := range b {
				b[i] = 'a'
			}
			b[at] = byte(c)
			check(&b)
			for i := range b {
				b[i] = byte(c)
			}
			b[at] = 'a'
			check(&b)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		check(&b)
	}
}
