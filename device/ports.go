package device

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// portFault is the fault record of a port as this device tells it to the others.
//
// While a cause is active every address learned on the port is listed. When the
// last cause has gone, an address stays listed until its host is heard from again
// (only carrier loss makes a host unheard), because "reachable" needs evidence.
type portFault struct {
	active bool
	why    snsd.Reason
	cause  errdown.Cause
	since  time.Time
	addrs  []netip.Addr // sorted
}

// Port takes a port event of the dataplane.
func (c *Core) Port(ev fabric.Event, now time.Time) {
	if c.client == nil {
		return
	}
	p := c.ports[ev.Port.Name]
	if p == nil {
		p = &port{}
		c.ports[ev.Port.Name] = p
	}
	if ev.Kind == fabric.PortRemoved && !c.named(ev.Port.Name) {
		c.release(p, ev, now)
		return
	}
	if p.blinked(&ev) {
		gone := ev
		gone.Kind, gone.Port.Carrier, gone.Changes = fabric.PortChanged, false, ev.Changes-1
		c.Port(gone, now)
	}
	regained := !p.leaves.IsZero()
	if regained {
		c.regain(p, now)
	}
	was := p.present && p.Up()
	p.Port, p.present = ev.Port, ev.Kind != fabric.PortRemoved
	c.replan[p.Name] = true
	is := p.present && p.Up()
	if was && !is || !is && ev.Kind == fabric.PortAdded {
		p.lost = ev.At
		c.table.PortDown(ev.Port.Name, now)
		p.losses++
	}
	p.changes = ev.Changes
	c.portRow(p)
	for _, ch := range c.faults.Port(ev, now) {
		c.causeChanged(ch, ch.At, now)
	}
	if regained && p.fault.active {
		c.followFault(p, ev.At, ev.At, now) // of before, when somebody looked at it
	}
	c.noteFaults(p)
	if is {
		c.notify.PortUp(p.Name, p.MAC, now)
	} else {
		c.notify.PortDown(p.Name)
	}
	if regained {
		c.resubscribe(p, now)
	}
	if p.was != nil && is {
		c.back(p, &ev)
	}
	p.was = nil
	if c.speak != nil {
		if is {
			c.speakOn(p, now)
		} else {
			c.speak.PortDown(p.Name)
		}
	}
	c.flush(now)
	if was != is || ev.Kind != fabric.PortChanged {
		c.portEvent(ev, is)
	}
	c.forget(p)
}

// blinked reports whether the port, up before and after the event, was down in between: too shortly
// for an event of its own, but its hosts may have seen it and forgotten what they were told.
func (p *port) blinked(ev *fabric.Event) bool {
	return p.present && p.Up() && ev.Port.Up() && p.changes > 0 && ev.Changes > p.changes+1
}

// forget drops a port that is gone once no host is known behind it any more.
func (c *Core) forget(p *port) {
	if !p.present && !c.restoring && c.table.Count(p.Name) == 0 {
		c.faults.Forget(p.Name)
		c.notify.PortGone(p.Name)
		delete(c.ports, p.Name)
		c.portRow(p)
	}
}

func (c *Core) portEvent(ev fabric.Event, up bool) {
	state := "down"
	if up {
		state = "up"
	}
	text := fmt.Sprintf("port %s is %s", ev.Port.Name, state)
	if ev.Kind != fabric.PortChanged {
		text = fmt.Sprintf("port %s %s, %s", ev.Port.Name, ev.Kind, state)
	}
	c.out.Event(api.Event{Time: ev.At, Kind: "port", Text: text, Port: ev.Port.Name,
		Fields: map[string]string{"state": state, "event": ev.Kind.String()}})
}

// Sample takes a reading of a port's health for the detectors that need it.
func (c *Core) Sample(name string, h fabric.Health, now time.Time) {
	if c.client == nil || c.ports[name] == nil {
		return
	}
	changes := c.faults.Sample(name, h, now)
	c.noteFaults(c.ports[name])
	for _, ch := range changes {
		c.causeChanged(ch, ch.At, now)
	}
	if len(changes) > 0 {
		c.flush(now)
	}
}

// Replan hands over what is to be read of ports whose needs may have changed since
// the last call.
func (c *Core) Replan(set func(port string, needs []errdown.Need)) {
	if len(c.replan) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.replan)) {
		set(name, c.faults.Needs(name))
	}
	clear(c.replan)
}

// causeChanged follows one change of one cause on one port; at is when the event behind it
// happened, zero where there is none.
func (c *Core) causeChanged(ch errdown.Change, at, now time.Time) {
	p := c.ports[ch.Port]
	if p == nil {
		return
	}
	c.noteFaults(p)
	before := p.fault.active
	c.followFault(p, ch.Since, at, now)
	switch ch.Action {
	case errdown.ActionShut:
		c.out.SetAdmin(ch.Port, false)
	case errdown.ActionOpen:
		c.out.SetAdmin(ch.Port, true)
	}
	if ch.Cause == errdown.Drained {
		c.followDrain(p, now)
	}
	c.faultEvent(ch, p, before)
}

// followFault makes the fault record of a port what its causes say, and tells it.
func (c *Core) followFault(p *port, since, at, now time.Time) {
	cause, faulty := c.faults.Worst(p.Name)
	f := &p.fault
	switch {
	case faulty:
		if !f.active {
			f.since = since
		}
		f.active, f.cause, f.why = true, cause, cause.Reason()
		f.addrs = c.addrsOn(p.Name, false)
	case f.active:
		f.active = false
		f.addrs = c.addrsOn(p.Name, true)
	}
	c.tellFault(p, at, now)
}

