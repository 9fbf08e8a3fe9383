//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// isOurs reports whether a file belongs to this process's user or to root, so
// that nobody else could have written it.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}
