package audit

import (
	"bytes"
	"errors"
	"sync"
)

// recorder is a sink in memory. Its methods can be made to fail.
type recorder struct {
	mu     sync.Mutex
	held   [][]byte
	lines  [][]byte
	failed bool // Write and Flush fail while true
	closed bool
}

var errSink = errors.New("no space left on device")

func (s *recorder) Write(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, bytes.Clone(line))
	return nil
}

func (s *recorder) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	s.held = nil
	if s.failed {
		return errSink
	}
	s.lines = append(s.lines, held...)
	return nil
}

func (s *recorder) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if len(s.held) > 0 {
		return errors.New("closed before it was flushed")
	}
	return nil
}

func (s *recorder) fail(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = failed
}

// gated is a recorder whose Write waits until it is opened.
type gated struct {
	recorder
	entered chan struct{} // gets one value per Write that has begun
	gate    chan struct{}
}

func newGated() *gated {
	return &gated{entered: make(chan struct{}, 1<<16), gate: make(chan struct{})}
}

func (s *gated) open() { close(s.gate) }

func (s *gated) Write(line []byte) error {
	s.entered <- struct{}{}
	<-s.gate
	return s.recorder.Write(line)
}
