package model

import "math/bits"

// Balancer chooses among the equal ways of a frame at one switch; its state is that switch's.
type Balancer interface {
	// Pick gives the index of one of at least two ports.
	Pick(sw Switch, f Frame, ways []PortID) int
}

// BalancerSettings make the Balancer of a switch; nil is the hash of the flow.
type BalancerSettings interface {
	Settings
	Balancer(sw Switch) Balancer
}

var ecmpMechanism = Mechanism{Part: PartBalancer, Kind: "ecmp",
	About: "by a hash of the flow and a seed of the switch: a flow keeps its way",
	New:   func() Settings { return &ECMP{} }}

// ECMP is static balancing by hash.
type ECMP struct{}

// Check has nothing to refuse.
func (*ECMP) Check() error { return nil }

// Balancer gives nil: the engine has this one built in.
func (*ECMP) Balancer(Switch) Balancer { return nil }

// pickECMP gives the member of a group of n that a flow takes at a switch.
func pickECMP(hash, seed uint32, n int32) int32 {
	h := hash ^ seed
	h *= 0x9e3779b1
	h ^= h >> 15
	h *= 0x85ebca77
	h ^= h >> 13
	hi, _ := bits.Mul32(h, uint32(n))
	return int32(hi)
}

// route gives the egress port of a frame, or -1.
func (s *Sim) route(sw *swtch, pk int32) int32 {
	p := &s.pool.pkts[pk]
	r := s.routes[sw.routeBase+int(p.dst)]
	if r < routeGroup {
		return sw.portBase + int32(r)
	}
	if r == routeLocal {
		return s.local[s.destination(p)]
	}
	if r == routeNone {
		return -1
	}
	g := &s.groups[sw.groupBase+int32(r-routeGroup)]
	if sw.balancer != nil {
		return int32(s.hops[g.off+int32(sw.balancer.Pick(Switch{s, s.ports[sw.portBase].sw}, Frame{s, pk}, s.hops[g.off:g.off+g.n]))])
	}
	return int32(s.hops[g.off+pickECMP(p.hash&^s.innerECN, sw.seed, g.n)])
}

// destination gives the endpoint that a frame of a queue pair is for. The line it is read from is
// the one that the frame needs next, at its end.
func (s *Sim) destination(p *packet) int32 {
	r := &s.rx[p.flow]
	if k := p.kind(); k == kindData || k == kindProbe && p.flags()&flagAnswer == 0 {
		return r.dst
	}
	return r.src
}

// routeByHash is route for a flow of which no frame is at hand.
func (s *Sim) routeByHash(sw *swtch, dst int32, hash uint32) int32 {
	r := s.routes[sw.routeBase+int(s.home[dst])]
	if r < routeGroup {
		return sw.portBase + int32(r)
	}
	if r == routeLocal {
		return s.local[dst]
	}
	if r == routeNone {
		return -1
	}
	g := &s.groups[sw.groupBase+int32(r-routeGroup)]
	return int32(s.hops[g.off+pickECMP(hash&^s.innerECN, sw.seed, g.n)])
}
