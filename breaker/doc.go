// Package breaker keeps one policy backend's trouble from becoming the
// gateway's: a bulkhead caps the calls in flight, and a circuit breaker stops
// calling a backend that keeps failing and probes it until it has recovered.
package breaker
