package config

import "time"

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Default returns a gateway configuration with every default and without a
// tenant, which alone a file has to add.
func Default() File {
	return File{
		Listen: "127.0.0.1:8787",
		Admin:  "127.0.0.1:8788",
		Log:    Log{Level: "info", Format: "text"},
		Limits: Limits{
			Body:              mib,
			Response:          mib,
			Headers:           16 * kib,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      10 * time.Second,
			IdleTimeout:       time.Minute,
			Connections:       16384,
			ConnectionsPerIP:  1024,
			InFlight:          8192,
			InFlightPerTenant: 1024,
			Budget:            30 * time.Second,
			ObserveQueue:      1024,
			BodyBytes:         256 * mib,
			ObserveBytes:      64 * mib,
			AuditQueue:        8192,
			DrainTimeout:      25 * time.Second,
		},
		Dedupe: Dedupe{Entries: 4096, Bytes: 8 * mib, TTL: 5 * time.Minute},
		FailClosed: FailClosed{
			Reason: "Required policy backend unavailable.",
			Code:   "io.ahp-gateway.fail_closed",
		},
		Audit:     Audit{Overflow: "drop"},
		Discovery: Discovery{Timeout: 5 * time.Second, OnFailure: "refuse"},
		Metrics:   Metrics{Tenants: 1000},
	}
}

// defaultWeight is the weight of a tenant that the file gives none.
const defaultWeight = 1

// DefaultBackend returns the settings of a backend that the file says nothing
// about. AllowPrivate is for a tenant of a list; the open tenant has it true.
func DefaultBackend() BackendSettings {
	return BackendSettings{
		InFlight:    512,
		Connections: 512,
		Retry:       true,
		Breaker: Breaker{
			Window:  30 * time.Second,
			Buckets: 10,
			Volume:  20,
			Ratio:   0.5,
			OpenFor: 5 * time.Second,
			Probes:  3,
		},
	}
}

// defaultBurst is the token bucket of a rate that comes without a burst: two
// seconds' worth, and never less than one token, which would admit nothing.
func defaultBurst(rate float64) int {
	if rate <= 0 {
		return 0
	}
	if rate >= maxCount/2 {
		return maxCount
	}
	return max(1, int(2*rate))
}
