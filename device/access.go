package device

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/health"
	"github.com/openinof/inof/zone"
)

// A port that the configuration no longer names is no port that is down: nobody looks
// at it any more, and that says nothing about the hosts behind it. They stay what
// they are for a hold time, in which the configuration can be corrected without any
// host hearing of it. Then they leave, as hosts do that are not heard any more.

// named reports whether the configuration names a port.
func (c *Core) named(port string) bool { return c.cfg.Ports.IsZero() || c.cfg.Ports.Match(port) }

// release takes a port that the configuration does not name out of our hands.
func (c *Core) release(p *port, ev fabric.Event, now time.Time) {
	c.faults.Port(ev, now) // its faults stand as they were told; nobody looks for others
	c.faults.Forget(p.Name)
	c.noteFaults(p)
	p.present, p.leaves = false, now.Add(c.cfg.RemovalHold)
	c.replan[p.Name] = true
	c.declared.followPort(p.Name, false)
	c.table.Hold(p.Name, p.leaves)
	c.notify.PortDown(p.Name)
	c.followDrain(p, now)
	if c.speak != nil {
		c.speak.PortDown(p.Name)
	}
	if n := len(c.table.Hosts(p.Name)); n > 0 {
		c.event(api.Event{Time: now, Kind: "port", Port: p.Name,
			Text: fmt.Sprintf("port %s was removed from the configuration: its %d host address(es) stay as they are until %s, then they count as gone; "+
				"named in ports.access again before that, they never were away", p.Name, n, p.leaves.Format(time.RFC3339)),
			Fields: map[string]string{"event": "removed from configuration", "hosts": fmt.Sprint(n)}})
	}
	c.forget(p)
}

// regain takes a port back that the configuration names again: what its faults are is
// settled by the event that is being handled.
func (c *Core) regain(p *port, now time.Time) {
	p.leaves = time.Time{}
	c.table.Renew(p.Name, now)
}

// resubscribe has the hosts of a port told again what they want to know.
func (c *Core) resubscribe(p *port, now time.Time) {
	unheard := c.table.Unheard(p.Name)
	for _, info := range c.table.Hosts(p.Name) {
		if !slices.Contains(unheard, info.Addr) {
			c.subscribe(c.local[zone.HostKey{Addr: info.Addr, Device: c.self, Port: p.Name}], now)
		}
	}
}

// released lists the ports that the configuration no longer names whose hosts are still
// there, sorted.
func (c *Core) released() []*port {
	var list []*port
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		if p := c.ports[name]; !p.leaves.IsZero() {
			list = append(list, p)
		}
	}
	return list
}

// removal says when the hosts of a port that was removed from the configuration leave;
// nil: it was not.
func (c *Core) removal(name string) *api.Removal {
	p := c.ports[name]
	if p == nil || p.leaves.IsZero() {
		return nil
	}
	return &api.Removal{Why: api.RemovedFromConfiguration, ToldAt: p.leaves}
}

// Losing lists the ports with hosts that a set of names would leave out.
func (c *Core) Losing(names fabric.Names) []api.PortHosts {
	var list []api.PortHosts
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		if !c.ports[name].leaves.IsZero() || names.IsZero() || names.Match(name) {
			continue
		}
		var hosts []netip.Addr
		for _, h := range c.table.Hosts(name) {
			hosts = append(hosts, h.Addr)
		}
		if len(hosts) > 0 {
			list = append(list, api.PortHosts{Port: name, Hosts: hosts})
		}
	}
	return list
}

// portFacts adds what is to be known of the ports that the configuration names.
func (c *Core) portFacts(f *health.Facts) {
	if c.client == nil {
		return
	}
	for _, name := range c.PortNames() {
		if since, closed, ok := c.faults.Drained(name); ok {
			f.Drained = append(f.Drained, health.DrainedPort{Port: name, Since: since, Closed: closed})
		}
	}
	for _, p := range c.released() {
		f.Removed = append(f.Removed, health.RemovedPort{Port: p.Name, Hosts: len(c.table.Hosts(p.Name)), ToldAt: p.leaves})
	}
	if state, why := c.HardState(); state == api.HardAbnormal {
		f.HardZoning = why
	}
	f.IdleNames = slices.DeleteFunc(c.cfg.Ports.Idle(c.PortNames()), func(s string) bool {
		return s[0] == '!' // the ports that it leaves out are not known here
	})
}
