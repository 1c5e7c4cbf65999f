package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
)

// BFDProcess is the name that the BFD process of a switch goes by. The switch's daemon
// starts it, not the lab, so it is looked for.
const BFDProcess = "inofd-bfd"

// findBFD looks for the BFD process of a node: `inofd bfd` in its network namespace.
func (l *Lab) findBFD(node string) (Process, error) {
	inode := nsInode(l.ns(node).net)
	found := findProcesses(func(pid int) bool {
		if inode == 0 || currentNS(pid, "net") != inode {
			return false
		}
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		args := bytes.Split(b, []byte{0})
		return err == nil && len(args) > 1 && string(args[1]) == "bfd"
	})
	if len(found) == 0 {
		return Process{}, fmt.Errorf("node %s has no BFD process", node)
	}
	// One that waits for another to end was started later.
	p := slices.MinFunc(found, func(a, b Process) int { return int(int64(a.Start) - int64(b.Start)) })
	p.Name = BFDProcess
	return p, nil
}

// Forward has a node stop (on false) or go on passing packets between its links. While
// it does not, every carrier stays and its own connections do too: a path that is
// silent, for BFD to find. at was taken right before the system call.
func (l *Lab) Forward(node string, on bool) (at time.Time, err error) {
	if err := l.hasNode(node); err != nil {
		return time.Time{}, err
	}
	value := "0"
	if on {
		value = "1"
	}
	err = l.Do(node, func() error {
		at = time.Now()
		for _, key := range []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"} {
			// A kernel without IPv6 has nothing to pass on there.
			if err := setSysctl(key, value); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return at, fmt.Errorf("node %s: forwarding: %w", node, err)
	}
	return at, nil
}
