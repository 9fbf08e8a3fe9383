package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/internal/samplepolicy"
)

func (p program) demoCommand() *cobra.Command {
	listen := ""
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the gateway with two sample policies, to try it out",
		Long: `Runs a gateway and two sample policy backends in one process, without a file:
rules that deny force pushes and the removal of the root folder, and a scanner
for secrets. Both snapshots of the protocol are served. It prints commands to
try, and ends with Ctrl-C.

The samples show how a backend is written; they are no protection.`,
		Example: `  ahp-gateway demo
  ahp-gateway demo --listen 127.0.0.1:0`,
		Args: cobra.NoArgs,
		RunE: action(func(ctx context.Context) error { return p.demo(ctx, listen) }),
	}
	cmd.Flags().StringVar(&listen, "listen", config.Default().Listen, "loopback address; port 0 is any free one")
	return cmd
}

func (p program) demo(ctx context.Context, listen string) error {
	stop := make(chan os.Signal, 2)
	p.notify(stop, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)

	if !isLoopback(listen) {
		return usage("--listen is %.64q; want a loopback address with a port, such as 127.0.0.1:8787, because the demo admits everyone", listen)
	}
	rules, err := samplepolicy.DefaultRules()
	if err != nil {
		return err
	}
	// The backends outlive the gateway: it may still be asking them.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	backends := &samples{failed: make(chan error, 2)}
	defer backends.running.Wait()
	defer cancel()
	rulesURL, err := backends.start(background, samplepolicy.Rules(rules))
	if err != nil {
		return err
	}
	secretsURL, err := backends.start(background, samplepolicy.Secrets())
	if err != nil {
		return err
	}
	f, _, err := config.Parse("demo.yaml", demoFile(listen, freeAdmin(listen), rulesURL, secretsURL), nil)
	if err != nil {
		return fmt.Errorf("the built-in configuration: %w", err)
	}
	s, err := p.start(ctx, f, newLogger(p.stderr, config.Log{Level: "warn"}), nil, nil, false)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w (--listen 127.0.0.1:0 takes any free port)", err)
	} else if err != nil {
		return err
	}
	err = p.announce(s)
	if err == nil {
		err = write(p.stdout, instructions(p.invocation(), s.URL(), s.AdminURL()))
	}
	if err != nil {
		s.log.Error("standard output", "error", err)
	}
	select {
	case <-ctx.Done():
		return s.end(ctx.Err().Error(), stop)
	case sig := <-stop:
		return s.end(sig.String(), stop)
	case err := <-backends.failed:
		return errors.Join(err, s.end("a sample backend failed", stop))
	}
}

// isLoopback reports whether host:port can be reached from this machine alone.
func isLoopback(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// freeAdmin returns the usual address of the private listener if nobody has it
// now or is about to, or any free one.
func freeAdmin(listen string) string {
	const free = "127.0.0.1:0"
	usual := config.Default().Admin
	if listen == usual {
		return free
	}
	l, err := net.Listen("tcp", usual)
	if err != nil {
		return free
	}
	_ = l.Close()
	return usual
}

// demoFile is the gateway file of the demo.
func demoFile(listen, admin, rulesURL, secretsURL string) []byte {
	const hook = `      - id: %s
        transport: {type: http, url: %q}
        subscriptions:
          - {events: [tool.before], mode: intercept, timeoutMs: 2000, failurePolicy: fail-closed%s}
`
	b := fmt.Appendf(nil, "listen: %q\nadmin: %q\nregistration:\n", listen, admin)
	for _, v := range ahp.Versions {
		content := ""
		if v == ahp.Draft { // where the selection has to be said
			content = ", content: {default: omit}"
		}
		b = fmt.Appendf(b, "  - protocolVersion: %q\n    hooks:\n", v)
		b = fmt.Appendf(b, hook, "io.ahp-gateway.demo.rules", rulesURL, content)
		b = fmt.Appendf(b, hook, "io.ahp-gateway.demo.secrets", secretsURL, content)
	}
	return b
}

// samples are the sample backends of a demo.
type samples struct {
	running sync.WaitGroup
	failed  chan error // holds one error of each
}

// start serves h on any free loopback port until ctx ends, and returns its URL.
func (s *samples) start(ctx context.Context, h http.Handler) (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("sample backend: %w", err)
	}
	s.running.Go(func() {
		if err := samplepolicy.Serve(ctx, l, h); err != nil {
			s.failed <- err
		}
	})
	return "http://" + l.Addr().String() + "/hooks", nil
}
