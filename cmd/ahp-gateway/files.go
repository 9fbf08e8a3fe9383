package main

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/sealed"
)

// configFiles returns the absolute paths of every file that f was made from or
// that is read when f is put to use, in a fixed order. A folder of tenants
// stands for the files in it.
func configFiles(f *config.File) []string {
	files := slices.DeleteFunc(slices.Clone(f.Sources), f.HasTenantFile)
	if f.TenantsDir != "" {
		files = append(files, f.TenantsDir)
	}
	if f.AdminAPI.SecretsDir != "" { // for all that is in it, whoever has changed it
		files = append(files, filepath.Join(f.AdminAPI.SecretsDir, sealed.Mark))
	}
	for i := range f.Tenants {
		t := &f.Tenants[i]
		if t.Secrets.Dir == "" {
			continue
		}
		for ref := range t.SecretRefs() {
			if ref.Ref != "" {
				files = append(files, filepath.Join(t.Secrets.Dir, filepath.FromSlash(ref.Ref)))
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// contents are digests of files by path. A file that cannot be read has the
// zero digest.
type contents map[string][sha256.Size]byte

// contentsOf returns the digests of files, and of those that are folders the
// digests of the files of tenants in them.
func contentsOf(digests *config.Digests, files []string) contents {
	c := make(contents, len(files))
	for _, path := range files {
		c[path] = digests.Of(path)
		if isFolder(path) {
			tenants, _ := config.TenantFiles(path) // none of a folder that cannot be read
			for _, file := range tenants {
				c[file] = digests.Of(file)
			}
		}
	}
	return c
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// differing returns the paths whose digests differ between c and later, or that
// only one of them has, sorted.
func (c contents) differing(later contents) []string {
	var paths []string
	for path, digest := range later {
		if before, ok := c[path]; !ok || before != digest {
			paths = append(paths, path)
		}
	}
	for path := range c {
		if _, ok := later[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// maxLinks is how many symbolic links are followed, as most systems do.
const maxLinks = 40

// entriesOf returns the folder entries that decide what path leads to: the file
// itself, and every symbolic link on the way to it. When one of them is
// replaced, path may lead to other content. So it is with a ConfigMap, where
// gateway.yaml is a link to ..data/gateway.yaml and ..data is a link that is
// swapped. path is absolute.
func entriesOf(path string) []string {
	var entries []string
	volume := filepath.VolumeName(path)
	at := volume + string(filepath.Separator)
	rest := splitPath(path[len(volume):])
	for links := 0; len(rest) > 0; {
		entry := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(entry)
		if err != nil { // not there yet: wait for it to come
			return append(entries, entry)
		}
		if info.Mode()&os.ModeSymlink == 0 {
			if len(rest) == 0 {
				entries = append(entries, entry)
			}
			at = entry
			continue
		}
		entries = append(entries, entry)
		target, err := os.Readlink(entry)
		if links++; err != nil || links > maxLinks {
			return entries
		}
		if filepath.IsAbs(target) {
			volume = filepath.VolumeName(target)
			at = volume + string(filepath.Separator)
			target = target[len(volume):]
		}
		rest = append(splitPath(target), rest...)
	}
	return entries
}

// splitPath returns the names in path. "." and ".." stay, because what ".."
// means depends on the links before it.
func splitPath(path string) []string {
	var names []string
	for len(path) > 0 {
		i := 0
		for i < len(path) && !os.IsPathSeparator(path[i]) {
			i++
		}
		if i > 0 {
			names = append(names, path[:i])
		}
		path = path[min(i+1, len(path)):]
	}
	return names
}

// linksIn returns the files of tenants in a folder that are symbolic links. What
// they lead to can be replaced without a notification of the folder.
func linksIn(folder string) []string {
	tenants, _ := config.TenantFiles(folder)
	return slices.DeleteFunc(tenants, func(path string) bool {
		info, err := os.Lstat(path)
		return err != nil || info.Mode()&os.ModeSymlink == 0
	})
}
