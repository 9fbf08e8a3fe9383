package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestQueueWritesInOrderAndCloses(t *testing.T) {
	sink := &recorder{}
	q := NewQueue(sink, 4, Block, nil)
	const n = 100
	for i := range n {
		q.Put(nil, &Record{EventID: fmt.Sprint(i)})
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatalf("Close() = %v; want nil", err)
	}
	if len(sink.lines) != n || !sink.closed {
		t.Fatalf("sink has %d lines, closed %v; want %d, true", len(sink.lines), sink.closed, n)
	}
	for i, line := range sink.lines {
		if want := fmt.Sprintf(`"event_id":"%d"`, i); !bytes.Contains(line, []byte(want)) {
			t.Errorf("line %d = %s; want %s in it", i, line, want)
		}
	}
	if got, want := q.Stats(), (Stats{Written: n}); got != want {
		t.Errorf("Stats() = %+v; want %+v", got, want)
	}
}

// The caller reuses the bytes behind a record as soon as Put returns.
func TestQueueKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newGated()
		q := NewQueue(sink, 4, Drop, nil)
		input := []byte(`{"a":1}`)
		steps := []Step{{Backend: "com.example.a", Outcome: OutcomePass}}
		r := Record{Input: input, Steps: steps}
		q.Put(nil, &r)
		copy(input, `{"b":2}`)
		steps[0] = Step{}
		r = Record{}
		sink.open()
		if err := q.Close(t.Context()); err != nil {
			t.Fatalf("Close() = %v; want nil", err)
		}
		for _, want := range []string{`"input":{"a":1}`, `"backend":"com.example.a"`} {
			if got := string(sink.lines[0]); !strings.Contains(got, want) {
				t.Errorf("line = %s; want %s in it", got, want)
			}
		}
	})
}

// Records that come together are written together: nobody wakes the writer for
// each, unless they would fill the queue.
func TestQueueGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &recorder{}
		q := NewQueue(sink, 8, Drop, nil)
		for range 4 {
			q.Put(nil, &Record{})
			time.Sleep(gatherFor / 8)
			synctest.Wait()
		}
		if got := q.Stats().Written; got != 0 {
			t.Errorf("%d records written before their time; want 0", got)
		}
		time.Sleep(gatherFor)
		synctest.Wait()
		if got := q.Stats().Written; got != 4 {
			t.Errorf("%d records written; want 4", got)
		}
		for range 1000 {
			q.Put(nil, &Record{})
			synctest.Wait()
		}
		if got := q.Stats(); got.Dropped != 0 || got.Written < 990 {
			t.Errorf("Stats() after a burst = %+v; want none dropped and all but the last written", got)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatalf("Close() = %v; want nil", err)
		}
	})
}

func TestQueueDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newGated()
		q := NewQueue(sink, 2, Drop, nil)
		q.Put(nil, &Record{EventID: "being written"})
		<-sink.entered
		for range 5 {
			q.Put(nil, &Record{})
		}
		if got, want := q.Stats(), (Stats{Depth: 2, Dropped: 3}); got != want {
			t.Errorf("Stats() with a full queue = %+v; want %+v", got, want)
		}
		sink.open()
		if err := q.Close(t.Context()); err != nil {
			t.Fatalf("Close() = %v; want nil", err)
		}
		q.Put(nil, &Record{})
		if got, want := q.Stats(), (Stats{Written: 3, Dropped: 4}); got != want {
			t.Errorf("Stats() after Close and one more Put = %+v; want %+v", got, want)
		}
	})
}

func TestQueueBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newGated()
		q := NewQueue(sink, 1, Block, nil)
		q.Put(nil, &Record{})
		<-sink.entered
		q.Put(nil, &Record{})
		done := make(chan struct{})
		go func() {
			q.Put(nil, &Record{})
			close(done)
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Put returned from a full queue; want it to wait")
		default:
		}
		sink.open()
		<-done
		if err := q.Close(t.Context()); err != nil {
			t.Fatalf("Close() = %v; want nil", err)
		}
		if got, want := q.Stats(), (Stats{Written: 3}); got != want {
			t.Errorf("Stats() = %+v; want %+v", got, want)
		}
	})
}

func TestQueueCloseWakesBlockedPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newGated()
		q := NewQueue(sink, 1, Block, nil)
		q.Put(nil, &Record{})
		<-sink.entered
		q.Put(nil, &Record{})
		put := make(chan struct{})
		go func() {
			q.Put(nil, &Record{})
			close(put)
		}()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- q.Close(t.Context()) }()
		<-put
		sink.open()
		if err := <-closed; err != nil {
			t.Fatalf("Close() = %v; want nil", err)
		}
		if got, want := q.Stats(), (Stats{Written: 2, Dropped: 1}); got != want {
			t.Errorf("Stats() = %+v; want %+v", got, want)
		}
	})
}

