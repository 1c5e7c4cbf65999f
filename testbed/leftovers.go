package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// OwnRoot is a directory for the labs of this process alone: PREFIX and its pid, in
// the temporary directory. It is short, because unix sockets live below it.
func OwnRoot(prefix string) string {
	return filepath.Join(os.TempDir(), prefix+strconv.Itoa(os.Getpid()))
}

// RemoveLeftovers takes away what processes that were killed left in their OwnRoot:
// labs, and files beside them whose names begin with the root's.
func RemoveLeftovers(prefix string) error {
	roots, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, root := range roots {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(root), prefix), "-")
		pid, perr := strconv.Atoi(number)
		if perr != nil || pid == os.Getpid() || alivePID(pid) {
			continue
		}
		labs, lerr := Labs(root)
		for _, name := range labs {
			lerr = errors.Join(lerr, Down(name, Options{Root: root}))
		}
		if lerr == nil {
			lerr = os.RemoveAll(root)
		}
		if lerr != nil {
			err = errors.Join(err, fmt.Errorf("what an earlier run left in %s: %w", root, lerr))
		}
	}
	return err
}

// alivePID reports whether a process runs; one that only waits to be reaped does not.
func alivePID(pid int) bool {
	state, _, err := procStat(pid)
	return !errors.Is(err, os.ErrNotExist) && state != 'Z' && state != 'X'
}
