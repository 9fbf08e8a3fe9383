package config

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// keyedText is the document of a tenant with keys by their digits.
func keyedText(id, digits string) string {
	var keys []string
	for _, digit := range strings.Split(digits, "") {
		keys = append(keys, `{"sha256": "`+strings.Repeat(digit, 64)+`"}`)
	}
	return strings.Replace(storedText(id, digits[:1]), `{"sha256": "`+strings.Repeat(digits[:1], 64)+`"}`, strings.Join(keys, ", "), 1)
}

// keyDigits returns the first digits of the keys of stored tenants, by id.
func keyDigits(f *File) map[string]string {
	all := make(map[string]string)
	for _, t := range f.Tenants {
		if t.ID == "filed" {
			continue
		}
		for _, k := range t.Keys {
			all[t.ID] += hex.EncodeToString(k.SHA256[:1])[:1]
		}
	}
	return all
}

// A key that a tenant gives up is gone, whoever claims another of its keys by
// mistake in the same moment.
func TestChangesThatClaimAnothersKeyKeepNoKeyAlive(t *testing.T) {
	for _, c := range []struct {
		what                string
		before, after, want map[string]string
	}{
		{"one that gives a key up", map[string]string{"acme": "1", "zoo": "23"}, map[string]string{"acme": "12", "zoo": "2"}, map[string]string{"acme": "1", "zoo": "2"}},
		{"one that rotates its keys", map[string]string{"acme": "1", "zoo": "23"}, map[string]string{"acme": "12", "zoo": "24"}, map[string]string{"acme": "1", "zoo": "24"}},
		{"one that takes over what is given up", map[string]string{"acme": "1", "zoo": "23"}, map[string]string{"acme": "13", "zoo": "2"}, map[string]string{"acme": "13", "zoo": "2"}},
	} {
		s := storing(t, "", nil)
		put := func(digits map[string]string) {
			documents := make(map[string]string)
			for id, d := range digits {
				documents[id] = keyedText(id, d)
			}
			s.store(documents)
		}
		put(c.before)
		s.serves(Change{}, append([]string{"filed"}, slices.Sorted(maps.Keys(c.before))...)...)
		put(c.after)
		f := s.serves(Change{}, append([]string{"filed"}, slices.Sorted(maps.Keys(c.want))...)...)
		if got := keyDigits(f); !maps.Equal(got, c.want) {
			t.Errorf("%s: keys are %v; want %v", c.what, got, c.want)
		}
	}
}

// What is left out for claiming another's key keeps nobody from changing whose
// that is.
func TestWhatIsLeftOutStopsNoChange(t *testing.T) {
	for _, stray := range []string{"acme", "zz"} {
		s := storing(t, "", map[string]string{"mid": keyedText("mid", "23")})
		s.serves(Change{}, "filed", "mid")
		s.store(map[string]string{"mid": keyedText("mid", "23"), stray: keyedText(stray, "2")})
		s.serves(Change{}, "filed", "mid")
		f := s.serves(Change{StoredName("mid"), []byte(keyedText("mid", "24"))}, "filed", "mid")
		if got := keyDigits(f)["mid"]; got != "24" {
			t.Errorf("keys of the tenant that changes beside %s = %s; want 24", stray, got)
		}
	}
}

// However long a chain of consequences is, nobody is left without a document.
func TestChainsOfConsequences(t *testing.T) {
	const n = 40
	text := func(id string, key int) string {
		return strings.Replace(storedText(id, "0"), strings.Repeat("0", 64), fmt.Sprintf("%064x", key+1), 1)
	}
	for _, name := range []func(i int) string{
		func(i int) string { return fmt.Sprintf("t%02d", i) },
		func(i int) string { return fmt.Sprintf("t%02d", n-i) },
		func(i int) string { return fmt.Sprintf("t%02d", i*7%n) },
	} {
		s := storing(t, "", nil)
		before, after := make(map[string]string), make(map[string]string)
		for i := range n { // each is to have the key of the next
			before[name(i)], after[name(i)] = text(name(i), i), text(name(i), i+1)
		}
		after[name(n-1)] = "{"
		ids := append([]string{"filed"}, slices.Sorted(maps.Keys(before))...)
		s.store(before)
		s.serves(Change{}, ids...)
		s.store(after)
		for range 2 {
			f := s.serves(Change{}, ids...)
			for i := range n {
				at := slices.IndexFunc(f.Tenants, func(t Tenant) bool { return t.ID == name(i) })
				if at >= 0 && int(f.Tenants[at].Keys[0].SHA256[31]) != i+1 {
					t.Errorf("tenant %s has key %d; want its earlier one, %d", name(i), f.Tenants[at].Keys[0].SHA256[31], i+1)
				}
			}
		}
		if len(s.LeftOut) != n {
			t.Errorf("left out were %d; want %d", len(s.LeftOut), n)
		}
	}
}

// Whatever changes at once, who was served is served, who gives keys up has given
// them up, and the next look finds the same.
func TestSelectionsHold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := storing(t, "", nil)
	digits := map[string]string{}
	for round := range 150 {
		next := maps.Clone(digits)
		for range 1 + random.IntN(6) {
			id := string(rune('p' + random.IntN(8)))
			switch keys := ""; random.IntN(6) {
			case 0:
				delete(next, id)
			case 1:
				next[id] = "{"
			default:
				for _, d := range random.Perm(12)[:1+random.IntN(3)] {
					keys += fmt.Sprintf("%x", d)
				}
				next[id] = keys
			}
		}
		was, documents := map[string]string{}, make(map[string]string)
		if round > 0 {
			f, _, err := s.Load()
			if err != nil {
				t.Fatal(err)
			}
			was = keyDigits(f)
		}
		for id, d := range next {
			if documents[id] = d; d != "{" {
				documents[id] = keyedText(id, d)
			}
		}
		s.store(documents)
		f, _, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		s.Served()
		got := keyDigits(f)
		for id, keys := range was {
			d, there := next[id]
			switch {
			case there && got[id] == "":
				t.Errorf("round %d: %s, which was served, is dropped: %v, then %v, serves %v", round, id, was, next, got)
			case !there && got[id] != "":
				t.Errorf("round %d: %s, which was removed, is served", round, id)
			case there && d != "{" && strings.Trim(d, keys) == "" && got[id] != d:
				t.Errorf("round %d: %s gives up keys and keeps %s: %v, then %v", round, id, got[id], was, next)
			}
		}
		again, _, err := s.Load()
		if err != nil || !maps.Equal(keyDigits(again), got) {
			t.Errorf("round %d: the next look finds %v, %v; want %v", round, keyDigits(again), err, got)
		}
		digits = next
	}
}