// A sink that hangs cannot hold Close up beyond its context.
func TestQueueCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newGated()
		q := NewQueue(sink, 8, Drop, nil)
		for range 4 {
			q.Put(nil, &Record{})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := q.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close() = %v; want %v", err, context.DeadlineExceeded)
		}
		sink.open()
		if err := q.Close(t.Context()); err != nil {
			t.Errorf("second Close() = %v; want nil", err)
		}
		if got, want := q.Stats(), (Stats{Written: 1, Dropped: 3}); got != want || !sink.closed {
			t.Errorf("Stats() = %+v, sink closed %v; want %+v, true", got, sink.closed, want)
		}
	})
}

func TestQueueSurvivesFailingSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		sink := &recorder{}
		q := NewQueue(sink, 8, Drop, slog.New(slog.NewTextHandler(&log, nil)))
		put := func(failed bool) {
			sink.fail(failed)
			q.Put(nil, &Record{})
			time.Sleep(gatherFor)
			synctest.Wait()
		}
		put(false)
		put(true)
		put(true)
		put(true)
		if got, want := q.Stats(), (Stats{Written: 1, Errors: 3}); got != want {
			t.Errorf("Stats() while the sink fails = %+v; want %+v", got, want)
		}
		if got := strings.Count(log.String(), "audit sink fails"); got != 1 {
			t.Errorf("failure was logged %d times in\n%swant 1", got, &log)
		}
		put(false)
		if got := strings.Count(log.String(), "audit sink works again"); got != 1 || !strings.Contains(log.String(), "lost=3") {
			t.Errorf("recovery was logged %d times in\n%swant 1 with lost=3", got, &log)
		}
		// A sink that comes and goes is not worth a message each time.
		put(true)
		put(false)
		if got := strings.Count(log.String(), "\n"); got != 2 {
			t.Errorf("%d messages within a minute in\n%swant 2", got, &log)
		}
		time.Sleep(quiet)
		put(true)
		if got := strings.Count(log.String(), "audit sink fails"); got != 2 {
			t.Errorf("failure a minute later was logged %d times in\n%swant 2", got, &log)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatalf("Close() = %v; want nil", err)
		}
		if got, want := q.Stats(), (Stats{Written: 3, Errors: 5}); got != want {
			t.Errorf("Stats() = %+v; want %+v", got, want)
		}
	})
}

func TestQueueLogsDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		sink := newGated()
		q := NewQueue(sink, 1, Drop, slog.New(slog.NewTextHandler(&log, nil)))
		q.Put(nil, &Record{})
		<-sink.entered
		for range 4 {
			q.Put(nil, &Record{})
		}
		sink.open()
		synctest.Wait()
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "dropped=3") {
			t.Errorf("log = %q; want one message with dropped=3", got)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatalf("Close() = %v; want nil", err)
		}
	})
}

// panicking is a sink with a fault.
type panicking struct{ discard }

func (panicking) Flush() error { panic("fault") }
func (panicking) Close() error { panic("fault") }

func TestQueueSurvivesPanickingSink(t *testing.T) {
	q := NewQueue(panicking{}, 8, Drop, nil)
	q.Put(nil, &Record{})
	if err := q.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "fault") {
		t.Errorf("Close() = %v; want the panic as an error", err)
	}
	if got, want := q.Stats(), (Stats{Errors: 1}); got != want {
		t.Errorf("Stats() = %+v; want %+v", got, want)
	}
}

// Every record ends in exactly one count, whoever puts it and whenever.
func TestQueueConcurrent(t *testing.T) {
	const putters, each = 8, 500
	for _, overflow := range []Overflow{Drop, Block} {
		t.Run(overflow.String(), func(t *testing.T) {
			sink := &recorder{}
			q := NewQueue(sink, 16, overflow, nil)
			var wait sync.WaitGroup
			half := make(chan struct{}, putters)
			for range putters {
				wait.Go(func() {
					r := typical()
					for i := range each {
						if i == each/2 {
							half <- struct{}{}
						}
						q.Put(nil, r)
					}
				})
			}
			for range putters {
				<-half
			}
			if err := q.Close(t.Context()); err != nil {
				t.Errorf("Close() = %v; want nil", err)
			}
			wait.Wait()
			got := q.Stats()
			if got.Depth != 0 || got.Errors != 0 || got.Written+got.Dropped != putters*each {
				t.Errorf("Stats() = %+v; want %d records written or dropped", got, putters*each)
			}
			if uint64(len(sink.lines)) != got.Written {
				t.Errorf("sink has %d lines; want %d", len(sink.lines), got.Written)
			}
			for _, line := range sink.lines {
				if !json.Valid(line) {
					t.Fatalf("line = %q; want valid JSON", line)
				}
			}
		})
	}
}
