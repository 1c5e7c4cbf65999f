package device

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// This file is what a device does about an address of a local host that another host claims
// too. Who has it the zone room says; here the holder is asked whether it is still there, and
// withdrawn if not, and operators are told.

// ConflictPolicy is what becomes of a local host's address when another host claims it and
// both their ports are well.
type ConflictPolicy uint8

const (
	ConflictProbe  ConflictPolicy = iota // the holder is asked, and keeps it if it answers
	ConflictNewest                       // the new claim takes it
	ConflictFirst                        // the holder keeps it
)

// HostsConfig is what is believed of hosts.
type HostsConfig struct {
	Conflict  ConflictPolicy
	MultiPort zone.MultiPort
	MaxTTL    time.Duration // longest LLDP time to live taken; zero: lldp.DefaultMaxTTL
	Beliefs   lldp.Beliefs  // where hosts may be
}

// SetHosts changes what is believed of hosts; what is known already stands.
func (c *Core) SetHosts(cfg HostsConfig, now time.Time) {
	c.cfg.Hosts = cfg
	if c.refl != nil {
		c.fromReflector(c.refl.SetMultiPort(cfg.MultiPort, now), now)
	}
	if c.client == nil {
		return
	}
	c.table.SetMaxTTL(cfg.MaxTTL)
	for _, ch := range c.table.SetBeliefs(cfg.Beliefs, now) {
		c.neighbourChanged(ch, now)
	}
	c.changed(c.dir.SetMultiPort(cfg.MultiPort), now, now)
	for _, k := range slices.SortedFunc(maps.Keys(c.contests), zone.CompareKeys) {
		c.contend(k.Addr, now)
	}
	c.flush(now)
}

// contest is a local host's address that another host claims.
type contest struct {
	lost  bool      // the other one has it
	rival zone.Host // the holder, or the first of the other claims
}

// contend follows who has an address, if a local host claims it.
func (c *Core) contend(addr netip.Addr, now time.Time) {
	if c.localAddrs[addr] == 0 {
		return
	}
	claims := c.dir.Attachments(addr)
	told := false
	for _, h := range claims {
		if h.Device != c.self {
			continue
		}
		holds := c.dir.Holds(h.HostKey)
		if c.tellClaim(h.HostKey, holds) {
			told = true
			c.subscribe(h, now)
		}
		c.contest(h, holds, claims, now)
	}
	if told && !c.restoring {
		c.flush(now)
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
	is := contest{!holds, claims[i]}
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
	c.out.Event(api.Event{Time: now, Kind: "conflict", Port: k.Port, Addr: k.Addr.String(), Text: text})
}

// question has the holder of a contested address asked, or not (any more).
func (c *Core) question(k zone.HostKey, holds bool, now time.Time) {
	p := c.ports[k.Port]
	ask := presence.Key{Port: k.Port, Addr: k.Addr}
	switch {
	case !holds || p == nil || !p.present || !p.Up() || p.fault.active || c.cfg.Hosts.Conflict == ConflictFirst || c.safe(ask):
		c.presence.Drop(ask)
	case c.cfg.Hosts.Conflict == ConflictNewest && !c.restoring:
		c.yield(ask, now)
	default:
		c.presence.Ask(ask, now)
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

// askPresent sends the questions that are due, and takes the address from who does not answer.
func (c *Core) askPresent(now time.Time) {
	send, lost := c.presence.Due(now)
	for _, k := range send {
		p := c.ports[k.Port]
		if p == nil || !p.present {
			c.presence.Drop(k)
			continue
		}
		if c.presence.LastTry(k) { // behind a VLAN tag it hears notices only
			c.notify.Nudge(k.Addr, now)
		}
		c.out.SendFrame(k.Port, presence.Question(p.MAC, k.Addr))
	}
	for _, k := range lost {
		if c.rivalled(k) {
			c.yield(k, now)
		} else {
			c.contend(k.Addr, now)
		}
	}
	if len(lost) > 0 {
		c.flush(now)
	}
}

// rivalled reports whether a claim beside the holder's could take its place: it is on a port
// without a fault.
func (c *Core) rivalled(k presence.Key) bool {
	if len(c.table.Claimants(k.Port, k.Addr)) > 1 {
		return true
	}
	own := zone.HostKey{Addr: k.Addr, Device: c.self, Port: k.Port}
	return slices.ContainsFunc(c.dir.Attachments(k.Addr), func(h zone.Host) bool {
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

// yield withdraws the host that has an address on a port, which passes to another claim. If
// the host is there after all its next registration is a claim of its own.
func (c *Core) yield(k presence.Key, now time.Time) {
	macs := c.table.Claimants(k.Port, k.Addr)
	if len(macs) == 0 {
		return
	}
	c.counters.AddressesMoved++
	c.out.Event(api.Event{Time: now, Kind: "conflict", Port: k.Port, Addr: k.Addr.String(),
		Text:   fmt.Sprintf("address %s has moved: %s on port %s did not answer for it, and another host claims it", k.Addr, macs[0], k.Port),
		Fields: map[string]string{"change": "moved", "mac": macs[0].String()}})
	for _, ch := range c.table.Forget(k.Port, k.Addr, macs[0], snsd.ReasonIPChanged, now) {
		c.neighbourChanged(ch, now)
	}
}

// receiveAnswer takes a frame by which a host may say that it has an address.
func (c *Core) receiveAnswer(f *fabric.Frame, now time.Time) {
	a, err := presence.ParseAnswer(f.EtherType, f.Src, f.Payload)
	if err != nil {
		c.counters.AnswersIgnored++
		return
	}
	c.present(f.Port, a.Addr, a.MAC, now)
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
	c.presence.Heard(k, now)
}

// heardFrom is present for a neighbour that was just heard.
func (c *Core) heardFrom(n *lldp.Neighbour, now time.Time) {
	for i := range n.Known {
		c.present(n.Port, n.Known[i].Addr, n.Known[i].MAC, now)
	}
}
