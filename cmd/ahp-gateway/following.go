package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/gateway"
)

// loadFollowed is load without a change. If the gateway file says that there is
// a store, and nobody follows it yet, that begins now: until followed, or followFormer
// where it comes to nothing, what was followed before goes on beside it.
func (s *server) loadFollowed(ctx context.Context, stop chan os.Signal, log *slog.Logger) (f *config.File, warnings []config.Mistake, err error) {
	f, warnings, err = s.load(config.Change{})
	if err != nil || f.AdminAPI.Store != "redis" || s.follower.Load() != nil && (!s.lastGood || f.Shared.Redis == s.redis) {
		return f, warnings, err
	}
	if err = s.startFollowing(ctx, stop, &f.Shared.Redis, s.keptDocuments(log), log); err != nil {
		return nil, warnings, config.Mistakes{{File: s.path, Path: "adminApi.store", What: "cannot be used, " + err.Error(), Instead: "correct that, or remove it"}}
	}
	return s.load(config.Change{})
}

// startFollowing follows the store of r from now on.
func (s *server) startFollowing(ctx context.Context, stop chan os.Signal, r *config.Redis, kept keptDocuments, log *slog.Logger) (err error) {
	s.loader.Earlier = kept.good()
	var follower *follower
	unlessStopped(ctx, stop, func(ctx context.Context) { follower, err = newFollower(ctx, r, kept, log) })
	if err != nil {
		return err
	}
	s.former = &following{s.follower.Swap(follower), s.redis}
	s.redis = *r
	return nil
}

// following is what is followed of which server; nobody is where there is no follower.
type following struct {
	*follower
	redis config.Redis
}

// followFormer follows what was followed before loadFollowed, whose configuration
// is not served. Where that began nothing it does nothing.
func (s *server) followFormer() {
	if s.former == nil {
		return
	}
	if late := s.follower.Swap(s.former.follower); late != nil {
		late.close()
	}
	s.redis, s.former = s.former.redis, nil
}

// leaveFormer stops following what was followed before loadFollowed, if that began
// anything.
func (s *server) leaveFormer() {
	if s.former != nil && s.former.follower != nil {
		s.former.close()
	}
	s.former = nil
}

// followKept returns f, the last good configuration, with the tenants of its
// store as they are now, or while that is not there with those that were kept.
func (s *server) followKept(ctx context.Context, stop chan os.Signal, f *config.File, log *slog.Logger) (*config.File, error) {
	if err := s.startFollowing(ctx, stop, &f.Shared.Redis, s.keptDocuments(log), log); err != nil {
		return nil, fmt.Errorf("%s: the store of tenants cannot be used, %w", s.kept.path(), err)
	}
	s.loader.Stored = s.follower.Load().served()
	return s.loadKept()
}

// keptDocuments returns what was kept of the store, where it is to be served.
func (s *server) keptDocuments(log *slog.Logger) keptDocuments {
	if !s.fallback {
		return keptDocuments{}
	}
	kept, err := s.kept.documents()
	if err != nil {
		log.Error("what was kept of the store cannot be used", "error", err)
	}
	return kept
}

// loadKept returns the last good configuration, because the files have a mistake.
func (s *server) loadKept() (*config.File, error) {
	s.lastGood, s.refused = true, true
	return s.kept.load(s.loader)
}

