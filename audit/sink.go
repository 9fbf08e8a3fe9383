package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Sink is where a Queue writes. The queue calls its methods from one goroutine
// at a time, Close last.
type Sink interface {
	// Write takes one line, its newline included. It may hold the line back
	// until Flush, but keeps no reference to it.
	Write(line []byte) error
	// Flush hands on everything that Write holds back. After an error the lines
	// since the last good Flush are lost and the sink is ready for new ones.
	Flush() error
	// Close flushes, makes what was written durable and releases the sink.
	Close() error
}

// flushBytes is how much the queue writes before it flushes although more is
// waiting. Sinks hold back more than that, so that it is the queue's Flush
// which finds a failure out and counts it exactly.
const flushBytes = 64 << 10

// sinkBytes is when a sink flushes by itself.
const sinkBytes = 4 * flushBytes

// FileSink appends lines to a file. Its methods are safe for concurrent use, so
// that Reopen can be called beside the queue.
type FileSink struct {
	path string

	mu   sync.Mutex
	file *os.File
	buf  []byte
	// torn is true while the file may end inside a line: the next line then
	// begins with a newline of its own, lest two records become one.
	torn bool
}

// NewFileSink opens path for appending and creates it with mode 0600 where it
// does not exist. A file that ends inside a line, as a crash leaves it, is
// continued on a new one.
func NewFileSink(path string) (*FileSink, error) {
	file, torn, err := openAppend(path)
	if err != nil {
		return nil, err
	}
	return &FileSink{path: path, file: file, torn: torn}, nil
}

func openAppend(path string) (file *os.File, torn bool, err error) {
	// Reading is needed to look at the last byte.
	file, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("audit: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, false, errors.Join(fmt.Errorf("audit: %w", err), file.Close())
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return file, false, nil
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], info.Size()-1); err != nil {
		return nil, false, errors.Join(fmt.Errorf("audit: %w", err), file.Close())
	}
	return file, last[0] != '\n', nil
}

// Write implements Sink.
func (s *FileSink) Write(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(s.buf, line...)
	if len(s.buf) < sinkBytes {
		return nil
	}
	return s.flush()
}

// Flush implements Sink.
func (s *FileSink) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush()
}

func (s *FileSink) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	lines := s.buf
	s.buf = s.buf[:0]
	if s.torn {
		if _, err := s.file.Write([]byte{'\n'}); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		s.torn = false
	}
	n, err := s.file.Write(lines)
	if err != nil {
		s.torn = n > 0 && lines[n-1] != '\n'
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Reopen opens the path anew and goes on there, for after the file was moved
// away by log rotation. Lines that are held back go to the new file. On error
// the sink goes on with the file it has.
func (s *FileSink) Reopen() error {
	file, torn, err := openAppend(s.path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.file
	s.file, s.torn = file, torn
	s.mu.Unlock()
	if err := old.Close(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Close implements Sink. A file that cannot be synced, such as a pipe, is only
// closed.
func (s *FileSink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.flush()
	if info, statErr := s.file.Stat(); statErr == nil && info.Mode().IsRegular() {
		err = errors.Join(err, s.file.Sync())
	}
	return errors.Join(err, s.file.Close())
}

// WriterSink writes lines to a writer that it does not own, such as standard
// output.
type WriterSink struct {
	w   io.Writer
	buf []byte
}

// NewWriterSink returns a sink that writes to w. Every write holds whole lines.
// Close flushes and leaves w open.
func NewWriterSink(w io.Writer) *WriterSink { return &WriterSink{w: w} }

// Write implements Sink.
func (s *WriterSink) Write(line []byte) error {
	s.buf = append(s.buf, line...)
	if len(s.buf) < sinkBytes {
		return nil
	}
	return s.Flush()
}

// Flush implements Sink.
func (s *WriterSink) Flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	lines := s.buf
	s.buf = s.buf[:0]
	if _, err := s.w.Write(lines); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Close implements Sink.
func (s *WriterSink) Close() error { return s.Flush() }
