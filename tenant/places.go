package tenant

import "sync/atomic"

// Places are those for requests in flight that all tenants have in common.
//
// While there are plenty, whoever comes gets one. The last quarter is for
// tenants that hold no more than their share: the limit times their weight by
// the weight of all that hold any, and of one more of weight 1, for whom room
// is left. So however much some ask for, another one that is under its share
// is refused only while that quarter is filled by those that were, and then it
// is the first to get what anybody gives back.
//
// The zero value has no place taken. Places are safe for concurrent use, and
// take the same few steps however many tenants there are.
type Places struct {
	taken   atomic.Int64
	active  atomic.Int64 // the weight of all seats that hold a place
	tenants atomic.Int64
}

// Seat is what one tenant holds of Places. It belongs to one of them.
type Seat struct {
	// state is the weight, shifted left by heldBits, and below it how many places
	// are held. It is one word so that whoever takes the first place or gives back
	// the last knows the weight that counts at that moment.
	state atomic.Uint64
}

const heldBits = 32

// NewSeat returns the seat of a tenant that holds no place. A weight below 1
// counts as 1.
func NewSeat(weight int) *Seat {
	s := new(Seat)
	s.state.Store(uint64(max(weight, 1)) << heldBits)
	return s
}

// Held returns the number of places that the tenant holds now.
func (s *Seat) Held() int { return int(heldOf(s.state.Load())) }

// Weight returns what the tenant weighs, at least 1.
func (s *Seat) Weight() int { return int(weightOf(s.state.Load())) }

func heldOf(state uint64) int64   { return int64(state & (1<<heldBits - 1)) }
func weightOf(state uint64) int64 { return int64(state >> heldBits) }

// Weigh gives s another weight from now on, also while it holds places. A weight
// below 1 counts as 1.
func (p *Places) Weigh(s *Seat, weight int) {
	for {
		old := s.state.Load()
		state := uint64(max(weight, 1))<<heldBits | uint64(heldOf(old))
		if state == old {
			return
		}
		if s.state.CompareAndSwap(old, state) {
			if heldOf(old) > 0 {
				p.active.Add(weightOf(state) - weightOf(old))
			}
			return
		}
	}
}

// Divide says how many tenants the places are for. Where there are fewer than
// two, one may have them all.
func (p *Places) Divide(tenants int) { p.tenants.Store(int64(tenants)) }

// Taken returns the number of places that are taken now.
func (p *Places) Taken() int { return int(p.taken.Load()) }

// Enter takes one of limit places for s, or says why there is none:
// DeniedPlaces where all are taken, DeniedShare where what is left is not for
// this tenant. A seat of nil may take them all. Every place is given back by
// one Leave; who is denied has taken nothing.
func (p *Places) Enter(s *Seat, limit int) Denied {
	most, why := int64(limit), DeniedPlaces
	if s != nil {
		state := s.state.Add(1)
		if heldOf(state) == 1 {
			p.active.Add(weightOf(state))
		}
		if p.tenants.Load() > 1 && heldOf(state) > p.share(weightOf(state), most) {
			most, why = most-max(most/4, 1), DeniedShare
		}
	}
	for {
		n := p.taken.Load()
		if n >= most {
			if n >= int64(limit) {
				why = DeniedPlaces
			}
			p.stand(s)
			return why
		}
		// Never more than there are, not even for a moment: nobody is refused
		// because of one who is refused as well.
		if p.taken.CompareAndSwap(n, n+1) {
			return Admitted
		}
	}
}

// share returns how many of limit places are for a seat of that weight which is
// active.
func (p *Places) share(weight, limit int64) int64 {
	return max(limit*weight/(p.active.Load()+1), 1)
}

// Leave gives back a place that Enter took for s.
func (p *Places) Leave(s *Seat) {
	p.taken.Add(-1)
	p.stand(s)
}

// stand takes one from what a seat holds. Whoever takes the first adds the
// weight before it can leave, and whoever leaves last takes it off: at rest the
// sum is that of the seats that hold any.
func (p *Places) stand(s *Seat) {
	if s == nil {
		return
	}
	if state := s.state.Add(^uint64(0)); heldOf(state) == 0 {
		p.active.Add(-weightOf(state))
	}
}
