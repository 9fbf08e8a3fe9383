package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/config"
)

// proposal is a change on its way from the admin API to the goroutine that
// alone changes what is served.
type proposal struct {
	ctx    context.Context
	change admin.Change
	answer chan<- applied // takes one without waiting
}

// applied is what came of a proposal.
type applied struct {
	generation uint64
	err        error
}

// apply implements admin.Options.Apply.
func (s *server) apply(ctx context.Context, c admin.Change) (generation uint64, err error) {
	answer := make(chan applied, 1)
	select {
	case s.proposals <- proposal{ctx, c, answer}:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.ending:
		return 0, context.Canceled
	}
	// Whoever has taken it answers, and gives up by itself when ctx ends.
	a := <-answer
	return a.generation, a.err
}

// maxStale bounds how often a change is tried that other replicas' changes come before.
const maxStale = 5

// propose serves what the files would say with a change in them, and then puts
// the change in place. A restart in between finds the files as they were, and
// nobody was told otherwise.
func (s *server) propose(stop chan os.Signal, q proposal) applied {
	log := s.log.With("cause", "admin API")
	// A change of other files that loop has still to notice stays to be noticed
	// if this comes to nothing.
	files, known := s.files, s.known
	undo := func() error { return nil }
	var err error
	for range maxStale {
		if err = s.tryProposal(stop, &q, &undo, log); !errors.Is(err, errStale) {
			break
		}
	}
	if err != nil {
		s.files, s.known = files, known
		if err := undo(); err != nil {
			log.Error("a change that came to nothing cannot be taken back", "error", err)
		}
		return applied{err: err}
	}
	return applied{generation: s.Generation()}
}

// tryProposal is propose, but for what is left to do where it fails: then undo
// takes back what Begin, which is called once, has done.
func (s *server) tryProposal(stop chan os.Signal, q *proposal, undo *func() error, log *slog.Logger) error {
	follower, stored := s.follower.Load(), strings.HasPrefix(q.change.Path, config.StoredName(""))
	switch {
	case !stored:
	case follower == nil:
		return admin.ErrUnavailable
	default: // before anything is served that cannot be stored
		var err error
		unlessStopped(q.ctx, stop, func(ctx context.Context) { err = follower.begin(ctx) })
		if err != nil {
			return err
		}
		defer follower.release()
	}
	if begin := q.change.Begin; begin != nil {
		took, err := begin()
		if err != nil {
			return err
		}
		*undo, q.change.Begin = took, nil
	}
	files, known := s.files, s.known
	unserved, err := s.serveChange(stop, q, follower, stored, s.refused, log)
	if unserved && stored && q.ctx.Err() == nil && !errors.Is(err, context.Canceled) { // by what the files say, perhaps
		s.files, s.known = files, known
		_, err = s.serveChange(stop, q, follower, stored, true, log)
	}
	return err
}

// serveChange is tryProposal for a change that has begun, with the files as they
// are or asBefore. unserved reports that the gateway cannot serve what was read.
func (s *server) serveChange(stop chan os.Signal, q *proposal, follower *follower, stored, asBefore bool, log *slog.Logger) (unserved bool, err error) {
	f, warnings, asBefore, err := s.loadChange(follower, q.change.Change, stored, asBefore)
	if err == nil {
		err = q.change.Check(warnings)
	}
	if err != nil {
		return false, err
	}
	served := false
	commit := func() error {
		served = true
		err := q.change.Commit()
		if err != nil && !errors.Is(err, errStale) {
			log.Error("a change was served and cannot be stored: it is taken back", "error", err)
		}
		return err
	}
	var restart []string
	unlessStopped(q.ctx, stop, func(ctx context.Context) {
		if asBefore {
			err = s.Follow(ctx, f, commit)
		} else {
			restart, err = s.Propose(ctx, f, commit)
		}
	})
	switch {
	case err != nil:
		return !served && !asBefore, err
	case asBefore:
		s.adoptStored(f, log)
		return false, nil
	case stored: // it is no file that is watched
	case q.change.Data == nil:
		delete(s.known, q.change.Path)
	default:
		s.known[q.change.Path] = sha256.Sum256(q.change.Data)
	}
	s.adopt(f, restart, log)
	return false, nil
}

// loadChange is load for a proposal. A change of what is in the store waits for no
// file that has a mistake: then the configuration is as before, but for the change,
// as it is where the files are not to be read at all.
func (s *server) loadChange(follower *follower, change config.Change, stored, unread bool) (f *config.File, warnings []config.Mistake, asBefore bool, err error) {
	if !stored || !unread {
		files, known := s.files, s.known
		f, warnings, err = s.load(change)
		elsewhere := slices.ContainsFunc(config.AsMistakes(err), func(m config.Mistake) bool { return m.File != change.Path })
		if !stored || !elsewhere {
			return f, warnings, false, err
		}
		s.files, s.known = files, known // loop has still to notice what is wrong
	}
	g, own, failed := s.loadStored(follower, change)
	if errors.Is(failed, config.ErrNoStore) && err != nil {
		return f, warnings, false, err
	}
	return g, own, true, failed
}

// offerAPI has the admin API go by f, which is served.
func (s *server) offerAPI(f *config.File) {
	folder := ""
	if f.AdminAPI.Store == "directory" {
		folder = f.TenantsDir
	}
	switch {
	case folder == "":
		s.folder, s.store = "", nil
	case folder != s.folder:
		var err error
		s.folder = folder
		if s.store, err = admin.OpenFolder(folder); err != nil {
			s.log.Error("the folder of tenants is not as the admin API needs it", "error", err)
			s.folder = "" // looked at again with the next configuration
		}
	}
	var store admin.Store
	if s.store != nil {
		store = s.store
	}
	if follower := s.follower.Load(); follower != nil {
		store = follower
	}
	secrets, err := f.AdminAPI.Secrets(nil)
	if err != nil {
		s.log.Error("the admin API can change no secret", "error", err)
	}
	if err := s.api.Use(f, store, secrets, s.lastGood); err != nil {
		s.log.Error("the admin API goes by an older configuration", "error", err)
	}
}
