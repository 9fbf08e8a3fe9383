package ahp

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestIsReverseDNS(t *testing.T) {
	for name, want := range map[string]bool{
		"com.example":           true,
		"com.example.a-b_c9":    true,
		"C.D":                   true,
		"a.b.c.d.e.f":           true,
		"com.e-":                true,
		"":                      false,
		"com":                   false,
		".com":                  false,
		"com.":                  false,
		"com..example":          false,
		".":                     false,
		"com.9example":          false,
		"9com.example":          false,
		"com.-example":          false,
		"com._example":          false,
		"com.exa mple":          false,
		"com.example\n":         false,
		"com.exämple":           false,
		"com/example.a":         false,
		"com.example.*":         false,
		"com.example\x00.a":     false,
		"com.example.\uff41bcd": false,
	} {
		if got := IsReverseDNS([]byte(name)); got != want {
			t.Errorf("IsReverseDNS(%q) = %v; want %v", name, got, want)
		}
	}
}

var uris = map[string]bool{
	"urn:uuid:5b7de29e-a9e0-41a8-bf26-d94b05f0656d": true,
	"urn:x":                             true,
	"x:":                                true,
	"x:?q":                              true,
	"x:#f":                              true,
	"x:/":                               true,
	"x:a//b":                            true,
	"x:/a//b":                           true,
	"x:///":                             true,
	"x://":                              true,
	"X+1-2.3:y":                         true,
	"https://example.com":               true,
	"https://example.com:":              true,
	"https://example.com:99999999/":     true,
	"https://u:p@h:1/p;a=b,c?x/y?z#f?/": true,
	"https://@h":                        true,
	"http://a%20b/%7E":                  true,
	"http://[::1]":                      true,
	"http://[::1]:80/a":                 true,
	"http://[::ffff:192.0.2.1]/":        true,
	"http://[1:2:3:4:5:6:7::]/":         true,
	"http://[::2:3:4:5:6:7:8]/":         true,
	"http://[1:2:3:4:5:6:1.2.3.4]/":     true,
	"http://[v1.a:b]":                   true,
	"http://[VF.~]":                     true,
	"http://256.1.1.1/":                 true, // a registered name
	"mailto:a@b":                        true,
	"":                                  false,
	":":                                 false,
	":x":                                false,
	"x":                                 false,
	"/x:y":                              false,
	"//h/p":                             false,
	"1x:y":                              false,
	"+x:y":                              false,
	"x y:z":                             false,
	"x_y:z":                             false,
	"é:z":                               false,
	"x:é":                               false,
	"x: ":                               false,
	" x:y":                              false,
	"x:y\n":                             false,
	"x:\x00":                            false,
	"x:\x7f":                            false,
	"x:<a>":                             false,
	"x:\"":                              false,
	"x:a\\b":                            false,
	"x:{a}":                             false,
	"x:a|b":                             false,
	"x:a^b":                             false,
	"x:`":                               false,
	"x:[a]":                             false,
	"x:#a#b":                            false,
	"x:%":                               false,
	"x:%4":                              false,
	"x:%4g":                             false,
	"x:?%g0":                            false,
	"x:#%":                              false,
	"x://h:1a":                          false,
	"x://h:1:2":                         false,
	"x://a@b@c":                         false,
	"x://%4@h":                          false,
	"x://h%4":                           false,
	"x://h%4/1":                         false,
	"x://[":                             false,
	"x://[]":                            false,
	"x://[::1":                          false,
	"x://::1]":                          false,
	"x://[::1]a":                        false,
	"x://[::1]:a":                       false,
	"x://[::1]:80:80":                   false,
	"x://[1.2.3.4]":                     false,
	"x://[12]":                          false,
	"x://[:::]":                         false,
	"x://[1::2::3]":                     false,
	"x://[1:2:3:4:5:6:7]":               false,
	"x://[1:2:3:4:5:6:7:8:9]":           false,
	"x://[1:2:3:4:5:6:7:8::]":           false,
	"x://[12345::]":                     false,
	"x://[::1%25eth0]":                  false,
	"x://[::1%eth0]":                    false,
	"x://[::1.2.3.04]":                  false,
	"x://[::1.2.3.256]":                 false,
	"x://[v.a]":                         false,
	"x://[v1.]":                         false,
	"x://[vg.a]":                        false,
	"x://[v1.a@b]":                      false,
	"x://[v1a]":                         false,
	"x://a[::1]":                        false,
}

func TestIsURI(t *testing.T) {
	for s, want := range uris {
		if got := isURI([]byte(s)); got != want {
			t.Errorf("isURI(%q) = %v; want %v", s, got, want)
		}
	}
}

