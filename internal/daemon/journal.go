package daemon

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/lldp"
)

// JournalEntry is one change of what a State keeps. Entries are written as they
// happen, a State a moment later: a State and the entries since it lose nothing when
// the process is killed. One of the fields is set.
type JournalEntry struct {
	Told      *hostnotify.Entry `json:"told,omitempty"`      // a notice was put in a frame
	Neighbour *lldp.Neighbour   `json:"neighbour,omitempty"` // learned or changed
	Gone      *lldp.Neighbour   `json:"gone,omitempty"`      // of the LLDP table
	Down      string            `json:"down,omitempty"`      // a port has lost its carrier
	Fault     *errdown.Saved    `json:"fault,omitempty"`     // of a port: what error-down keeps of it now
	Path      *SavedPath        `json:"path,omitempty"`      // the path to a device fails
	PathOver  netip.Addr        `json:"path_over,omitzero"`  // to this device it does not any more
}

// maxJournalWaiting bounds the entries that nobody takes from a Core.
const maxJournalWaiting = 1 << 16

// note adds an entry to the journal.
func (c *Core) note(e JournalEntry) {
	if c.restoring {
		return
	}
	if len(c.journal) == maxJournalWaiting {
		c.journal = nil // nobody takes them
	}
	c.journal = append(c.journal, e)
}

// noteFaults adds what is to be kept of a port's faults, if that has changed. Without it
// a process that is killed right after it has shut a port would leave it shut for ever.
func (c *Core) noteFaults(p *port) {
	if is := c.faults.Saved(p.Name); !is.SameFaults(&p.kept) {
		p.kept = is
		c.revision++
		c.note(JournalEntry{Fault: &is})
	}
}

func (c *Core) noteNeighbour(ch *lldp.Change) {
	n := ch.Neighbour
	if ch.Kind == lldp.Removed {
		c.note(JournalEntry{Gone: &n})
	} else {
		c.note(JournalEntry{Neighbour: &n})
	}
}

// Journal returns the entries since it was last called, in order. They belong to the caller.
func (c *Core) Journal() []JournalEntry {
	if c.notify == nil {
		return nil
	}
	told := c.notify.Journal()
	if len(told) == 0 && len(c.journal) == 0 {
		return nil
	}
	list := c.journal
	c.journal = nil
	for i := range told {
		e := told[i]
		list = append(list, JournalEntry{Told: &e})
	}
	return list
}

// Replay adds journal entries, in their order, to a State that is older than they are.
func (st *State) Replay(entries []JournalEntry) {
	var told []hostnotify.Entry
	if st.Told == nil && len(entries) > 0 {
		st.Told = &hostnotify.Snapshot{}
	}
	st.Clean = st.Clean && len(entries) == 0
	for i := range entries {
		switch e := &entries[i]; {
		case e.Told != nil:
			told = append(told, *e.Told)
		case e.Neighbour != nil:
			if j := st.neighbour(e.Neighbour); j >= 0 {
				st.Neighbours[j] = *e.Neighbour
			} else {
				st.Neighbours = append(st.Neighbours, *e.Neighbour)
			}
		case e.Gone != nil:
			if j := st.neighbour(e.Gone); j >= 0 {
				st.Neighbours = slices.Delete(st.Neighbours, j, j+1)
			}
		case e.Down != "":
			st.Told.Replay(told)
			told = nil
			st.portDown(e.Down)
		case e.Fault != nil:
			st.fault(*e.Fault)
		case e.Path != nil:
			st.path(e.Path.Device, e.Path)
		case e.PathOver.IsValid():
			st.path(e.PathOver, nil)
		}
	}
	if len(told) > 0 {
		st.Told.Replay(told)
	}
}

// fault puts what is kept of a port's faults in, or takes it out when it is nothing.
func (st *State) fault(s errdown.Saved) {
	st.Ports = slices.DeleteFunc(st.Ports, func(o errdown.Saved) bool { return o.Port == s.Port })
	if !s.Empty() {
		st.Ports = append(st.Ports, s)
	}
}

// path puts a failed path in, or takes it out (nil).
func (st *State) path(dev netip.Addr, failed *SavedPath) {
	st.Paths = slices.DeleteFunc(st.Paths, func(p SavedPath) bool { return p.Device == dev })
	if failed != nil {
		st.Paths = append(st.Paths, *failed)
	}
}

// neighbour is the index of a neighbour, -1 if it is not there.
func (st *State) neighbour(n *lldp.Neighbour) int {
	return slices.IndexFunc(st.Neighbours, func(o lldp.Neighbour) bool { return o.Same(n) })
}

// portDown notes that nobody behind a port was heard since its carrier was lost, and
// that the hosts that were told things over it alone are owed to be told everything.
func (st *State) portDown(port string) {
	for i := range st.Neighbours {
		if n := &st.Neighbours[i]; n.Port == port {
			n.Confirmed = false
		}
	}
	for i := range st.Neighbours {
		if n := &st.Neighbours[i]; n.Port == port {
			for _, h := range n.Known {
				st.owe(h)
			}
		}
	}
}

// owe notes that a host is to be told everything, unless it is heard on another port.
func (st *State) owe(h lldp.HostInfo) {
	is := func(o lldp.HostInfo) bool { return o.Addr == h.Addr && o.MAC == h.MAC }
	for i := range st.Neighbours {
		if n := &st.Neighbours[i]; n.Confirmed && slices.ContainsFunc(n.Known, is) {
			return
		}
	}
	for i := range st.Told.Hosts {
		if t := &st.Told.Hosts[i]; t.Addr == h.Addr && t.MAC == h.MAC {
			t.Owed = true
		}
	}
}
