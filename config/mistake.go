package config

import (
	"errors"
	"strconv"
	"strings"
)

// Mistake is one thing that is wrong, or with Warning set only doubtful, in a
// file. Its texts never hold a secret.
type Mistake struct {
	// File is the file's path as it was given or found, or the name that Parse got.
	File string `json:"file"`
	// Line and Col are 1-based; Col counts bytes. Both are 0 where the mistake
	// is about the file as a whole, such as one that cannot be read.
	Line int `json:"line"`
	Col  int `json:"col"`
	// Path is where in the document, such as
	// tenants[0].registration.hooks[1].subscriptions[0].timeoutMs.
	Path string `json:"path"`
	// Value is what was found there, shortened to at most 80 bytes, or "" where
	// it could be a secret or there is nothing to show.
	Value string `json:"value,omitempty"`
	// What says what is wrong.
	What string `json:"what"`
	// Instead says what to write instead.
	Instead string `json:"instead"`
	// Warning is set where the document is usable all the same.
	Warning bool `json:"warning,omitempty"`

	// These are nothing to others: what it can come of, the path of the key that an
	// unknown one is most likely a slip of, and whether nothing of the value was read.
	cause  cause
	slipOf string
	unread bool
}

// String returns "file:line:col: path: what: what to write instead" on one line.
// The position is left out where there is none, the path where it is the document.
func (m Mistake) String() string {
	var b strings.Builder
	b.WriteString(m.File)
	if m.Line > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(m.Line))
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(m.Col))
	}
	b.WriteString(": ")
	if m.Warning {
		b.WriteString("warning: ")
	}
	if m.Path != "" {
		b.WriteString(m.Path)
		b.WriteString(": ")
	}
	b.WriteString(m.What)
	if m.Value != "" {
		b.WriteString(" (found ")
		b.WriteString(m.Value)
		b.WriteByte(')')
	}
	if m.Instead != "" {
		b.WriteString(": ")
		b.WriteString(m.Instead)
	}
	return b.String()
}

// Mistakes is every mistake of a file, ordered by file and position.
type Mistakes []Mistake

// Error returns one line per mistake.
func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

// AsMistakes returns the mistakes that err, as Load and its like return it,
// stands for. It is nil where err holds none.
func AsMistakes(err error) Mistakes {
	var ms Mistakes
	if errors.As(err, &ms) {
		return ms
	}
	return nil
}
