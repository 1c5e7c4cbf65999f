package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// mover leaves dead paths: when a notice says that a target cannot be reached, it destroys the TCP
// sockets of the NVMe controllers on that path, and multipath sends their I/O over another one at
// once. It takes nothing away: the kernel connects the controller again when the path
// is back. It works in a goroutine of its own, so that no file and no socket of the kernel
// stands in the way of the next notice.
type mover struct {
	kernel  hostkernel.Tree
	destroy func(hostkernel.Sockets) (int, error)
	work    chan snsd.Notice
	done    chan line
	now     func() time.Time
}

// newMover makes the mover of --fail-over.
func newMover() *mover {
	return &mover{destroy: hostkernel.DestroySockets, work: make(chan snsd.Notice, snsd.MaxAgentPairs), done: make(chan line, 64), now: time.Now}
}

// deadPath reports whether a reason means that the path carries nothing any more. Packet
// errors do not: the path may still work; an ordered leave is not for this.
func deadPath(r snsd.Reason) bool {
	return r == snsd.ReasonLinkDown || r == snsd.ReasonPFCStorm || r == snsd.ReasonBFDDown
}

// take hands a notice to the mover, and reports whether it had room.
func (m *mover) take(n snsd.Notice) bool {
	select {
	case m.work <- n:
		return true
	default:
		return false
	}
}

// run works until ctx ends.
func (m *mover) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case n := <-m.work:
			l := m.leave(n)
			select {
			case m.done <- l:
			case <-ctx.Done():
			}
		}
	}
}

// leave ends the connections of one path and says what came of it.
func (m *mover) leave(n snsd.Notice) line {
	begun := m.now()
	l := line{Event: "failover"}.notice(&n)
	controllers, err := m.kernel.Controllers()
	if err != nil {
		l.Error = err.Error()
	}
	ended := map[netip.AddrPort]bool{}
	for i := range controllers {
		c := &controllers[i]
		if c.Target.Addr() != n.Subject || c.Discovery || c.Source.IsValid() && c.Source != n.Host {
			continue
		}
		l.Controllers = append(l.Controllers, c.Name())
		switch {
		case c.Transport != "tcp":
			l.Error = fmt.Sprintf("%s is over %s: only paths over TCP are left", c.Name(), c.Transport)
		case !ended[c.Target]:
			ended[c.Target] = true
			k, err := m.destroy(hostkernel.Sockets{Source: n.Host, Target: c.Target})
			l.Sockets += k
			if err != nil {
				l.Error = err.Error()
			}
		}
	}
	l.Time = m.now()
	l.TookNS = l.Time.Sub(begun).Nanoseconds()
	return l
}
