package gateway

import "testing"

// Who has few connections loses none to an address that has many, of which the
// oldest goes: here all of 127.0.0.0/8 is the machine's.
func TestTheCrowdGivesThePlace(t *testing.T) {
	g := greet(t, 5)
	scraper := g.probed(visit(t, g.Addr(), "127.0.0.2"))
	admin := g.occupied(visit(t, g.Addr(), "127.0.0.3"))
	var crowd []*guest
	for range 20 {
		crowd = append(crowd, g.probed(visit(t, g.Addr(), "127.0.0.1")))
	}
	for n, v := range crowd {
		if n >= 17 { // three places are not the others'
			g.probed(v)
		} else if got := v.hears(); got != "closed" {
			t.Errorf("connection %d of the crowd: %s; want closed", n, got)
		}
	}
	g.probed(scraper)
	g.leave <- struct{}{}
	if got := admin.hears(); got != "200" {
		t.Errorf("the request under way of another address = %s; want 200", got)
	}
}
