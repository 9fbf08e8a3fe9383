package audit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultSize is the size of a queue that is given none.
const DefaultSize = 8192

// MaxWait is how long Put waits for space in a full queue with Block.
const MaxWait = time.Second

// Overflow is what Put does when the queue is full.
type Overflow uint8

// The ways to overflow. The zero value is Drop.
const (
	// Drop loses the new record and counts it.
	Drop Overflow = iota
	// Block waits for space up to MaxWait, and so lets a slow sink slow
	// decisions down.
	Block
)

// ParseOverflow returns the overflow that s names: "drop" or "block".
func ParseOverflow(s string) (o Overflow, ok bool) {
	switch s {
	case "drop":
		return Drop, true
	case "block":
		return Block, true
	default:
		return 0, false
	}
}

// String returns "drop" or "block".
func (o Overflow) String() string {
	if o == Block {
		return "block"
	}
	return "drop"
}

// Stats count what became of records. Every record that was put is in exactly
// one of Written, Dropped and Errors, or still waiting.
type Stats struct {
	Depth   int    // records waiting, those being written not counted
	Written uint64 // records that the sink took and flushed
	Dropped uint64 // records that found the queue, or their share of it, full or closed
	Errors  uint64 // records of writes that failed; of a write cut short, all
}

// Queue takes records from many goroutines and writes them from one. It holds
// at most size encoded records, each bounded as described at Record. Its last
// quarter is for tenants that hold no more than their Share.
//
// A sink that fails never stops the queue: what it refused is counted, its
// failing and its recovery are logged, and the next record is tried again.
type Queue struct {
	sink     Sink
	overflow Overflow
	log      *slog.Logger
	lines    chan *line
	pool     sync.Pool // of *line
	tenants  atomic.Int64
	active   atomic.Int64 // shares that hold any

	// mu is held for reading during Put and for writing to close lines.
	mu       sync.RWMutex
	closed   bool
	crowded  chan struct{} // told when the queue is half full
	stopping chan struct{} // closed when Close begins: wakes waiting Puts
	stop     sync.Once

	abandoned atomic.Bool   // Close gave up waiting: what is left is dropped
	done      chan struct{} // closed when the writer has closed the sink
	closeErr  error         // what closing the sink returned; read after done

	written, dropped, errors atomic.Uint64
}

// line is one encoded record in a reusable buffer, and whose it is.
type line struct {
	buf  []byte
	from *Share
}

// keepBytes is the largest buffer that is kept for reuse; few records need more.
const keepBytes = 16 << 10

// NewQueue starts a queue of size records, or DefaultSize for a size below 1,
// in front of sink, which it owns from then on. log gets at most one message a
// minute for each kind of trouble; nil discards them. Close must be called to
// end the queue's goroutine.
func NewQueue(sink Sink, size int, overflow Overflow, log *slog.Logger) *Queue {
	if size < 1 {
		size = DefaultSize
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	q := &Queue{
		sink:     sink,
		overflow: overflow,
		log:      log,
		lines:    make(chan *line, size),
		crowded:  make(chan struct{}, 1),
		stopping: make(chan struct{}),
		done:     make(chan struct{}),
	}
	q.pool.New = func() any { return &line{buf: make([]byte, 0, 1024)} }
	go q.run()
	return q
}

// Put queues r and reports whether it did. from is the share of the tenant that r
// is of; nil is nobody's, which may fill the queue. Put keeps nothing of r: the
// record is encoded here, into a reused buffer. To copy the record and encode it
// later would spare the caller a few hundred nanoseconds of a typical record, but
// allocate and cost more in all (see BenchmarkPut, BenchmarkArenaCopy and
// BenchmarkDeepCopy).
//
// With Drop it never waits. With Block it waits for space, but not longer than
// MaxWait, so that a sink that hangs slows decisions down and does not stop them.
// A record that found no space, or is put after Close, is dropped and counted.
func (q *Queue) Put(from *Share, r *Record) bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		q.dropped.Add(1)
		return false
	}
	if q.overflow == Drop && len(q.lines) == cap(q.lines) {
		// Not worth encoding. A race here costs one record's encoding at most.
		q.dropped.Add(1)
		return false
	}
	entered := q.enter(from)
	if q.overflow == Drop && !entered {
		q.dropped.Add(1)
		return false
	}
	l := q.pool.Get().(*line)
	l.buf, l.from = AppendJSON(l.buf[:0], r), from
	if entered {
		select {
		case q.lines <- l:
			if len(q.lines) > cap(q.lines)/2 {
				q.hurry()
			}
			return true
		default:
		}
	}
	q.hurry()
	switch {
	case q.overflow == Drop:
		q.leave(from)
	case q.wait(l, entered):
		return true
	}
	q.dropped.Add(1)
	q.recycle(l)
	return false
}

// hurry lets the writer wait no longer.
func (q *Queue) hurry() {
	select {
	case q.crowded <- struct{}{}:
	default:
	}
}

