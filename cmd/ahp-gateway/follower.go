package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/gateway"
	"github.com/ahp-gateway/ahp-gateway/shared"
)

const (
	// followEvery is the time between two looks for changes that other replicas
	// have made: one small question to the server.
	followEvery = 500 * time.Millisecond
	// followAgain is after how long documents that could not be served, or what
	// cannot be all the documents there are, are tried again.
	followAgain = 30 * time.Second
)

// follower follows the documents of tenants in the store that replicas share.
// It is the admin API's store too. It is safe for concurrent use.
//
// What it knows stays where the store cannot be reached. A store that has lost
// its data is not followed into that: the documents of before are kept, under
// what has been written since, and the API changes nothing, until the data is
// back or somebody accepts the loss.
type follower struct {
	// news gets something, at most one, when served returns something else.
	news chan struct{}

	store *shared.Store
	docs  *shared.Documents
	log   *slog.Logger
	all   chan struct{} // takes one: everything is to be read again
	end   chan struct{} // closed by close
	done  chan struct{} // closed when nobody looks any more

	turn sync.Mutex // held from reading documents to knowing them, and while one is changed

	mu        sync.Mutex
	known     bool // the documents have been read
	state     shared.DocumentState
	documents map[string][]byte // of state; the map is replaced and never changed
	lost      map[string][]byte // of lostEpoch, and of those between that and state
	lostEpoch string
	leftOut   map[string]string // by id, why
	class     shared.Class      // of the last look
}

// newFollower returns a follower of the server of r that has tried to read the
// documents, once. ctx ends that before its time. It begins with what was kept,
// which may be nothing.
func newFollower(ctx context.Context, r *config.Redis, kept keptDocuments, log *slog.Logger) (*follower, error) {
	f := &follower{
		news: make(chan struct{}, 1), all: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{}), log: log,
		state: shared.DocumentState{Epoch: kept.Epoch}, documents: kept.Documents,
	}
	var err error
	f.store, err = gateway.OpenStore(r, nil, func(c shared.Class, reply string) {
		if c == shared.OK {
			log.Info("the store of tenants can be had again")
			return
		}
		log.Warn("the store of tenants cannot be had: those that are known are served", "class", c.String(), "reply", reply)
	})
	if err != nil {
		return nil, err
	}
	f.docs = f.store.Documents("tenants")
	looked := make(chan struct{})
	go func() {
		defer close(f.done)
		f.look(false)
		close(looked)
		f.run()
	}()
	select {
	case <-looked:
	case <-ctx.Done():
	}
	select {
	case <-f.news: // whoever has waited takes it at once
	default:
	}
	if !f.isKnown() {
		log.Error("the tenants of the store are not known yet, and are served once it can be had", "class", f.status().Outage.String(), "kept_ones_served", len(f.served()))
	}
	return f, nil
}

// keep returns what is to be kept for the next start.
func (f *follower) keep() keptDocuments {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil { // so that the next start misses them too
		return keptDocuments{f.lostEpoch, f.servedLocked()}
	}
	return keptDocuments{f.state.Epoch, f.documents}
}

// run looks for changes until the end.
func (f *follower) run() {
	timer := time.NewTimer(followEvery)
	defer timer.Stop()
	for {
		select {
		case <-f.end:
			return
		case <-f.all:
			f.look(true)
		case <-timer.C:
			f.look(false)
		}
		if f.status().Outage == shared.Malformed {
			timer.Reset(followAgain) // it may have taken much to find out
		} else {
			timer.Reset(followEvery)
		}
	}
}

func (f *follower) close() {
	close(f.end)
	f.store.Close() // calls under way end
	<-f.done
}

// look reads what is new in the store, or everything.
func (f *follower) look(everything bool) {
	f.turn.Lock()
	defer f.turn.Unlock()
	f.lookInTurn(everything)
}

func (f *follower) lookInTurn(everything bool) {
	class := f.read(everything)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.class = class
}

