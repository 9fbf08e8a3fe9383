package egress

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
)

// Policy says which addresses may be dialled besides public ones. It is applied
// to the address that a name resolved to, at each dial, so that a name that
// changes its address, or an odd spelling of one, cannot get round it.
//
// Link-local addresses, the metadata services of cloud providers, multicast,
// broadcast, unspecified and translated addresses are refused whatever the
// policy says; so is an IPv6 address that embeds a refused IPv4 address (mapped,
// NAT64, 6to4, Teredo). The zero value allows public addresses only.
type Policy struct {
	// AllowLoopback allows 127.0.0.0/8 and ::1.
	AllowLoopback bool
	// AllowPrivate allows RFC 1918, unique local (fc00::/7) and shared
	// (100.64.0.0/10) addresses.
	AllowPrivate bool
	// Allow allows the addresses in these ranges, whether they are loopback,
	// private, or reserved for documentation, benchmarking or later. Ranges of
	// IPv4 say nothing about IPv6 addresses that embed them.
	Allow []netip.Prefix
}

// ErrBlocked is wrapped by every refusal of a Policy.
var ErrBlocked = errors.New("address not allowed")

// BlockedError is a refusal; its text says of what kind the address is, and
// not what it is.
type BlockedError string

func (e BlockedError) Error() string { return string(e) + " address not allowed" }

// Unwrap makes every refusal an ErrBlocked.
func (e BlockedError) Unwrap() error { return ErrBlocked }

// The kinds of address that a policy can allow. All others are refused.
const (
	kindPublic   = ""
	kindLoopback = "loopback"
	kindPrivate  = "private"
	// Kinds that nobody's network has by right, and some have: allowed by range.
	kindSite          = "site-local"
	kindDocumentation = "documentation"
	kindBenchmarking  = "benchmarking"
	kindReserved      = "reserved"
)

// allowable reports whether a range may allow addresses of a kind.
func allowable(kind string) bool {
	switch kind {
	case kindLoopback, kindPrivate, kindSite, kindDocumentation, kindBenchmarking, kindReserved:
		return true
	}
	return false
}

// specialAddresses are the ranges that are not public, most specific first
// where they overlap.
var specialAddresses = []struct {
	prefix netip.Prefix
	kind   string
}{
	// Metadata services that live inside otherwise allowable ranges.
	{netip.MustParsePrefix("100.100.100.200/32"), "metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata"},
	{netip.MustParsePrefix("192.0.0.192/32"), "metadata"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "metadata"},
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), "metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "metadata"},
	{netip.MustParsePrefix("fd00:42::42/128"), "metadata"},
	{netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"), "metadata"},

	{netip.MustParsePrefix("127.0.0.0/8"), kindLoopback},
	{netip.MustParsePrefix("::1/128"), kindLoopback},
	{netip.MustParsePrefix("10.0.0.0/8"), kindPrivate},
	{netip.MustParsePrefix("172.16.0.0/12"), kindPrivate},
	{netip.MustParsePrefix("192.168.0.0/16"), kindPrivate},
	{netip.MustParsePrefix("100.64.0.0/10"), kindPrivate},
	{netip.MustParsePrefix("fc00::/7"), kindPrivate},

	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), kindSite},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("192.0.2.0/24"), kindDocumentation},
	{netip.MustParsePrefix("198.51.100.0/24"), kindDocumentation},
	{netip.MustParsePrefix("203.0.113.0/24"), kindDocumentation},
	{netip.MustParsePrefix("2001:db8::/32"), kindDocumentation},
	{netip.MustParsePrefix("3fff::/20"), kindDocumentation},
	{netip.MustParsePrefix("198.18.0.0/15"), kindBenchmarking},
	{netip.MustParsePrefix("2001:2::/48"), kindBenchmarking},
	{netip.MustParsePrefix("192.0.0.0/24"), kindReserved},
	{netip.MustParsePrefix("192.88.99.0/24"), kindReserved},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), kindReserved},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "translated"},
	{netip.MustParsePrefix("2001:10::/28"), kindReserved},
	{netip.MustParsePrefix("2001:20::/28"), kindReserved},
}

// IPv6 ranges whose addresses stand for an IPv4 address.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
	compatible = netip.MustParsePrefix("::/96")
	siit       = netip.MustParsePrefix("::ffff:0:0:0/96")
	globalIPv6 = netip.MustParsePrefix("2000::/3")
)

// Check returns a BlockedError when the policy does not allow addr.
func (p Policy) Check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	kind := addressKind(addr)
	switch {
	case kind == kindPublic,
		kind == kindLoopback && p.AllowLoopback,
		kind == kindPrivate && p.AllowPrivate,
		allowable(kind) && p.inRange(addr):
	default:
		return BlockedError(kind)
	}
	for _, inner := range embedded(addr) {
		// Nobody reaches a loopback or private backend through a translator,
		// so what is embedded must be public whatever the policy allows.
		if kind := addressKind(inner); kind != kindPublic {
			return BlockedError(kind)
		}
	}
	return nil
}

func (p Policy) inRange(addr netip.Addr) bool {
	return slices.ContainsFunc(p.Allow, func(r netip.Prefix) bool { return r.Contains(addr) })
}

// Never reports whether no policy allows addr.
func Never(addr netip.Addr) bool {
	all := Policy{AllowLoopback: true, AllowPrivate: true, Allow: everything}
	return all.Check(addr) != nil
}

// NeverAny reports whether no policy allows any address of r, as far as r lies
// within one of the ranges that are known here.
func NeverAny(r netip.Prefix) bool {
	for _, special := range specialAddresses {
		if special.prefix.Bits() <= r.Bits() && special.prefix.Contains(r.Addr()) {
			return !allowable(special.kind)
		}
	}
	return false
}

// everything is every range there is.
var everything = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// addressKind returns the kind of an address that is not IPv4-mapped.
func addressKind(addr netip.Addr) string {
	for _, special := range specialAddresses {
		if special.prefix.Contains(addr) {
			return special.kind
		}
	}
	// Of IPv6, only 2000::/3 is global unicast; NAT64 lies outside of it.
	if addr.Is6() && !globalIPv6.Contains(addr) && !nat64.Contains(addr) {
		return kindReserved
	}
	return kindPublic
}

// embedded returns the IPv4 addresses that an IPv6 address stands for.
func embedded(addr netip.Addr) []netip.Addr {
	if addr.Is4() {
		return nil
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr), siit.Contains(addr), compatible.Contains(addr) && addr != netip.IPv6Loopback():
		return []netip.Addr{netip.AddrFrom4([4]byte(b[12:16]))}
	case sixToFour.Contains(addr):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case teredo.Contains(addr):
		client := [4]byte{^b[12], ^b[13], ^b[14], ^b[15]}
		return []netip.Addr{netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4(client)}
	}
	return nil
}

// Control is a net.Dialer's hook: it sees each resolved address just before
// the connection attempt.
func (p Policy) Control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return BlockedError("unreadable")
	}
	return p.Check(ap.Addr())
}
