package device

import (
	"fmt"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Frame takes a control frame that a port received.
func (c *Core) Frame(f fabric.Frame, now time.Time) {
	if c.client == nil {
		return
	}
	defer c.settle(now)
	p := c.ports[f.Port]
	if p == nil || !p.present {
		c.counters.FramesNoPort++
		return
	}
	if p.pretend {
		c.counters.FramesObserved++
		return
	}
	if !f.Src.IsHost() { // nobody has such an address: what it says is nobody's
		c.counters.FramesNoSource++
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
			n.MAC, n.Port, n.Known[0].MAC, n.Known[0].Addr))
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
		c.ack(&f, a, pkt.Extensions, now)
		c.present(f.Port, a.Host, f.Src, now)
	}
	for _, addr := range pkt.Queries {
		_, known := c.local[zone.HostKey{Addr: addr, Device: c.self, Port: f.Port}]
		if known || c.mayAsk(addr, &f, now) {
			c.introduce(f.Port, now)
			c.notify.Announce(f.Port, addr, pkt.Extensions)
			c.notify.Query(addr, now)
		}
	}
}

// ack hands over an ack with the time at which the kernel received it. It shows that the
// host is there: if its link was down meanwhile, its peers need not wait for its LLDP. One of
// another machine on the port says nothing of what the host has heard; another MAC address of the
// same machine is found by lldp.Table.SpeaksToo.
func (c *Core) ack(f *fabric.Frame, a snsd.Ack, ext snsd.Extensions, now time.Time) {
	if c.notify.DetourAcked(f.Port, f.Src, a) {
		return
	}
	at := f.At
	if at.IsZero() || at.After(now) {
		at = now
	}
	early, asked := c.early.hosts[a.Host]
	if !c.table.Speaks(f.Port, f.Src, a.Host) && !(asked && early.HostKey.Port == f.Port && early.MAC == f.Src) &&
		!(c.notify.Awaits(f.Port, a) && !c.ports[f.Port].late(at) && c.table.SpeaksToo(f.Port, f.Src, a.Host)) {
		c.counters.AcksForeign++
		return
	}
	c.notify.Announce(f.Port, a.Host, ext)
	if c.testAcked(f.Port, a, at) || !c.notify.AckAt(f.Port, a, at, now) || c.ports[f.Port].late(at) {
		return
	}
	c.neighboursChanged(c.table.Present(f.Port, f.Src, a.Host, at), now)
}
