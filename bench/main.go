// Command bench measures the gateway and what it is compared with.
//
//	go run ./bench run      the gateway in every setting, against its floor and bare Go proxies
//	go run ./bench peers    the gateway against the proxies that are installed
//	go run ./bench check    a short run, held against thresholds.json
//	go run ./bench report   a Markdown table and an HTML page of the last results
//	go run ./bench compare  this gateway beside another build of it
//	go run ./bench drive    a load on a gateway that is running already
//
// README.md says what is measured and how to read it.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ahp-gateway/ahp-gateway/bench/load"
	"github.com/ahp-gateway/ahp-gateway/bench/peer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const usageText = "usage: bench run | peers | check | report | compare | drive   (each with -h for its flags)"

// run is the command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New(usageText)
	}
	name, args := args[0], args[1:]
	flags := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	switch name {
	case "run", "peers", "check", "compare":
		p := plan{workers: 1, rounds: 14, requests: 20000, out: "bench/results/" + name + ".json"}
		switch name {
		case "check":
			p.rounds, p.requests, p.out = 6, 10000, ""
		case "compare":
			p.out = ""
			flags.StringVar(&p.old, "old", "", "binary of the gateway to compare with")
		}
		flags.IntVar(&p.rounds, "rounds", p.rounds, "how often each cell is measured, in alternating order")
		flags.IntVar(&p.requests, "requests", p.requests, "in each round of each cell, of small events")
		flags.IntVar(&p.workers, "workers", p.workers, "processors that each program may use")
		flags.StringVar(&p.only, "only", "", "what to measure, comma-separated, of "+strings.Join(groupsOf[name], ", ")+"; default: all")
		flags.StringVar(&p.out, "out", p.out, "file for the results")
		thresholds := flags.String("thresholds", "bench/thresholds.json", "what check holds the results against")
		if err := flags.Parse(args); err != nil {
			return err
		}
		if err := p.check(name, flags.Args()); err != nil {
			return err
		}
		if name == "compare" && p.old == "" {
			return errors.New("compare: -old is missing: go build -o /tmp/old ./cmd/ahp-gateway at the commit to compare with")
		}
		named := false
		flags.Visit(func(f *flag.Flag) { named = named || f.Name == "out" })
		if p.only != "" && !named {
			p.out = "" // the usual file holds all groups
		}
		if p.old != "" {
			var err error
			if p.old, err = filepath.Abs(p.old); err != nil {
				return err
			}
			if _, err := exec.LookPath(p.old); err != nil {
				return fmt.Errorf("compare: -old: %w", err)
			}
		}
		results, err := measure(ctx, name, p, stderr)
		if err != nil {
			return err
		}
		if p.out != "" {
			if err := results.save(p.out); err != nil {
				return err
			}
		}
		if name == "check" {
			return check(results, *thresholds, p.only == "", stdout)
		}
		if name == "compare" {
			return writeFigures(stdout, results)
		}
		return writeMarkdown(stdout, []*Results{results}, *thresholds)
	case "report":
		page := flags.String("html", "bench/results/report.html", "where the page goes")
		thresholds := flags.String("thresholds", "bench/thresholds.json", "the goals")
		if err := flags.Parse(args); err != nil {
			return err
		}
		return report(flags.Args(), *thresholds, *page, stdout)
	case "drive":
		return drive(flags, args, stdout)
	case "serve":
		return serve(ctx, flags, args, stdout)
	default:
		return fmt.Errorf("no command %q; %s", name, usageText)
	}
}

// drive sends a load to a gateway and tells how it was answered.
func drive(flags *flag.FlagSet, args []string, stdout io.Writer) error {
	to := flags.String("url", "http://127.0.0.1:8787/hooks", "where events go")
	secret := flags.String("key", "", "bearer key")
	draft := flags.Bool("draft", false, "snapshot draft instead of 0.1")
	size := flags.Int("size", small, "of an event, in bytes; the gateway's limits.body has to allow it")
	same := flags.Bool("duplicates", false, "a few event ids again and again")
	t, o := load.Target{Accept: decided}, load.Plan{}
	flags.Uint64Var(&o.Requests, "requests", 20000, "how many, unless there is a duration")
	flags.DurationVar(&o.Duration, "duration", 0, "how long, in place of a number of requests")
	flags.Float64Var(&o.Rate, "rate", 0, "requests per second; 0 is as many as are answered")
	flags.IntVar(&t.Connections, "connections", 32, "open at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	u, err := url.Parse(*to)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("drive: %q is no URL", *to)
	case flags.NArg() > 0:
		return fmt.Errorf("drive: %q is no flag", flags.Arg(0))
	case o.Requests == 0 && o.Duration <= 0 || t.Connections < 1 || o.Rate < 0:
		return errors.New("drive: nothing would be sent")
	}
	if o.Duration > 0 {
		o.Requests = 0
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	if t.Address = net.JoinHostPort(u.Hostname(), port); u.Scheme == "https" {
		t.TLS = &tls.Config{ServerName: u.Hostname()}
	}
	t.Precise = o.Rate > 0 && t.TLS == nil
	var headers []string
	if *secret != "" {
		headers = append(headers, "Authorization: Bearer "+*secret)
	}
	t.Templates = []*load.Template{load.NewTemplate(u.Host, u.RequestURI(), event(*draft, false, *size), headers...)}
	ids := fresh(rand.IntN(maxSeries)) // not those of an earlier run
	if o.ID = ids; *same {
		o.ID = func(n uint64) uint64 { return ids(n % 64) }
	}
	r, err := load.Run(t, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d requests answered in %s: %.0f/s, %d failed\n", r.Requests, r.Elapsed.Round(time.Millisecond), r.PerSecond(), r.Errors)
	l := latencies(r.Latency)
	for _, q := range quantiles {
		fmt.Fprintf(stdout, "%-6s %8.0f µs\n", q.name, l[q.name])
	}
	if o.Rate > 0 {
		fmt.Fprintf(stdout, "the generator was late by %.0f µs or more for 1 %% of them\n", lag(r))
	}
	switch {
	case r.Errors > 0:
		return fmt.Errorf("drive: %d requests failed, such as: %s", r.Errors, r.First)
	case missed(r, o.Rate):
		return fmt.Errorf("drive: only %.0f/s were answered of %.0f/s", r.PerSecond(), o.Rate)
	}
	return nil
}

// serve is one of our own peers in a process of its own.
func serve(ctx context.Context, flags *flag.FlagSet, args []string, stdout io.Writer) error {
	var s peer.Script
	to := flags.String("to", "", "URL of the backend")
	hops := flags.Int("hops", 1, "calls to the backend for each request")
	flags.StringVar(&s.Effects, "effects", "", "raw effects array")
	flags.Float64Var(&s.Deny, "deny", 0, "share of requests denied")
	flags.Float64Var(&s.Fail, "fail", 0, "share of requests answered 503")
	flags.Func("delay", "how long an answer takes: 5ms or exp:5ms", s.ParseDelay)
	if len(args) == 0 {
		return errors.New("serve: backend, fasthttp, nethttp or sink")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	fmt.Fprintf(stdout, "listening on http://%s/hooks\n", l.Addr())
	switch args[0] {
	case "backend":
		return peer.Backend(l, s)
	case "fasthttp":
		return peer.FastHTTP(l, *to, *hops)
	case "nethttp":
		return peer.NetHTTP(l, *to)
	case "sink":
		return peer.Sink(l)
	default:
		return fmt.Errorf("serve: no %q", args[0])
	}
}
