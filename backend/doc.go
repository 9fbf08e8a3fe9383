// Package backend is the HTTP client to one policy backend.
//
// It turns one ahp.Call into at most two HTTP/1.1 exchanges inside the call's
// deadline and every way in which they can fail into an ahp.FailureClass. The
// second exchange happens only when a kept-alive connection turns out to have
// been closed by the backend before the first byte of an answer (AHP-FAIL-002).
// With an OAuth client, whose tokens are obtained here too, there is one more if
// the backend rejects a token.
//
// Connections are pooled by fasthttp's HostClient. The message itself is
// written and read here: fasthttp's own response reader accepts an answer with
// both Content-Length and Transfer-Encoding, takes the last of two
// Content-Type fields, takes the end of the connection for the end of a body,
// and keeps a connection on which bytes follow the answer. A decision must not
// rest on an answer that two readers could read differently.
//
// What is refused although HTTP would allow it: bodies that end with the
// connection (a truncated one looks the same), any content coding, folded
// header lines, bare line feeds, and redirects (AHP-HTTP-001). HTTP/2 is not spoken.
package backend
