package shared

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/internal/redistest"
)

// slow is a rate at which no test sees a token come back.
const slow = 0.001

// A bucket is one for all replicas: together they take what one may.
func TestBucketIsShared(t *testing.T) {
	all := replicas(t, redistest.Start(t), 3)
	var taken atomic.Int32
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			wait, ok := all[i%len(all)].Bucket("acme", slow, 20).Take()
			switch {
			case !ok:
				t.Error("Take() knows nothing; want a token or a time")
			case wait == 0:
				taken.Add(1)
			case wait > 1000*time.Second:
				t.Errorf("Take() = %v; want at most the time of one token", wait)
			}
		})
	}
	wg.Wait()
	if got := taken.Load(); got != 20 {
		t.Errorf("%d of 60 took a token; want the burst, 20", got)
	}
	if wait, ok := all[0].Bucket("other", slow, 1).Take(); wait != 0 || !ok {
		t.Errorf("Take() from another bucket = %v, %t; want a token", wait, ok)
	}
}

// Tokens come back by the server's clock, to the size of the bucket and no more.
func TestBucketFills(t *testing.T) {
	server := redistest.Start(t)
	b := open(t, server.Address).Bucket("b", 1e6, 3)
	for range 10 { // a token comes back in a microsecond
		wait, ok := b.Take()
		for wait > 0 {
			wait, ok = b.Take()
		}
		if !ok {
			t.Fatal("Take() knows nothing; want a token")
		}
	}
}

// A clock that was set back, or a bucket that has become smaller, holds nobody
// up for longer than an empty bucket does.
func TestBucketOfAnotherTime(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	server.Command("SET", "test:rate:b", "99999999999999999")
	wait, ok := st.Bucket("b", slow, 5).Take()
	if !ok || wait <= 0 || wait > 1000*time.Second {
		t.Errorf("Take() = %v, %t; want at most the time of one token", wait, ok)
	}
	server.Command("SET", "test:rate:b", "rubbish")
	if wait, ok := st.Bucket("b", slow, 5).Take(); !ok || wait != 0 {
		t.Errorf("Take() from rubbish = %v, %t; want a token", wait, ok)
	}
}

// Without a server nothing is known, at once.
func TestBucketWithoutServer(t *testing.T) {
	server := redistest.Start(t)
	st := open(t, server.Address)
	server.Kill()
	for range 20 {
		if wait, ok := st.Bucket("b", slow, 5).Take(); ok {
			t.Errorf("Take() without a server = %v; want nothing", wait)
		}
	}
}
