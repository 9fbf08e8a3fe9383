package tenant

import (
	"crypto"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ahp-gateway/ahp-gateway/internal/fakeissuer"
)

// slowKey is a key whose verifications end when it is told so.
type slowKey struct {
	running, most atomic.Int64
	end           chan struct{}
}

// VerifyPayload implements jose.OpaqueVerifier.
func (k *slowKey) VerifyPayload([]byte, []byte, jose.SignatureAlgorithm) error {
	n := k.running.Add(1)
	defer k.running.Add(-1)
	for most := k.most.Load(); n > most && !k.most.CompareAndSwap(most, n); most = k.most.Load() {
	}
	<-k.end
	return nil
}

// remote is an issuer that is never asked: it has just been, and the keys are
// those that the test gives it.
func remote(t *testing.T, keys ...*fakeissuer.Key) (*fakeissuer.Issuer, *Directory[string]) {
	t.Helper()
	i := &fakeissuer.Issuer{URL: "https://idp.example"}
	d := trusting(t, nil, settingsOf(i))
	ring := d.issuers.list[0].keys
	ring.began = time.Now()
	ring.set.Store(setOf(keys...))
	return i, d
}

func setOf(keys ...*fakeissuer.Key) *keySet {
	set := &keySet{fetched: time.Now()}
	for _, k := range keys {
		set.keys = append(set.keys, jose.JSONWebKey{Key: crypto.PublicKey(k.Private.Public()), KeyID: k.ID})
	}
	return set
}

// However many forged tokens come, a few signatures are looked at at once, and
// a caller whose credential costs none waits for none.
func TestForgedTokensStarveNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, young := fakeissuer.NewKey(t, "k", jose.ES256), fakeissuer.NewKey(t, "k", jose.ES256)
		i, d := remote(t, key)
		known := key.Sign(t, i.Claims(resource, "ahp_tenant", "beta"), nil)
		expect(t, "a token, seen the first time", d, known, time.Now(), "beta", OK)

		const flood = 100
		slow := &slowKey{end: make(chan struct{})}
		jws, err := jose.ParseSignedCompact(known, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var turnedAway atomic.Int64
		for range flood {
			all.Go(func() {
				if _, able := d.issuers.isSigned(jws, &jose.JSONWebKey{Key: slow}); !able {
					turnedAway.Add(1)
				}
			})
		}
		synctest.Wait()
		places := int64(cap(d.issuers.verifying))
		if got := slow.running.Load(); got != places || places < 1 || places >= flood {
			t.Errorf("%d signatures are looked at at once; want as many as there are places, %d", got, places)
		}
		began := time.Now()
		expect(t, "a key among the flood", d, "acme-key", began, "acme", OK)
		expect(t, "a known token among the flood", d, known, began, "beta", OK)
		if took := time.Since(began); took != 0 {
			t.Errorf("they waited for %v; want for nothing", took)
		}
		forged := young.Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil)
		if _, v := show(d, forged, began); v.Result != Unavailable || v.RetryAfter != busyWait {
			t.Errorf("one more forged token = %+v; want unavailable for %v", v, busyWait)
		}
		if took := time.Since(began); took != verifyWait {
			t.Errorf("it waited for %v; want %v", took, verifyWait)
		}
		synctest.Wait() // the flood's waits have ended at the same moment
		close(slow.end)
		all.Wait()
		if got := turnedAway.Load(); got != flood-places || slow.most.Load() != places {
			t.Errorf("%d of %d were turned away, and %d looked at at once; want %d and %d", got, flood, slow.most.Load(), flood-places, places)
		}
		expect(t, "a forged token after the flood", d, forged, time.Now(), "", Refused)
	})
}

// A token whose key has no name is looked at again with the keys that came
// while it waited, whoever had them asked for.
func TestKeysThatCameMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, young := fakeissuer.NewKey(t, "", jose.ES256), fakeissuer.NewKey(t, "", jose.ES256)
		i, d := remote(t, old)
		token := young.Sign(t, i.Claims(resource, "ahp_tenant", "acme"), nil)
		// It has got the keys of before, and waits for its signature to be looked at.
		for range cap(d.issuers.verifying) {
			d.issuers.verifying <- struct{}{}
		}
		var all sync.WaitGroup
		all.Go(func() { expect(t, "token of the new key", d, token, time.Now(), "acme", OK) })
		synctest.Wait()
		d.issuers.list[0].keys.set.Store(setOf(young))
		for range cap(d.issuers.verifying) {
			<-d.issuers.verifying
		}
		all.Wait()
	})
}
