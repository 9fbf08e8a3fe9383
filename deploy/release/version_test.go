package main

import "testing"

// A package can be installed from any commit, and gives way to every release.
func TestVersionOf(t *testing.T) {
	for described, want := range map[string]string{
		"v1.2.3":            "v1.2.3",
		"v1.2.3-4-gabc1234": "v1.2.3-4-gabc1234",
		"abc1234":           "v0.0.0-gabc1234",
		"9590e04":           "v0.0.0-g9590e04",
		"0123456-dirty":     "v0.0.0-g0123456-dirty",
		"v0.0.0-gabc1234":   "v0.0.0-gabc1234",
		"v1.2.3-rc.1-dirty": "v1.2.3-rc.1-dirty",
	} {
		if got := versionOf(described); got != want {
			t.Errorf("versionOf(%q) = %q; want %q", described, got, want)
		}
	}
}
