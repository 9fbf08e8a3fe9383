package config

import (
	"bytes"
	"crypto/sha256"
	"reflect"
	"slices"
	"time"
)

// Loader loads one gateway file again and again. What the file of a tenant was
// read as is kept for the next time, and used again where nothing has changed
// that it was read from: its own content and that of every file it names, what
// it asked of the environment, and the defaults of the gateway file. A file with
// a mistake is always read again. It is used by one goroutine at a time.
type Loader struct {
	// Digests tell whether a file has changed. Whoever watches the files may
	// use them too.
	Digests *Digests
	// Sources are the absolute paths of the files that the last Load read or
	// could not read, and of the folder of tenants, which stands for those in
	// it: after a mistake, those whose change can mend it.
	Sources []string
	// Stored are the documents of the store that replicas share, by id, nil for
	// one that is too large. They are read where AdminAPI.Store is "redis". Nobody
	// changes the map once it is here.
	Stored map[string][]byte
	// Unserved are those of them that cannot be served though they hold no mistake,
	// as they were when that was found out. They are left out until they are others.
	Unserved map[string][]byte
	// LeftOut are those of them that the last Load left out, by id. They are no
	// mistakes of the configuration: what one tenant's document says does not
	// keep the others from being served.
	LeftOut []LeftOut

	// Earlier are documents of the store, by id, that were good before Served was
	// called for the first time. Nobody changes the map.
	Earlier map[string][]byte

	path    string
	env     Environ
	terms   tenantTerms            // that tenants were read under
	tenants map[string]*tenantFile // by path
	// loaded is what the last load gave documents of the store to go by, and
	// served the one of them that is: nil where there is no store.
	loaded, served *basis
}

// NewLoader returns a Loader of the gateway file at path, in the environment env.
func NewLoader(path string, env Environ) *Loader {
	return &Loader{Digests: NewDigests(), path: path, env: env}
}

// Load is the function of that name, for l's file.
func (l *Loader) Load() (*File, []Mistake, error) { return l.LoadWith(Change{}) }

// LoadWith is Load as it would be with a change that nobody has made yet. Where
// the change is made afterwards, Load finds nothing else.
func (l *Loader) LoadWith(c Change) (*File, []Mistake, error) {
	l.Digests.turn()
	l.LeftOut, l.loaded = nil, nil
	r := newReader(l.path, l.env)
	r.loader, r.change = l, c
	defer func() { l.Sources = r.watched() }()
	data, err := r.read(l.path, maxFile)
	if err != nil {
		return nil, nil, unreadable(l.path, err)
	}
	return r.gateway(l.path, data)
}

// Served says that what was loaded last is served, with the change that it was
// loaded with. Only then are its documents the last good ones of their tenants,
// and its gateway file the one that LoadStored goes by.
func (l *Loader) Served() { l.served, l.Earlier = l.loaded, nil }

// watched returns the paths of Loader.Sources.
func (r *reader) watched() []string {
	folder := File{TenantsDir: r.folder}
	paths := append(slices.Clone(r.sources), r.wanted...)
	paths = slices.DeleteFunc(paths, folder.HasTenantFile)
	if r.folder != "" {
		paths = append(paths, r.folder)
	}
	return paths
}

// Unchanged reports whether one Loader made t and before, and either had no
// reason to read t's file again or found the same: what Files hold of both is
// the same, and so was the content of the files that they name when they were
// loaded. That of secrets, which are read when they are used, may differ.
func (t *Tenant) Unchanged(before *Tenant) bool {
	a, b := t.read, before.read
	return a != nil && b != nil && (a == b || !a.listed && !b.listed && a.equal(b))
}

// equal reports whether both were read from the same content to the same end.
func (t *tenantFile) equal(other *tenantFile) bool {
	a, b := t.tenant, other.tenant
	a.read, b.read = nil, nil
	return t.files == other.files && bytes.Equal(t.content, other.content) && t.trusted == other.trusted && slices.Equal(t.sources, other.sources) && slices.Equal(t.sums, other.sums) &&
		slices.Equal(t.asked, other.asked) && reflect.DeepEqual(&a, &b)
}

