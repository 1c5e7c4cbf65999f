package snsd

import (
	"net/netip"

	"github.com/openinof/inof/fabric"
)

// acksPerFrame keeps a frame of acks below MaxPayload: an IPv6 ack takes 48 bytes.
const acksPerFrame = 30

func (a *base) version() uint8 {
	if a.cfg.Legacy {
		return 0
	}
	return Version
}

// registration sends the LLDPDU of an address under its number.
func (a *base) registration(out *AgentOutput, addr netip.Addr, number int, ttl uint16) {
	if a.cfg.Silent || !a.up {
		return
	}
	service, own := a.cfg.Services[addr]
	if !own {
		service = a.cfg.Service
	}
	frame := fabric.AppendEthernet(make([]byte, 0, 128), fabric.MACNearestBridge, a.cfg.MAC, fabric.EtherTypeLLDP)
	frame, err := AppendRegistrationPDU(frame, &RegistrationPDU{
		MAC: a.cfg.MAC, PortID: AgentPortID(a.cfg.Interface, number), TTL: ttl,
		Registration: Registration{Addr: addr, Subscribes: a.cfg.Subscribes, ProtoVer: DefaultProtoVer, Service: service},
	})
	if err != nil {
		return // cannot be: everything in it was checked when it was configured
	}
	a.count.Registrations++
	out.Frames = append(out.Frames, frame)
}

// query asks for the zones of every address, one frame each as the existing agent does.
func (a *base) query(out *AgentOutput) {
	if a.cfg.Silent || !a.cfg.Subscribes {
		return
	}
	for _, addr := range a.cfg.Addrs {
		p := Packet{Version: a.version(), Extensions: a.agreed}
		p.Queries = append(p.Queries, addr)
		if a.send(out, p, QueryPadding) {
			a.count.Queries++
		}
	}
}

func (a *base) sendAcks(out *AgentOutput, acks []Ack) {
	for len(acks) > 0 {
		n := min(len(acks), acksPerFrame)
		if a.send(out, Packet{Version: a.version(), Extensions: a.agreed, Acks: acks[:n]}, 0) {
			a.count.Acks += uint64(n)
		}
		acks = acks[n:]
	}
}

func (a *base) send(out *AgentOutput, p Packet, padding int) bool {
	frame := fabric.AppendEthernet(make([]byte, 0, 256), fabric.MACNTS, a.cfg.MAC, fabric.EtherTypeNTS)
	frame, err := p.Append(frame)
	if err != nil {
		return false // cannot be: all of it was parsed or checked before
	}
	for range padding {
		frame = append(frame, 0)
	}
	out.Frames = append(out.Frames, frame)
	return true
}
