package shared

import (
	"context"
	"errors"
	"os"

	"github.com/redis/rueidis"
)

// Operation is what the server was asked for. Its names, those of String, are
// labels of metrics.
type Operation uint8

// The operations.
const (
	Begin  Operation = iota // ask for an answer, or for leave to evaluate
	Finish                  // leave an answer
	Take                    // take of an allowance
	Read                    // read documents, or what is new of them
	Write                   // change a document

	OperationCount
)

// String returns the operation's stable name, or "unknown".
func (o Operation) String() string {
	switch o {
	case Begin:
		return "begin"
	case Finish:
		return "finish"
	case Take:
		return "take"
	case Read:
		return "read"
	case Write:
		return "write"
	default:
		return "unknown"
	}
}

// Class is why an operation got nothing. The zero value is that it got
// something. Its names, those of String, are labels of metrics.
type Class uint8

// The classes.
const (
	OK Class = iota
	// Timeout: there was no reply in time, or before the caller gave up.
	Timeout
	// Unreachable: there is no connection, or it broke.
	Unreachable
	// Refused: the server replied with an error.
	Refused
	// Malformed: what the server has is not what a replica leaves there.
	Malformed
	// Busy: too many calls are waiting for the server.
	Busy
	// Skipped: the server has failed, and is not asked until it works again.
	Skipped

	ClassCount
)

// String returns the class's stable name, or "unknown".
func (c Class) String() string {
	switch c {
	case OK:
		return "ok"
	case Timeout:
		return "timeout"
	case Unreachable:
		return "unreachable"
	case Refused:
		return "refused"
	case Malformed:
		return "malformed"
	case Busy:
		return "busy"
	case Skipped:
		return "skipped"
	default:
		return "unknown"
	}
}

// classify returns the class of an error of the client, and of an error reply
// its first word, such as WRONGPASS. The rest of a reply is the server's to
// choose and is not passed on.
func classify(err error) (Class, string) {
	if err == nil {
		return OK, ""
	}
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return Refused, firstWord(reply.Error())
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) {
		return Timeout, ""
	}
	return Unreachable, ""
}

// firstWord returns the capitals that a reply starts with, at most 16.
func firstWord(reply string) string {
	n := 0
	for n < len(reply) && n < 16 && 'A' <= reply[n] && reply[n] <= 'Z' {
		n++
	}
	return reply[:n]
}
