package backend

import (
	"errors"
	"net/netip"
	"testing"
)

func TestDialPolicy(t *testing.T) {
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
		for _, p := range []DialPolicy{{}, {AllowLoopback: true}, {AllowPrivate: true}, {AllowLoopback: true, AllowPrivate: true}} {
			want := kind == public || kind == loopback && p.AllowLoopback || kind == private && p.AllowPrivate
			err := p.check(netip.MustParseAddr(address))
			if (err == nil) != want {
				t.Errorf("%+v.check(%s) = %v; want allowed %v", p, address, err, want)
			}
			if err != nil && !errors.Is(err, errBlocked) {
				t.Errorf("%+v.check(%s) = %v; want one that wraps errBlocked", p, address, err)
			}
		}
	}
}

func TestDialPolicyControlRefusesWhatItCannotRead(t *testing.T) {
	all := DialPolicy{AllowLoopback: true, AllowPrivate: true}
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
		if err := all.control("tcp", address, nil); (err == nil) != want {
			t.Errorf("control(%q) = %v; want allowed %v", address, err, want)
		}
	}
}
