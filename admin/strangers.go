package admin

import (
	"sync"
	"time"
)

// maxStrangers is how many requests without a good key are recorded in a second.
const maxStrangers = 10

// strangers bounds the records of requests without a good key: whoever reaches
// the listener can send any number of them, and they must not crowd decisions
// out of the audit log. It is safe for concurrent use.
type strangers struct {
	mu     sync.Mutex
	second int64
	count  int
}

// admit reports whether one more is recorded.
func (s *strangers) admit(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if second := now.Unix(); second != s.second {
		s.second, s.count = second, 0
	}
	s.count++
	return s.count <= maxStrangers
}
