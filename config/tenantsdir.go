package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// maxTenantFiles bounds how many tenants a folder may hold.
	maxTenantFiles = 100_000
	// maxTenantFile bounds the file of one tenant, in bytes.
	maxTenantFile = mib
)

// TenantFiles returns the paths of what in the folder dir is read as the file
// of a tenant, sorted: every entry whose name ends in .yaml, .yml or .json and
// does not start with a dot. More than 100,000 of them are an error.
func TenantFiles(dir string) ([]string, error) { return listTenantFiles(dir, maxTenantFiles) }

// listTenantFiles is TenantFiles with another bound.
func listTenantFiles(dir string, most int) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, plainError(err)
	}
	defer d.Close()
	var paths []string
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if isTenantFile(name) {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
		switch {
		case len(paths) > most:
			return nil, fmt.Errorf("it holds more than %d files of tenants", most)
		case err == io.EOF:
			slices.Sort(paths)
			return paths, nil
		case err != nil:
			return nil, plainError(err)
		}
	}
}

// HasTenantFile reports whether path is that of a file, there or not, that
// TenantFiles lists of f's TenantsDir.
func (f *File) HasTenantFile(path string) bool {
	return f.TenantsDir != "" && filepath.Dir(path) == f.TenantsDir && isTenantFile(filepath.Base(path))
}

func isTenantFile(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}

// tenantsDir reads the folder at s, each of whose files is a tenant.
func (r *reader) tenantsDir(s spot, f *File, to *roster) {
	dir, ok := r.path(s)
	if !ok {
		return
	}
	f.TenantsDir, r.folder = dir, dir
	if r.large {
		return // it was printed because it held no tenant, whatever it holds now
	}
	paths, err := r.change.tenantFiles(dir, maxTenantFiles)
	if errors.Is(err, errTooMany) {
		r.mistake(s, shown(s.text), "the folder of tenants would hold more than "+itoa(maxTenantFiles)+" files of tenants", "remove one first")
		return
	}
	if err != nil {
		r.mistake(s, shown(s.text), "the folder of tenants cannot be read, "+err.Error(), "write the path of a folder whose .yaml, .yml and .json files are a tenant each, relative to the gateway file")
		return
	}
	if len(paths)+len(f.Tenants) == 0 && !to.stored {
		r.warn(s, shown(s.text), "there is no tenant: nobody can authenticate", "put a file for each tenant into the folder, such as acme.yaml with id, keys and registration")
	}
	for i, read := range r.readTenants(paths, to.kept, to.terms) {
		r.merge(read)
		if read.at.node == nil {
			continue
		}
		to.list.add(r, member{at: read.at, file: filepath.Base(paths[i])}, &read.claims)
		f.Tenants = append(f.Tenants, read.tenant)
	}
}

// readTenants reads the files of tenants, but those that are kept from before.
func (r *reader) readTenants(paths []string, kept tenantFiles, terms *tenantTerms) []*tenantFile {
	all := make([]*tenantFile, len(paths))
	inParallel(len(paths), func(i int) {
		if all[i] = kept.of(paths[i], r.env, r.now()); all[i] == nil {
			all[i] = r.tenantFile(paths[i], terms)
		}
	})
	for i, read := range all {
		kept.keep(paths[i], read)
	}
	return all
}

// tenantFile is what was read of one tenant's file.
type tenantFile struct {
	tenant Tenant
	claims claims
	at     spot // of the tenant; without a node where there is none
	// content is a document of the store, and trusted whether it may have what is
	// the operator's.
	content []byte
	trusted bool
	// listed says that it is no file: a tenant of the gateway file has one where
	// there is a store, to tell it from the same tenant of a later load.
	listed bool

	// What its reader found and read.
	names                  []string // of files, as mistakes show them, in order
	sources                []string
	sums                   [][sha256.Size]byte // of sources, if a loader keeps it
	files                  [sha256.Size]byte   // tenantTerms.files
	wanted                 []string
	asked                  []question
	incomplete             bool
	until                  time.Time // reader.until
	mistakes, warnings     []Mistake
	moreMistakes, moreWarn int
}

// tenantFile reads the file of one tenant. Its paths are relative to its own
// folder, and of r it shares nothing but the documents that were read before.
func (r *reader) tenantFile(path string, terms *tenantTerms) *tenantFile {
	own := newReader(path, r.env)
	own.role, own.now = "tenant's file", r.now
	own.trees, own.loader, own.change = r.trees, r.loader, r.change
	own.stored, own.storing, own.main = r.stored, r.storing, r.main
	read := &tenantFile{files: terms.files}
	data, err := own.read(path, maxTenantFile)
	if err != nil {
		own.source(path)
		own.add(Mistake{File: path, What: "cannot be read, " + err.Error(), Instead: "write one tenant of at most 1 MiB into a file that the process may read, or remove it from the folder"})
	} else if root := own.parse(own.source(path), data); root != nil {
		read.tenant, read.claims = own.ownTenant(spot{node: root}, terms)
		read.tenant.File = path
		// Of the tree only the place is kept.
		read.at = spot{node: &node{src: root.src, line: root.line, col: root.col, kind: root.kind}}
	}
	own.finish(read)
	return read
}

// finish notes in read what its reader found and read.
func (r *reader) finish(read *tenantFile) {
	read.names, read.sources, read.asked, read.incomplete, read.until = r.names, r.sources, r.asked, r.incomplete, r.until
	read.wanted = r.wanted
	if r.loader != nil {
		for _, source := range r.sources {
			read.sums = append(read.sums, r.sums[source])
		}
	}
	read.mistakes, read.moreMistakes = r.mistakes, r.moreMistakes
	read.warnings, read.moreWarn = r.warnings, r.moreWarn
}

// ownTenant reads a whole document as one tenant.
func (r *reader) ownTenant(s spot, terms *tenantTerms) (Tenant, claims) {
	switch {
	case isRegistration(s):
		r.mistake(s, "", "is a registration document, not a tenant", "write id, keys and registration: with the path of this document, and put that into another folder")
	case hasTenants(s):
		r.mistake(s, "", "is a gateway file, not a tenant", "put it into another folder, or write id, keys and registration")
	default:
		return r.tenant(s, terms)
	}
	return Tenant{}, claims{}
}

// merge takes over what the reader of a tenant's file found and read.
func (r *reader) merge(read *tenantFile) {
	for _, name := range read.names {
		r.source(name)
	}
	for _, path := range read.sources {
		r.noteSource(path)
	}
	r.wanted = append(r.wanted, read.wanted...)
	for _, m := range read.mistakes {
		r.add(m)
	}
	for _, m := range read.warnings {
		r.add(m)
	}
	r.moreMistakes += read.moreMistakes
	r.moreWarn += read.moreWarn
}
