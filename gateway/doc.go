// Package gateway puts the parts together: it turns a configuration into a
// snapshot (assemble.go), answers harnesses on the public listener
// (handler.go), runs each event through its chain of backends (chain.go),
// delivers observations and shadow calls off the request path (courier.go),
// counts what happens (stats.go), and serves operators on a private listener
// (admin.go).
//
// A request loads one snapshot and uses nothing else of the configuration, so
// a reload is one atomic store and never mixes two configurations.
package gateway
