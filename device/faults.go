package device

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/zone"
)

// causesChanged follows changes of the causes on ports.
func (c *Core) causesChanged(list []errdown.Change, now time.Time) {
	for _, ch := range list {
		c.causeChanged(ch, ch.At, now)
	}
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
		c.setAdmin(p, false, now)
	case errdown.ActionOpen:
		c.setAdmin(p, true, now)
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
		c.fencePort(p, now)
	case f.active:
		f.active = false
		p.closed = c.closed(p)
		f.addrs = c.addrsOn(p.Name, !p.closed)
	}
	c.tellFault(p, at, now)
}

// faultEvent tells of a change; before: the port had a fault before it.
func (c *Core) faultEvent(ch errdown.Change, p *port, before bool) {
	hosts, since := len(p.fault.addrs), p.fault.since
	c.say(func() api.Event {
		state, text := "cleared", fmt.Sprintf("%s on port %s has cleared", ch.Cause, ch.Port)
		switch {
		case ch.Faulty && before:
			text = fmt.Sprintf("%s on port %s too: its %d host address(es) have been unreachable since %s", ch.Cause, ch.Port, hosts, since.Format(time.TimeOnly))
		case ch.Faulty:
			text = fmt.Sprintf("%s on port %s: %d host address(es) unreachable", ch.Cause, ch.Port, hosts)
		}
		if ch.Of != "" {
			text += " (" + ch.Of + ")"
		}
		if ch.Cause == errdown.Drained {
			text = drainText(&ch, hosts)
		}
		if ch.Faulty {
			state = "faulty"
		}
		return api.Event{Time: ch.At, Kind: "fault", Text: text, Port: ch.Port,
			Fields: map[string]string{"cause": ch.Cause.String(), "state": state, "hosts": fmt.Sprint(hosts)}}
	})
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
	if f.active {
		c.fallen(c.self, p.Name, f.addrs, now)
	}
	for _, a := range up { // of a host with another port nothing has changed, but this one may be asked now
		c.contend(a, now)
	}
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
	if f.active || len(f.addrs) == 0 || c.closed(p) {
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
	if f.active || len(put) == 0 || c.closed(p) {
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
	if !f.active && !c.closed(p) {
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

// draining is a port that is drained and not shut yet.
type draining struct {
	latest time.Time // shut by then
	busy   time.Time // when somebody was last known to owe an ack
}

// followDrain notes what has become of the draining of a port, whoever ended it: by
// Undrain, by a recovery, or by opening the port behind our back.
func (c *Core) followDrain(p *port, now time.Time) {
	_, closed, ok := c.faults.Drained(p.Name)
	if !ok || closed {
		p.draining = nil
	}
	if !ok {
		c.notify.SetLeaving(p.Name, false, now)
	}
}

// drainText says what has become of the draining of a port.
func drainText(ch *errdown.Change, hosts int) string {
	switch {
	case !ch.Faulty:
		return fmt.Sprintf("port %s is not drained any more", ch.Port)
	case ch.Action == errdown.ActionShut:
		return fmt.Sprintf("port %s is drained and is being shut", ch.Port)
	}
	return fmt.Sprintf("port %s is being drained: its %d host address(es) leave, then it is shut", ch.Port, hosts)
}
