package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/config"
)

type serveOptions struct {
	config, logLevel, logFormat string
	stateDir, fallback          string
}

func (p program) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Serve a gateway file",
		Long: `Serves the gateway file until SIGTERM or SIGINT. Once events are accepted it
prints one line on standard output, "listening on http://HOST:PORT"; the log goes
to standard error.

SIGHUP reads the file and everything that it names again, and so does a change of
the content of any of them. Requests under way finish with the configuration they
began with. A file with a mistake changes nothing: every mistake is logged, and
the running configuration stays. Settings that take a restart are logged.

Backends of draft that list no subscriptions are asked for them, at start and at
every reload. One that cannot be asked is treated like a mistake in the file,
unless discovery.onFailure is skip.

With --state-dir, the configuration that is served is kept in that folder, in one
file, as it was understood: secrets that it refers to are not in it, nor are the
files of TLS. Another file holds the documents of the store that adminApi.store
names. With --fallback last-good, a file with a mistake does not keep the
gateway from starting: it serves what was kept, says so in its log, in /readyz and
in a metric, and takes the file over once that is corrected. Likewise it serves the
documents that were kept of the store, until that can be had, and those of them
that it has lost. The tenants of the store are followed also while a file has a
mistake, with the last good configuration around them.

SIGTERM and SIGINT drain: readiness fails, what was accepted is answered within
limits.drainTimeout, queues and telemetry are flushed. A second one ends at once.

Under systemd with Type=notify, the unit counts as started once events are accepted.

Exit codes: 0 an orderly end, 1 a configuration or runtime error or an end at
once, 2 wrong usage.`,
		Example: `  ahp-gateway serve --config gateway.yaml
  ahp-gateway serve --config gateway.yaml --log-level debug --log-format json
  ahp-gateway serve --config gateway.yaml --state-dir /var/lib/ahp-gateway --fallback last-good`,
		Args: noArguments("--config %s"),
		RunE: action(func(ctx context.Context) error { return p.serve(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVarP(&o.config, "config", "c", "", "gateway file (required)")
	f.StringVar(&o.logLevel, "log-level", "", "debug, info, warn or error, over log.level of the file")
	f.StringVar(&o.logFormat, "log-format", "", "text or json, over log.format of the file")
	f.StringVar(&o.stateDir, "state-dir", "", "folder to keep the last good configuration in")
	f.StringVar(&o.fallback, "fallback", "", "last-good: start with what --state-dir holds if the file has a mistake or the store is not there")
	return cmd
}

func (p program) serve(ctx context.Context, o serveOptions) error {
	// First of all, because until then a signal has its default effect: SIGHUP
	// would end the process that it is meant to reload.
	hangup := make(chan os.Signal, 1)
	p.notify(hangup, syscall.SIGHUP)
	stop := make(chan os.Signal, 2)
	p.notify(stop, syscall.SIGTERM, os.Interrupt)
	// A log collector that has gone must not take the gateway with it.
	signal.Ignore(syscall.SIGPIPE)

	switch {
	case o.config == "":
		return usage("--config is needed")
	case !slices.Contains([]string{"", "debug", "info", "warn", "error"}, o.logLevel):
		return usage("--log-level is %.64q; want debug, info, warn or error", o.logLevel)
	case !slices.Contains([]string{"", "text", "json"}, o.logFormat):
		return usage("--log-format is %.64q; want text or json", o.logFormat)
	case !slices.Contains([]string{"", "last-good"}, o.fallback):
		return usage("--fallback is %.64q; want last-good", o.fallback)
	case o.fallback != "" && o.stateDir == "":
		return usage("--fallback last-good needs --state-dir, where it is kept")
	}
	s := newServer(o.config)
	if o.stateDir != "" {
		s.kept, s.fallback = &keeper{dir: o.stateDir}, o.fallback != ""
	}
	f, warnings, err := s.load(config.Change{})
	mistakes := err
	if mistakes != nil && o.fallback != "" {
		var kept error
		if f, kept = s.loadKept(); kept != nil {
			p.report(nil, kept)
		}
	}
	if f == nil {
		p.report(warnings, mistakes)
		return &exit{exitFailure, fmt.Errorf("%s cannot be served", o.config)}
	}
	log := newLogger(p.stderr, config.Log{Level: cmp.Or(o.logLevel, f.Log.Level), Format: cmp.Or(o.logFormat, f.Log.Format)})
	defer s.unfollow()
	switch {
	case f.AdminAPI.Store != "redis":
	case s.lastGood:
		f, err = s.followKept(ctx, stop, f, log)
	default:
		f, warnings, err = s.loadFollowed(ctx, stop, log)
	}
	if f == nil {
		p.report(warnings, err)
		return &exit{exitFailure, fmt.Errorf("%s cannot be served", o.config)}
	}
	logWarnings(log, warnings)
	if mistakes != nil {
		logMistakes(log, mistakes)
		log.Error("THE LAST GOOD CONFIGURATION IS SERVED, because the present one has a mistake: what was changed since does not hold",
			"mistakes", len(config.AsMistakes(mistakes)), "kept", s.kept.path())
	}
	unlessStopped(ctx, stop, func(ctx context.Context) { s.service, err = p.start(ctx, f, log, s.api, s.stored, s.lastGood) })
	if errors.Is(err, context.Canceled) {
		log.Info("ended before anything was served")
		return nil
	}
	if err != nil {
		return err
	}
	s.followed(f)
	s.offerAPI(f)
	if err := p.announce(s.service); err != nil {
		s.log.Error("standard output", "error", err)
	}
	tellManager(s.log, "READY=1")
	if !s.lastGood {
		s.keep(f)
	}
	cause, err := s.loop(ctx, hangup, stop)
	close(s.ending)
	tellManager(s.log, "STOPPING=1")
	return errors.Join(err, s.end(cause, stop))
}

// unlessStopped calls f with a context that ends when a signal comes on stop,
// and leaves that signal there for whoever looks next. What f does may wait for
// the network, and a signal to end must not wait for that.
func unlessStopped(ctx context.Context, stop chan os.Signal, f func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	select {
	case <-done:
	case sig := <-stop:
		cancel()
		<-done
		select {
		case stop <- sig:
		default: // there is another one
		}
	}
}

// server is a service that follows its gateway file. One goroutine uses it.
type server struct {
	*service
	path   string // of the gateway file, as it was given
	loader *config.Loader
	kept   *keeper // nil without a folder for it
	// fallback has what is kept served in place of what cannot be had.
	fallback bool
	// lastGood is set while what was kept is served, and refused while the files
	// have a mistake.
	lastGood, refused bool
	asideSince        time.Time // when there was last a document that cannot be served
	files             []string
	known             contents

	api       *admin.API
	store     *admin.Folder // of the tenants in folder; nil unless the API needs one
	folder    string
	follower  atomic.Pointer[follower] // nil unless there is a store that replicas share
	redis     config.Redis             // that it follows
	former    *following               // until what is followed since is served; nil otherwise
	proposals chan proposal            // from the API to loop
	ending    chan struct{}            // closed once loop takes none any more
}

func newServer(path string) *server {
	s := &server{path: path, loader: config.NewLoader(path, nil), proposals: make(chan proposal), ending: make(chan struct{})}
	s.api = admin.New(admin.Options{
		Apply:   s.apply,
		Record:  func(r *audit.Record) { s.RecordChange(r) },
		Skipped: func(tenant string) []string { return s.Skipped(tenant) },
		Admits:  func(r *http.Request) bool { return s.Admits(r) },
	})
	return s
}

// load reads the gateway file, and what its files held just before, so that a
// change that comes while they are read is noticed later. The files are read as
// they would be with change.
func (s *server) load(change config.Change) (f *config.File, warnings []config.Mistake, err error) {
	if follower := s.follower.Load(); follower != nil {
		s.loader.Stored = follower.served()
	}
	if s.files == nil {
		path := s.path
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		s.files = []string{path}
	}
	// Which files there are is known only afterwards. If they keep changing,
	// what was known of the last ones does not match, and they are read again.
	for range 3 {
		s.known = contentsOf(s.loader.Digests, s.files)
		f, warnings, err = s.loader.LoadWith(change)
		var files []string
		if err == nil {
			files = configFiles(f)
		} else {
			// What is to be corrected may be in a file that is new.
			files = append(slices.Clone(s.files), s.loader.Sources...)
			slices.Sort(files)
			files = slices.Compact(files)
		}
		if slices.Equal(files, s.files) {
			break
		}
		s.files = files
	}
	return f, warnings, err
}

// loop follows signals, file changes and proposals until it is time to end, and
// returns why it is.
func (s *server) loop(ctx context.Context, hangup <-chan os.Signal, stop chan os.Signal) (cause string, err error) {
	w := newWatcher(s.log, s.loader.Digests, pollEvery)
	defer w.close()
	w.watch(s.files, s.known)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err().Error(), nil
		case sig := <-stop:
			return sig.String(), nil
		case err := <-s.Failed():
			return "the public listener stopped", err
		case sig := <-hangup:
			// Somebody says that there is something to read: no file's time is
			// relied on.
			s.loader.Digests.Forget()
			if follower := s.follower.Load(); follower != nil {
				follower.accept()
			}
			s.reload(ctx, stop, sig.String(), nil)
			w.watch(s.files, s.known)
		case q := <-s.proposals:
			q.answer <- s.propose(stop, q)
			w.watch(s.files, s.known)
		case <-s.news():
			s.followNews(ctx, stop)
			w.watch(s.files, s.known)
		case e := <-w.events:
			w.note(e)
		case err := <-w.errors:
			w.trouble(err)
		case <-w.due:
			if changed := w.stale(); len(changed) > 0 {
				s.reload(ctx, stop, "a file has changed", changed)
				w.watch(s.files, s.known)
			}
		}
	}
}

