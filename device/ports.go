package device

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

// Port takes a port event of the dataplane.
func (c *Core) Port(ev fabric.Event, now time.Time) {
	if c.client == nil {
		return
	}
	defer c.settle(now)
	ev = c.seem(ev)
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
		c.portIs(p, gone, now)
	}
	c.portIs(p, ev, now)
	if ev.ShutByUs {
		c.adoptShut(p.Name, now)
	}
	c.forget(p)
}

// adoptShut takes over a port that was shut before, and whose fault is not known: the state of the
// process before was lost, or the port went and came again. It is shut by hand, so that a recovery
// opens it.
func (c *Core) adoptShut(name string, now time.Time) {
	p, known := c.faults.PortStatus(name, now)
	if !known || p.Shut || p.Opening || c.observe.on {
		return
	}
	changes, err := c.faults.Shut(name, now)
	if err != nil {
		return
	}
	c.causesChanged(changes, now)
	c.say(func() api.Event {
		return api.Event{Time: now, Kind: "fault", Port: name, Text: fmt.Sprintf("port %s was shut by this device before, and the reason is lost: it stays shut until inofctl port recover", name)}
	})
}

// portIs takes the state of a port that the configuration names.
func (c *Core) portIs(p *port, ev fabric.Event, now time.Time) {
	regained := !p.leaves.IsZero()
	if regained {
		c.regain(p, now)
	}
	was := p.present && p.Up()
	p.Port, p.present = ev.Port, ev.Kind != fabric.PortRemoved
	c.replan[p.Name] = true
	c.table.SetOwnMAC(p.Name, p.MAC)
	is := p.present && p.Up()
	c.declared.followPort(p.Name, is)
	if was && !is || !is && ev.Kind == fabric.PortAdded {
		p.lost = ev.At
		c.table.PortDown(ev.Port.Name, now)
		p.losses++
	}
	p.changes = ev.Changes
	c.portRow(p)
	if is {
		c.fence.machine.PortUp(p.Name)
	}
	c.causesChanged(c.faults.Port(ev, now), now)
	if !is && p.fault.active && !p.fault.why.Disconnects() {
		c.fencePort(p, now) // a fault that was before: the port is shut because of it
	}
	if regained && p.fault.active {
		c.followFault(p, ev.At, ev.At, now) // of before, when somebody looked at it
	}
	c.noteFaults(p)
	if is {
		c.notify.SetMTU(p.Name, p.MTU)
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
	if was != is || ev.Kind != fabric.PortChanged {
		c.portEvent(ev, is)
	}
}

func (c *Core) portEvent(ev fabric.Event, up bool) {
	c.say(func() api.Event {
		state := "down"
		if up {
			state = "up"
		}
		text := fmt.Sprintf("port %s is %s", ev.Port.Name, state)
		if ev.Kind != fabric.PortChanged {
			text = fmt.Sprintf("port %s %s, %s", ev.Port.Name, ev.Kind, state)
		}
		return api.Event{Time: ev.At, Kind: "port", Text: text, Port: ev.Port.Name,
			Fields: map[string]string{"state": state, "event": ev.Kind.String()}}
	})
}

// Sample takes a reading of a port's health for the detectors that need it.
func (c *Core) Sample(name string, h fabric.Health, now time.Time) {
	if c.client == nil || c.ports[name] == nil {
		return
	}
	defer c.settle(now)
	changes := c.faults.Sample(name, h, now)
	c.noteFaults(c.ports[name])
	c.causesChanged(changes, now)
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

// back follows the first event of a port that was restored and is up. If it has lost its carrier
// meanwhile, however shortly, its hosts may have forgotten everything, and what they
// asked was heard by nobody: they are told all. If nobody can tell, all is
// repeated once with the numbers it had. Otherwise nothing is told.
func (c *Core) back(p *port, ev *fabric.Event) {
	was := p.was
	p.was = nil
	switch {
	case ev.Changes == 0 || was.changes == 0:
		c.notify.Repeat(p.Name)
		c.counters.PortsUnproved++
	case !was.sameBoot || ev.Port.Index != was.index || ev.Changes != was.changes:
		c.notify.Moved(p.Name)
		c.counters.PortsMoved++
	}
}

// restoredPort makes a port known that the dataplane has not told of yet.
func (c *Core) restoredPort(name string, st *State) {
	if c.ports[name] != nil {
		return
	}
	p := &port{Port: fabric.Port{Name: name}, was: &restoredPort{}}
	if kept, ok := st.Ports[name]; ok {
		p.kept, p.losses, p.lost = kept.Saved, kept.Losses, kept.Lost
		p.was = &restoredPort{index: kept.Index, changes: kept.Changes, sameBoot: st.SameBoot}
	}
	c.ports[name] = p
}

// speakOn starts our LLDPDUs on a port. The first port's MAC is the chassis id.
func (c *Core) speakOn(p *port, now time.Time) {
	if c.cfg.Transmit.Local.Chassis.IsZero() {
		c.cfg.Transmit.Local.Chassis = p.MAC
		c.speak.SetLocal(c.cfg.Transmit.Local, now)
	}
	c.speak.PortUp(p.Name, p.Name, p.MAC, now)
}
