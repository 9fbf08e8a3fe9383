package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

const (
	// courierWorkers is how many messages to one backend are under way at once.
	// The order of observations is not specified.
	courierWorkers = 4
	// observeTimeout bounds the delivery of one observation, which has no
	// deadline of its own in a registration.
	observeTimeout = 5 * time.Second
)

// room is what all couriers together may hold.
type room struct {
	used    atomic.Int64
	max     int64
	tenants atomic.Int64 // how many share it
	closing atomic.Bool  // the gateway is shutting down: no backend may hold it up
}

// share is what of a room one tenant uses.
type share struct{ used atomic.Int64 }

// take reserves n bytes for a tenant, or reports that there is no room for
// them. Of several tenants none may use more than what it leaves free, so that
// however much one of them sends, there is room for the next.
func (r *room) take(s *share, n int) bool {
	own := s.used.Add(int64(n))
	for {
		used := r.used.Load()
		free := r.max - used - int64(n)
		if free < 0 || r.tenants.Load() > 1 && own > free {
			s.used.Add(int64(-n))
			return false
		}
		// Never more than there is, not even for a moment: nobody is refused
		// because of one who is refused as well.
		if r.used.CompareAndSwap(used, used+int64(n)) {
			return true
		}
	}
}

// give returns what take reserved.
func (r *room) give(s *share, n int) {
	r.used.Add(int64(-n))
	s.used.Add(int64(-n))
}

// drain waits until every parcel has been delivered or has failed.
func (r *room) drain(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for r.used.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// parcel is one message on its way to a backend off the request path. It owns
// its bytes. deliver reports whether the backend took the message.
type parcel struct {
	size    int
	deliver func() bool
}

// courier delivers what does not concern the decision: observations, and calls
// of shadow subscriptions. It holds a bounded queue for one backend and as
// many goroutines as there is work for, so a slow observer delays nobody but
// itself. When it or the room is full, the message is dropped and counted.
type courier struct {
	stats *peerStats
	room  *room
	share *share
	log   *slog.Logger

	mu      sync.Mutex
	parcels []parcel
	max     int
	workers int
}

func newCourier(stats *peerStats, r *room, s *share, max int, log *slog.Logger) *courier {
	return &courier{stats: stats, room: r, share: s, max: max, log: log}
}

// waiting returns the number of messages in the queue.
func (c *courier) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.parcels)
}

// send queues a parcel, or drops it and reports that. It never blocks.
func (c *courier) send(p parcel) (queued bool) {
	if !c.room.take(c.share, p.size) {
		c.stats.dropped.Add(1)
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parcels) >= c.max {
		c.room.give(c.share, p.size)
		c.stats.dropped.Add(1)
		return false
	}
	c.parcels = append(c.parcels, p)
	if c.workers < courierWorkers {
		c.workers++
		go c.work()
	}
	return true
}

// work delivers until the queue is empty. At shutdown it gives a backend up
// that has failed once.
func (c *courier) work() {
	given := false
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.parcels) > 0 {
		p := c.parcels[0]
		c.parcels[0] = parcel{}
		if c.parcels = c.parcels[1:]; len(c.parcels) == 0 {
			c.parcels = nil // let a burst's memory go
		}
		c.mu.Unlock()
		switch {
		case given && c.room.closing.Load():
			c.stats.dropped.Add(1)
		case c.attempt(p):
			c.stats.delivered.Add(1)
		default:
			c.stats.failed.Add(1)
			given = true
		}
		c.room.give(c.share, p.size)
		c.mu.Lock()
	}
	c.workers--
}

// attempt delivers one parcel. A fault of ours must not end the process.
func (c *courier) attempt(p parcel) (taken bool) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("delivery panicked", "panic", r)
		}
	}()
	return p.deliver()
}

// bulletin is one event on its way to its observers. What each of them may see
// of it is worked out off the request path, once for each distinct selection.
type bulletin struct {
	body []byte // a message about the event

	mu    sync.Mutex
	msg   ahp.Message
	read  bool
	notes map[int]*note // by selection
}

// note is what one selection shows, for as long as somebody waits for it: what
// is kept is no more than the room has counted, once for each that waits.
type note struct {
	body    []byte // nil until it is asked for
	waiting int
}

// expect says that h will ask for its note.
func (b *bulletin) expect(h *hop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.notes == nil {
		b.notes = make(map[int]*note, 1)
	}
	n := b.notes[h.selection]
	if n == nil {
		n = new(note)
		b.notes[h.selection] = n
	}
	n.waiting++
}

// forget says that h does not wait any more.
func (b *bulletin) forget(h *hop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.notes[h.selection]; n.waiting > 1 {
		n.waiting--
	} else {
		delete(b.notes, h.selection)
	}
}

// take returns the hooks/observe notification for h, which was expected, or nil
// if there is none.
func (b *bulletin) take(h *hop) []byte {
	defer b.forget(h)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.read {
		if err := ahp.Decode(b.body, &b.msg); err != nil {
			return nil // it was accepted before, so this cannot be
		}
		b.read = true
	}
	n := b.notes[h.selection]
	if n.body == nil {
		n.body = b.msg.AppendObserve(nil, h.view)
	}
	return n.body
}

// observe queues hooks/observe notifications of a message's event for hops of
// one document. All it costs here is one copy of the message.
func (g *Gateway) observe(body []byte, v ahp.Version, trace traceHeaders, hops ...*hop) {
	if len(hops) == 0 {
		return
	}
	b, trace := &bulletin{body: bytes.Clone(body)}, trace.detached()
	for _, h := range hops {
		b.expect(h)
		queued := h.peer.courier.send(parcel{size: len(body), deliver: func() bool {
			note := b.take(h)
			if note == nil {
				return false
			}
			call := ahp.Call{Body: note, Version: v, Deadline: time.Now().Add(observeTimeout),
				Traceparent: trace.parent, Tracestate: trace.state}
			f := h.peer.breaker.Observe(&call)
			if !f.OK() {
				h.peer.failure(f.Class)
			}
			return f.OK()
		}})
		if !queued {
			b.forget(h)
		}
	}
}
