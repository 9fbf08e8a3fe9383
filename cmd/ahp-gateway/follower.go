package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
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
	// changePatience is how long a change waits until what the store has is known.
	changePatience = 5 * time.Second
)

// errStale says that other replicas have changed something since what the store
// has was looked at: what was found good may not be good any more.
var errStale = fmt.Errorf("%w: other replicas keep changing it; nothing was changed", admin.ErrUnavailable)

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
	life  context.Context
	end   context.CancelFunc // of life
	done  chan struct{}      // closed when nobody looks any more

	patience time.Duration // changePatience outside of tests
	room     int           // shared.MaxBytes outside of tests

	// turn holds one from reading documents to knowing them, and while one is changed.
	turn chan struct{}

	mu        sync.Mutex
	known     bool // the documents have been read
	state     shared.DocumentState
	documents map[string][]byte // of state; the map is replaced and never changed
	lost      map[string][]byte // of lostState, and of epochs between that and state
	lostState shared.DocumentState
	leftOut   map[string]string // by id, why
	held      time.Time         // gateway.Stored.Held
	again     *time.Timer       // of later; nil until that is called
	class     shared.Class      // of the last look
}

// newFollower returns a follower of the server of r that has tried to read the
// documents, once. ctx ends that before its time. It begins with what was kept,
// which may be nothing.
func newFollower(ctx context.Context, r *config.Redis, kept keptDocuments, log *slog.Logger) (*follower, error) {
	f := &follower{
		news: make(chan struct{}, 1), all: make(chan struct{}, 1), done: make(chan struct{}), turn: make(chan struct{}, 1), patience: changePatience, room: shared.MaxBytes, log: log,
		state: shared.DocumentState{Epoch: kept.Epoch}, documents: kept.Documents,
	}
	f.life, f.end = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	f.store, err = gateway.OpenStore(r, nil, func(c shared.Class, reply string) {
		if c == shared.OK {
			log.Info("the store of tenants can be had again")
			return
		}
		log.Warn("the store of tenants cannot be had: those that are known are served", "class", c.String(), "reply", reply)
	})
	if err != nil {
		f.end()
		return nil, err
	}
	f.docs = f.store.Documents("tenants")
	looked := make(chan struct{})
	go func() {
		defer close(f.done)
		_ = f.look(f.life, false)
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
		return keptDocuments{Epoch: f.lostState.Epoch, Documents: f.servedLocked()}
	}
	return keptDocuments{Epoch: f.state.Epoch, Documents: f.documents}
}

// run looks for changes until the end.
func (f *follower) run() {
	timer := time.NewTimer(followEvery)
	defer timer.Stop()
	for {
		select {
		case <-f.life.Done():
			return
		case <-f.all:
			_ = f.look(f.life, true)
		case <-timer.C:
			_ = f.look(f.life, false)
		}
		if f.status().Outage == shared.Malformed {
			timer.Reset(followAgain) // it may have taken much to find out
		} else {
			timer.Reset(followEvery)
		}
	}
}

func (f *follower) close() {
	f.end()
	f.store.Close()
	<-f.done
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.again != nil {
		f.again.Stop()
	}
}

// await waits for its turn until ctx ends. Whoever gets it calls release.
func (f *follower) await(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *follower) release() { <-f.turn }

// look reads what is new in the store, or everything, and fails only where ctx
// ends before that.
func (f *follower) look(ctx context.Context, everything bool) error {
	if err := f.await(ctx); err != nil {
		return err
	}
	defer f.release()
	return f.lookInTurn(ctx, everything)
}

