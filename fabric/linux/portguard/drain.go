package portguard

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric/fence"
)

// Drained implements fence.Dataplane; doc.go explains the order of what it looks at.
func (g *Guard) Drained(b fence.Block) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.ports[b.Port]
	if a == nil {
		return false, fmt.Errorf("port %s is not guarded: its queue cannot be watched", b.Port)
	}
	l, err := netlink.LinkByIndex(a.port.Index)
	if err != nil {
		return false, fmt.Errorf("port %s: %w", b.Port, err)
	}
	if err := g.graceAfter(b.Since); err != nil {
		return false, fmt.Errorf("port %s: %w", b.Port, err)
	}
	if n, err := backlog(l); err != nil || n > 0 {
		return false, err
	}
	switch l.Type() {
	case "veth", "tuntap", "tun":
		return true, nil // they have no ring: what has left the queue is with the host
	case "device": // a NIC
	default:
		return false, fmt.Errorf("port %s is a %s: frames may wait in the ports below it, guard those", b.Port, l.Type())
	}
	if err := g.graceAfter(time.Now()); err != nil { // what has left the queue is in the ring
		return false, fmt.Errorf("port %s: %w", b.Port, err)
	}
	held, err := ring(filepath.Join("/sys/class/net", a.port.Name), l.Attrs().Statistics)
	if err != nil {
		return false, fmt.Errorf("port %s: %w", b.Port, err)
	}
	return held == 0, nil
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL (linux/membarrier.h): it waits for a grace period.
const membarrierGlobal = 1

// graceAfter waits for a grace period of RCU that begins after t: no processor is then still between
// the program and the queue with a frame that the program saw before t. One serves all blocks.
func (g *Guard) graceAfter(t time.Time) error {
	if g.grace.After(t) {
		return nil
	}
	now := time.Now()
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		return fmt.Errorf("the kernel offers no grace period (membarrier, refused with nohz_full=): %w", errno)
	}
	g.grace = now
	return nil
}

// backlog returns the number of frames in the queues of an interface: the root has those of all.
func backlog(l netlink.Link) (uint32, error) {
	list, err := netlink.QdiscList(l)
	if err != nil {
		return 0, fmt.Errorf("queue of port %s: %w", l.Attrs().Name, err)
	}
	for _, q := range list {
		a := q.Attrs()
		if a.Parent != netlink.HANDLE_ROOT {
			continue
		}
		if a.Statistics == nil || a.Statistics.Queue == nil {
			return 0, fmt.Errorf("queue %s of port %s: the kernel does not report what it holds", q.Type(), l.Attrs().Name)
		}
		return a.Statistics.Queue.Qlen, nil
	}
	return 0, fmt.Errorf("port %s has no queue", l.Attrs().Name)
}

// ring returns how many bytes a driver has taken and not sent, by its byte queue limits. A driver
// without them never reports any: then nothing is known once it has sent a frame.
func ring(sys string, st *netlink.LinkStatistics) (held uint64, err error) {
	queues, err := filepath.Glob(filepath.Join(sys, "queues", "tx-*", "byte_queue_limits"))
	if err != nil || len(queues) == 0 {
		return 0, fmt.Errorf("%s: no byte queue limits (CONFIG_BQL, and /sys of this network namespace)", sys)
	}
	var limits uint64
	for _, q := range queues {
		for name, sum := range map[string]*uint64{"inflight": &held, "limit": &limits} {
			text, err := os.ReadFile(filepath.Join(q, name))
			if err != nil {
				return 0, err
			}
			n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", filepath.Join(q, name), err)
			}
			*sum += n
		}
	}
	if held == 0 && limits == 0 && st != nil && st.TxPackets > 0 {
		return 0, fmt.Errorf("its driver does not report what its ring holds (byte queue limits)")
	}
	return held, nil
}
