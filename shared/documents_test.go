package shared

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// shelf is what a test knows of the documents of one replica.
type shelf struct {
	*Documents
	t     *testing.T
	state DocumentState
}

func newShelf(t *testing.T, address string) *shelf {
	return &shelf{open(t, address).Documents("tenants"), t, DocumentState{}}
}

// edit changes a document in the state that the replica knows.
func (s *shelf) edit(name, old, new string, want Edited) {
	s.t.Helper()
	if got, class := s.Edit(s.t.Context(), s.state, name, []byte(old), []byte(new)); got != want || class != OK {
		s.t.Errorf("Edit(%s, %.20q, %.20q) = %d, %v; want %d", name, old, new, got, class, want)
	}
}

// look takes the changes, and checks which they are.
func (s *shelf) look(whole bool, want ...string) {
	s.t.Helper()
	now, names, all, class := s.Changes(s.t.Context(), s.state)
	if class != OK || all != whole || !slices.Equal(names, want) {
		s.t.Errorf("Changes = %v, whole %t, %v; want %v, whole %t", names, all, class, want, whole)
	}
	s.state = now
}

func (s *shelf) all(want map[string]string) {
	s.t.Helper()
	got, class := s.All(s.t.Context())
	if class != OK || !maps.EqualFunc(got, want, func(a []byte, b string) bool { return string(a) == b }) {
		s.t.Errorf("All() = %d documents, %v; want %d", len(got), class, len(want))
	}
}

// What one replica changes the other finds, and only one of two changes of the
// same document is made.
func TestDocuments(t *testing.T) {
	server := redistest.Start(t)
	a, b := newShelf(t, server.Address), newShelf(t, server.Address)
	a.look(false)
	a.edit("acme", "", "one", EditDone)
	a.look(true)
	b.look(true)
	b.all(map[string]string{"acme": "one"})
	a.edit("acme", "one", "two", EditDone)
	b.edit("acme", "one", "three", EditStale)
	b.edit("beta", "", "three", EditStale)
	b.look(false, "acme")
	b.edit("acme", "one", "three", EditConflict)
	b.edit("acme", "", "three", EditConflict)
	b.edit("gone", "two", "three", EditConflict)
	b.edit("beta", "", "three", EditDone)
	b.edit("beta", "three", "four", EditStale) // its own change it has to see too
	b.look(false, "beta")
	b.look(false)
	a.look(false, "beta", "acme")
	a.edit("acme", "two", "", EditDone)
	a.look(false, "acme")
	b.look(false, "acme")
	if got, class := b.Get(t.Context(), "acme", "beta"); class != OK || len(got) != 1 || string(got["beta"]) != "three" {
		t.Errorf("Get = %q, %v; want beta alone", got, class)
	}

	// Somebody else's documents of another name are others.
	other := &shelf{a.store.Documents("others"), t, DocumentState{}}
	other.look(false)

	// Of a burst of changes that is longer than the log, nothing is lost.
	want := map[string]string{"beta": "three"}
	for i := range 300 {
		name := fmt.Sprintf("tenant-%d", i)
		want[name] = strings.Repeat("x", i)
		if i == 0 {
			want[name] = "x"
		}
		a.edit(name, "", want[name], EditDone)
		a.look(false, name)
	}
	b.look(true)
	b.all(want)
	if got := server.Command("LLEN", "test:tenants:log"); got != ":256" {
		t.Errorf("the log has %s entries; want 256", got)
	}
}

// One of many changes at once is made, of whichever document: two together could
// be what neither of them is alone, such as two tenants with one key.
func TestOneEditWins(t *testing.T) {
	server := redistest.Start(t)
	first := newShelf(t, server.Address)
	first.edit("acme", "", "old", EditDone)
	first.look(true)
	var won atomic.Int32
	var racing sync.WaitGroup
	for i := range 8 {
		d := open(t, server.Address).Documents("tenants")
		name, old := "acme", []byte("old")
		if i%2 == 1 {
			name, old = fmt.Sprint("new-", i), nil
		}
		racing.Go(func() {
			if got, _ := d.Edit(t.Context(), first.state, name, old, fmt.Append(nil, i)); got == EditDone {
				won.Add(1)
			}
		})
	}
	racing.Wait()
	if got := won.Load(); got != 1 {
		t.Errorf("%d of 8 changes were made; want 1", got)
	}
}