func (f *follower) lookInTurn(ctx context.Context, everything bool) error {
	class := f.read(ctx, everything)
	if class != shared.OK && ctx.Err() != nil {
		return ctx.Err() // which says nothing about the store
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.class = class
	return nil
}

// read is look, and returns why it did not work.
func (f *follower) read(ctx context.Context, everything bool) shared.Class {
	f.mu.Lock()
	known, state, documents := f.known, f.state, f.documents
	seen := state
	if f.lost != nil {
		seen = f.lostState
	}
	f.mu.Unlock()
	now, names, whole, class := f.docs.Changes(ctx, state)
	if class == shared.OK && whole && known && now.Epoch == seen.Epoch && seen.Last != "" {
		// What has come back after a loss may be older than what was lost.
		older := seen == state
		if !older {
			_, _, older, class = f.docs.Changes(ctx, seen)
		}
		if older {
			f.log.Warn("the store does not know the last change that was seen, and all of it is read again: unless there were very many since, some were lost")
		}
	}
	switch {
	case class != shared.OK, known && !everything && !whole && len(names) == 0:
		return class
	case !known || everything || whole:
		documents, class = f.docs.All(ctx)
	default:
		slices.Sort(names)
		names = slices.Compact(names)
		var changed map[string][]byte
		if changed, class = f.docs.Get(ctx, names...); class == shared.OK {
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
	after, _, _, class := f.docs.Changes(ctx, now)
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
			f.lostState = f.state
		}
		f.lost = before
	}
	f.known, f.state, f.documents = true, now, documents
	if f.lost != nil {
		f.lost = maps.Clone(f.lost)
		for id := range documents {
			delete(f.lost, id)
		}
		if len(f.lost) == 0 || now.Epoch == f.lostState.Epoch {
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

// later has the documents served again after a while, because it did not work
// now. However often it is called, that is once.
func (f *follower) later() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.again == nil {
		f.again = time.AfterFunc(followAgain, f.tell)
		return
	}
	f.again.Reset(followAgain)
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

// note takes that the documents are served, and which of them the loader has left
// out. It logs those that it did not leave out before.
func (f *follower) note(leftOut []config.LeftOut) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = time.Time{}
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
	return &gateway.Stored{Known: f.known, Kept: len(f.documents), Outage: f.class, LeftOut: len(f.leftOut), Lost: len(f.lost), Held: f.held, Store: f.store}
}

// hold takes that the documents cannot be served as they are.
func (f *follower) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held.IsZero() {
		f.held = time.Now()
	}
}

// begin returns why nothing can be changed now, or nil: then what is known is what
// the store has, and stays what is known until release is called. It waits for
// that until ctx ends, and for patience at most.
func (f *follower) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	err := f.await(ctx)
	if err == nil {
		if err = f.lookInTurn(ctx, false); err == nil {
			err = f.ready()
		}
		if err == nil {
			return nil
		}
		f.release()
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: it is slow, and still being read; nothing was changed", admin.ErrUnavailable)
	}
	return err
}

// ready returns why nothing can be changed by what was found last, or nil.
func (f *follower) ready() error {
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
func (f *follower) Get(ctx context.Context, id string) ([]byte, error) {
	f.mu.Lock()
	known, lost := f.known, f.lost != nil
	documents := f.servedLocked()
	f.mu.Unlock()
	if !lost {
		found, class := f.docs.Get(ctx, id)
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

// Put implements admin.Store, after begin. It fails with errStale where what is
// known is not what the store has any more.
func (f *follower) Put(ctx context.Context, id string, data []byte, match string) error {
	return f.edit(ctx, id, data, match)
}

// Delete implements admin.Store, as Put does.
func (f *follower) Delete(ctx context.Context, id, match string) error {
	return f.edit(ctx, id, nil, match)
}

// edit changes a document in the store if its tag is match, or there is none and
// match is empty.
func (f *follower) edit(ctx context.Context, id string, data []byte, match string) error {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	found, class := f.docs.Get(ctx, id)
	if class != shared.OK {
		return fmt.Errorf("%w: %s; nothing was changed", admin.ErrUnavailable, storeTrouble(class))
	}
	old, there := found[id]
	if there != (match != "") || there && tagOf(old) != match {
		return admin.ErrChanged
	}
	f.mu.Lock()
	state, size := f.state, len(data)
	for other, data := range f.documents { // all that there are, or this change is stale
		if other != id {
			size += len(data)
		}
	}
	f.mu.Unlock()
	if len(data) > len(old) && size > f.room {
		return fmt.Errorf("admin: the store may hold %d bytes, which it would with this document; remove one first", f.room)
	}
	edited, class := f.docs.Edit(ctx, state, id, old, data)
	switch edited {
	case shared.EditDone:
	case shared.EditStale:
		return errStale
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
	// The next change has to name this one. That it is not seen is seen then.
	_ = f.lookInTurn(ctx, false)
	return nil
}

// tagOf is the tag that the admin API gives a document.
func tagOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
