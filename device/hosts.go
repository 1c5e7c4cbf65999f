package device

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Frame takes a control frame that a port received.
func (c *Core) Frame(f fabric.Frame, now time.Time) {
	if c.client == nil {
		return
	}
	p := c.ports[f.Port]
	if p == nil || !p.present {
		c.counters.FramesNoPort++
		return
	}
	switch f.EtherType {
	case fabric.EtherTypeLLDP:
		c.counters.FramesLLDP++
		if p.late(f.At) {
			c.counters.FramesLate++
			return
		}
		c.receiveLLDP(f, now)
	case fabric.EtherTypeNTS:
		c.counters.FramesNTS++
		c.receiveNTS(f, now)
	case fabric.EtherTypeARP, fabric.EtherTypeIPv6:
		c.receiveAnswer(&f, now)
	default:
		c.counters.FramesUnknown++
	}
}

// mostLate bounds how late a frame may be taken to be, so that a clock that is set
// back does not make the switch deaf.
const mostLate = time.Second

// late reports whether a frame was received before the port lost its carrier, although
// that was told first: it is no evidence of what is behind the port now.
func (p *port) late(at time.Time) bool {
	return !at.IsZero() && at.Before(p.lost) && p.lost.Sub(at) < mostLate
}

func (c *Core) receiveLLDP(f fabric.Frame, now time.Time) {
	changes, err := c.table.Receive(f, now)
	if err != nil {
		c.counters.LLDPErrors++
		c.Complain(now, "lldp", f.Port, err)
	}
	for _, ch := range changes {
		c.neighbourChanged(ch, now)
		c.disbelieved(&ch, now)
	}
	c.flush(now)
}

// disbelieved tells operators of what is not believed of a neighbour that says something new.
func (c *Core) disbelieved(ch *lldp.Change, now time.Time) {
	if ch.Kind != lldp.Learned && ch.Kind != lldp.Updated {
		return
	}
	n := &ch.Neighbour
	for _, r := range n.Refused {
		c.Complain(now, "lldp", n.Port, fmt.Errorf("host %s on port %s is refused: %s", r.Addr, n.Port, r.Why))
	}
	if n.InDoubt() {
		c.Complain(now, "lldp", n.Port, fmt.Errorf("frames from %s on port %s say that they are of %s: address %s is in doubt, and taken only while nobody else claims it",
			n.MAC, n.Port, n.ChassisID, n.Known[0].Addr))
	}
}

// receiveNTS handles what hosts send: acks and zone queries.
func (c *Core) receiveNTS(f fabric.Frame, now time.Time) {
	pkt, err := snsd.ParsePacket(f.Payload)
	c.nts.Note(pkt, err)
	if err != nil {
		c.counters.NTSErrors++
		c.Complain(now, "nts", f.Port, fmt.Errorf("NTS frame from %s on port %s: %w", f.Src, f.Port, err))
	}
	if len(pkt.Notices) > 0 {
		c.counters.NTSUnexpected++
	}
	for _, a := range pkt.Acks {
		c.ack(&f, a, now)
		c.present(f.Port, a.Host, f.Src, now)
	}
	for _, addr := range pkt.Queries {
		_, known := c.local[zone.HostKey{Addr: addr, Device: c.self, Port: f.Port}]
		if known || c.mayAsk(addr, &f, now) {
			c.notify.Query(addr, now)
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
	if ch.Kind == lldp.Learned && c.speak != nil {
		c.speak.NewNeighbour(name, now)
	}
	if ch.Kind != lldp.Refreshed {
		c.keepNeighbour(&ch, p)
	}
	if ch.Kind != lldp.Removed {
		c.heardFrom(&ch.Neighbour, now)
	}
	for _, addr := range ch.Gone {
		c.hostGone(p, addr, ch.Reason, ch.At, now)
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
	c.forget(p)
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
	c.subscribe(h, now)
}

// subscribe has a local host told what it asked for, or not (any more). Of several
// hosts that claim one address only the one that has it is.
func (c *Core) subscribe(h zone.Host, now time.Time) {
	switch {
	case h.Subscribes && c.dir.Holds(h.HostKey):
		c.notify.Subscribe(h.Addr, h.HostKey.Port, h.MAC, now)
	case h.Subscribes:
		c.notify.Yield(h.Addr, h.HostKey.Port, now)
	default:
		c.notify.Unsubscribe(h.Addr, h.HostKey.Port, now)
	}
}

func (c *Core) hostEvent(h zone.Host, known bool, at time.Time) {
	if c.restoring {
		return
	}
	verb := "registered"
	if known {
		verb = "changed"
	}
	c.out.Event(api.Event{Time: at, Kind: "host", Port: h.HostKey.Port, Addr: h.Addr.String(),
		Text:   fmt.Sprintf("host %s (%s) %s on port %s", h.Addr, h.Role, verb, h.HostKey.Port),
		Fields: map[string]string{"change": verb, "role": h.Role.String(), "mac": h.MAC.String()}})
}

// hostGone withdraws a host address. The host goes before its entry in the port's
// fault does, so that nobody sees it reachable in between.
func (c *Core) hostGone(p *port, addr netip.Addr, why snsd.Reason, at, now time.Time) {
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
	c.notify.Unsubscribe(addr, p.Name, now)
	c.out.Event(api.Event{Time: at, Kind: "host", Port: p.Name, Addr: addr.String(),
		Text:   fmt.Sprintf("host %s (%s) left port %s: %s", addr, h.Role, p.Name, why),
		Fields: map[string]string{"change": "left", "role": h.Role.String(), "reason": why.String()}})
}

// ack hands over an ack with the time at which the kernel received it. It shows that the
// host is there: if its link was down meanwhile, its peers need not wait for its LLDP. One of
// another machine on the port says nothing of what the host has heard.
func (c *Core) ack(f *fabric.Frame, a snsd.Ack, now time.Time) {
	early, asked := c.early.hosts[a.Host]
	if !c.table.Speaks(f.Port, f.Src, a.Host) && !(asked && early.HostKey.Port == f.Port && early.MAC == f.Src) {
		c.counters.AcksForeign++
		return
	}
	at := f.At
	if at.IsZero() || at.After(now) {
		at = now
	}
	if c.testAcked(f.Port, a, at) || !c.notify.AckAt(f.Port, a, at, now) || c.ports[f.Port].late(at) {
		return
	}
	there := c.table.Present(f.Port, f.Src, a.Host, at)
	for _, ch := range there {
		c.neighbourChanged(ch, now)
	}
	if len(there) > 0 {
		c.flush(now)
	}
}
