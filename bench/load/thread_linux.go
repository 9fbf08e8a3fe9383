package load

import (
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// precise makes the calling thread's sleeps end when they should. What it is not
// let have shows as Lag.
func precise() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // 50 µs otherwise
	// Before the programs under load, which would else make it late.
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -15)
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

// SetDeadline does nothing: the socket has its own.
func (s socket) SetDeadline(time.Time) error { return nil }
