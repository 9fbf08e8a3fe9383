package shared

import (
	crand "crypto/rand"
	"crypto/sha256"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Question is one evaluation that replicas make once for all of them.
type Question struct {
	// Key, below the store's prefix, is the same for whoever asks the same
	// question, and for nobody else.
	Key string
	// Fingerprint is the same for the same message, in every replica.
	Fingerprint [sha256.Size]byte
	// Deadline is how long the caller has. Nothing waits beyond it.
	Deadline time.Time
	// Lease is how long an evaluation takes at most. After it another replica
	// may evaluate.
	Lease time.Duration
}

// Outcome is what Ask found.
type Outcome uint8

// The outcomes.
const (
	// Lead: nobody has asked yet. The caller evaluates and finishes the lease.
	Lead Outcome = iota
	// Hit: the answer was remembered.
	Hit
	// Joined: the answer is that of an evaluation that was waited for. It need
	// not be one that may be remembered.
	Joined
	// Conflict: the question is known with another fingerprint. The caller
	// evaluates on its own, and leaves nothing.
	Conflict
	// TimedOut: the deadline came while an evaluation was under way, or the server
	// was asked.
	TimedOut
	// Odd: what is there was not left by a replica. The caller evaluates on its
	// own, and leaves nothing.
	Odd
	// Unavailable: the server could not be asked. There is a lease all the same:
	// the server may have granted it, though the reply did not come.
	Unavailable
)

const (
	// MaxAnswer is how many bytes of an answer are kept. A larger one is given
	// to nobody: who waits for it evaluates.
	MaxAnswer = 1 << 20
	// The time between two looks at an evaluation that is waited for.
	firstLook = 2 * time.Millisecond
	lastLook  = 25 * time.Millisecond
)

// Lease is leave to evaluate a question. A nil one stands for none.
type Lease struct {
	store    *Store
	key      string
	token    string
	deadline time.Time
	finished atomic.Bool
	asked    bool      // the server may have granted it
	ends     time.Time // if it did
}

// Ask returns the answer to a question, for Hit and Joined, or leave to evaluate
// it, for Lead and Unavailable. While another replica evaluates it, Ask waits.
// It takes one round trip where it does not have to wait.
func (s *Store) Ask(q *Question) (answer []byte, outcome Outcome, lease *Lease) {
	lease = &Lease{store: s, key: s.settings.Prefix + ":" + q.Key, token: crand.Text(), deadline: q.Deadline, ends: time.Now().Add(q.Lease)}
	args := []string{string(q.Fingerprint[:]), lease.token, milliseconds(q.Lease)}
	keys := []string{lease.key}
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		r, class := s.call(Begin, s.scripts.begin, q.Deadline, keys, args)
		lease.asked = lease.asked || class != Skipped && class != Busy
		switch {
		case class == OK:
		case !time.Now().Before(q.Deadline):
			return nil, TimedOut, nil
		default:
			return nil, Unavailable, lease
		}
		reply, err := r.AsStrSlice()
		if err != nil || len(reply) != 2 || len(reply[1]) > MaxAnswer {
			s.Failures[Begin][Malformed].Add(1)
			return nil, Odd, nil
		}
		switch what := reply[1]; reply[0] {
		case "lead":
			return nil, Lead, lease
		case "conflict":
			return nil, Conflict, nil
		case "passing":
			return []byte(what), Joined, nil
		case "answer":
			if len(keys) > 1 {
				return []byte(what), Joined, nil
			}
			return []byte(what), Hit, nil
		case "wait":
			keys = append(keys[:1], passing(lease.key, what))
		default:
			s.Failures[Begin][Malformed].Add(1)
			return nil, Odd, nil
		}
		// Replicas that wait for one answer do not all look at once.
		look := wait/2 + rand.N(wait)
		if time.Until(q.Deadline) <= look {
			return nil, TimedOut, nil
		}
		time.Sleep(look)
	}
}

// Finish ends a lease with the answer. If remember is above zero, it answers the
// question for that long; else only those get it who wait already. An empty
// answer gives the lease back: of those who wait, one evaluates. What has been
// overtaken, by a lease that came after this one had expired, changes nothing.
// Only the first call counts.
func (l *Lease) Finish(answer []byte, remember time.Duration) {
	if l == nil || l.finished.Swap(true) {
		return
	}
	if len(answer) > MaxAnswer {
		answer = nil
	}
	// Long enough for the next look of everyone who waits.
	kept, how := time.Second+2*l.store.settings.Timeout, "0"
	if remember > 0 && len(answer) > 0 {
		kept, how = remember, "1"
	}
	// The call may outlive its caller, and the answer's bytes may not.
	_, class := l.store.call(Finish, l.store.scripts.finish, l.deadline,
		[]string{l.key, passing(l.key, l.token)}, []string{l.token, string(answer), milliseconds(kept), how})
	if class != OK && l.asked {
		l.store.orphans.add(l)
	}
}

// orphans are leases that could not be ended, which would hold up whoever asks
// the same until they run out. They are given back when the server works again.
type orphans struct {
	mu     sync.Mutex
	leases []*Lease
}

// maxOrphans bounds them. What is beyond it runs out by itself.
const maxOrphans = 4096

func (o *orphans) add(l *Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.leases) < maxOrphans {
		o.leases = append(o.leases, l)
	}
}

// giveBack gives back the orphans that have not run out, until a call fails.
func (s *Store) giveBack() {
	s.orphans.mu.Lock()
	leases := s.orphans.leases
	s.orphans.leases = nil
	s.orphans.mu.Unlock()
	for _, l := range leases {
		if !time.Now().Before(l.ends) {
			continue
		}
		if _, class := s.call(Finish, s.scripts.finish, l.ends, []string{l.key, passing(l.key, l.token)}, []string{l.token, "", "1", "0"}); class != OK {
			return
		}
	}
}

// passing is where a leader leaves an answer that may not be remembered.
func passing(key, token string) string { return key + ":" + token }

// milliseconds rounds up: zero would not be taken for a time.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Millisecond-1)/time.Millisecond)), 10)
}
