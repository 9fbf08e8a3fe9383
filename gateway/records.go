package gateway

import (
	"fmt"
	"io"
	"os"

	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/config"
)

// openAudit opens the audit log that f asks for, if it asks for one.
func (g *Gateway) openAudit(f *config.File, stdout io.Writer) error {
	var sink audit.Sink
	switch {
	case f.Audit.File != "":
		file, err := audit.NewFileSink(f.Audit.File)
		if err != nil {
			return fmt.Errorf("gateway: audit log: %w", err)
		}
		g.auditFile, sink = file, file
	case f.Audit.Stdout:
		if stdout == nil {
			stdout = os.Stdout
		}
		sink = audit.NewWriterSink(stdout)
	default:
		return nil
	}
	overflow, _ := audit.ParseOverflow(f.Audit.Overflow)
	g.audit = audit.NewQueue(sink, f.Limits.AuditQueue, overflow, g.log)
	g.divideAudit(len(g.current.Load().parties))
	return nil
}

// divideAudit says how many tenants the audit queue is for. The admin API is one
// more: anybody who reaches its listener can have it leave records.
func (g *Gateway) divideAudit(tenants int) {
	switch {
	case g.audit == nil:
	case g.adminAPI != nil:
		g.audit.Divide(tenants + 1)
	default:
		g.audit.Divide(tenants)
	}
}

// put queues a record of a tenant's for the audit log, which there has to be.
func (g *Gateway) put(p *party, r *audit.Record) {
	if !g.audit.Put(p.records, r) {
		p.stats.unrecorded.Add(1)
	}
}
