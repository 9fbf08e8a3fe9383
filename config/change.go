package config

import (
	"errors"
	"path/filepath"
	"slices"
)

// Change is what the document of one tenant would be instead of what it is.
// The zero value changes nothing.
type Change struct {
	// Path is that of a file, there or not, directly below TenantsDir, or what
	// StoredName calls a document.
	Path string
	// Data is what it would hold; nil where it would be gone.
	Data []byte
}

// errTooMany says that a change would put more into the folder of tenants than
// it may hold.
var errTooMany = errors.New("it would hold too many files of tenants")

// tenantFiles returns the paths of the files of tenants in dir as they would be
// with the change, at most most of them: what is stored must also load.
func (c Change) tenantFiles(dir string, most int) ([]string, error) {
	paths, err := listTenantFiles(dir, most)
	if err != nil {
		return nil, err
	}
	if paths = c.listed(dir, paths); len(paths) > most {
		return nil, errTooMany
	}
	return paths, nil
}

// listed returns the sorted paths of the files of tenants in dir as they would
// be with the change.
func (c Change) listed(dir string, paths []string) []string {
	if c.Path == "" || filepath.Dir(c.Path) != dir || !isTenantFile(filepath.Base(c.Path)) {
		return paths
	}
	i, there := slices.BinarySearch(paths, c.Path)
	switch {
	case c.Data == nil && there:
		return slices.Delete(paths, i, i+1)
	case c.Data != nil && !there:
		return slices.Insert(paths, i, c.Path)
	}
	return paths
}
