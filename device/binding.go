package device

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// This file is about hosts that reflectors refuse because their device may not have them. The
// device itself knows what it is bound to: to its other hosts, too, such a host is nobody.

// Excluded are the hosts known to this reflector that bindings would not allow.
func (c *Core) Excluded(b map[netip.Addr]wire.Binding) []zone.Host {
	if c.refl == nil {
		return nil
	}
	return c.refl.Excluded(b)
}

// place puts a host of this device into the table, or takes one out of it that no reflector
// would take: others here hear nothing of it, nor it of them.
func (c *Core) place(h zone.Host) zone.Changes {
	k := h.HostKey
	why := c.client.Outside(&h)
	if why == "" {
		delete(c.outside, k)
		return c.dir.PutHost(h)
	}
	c.outside[k] = why
	delete(c.contests, k)
	c.presence.Drop(presence.Key{Port: k.Port, Addr: k.Addr})
	if h, asked := c.early.hosts[k.Addr]; asked && h.HostKey == k {
		c.dropEarly(k.Addr)
	}
	return c.dir.RemoveHost(k, snsd.ReasonAgedOut)
}

// rebind holds the hosts of this device against what it is bound to now.
func (c *Core) rebind(now time.Time) {
	var changes zone.Changes
	var moved []zone.HostKey
	for _, k := range slices.SortedFunc(maps.Keys(c.local), zone.CompareKeys) {
		h := c.local[k]
		if _, was := c.outside[k]; was == (c.client.Outside(&h) != "") {
			continue
		}
		h.Claim = zone.ClaimOpen
		changes = append(changes, c.place(h)...)
		moved = append(moved, k)
	}
	c.changed(changes, now, now)
	for _, k := range moved {
		c.contend(k.Addr, now)
		c.subscribe(c.local[k], now)
	}
	for _, a := range c.early.sorted() {
		if h := c.early.hosts[a]; c.client.Outside(&h.Host) != "" {
			c.dropEarly(a)
			c.notify.Unsubscribe(a, h.HostKey.Port, now)
		}
	}
}

// portHosts lists hosts by port, sorted.
func portHosts(by map[string][]netip.Addr) (list []api.PortHosts) {
	for _, port := range slices.Sorted(maps.Keys(by)) {
		hosts := by[port]
		slices.SortFunc(hosts, netip.Addr.Compare)
		list = append(list, api.PortHosts{Port: port, Hosts: slices.Compact(hosts)})
	}
	return list
}

// refusalEvent tells operators of a client that a reflector refuses hosts.
func (c *Core) refusalEvent(from netip.Addr, r *wire.Refusal, now time.Time) {
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
