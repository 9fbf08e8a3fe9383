package config

import (
	"errors"
	"net/netip"

	"github.com/ahp-gateway/ahp-gateway/egress"
)

// Egress returns which addresses may be dialled for the backend when the URL
// that leads there has that host. A host that is itself loopback, or localhost,
// says so to everybody who reads it.
func (b *BackendSettings) Egress(host string) egress.Policy {
	return egress.Policy{
		AllowLoopback: b.AllowPrivate || isLoopbackHost(host) || isMappedLoopback(host),
		AllowPrivate:  b.AllowPrivate,
		Allow:         b.AllowAddresses,
	}
}

func isMappedLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is4In6() && a.Unmap().IsLoopback()
}

const maxRanges = 64

// ranges reads a list of address ranges.
func (r *reader) ranges(s spot) []netip.Prefix {
	const example = "write a list of ranges such as [10.20.0.0/16, \"fd00:1::/64\"]"
	if !r.is(s, kindList, example) {
		return nil
	}
	if len(s.items) > maxRanges {
		r.mistake(s, "", "holds more than 64 ranges", "join them in fewer, wider ones")
		return nil
	}
	var ranges []netip.Prefix
	for i := range s.items {
		at := s.item(i)
		text, ok := r.text(at)
		if !ok {
			continue
		}
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			r.mistake(at, shown(text), "is not a range of addresses", "write an address and a length, such as 10.20.0.0/16, or /32 (/128 in IPv6) for one address")
		case p.Addr().Is4In6():
			r.mistake(at, shown(text), "is a range of IPv4 in the form of IPv6", "write it as one of IPv4, such as 10.20.0.0/16")
		case p != p.Masked():
			r.mistake(at, shown(text), "has address bits beyond its length", "write "+p.Masked().String()+", or the whole length for one address")
		case egress.NeverAny(p):
			r.mistake(at, shown(text), "is a range that is never dialled", "remove it: link-local, metadata, multicast, broadcast and unspecified addresses cannot be allowed")
		default:
			ranges = append(ranges, p)
		}
	}
	return ranges
}

// literal reports a host that is itself an address, and one that will not be
// dialled. Names are not resolved: an answer can change, and is looked at when
// it is dialled.
func (d *document) literal(s spot, host, authority string) {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return
	}
	if d.terms.alone {
		if egress.Never(addr) {
			d.warn(s, shown(authority), "is an address that is never dialled", "write the host of a policy backend")
		}
		return
	}
	own := d.terms.settings.of(d.id)
	policy := own.Egress(host)
	var blocked egress.BlockedError
	switch {
	case !errors.As(policy.Check(addr), &blocked):
	case egress.Never(addr):
		d.mistake(s, shown(authority), "is an address that is never dialled ("+string(blocked)+")", "write another host")
	default:
		d.mistake(s, shown(authority), "is an address that may not be dialled ("+string(blocked)+")", "write another host, or allow it in the gateway file with "+
			joinKey(d.terms.key("backends"), d.id)+".allowAddresses: ["+netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()).String()+"]")
	}
}
