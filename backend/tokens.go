package backend

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

const (
	// maxObtain bounds how long one attempt to obtain a token may take. Whoever
	// waits for it waits until the deadline of their own call at most.
	maxObtain = 10 * time.Second
	// After a failed attempt there is none for minPause, after each further one
	// twice as long, up to maxPause.
	minPause = time.Second
	maxPause = 30 * time.Second
	// rejectionPause is how long a token is kept, however often it is rejected,
	// after one has been dropped for that: a backend that rejects every token
	// costs its issuer one in that time.
	rejectionPause = 5 * time.Second
)

// token is an access token, in the head of every request that is sent with it.
type token struct {
	head    requestHead
	refresh time.Time // from then on another one is obtained
	expires time.Time
}

// tokens are those of one client for one backend. They stay here: a token is for
// one issuer, resource, client and set of scopes, and a tenant's is no other's.
// It is safe for concurrent use.
type tokens struct {
	issuer *issuer
	head   func(token string) (requestHead, error)

	current atomic.Pointer[token] // nil where none has been obtained or it was rejected

	mu      sync.Mutex
	attempt *attempt // under way, or nil
	// failure is how the last attempt ended, if it failed; until notBefore there
	// is no other.
	failure   ahp.Failure
	notBefore time.Time
	pause     time.Duration
	dropped   time.Time // when a token was last dropped because it was rejected
}

// attempt is one attempt to obtain a token. Its other fields are set once done
// is closed.
type attempt struct {
	done    chan struct{}
	token   *token
	failure ahp.Failure
}

func newTokens(client OAuth, resolver *net.Resolver, head func(token string) (requestHead, error)) (*tokens, error) {
	issuer, err := newIssuer(client, resolver)
	if err != nil {
		return nil, err
	}
	return &tokens{issuer: issuer, head: head}, nil
}

// get returns a token that has not expired. It waits for one until deadline if
// there is none; one that is soon to expire is used while another one is
// obtained.
func (t *tokens) get(deadline time.Time) (*token, ahp.Failure) {
	now := time.Now()
	if tok := t.current.Load(); tok != nil && now.Before(tok.expires) {
		// Who does not get the lock leaves it to those who have it.
		if !now.Before(tok.refresh) && t.mu.TryLock() {
			t.begin(now)
			t.mu.Unlock()
		}
		return tok, ahp.Failure{}
	}
	return t.wait(now, deadline)
}

func (t *tokens) wait(now, deadline time.Time) (*token, ahp.Failure) {
	if !now.Before(deadline) {
		return nil, noTime
	}
	t.mu.Lock()
	if tok := t.current.Load(); tok != nil && now.Before(tok.expires) {
		t.mu.Unlock()
		return tok, ahp.Failure{} // it has just come
	}
	t.begin(now)
	a, failure := t.attempt, t.failure
	t.mu.Unlock()
	if a == nil {
		return nil, failure
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-a.done:
		return a.token, a.failure
	case <-timer.C:
		return nil, credentialFailure("it does not answer in time")
	}
}

// begin starts an attempt unless one is under way or it is too early for
// another. t.mu is held.
func (t *tokens) begin(now time.Time) {
	if t.attempt != nil || now.Before(t.notBefore) {
		return
	}
	t.attempt = &attempt{done: make(chan struct{})}
	go t.obtain(t.attempt)
}

// obtain is one attempt. It does not end with the call that it was begun for:
// others may wait for it, and the next ones will. A client that is closed
// meanwhile lets it run to its end, as it does calls.
func (t *tokens) obtain(a *attempt) {
	a.failure = ahp.Failure{Class: ahp.FailInternal, Detail: "panic while a token was obtained"}
	defer func() {
		if recover() != nil {
			a.token = nil
		}
		t.settle(a)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), maxObtain)
	defer cancel()
	// Its life begins before it was asked for, rather than after it arrived.
	asked := time.Now()
	g, err := t.issuer.obtain(ctx)
	if err != nil {
		a.failure = credentialFailure(err.Error())
		return
	}
	head, err := t.head(g.token)
	if err != nil {
		a.failure = credentialFailure("its token cannot be sent in a header")
		return
	}
	a.token, a.failure = &token{head, asked.Add(refreshAfter(g.life)), asked.Add(g.life)}, ahp.Failure{}
}

// settle puts the outcome of an attempt to use.
func (t *tokens) settle(a *attempt) {
	t.mu.Lock()
	t.attempt, t.failure = nil, a.failure
	if a.token != nil {
		t.current.Store(a.token)
		t.pause, t.notBefore = 0, time.Time{}
	} else {
		t.pause = min(max(2*t.pause, minPause), maxPause)
		t.notBefore = time.Now().Add(t.pause)
	}
	t.mu.Unlock()
	close(a.done)
}

// refreshAfter is at 80 % of a life, or 30 s before its end if that is earlier,
// but not in its first half: a token that lives less than a minute would
// otherwise be renewed with every call.
func refreshAfter(life time.Duration) time.Duration {
	return max(min(life*4/5, life-30*time.Second), life/2)
}

// rejected is told that the backend has answered 401 to tok, and reports whether
// the call may be repeated with another token: there is one already, or tok is
// dropped. It is not dropped if another one was a short time ago.
func (t *tokens) rejected(tok *token) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.Load() != tok {
		return true
	}
	now := time.Now()
	if !t.dropped.IsZero() && now.Sub(t.dropped) < rejectionPause {
		return false
	}
	t.dropped = now
	t.current.Store(nil)
	return true
}

func credentialFailure(why string) ahp.Failure {
	return ahp.Failure{Class: ahp.FailCredential, Detail: "no token from the OAuth issuer: " + why}
}
