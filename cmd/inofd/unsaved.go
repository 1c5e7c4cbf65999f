package main

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// unsaved gives where the daemon keeps, beside the management socket, what is not on the disk yet:
// in memory, so that no notice waits for a disk. Where the socket lies on a disk the
// state directory is as good, and empty is returned.
func unsaved(socket string) string {
	var fs unix.Statfs_t
	if unix.Statfs(filepath.Dir(socket), &fs) != nil || fs.Type != unix.TMPFS_MAGIC && fs.Type != unix.RAMFS_MAGIC {
		return ""
	}
	return strings.TrimSuffix(socket, filepath.Ext(socket)) + ".unsaved"
}
