package device

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/zone"
)

// This file is what a device does about an address of a local host that another host claims
// too. Who has it the zone room says; here it is followed which of the hosts are told, and whether
// the holder is asked if it is still there, and operators are told. What becomes of its answer is
// in holder.go.

// contest is a local host's address that another host claims.
type contest struct {
	lost  bool      // the other one has it
	rival zone.Host // the holder, or the first of the other claims
	// fell: a port of another claim got a fault since the host here, which has the address,
	// answered last. If it does not answer now, the address had moved back there before.
	fell bool
}

// contend follows who has an address, if a local host claims it.
func (c *Core) contend(addr netip.Addr, now time.Time) {
	if c.localAddrs[addr] == 0 {
		return
	}
	claims := c.dir.Attachments(addr)
	for _, h := range claims {
		if h.Device != c.self {
			continue
		}
		holds := c.dir.Holds(h.HostKey)
		if c.tellClaim(h.HostKey, holds) {
			c.subscribe(h, now)
		}
		c.contest(h, holds, claims, now)
	}
}

// tellClaim tells the reflectors whether a local host has its address, as far as is known
// here; it reports whether that is new.
func (c *Core) tellClaim(k zone.HostKey, holds bool) bool {
	h, known := c.local[k]
	claim := zone.ClaimRival
	if holds {
		claim = zone.ClaimHolder
	}
	if !known || h.Claim == claim {
		return false
	}
	h.Claim = claim
	c.local[k] = h
	c.client.PutHost(h)
	return true
}

// contest begins, follows or ends the contest for a local host's address.
func (c *Core) contest(h zone.Host, holds bool, claims []zone.Host, now time.Time) {
	k := h.HostKey
	i := slices.IndexFunc(claims, func(o zone.Host) bool { return c.dir.Holds(o.HostKey) != holds })
	was, before := c.contests[k]
	if i < 0 {
		if before {
			delete(c.contests, k)
			c.conflictEvent(k, fmt.Sprintf("address %s of port %s is claimed by no other host any more", k.Addr, k.Port), now)
		}
		if !c.onePort(k, now) {
			c.presence.Drop(presence.Key{Port: k.Port, Addr: k.Addr})
		}
		return
	}
	is := contest{!holds, claims[i], was.fell && holds}
	c.contests[k] = is
	if !before || is.lost != was.lost || is.rival.HostKey != was.rival.HostKey || is.rival.MAC != was.rival.MAC {
		c.counters.Conflicts++
		c.conflictEvent(k, is.text(h), now)
	}
	c.question(k, holds, now)
}

func (s *contest) text(h zone.Host) string {
	holder, rival := h, s.rival
	if s.lost {
		holder, rival = rival, holder
	}
	what := "the holder keeps it while it answers, the other host is ignored; give one of them another address"
	if holder.MAC == rival.MAC {
		what = "the holder's port alone counts; if it is one host with two ports, see hosts.multi-port"
	}
	return fmt.Sprintf("address %s is held by %s on device %s port %s and claimed by %s on device %s port %s: %s",
		h.Addr, holder.MAC, holder.Device, holder.HostKey.Port, rival.MAC, rival.Device, rival.HostKey.Port, what)
}

func (c *Core) conflictEvent(k zone.HostKey, text string, now time.Time) {
	if c.restoring {
		return
	}
	c.event(api.Event{Time: now, Kind: "conflict", Port: k.Port, Addr: k.Addr.String(), Text: text})
}

// question has the holder of a contested address asked, or not (any more).
func (c *Core) question(k zone.HostKey, holds bool, now time.Time) {
	p := c.ports[k.Port]
	ask := presence.Key{Port: k.Port, Addr: k.Addr}
	switch {
	case !holds || p == nil || !p.present || !p.Up() || p.fault.active || c.cfg.Hosts.Conflict == ConflictFirst || c.safe(ask):
		c.presence.Drop(ask)
	case c.cfg.Hosts.Conflict == ConflictNewest && !c.restoring:
		if !slices.Contains(c.yields, ask) {
			c.yields = append(c.yields, ask)
		}
	default:
		c.presence.Ask(ask, now)
	}
}

