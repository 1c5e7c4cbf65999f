package device

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
)

// A port is drained in this order: the peers of its hosts hear that these have left, and
// its hosts that their peers have (reason aged-out: the host agent takes a controller out
// at once and in order, where after a fault it would first probe a path that still
// works). Once everybody here has acked, and had time to act on it, the port is shut.

const (
	// drainSettle is how long after the last ack hosts have to move: an agent acks at once,
	// and then takes its controllers out, 0.13 to 0.3 s each, 16 at a time.
	drainSettle = 2 * time.Second
	// DrainWait is how long a drained port stays open at most, unless the operator says otherwise.
	DrainWait = 10 * time.Second
	// MaxDrainWait bounds what he may say.
	MaxDrainWait = 10 * time.Minute
	// drainPoll is how often it is looked whether all acked.
	drainPoll = 100 * time.Millisecond
)

// Drain takes ports out of service in order; none named means all that are there.
func (c *Core) Drain(names []string, wait time.Duration, now time.Time) (api.Drained, error) {
	d := api.Drained{Ports: []string{}, Hosts: 0}
	if c.client == nil {
		return d, fmt.Errorf("%w: this device has no access ports", api.ErrRefused)
	}
	if err := c.acts("draining"); err != nil {
		return d, err
	}
	defer c.settle(now)
	whole := len(names) == 0
	if whole {
		names = c.PortNames()
	}
	for _, name := range names {
		p := c.ports[name]
		if p == nil || !p.present {
			return d, fmt.Errorf("port %s: %w: it is not an access port of this device", name, api.ErrNotFound)
		}
		if _, _, already := c.faults.Drained(name); already && whole {
			continue
		}
		changes, err := c.faults.Drain(name, now)
		if err != nil {
			return d, fmt.Errorf("%w: %w", api.ErrRefused, err)
		}
		c.causesChanged(changes, now)
		p.draining = &draining{latest: now.Add(wait), busy: now}
		c.drainDue = now
		c.notify.SetLeaving(name, true, now)
		d.Ports = append(d.Ports, name)
		d.Hosts += len(p.fault.addrs)
	}
	return d, nil
}

// Undrain puts drained ports into service again; none named means all that are drained.
func (c *Core) Undrain(names []string, now time.Time) (api.Drained, error) {
	d := api.Drained{Ports: []string{}}
	if c.client == nil {
		return d, fmt.Errorf("%w: this device has no access ports", api.ErrRefused)
	}
	defer c.settle(now)
	if len(names) == 0 {
		for _, name := range slices.Sorted(maps.Keys(c.ports)) {
			if _, _, ok := c.faults.Drained(name); ok {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if c.ports[name] == nil {
			return d, fmt.Errorf("port %s: %w: it is not an access port of this device", name, api.ErrNotFound)
		}
		changes, err := c.faults.Undrain(name, now)
		if err != nil {
			return d, fmt.Errorf("%w: %w", api.ErrRefused, err)
		}
		c.causesChanged(changes, now)
		d.Ports = append(d.Ports, name)
		d.Hosts += len(c.table.Hosts(name))
	}
	return d, nil
}

// restoreDrains goes on with what the state says is drained: a port that was not shut yet
// is given the whole time once more.
func (c *Core) restoreDrains(now time.Time) {
	for _, p := range c.ports {
		if _, closed, ok := c.faults.Drained(p.Name); ok {
			c.notify.SetLeaving(p.Name, true, now)
			if !closed {
				p.draining = &draining{latest: now.Add(DrainWait), busy: now}
				c.drainDue = now
			}
		}
	}
}

// tickDrains shuts the drained ports whose hosts have moved.
func (c *Core) tickDrains(now time.Time) {
	if c.drainDue.IsZero() || now.Before(c.drainDue) {
		return
	}
	c.drainDue = time.Time{}
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		p := c.ports[name]
		if p.draining == nil || !p.present {
			continue
		}
		d := p.draining
		if c.notify.Unsettled(name, p.fault.addrs) {
			d.busy = now
		}
		if now.Before(d.latest) && now.Sub(d.busy) < drainSettle {
			c.drainDue = now.Add(drainPoll)
			continue
		}
		c.causesChanged(c.faults.Close(name, now), now)
	}
}
