package inof

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/zone"
)

// coalescer holds what waits for a receiver as the latest state of each record:
// however long it waits, it is never more than there are records.
type coalescer struct {
	settings *Settings
	zones    map[string]ZoneRecord
	hosts    map[zone.HostKey]HostRecord
	faults   map[portKey]FaultRecord
	stamps   map[netip.Addr]Stamp
	last     *Update    // its origin and number are those of the run
	cause    *Update    // with the earliest fault, or the last one: its times are those of the run
	end      *EndOfSync // follows the records
	cluster  ClusterStamp
	refused  *Refusal
	size     int  // bytes of the records
	many     bool // more than one Update was added
	anew     bool // one of them began a full sync
}

// add takes an Update; what it says of a record replaces what was said before.
func (c *coalescer) add(u *Update) {
	if c.zones == nil {
		c.zones, c.hosts = map[string]ZoneRecord{}, map[zone.HostKey]HostRecord{}
		c.faults, c.stamps = map[portKey]FaultRecord{}, map[netip.Addr]Stamp{}
	}
	c.many, c.anew = c.many || c.last != nil, c.anew || u.Anew
	c.last = u
	if c.cause == nil || c.cause.FaultAt.IsZero() || !u.FaultAt.IsZero() && u.FaultAt.Before(c.cause.FaultAt) {
		c.cause = u
	}
	if u.Cluster.Index > 0 || u.Cluster.ID != c.cluster.ID {
		c.cluster = u.Cluster
	}
	if u.Refused != nil {
		again := c.refused != nil && c.refused.Again
		last := *u.Refused
		last.Again = last.Again || again
		c.refused = &last
	}
	if u.Settings != nil {
		c.settings = u.Settings
	}
	for _, r := range u.Zones {
		old, had := c.zones[r.Zone.Name]
		c.size += r.size()
		if had {
			c.size -= old.size()
		}
		c.zones[r.Zone.Name] = r
	}
	for _, r := range u.Hosts {
		old, had := c.hosts[r.Host.HostKey]
		c.size += r.size()
		if had {
			c.size -= old.size()
		}
		c.hosts[r.Host.HostKey] = r
		c.note(u, r.Host.Device)
	}
	for _, r := range u.Faults {
		k := portKey{r.Device, r.Port}
		if old, had := c.faults[k]; had {
			c.size -= old.size()
			r = old.then(r)
		}
		c.size += r.size()
		c.faults[k] = r
		c.note(u, r.Device)
	}
}

// note keeps of which state of a device its records are.
func (c *coalescer) note(u *Update, dev netip.Addr) {
	if s := u.StampOf(dev); s.Known() {
		c.stamps[dev] = s
	}
}

// take empties it into Updates.
func (c *coalescer) take() []*Update {
	if c.last == nil {
		return nil
	}
	if !c.many {
		u := c.last
		*c = coalescer{end: c.end}
		return []*Update{u}
	}
	b := c.batch()
	u, w := c.last, c.cause
	s := stamps{origin: u.Origin, epoch: u.Epoch, seq: func() uint64 { return u.Seq },
		fault: w.FaultAt, decided: w.DecidedAt, sent: w.SentAt, came: w.ReflectorAt, at: w.ReflectedAt, more: u.More}
	var tooLarge uint64 // none can be: each record came in a message
	out := b.updates(s, &tooLarge)
	if c.refused != nil { // beside records it might not fit
		first := s.update()
		first.Refused, first.More = c.refused, s.more || b.Settings != nil || len(b.Zones) > 0
		out = slices.Insert(out, 0, first)
	}
	if len(out) > 0 {
		out[0].Anew = c.anew
	}
	for i, m := range out {
		m.stampDevices(func(dev netip.Addr) Stamp { return c.stamps[dev] })
		if m.Cluster = c.cluster; m.More {
			m.Cluster = c.cluster.within()
		}
		if m.Partial = i < len(out)-1; !m.Partial {
			m.Pos, m.Partial = u.Pos, u.Partial
		}
	}
	*c = coalescer{end: c.end}
	return out
}

// batch gives what waits, sorted.
func (c *coalescer) batch() batch {
	b := batch{Settings: c.settings}
	for _, r := range c.zones {
		b.Zones = append(b.Zones, r)
	}
	for _, r := range c.hosts {
		b.Hosts = append(b.Hosts, r)
	}
	for _, r := range c.faults {
		b.Faults = append(b.Faults, r)
	}
	b.sort()
	return b
}

// StampOf is the state of a device of which the records in the Update are; zero
// when the Update does not say.
func (u *Update) StampOf(dev netip.Addr) Stamp {
	for _, d := range u.Devices {
		if d.Device == dev {
			return d.Stamp
		}
	}
	if dev == u.Origin {
		return Stamp{u.Epoch, u.Seq}
	}
	return Stamp{}
}

// stampDevices says of which state of their devices the records are, where the
// origin does not say it already.
func (u *Update) stampDevices(of func(netip.Addr) Stamp) {
	seen := func(dev netip.Addr) bool {
		for _, d := range u.Devices {
			if d.Device == dev {
				return true
			}
		}
		return false
	}
	index := map[netip.Addr]struct{}(nil)
	add := func(dev netip.Addr) {
		if len(u.Devices) > 8 { // a full sync has thousands
			if index == nil {
				index = make(map[netip.Addr]struct{}, 64)
				for _, d := range u.Devices {
					index[d.Device] = struct{}{}
				}
			}
			if _, ok := index[dev]; ok {
				return
			}
			index[dev] = struct{}{}
		} else if seen(dev) {
			return
		}
		if s := of(dev); s.Known() && (dev != u.Origin || s != (Stamp{u.Epoch, u.Seq})) {
			u.Devices = append(u.Devices, DeviceStamp{dev, s})
		}
	}
	for i := range u.Hosts {
		add(u.Hosts[i].Host.Device)
	}
	for i := range u.Faults {
		add(u.Faults[i].Device)
	}
}
