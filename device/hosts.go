package device

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/zone"
)

// neighboursChanged follows changes of the LLDP table.
func (c *Core) neighboursChanged(list []lldp.Change, now time.Time) {
	for _, ch := range list {
		c.neighbourChanged(ch, now)
	}
	// Not before: the table has lost all of them already, and a port that is gone would be dropped
	// with the first, before the others have left it.
	for i := range list {
		if p := c.ports[list[i].Neighbour.Port]; p != nil {
			c.forget(p)
		}
	}
}

// neighbourChanged follows one change of the LLDP table to the hosts behind it.
func (c *Core) neighbourChanged(ch lldp.Change, now time.Time) {
	name := ch.Neighbour.Port
	p := c.ports[name]
	if p == nil {
		return
	}
	if ch.Kind == lldp.Learned {
		c.introduce(name, now)
	}
	if ch.Kind != lldp.Refreshed {
		c.keepNeighbour(&ch, p)
	}
	if ch.Kind != lldp.Removed {
		c.heardFrom(&ch.Neighbour, now)
	}
	c.declared.follow(&ch)
	for _, addr := range ch.Gone {
		c.hostGone(p, addr, &ch, now)
	}
	for i := range ch.Put {
		c.hostHere(p, &ch.Put[i], ch.At, now)
	}
	if ch.Kind == lldp.Updated || ch.Kind == lldp.Removed {
		c.passed(p, ch.Put, ch.At, now)
	}
	if known := ch.Neighbour.Known; ch.Kind != lldp.Removed && len(p.fault.addrs) > 0 {
		addrs := make([]netip.Addr, len(known))
		for i := range known {
			addrs[i] = known[i].Addr
		}
		c.heard(p, addrs, ch.At, now)
	}
}

// hostHere makes a host address known, or known in another way.
func (c *Core) hostHere(p *port, info *lldp.HostInfo, at, now time.Time) {
	h := zone.Host{
		HostKey:    zone.HostKey{Addr: info.Addr, Device: c.self, Port: p.Name},
		MAC:        info.MAC,
		Subscribes: info.Subscribes,
		Service:    info.Service,
		Since:      info.Since.Round(0),
		Doubt:      info.Doubt,
	}
	old, known := c.local[h.HostKey]
	h.Claim = old.Claim // contend finds whether it is the holder
	c.listed(p, h.Addr, now)
	h.Down = p.downAt(h.Addr)
	if !known || old != h {
		c.local[h.HostKey] = h
		c.client.PutHost(h)
		if !c.restoring {
			c.client.MarkFault(at)
		}
		if !known {
			c.localAddrs[h.Addr]++
		}
		here := h
		here.Claim = zone.ClaimOpen // the reflectors decide, we do not
		c.changed(c.place(here), at, now)
		c.hostEvent(h, known, at)
		c.noteHard(h.Addr) // another port of a host that is known is no change of its zones
	}
	c.contend(h.Addr, now) // a claim that loses from the start changes nothing in the Directory
	c.noLongerEarly(h.Addr, now)
	c.subscribe(h, now)
}

func (c *Core) hostEvent(h zone.Host, known bool, at time.Time) {
	if c.restoring {
		return
	}
	verb := "registered"
	if known {
		verb = "changed"
	}
	c.event(api.Event{Time: at, Kind: "host", Port: h.HostKey.Port, Addr: h.Addr.String(),
		Text:   fmt.Sprintf("host %s (%s) %s on port %s", h.Addr, h.Role, verb, h.HostKey.Port),
		Fields: map[string]string{"change": verb, "role": h.Role.String(), "mac": h.MAC.String()}})
}

// hostGone withdraws a host address. The host goes before its entry in the port's
// fault does, so that nobody sees it reachable in between.
func (c *Core) hostGone(p *port, addr netip.Addr, ch *lldp.Change, now time.Time) {
	why, at := ch.Reason, ch.At
	k := zone.HostKey{Addr: addr, Device: c.self, Port: p.Name}
	h, known := c.local[k]
	if !known {
		return
	}
	delete(c.local, k)
	delete(c.contests, k)
	delete(c.outside, k)
	if h, asked := c.early.hosts[addr]; asked && h.HostKey == k {
		c.dropEarly(addr)
	}
	c.presence.Drop(presence.Key{Port: p.Name, Addr: addr})
	if c.localAddrs[addr]--; c.localAddrs[addr] == 0 {
		delete(c.localAddrs, addr)
	}
	c.client.WithdrawHost(k, why)
	c.client.MarkFault(at)
	c.changed(c.dir.RemoveHost(k, why), at, now)
	c.noteHard(addr)
	c.unlisted(p, addr, now)
	if ch.Taken {
		c.notify.Withdraw(addr, p.Name, now)
	} else {
		c.notify.Unsubscribe(addr, p.Name, now)
	}
	c.event(api.Event{Time: at, Kind: "host", Port: p.Name, Addr: addr.String(),
		Text:   fmt.Sprintf("host %s (%s) left port %s: %s", addr, h.Role, p.Name, why),
		Fields: map[string]string{"change": "left", "role": h.Role.String(), "reason": why.String()}})
}
