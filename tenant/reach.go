package tenant

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/egress"
)

// reach is what may be dialled for one issuer. An issuer says where its keys
// are, and must not have the gateway ask what only the gateway can reach.
type reach struct {
	host string // of the issuer's own URL
	// own is for that host, and others for all others.
	own, others egress.Policy
}

func newReach(issuer string, allow []netip.Prefix) *reach {
	r := &reach{others: egress.Policy{Allow: allow}}
	if u, err := url.Parse(issuer); err == nil {
		r.host = u.Hostname()
	}
	r.others.AllowLoopback = isLoopbackHost(r.host)
	r.own = r.others
	r.own.AllowPrivate = true
	return r
}

// of returns what may be dialled where a URL has that host.
func (r *reach) of(host string) egress.Policy {
	if strings.EqualFold(host, r.host) {
		return r.own
	}
	return r.others
}

// dial is an http.Transport's DialContext. The policy sees the addresses that
// the host has at that moment.
func (r *reach) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: fetchTimeout, Control: r.of(host).Control}
	return dialer.DialContext(ctx, network, address)
}

// isLoopbackHost reports whether a URL's host is itself loopback, as everybody
// who reads it can see.
func isLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
