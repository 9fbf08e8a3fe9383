package gateway

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// lobby is the private listener. It holds at most max connections and keeps
// nobody waiting for a place: for one more it closes another, so that whoever
// may connect, and keeps connections open or is slow on them, holds up neither
// the probes by which the process is judged nor those who administer it.
//
// What is closed is a connection of the address that has the most, the one on
// which nothing has begun or ended for longest. A request under way on it is cut
// off. Who has few loses none to who has many, and a request that has just come
// is the last to go.
type lobby struct {
	net.Listener
	max int

	left   chan struct{} // holds one where somebody may have left
	closed chan struct{}
	close  sync.Once
	mu     sync.Mutex
	events uint64 // counts what happens on connections: the smaller, the earlier
	open   map[*visitor]struct{}
}

// visitor is a connection of the private listener, inside of TLS.
type visitor struct {
	net.Conn
	lobby *lobby
	from  netip.Addr
	gone  sync.Once

	// Guarded by the lobby.
	since uint64 // when something has last begun or ended on it
	sent  bool   // it was closed for another
}

// newLobby returns l with at most max connections.
func newLobby(l net.Listener, max int) *lobby {
	return &lobby{Listener: l, max: max, left: make(chan struct{}, 1), closed: make(chan struct{}), open: make(map[*visitor]struct{})}
}

// leaving is how long one that was sent away is waited for before another is:
// it has its place until the server is done with it, so that whoever is sent away
// over and over has no more work under way than there are places.
const leaving = 50 * time.Millisecond

// Accept returns the next connection, once there is a place for it.
func (l *lobby) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visitor{Conn: c, lobby: l, from: originOf(c)}
	select {
	case <-l.left: // before there was anybody to wait for it
	default:
	}
	for {
		other, ok := l.enter(v)
		if ok {
			return v, nil
		}
		if other != nil {
			_ = other.Conn.Close() // whatever the server does with it fails, and it lets go
		}
		wait := time.NewTimer(leaving)
		select {
		case <-l.left:
		case <-wait.C:
		case <-l.closed:
			wait.Stop()
			_ = c.Close()
			return nil, net.ErrClosed
		}
		wait.Stop()
	}
}

// Close closes the listener. Connections live on.
func (l *lobby) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// enter gives v a place, or returns who is to be sent away for it: nobody where
// all have been.
func (l *lobby) enter(v *visitor) (other *visitor, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) < l.max {
		l.events++
		v.since = l.events
		l.open[v] = struct{}{}
		return nil, true
	}
	crowd := map[netip.Addr]int{v.from: 1}
	for o := range l.open {
		if !o.sent {
			crowd[o.from]++
		}
	}
	for o := range l.open {
		if o.sent {
			continue
		}
		if other == nil || crowd[o.from] > crowd[other.from] || crowd[o.from] == crowd[other.from] && o.since < other.since {
			other = o
		}
	}
	if other != nil {
		other.sent = true
	}
	return other, false
}

// follow is the server's ConnState: it is told when requests begin and end.
func (l *lobby) follow(c net.Conn, state http.ConnState) {
	if state != http.StateActive && state != http.StateIdle {
		return
	}
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if v, ok := c.(*visitor); ok {
		l.mu.Lock()
		l.events++
		v.since = l.events
		l.mu.Unlock()
	}
}

// Close is called by the server when it is done with the connection.
func (v *visitor) Close() error {
	err := v.Conn.Close()
	v.gone.Do(func() {
		v.lobby.mu.Lock()
		delete(v.lobby.open, v)
		v.lobby.mu.Unlock()
		select {
		case v.lobby.left <- struct{}{}:
		default:
		}
	})
	return err
}
