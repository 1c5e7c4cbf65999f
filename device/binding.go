package device

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/inof"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// This file is about hosts that a reflector refuses because their device may not have them.

// SetBindings changes which hosts devices may have, at a reflector.
func (c *Core) SetBindings(b map[netip.Addr]inof.Binding, now time.Time) {
	if c.refl != nil {
		c.fromReflector(c.refl.SetBindings(b, now), now)
	}
}

// Excluded are the hosts known to this reflector that bindings would not allow.
func (c *Core) Excluded(b map[netip.Addr]inof.Binding) []zone.Host {
	if c.refl == nil {
		return nil
	}
	return c.refl.Excluded(b)
}

// AppendRefused appends the hosts that this reflector refuses because of bindings: all, or
// those of one address. They are in no table, and only shown.
func (c *Core) AppendRefused(list []api.Host, addr netip.Addr) []api.Host {
	if c.refl == nil {
		return list
	}
	for _, o := range c.refl.Outside() {
		if addr.IsValid() && o.Addr != addr || o.Device == c.self { // own ones are there, with what is said of them
			continue
		}
		list = append(list, api.Host{Addr: o.Addr, Type: api.Remote, Device: o.Device, Port: o.Port, State: snsd.Inactive,
			Zones: []string{}, Hard: c.hardState(), LearnedFrom: o.Device.String(), Refused: []string{"refused here: " + o.Why}})
	}
	return list
}

// LosingByBeliefs lists the ports with hosts that would be refused if x were believed.
func (c *Core) LosingByBeliefs(x lldp.Beliefs) (list []api.PortHosts) {
	if c.table == nil {
		return nil
	}
	by := c.table.Losing(x)
	for _, port := range slices.Sorted(maps.Keys(by)) {
		hosts := by[port]
		slices.SortFunc(hosts, netip.Addr.Compare)
		list = append(list, api.PortHosts{Port: port, Hosts: slices.Compact(hosts)})
	}
	return list
}

// refusedBy says which reflectors refuse a host of this device because of a binding.
func (c *Core) refusedBy(addr netip.Addr) (list []string) {
	if c.client == nil {
		return nil
	}
	all := c.client.Refusals()
	for _, id := range slices.SortedFunc(maps.Keys(all), netip.Addr.Compare) {
		if slices.Contains(all[id].Named, addr) {
			list = append(list, fmt.Sprintf("reflector %s binds this device, and the host is outside of that", id))
		}
	}
	return list
}

// refusalEvent tells operators of a client that a reflector refuses hosts.
func (c *Core) refusalEvent(from netip.Addr, r *inof.Refusal, now time.Time) {
	if r == nil || r.Outside == 0 {
		return
	}
	names := make([]string, len(r.Named))
	for i, a := range r.Named {
		names[i] = a.String()
	}
	c.Complain(now, "peer", from.String(), fmt.Errorf("reflector %s refuses %d host(s) of this device, which is bound to others: %s",
		from, r.Outside, strings.Join(names, ", ")))
}
