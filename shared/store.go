package shared

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Settings say which server there is and how long it may take.
type Settings struct {
	Address            string      // host:port
	Database           int         // number of the database
	TLS                *tls.Config // nil is plain TCP
	Username, Password string      // empty where the server wants none
	Timeout            time.Duration
	Prefix             string // of every key
	// OnChange, if it is set, is told when the server is given up (with why, and
	// with the first word of an error reply) and when it works again (OK). It is
	// called on a goroutine of the Store's, never by whoever asks.
	OnChange func(c Class, reply string)
}

const (
	// patience is how many calls in a row may fail before the server is given
	// up. A connection that broke is no call that failed: it is given up at once.
	patience = 3
	// pause is how long a server that does not work is left alone.
	pause = time.Second
	// probeTimeout bounds one attempt to work with the server again, with
	// everything that a new connection takes.
	probeTimeout = 2 * time.Second
	// maxCalls is how many calls may wait for the server. The client would make
	// a caller wait without a deadline if there were 2^ringScale of them.
	ringScale = 12
	maxCalls  = 1<<ringScale - 256
	// forgotten is after how many times what a connection may be silent there is
	// either a reply to a call that timed out, or no connection any more.
	forgotten = 4
)

// Store is the server, as a replica sees it. It is safe for concurrent use. The
// client's goroutines belong to it, and one of its own while the server does not work.
type Store struct {
	settings Settings
	scripts  scripts
	conn     atomic.Pointer[connection] // nil while the server is not asked
	// Failures count the operations that got nothing. The caller adds what it
	// finds malformed in an answer, and else reads only.
	Failures [OperationCount][ClassCount]atomic.Uint64
	// cause is the Class for which the server is not asked, or OK.
	cause   atomic.Uint32
	orphans orphans

	mu    sync.Mutex
	ended bool
	end   chan struct{} // closed by Close
}

// connection is one connection to the server, which is not made again by itself.
type connection struct {
	client rueidis.Client
	// calls are those under way, and for a while those that timed out: a reply to
	// them may still come, and until then the client keeps their place.
	calls    atomic.Int32
	failures atomic.Int32 // in a row
}

// Open returns a store. It tries to reach the server, for some seconds at most,
// and goes on trying for as long as that fails.
func Open(s Settings) *Store {
	st := &Store{settings: s, scripts: newScripts(), end: make(chan struct{})}
	c, class, reply := st.connect()
	if class != OK {
		st.cause.Store(uint32(class))
		go st.reconnect(nil, class, reply)
		return st
	}
	st.conn.Store(c)
	return st
}

// Close gives the server up for good. Calls get nothing from then on. An attempt
// to reach the server that is just being made ends by itself, within seconds.
func (s *Store) Close() {
	s.mu.Lock()
	if !s.ended {
		s.ended = true
		close(s.end)
	}
	s.mu.Unlock()
	if c := s.conn.Swap(nil); c != nil {
		c.client.Close()
	}
}

// Outage returns why the server is not asked, or OK.
func (s *Store) Outage() Class { return Class(s.cause.Load()) }

var errRedial = errors.New("shared: a connection is made by the store, not by a call")