// faultEvent tells of a change; before: the port had a fault before it.
func (c *Core) faultEvent(ch errdown.Change, p *port, before bool) {
	text := fmt.Sprintf("%s on port %s has cleared", ch.Cause, ch.Port)
	switch hosts := len(p.fault.addrs); {
	case ch.Faulty && before:
		text = fmt.Sprintf("%s on port %s too: its %d host address(es) have been unreachable since %s", ch.Cause, ch.Port, hosts, p.fault.since.Format(time.TimeOnly))
	case ch.Faulty:
		text = fmt.Sprintf("%s on port %s: %d host address(es) unreachable", ch.Cause, ch.Port, hosts)
	}
	if ch.Cause == errdown.Drained {
		text = drainText(&ch, len(p.fault.addrs))
	}
	state := "cleared"
	if ch.Faulty {
		state = "faulty"
	}
	c.out.Event(api.Event{Time: ch.At, Kind: "fault", Text: text, Port: ch.Port,
		Fields: map[string]string{"cause": ch.Cause.String(), "state": state, "hosts": fmt.Sprint(len(p.fault.addrs))}})
}

// tellFault brings what a port's fault says of its hosts to the reflectors first, because that
// is the longer way, and then to the local hosts.
func (c *Core) tellFault(p *port, at, now time.Time) {
	f := &p.fault
	up := slices.DeleteFunc(slices.Clone(p.told), func(a netip.Addr) bool {
		_, down := slices.BinarySearchFunc(f.addrs, a, netip.Addr.Compare)
		return down
	})
	p.told = f.addrs
	c.setDown(p.Name, up, zone.Down{})
	c.setDown(p.Name, f.addrs, f.down())
	if !at.IsZero() {
		c.client.MarkFault(at)
	}
	c.flush(now)
	changes := c.dir.SetDown(c.self, p.Name, f.addrs, f.down())
	c.changed(append(changes, c.dir.SetDown(c.self, p.Name, up, zone.Down{})...), at, now)
}

// down is what the fault says of a host that it lists.
func (f *portFault) down() zone.Down { return zone.Down{Why: f.why, Since: f.since.Round(0)} }

// downAt is what the fault of a port says of a host there.
func (p *port) downAt(addr netip.Addr) zone.Down {
	if _, listed := slices.BinarySearchFunc(p.fault.addrs, addr, netip.Addr.Compare); listed {
		return p.fault.down()
	}
	return zone.Down{}
}

// setDown notes of local hosts whether they can be reached, for the reflectors.
func (c *Core) setDown(name string, addrs []netip.Addr, down zone.Down) {
	for _, a := range addrs {
		k := zone.HostKey{Addr: a, Device: c.self, Port: name}
		if h, known := c.local[k]; known {
			h.Down = down
			c.local[k] = h
		}
	}
	c.client.SetDown(name, addrs, down)
}

// addrsOn lists the addresses learned on a port, or only those whose host was not
// heard since the carrier was lost.
func (c *Core) addrsOn(name string, unheard bool) []netip.Addr {
	if unheard {
		return c.table.Unheard(name)
	}
	hosts := c.table.Hosts(name)
	addrs := make([]netip.Addr, len(hosts))
	for i := range hosts {
		addrs[i] = hosts[i].Addr
	}
	return addrs
}

// heard takes addresses out of a fault that is over.
func (c *Core) heard(p *port, addrs []netip.Addr, at, now time.Time) {
	f := &p.fault
	if f.active || len(f.addrs) == 0 {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(f.addrs), func(a netip.Addr) bool { return slices.Contains(addrs, a) })
	if len(rest) == len(f.addrs) {
		return
	}
	f.addrs = rest
	c.tellFault(p, at, now)
}

// passed takes addresses that one neighbour of a port left to another. The latter may
// not have been heard since the carrier was lost: then nobody is there any more.
func (c *Core) passed(p *port, put []lldp.HostInfo, at, now time.Time) {
	f := &p.fault
	if f.active || len(put) == 0 {
		return
	}
	unheard := c.table.Unheard(p.Name)
	addrs := slices.Clone(f.addrs)
	for i := range put {
		j, listed := slices.BinarySearchFunc(addrs, put[i].Addr, netip.Addr.Compare)
		if !listed && slices.Contains(unheard, put[i].Addr) {
			addrs = slices.Insert(addrs, j, put[i].Addr)
		}
	}
	if len(addrs) == len(f.addrs) {
		return
	}
	if len(f.addrs) == 0 {
		f.why, f.cause, f.since = errdown.LinkDown.Reason(), errdown.LinkDown, at
	}
	f.addrs = addrs
	c.tellFault(p, at, now)
}

// listed puts an address that was learned on a port with an active fault into the fault.
func (c *Core) listed(p *port, addr netip.Addr, now time.Time) {
	f := &p.fault
	if !f.active {
		return
	}
	if i, found := slices.BinarySearchFunc(f.addrs, addr, netip.Addr.Compare); !found {
		f.addrs = slices.Insert(slices.Clone(f.addrs), i, addr)
		c.tellFault(p, now, now)
	}
}

// unlisted takes an address that has left a port out of its fault.
func (c *Core) unlisted(p *port, addr netip.Addr, now time.Time) {
	f := &p.fault
	if i, found := slices.BinarySearchFunc(f.addrs, addr, netip.Addr.Compare); found {
		f.addrs = slices.Delete(slices.Clone(f.addrs), i, i+1)
		c.tellFault(p, now, now)
	}
}
