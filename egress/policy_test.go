package egress

import (
	"errors"
	"net/netip"
	"testing"
)

func TestPolicy(t *testing.T) {
	const public, loopback, private, never = "public", "loopback", "private", "never"
	for address, kind := range map[string]string{
		"8.8.8.8":                      public,
		"1.1.1.1":                      public,
		"172.15.255.255":               public,
		"172.32.0.0":                   public,
		"100.63.255.255":               public,
		"100.128.0.0":                  public,
		"169.253.255.255":              public,
		"223.255.255.255":              public,
		"2606:4700:4700::1111":         public,
		"2a00:1450:4001:81b::200e":     public,
		"::ffff:8.8.8.8":               public,
		"64:ff9b::808:808":             public,
		"2002:808:808::1":              public,
		"127.0.0.1":                    loopback,
		"127.255.255.254":              loopback,
		"::1":                          loopback,
		"::ffff:127.0.0.1":             loopback,
		"10.0.0.1":                     private,
		"10.255.255.255":               private,
		"172.16.0.1":                   private,
		"172.31.255.255":               private,
		"192.168.1.1":                  private,
		"100.64.0.1":                   private,
		"100.127.255.255":              private,
		"fc00::1":                      private,
		"fdff:ffff::1":                 private,
		"::ffff:10.0.0.1":              private,
		"::ffff:192.168.0.1":           private,
		"169.254.169.254":              never,
		"169.254.0.1":                  never,
		"::ffff:169.254.169.254":       never,
		"::ffff:a9fe:a9fe":             never,
		"fe80::1":                      never,
		"fe80::1%eth0":                 never,
		"febf::1":                      never,
		"fec0::1":                      never,
		"100.100.100.200":              never,
		"168.63.129.16":                never,
		"fd00:ec2::254":                never,
		"fd20:ce::254":                 never,
		"fd00:42::42":                  never,
		"fd00:a9fe:a9fe::1":            never,
		"192.0.0.192":                  never,
		"0.0.0.0":                      never,
		"0.1.2.3":                      never,
		"::":                           never,
		"::ffff:0.0.0.0":               never,
		"::127.0.0.1":                  never,
		"::10.0.0.1":                   never,
		"::ffff:0:127.0.0.1":           never,
		"224.0.0.1":                    never,
		"239.255.255.255":              never,
		"ff02::1":                      never,
		"240.0.0.1":                    never,
		"255.255.255.255":              never,
		"192.0.2.1":                    never,
		"198.51.100.7":                 never,
		"203.0.113.9":                  never,
		"2001:db8::1":                  never,
		"3fff::1":                      never,
		"198.18.0.1":                   never,
		"198.19.255.255":               never,
		"2001:2::1":                    never,
		"192.88.99.1":                  never,
		"100::1":                       never,
		"5f00::1":                      never,
		"4000::1":                      never,
		"64:ff9b::7f00:1":              never,
		"64:ff9b::a9fe:a9fe":           never,
		"64:ff9b::a00:1":               never,
		"64:ff9b:1::808:808":           never,
		"2002:7f00:1::1":               never,
		"2002:a9fe:a9fe::":             never,
		"2002:c0a8:101::1":             never,
		"2001:0:7f00:1::":              never,
		"2001:0:808:808::80ff:fffe":    never, // Teredo client 127.0.0.1
		"2001:0:808:808::5601:5601":    never, // Teredo client 169.254.169.254
		"2001:0:a00:1:0:0:f7f7:f7f7":   never, // Teredo server 10.0.0.1
		"2001:0:808:808:0:0:f7f7:f7f7": public,
	} {
		for _, p := range []Policy{{}, {AllowLoopback: true}, {AllowPrivate: true}, {AllowLoopback: true, AllowPrivate: true}} {
			want := kind == public || kind == loopback && p.AllowLoopback || kind == private && p.AllowPrivate
			err := p.Check(netip.MustParseAddr(address))
			if (err == nil) != want {
				t.Errorf("%+v.Check(%s) = %v; want allowed %v", p, address, err, want)
			}
			if err != nil && !errors.Is(err, ErrBlocked) {
				t.Errorf("%+v.Check(%s) = %v; want one that wraps ErrBlocked", p, address, err)
			}
		}
	}
}