// A server that has lost its data is told from one where everything was removed,
// and takes nothing from whoever has not noticed.
func TestLostDocuments(t *testing.T) {
	server := redistest.Start(t)
	a, b := newShelf(t, server.Address), newShelf(t, server.Address)
	a.edit("acme", "", "one", EditDone)
	a.look(true)
	b.look(true)
	a.edit("acme", "one", "", EditDone)
	b.look(false, "acme")
	a.look(false, "acme")
	server.Command("FLUSHALL")
	a.edit("acme", "", "two", EditElsewhere)
	epoch := a.state.Epoch
	a.look(true)
	if a.state != (DocumentState{}) {
		t.Errorf("state after a loss = %v; want none", a.state)
	}
	a.edit("acme", "", "two", EditDone)
	a.look(true)
	b.look(true)
	if b.state.Epoch == epoch || b.state != a.state {
		t.Errorf("states = %v, %v; want one, of another epoch than %s", a.state, b.state, epoch)
	}
}

// What others have put into the server does no harm.
func TestForeignDocuments(t *testing.T) {
	server := redistest.Start(t)
	a := newShelf(t, server.Address)
	a.edit("acme", "", "one", EditDone)
	a.edit("large", "", strings.Repeat("x", MaxDocument+1), EditElsewhere)
	a.look(true)
	a.edit("large", "", strings.Repeat("x", MaxDocument+1), EditDone)
	server.Command("HSET", "test:tenants", strings.Repeat("n", 65), "x")
	a.all(map[string]string{"acme": "one", "large": ""})
	if got, class := a.Get(t.Context(), "large", "acme"); class != OK || got["large"] != nil || len(got) != 2 {
		t.Errorf("Get(large) = %d bytes, %v; want nil", len(got["large"]), class)
	}
	server.Command("DEL", "test:tenants")
	server.Command("SET", "test:tenants", "x")
	if _, class := a.All(t.Context()); class != Refused {
		t.Errorf("All of what is no hash = %v; want refused", class)
	}
	server.Command("DEL", "test:tenants:log")
	a.look(true)
	a.look(false)
	server.Command("LPUSH", "test:tenants:log", strings.Repeat("x", 200))
	a.look(true)
	if got := len(a.state.Last); got != 128 {
		t.Errorf("an entry of 200 bytes was read as %d; want 128", got)
	}
	a.look(false)
}

// Whoever gives up waiting gets nothing, at once, and the server is not given up
// for that.
func TestDocumentsGivenUp(t *testing.T) {
	server := redistest.Start(t)
	a := newShelf(t, server.Address)
	a.edit("acme", "", "one", EditDone)
	a.look(true)
	server.Pause()
	conn := a.store.conn.Load()
	for range 2 * patience {
		before := conn.calls.Load()
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan Class, 1)
		go func() {
			_, class := a.All(ctx)
			waiting <- class
		}()
		for conn.calls.Load() == before {
			runtime.Gosched() // until it has asked
		}
		cancel()
		if class := <-waiting; class != Timeout {
			t.Errorf("All that was given up = %v; want a timeout", class)
		}
		if _, _, _, class := a.Changes(ctx, a.state); class != Timeout {
			t.Errorf("Changes for one that has given up = %v; want a timeout", class)
		}
	}
	server.Resume()
	if got := a.store.Outage(); got != OK {
		t.Errorf("Outage() = %v; want ok", got)
	}
	a.all(map[string]string{"acme": "one"})
}
