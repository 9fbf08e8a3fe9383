package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// reader collects what one Load reads and finds. It is used once, by one goroutine.
type reader struct {
	env Environ
	now func() time.Time
	// until is when what was read has to be said again in other words; zero is never.
	until time.Time
	// loader keeps what tenants' files were read as, or is nil.
	loader *Loader
	// basis is what the store's documents were read on, if there is a loader.
	basis *basis
	// asked is what was asked of the environment, if there is a loader.
	asked []question
	// printed is set where what Print wrote is read: keys are shortened, and
	// files are those of another process, perhaps of another machine.
	printed bool
	// large is set where it is something that was printed: the bounds of what
	// people write do not hold, and tenants are all in it.
	large bool
	// incomplete is set where a document was left out whose mistakes another
	// reader has reported.
	incomplete bool
	// base is the folder that relative paths start from.
	base string
	// role is what mistakes call the file whose folder that is.
	role string
	// main is the name of the gateway file.
	main string
	// change is read in place of one file.
	change Change
	// sources are the absolute paths of the files that were read.
	sources []string
	folder  string // of tenants
	stored  string // folder of stored secrets, or ""
	// storing is set where the gateway file says, rightly or not, that there are some.
	storing bool
	// wanted are those that could not be read.
	wanted []string
	noted  map[string]bool // of sources
	// sums are the digests of sources, if there is a loader.
	sums map[string][sha256.Size]byte
	// trees are the documents that were read by path, so that tenants can
	// share one.
	trees *trees
	// order numbers the names of files, which are in names, as they were read.
	order map[string]int
	names []string

	mistakes, warnings     []Mistake
	moreMistakes, moreWarn int
	own                    bool // mistakes are full, and none of them comes of another
	known                  map[Mistake]bool
}

// tree is a document that was read: root is nil for one that cannot be used.
type tree struct {
	root *node
	sum  [sha256.Size]byte // of the file, if there is a loader
}

// trees are safe for concurrent use: several readers share them.
type trees struct {
	mu     sync.Mutex
	byPath map[string]tree
}

func (t *trees) of(path string) (tree, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.byPath[path]
	return known, ok
}

func (t *trees) keep(path string, known tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byPath[path] = known
}

func newReader(name string, env Environ) *reader {
	if env == nil {
		env = os.LookupEnv
	}
	base := absolute(filepath.Dir(name))
	return &reader{
		env:   env,
		now:   time.Now,
		base:  base,
		role:  "gateway file",
		main:  name,
		noted: make(map[string]bool),
		sums:  make(map[string][sha256.Size]byte),
		trees: &trees{byPath: make(map[string]tree)},
		order: make(map[string]int),
		known: make(map[Mistake]bool),
	}
}

// source registers a file under the name that mistakes show.
func (r *reader) source(name string) *source {
	if _, ok := r.order[name]; !ok {
		r.order[name] = len(r.order)
		r.names = append(r.names, name)
	}
	return &source{name: name, order: r.order[name]}
}

// maxMistakes bounds how many mistakes, and how many warnings, are kept.
const maxMistakes = 1000

// add keeps m unless it is known already, which happens where two tenants
// share a document.
func (r *reader) add(m Mistake) {
	kept, more := &r.mistakes, &r.moreMistakes
	if m.Warning {
		kept, more = &r.warnings, &r.moreWarn
	}
	switch {
	case r.known[m]:
	case len(*kept) >= maxMistakes:
		*more++
		if !m.Warning && !r.own && m.cause == (cause{}) {
			// What others come of is worth more than one of them.
			i := slices.IndexFunc(*kept, func(m Mistake) bool { return m.cause != cause{} })
			if r.own = i < 0; !r.own {
				(*kept)[i], r.known[m] = m, true
			}
		}
	default:
		r.known[m] = true
		*kept = append(*kept, m)
	}
}

func (r *reader) addAt(src *source, line, col int, what, instead string) {
	r.add(Mistake{File: src.name, Line: line, Col: col, What: what, Instead: instead, unread: true})
}

// mistake reports something wrong with the value at s. value is what is shown
// of it: "" where it could be a secret.
func (r *reader) mistake(s spot, value, what, instead string) {
	r.add(Mistake{File: s.src.name, Line: s.line, Col: s.col, Path: s.path, Value: value, What: what, Instead: instead})
}

func (r *reader) warn(s spot, value, what, instead string) {
	r.add(Mistake{File: s.src.name, Line: s.line, Col: s.col, Path: s.path, Value: value, What: what, Instead: instead, Warning: true})
}

// ordered returns mistakes in the order of reading and position.
func (r *reader) ordered(ms []Mistake, more int) []Mistake {
	slices.SortStableFunc(ms, func(a, b Mistake) int {
		return cmp.Or(
			cmp.Compare(r.order[a.File], r.order[b.File]),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Col, b.Col),
		)
	})
	if more > 0 && len(ms) > 0 { // else they came of another mistake, like these
		last := ms[len(ms)-1]
		ms = append(ms, Mistake{
			File: last.File, Warning: last.Warning,
			What: strconv.Itoa(more) + " more like these are not shown", Instead: "correct these first",
		})
	}
	return ms
}

// result returns the warnings, and every mistake as one error.
func (r *reader) result() ([]Mistake, error) {
	r.mistakes, r.warnings = causes(r.mistakes, r.warnings)
	warnings := r.ordered(r.warnings, r.moreWarn)
	if len(r.mistakes) == 0 {
		return warnings, nil
	}
	return warnings, Mistakes(r.ordered(r.mistakes, r.moreMistakes))
}

// resolve returns the absolute form of a path that a document names.
func (r *reader) resolve(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(r.base, path)
}

// read returns the bytes of a regular file and notes it as a source.
func (r *reader) read(path string, limit int) ([]byte, error) {
	if r.change.Data != nil && path == r.change.Path {
		if len(r.change.Data) > limit {
			return nil, errTooLarge
		}
		path = r.noteSource(path)
		if r.loader != nil {
			r.sums[path] = sha256.Sum256(r.change.Data)
		}
		return r.change.Data, nil
	}
	at := time.Now()
	data, info, err := readFile(path, limit)
	if err != nil {
		r.wanted = append(r.wanted, absolute(path))
		return nil, err
	}
	path = r.noteSource(path)
	if r.loader != nil {
		r.sums[path] = r.loader.Digests.note(path, info, at, data)
	}
	return data, nil
}

// absolute returns the absolute form of a path of this process, or the path
// itself where there is none to be had.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// noteSource notes a file as a source, and returns its absolute path.
func (r *reader) noteSource(path string) string {
	path = absolute(path)
	if !r.noted[path] {
		r.noted[path] = true
		r.sources = append(r.sources, path)
	}
	return path
}

var (
	errNotRegular = errors.New("it is not a regular file")
	errTooLarge   = errors.New("it is too large")
)

// readFile reads at most limit bytes of a regular file; a longer one is an
// error. The kind is looked at before the file is opened, because opening a
// named pipe waits for a writer. What it looked like is from before it was read.
func readFile(path string, limit int) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, plainError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNotRegular
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, plainError(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, nil, plainError(err)
	}
	if len(data) > limit {
		return nil, nil, errTooLarge
	}
	return data, info, nil
}

// plainError strips the operation and path, which the mistake shows already.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func itoa(n int) string { return strconv.Itoa(n) }
