//go:build unix

// Package redistest runs a real Redis or Valkey server for a test.
package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Server is a server process of a test's own, on loopback, without persistence.
type Server struct {
	// Address is host:port, also of what comes after Restart.
	Address string

	t       testing.TB
	program string
	args    []string
	process *exec.Cmd
	stopped bool
}

// Start runs a server until the test ends. more are further settings of it, as
// on its command line. Where there is no program to run the test is skipped,
// unless CI is set: there it fails.
func Start(t testing.TB, more ...string) *Server {
	t.Helper()
	s := &Server{t: t, args: more}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			s.program = path
			break
		}
	}
	if s.program == "" {
		const missing = "NOT TESTED: there is no redis-server and no valkey-server; install Debian's redis-server"
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	// A port that is free now may be taken before the server has it.
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.Address = l.Addr().String()
		l.Close()
		if s.run() {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatalf("%s does not start", s.program)
	return nil
}

// run starts the process and reports whether it accepts connections.
func (s *Server) run() bool {
	_, port, _ := net.SplitHostPort(s.Address)
	args := []string{"--port", port}
	for _, a := range s.args {
		if a == "--tls-port" { // in place of the plain one
			args = []string{"--port", "0", "--tls-port", port}
		}
	}
	args = append(args, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "notice", "--dir", s.t.TempDir())
	for _, a := range s.args {
		if a != "--tls-port" {
			args = append(args, a)
		}
	}
	s.process = exec.Command(s.program, args...)
	out, err := s.process.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.stopped = false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return true
		}
	}
	_ = s.process.Wait()
	s.stopped = true
	return false
}

// Kill ends the process at once, as a crash does.
func (s *Server) Kill() {
	if s.stopped {
		return
	}
	s.stopped = true
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// Restart starts the process again after Kill, on the same port and empty.
func (s *Server) Restart() {
	s.t.Helper()
	if !s.run() {
		s.t.Fatalf("%s does not start again at %s", s.program, s.Address)
	}
}

// Pause stops the process without closing anything, until Resume.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(which syscall.Signal) {
	if err := s.process.Process.Signal(which); err != nil {
		s.t.Errorf("signal to %s: %v", s.program, err)
	}
}

// Command runs an inline command, whose words hold no space, and returns the
// first line of the reply.
func (s *Server) Command(words ...string) string {
	s.t.Helper()
	conn, err := net.DialTimeout("tcp", s.Address, 5*time.Second)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "%s\r\n", strings.Join(words, " "))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimRight(line, "\r\n")
}

// Link is a way to a server that can be cut: a proxy on loopback.
type Link struct {
	Address string
	cut     atomic.Bool
}

// Connect returns a link to s that lasts until the test ends.
func (s *Server) Connect() *Link {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	link := &Link{Address: l.Addr().String()}
	s.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go link.carry(near, s.Address)
		}
	}()
	return link
}

// Cut makes the link lose everything that is sent over it, in both directions,
// without closing a connection: new ones are accepted and get nothing.
func (l *Link) Cut() { l.cut.Store(true) }

// Mend ends a Cut for new connections. What an earlier one has lost stays lost.
func (l *Link) Mend() { l.cut.Store(false) }

// carry passes bytes on in both directions until either end closes.
func (l *Link) carry(near net.Conn, address string) {
	defer near.Close()
	far, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer far.Close()
	lost := new(atomic.Bool)
	pass := func(to, from net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				to.Close()
				from.Close()
				return
			}
			if l.cut.Load() {
				lost.Store(true)
			}
			if lost.Load() {
				continue
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				from.Close()
				return
			}
		}
	}
	go pass(far, near)
	pass(near, far)
}
