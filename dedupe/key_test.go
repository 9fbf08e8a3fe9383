package dedupe

import (
	"bytes"
	"crypto/fips140"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestKeyOfTellsTuplesApart(t *testing.T) {
	long := strings.Repeat("x", 2*preimageSize)
	tuples := [][]string{
		{}, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"a", "b", "c"},
		{"\x00"}, {"\x00\x00\x00\x00\x00\x00\x00\x00"}, {"\x00\x00\x00\x00\x00\x00\x00\x01a"},
		{long}, {long, ""}, {long + "x"}, {long[1:], "x"},
	}
	for i, a := range tuples {
		for j, b := range tuples {
			if got, want := KeyOf(a...) == KeyOf(b...), i == j; got != want {
				t.Errorf("KeyOf(%.40q) == KeyOf(%.40q) = %v; want %v", a, b, got, want)
			}
		}
	}
}

func TestKeyOfStringsAndBytesAgree(t *testing.T) {
	if a, b := KeyOf("source", "id"), KeyOf([]byte("source"), []byte("id")); a != b {
		t.Errorf("KeyOf of strings = %x, of bytes = %x; want them equal", a, b)
	}
}

func TestKeyOfAllocatesNothing(t *testing.T) {
	source, id := []byte("https://harness.example/agents/1"), []byte("evt_0123456789")
	if got := testing.AllocsPerRun(100, func() { KeyOf(source, id) }); got != 0 {
		t.Errorf("allocations of KeyOf = %v; want 0", got)
	}
}

// A fingerprint tells every two messages apart, depends on a key, and costs no
// allocation; with or without the primitive that FIPS 140 does not let be used so.
func TestFingerprints(t *testing.T) {
	for name, f := range map[string]*Fingerprints{"GMAC": NewFingerprints(), "SHA-256": {}} {
		seen := make(map[Fingerprint]string)
		body := make([]byte, 100)
		for n := range body {
			for bit := range 8 * n {
				changed := bytes.Clone(body[:n])
				changed[bit/8] ^= 1 << (bit % 8)
				var fp, again Fingerprint
				f.Make(&fp, changed)
				again[20] = 7 // what was there before does not matter
				f.Make(&again, changed)
				if other, ok := seen[fp]; ok || fp != again {
					t.Fatalf("%s: %x has the fingerprint %x, then %x; so has %x", name, changed, fp, again, other)
				}
				seen[fp] = string(changed)
			}
		}
		var fp Fingerprint
		if got := testing.AllocsPerRun(100, func() { f.Make(&fp, body) }); got != 0 {
			t.Errorf("%s: allocations of Make = %v; want 0", name, got)
		}
	}
	var a, b Fingerprint
	NewFingerprints().Make(&a, []byte("message"))
	NewFingerprints().Make(&b, []byte("message"))
	if a == b && !fips140.Enforced() {
		t.Error("two keys make one fingerprint; want two")
	}
}

// split cuts data into parts: each is as long as the byte in front of it says.
func split(data []byte) (parts [][]byte) {
	for len(data) > 0 {
		n := min(int(data[0]), len(data)-1)
		parts = append(parts, data[1:1+n])
		data = data[1+n:]
	}
	return parts
}

// FuzzKeyOf: the preimage of a key can be read back into exactly the parts it
// was made of, so distinct tuples never share one.
func FuzzKeyOf(f *testing.F) {
	f.Add([]byte("\x01a\x01b"), []byte("\x02ab\x00"))
	f.Add([]byte("\x00"), []byte(""))
	f.Add([]byte("\x08\x00\x00\x00\x00\x00\x00\x00\x00"), []byte("\x00\x00"))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, b := split(x), split(y)
		var preimages [2][]byte
		for i, parts := range [][][]byte{a, b} {
			for _, p := range parts {
				preimages[i] = appendPart(preimages[i], p)
			}
			rest := preimages[i]
			for _, p := range parts {
				n := binary.BigEndian.Uint64(rest)
				if got := rest[8 : 8+n]; !bytes.Equal(got, p) {
					t.Fatalf("preimage of %q reads %q; want %q", parts, got, p)
				}
				rest = rest[8+n:]
			}
			if len(rest) != 0 {
				t.Fatalf("preimage of %q has %d more bytes; want none", parts, len(rest))
			}
			if got, want := KeyOf(parts...), Key(sha256.Sum256(preimages[i])); got != want {
				t.Fatalf("KeyOf(%q) = %x; want %x", parts, got, want)
			}
		}
		same := slices.EqualFunc(a, b, bytes.Equal)
		if got := bytes.Equal(preimages[0], preimages[1]); got != same {
			t.Errorf("preimages of %q and %q equal = %v; want %v", a, b, got, same)
		}
		if got := KeyOf(a...) == KeyOf(b...); got != same {
			t.Errorf("keys of %q and %q equal = %v; want %v", a, b, got, same)
		}
	})
}

func BenchmarkKeyOf(b *testing.B) {
	source, id := []byte("https://harness.example/agents/1"), []byte("evt_0123456789")
	b.ReportAllocs()
	for b.Loop() {
		KeyOf(source, id)
	}
}

func BenchmarkFingerprints(b *testing.B) {
	for name, f := range map[string]*Fingerprints{"GMAC": NewFingerprints(), "SHA-256": {}} {
		for _, size := range []int{512, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				body := bytes.Repeat([]byte{'a'}, size)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				var fp Fingerprint
				for b.Loop() {
					f.Make(&fp, body)
				}
			})
		}
	}
}
