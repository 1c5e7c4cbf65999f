package device

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/lldp"
)

// Restore takes over what the last process kept. It is called once, before any event. What
// cannot be used is left out and told in the error.
func (c *Core) Restore(st State, now time.Time) error {
	for _, dev := range st.Known {
		c.keep.known[dev] = true
	}
	c.restoreHalts(&st, now)
	if c.client == nil {
		return nil
	}
	c.restorePaths(st.Paths)
	c.recall(&st.LastSync, now)
	if st.Incomplete || !st.HeldBack.IsZero() {
		left := st.HeldBack.Sub(now)
		if st.Incomplete || left <= 0 || left > HoldBack { // the clock was set, or nobody has listened since
			left = HoldBack
		}
		c.client.HoldBack(now.Add(left))
	}
	c.keepHeldBack()
	maps.Copy(c.keep.epochs, st.Reflectors)
	if len(st.Told.Subjects) > 0 || c.client.Recalling() {
		c.client.Relies(st.Reflectors)
	}
	if st.Incomplete {
		st.Told.Doubt()
	}
	var errs []error
	errs = append(errs, c.notify.Restore(st.Told, now))
	c.notify.RestoreHistory(st.Notices)
	errs = append(errs, c.restoreNeighbours(st.Neighbours, now))
	c.restoring = true
	defer func() { c.restoring = false }()
	for _, n := range c.table.All() {
		c.restoredPort(n.Port, &st)
	}
	c.restoreHosts(now)
	c.restoreDeclared()
	c.restoreEarly(st.Early, now)
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		c.restoreUnheard(c.ports[name], now)
	}
	var faults []errdown.Saved
	for _, name := range slices.Sorted(maps.Keys(st.Ports)) {
		if p := st.Ports[name]; !p.Saved.Empty() {
			c.restoredPort(name, &st)
			faults = append(faults, p.Saved)
		}
	}
	c.causesChanged(c.faults.Restore(faults, now), now)
	c.restoreDrains(now)
	return errors.Join(errs...)
}

// recall brings what the reflectors said last into force, before any local host is known.
func (c *Core) recall(l *LastSync, now time.Time) {
	if l.Settings == nil {
		if len(l.Zones)+len(l.Reserved)+len(l.Hosts)+len(l.Paths) == 0 {
			return
		}
		l.Settings = &wire.Settings{} // its row was damaged: hosts of no zone share none, no path is watched
	}
	if c.saving.since = l.At; l.At.IsZero() {
		c.saving.since = now // it was not long before
	}
	c.restoring = true
	defer func() { c.restoring = false }()
	for _, p := range l.Paths[:min(len(l.Paths), maxSavedPaths)] {
		if p.Device == c.self {
			continue
		}
		if c.mesh.cfg.Handed && len(p.Keys) > 0 {
			c.mesh.handout.keys[p.Device] = p.Keys
		}
		if p.Up {
			c.mesh.up[p.Device] = true
		}
	}
	c.notify.Recall()
	a := c.client.Recall(l.LastSync)
	c.apply(&a, now)
}

// restoreNeighbours gives the table its rows back; those that it does not take are removed.
func (c *Core) restoreNeighbours(list []lldp.Neighbour, now time.Time) error {
	err := c.table.Restore(list, now)
	if err == nil || c.keep.to == nil {
		return err
	}
	taken := make(map[string]bool)
	for _, n := range c.table.All() {
		taken[string(n.RowKey(nil))] = true
	}
	for i := range list {
		if key := list[i].RowKey(nil); !taken[string(key)] {
			c.keep.to.Delete(tableNeighbour, key)
		}
	}
	return err
}

// restoreHosts makes the restored hosts known, the earlier ones first: of two that
// claim one address the right one must have it from the beginning.
func (c *Core) restoreHosts(now time.Time) {
	type attached struct {
		port *port
		info lldp.HostInfo
	}
	var all []attached
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		for _, h := range c.table.Hosts(name) {
			all = append(all, attached{c.ports[name], h})
		}
	}
	slices.SortStableFunc(all, func(a, b attached) int { return a.info.Since.Compare(b.info.Since) })
	for i := range all {
		c.hostHere(all[i].port, &all[i].info, now, now)
	}
}

// restoreUnheard puts the addresses back into a port's fault that were not heard
// since it had lost its carrier: that the process was away is no evidence of them.
func (c *Core) restoreUnheard(p *port, now time.Time) {
	unheard := c.table.Unheard(p.Name)
	if len(unheard) == 0 {
		return
	}
	since := p.lost
	if since.IsZero() || since.After(now) {
		since = now
	}
	p.fault = portFault{why: errdown.LinkDown.Reason(), cause: errdown.LinkDown, since: since, addrs: unheard}
	c.tellFault(p, now, now)
}

// restoredPort is what proves, at the first event of a port, what became of it while the process
// was away.
type restoredPort struct {
	index    int
	changes  uint64
	sameBoot bool
}
