package device

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// A device that observes decides and records everything and acts on nothing: it sends no notice,
// shuts no port and blocks nothing. It does so by configuration (mode: observe), because an operator
// halted it, or because a reflector says that the fabric is halted. What it would have shut it
// treats as shut: events and frames of such a port are replaced by those of a port that is shut, so
// that the decisions are those of a device that acts.

// observing is the part of a Core that knows whether it acts.
type observing struct {
	configured bool
	on         bool                     // as the rooms were told
	local      api.Halt                 // by an operator at this device
	fabric     api.Halt                 // by an operator at this reflector, for its clients
	heard      map[netip.Addr]wire.Halt // by reflector: what it said last
	turned     []string                 // ports that seem to be shut, or open again, since
	turn       time.Time                // when Tick makes the events of that
}

// SavedHalt is a reflector's word.
type SavedHalt struct {
	Reflector netip.Addr
	Halt      wire.Halt
}

// Observes reports whether the device acts on nothing.
func (c *Core) Observes() bool {
	o := &c.observe
	return o.configured || o.local.On || c.haltOf(func(h wire.Halt) bool { return h.On })
}

// OpensZoning reports whether hard zoning lets everything pass: in mode observe, and where a halt
// asks for it.
func (c *Core) OpensZoning() bool {
	o := &c.observe
	return o.configured || o.local.On && o.local.OpenZoning || c.haltOf(func(h wire.Halt) bool { return h.On && h.OpenZoning })
}

func (c *Core) haltOf(is func(wire.Halt) bool) bool {
	for _, h := range c.observe.heard {
		if is(h) {
			return true
		}
	}
	return false
}

// Mode is what operators see of it.
func (c *Core) Mode() api.Mode {
	o := &c.observe
	m := api.Mode{Observes: c.Observes(), Configured: o.configured, OpenZoning: c.OpensZoning()}
	if o.local.On {
		m.Local = &o.local
	}
	if o.fabric.On {
		m.Fabric = &o.fabric
	}
	for _, dev := range slices.SortedFunc(maps.Keys(o.heard), netip.Addr.Compare) {
		if o.heard[dev].On {
			m.Reflectors = append(m.Reflectors, dev)
		}
	}
	return m
}

// hearHalt takes what a reflector says.
func (c *Core) hearHalt(dev netip.Addr, h wire.Halt, now time.Time) {
	o := &c.observe
	if was, known := o.heard[dev]; known && was == h || !known && !h.On {
		return
	}
	if o.heard == nil {
		o.heard = make(map[netip.Addr]wire.Halt)
	}
	o.heard[dev] = h
	c.keepHalt(dev.AsSlice(), h.On, h)
	c.followMode(now)
}

// followMode has the rooms follow a change.
func (c *Core) followMode(now time.Time) {
	o := &c.observe
	on := c.Observes()
	if c.client == nil || on == o.on {
		return
	}
	o.on = on
	c.notify.SetObserving(on, now)
	c.fenceMode()
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		p := c.ports[name]
		switch {
		case on && p.present && !p.pretend && c.faults.ShutByCause(name):
			p.pretend, p.real = true, p.Port
			c.out.SetAdmin(name, true)
		case !on && p.pretend: // its events are hidden until it is really shut
			c.out.SetAdmin(name, false)
		}
	}
	text := "the device acts again: hosts are notified of what is true, and what was to be shut is"
	if on {
		text = "the device observes: it decides and records, and notifies no host, shuts no port, blocks nothing"
	}
	c.event(api.Event{Time: now, Kind: "mode", Text: text, Fields: map[string]string{"mode": c.Mode().Name()}})
}

// fenceMode has the machine follow the configuration and the mode: a device that observes blocks
// nothing, and lifts what stands.
func (c *Core) fenceMode() {
	cfg := c.fence.cfg
	cfg.On = cfg.On && !c.Observes()
	c.fence.machine.SetConfig(cfg)
}

// setAdmin shuts or opens a port, or has it seem so.
func (c *Core) setAdmin(p *port, up bool, now time.Time) {
	switch {
	case up && p.pretend, !up && c.observe.on:
		if !p.pretend {
			p.real = p.Port
		}
		if up && !c.observe.on { // the order to shut it is still under way
			c.out.SetAdmin(p.Name, true)
		}
		p.pretend = !up
		c.observe.turned, c.observe.turn = append(c.observe.turned, p.Name), now
	default:
		c.out.SetAdmin(p.Name, up)
	}
}

// seem replaces the state of a port that seems to be shut. It ends once the port really is while the
// device acts.
func (c *Core) seem(ev fabric.Event) fabric.Event {
	p := c.ports[ev.Port.Name]
	if p == nil || !p.pretend {
		return ev
	}
	p.real = ev.Port
	if ev.Kind == fabric.PortRemoved || !c.observe.on && !ev.Port.AdminUp {
		p.pretend = false
		return ev
	}
	return shutEvent(ev)
}

func shutEvent(ev fabric.Event) fabric.Event {
	ev.Port.AdminUp, ev.Port.Carrier = false, false
	return ev
}

// acts refuses an order of an operator that a device that observes does not follow.
func (c *Core) acts(what string) error {
	if !c.observe.on {
		return nil
	}
	return fmt.Errorf("%w: %s: the device observes (inofctl show status says why) and acts on nothing: set mode: act, or inofctl resume", api.ErrRefused, what)
}

// keepHalt keeps a halt over the end of the process.
func (c *Core) keepHalt(key []byte, on bool, h any) {
	switch {
	case !c.keeps():
	case !on:
		c.keep.to.Delete(tableHalt, key)
	default:
		b, _ := json.Marshal(h) // nothing in it can fail
		c.keep.to.Put(tableHalt, key, b)
	}
}