// SameButTenants reports whether f and other differ in nothing but their
// tenants and what was read for them.
func (f *File) SameButTenants(other *File) bool {
	a, b := *f, *other
	a.Tenants, a.Sources, b.Tenants, b.Sources = nil, nil, nil, nil
	return reflect.DeepEqual(&a, &b)
}

// tenantFiles are what a Loader knows of tenants' files, from before and from
// this time. The zero value knows and keeps nothing.
type tenantFiles struct {
	digests     *Digests
	change      Change
	before, now map[string]*tenantFile
}

// under returns what is known of tenants under terms, with a change. A nil l
// knows nothing.
func (l *Loader) under(terms *tenantTerms, c Change) tenantFiles {
	if l == nil {
		return tenantFiles{}
	}
	files := tenantFiles{digests: l.Digests, change: c, before: l.tenants, now: make(map[string]*tenantFile, len(l.tenants))}
	if !reflect.DeepEqual(terms, &l.terms) {
		files.before = nil
	}
	l.terms, l.tenants = *terms, files.now
	return files
}

// of returns what the file at path was read as, if reading it again would find
// the same, or nil. It is safe for concurrent use.
func (t tenantFiles) of(path string, env Environ, now time.Time) *tenantFile {
	read := t.before[path]
	if read == nil || !read.until.IsZero() && !now.Before(read.until) {
		return nil
	}
	for i, source := range read.sources {
		if t.sum(source) != read.sums[i] {
			return nil
		}
	}
	for _, q := range read.asked {
		if q.ask(env) != q.answer {
			return nil
		}
	}
	return read
}

// sum returns the digest of a file as it is with the change.
func (t tenantFiles) sum(path string) [sha256.Size]byte {
	if t.change.Data != nil && path == t.change.Path {
		return sha256.Sum256(t.change.Data)
	}
	return t.digests.Of(path)
}

// keep keeps what the file at path was read as, unless there is a mistake in it.
func (t tenantFiles) keep(path string, read *tenantFile) {
	if t.now == nil || len(read.mistakes) > 0 || read.incomplete {
		return
	}
	read.tenant.read = read
	t.now[path] = read
}

// question is what reading a tenant's file asked of its surroundings: for an
// environment variable, or whether there is a file below a folder of secrets.
type question struct {
	env       string
	dir, name string
	answer    [sha256.Size]byte
}

// ask returns the answer of now, as a digest.
func (q *question) ask(env Environ) [sha256.Size]byte {
	if q.env == "" {
		return answerOf(isFileBelow(q.dir, q.name), "")
	}
	value, ok := env(q.env)
	return answerOf(ok, value)
}

// answerOf returns the digest of an answer, which may be a secret.
func answerOf(ok bool, value string) [sha256.Size]byte {
	if !ok {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256([]byte(value))
}

// named returns the digest of the files that all backends take over. It is zero
// without a loader.
func (r *reader) named(base *BackendSettings) (digest [sha256.Size]byte) {
	if r.loader == nil {
		return digest
	}
	h := sha256.New()
	for _, path := range []string{base.CAFile, base.IssuerCAFile, base.ClientCertFile, base.ClientKeyFile} {
		sum := r.sums[path]
		h.Write([]byte(path + "\x00"))
		h.Write(sum[:])
	}
	h.Sum(digest[:0])
	return digest
}

// lookup looks an environment variable up.
func (r *reader) lookup(name string) (value string, ok bool) {
	value, ok = r.env(name)
	if r.loader != nil {
		r.asked = append(r.asked, question{env: name, answer: answerOf(ok, value)})
	}
	return value, ok
}

// fileBelow is isFileBelow.
func (r *reader) fileBelow(dir, name string) bool {
	there := isFileBelow(dir, name)
	if r.loader != nil {
		r.asked = append(r.asked, question{dir: dir, name: name, answer: answerOf(there, "")})
	}
	return there
}