// follow serves what the store has now on what is served already, because the
// files have a mistake, or what they say cannot be used. It reports whether that
// could be done, and does nothing where no store is followed.
func (s *server) follow(ctx context.Context, stop chan os.Signal, log *slog.Logger) bool {
	follower := s.follower.Load()
	if follower == nil {
		return false
	}
	var f *config.File
	var err error
	for again := true; again; again = s.setAside(f, err) {
		if f, _, err = s.loadStored(follower, config.Change{}); err == nil {
			unlessStopped(ctx, stop, func(ctx context.Context) { err = s.Follow(ctx, f, nil) })
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case err != nil:
		follower.hold()
		logMistakes(log, err)
		log.Error("WHAT HAS CHANGED IN THE STORE OF TENANTS IS NOT SERVED, removed tenants and keys included", "error", err)
		return false
	}
	s.adoptStored(f, log)
	return true
}

// setAside has documents of the store left out with which f cannot be served, by
// err, because their backends cannot be asked: others wait for none of those. It
// reports whether that leaves something to be tried.
func (s *server) setAside(f *config.File, err error) bool {
	var unasked *gateway.Unasked
	if !errors.As(err, &unasked) {
		return false
	}
	aside := maps.Clone(s.loader.Unserved)
	if aside == nil {
		aside = make(map[string][]byte)
	}
	for _, id := range unasked.Tenants {
		stored := slices.ContainsFunc(f.Tenants, func(t config.Tenant) bool { return t.ID == id && t.File == config.StoredName(id) })
		if was, ok := s.loader.Unserved[id]; !stored || ok && bytes.Equal(was, s.loader.Stored[id]) {
			return false
		}
		aside[id] = s.loader.Stored[id]
	}
	s.loader.Unserved, s.asideSince = aside, time.Now()
	s.follower.Load().later()
	return true
}

// adoptStored goes by f, which is what was served before but for tenants of the store.
func (s *server) adoptStored(f *config.File, log *slog.Logger) {
	s.followed(f)
	s.offerAPI(f)
	s.keep(f)
	log.Info("the tenants of the store are served as they are there, on the configuration of before")
}

// loadStored returns what is served with the documents as they are now, and as
// they would be with change. Files that those name are watched from then on.
func (s *server) loadStored(follower *follower, change config.Change) (f *config.File, warnings []config.Mistake, err error) {
	s.loader.Stored = follower.served()
	for range 3 { // as load does
		if f, warnings, err = s.loader.LoadStored(change); err != nil {
			return nil, warnings, err
		}
		fresh := slices.DeleteFunc(configFiles(f), func(path string) bool {
			_, known := slices.BinarySearch(s.files, path) // there may be very many
			return known
		})
		if len(fresh) == 0 {
			break
		}
		s.files = slices.Concat(s.files, fresh)
		slices.Sort(s.files)
		known := contentsOf(s.loader.Digests, fresh)
		maps.Copy(known, s.known)
		s.known = known
	}
	return f, warnings, nil
}

// followNews has what has changed in the store served. No file is read again for it,
// and no backend asked, but those of tenants that have changed: it waits for nobody
// else's.
func (s *server) followNews(ctx context.Context, stop chan os.Signal) {
	const cause = "the store of tenants has changed"
	done := false
	if s.refused || s.loader.ServesStored() {
		log := s.log.With("cause", cause)
		if done = s.follow(ctx, stop, log); done && len(s.loader.Unserved) > 0 && time.Since(s.asideSince) >= followAgain {
			s.loader.Unserved = nil // the others have theirs, and wait for no backend
			done = s.follow(ctx, stop, log)
		}
	} else {
		done = s.reload(ctx, stop, cause, nil)
	}
	if follower := s.follower.Load(); follower != nil && !done {
		follower.later()
	}
}

// followed notes what of the store is not in f, which is served, and stops
// following where f has no store.
func (s *server) followed(f *config.File) {
	s.loader.Served()
	s.leaveFormer()
	follower := s.follower.Load()
	switch {
	case follower == nil:
	case f.AdminAPI.Store == "redis":
		follower.note(s.loader.LeftOut)
	default:
		s.unfollow()
	}
}

// unfollow stops following the store, if anybody does.
func (s *server) unfollow() {
	s.leaveFormer()
	if follower := s.follower.Swap(nil); follower != nil {
		follower.close()
	}
}

// news gets something when there are other documents to be served.
func (s *server) news() <-chan struct{} {
	if follower := s.follower.Load(); follower != nil {
		return follower.news
	}
	return nil
}

// stored is gateway.Options.Stored.
func (s *server) stored() *gateway.Stored {
	if follower := s.follower.Load(); follower != nil {
		return follower.status()
	}
	return nil
}
