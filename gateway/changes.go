package gateway

import (
	"context"
	"log/slog"

	"github.com/ahp-gateway/ahp-gateway/audit"
)

// RecordChange records what the admin API was asked for: in the audit log, and
// where there is none in the process log. What came without a good key is then
// logged for debugging only, because anybody who reaches the listener can send it.
func (g *Gateway) RecordChange(r *audit.Record) {
	if g.audit != nil {
		g.audit.Put(g.changes, r)
		return
	}
	level := slog.LevelInfo
	if r.Change.By == "" {
		level = slog.LevelDebug
	}
	g.log.Log(context.Background(), level, "admin change", "outcome", r.Change.Outcome(), "status", r.Change.Status, "action", r.Change.Action,
		"by", r.Change.By, "tenant", r.Tenant, "secret", r.Change.Secret, "before", r.Change.Before, "after", r.Change.After, "generation", r.Generation)
}