// wait queues l if there is space in time, of its share and then of the queue.
// If not, it has left its share.
func (q *Queue) wait(l *line, entered bool) bool {
	timer := time.NewTimer(MaxWait)
	defer timer.Stop()
	if !entered && !q.await(l.from, timer.C) {
		return false
	}
	select {
	case q.lines <- l:
		return true
	case <-q.stopping:
	case <-timer.C:
	}
	q.leave(l.from)
	return false
}

func (q *Queue) recycle(l *line) {
	l.from = nil
	if cap(l.buf) <= keepBytes {
		q.pool.Put(l)
	}
}

// Stats returns the counts as they are now.
func (q *Queue) Stats() Stats {
	return Stats{
		Depth:   len(q.lines),
		Written: q.written.Load(),
		Dropped: q.dropped.Load(),
		Errors:  q.errors.Load(),
	}
}

// Close writes what is waiting, closes the sink and returns what that
// returned. If ctx ends first, what is still waiting is dropped and counted,
// and the sink is closed as soon as the write in progress returns. Further
// calls wait for the same end.
func (q *Queue) Close(ctx context.Context) error {
	q.stop.Do(func() {
		close(q.stopping)
		q.mu.Lock()
		q.closed = true
		close(q.lines)
		q.mu.Unlock()
	})
	select {
	case <-q.done:
		return q.closeErr
	default:
	}
	select {
	case <-q.done:
		return q.closeErr
	case <-ctx.Done():
		q.abandoned.Store(true)
		return fmt.Errorf("audit: close: %w with %d records waiting", context.Cause(ctx), len(q.lines))
	}
}

// run is the writer: it ends when lines is closed and empty.
func (q *Queue) run() {
	defer close(q.done)
	w := writer{queue: q}
	wait := time.NewTimer(gatherFor)
	for l := range q.lines {
		w.take(l)
		// Until there is company nobody has to wake the writer, and a write
		// and a flush are for many.
		wait.Reset(gatherFor)
		select {
		case <-wait.C:
		case <-q.crowded:
		case <-q.stopping:
		}
		for range len(q.lines) {
			w.take(<-q.lines)
		}
		w.flush()
	}
	q.closeErr = guard(q.sink.Close)
}

// gatherFor is how long a record waits for others to be written with, unless
// they fill the queue.
const gatherFor = 10 * time.Millisecond

// writer is the state of the goroutine that owns the sink.
type writer struct {
	queue *Queue
	lines uint64 // written since the last flush
	bytes int    // their size

	failing      bool      // the sink's last flush or write failed
	failingSaid  bool      // and that was logged
	failingSince time.Time // when it was last logged
	dropped      uint64    // drops already logged
	droppedSaid  time.Time // when they were
}

// quiet is how long a kind of trouble is not logged again.
const quiet = time.Minute

// take writes one line, or drops it once the queue is given up.
func (w *writer) take(l *line) {
	w.queue.leave(l.from)
	if w.queue.abandoned.Load() {
		w.queue.dropped.Add(1)
	} else {
		w.write(l.buf)
	}
	w.queue.recycle(l)
	if w.bytes >= flushBytes {
		w.flush()
	}
}

func (w *writer) write(buf []byte) {
	w.lines++
	w.bytes += len(buf)
	if err := guard(func() error { return w.queue.sink.Write(buf) }); err != nil {
		w.failed(err)
	}
}

func (w *writer) flush() {
	if w.lines > 0 {
		if err := guard(w.queue.sink.Flush); err != nil {
			w.failed(err)
		} else {
			w.succeeded()
		}
	}
	w.reportDrops()
}

func (w *writer) succeeded() {
	w.queue.written.Add(w.lines)
	w.lines, w.bytes = 0, 0
	if w.failing && w.failingSaid {
		w.queue.log.Info("audit sink works again", "lost", w.queue.errors.Load())
	}
	w.failing, w.failingSaid = false, false
}

func (w *writer) failed(err error) {
	w.queue.errors.Add(w.lines)
	w.lines, w.bytes = 0, 0
	if w.failing {
		return
	}
	w.failing = true
	if now := time.Now(); now.Sub(w.failingSince) >= quiet {
		w.failingSaid, w.failingSince = true, now
		w.queue.log.Error("audit sink fails, records are lost", "error", err)
	}
}

func (w *writer) reportDrops() {
	dropped := w.queue.dropped.Load()
	if dropped == w.dropped {
		return
	}
	if now := time.Now(); now.Sub(w.droppedSaid) >= quiet {
		w.queue.log.Warn("audit records are dropped: the queue, or what one tenant may take of it, is full", "dropped", dropped-w.dropped)
		w.dropped, w.droppedSaid = dropped, now
	}
}

// guard turns a panic of the sink into an error, so that no sink can end the
// process.
func guard(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("audit: sink panicked: %v", p)
		}
	}()
	return call()
}
