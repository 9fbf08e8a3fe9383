package config

import (
	"bytes"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// storedPrefix is what the names of documents start with that are in the store
// of the admin API. No absolute path does.
const storedPrefix = "redis:"

// StoredName returns what mistakes, [Tenant.File] and [Change.Path] call the
// document of a tenant in the store that replicas share.
func StoredName(id string) string { return storedPrefix + id }

// LeftOut is a document of the store with which the rest cannot be served.
type LeftOut struct {
	ID string
	// Mistake is the first one that was found.
	Mistake Mistake
	// Earlier is set where the tenant is served all the same, by the last of its
	// documents that was good.
	Earlier bool
}

// readsStore reports whether the gateway file has tenants in the store.
func readsStore(o *object) bool {
	n, ok := o.fields["adminApi"]
	if !ok {
		return false
	}
	store := n.find("store")
	return store != nil && store.text == "redis"
}

// ErrNoStore is what LoadStored fails with.
var ErrNoStore = errors.New("config: the configuration that is served has no store of tenants")

// basis is what the documents of the store are read on.
type basis struct {
	// file is without the tenants of the store, and its Sources without what
	// those name.
	file    File
	terms   *tenantTerms
	members []member               // of file.Tenants
	kept    map[string]*tenantFile // what documents were read as, among others
	good    map[string][]byte      // by id, the last document without a mistake
}

// LoadStored returns what was served last with the documents as they are in
// Stored now, or would be with a change of one, for while Load finds a mistake in
// the files: those are not looked at, but for what the documents themselves name.
// Where what is served has no store it fails with [ErrNoStore].
func (l *Loader) LoadStored(c Change) (*File, []Mistake, error) {
	b := l.served
	l.LeftOut, l.loaded = nil, nil
	if b == nil {
		return nil, nil, ErrNoStore
	}
	r := newReader(l.path, l.env)
	r.loader, r.change = l, c
	r.stored, r.storing = b.file.AdminAPI.SecretsDir, len(b.file.AdminAPI.SecretsKeys) > 0
	f := b.file
	f.Tenants = slices.Clip(f.Tenants)
	for _, path := range f.Sources {
		r.noteSource(path)
	}
	to := &roster{
		terms: b.terms, list: newTenantList(), stored: true,
		kept: tenantFiles{digests: l.Digests, before: b.kept, now: make(map[string]*tenantFile, len(b.kept))},
	}
	for _, m := range b.members {
		to.list.add(r, m, m.claims)
	}
	r.storedTenants(&f, to)
	r.overlaps(to.list.members, f.Tenants)
	warnings, err := r.result()
	if err != nil {
		return nil, warnings, err
	}
	f.Sources, l.loaded = r.sources, r.basis
	return &f, warnings, nil
}

// ServesStored reports whether LoadStored has something to go by.
func (l *Loader) ServesStored() bool { return l.served != nil }

// WithoutStored returns f without the tenants of the store.
func (f *File) WithoutStored() *File {
	g := *f
	g.Tenants = slices.DeleteFunc(slices.Clone(f.Tenants), func(t Tenant) bool { return strings.HasPrefix(t.File, storedPrefix) })
	return &g
}

// LoadKept is ParseWhole of what was kept of the gateway file, with the documents
// of the store as they are in Stored now.
func (l *Loader) LoadKept(name string, data []byte) (*File, []Mistake, error) {
	l.LeftOut, l.loaded = nil, nil
	r := newReader(l.path, l.env)
	r.loader, r.large = l, true
	r.noteSource(name)
	return r.gateway(name, data)
}

// Good returns the last documents of the store without a mistake, by id, as of
// the last call of Served. Nobody changes the map.
func (l *Loader) Good() map[string][]byte {
	if l.served == nil {
		return l.Earlier
	}
	return l.served.good
}

// storedTenants reads the documents of the store. One with a mistake, or that
// claims what is another's, is left out; that of the change is a mistake of the
// whole then, because somebody waits to hear of it.
func (r *reader) storedTenants(f *File, to *roster) {
	for i, key := range f.AdminAPI.Keys {
		to.list.keys[key.SHA256] = "adminApi.keys[" + itoa(i) + "]"
	}
	f.Backend = to.terms.base
	if r.loader == nil {
		return
	}
	for i := range f.Tenants {
		if f.Tenants[i].read == nil {
			f.Tenants[i].read = &tenantFile{listed: true}
		}
	}
	r.basis = &basis{file: *f, terms: to.terms, members: slices.Clone(to.list.members), kept: to.kept.now}
	r.basis.file.Sources = slices.Clone(r.sources)
	documents, changed, changes := r.loader.Stored, "", false
	if changed, changes = strings.CutPrefix(r.change.Path, storedPrefix); changes {
		documents = maps.Clone(documents)
		if delete(documents, changed); r.change.Data != nil {
			if documents == nil {
				documents = make(map[string][]byte)
			}
			documents[changed] = r.change.Data
		}
	}
	choose := func(documents map[string][]byte, but string) *selection {
		s := &selection{reader: r, to: to, trust: f.AdminAPI.TrustDocuments, documents: documents, before: r.loader.Good(), clash: newReader("", nil)}
		for _, id := range slices.Sorted(maps.Keys(documents)) {
			if id != but {
				s.ids = append(s.ids, id)
			}
		}
		s.choose()
		return s
	}
	s := choose(documents, changed) // what is only proposed is looked at last
	if changes && r.change.Data != nil {
		read := r.storedTenant(changed, r.change.Data, to, s.trust)
		r.merge(read)
		if read.incomplete && len(read.mistakes) == 0 {
			r.add(incompleteIn(changed))
		}
		if read.at.node != nil {
			_, refused := s.refuses(changed, read)
			if _, there := r.loader.Stored[changed]; refused && there {
				// Others may claim what they could not have while its present document
				// stands there, and what it has it keeps.
				for id := range maps.Clone(s.fit) {
					s.drop(id)
				}
				s = choose(r.loader.Stored, "")
				s.drop(changed)
				s.out = slices.DeleteFunc(s.out, func(l LeftOut) bool { return l.ID == changed })
				_, refused = s.refuses(changed, read)
			}
			if refused {
				to.list.add(r, memberOf(changed, read), &read.claims)
			}
			s.fit[changed], s.good[changed] = read, r.change.Data
		}
	}
	r.loader.LeftOut, r.basis.good = s.out, s.good
	to.list.members = to.list.members[:len(f.Tenants)]
	for _, id := range slices.Sorted(maps.Keys(s.fit)) {
		to.list.members = append(to.list.members, memberOf(id, s.fit[id]))
		f.Tenants = append(f.Tenants, s.fit[id].tenant)
	}
}

func memberOf(id string, read *tenantFile) member {
	return member{at: read.at, file: StoredName(id)}
}

// follow takes over which files a document names, and nothing of what was found.
func (r *reader) follow(read *tenantFile) {
	for _, path := range read.sources {
		r.noteSource(path)
	}
	r.wanted = append(r.wanted, read.wanted...)
}

func incompleteIn(id string) Mistake {
	return Mistake{File: StoredName(id), What: "names a document that has mistakes", Instead: "correct that"}
}

// storedTenant reads one document, or returns what it was read as before. Where
// documents are trusted its paths are relative to the gateway file's folder.
func (r *reader) storedTenant(id string, data []byte, to *roster, trust bool) *tenantFile {
	name := StoredName(id)
	if read := to.kept.of(name, r.env, r.now()); read != nil && bytes.Equal(read.content, data) && read.trusted == trust {
		return read
	}
	if !IsTenantID(id) {
		name = storedPrefix + strconv.Quote(cut(id, maxShown))
	}
	own := newReader(name, r.env)
	own.base, own.role, own.now = r.base, "gateway file", r.now
	own.trees, own.loader = r.trees, r.loader
	own.stored, own.storing, own.main = r.stored, r.storing, r.main
	read := &tenantFile{content: data, trusted: trust, files: to.terms.files}
	switch {
	case !IsTenantID(id):
		own.add(Mistake{File: name, What: "is not under the id of a tenant", Instead: "remove it from the store"})
	case data == nil || len(data) > maxTenantFile:
		own.add(Mistake{File: name, What: "is too large", Instead: "write one tenant of at most 1 MiB"})
	default:
		root := own.parse(own.source(name), data)
		if root == nil {
			break
		}
		d := &TenantDocument{spot{node: root}}
		if !trust {
			for _, m := range d.OperatorOnly() {
				m.File = name
				own.add(m)
			}
		}
		if d.ID() != id {
			own.mistake(d.root, shown(d.ID()), "is under the id "+id, "write that as its id")
		}
		if len(own.mistakes) > 0 { // before anything is read for it
			break
		}
		read.tenant, read.claims = own.ownTenant(d.root, to.terms)
		read.tenant.File = name
		read.at = spot{node: &node{src: root.src, line: root.line, col: root.col, kind: root.kind}}
	}
	own.finish(read)
	return read
}

// inParallel calls do for 0 to n-1, some at a time. It leaves half of the
// processors to whatever else the process does meanwhile, which is to answer requests.
func inParallel(n int, do func(i int)) {
	var next atomic.Int64
	var working sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		working.Go(func() {
			for i := next.Add(1); int(i) <= n; i = next.Add(1) {
				do(int(i) - 1)
			}
		})
	}
	working.Wait()
}
