package shared

import (
	"math"
	"strconv"
	"time"
)

// Bucket is a token bucket that lies in the server.
type Bucket struct {
	store *Store
	keys  []string
	args  []string
}

// Bucket returns the bucket of a name, which is filled with rate tokens a second
// and holds burst. Whoever takes from it under another rate or burst takes from
// the same one. More than a million tokens a second are that many.
func (s *Store) Bucket(name string, rate float64, burst int) *Bucket {
	each := math.Max(1e6/rate, 1)
	return &Bucket{store: s, keys: []string{s.settings.Prefix + ":rate:" + name},
		args: []string{strconv.FormatFloat(each, 'f', -1, 64), strconv.Itoa(burst)}}
}

// Take takes a token if there is one, and else returns how long until there is.
// It is false if the server could not be asked; then nothing is known.
func (b *Bucket) Take() (wait time.Duration, ok bool) {
	// Longer than the store's own timeout, which therefore holds.
	far := time.Now().Add(time.Hour)
	r, class := b.store.call(Take, b.store.scripts.take, far, b.keys, b.args)
	if class != OK {
		return 0, false
	}
	micros, err := r.AsInt64()
	if err != nil || micros < 0 {
		b.store.Failures[Take][Malformed].Add(1)
		return 0, false
	}
	if micros > int64(math.MaxInt64/time.Microsecond) {
		return math.MaxInt64, true
	}
	return time.Duration(micros) * time.Microsecond, true
}