// read is look, and returns why it did not work.
func (f *follower) read(everything bool) shared.Class {
	f.mu.Lock()
	known, state, documents := f.known, f.state, f.documents
	f.mu.Unlock()
	now, names, whole, class := f.docs.Changes(state)
	if class == shared.OK && whole && known && now.Epoch == state.Epoch && state.Last != "" {
		f.log.Warn("the store does not know the last change that was seen, and all of it is read again: unless there were very many since, some were lost")
	}
	switch {
	case class != shared.OK, known && !everything && !whole && len(names) == 0:
		return class
	case !known || everything || whole:
		documents, class = f.docs.All()
	default:
		slices.Sort(names)
		names = slices.Compact(names)
		var changed map[string][]byte
		if changed, class = f.docs.Get(names...); class == shared.OK {
			documents = maps.Clone(documents)
			for _, name := range names {
				delete(documents, name)
			}
			maps.Copy(documents, changed)
		}
	}
	if class != shared.OK {
		return class
	}
	// What was lost while it was read would seem to have been removed.
	after, _, _, class := f.docs.Changes(now)
	if class == shared.OK && after.Epoch == now.Epoch {
		f.take(now, documents)
	}
	return class
}

// take knows what was read.
func (f *follower) take(now shared.DocumentState, documents map[string][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.servedLocked()
	if f.state.Epoch != "" && now.Epoch != f.state.Epoch && len(before) > 0 {
		if f.lost == nil {
			f.lostEpoch = f.state.Epoch
		}
		f.lost = before
	}
	f.known, f.state, f.documents = true, now, documents
	if f.lost != nil {
		f.lost = maps.Clone(f.lost)
		for id := range documents {
			delete(f.lost, id)
		}
		if len(f.lost) == 0 || now.Epoch == f.lostEpoch {
			f.lost = nil
			f.log.Info("the store has the documents of tenants again that it had lost")
		} else {
			f.log.Error("THE STORE HAS LOST DOCUMENTS OF TENANTS: they are still served, and none can be changed; restore it, or send SIGHUP to go by what it has", "lost", len(f.lost), "stored", len(documents))
		}
	}
	if !maps.EqualFunc(before, f.servedLocked(), bytes.Equal) {
		f.tell()
	}
}

func (f *follower) tell() {
	select {
	case f.news <- struct{}{}:
	default: // it waits already
	}
}

// later has the documents served again after a while, because it did not work now.
func (f *follower) later() {
	time.AfterFunc(followAgain, f.tell)
}

// served returns the documents that are to be served. Nobody changes the map.
func (f *follower) served() map[string][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servedLocked()
}

func (f *follower) servedLocked() map[string][]byte {
	if f.lost == nil {
		return f.documents
	}
	all := maps.Clone(f.lost)
	maps.Copy(all, f.documents)
	return all
}

func (f *follower) isKnown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known
}

// accept goes by what the store has, whatever it has lost, and has everything
// in it read again.
func (f *follower) accept() {
	f.mu.Lock()
	if f.lost != nil {
		f.log.Warn("what the store has lost is served no more", "lost", len(f.lost))
	}
	f.lost = nil
	f.mu.Unlock()
	select {
	case f.all <- struct{}{}:
	default: // that is to be done already
	}
}

// maxLeftOutShown bounds how many documents that were left out are logged.
const maxLeftOutShown = 20

// note takes which documents the loader has left out, and logs those that it
// did not leave out before.
func (f *follower) note(leftOut []config.LeftOut) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, shown := make(map[string]string, len(leftOut)), 0
	for _, l := range leftOut {
		now[l.ID] = l.Mistake.String()
		if f.leftOut[l.ID] == now[l.ID] {
			continue
		}
		if shown++; shown <= maxLeftOutShown {
			f.log.Error("a stored document of a tenant is left out", "mistake", now[l.ID], "earlier_one_served", l.Earlier)
		}
	}
	if shown > maxLeftOutShown {
		f.log.Error("more stored documents of tenants are left out", "count", shown-maxLeftOutShown)
	}
	f.leftOut = now
}

// status is for gateway.Options.Stored.
func (f *follower) status() *gateway.Stored {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &gateway.Stored{Known: f.known, Kept: len(f.documents), Outage: f.class, LeftOut: len(f.leftOut), Lost: len(f.lost), Store: f.store}
}

// ready returns why nothing can be changed now, or nil: then what is known is what
// the store has.
func (f *follower) ready() error {
	f.look(false)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.class != shared.OK:
		return fmt.Errorf("%w: %s; nothing was changed", admin.ErrUnavailable, storeTrouble(f.class))
	case !f.known:
		return fmt.Errorf("%w: it is being read; nothing was changed", admin.ErrUnavailable)
	case len(f.lost) > 0:
		return fmt.Errorf("%w: it has lost documents that are still served: restore it, or send SIGHUP to every replica to go by what it has; nothing was changed", admin.ErrUnavailable)
	default:
		return nil
	}
}

