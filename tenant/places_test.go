package tenant

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// fill enters for s until it is denied, and returns how many times it was not,
// and why it was.
func fill(t *testing.T, p *Places, s *Seat, limit int) (n int, why Denied) {
	t.Helper()
	for n = range limit + 2 {
		if why = p.Enter(s, limit); why != Admitted {
			return n, why
		}
	}
	t.Fatalf("Enter() was admitted %d times; want at most %d", n+1, limit)
	return n, why
}

// shared returns places for more than one tenant.
func shared() *Places {
	p := new(Places)
	p.Divide(2)
	return p
}

func TestPlacesOfOne(t *testing.T) {
	for name, s := range map[string]*Seat{"no seat": nil, "a seat": NewSeat(1)} {
		p := new(Places)
		p.Divide(1)
		if n, why := fill(t, p, s, 8); n != 8 || why != DeniedPlaces || p.Taken() != 8 {
			t.Errorf("%s alone got %d places, then %v, %d taken; want all 8, then %v", name, n, why, p.Taken(), DeniedPlaces)
		}
		p.Leave(s)
		if n, _ := fill(t, p, s, 8); n != 1 {
			t.Errorf("%s got %d places after one was given back; want 1", name, n)
		}
	}
}

// One that takes all it can leaves room, and who comes gets its share although
// the greedy one asks all the time.
func TestPlacesAreShared(t *testing.T) {
	for _, c := range []struct {
		limit          int
		greedy, modest int // their weights
		alone, share   int // what the greedy one gets alone, and the modest one's share beside it
	}{
		{100, 1, 1, 75, 33},
		{100, 1, 3, 75, 60},
		{100, 3, 1, 75, 20},
		{100, 1000, 1, 99, 1},
		{100, 1, 1000, 75, 99},
		{8192, 1, 1, 6144, 2730},
		{2, 1, 1, 1, 1},
	} {
		name := fmt.Sprintf("limit %d, weights %d and %d", c.limit, c.greedy, c.modest)
		p, greedy, modest := shared(), NewSeat(c.greedy), NewSeat(c.modest)
		if n, why := fill(t, p, greedy, c.limit); n != c.alone || why != DeniedShare {
			t.Errorf("%s: the greedy one got %d, then %v; want %d, then %v", name, n, why, c.alone, DeniedShare)
		}
		// The modest one has as many in flight as it may, and the greedy one asks
		// whenever a place becomes free, with a hundred times as many.
		for modest.Held() < c.share {
			if why := p.Enter(modest, c.limit); why == DeniedPlaces {
				p.Leave(greedy)
			} else if why != Admitted {
				t.Fatalf("%s: the modest one with %d = %v; want its share of %d", name, modest.Held(), why, c.share)
			}
			for range 100 {
				if p.Enter(greedy, c.limit) == Admitted && p.Taken() > c.limit {
					t.Fatalf("%s: %d taken; want at most the limit", name, p.Taken())
				}
			}
		}
		if got, want := greedy.Held(), min(c.alone, c.limit-c.share); got != want {
			t.Errorf("%s: the greedy one has %d beside a share of %d; want %d", name, got, c.share, want)
		}
		// From here on the modest one always finds its places again.
		for range 3 * c.limit {
			p.Leave(modest)
			p.Enter(greedy, c.limit)
			if why := p.Enter(modest, c.limit); why != Admitted {
				t.Fatalf("%s: a place given back and asked for again = %v; want admitted", name, why)
			}
		}
	}
}

// A hundred tenants that all take what they can leave each its share.
func TestPlacesOfMany(t *testing.T) {
	const limit, tenants = 1000, 100
	p := shared()
	seats := make([]*Seat, tenants)
	for i := range seats {
		seats[i] = NewSeat(1)
		p.Enter(seats[i], limit)
	}
	for range limit {
		for _, s := range seats {
			p.Enter(s, limit)
		}
	}
	for i, s := range seats {
		if n := s.Held(); n < limit/(tenants+1) || n > limit/tenants {
			t.Errorf("tenant %d of %d holds %d of %d places; want its share", i, tenants, n, limit)
		}
	}
	if s := NewSeat(1); p.Enter(s, limit) != Admitted {
		t.Errorf("a new tenant is refused with %d of %d places taken; want room for it", p.Taken(), limit)
	}
}

// Whatever comes in whatever order: who is under its share is refused only if
// there is no place at all, nobody over it takes of the last quarter, and what
// is counted is what is held.
func TestPlacesInAnyOrder(t *testing.T) {
	const limit, last = 64, 48
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		p, seats := shared(), make([]*Seat, 2+random.IntN(20))
		for i := range seats {
			seats[i] = NewSeat(1 + random.IntN(10))
		}
		for step := range 2000 {
			s, taken, weight := seats[random.IntN(len(seats))], 0, 0
			if random.IntN(10) == 0 {
				p.Weigh(seats[random.IntN(len(seats))], random.IntN(10))
			}
			for _, o := range seats {
				taken += o.Held()
				if o.Held() > 0 || o == s {
					weight += o.Weight()
				}
			}
			if held := s.Held(); held > 0 && random.IntN(3) == 0 {
				p.Leave(s)
				taken--
			} else {
				want := Admitted
				switch under := held+1 <= max(1, limit*s.Weight()/(weight+1)); {
				case taken == limit:
					want = DeniedPlaces
				case taken >= last && !under:
					want = DeniedShare
				default:
					taken++
				}
				if got := p.Enter(s, limit); got != want {
					t.Fatalf("seed %d, step %d: Enter(weight %d of %d, %d held, %d taken) = %v; want %v", seed, step, s.Weight(), weight, held, taken, got, want)
				}
			}
			if p.Taken() != taken {
				t.Fatalf("seed %d, step %d: Taken() = %d; want %d", seed, step, p.Taken(), taken)
			}
		}
	}
}

// Who was refused has taken nothing, and nothing is lost: at rest, all places
// are free and nobody's weight counts.
func TestPlacesConcurrently(t *testing.T) {
	const limit = 20
	p := shared()
	var all sync.WaitGroup
	for i := range 4 {
		s := NewSeat(1 + i)
		all.Go(func() {
			for n := range 2000 {
				p.Weigh(s, 1+n%7)
			}
		})
		for range 4 {
			all.Go(func() {
				for range 2000 {
					var held int
					for range 8 {
						if p.Enter(s, limit) == Admitted {
							held++
						}
					}
					if n := p.Taken(); n > limit {
						t.Errorf("%d places taken; want at most %d", n, limit)
					}
					for range held {
						p.Leave(s)
					}
				}
			})
		}
	}
	all.Wait()
	if p.Taken() != 0 || p.active.Load() != 0 {
		t.Errorf("at rest %d places are taken and the weight is %d; want 0 and 0", p.Taken(), p.active.Load())
	}
	if n, _ := fill(t, p, NewSeat(1), limit); n != 15 {
		t.Errorf("at rest one tenant gets %d places; want 15", n)
	}
}

func BenchmarkPlaces(b *testing.B) {
	for name, s := range map[string]*Seat{"no seat": nil, "seat": NewSeat(1)} {
		b.Run(name, func(b *testing.B) {
			p := shared()
			b.ReportAllocs()
			for b.Loop() {
				if p.Enter(s, 1<<20) == Admitted {
					p.Leave(s)
				}
			}
		})
	}
}
