package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed"
)

// The access switches keep their state on small disks of their own, which faults of kind Disk fill.
// Those of reflectors are left alone: zones that cannot be saved are refused, and an operator's
// changes are faults of another kind.

const (
	// diskSize is more than the state of a switch of the lab.
	diskSize = 4 << 20
	junkFile = "junk"
	savePoll = 100 * time.Millisecond
)

// stateDir is where a daemon keeps its state.
func stateDir(root, lab, node string) string { return filepath.Join(root, lab, "nodes", node, "state") }

// ejectDisks takes the disks of a lab away, also those that a killed run left.
func ejectDisks(opt testbed.Options, name string) {
	if opt.Root == "" {
		opt.Root = testbed.DefaultRoot()
	}
	dirs, _ := filepath.Glob(stateDir(opt.Root, name, "*"))
	for _, dir := range dirs {
		for unix.Unmount(dir, unix.MNT_DETACH) == nil { // one may be over the other
		}
	}
}

// disks gives the access switches their disks. Daemons that are started later have them.
func (r *runner) disks() error {
	if !slices.Contains(r.Kinds, Disk) {
		return nil
	}
	for _, n := range r.fab.switches {
		dir := filepath.Join(r.lab.NodeDir(n), "state")
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", diskSize))
		}
		if err != nil {
			return fmt.Errorf("the disk of %s: %w", n, err)
		}
	}
	return nil
}

// fill leaves no room on the disk of a daemon for a while. When there is room again it
// writes what it could not; until it has, a restart would repeat notices.
func (r *runner) fill(ctx context.Context, f Fault) error {
	dir := filepath.Join(r.lab.NodeDir(f.Node), "state")
	junk := filepath.Join(dir, junkFile)
	for size := diskSize; size > 0; { // down to the last byte
		err := appendTo(junk, size)
		if err == nil {
			continue
		}
		if !errors.Is(err, unix.ENOSPC) {
			return errors.Join(err, os.Remove(junk))
		}
		size /= 2
	}
	r.sleep(ctx, f.For)
	if err := os.Remove(junk); err != nil {
		return err
	}
	return r.saves(ctx, f.Node)
}

// saves waits until a daemon has nothing that it could not save.
func (r *runner) saves(ctx context.Context, node string) error {
	c := api.NewClient(r.lab.Socket(node))
	defer c.Close()
	for limit := time.Now().Add(r.Settle); ctx.Err() == nil; r.sleep(ctx, savePoll) {
		one, stop := context.WithTimeout(ctx, zoneTimeout)
		s, err := api.Ask[api.Status](one, c, "status", nil)
		stop()
		if err == nil && !hasWarning(&s, "state-not-saved") {
			return nil
		}
		if time.Now().After(limit) {
			r.broken("%s does not save its state %s after there was room: %v, %s", node, r.Settle, err, s.Warnings)
			return nil
		}
	}
	return nil
}

func hasWarning(s *api.Status, rule string) bool {
	return slices.ContainsFunc(s.Warnings, func(w api.Warning) bool { return w.Rule == rule })
}

func appendTo(path string, bytes int) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, bytes))
	return errors.Join(err, f.Close())
}