func TestControlRefusesWhatItCannotRead(t *testing.T) {
	all := Policy{AllowLoopback: true, AllowPrivate: true}
	for address, want := range map[string]bool{
		"8.8.8.8:443":              true,
		"[2606:4700::1]:443":       true,
		"[fe80::1%eth0]:443":       false,
		"127.0.0.1:80":             true,
		"localhost:80":             false,
		"":                         false,
		"/var/run/something.sock":  false,
		"[::ffff:169.254.1.1]:443": false,
	} {
		if err := all.Control("tcp", address, nil); (err == nil) != want {
			t.Errorf("Control(%q) = %v; want allowed %v", address, err, want)
		}
	}
}

// A range allows what lies in it and nothing else, and never what must not be
// dialled at all.
func TestAllowedRanges(t *testing.T) {
	var ranges []netip.Prefix
	for _, r := range []string{"10.20.0.0/16", "fd00:1::/64", "127.0.0.5/32", "198.18.0.0/24", "240.0.0.0/8", "192.0.2.0/24", "fec0::/16"} {
		ranges = append(ranges, netip.MustParsePrefix(r))
	}
	some := Policy{Allow: ranges}
	all := Policy{AllowLoopback: true, AllowPrivate: true, Allow: everything}
	for address, want := range map[string]struct{ some, all bool }{
		"8.8.8.8":                  {true, true},
		"10.20.0.1":                {true, true},
		"10.20.255.255":            {true, true},
		"::ffff:10.20.0.1":         {true, true},
		"fd00:1::1":                {true, true},
		"127.0.0.5":                {true, true},
		"198.18.0.9":               {true, true},
		"240.0.0.1":                {true, true},
		"192.0.2.1":                {true, true},
		"fec0::1":                  {true, true},
		"10.19.255.255":            {false, true},
		"10.21.0.0":                {false, true},
		"192.168.0.1":              {false, true},
		"fd00:1:0:1::1":            {false, true},
		"127.0.0.1":                {false, true},
		"::1":                      {false, true},
		"64:ff9b::a14:1":           {false, false}, // NAT64 of 10.20.0.1
		"2002:a14:1::":             {false, false}, // 6to4 of 10.20.0.1
		"::10.20.0.1":              {false, false},
		"::169.254.169.254":        {false, false},
		"::ffff:0:10.20.0.1":       {false, false},
		"169.254.169.254":          {false, false},
		"::ffff:169.254.169.254":   {false, false},
		"169.254.0.1":              {false, false},
		"fe80::1":                  {false, false},
		"fe80::1%eth0":             {false, false},
		"100.100.100.200":          {false, false},
		"168.63.129.16":            {false, false},
		"fd00:ec2::254":            {false, false},
		"fd00:ec2::23":             {false, false},
		"fd00:c1::a9fe:a9fe":       {false, false},
		"192.0.0.192":              {false, false},
		"192.0.0.8":                {false, true},
		"fd20:ce::254":             {false, false},
		"fd00:42::42":              {false, false},
		"fd00:a9fe:a9fe::1":        {false, false},
		"0.0.0.0":                  {false, false},
		"0.1.2.3":                  {false, false},
		"::":                       {false, false},
		"224.0.0.1":                {false, false},
		"ff02::1":                  {false, false},
		"255.255.255.255":          {false, false},
		"64:ff9b::a9fe:a9fe":       {false, false},
		"64:ff9b:1::808:808":       {false, false},
		"2001:0:808:808::5601:501": {false, false}, // Teredo of 169.254.250.254
	} {
		a := netip.MustParseAddr(address)
		if err := some.Check(a); (err == nil) != want.some {
			t.Errorf("Check(%s) with ranges = %v; want allowed %t", address, err, want.some)
		}
		if err := all.Check(a); (err == nil) != want.all {
			t.Errorf("Check(%s) with every range = %v; want allowed %t", address, err, want.all)
		}
		if got := Never(a); got == want.all {
			t.Errorf("Never(%s) = %t; want %t", address, got, !want.all)
		}
	}
	for r, want := range map[string]bool{
		"169.254.0.0/16": true, "169.254.169.0/24": true, "224.0.0.0/8": true, "ff02::/16": true, "fe80::/64": true, "0.0.0.0/8": true,
		"100.100.100.200/32": true, "64:ff9b:1::/48": true,
		"10.0.0.0/8": false, "0.0.0.0/0": false, "100.64.0.0/10": false, "fd00::/8": false, "8.8.8.0/24": false, "240.0.0.0/4": false,
	} {
		if got := NeverAny(netip.MustParsePrefix(r)); got != want {
			t.Errorf("NeverAny(%s) = %t; want %t", r, got, want)
		}
	}
}
