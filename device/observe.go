package device

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// SetObserve changes what the configuration says.
func (c *Core) SetObserve(on bool, now time.Time) {
	defer c.settle(now)
	c.observe.configured = on
	c.followMode(now)
}

// Halt has the device observe, or all clients of this reflector too, until Resume.
func (c *Core) Halt(h api.Halt, fabric bool, now time.Time) error {
	defer c.settle(now)
	h.On = true
	if fabric {
		if c.refl == nil {
			return fmt.Errorf("%w: this device is no reflector, so it halts no fabric: order it at a reflector, or leave --fabric out", api.ErrRefused)
		}
		c.setFabricHalt(h, now)
	} else {
		if c.client == nil {
			return fmt.Errorf("%w: this device has no access ports: with --fabric it halts its clients", api.ErrRefused)
		}
		c.observe.local = h
		c.keepHalt(keyHaltLocal, h.On, h)
	}
	c.followMode(now)
	return nil
}

// Resume ends a halt. Force also forgets what reflectors said, until they say it anew: for one that
// will never come back.
func (c *Core) Resume(fabric, force bool, now time.Time) error {
	defer c.settle(now)
	o := &c.observe
	switch {
	case fabric && c.refl == nil:
		return fmt.Errorf("%w: this device is no reflector: resume the fabric at the reflector that was halted", api.ErrRefused)
	case fabric:
		c.setFabricHalt(api.Halt{}, now)
	default:
		o.local = api.Halt{}
		c.keepHalt(keyHaltLocal, false, nil)
	}
	if force {
		for dev := range o.heard {
			c.keepHalt(dev.AsSlice(), false, nil)
		}
		clear(o.heard)
	}
	c.followMode(now)
	if m := c.Mode(); !fabric && len(m.Reflectors) > 0 {
		return fmt.Errorf("%w: reflector %s has halted the fabric: resume it there (inofctl resume --fabric), or with --force here if it will not come back", api.ErrRefused, m.Reflectors[0])
	}
	return nil
}

func (c *Core) setFabricHalt(h api.Halt, now time.Time) {
	c.observe.fabric = h
	c.keepHalt(keyHaltFabric, h.On, h)
	c.fromReflector(c.refl.SetHalt(wire.Halt{On: h.On, OpenZoning: h.OpenZoning}, now))
}

// restoreHalts puts halts back, before anything is known that could be acted on.
func (c *Core) restoreHalts(st *State, now time.Time) {
	o := &c.observe
	o.local, o.fabric = st.HaltLocal, st.HaltFabric
	for _, h := range st.Halts {
		if o.heard == nil {
			o.heard = make(map[netip.Addr]wire.Halt)
		}
		o.heard[h.Reflector.Unmap()] = h.Halt
	}
	if c.refl != nil && o.fabric.On {
		c.fromReflector(c.refl.SetHalt(wire.Halt{On: true, OpenZoning: o.fabric.OpenZoning}, now))
	}
	c.followMode(now)
}

// turnPorts is the event of each port that seems to have been shut or opened.
func (c *Core) turnPorts(now time.Time) {
	turned := c.observe.turned
	c.observe.turned, c.observe.turn = nil, time.Time{}
	for _, name := range turned {
		if p := c.ports[name]; p != nil && p.present {
			c.Port(fabric.Event{Kind: fabric.PortChanged, Port: p.real, At: now, Changes: p.changes}, now)
		}
	}
}