// connect makes a connection and tries it, with everything that is needed later.
func (s *Store) connect() (*connection, Class, string) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	var dialled atomic.Bool
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.settings.Address}, SelectDB: s.settings.Database,
		TLSConfig: s.settings.TLS, Username: s.settings.Username, Password: s.settings.Password,
		ClientName: "ahp-gateway", ClientSetInfo: rueidis.DisableClientSetInfo,
		ForceSingleClient: true, PipelineMultiplex: -1, AlwaysPipelining: true,
		DisableRetry: true, DisableCache: true,
		RingScaleEachConn: ringScale, ReadBufferEachConn: 64 << 10, WriteBufferEachConn: 64 << 10,
		// How soon it is noticed that nobody is there any more.
		Dialer: net.Dialer{Timeout: probeTimeout, KeepAlive: pause}, ConnWriteTimeout: max(pause, s.settings.Timeout),
		// A new connection would be made by whichever call needs it, while the
		// others wait for that one, however little time they have.
		DialCtxFn: func(ctx context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
			if dialled.Swap(true) {
				return nil, errRedial
			}
			if secure != nil {
				return (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, "tcp", address)
			}
			return d.DialContext(ctx, "tcp", address)
		},
	})
	if err == nil {
		key := s.settings.Prefix + ":probe:" + rand.Text()
		err = s.scripts.begin.Exec(ctx, client, []string{key}, []string{"", "", "1000"}).Error()
	}
	if err != nil {
		if client != nil {
			client.Close()
		}
		class, reply := classify(err)
		return nil, class, reply
	}
	return &connection{client: client}, OK, ""
}

// call is callWithin for whoever ends no call before its time.
func (s *Store) call(op Operation, script *rueidis.Lua, deadline time.Time, keys, args []string) (r rueidis.RedisResult, class Class) {
	return s.callWithin(context.Background(), op, script, deadline, keys, args)
}

// callWithin runs a script by deadline, or by the store's own timeout if that is
// sooner, or until ctx ends. On failure the result says nothing, and the failure is counted.
func (s *Store) callWithin(ctx context.Context, op Operation, script *rueidis.Lua, deadline time.Time, keys, args []string) (r rueidis.RedisResult, class Class) {
	defer func() {
		if class != OK {
			s.Failures[op][class].Add(1)
		}
	}()
	c := s.conn.Load()
	if c == nil {
		return r, Skipped
	}
	now := time.Now()
	if !now.Before(deadline) || ctx.Err() != nil {
		return r, Timeout
	}
	own := now.Add(s.settings.Timeout)
	hurried := deadline.Before(own) // if it fails, that says little about the server
	if !hurried {
		deadline = own
	}
	if c.calls.Add(1) > maxCalls {
		c.calls.Add(-1)
		if c.failures.Add(1) >= patience {
			s.giveUp(c, Busy, "")
		}
		return r, Busy
	}
	within, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	r = script.Exec(within, c.client, keys, args)
	class, reply := classify(r.Error())
	// If the caller has ended it, that says as little.
	hurried = hurried || ctx.Err() != nil
	if class == Timeout {
		time.AfterFunc(forgotten*max(pause, s.settings.Timeout), func() { c.calls.Add(-1) })
	} else {
		c.calls.Add(-1)
	}
	switch {
	case class == OK:
		c.failures.Store(0)
	case class == Timeout && hurried:
	case class == Unreachable, c.failures.Add(1) >= patience:
		s.giveUp(c, class, reply)
	}
	return r, class
}

// giveUp stops asking the server over c, and sees to a new connection.
func (s *Store) giveUp(c *connection, class Class, reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !s.conn.CompareAndSwap(c, nil) {
		return
	}
	s.cause.Store(uint32(class))
	go s.reconnect(c, class, reply)
}

// reconnect closes a connection that was given up and tries until there is
// another, or the store is closed.
func (s *Store) reconnect(old *connection, class Class, reply string) {
	s.tell(class, reply)
	if old != nil {
		old.client.Close()
	}
	for {
		timer := time.NewTimer(pause)
		select {
		case <-s.end:
			timer.Stop()
			return
		case <-timer.C:
		}
		c, class, _ := s.connect()
		if class != OK {
			s.cause.Store(uint32(class))
			continue
		}
		s.mu.Lock()
		ended := s.ended
		if !ended {
			s.cause.Store(uint32(OK))
			s.conn.Store(c)
		}
		s.mu.Unlock()
		if ended {
			c.client.Close()
			return
		}
		s.giveBack()
		s.tell(OK, "")
		return
	}
}

func (s *Store) tell(c Class, reply string) {
	if s.settings.OnChange != nil {
		s.settings.OnChange(c, reply)
	}
}
