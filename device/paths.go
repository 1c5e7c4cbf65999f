package device

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
)

// Path takes what BFD reports of the path to another device: changes, and after each
// start of either process the present state of all. What follows from it is for the
// local hosts alone: every device sees its own paths.
func (c *Core) Path(ev bfd.Event, now time.Time) {
	defer c.settle(now)
	m, dev := &c.mesh, ev.Key.Peer.Unmap()
	if c.client == nil || !m.on() {
		return
	}
	if m.told && !m.watched[dev] {
		m.counters.Foreign++ // of before the last change of what is watched
		return
	}
	at := ev.At
	if at.IsZero() || at.After(now) {
		at = now
	}
	c.pathIsUp(dev, ev.Report == bfd.ReportUp)
	switch {
	case ev.Report == bfd.ReportDown:
		c.pathDown(dev, ev, at, now)
	// That this device itself holds a session down says nothing; that the other one
	// says so takes a path.
	case ev.Report == bfd.ReportUp, ev.Report == bfd.ReportAdminDown && ev.Diag != bfd.DiagAdminDown:
		c.pathUp(dev, ev, at, now)
	}
}

func (c *Core) pathDown(dev netip.Addr, ev bfd.Event, at, now time.Time) {
	if p := c.mesh.paths[dev]; p != nil && p.down {
		return
	}
	c.mesh.paths[dev] = &path{down: true, since: at}
	c.keepPath(dev, at)
	c.mesh.counters.PathsDown++
	changes := c.dir.SetDeviceFault(dev, snsd.ReasonBFDDown)
	c.changed(changes, at, now)
	for k, x := range c.contests { // an address may have moved back there, see fallen
		if !x.lost && x.rival.Device == dev {
			c.presence.Again(presence.Key{Port: k.Port, Addr: k.Addr}, now)
		}
	}
	c.pathEvent(dev, fmt.Sprintf("fails (%s): %d host address(es) unreachable from here", diagOf(ev), len(changes)), "down", &ev, at)
}

func (c *Core) pathUp(dev netip.Addr, ev bfd.Event, at, now time.Time) {
	p := c.mesh.paths[dev]
	if p == nil || !p.down {
		return
	}
	c.mesh.counters.PathsUp++
	text, state := "works again", "up"
	if ev.Report == bfd.ReportAdminDown {
		text, state = "is not watched by the other device: its hosts count as reachable", "admin-down"
	}
	c.clearPath(dev, at, now)
	c.pathEvent(dev, text, state, &ev, at)
	if !p.left.IsZero() {
		c.mesh.changed = true // it need not be watched any longer
	}
	*p = path{since: at}
}

// clearPath ends the fault of a path.
func (c *Core) clearPath(dev netip.Addr, at, now time.Time) {
	c.forgetPath(dev)
	c.changed(c.dir.SetDeviceFault(dev, snsd.ReasonNone), at, now)
}

// tickMesh tells which paths are to be watched, once changes of that have been
// gathered, and forgets faults of devices that have been gone for long.
func (c *Core) tickMesh(now time.Time) {
	m := &c.mesh
	if !m.forget.IsZero() && !now.Before(m.forget) {
		c.forgetPaths(now)
	}
	if m.due.IsZero() || now.Before(m.due) {
		return
	}
	m.due = time.Time{}
	rev := c.dir.PartnersRevision()
	if !m.changed && m.seen == rev {
		return
	}
	m.changed, m.seen = false, rev
	c.watch(now)
}

// forgetPaths gives up failed paths to devices that have been gone for long.
func (c *Core) forgetPaths(now time.Time) {
	m := &c.mesh
	m.forget = time.Time{}
	for _, dev := range slices.SortedFunc(maps.Keys(m.paths), netip.Addr.Compare) {
		p := m.paths[dev]
		if p.left.IsZero() {
			continue
		}
		if end := p.left.Add(pathMemory); now.Before(end) {
			m.forget = sooner(m.forget, end)
			continue
		}
		m.counters.Forgotten++
		m.changed = true
		c.pathEvent(dev, "is forgotten: the device has had no host in a common zone for long", "unknown", nil, now)
		c.clearPath(dev, now, now)
		delete(m.paths, dev)
	}
}