// fallen has the hosts that have some addresses here asked at once whether they still do: another
// claim's port has got a fault. One that does not answer has left its address to it in the rest
// since its last answer, and the fault is to be told.
func (c *Core) fallen(device netip.Addr, port string, addrs []netip.Addr, now time.Time) {
	if len(c.contests) == 0 {
		return
	}
	for _, a := range addrs {
		for _, h := range c.dir.Attachments(a) {
			k := h.HostKey
			x, contested := c.contests[k]
			if !contested || x.lost || k.Device == device && k.Port == port {
				continue
			}
			if x.fell = c.presence.Again(presence.Key{Port: k.Port, Addr: a}, now); x.fell {
				c.contests[k] = x
			}
		}
	}
}

// onePort has the host asked that is known by an address on a port on which another one
// announces it too; it reports whether there is such a one.
func (c *Core) onePort(k zone.HostKey, now time.Time) bool {
	if len(c.table.Claimants(k.Port, k.Addr)) < 2 {
		return false
	}
	c.question(k, c.dir.Holds(k), now)
	return true
}

// contested reports whether a port has an address that another host claims too.
func (c *Core) contested(k presence.Key) bool {
	own := zone.HostKey{Addr: k.Addr, Device: c.self, Port: k.Port}
	_, claimed := c.contests[own]
	return c.dir.Holds(own) && (claimed || len(c.table.Claimants(k.Port, k.Addr)) > 1)
}

// rivalled reports whether a claim beside the holder's could take its place: it is on a port
// without a fault, or was when the holder answered last.
func (c *Core) rivalled(k presence.Key) bool {
	if len(c.table.Claimants(k.Port, k.Addr)) > 1 {
		return true
	}
	own := zone.HostKey{Addr: k.Addr, Device: c.self, Port: k.Port}
	return c.contests[own].fell || slices.ContainsFunc(c.dir.Attachments(k.Addr), func(h zone.Host) bool {
		return h.HostKey != own && !c.dir.Holds(h.HostKey) && c.dir.Alive(h.HostKey)
	})
}

// safe reports whether nobody could take the place of the holder, because all other claims
// are in doubt and its own is not.
func (c *Core) safe(k presence.Key) bool {
	own := zone.HostKey{Addr: k.Addr, Device: c.self, Port: k.Port}
	if c.local[own].Doubt || len(c.table.Claimants(k.Port, k.Addr)) > 1 {
		return false
	}
	return !slices.ContainsFunc(c.dir.Attachments(k.Addr), func(h zone.Host) bool {
		return h.HostKey != own && !h.Doubt && !c.dir.Holds(h.HostKey)
	})
}

// present takes evidence that a machine on a port has an address. One that answers for the
// holder with a MAC address nobody claims it with (a host with several interfaces) counts.
func (c *Core) present(port string, addr netip.Addr, mac fabric.MAC, now time.Time) {
	k := presence.Key{Port: port, Addr: addr}
	if !c.presence.Asking(k) {
		return
	}
	macs := c.table.Claimants(port, addr)
	if i := slices.Index(macs, mac); i > 0 {
		return // the other claim on that port
	}
	if c.presence.Heard(k, now) {
		own := zone.HostKey{Addr: addr, Device: c.self, Port: port}
		if x, contested := c.contests[own]; contested {
			x.fell = false
			c.contests[own] = x
		}
	}
}

// heardFrom is present for a neighbour that was just heard.
func (c *Core) heardFrom(n *lldp.Neighbour, now time.Time) {
	for i := range n.Known {
		c.present(n.Port, n.Known[i].Addr, n.Known[i].MAC, now)
	}
}

// subscribe has a local host told what it asked for, or not (any more). Of several
// hosts that claim one address only the one that has it is.
func (c *Core) subscribe(h zone.Host, now time.Time) {
	switch {
	case h.Subscribes && c.dir.Holds(h.HostKey) && !c.restoring && c.notify.MayReturn(h.Addr):
		c.returned(h, now)
	case h.Subscribes && c.dir.Holds(h.HostKey):
		c.notify.Subscribe(h.Addr, h.HostKey.Port, h.MAC, now)
	case h.Subscribes:
		c.notify.Yield(h.Addr, h.HostKey.Port, now)
	default:
		c.notify.Unsubscribe(h.Addr, h.HostKey.Port, now)
	}
}
