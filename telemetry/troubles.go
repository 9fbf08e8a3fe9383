package telemetry

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Bounds of what the SDK can write to the log.
const (
	// troubleEvery is the time between two messages.
	troubleEvery = 10 * time.Second
	// troubleBytes is how much of one error's text is kept: an exporter quotes
	// what a collector answered.
	troubleBytes = 512
)

// troubles passes the SDK's own errors on to the log, at most one in
// troubleEvery. It is the SDK's error handler and the sink of its logger.
type troubles struct {
	log *slog.Logger

	mu         sync.Mutex
	last       time.Time
	suppressed int
}

func newTroubles(log *slog.Logger) *troubles { return &troubles{log: log} }

// Handle implements otel.ErrorHandler.
func (t *troubles) Handle(err error) {
	if err == nil {
		return
	}
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), troubleBytes)], "\uFFFD")
	t.report("telemetry error", slog.String("error", text))
}

func (t *troubles) report(message string, attrs ...any) {
	t.mu.Lock()
	now := time.Now()
	if !t.last.IsZero() && now.Sub(t.last) < troubleEvery {
		t.suppressed++
		t.mu.Unlock()
		return
	}
	suppressed := t.suppressed
	t.last, t.suppressed = now, 0
	t.mu.Unlock()
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	t.log.Warn(message, attrs...)
}

// Init implements logr.LogSink.
func (t *troubles) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink: the SDK's warnings have level 1, what is
// chattier is left out.
func (t *troubles) Enabled(level int) bool { return level <= 1 }

// Info implements logr.LogSink.
func (t *troubles) Info(_ int, message string, _ ...any) {
	t.report("telemetry warning", slog.String("message", message))
}

// Error implements logr.LogSink. It leaves out the values and the error, which
// quote environment variables: the SDK logs OTLP headers that it cannot parse,
// and those hold credentials.
func (t *troubles) Error(_ error, message string, _ ...any) {
	t.report("telemetry misconfigured, check the OTEL_* variables", slog.String("message", message))
}

// WithValues implements logr.LogSink.
func (t *troubles) WithValues(...any) logr.LogSink { return t }

// WithName implements logr.LogSink.
func (t *troubles) WithName(string) logr.LogSink { return t }
