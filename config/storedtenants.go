package config

import (
	"bytes"
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

// storedTenants reads the documents of the store. One with a mistake, or that
// claims what is another's, is left out; that of the change is a mistake of the
// whole then, because somebody waits to hear of it.
func (r *reader) storedTenants(f *File, to *roster) {
	for i, key := range f.AdminAPI.Keys {
		to.list.keys[key.SHA256] = "adminApi.keys[" + itoa(i) + "]"
	}
	if r.loader == nil || r.large {
		return
	}
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
	ids := slices.Sorted(maps.Keys(documents))
	all := make([]*tenantFile, len(ids))
	inParallel(len(ids), func(i int) {
		if !changes || ids[i] != changed { // what is only proposed is not kept
			all[i] = r.storedTenant(ids[i], documents[ids[i]], to, f.AdminAPI.TrustDocuments)
		}
	})
	fit := make(map[string]*tenantFile, len(ids))
	good := make(map[string][]byte, len(ids))
	if before, ok := r.loader.good[changed]; ok && changes {
		good[changed] = before
	}
	var out []LeftOut
	clash := newReader("", nil)
	for i, id := range ids {
		read := all[i]
		if read == nil {
			continue
		}
		r.follow(read)
		m, bad := to.refuses(clash, id, read)
		if !bad {
			fit[id], good[id] = read, documents[id]
			to.kept.keep(StoredName(id), read)
			continue
		}
		left := LeftOut{ID: id, Mistake: m}
		if before, ok := r.loader.good[id]; ok {
			good[id] = before
			earlier := r.storedTenant(id, before, to, f.AdminAPI.TrustDocuments)
			if _, bad := to.refuses(clash, id, earlier); !bad {
				r.follow(earlier)
				fit[id], left.Earlier = earlier, true
				to.kept.keep(StoredName(id), earlier)
			}
		}
		out = append(out, left)
	}
	if changes && r.change.Data != nil {
		read := r.storedTenant(changed, r.change.Data, to, f.AdminAPI.TrustDocuments)
		r.merge(read)
		if read.incomplete && len(read.mistakes) == 0 {
			r.add(incompleteIn(changed))
		}
		if read.at.node != nil {
			to.list.add(r, member{read.at, StoredName(changed)}, &read.claims)
			fit[changed] = read
		}
	}
	r.loader.LeftOut, r.loader.good = out, good
	to.list.members = to.list.members[:len(f.Tenants)]
	for _, id := range slices.Sorted(maps.Keys(fit)) {
		to.list.members = append(to.list.members, member{fit[id].at, StoredName(id)})
		f.Tenants = append(f.Tenants, fit[id].tenant)
	}
}

// follow takes over which files a document names, and nothing of what was found.
func (r *reader) follow(read *tenantFile) {
	for _, path := range read.sources {
		r.noteSource(path)
	}
	r.wanted = append(r.wanted, read.wanted...)
}

// refuses returns why a document cannot be one of the tenants. One that can be
// is one of them from then on. own has no mistakes, before and after.
func (to *roster) refuses(own *reader, id string, read *tenantFile) (Mistake, bool) {
	switch {
	case len(read.mistakes) > 0:
		return read.mistakes[0], true
	case read.incomplete || read.at.node == nil:
		return incompleteIn(id), true
	}
	m := member{read.at, StoredName(id)}
	to.list.add(own, m, &read.claims)
	if len(own.mistakes) > 0 {
		to.list.remove(m, &read.claims)
		first := own.mistakes[0]
		own.mistakes = nil
		clear(own.known)
		return first, true
	}
	return Mistake{}, false
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
