package gateway

import (
	"net"
	"net/netip"
	"sync/atomic"
)

// origin is an address that connections come from: of IPv4 one, of IPv6 all 64
// bits that one host or site has to itself.
type origin struct {
	address     netip.Addr
	connections int          // guarded by the entrance
	held        atomic.Int64 // of the room for bodies
}

// originOf returns where a connection comes from, IPv4 in its own form.
func originOf(c net.Conn) netip.Addr {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	from := a.AddrPort().Addr().Unmap().WithZone("")
	if from.Is6() {
		from = netip.PrefixFrom(from, 64).Masked().Addr()
	}
	return from
}

// bodies bounds the bytes of request bodies that are being received or answered.
// They are held before a credential is looked at, so it divides them by address;
// a second one divides what is being answered by tenant, because behind a proxy
// all have one address.
type bodies struct {
	used atomic.Int64
	max  int64 // of all together
	each int64 // of one: what is longer is refused by the server, at this length
}

// freeBody is how much of a body is not counted: what every connection may hold.
const freeBody = 16 << 10

// take reserves n more bytes for a body that holds some already, or reports
// that there is no room. Whoever sends it has share bytes in all: beside another
// body of its own it may use no more than what it leaves free, so that however
// much one sends, there is room for the next.
//
// Nothing is reserved, not even for a moment, for what is then refused: nobody
// is refused because of that. Where the last bytes are asked for at the same
// time, one of those who ask may be refused for another that gets them.
func (b *bodies) take(share *atomic.Int64, held, n int64) bool {
	for {
		own, used := share.Load(), b.used.Load()
		if !b.fits(own, used, held, n) {
			return false
		}
		if !share.CompareAndSwap(own, own+n) {
			continue
		}
		for !b.used.CompareAndSwap(used, used+n) {
			if used = b.used.Load(); !b.fits(own, used, held, n) {
				share.Add(-n)
				return false
			}
		}
		return true
	}
}

// fits reports whether there is room for n more bytes of a body.
func (b *bodies) fits(own, used, held, n int64) bool {
	free := b.max - used - n
	return free >= 0 && (own+n <= free || own == held)
}

// give returns what take reserved.
func (b *bodies) give(share *atomic.Int64, n int64) {
	b.used.Add(-n)
	share.Add(-n)
}
