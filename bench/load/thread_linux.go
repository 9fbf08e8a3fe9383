package load

import (
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// blocks is true where blocking makes a socket that blocks.
const blocks = true

// precise makes the calling thread's sleeps end when they should.
func precise() {
	// A thread that is not let have it sleeps 50 µs too long, which Lag shows.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

// pause blocks the calling thread.
func pause(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR {
	}
}

// blocking returns the connection on a blocking socket.
func blocking(c net.Conn) (net.Conn, error) {
	f, err := c.(*net.TCPConn).File()
	c.Close()
	if err != nil {
		return nil, err
	}
	limit := unix.NsecToTimeval(int64(timeout))
	for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(int(f.Fd()), unix.SOL_SOCKET, option, &limit); err != nil {
			f.Close()
			return nil, err
		}
	}
	return socket{c, f}, nil
}

// socket is a connection whose reads and writes block their thread.
type socket struct {
	net.Conn
	file *os.File
}

func (s socket) Read(p []byte) (int, error)  { return s.file.Read(p) }
func (s socket) Write(p []byte) (int, error) { return s.file.Write(p) }
func (s socket) Close() error                { return s.file.Close() }
