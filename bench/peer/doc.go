// Package peer holds the servers that a benchmark of the gateway needs beside
// it: the policy backend that it calls, and the proxies that it is compared
// with.
//
// A proxy forwards one request and one answer, byte for byte. It decides
// nothing, remembers nothing and writes nothing down: it is the least that any
// program in this place must do.
package peer
