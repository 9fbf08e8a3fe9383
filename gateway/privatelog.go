package gateway

import (
	"bytes"
	"log"
	"log/slog"
)

// privateLog takes the messages of net/http, which are about connections and
// handlers that panic. What they quote may be what a caller sent, a credential
// as well as anything else: of its own messages the first two words stay, and of a
// panic where it was, without its value.
type privateLog struct{ log *slog.Logger }

// maxStack bounds what is logged of where a panic was, in bytes.
const maxStack = 8 << 10

// Write implements io.Writer. log.Logger calls it once for each message.
func (l privateLog) Write(message []byte) (int, error) {
	n := len(message)
	message, own := bytes.CutPrefix(message, []byte("http: "))
	if own && bytes.HasPrefix(message, []byte("panic ")) {
		var stack []byte
		if at := bytes.LastIndex(message, []byte("\ngoroutine ")); at >= 0 {
			stack = message[at+1:]
		}
		l.log.Error("private listener: a handler panicked", "stack", string(stack[:min(len(stack), maxStack)]))
		return n, nil
	}
	var words [][]byte
	if own {
		words = bytes.SplitN(message, []byte(" "), 3)
		words = words[:min(len(words), 2)]
	}
	// What a handshake came to is for debugging only, because anybody who reaches
	// the listener can fail one.
	report := l.log.Warn
	if own && bytes.HasPrefix(message, []byte("TLS handshake error")) {
		report = l.log.Debug
	}
	report("private listener", "message", string(bytes.Join(words, []byte(" ")))+" (the rest is withheld)")
	return n, nil
}

// newPrivateLog returns a logger of net/http that writes to l.
func newPrivateLog(l *slog.Logger) *log.Logger { return log.New(privateLog{l}, "", 0) }