// Place implements admin.Store.
func (f *follower) Place(id string) string { return config.StoredName(id) }

// Get implements admin.Store. While the store cannot be had, or has lost what is
// served, it returns what is known.
func (f *follower) Get(_ context.Context, id string) ([]byte, error) {
	f.mu.Lock()
	known, lost := f.known, f.lost != nil
	documents := f.servedLocked()
	f.mu.Unlock()
	if !lost {
		found, class := f.docs.Get(id)
		if class == shared.OK {
			documents = found
		} else if _, there := documents[id]; !there && !known {
			return nil, fmt.Errorf("%w: %s", admin.ErrUnavailable, storeTrouble(class))
		}
	}
	data, there := documents[id]
	switch {
	case !there:
		return nil, admin.ErrAbsent
	case data == nil:
		return nil, admin.ErrForeign
	default:
		return data, nil
	}
}

// Put implements admin.Store.
func (f *follower) Put(_ context.Context, id string, data []byte, match string) error {
	return f.edit(id, data, match)
}

// Delete implements admin.Store.
func (f *follower) Delete(_ context.Context, id, match string) error { return f.edit(id, nil, match) }

// edit changes a document in the store if its tag is match, or there is none and
// match is empty.
func (f *follower) edit(id string, data []byte, match string) error {
	f.turn.Lock()
	defer f.turn.Unlock()
	found, class := f.docs.Get(id)
	if class != shared.OK {
		return fmt.Errorf("%w: %s; nothing was changed", admin.ErrUnavailable, storeTrouble(class))
	}
	old, there := found[id]
	if there != (match != "") || there && tagOf(old) != match {
		return admin.ErrChanged
	}
	f.mu.Lock()
	state := f.state
	f.mu.Unlock()
	edited, class := f.docs.Edit(state.Epoch, id, old, data)
	switch edited {
	case shared.EditDone:
	case shared.EditConflict:
		return admin.ErrChanged
	case shared.EditElsewhere:
		return fmt.Errorf("%w: it has lost its documents; nothing was changed", admin.ErrUnavailable)
	case shared.EditFull:
		return fmt.Errorf("admin: the store holds %d documents, and takes no more", shared.MaxDocuments)
	default:
		return fmt.Errorf("%w: it is not known whether the change was made, which is seen once it can be had again; %s", admin.ErrUnavailable, storeTrouble(class))
	}
	f.mu.Lock()
	documents := make(map[string][]byte, len(f.documents)+1)
	maps.Copy(documents, f.documents)
	if documents[id] = data; data == nil {
		delete(documents, id)
	}
	f.documents = documents
	f.mu.Unlock()
	// The first one makes an epoch, which the next has to name.
	f.lookInTurn(false)
	return nil
}

// tagOf is the tag that the admin API gives a document.
func tagOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// loadFollowed is load without a change. If the gateway file says that there is
// a store, and nobody follows it yet, that begins now.
func (s *server) loadFollowed(ctx context.Context, stop chan os.Signal, log *slog.Logger) (f *config.File, warnings []config.Mistake, err error) {
	f, warnings, err = s.load(config.Change{})
	if err != nil || f.AdminAPI.Store != "redis" || s.follower.Load() != nil {
		return f, warnings, err
	}
	var kept keptDocuments
	if s.fallback {
		if kept, err = s.kept.documents(); err != nil {
			log.Error("what was kept of the store cannot be used", "error", err)
		}
	}
	var follower *follower
	unlessStopped(ctx, stop, func(ctx context.Context) { follower, err = newFollower(ctx, &f.Shared.Redis, kept, log) })
	if err != nil {
		return nil, warnings, config.Mistakes{{File: s.path, Path: "adminApi.store", What: "cannot be used, " + err.Error(), Instead: "correct that, or remove it"}}
	}
	s.follower.Store(follower)
	return s.load(config.Change{})
}

// followed notes what of the store is not in f, which is served, and stops
// following where f has no store.
func (s *server) followed(f *config.File) {
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
