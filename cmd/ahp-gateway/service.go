package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/gateway"
	"github.com/ahp-gateway/ahp-gateway/telemetry"
)

// flushTimeout bounds the last export of telemetry. A dead collector must not
// hold up the end of the process.
const flushTimeout = 3 * time.Second

// service is a gateway that serves, with the telemetry around it.
type service struct {
	*gateway.Gateway
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	// drain bounds the end: limits.drainTimeout of the configuration in use.
	drain time.Duration
}

// start serves f, which lastGood says was kept from before. Both listeners accept
// connections when it returns. When ctx ends while it waits for backends, it
// gives up. api and stored may be nil.
func (p program) start(ctx context.Context, f *config.File, log *slog.Logger, api http.Handler, stored func() *gateway.Stored, lastGood bool) (*service, error) {
	tel, err := telemetry.Setup(context.WithoutCancel(ctx), telemetry.Options{ServiceVersion: programVersion(), Logger: log})
	if err != nil {
		return nil, err
	}
	s := &service{log: log, telemetry: tel, drain: f.Limits.DrainTimeout}
	s.Gateway, err = gateway.New(ctx, f, gateway.Options{
		Logger:         log,
		MeterProvider:  tel.MeterProvider,
		TracerProvider: tel.TracerProvider,
		Propagator:     tel.Propagator,
		Tracing:        tel.Tracing,
		NewRoot:        tel.NewRoot,
		Metrics:        metrics(log, tel.Gather),
		AdminAPI:       api,
		Stored:         stored,
		Stdout:         p.stdout,
		LastGood:       lastGood,
		Version:        programVersion(),
	})
	if err != nil {
		s.flush()
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.shutdown())
	}
	return s, nil
}

// announce tells people and scripts where the service listens.
func (p program) announce(s *service) error {
	if admin := s.AdminURL(); admin != "" {
		s.log.Info("admin on " + admin)
	}
	return write(p.stdout, fmt.Appendf(nil, "listening on %s\n", s.URL()))
}

// end shuts s down in an orderly way, unless another signal comes meanwhile.
func (s *service) end(cause string, again <-chan os.Signal) error {
	s.log.Info("draining", "cause", cause, "timeout", s.drain)
	done := make(chan error, 1)
	go func() { done <- s.shutdown() }()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
		s.log.Info("ended")
		return nil
	case sig := <-again:
		return fmt.Errorf("ended at once by a second signal, %v", sig)
	}
}

// shutdown drains the gateway and exports the telemetry that is waiting.
func (s *service) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	err := s.Shutdown(ctx)
	s.flush()
	return err
}

// flush exports what telemetry is waiting. That it cannot is no failure of the
// gateway.
func (s *service) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := s.telemetry.Shutdown(ctx); err != nil {
		s.log.Warn("telemetry was lost", "error", err)
	}
}
