package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// StopGrace is how long daemons may take to end by themselves.
const StopGrace = 3 * time.Second

// Down removes the lab: processes, namespaces, links and files.
func (l *Lab) Down() error {
	l.mu.Lock()
	own := l.lock != nil
	l.mu.Unlock()
	if !own {
		lock, err := lockLab(l.Dir)
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	defer l.unlock()
	return l.remove()
}

// Down removes the named lab, whatever state it was left in.
func Down(name string, opt Options) error {
	opt = opt.withDefaults()
	if !ValidName(name) {
		return fmt.Errorf("%w: %q cannot name a lab", ErrNoLab, name)
	}
	dir := filepath.Join(opt.Root, name)
	lock, err := lockLab(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	st, err := readState(dir)
	if err != nil {
		return err
	}
	return newLab(opt, name, st).remove()
}

// remove is Down with the lock held. It goes on after errors, as far as it can
// without guessing, and keeps the directory when something is left.
func (l *Lab) remove() error {
	for _, n := range l.st.Nodes {
		if ino := currentNS(0, "net"); n.NetNS != 0 && n.NetNS == ino && l.st.Boot == bootID() {
			return fmt.Errorf("this process runs inside node %s of lab %s; call lab down from outside", n.Name, l.Name)
		}
	}
	l.st.Phase = PhaseStopping
	if err := l.step("stop processes"); err != nil {
		return err
	}
	if left := l.stopProcesses(); len(left) > 0 {
		return fmt.Errorf("lab %s: %d processes do not end, first %s (pid %d); the lab is kept for another lab down", l.Name, len(left), left[0].Name, left[0].PID)
	}
	if err := l.step("remove namespaces"); err != nil {
		return err
	}
	l.Close() // netlink sockets hold their namespace
	var errs []error
	for _, name := range l.st.NetNames {
		if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, l.Dir+"/") {
			errs = append(errs, os.Remove(name))
		}
	}
	for _, node := range l.nodesOnDisk() {
		errs = append(errs, removeNS(l.ns(node)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lab %s: %w", l.Name, err)
	}
	if err := l.step("remove files"); err != nil {
		return err
	}
	// The state file goes last: as long as something is left, it is known whose it is.
	es, err := os.ReadDir(l.Dir)
	if err != nil {
		return err
	}
	for _, e := range es {
		if e.Name() != stateFile {
			errs = append(errs, os.RemoveAll(filepath.Join(l.Dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lab %s: %w", l.Name, err)
	}
	if err := os.RemoveAll(l.Dir); err != nil {
		return fmt.Errorf("lab %s: %w", l.Name, err)
	}
	if strings.HasPrefix(filepath.Base(l.opt.Root), "inof-lab") {
		_ = os.Remove(l.opt.Root) // goes with its last lab
	}
	return nil
}

// nodesOnDisk lists the nodes that have namespace files, by what is there rather
// than by what was planned.
func (l *Lab) nodesOnDisk() []string {
	es, err := os.ReadDir(filepath.Join(l.Dir, "ns"))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range es {
		if n, ok := strings.CutSuffix(e.Name(), ".net"); ok {
			out = append(out, n)
		} else if n, ok := strings.CutSuffix(e.Name(), ".uts"); ok {
			out = append(out, n)
		}
	}
	return out
}

// stopProcesses ends everything that runs in the lab and returns what is left.
// Started daemons go first and get time; then whatever else is found, until
// nothing is, because a process may have forked meanwhile.
func (l *Lab) stopProcesses() []Process {
	if l.st.Boot != bootID() {
		return nil // pids of an earlier boot mean nothing
	}
	var known []Process
	for _, n := range l.st.Nodes {
		known = append(known, n.Processes...)
	}
	stopAll(known, StopGrace)
	var left []Process
	for range 10 {
		if left = findProcesses(l.owner()); len(left) == 0 {
			break
		}
		stopAll(left, StopGrace)
	}
	if l.st.Holder != nil {
		left = append(left, stopAll([]Process{*l.st.Holder}, 0)...)
	}
	l.mu.Lock()
	reaped := l.reaped
	l.reaped = make(map[int]chan struct{})
	l.mu.Unlock()
	if len(left) == 0 {
		for _, gone := range reaped {
			<-gone
		}
	}
	return left
}

// owner tells which processes belong to the lab: those in a namespace that is
// mounted in the lab's directory right now; and those that carry the lab's mark and
// are in a namespace the lab recorded, which also finds them from outside the mount
// or user namespace the lab was built in.
func (l *Lab) owner() func(pid int) bool {
	mounted, recorded := make(map[uint64]bool), make(map[uint64]bool)
	for _, node := range l.nodesOnDisk() {
		if ino := nsInode(l.ns(node).net); ino != 0 {
			mounted[ino] = true
		}
	}
	for _, n := range l.st.Nodes {
		recorded[n.NetNS] = true
	}
	mine := currentNS(0, "net")
	return func(pid int) bool {
		ino := currentNS(pid, "net")
		if ino == 0 {
			return false
		}
		if mounted[ino] {
			return true
		}
		inLab := recorded[ino] || l.st.Nested && currentNS(pid, "user") == l.st.UserNS
		return inLab && ino != mine && hasEnv(pid, envLab+"="+l.Dir)
	}
}