// maxChangedShown bounds how many of the files that have changed are named.
const maxChangedShown = 10

// reload serves what the gateway file says now, or goes on with what it said, and
// reports which. A signal on stop makes it give up.
func (s *server) reload(ctx context.Context, stop chan os.Signal, cause string, changed []string) bool {
	log := s.log.With("cause", cause)
	if len(changed) > 0 {
		log = log.With("changed", changed[:min(len(changed), maxChangedShown)], "changed_files", len(changed))
	}
	var f *config.File
	var restart []string
	var err error
	s.loader.Unserved = nil
	for again := true; again; again = s.setAside(f, err) {
		var warnings []config.Mistake
		f, warnings, err = s.loadFollowed(ctx, stop, s.log)
		logWarnings(log, warnings)
		if s.refused = err != nil; s.refused {
			s.followFormer()
			s.Rejected()
			logMistakes(log, err)
			log.Error("configuration refused, the running one stays in use", "mistakes", len(config.AsMistakes(err)))
			return s.follow(ctx, stop, log)
		}
		unlessStopped(ctx, stop, func(ctx context.Context) { restart, err = s.Reload(ctx, f) })
	}
	if err != nil {
		s.followFormer()
	}
	if errors.Is(err, context.Canceled) {
		log.Info("reload given up, because the process is to end")
		return false
	}
	if err != nil {
		log.Error("configuration refused, the running one stays in use", "error", err)
		return s.follow(ctx, stop, log)
	}
	s.adopt(f, restart, log)
	return true
}

// adopt goes by f, which is served since just now.
func (s *server) adopt(f *config.File, restart []string, log *slog.Logger) {
	s.drain = f.Limits.DrainTimeout
	s.lastGood, s.refused = false, false
	s.followed(f)
	s.offerAPI(f)
	log.Info("configuration reloaded")
	s.keep(f)
	for _, setting := range restart {
		log.Warn("a changed setting takes a restart", "setting", setting)
	}
}

func logMistakes(log *slog.Logger, err error) {
	for _, m := range config.AsMistakes(err) {
		log.Error("configuration mistake", "mistake", m.String())
	}
}

func logWarnings(log *slog.Logger, warnings []config.Mistake) {
	for _, w := range warnings {
		log.Warn("configuration warning", "warning", w.String())
	}
}
