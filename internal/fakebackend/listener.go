package fakebackend

import (
	"net"
	"sync"
)

// trackedListener knows its open connections, so that a server can close them.
type trackedListener struct {
	net.Listener

	mu       sync.Mutex
	open     map[*trackedConn]struct{}
	accepted int
}

func newTrackedListener(l net.Listener) *trackedListener {
	return &trackedListener{Listener: l, open: make(map[*trackedConn]struct{})}
}

// Accept implements net.Listener.
func (l *trackedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.track(c), nil
}

func (l *trackedListener) track(c net.Conn) *trackedConn {
	t := &trackedConn{Conn: c, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[t] = struct{}{}
	l.accepted++
	return t
}

func (l *trackedListener) counts() (accepted, open int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted, len(l.open)
}

func (l *trackedListener) closeConnections() {
	l.mu.Lock()
	open := make([]*trackedConn, 0, len(l.open))
	for c := range l.open {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

type trackedConn struct {
	net.Conn
	listener *trackedListener
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// reset closes the connection with a TCP reset instead of an orderly end.
func (c *trackedConn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}
