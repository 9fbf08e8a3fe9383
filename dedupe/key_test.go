package dedupe

import (
	"bytes"
	"encoding/binary"
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
	if got := testing.AllocsPerRun(100, func() { FingerprintOf(source) }); got != 0 {
		t.Errorf("allocations of FingerprintOf = %v; want 0", got)
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
			if got, want := KeyOf(parts...), Key(FingerprintOf(preimages[i])); got != want {
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

func BenchmarkFingerprintOf(b *testing.B) {
	body := bytes.Repeat([]byte{'a'}, 2048)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		FingerprintOf(body)
	}
}