var dateTimes = map[string]bool{
	"2026-03-01T10:00:00Z":              true,
	"2026-03-01t10:00:00z":              true,
	"0000-01-01T00:00:00Z":              true,
	"9999-12-31T23:59:59Z":              true,
	"2026-03-01T10:00:00.1Z":            true,
	"2026-03-01T10:00:00.123456789012Z": true,
	"2026-03-01T10:00:00+23:59":         true,
	"2026-03-01T10:00:00-00:00":         true,
	"2024-02-29T00:00:00Z":              true,
	"2000-02-29T00:00:00Z":              true,
	"2016-12-31T23:59:60Z":              true,
	"2016-12-31T23:59:60.9Z":            true,
	"2017-01-01T01:29:60+01:30":         true,
	"2016-12-31T15:59:60-08:00":         true,
	"2017-01-01T00:59:60+01:00":         true,
	"2026-03-01T10:00:60Z":              false,
	"2016-12-31T23:59:60+01:00":         false,
	"2016-12-31T23:59:61Z":              false,
	"2023-02-29T00:00:00Z":              false,
	"1900-02-29T00:00:00Z":              false,
	"2026-02-30T00:00:00Z":              false,
	"2026-04-31T00:00:00Z":              false,
	"2026-06-31T00:00:00Z":              false,
	"2026-01-32T00:00:00Z":              false,
	"2026-00-01T00:00:00Z":              false,
	"2026-13-01T00:00:00Z":              false,
	"2026-01-00T00:00:00Z":              false,
	"2026-01-01T24:00:00Z":              false,
	"2026-01-01T00:60:00Z":              false,
	"2026-01-01T00:00:00":               false,
	"2026-01-01T00:00:00+24:00":         false,
	"2026-01-01T00:00:00+00:60":         false,
	"2026-01-01T00:00:00+0100":          false,
	"2026-01-01T00:00:00+01":            false,
	"2026-01-01T00:00:00+1:00":          false,
	"2026-01-01T00:00:00 01:00":         false,
	"2026-01-01T00:00:00.Z":             false,
	"2026-01-01T00:00:00,5Z":            false,
	"2026-01-01T00:00:00ZZ":             false,
	"2026-01-01T00:00:00Z ":             false,
	" 2026-01-01T00:00:00Z":             false,
	"2026-01-01 00:00:00Z":              false,
	"2026-01-01T00:00Z":                 false,
	"2026-1-01T00:00:00Z":               false,
	"26-01-01T00:00:00Z":                false,
	"+2026-01-01T00:00:00Z":             false,
	"2026-01-01T+1:00:00Z":              false,
	"2026-01-01T-1:00:00Z":              false,
	"2026/01/01T00:00:00Z":              false,
	"2026-01-01T00-00-00Z":              false,
	"２026-01-01T00:00:00Z":              false,
	"2026-01-01T00:00:00\u00a0Z":        false,
	"":                                  false,
	"Z":                                 false,
	"00000000000000000000":              false,
}

func TestIsDateTime(t *testing.T) {
	for s, want := range dateTimes {
		if got := isDateTime([]byte(s)); got != want {
			t.Errorf("isDateTime(%q) = %v; want %v", s, got, want)
		}
	}
}

// TestSyntaxMutated changes the examples at random and compares with the
// grammars written as expressions.
func TestSyntaxMutated(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	const alphabet = ":/?#[]@!%.+-_ vV0123456789aAfFgzZtT:\x00\x7fé"
	check := func(s string) {
		if got, want := isURI([]byte(s)), uriShape.MatchString(s); got != want {
			t.Fatalf("isURI(%q) = %v; want %v", s, got, want)
		}
		if got, want := isDateTime([]byte(s)), matchesDateTime(s); got != want {
			t.Fatalf("isDateTime(%q) = %v; want %v", s, got, want)
		}
	}
	for _, examples := range []map[string]bool{uris, dateTimes} {
		for _, s := range slices.Sorted(maps.Keys(examples)) {
			check(s)
			for range 200 {
				b := []byte(s)
				for range 1 + r.IntN(3) {
					i := r.IntN(len(b) + 1)
					c := alphabet[r.IntN(len(alphabet))]
					switch {
					case i == len(b) || r.IntN(3) == 0:
						b = append(b[:i:i], append([]byte{c}, b[i:]...)...)
					case r.IntN(3) == 0:
						b = append(b[:i:i], b[i+1:]...)
					default:
						b[i] = c
					}
				}
				check(string(b))
			}
		}
	}
}

func FuzzSyntax(f *testing.F) {
	for s := range uris {
		f.Add(s)
	}
	for s := range dateTimes {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := isURI([]byte(s)), uriShape.MatchString(s); got != want {
			t.Errorf("isURI(%q) = %v; want %v", s, got, want)
		}
		if got, want := isDateTime([]byte(s)), matchesDateTime(s); got != want {
			t.Errorf("isDateTime(%q) = %v; want %v", s, got, want)
		}
	})
}
