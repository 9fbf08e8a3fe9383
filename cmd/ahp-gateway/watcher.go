package main

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/ahp-gateway/ahp-gateway/config"
)

const (
	// settle is how long files must have been left alone before they are read:
	// a deployment writes more than one.
	settle = 100 * time.Millisecond
	// settleMax bounds the wait for files that are never left alone.
	settleMax = time.Second
	// pollEvery is the time between two looks at the files without an event:
	// some file systems, networked ones above all, send none.
	pollEvery = 10 * time.Second
)

// watcher tells when the contents of files have changed. It watches the folders
// and not the files, because editors and deployments replace files instead of
// writing them. It is used by one goroutine and has none of its own but what
// the system's notifications take.
type watcher struct {
	// due fires when stale is to be called.
	due <-chan time.Time
	// events and errors are the system's notifications, for note and trouble.
	// They are nil where there are none to be had.
	events <-chan fsnotify.Event
	errors <-chan error

	system  *fsnotify.Watcher
	log     *slog.Logger
	timer   *time.Timer
	poll    time.Duration
	began   time.Time // of the events that are waiting to settle; zero if none
	files   []string
	entries []string // whose notifications matter
	whole   []string // folders of tenants: anything in them matters
	digests *config.Digests
	known   contents
}

// newWatcher returns a watcher of no files. poll is pollEvery outside of tests.
func newWatcher(log *slog.Logger, digests *config.Digests, poll time.Duration) *watcher {
	w := &watcher{log: log, digests: digests, poll: poll, timer: time.NewTimer(poll)}
	w.due = w.timer.C
	system, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("file changes are looked for now and then only", "every", poll, "error", err)
		return w
	}
	w.system, w.events, w.errors = system, system.Events, system.Errors
	return w
}

// watch watches files, whose contents are known, in place of those before. What
// has changed since they were known is noticed too.
func (w *watcher) watch(files []string, known contents) {
	w.files, w.known = files, known
	w.follow()
	w.arm()
}

// maxSyncs bounds how often folders are looked for while more of them appear.
const maxSyncs = 16

// follow watches the folders that the files are in now. It looks again after
// it has begun to watch one, because what came into that before is not told.
func (w *watcher) follow() {
	if w.system == nil {
		return
	}
	for range maxSyncs {
		if !w.sync() {
			return
		}
	}
}

// sync brings the watched folders in line with where the files are now, and
// reports whether it added one.
func (w *watcher) sync() (added bool) {
	w.entries, w.whole = w.entries[:0], w.whole[:0]
	var folders []string
	add := func(folder string) {
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	lead := func(file string) {
		for _, entry := range entriesOf(file) {
			w.entries = append(w.entries, entry)
			add(filepath.Dir(entry))
		}
	}
	for _, file := range w.files {
		lead(file)
		if isFolder(file) {
			w.whole = append(w.whole, file)
			add(file)
			for _, link := range linksIn(file) {
				lead(link)
			}
		}
	}
	// A folder that is moved or removed says so under its own name.
	w.entries = append(w.entries, folders...)
	watched := w.system.WatchList()
	for _, folder := range folders {
		if slices.Contains(watched, folder) {
			continue
		}
		if err := w.system.Add(folder); err != nil {
			w.log.Debug("folder cannot be watched", "folder", folder, "error", err)
			continue
		}
		added = true
	}
	for _, folder := range watched {
		if !slices.Contains(folders, folder) {
			_ = w.system.Remove(folder) // it may be gone, and with it the watch
		}
	}
	return added
}

// note takes one notification.
func (w *watcher) note(e fsnotify.Event) {
	// Permissions matter as well: a file may become readable.
	if slices.Contains(w.entries, e.Name) || slices.Contains(w.whole, filepath.Dir(e.Name)) {
		w.arm()
	}
}

// trouble takes an error of the notifications. When some were lost, anything
// may have changed.
func (w *watcher) trouble(err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		w.log.Warn("file notifications", "error", err)
	}
	w.arm()
}

// arm sets the timer to fire once the files have been left alone.
func (w *watcher) arm() {
	now := time.Now()
	if w.began.IsZero() {
		w.began = now
	}
	w.timer.Reset(min(settle, max(0, w.began.Add(settleMax).Sub(now))))
}

// stale reports the files whose contents are no longer those that are known,
// and knows the new ones from then on.
func (w *watcher) stale() []string {
	w.began = time.Time{}
	w.timer.Reset(w.poll)
	w.follow() // before reading, so that nothing falls between the two
	now := contentsOf(w.digests, w.files)
	changed := w.known.differing(now)
	w.known = now
	return changed
}

func (w *watcher) close() {
	w.timer.Stop()
	if w.system != nil {
		_ = w.system.Close()
	}
}
