// Package load sends HTTP/1.1 requests and measures when the answers come.
//
// A closed loop sends a connection's next request when its last one was
// answered: it finds how much a server can do. An open loop sends at a constant
// rate whatever the answers do, and counts each latency from the moment the
// request was due: a server that stalls is charged for every request that it
// kept waiting.
package load
