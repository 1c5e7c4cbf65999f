package model

import (
	"errors"
	"fmt"
	"math"
)

// NodeID names a switch or a host of a Network; they count from 0 in order of Add.
type NodeID int32

// LinkID names a link of a Network.
type LinkID int32

// Network describes a fabric before it is built.
type Network struct {
	nodes []nodeSpec
	links []linkSpec
	used  map[portName]bool
}

type nodeSpec struct {
	name   string
	isHost bool
	sw     *SwitchProfile
	nic    *NICProfile
	ports  []int32 // link numbers << 1 | end
}

type linkSpec struct {
	a, b  NodeID
	names [2]string
	LinkSpec
}

type portName struct {
	node NodeID
	port string
}

// LinkSpec is a full-duplex cable.
type LinkSpec struct {
	Rate     Rate
	Delay    Time
	Overhead int32   // bytes that every frame costs on the wire beyond its size: preamble, gap (20 in life)
	Loss     float64 // probability that a frame is corrupted, in both directions
	PortA    string  // names of the ports; empty = "p" and the number
	PortB    string
}

// Errors of building a fabric; wrapped with what and where.
var (
	ErrTopology = errors.New("topology")
	ErrFlow     = errors.New("flow")
)

// AddSwitch adds a switch; the profile is copied.
func (n *Network) AddSwitch(name string, p SwitchProfile) NodeID {
	n.nodes = append(n.nodes, nodeSpec{name: name, sw: &p})
	return NodeID(len(n.nodes) - 1)
}

// AddHost adds a host; each of its links gets its own NIC port and address (endpoint).
func (n *Network) AddHost(name string, p NICProfile) NodeID {
	n.nodes = append(n.nodes, nodeSpec{name: name, isHost: true, nic: &p})
	return NodeID(len(n.nodes) - 1)
}

// Connect joins two nodes with a cable. Both ends get the next port number of their node.
func (n *Network) Connect(a, b NodeID, l LinkSpec) (LinkID, error) {
	if n.used == nil {
		n.used = make(map[portName]bool)
	}
	if int(a) >= len(n.nodes) || int(b) >= len(n.nodes) || a < 0 || b < 0 {
		return 0, fmt.Errorf("%w: link between nodes %d and %d of %d", ErrTopology, a, b, len(n.nodes))
	}
	na, nb := &n.nodes[a], &n.nodes[b]
	what := na.name + " - " + nb.name
	switch {
	case a == b:
		return 0, fmt.Errorf("%w: link %s joins a node with itself", ErrTopology, what)
	case l.Rate < Mbps || l.Rate > 100000*Gbps:
		return 0, fmt.Errorf("%w: link %s has rate %v, want 1M..100T", ErrTopology, what, l.Rate)
	case l.Delay <= 0:
		return 0, fmt.Errorf("%w: link %s has delay %v, want more than 0", ErrTopology, what, l.Delay)
	case l.Overhead < 0 || l.Overhead > math.MaxUint16:
		return 0, fmt.Errorf("%w: link %s costs %d bytes a frame beyond its size, want 0..%d", ErrTopology, what, l.Overhead, math.MaxUint16)
	case l.Loss < 0 || l.Loss > 1:
		return 0, fmt.Errorf("%w: link %s has loss %g, want 0..1", ErrTopology, what, l.Loss)
	case len(na.ports) >= maxPorts || len(nb.ports) >= maxPorts:
		return 0, fmt.Errorf("%w: link %s: a node has more than %d ports", ErrTopology, what, maxPorts)
	}
	spec := linkSpec{a: a, b: b, LinkSpec: l, names: [2]string{l.PortA, l.PortB}}
	for end, id := range []NodeID{a, b} {
		if spec.names[end] == "" {
			spec.names[end] = fmt.Sprintf("p%d", len(n.nodes[id].ports))
		}
		key := portName{id, spec.names[end]}
		if n.used[key] {
			return 0, fmt.Errorf("%w: port %s of %s is used twice", ErrTopology, spec.names[end], n.nodes[id].name)
		}
		n.used[key] = true
	}
	id := len(n.links)
	n.links = append(n.links, spec)
	na.ports = append(na.ports, int32(id)<<1)
	nb.ports = append(nb.ports, int32(id)<<1|1)
	return LinkID(id), nil
}

// Options are the settings of one run.
type Options struct {
	Seed    uint64
	NSClock bool // truncate serialisation times to whole nanoseconds as ns-3 does; for comparisons only
	NSPaths bool // choose among equal paths with the hash of the ns-3 RoCE code; for comparisons only
	Trace   bool // keep a hash of every event, to compare runs
	NICRate Rate // the speed that alpha is relative to; 0 = the slowest host port
}

// Build makes a fabric ready to run.
func (n *Network) Build(o Options) (*Sim, error) {
	s := &Sim{opt: o}
	if err := n.layout(s); err != nil {
		return nil, err
	}
	for i := range s.switches {
		if err := s.setupSwitch(int32(i)); err != nil {
			return nil, err
		}
		if err := s.setupMechanisms(int32(i)); err != nil {
			return nil, err
		}
	}
	if err := s.buildRoutes(); err != nil {
		return nil, err
	}
	s.heap.init(s.eventRate())
	s.startTuners()
	return s, nil
}

// layout numbers switches, ports and endpoints and fills their static part.
func (n *Network) layout(s *Sim) error {
	if len(n.nodes) == 0 {
		return fmt.Errorf("%w: no nodes", ErrTopology)
	}
	total := 2 * len(n.links)
	s.nodes = make([]node, len(n.nodes))
	s.ports = make([]port, total)
	s.queues = make([]queue, total*NumQueues)
	s.lost = make([]lost, total*NumQueues)
	s.ingress = make([]ingress, total*NumQueues)
	s.pauses = make([]pauseState, total*NumQueues)
	s.links = make([]link, len(n.links))
	s.portInfo = make([]portInfo, total)
	next := int32(0)
	for i := range n.nodes {
		spec := &n.nodes[i]
		nd := &s.nodes[i]
		nd.name, nd.portBase, nd.nports = spec.name, next, int32(len(spec.ports))
		nd.sw, nd.nic = -1, -1
		if spec.isHost {
			if err := spec.nic.fill(); err != nil {
				return err
			}
			nd.nic = int32(len(s.nics))
			for range spec.ports {
				s.nics = append(s.nics, nic{prof: spec.nic, node: int32(i)})
			}
		} else {
			if err := spec.sw.fill(); err != nil {
				return err
			}
			nd.sw = int32(len(s.switches))
			s.switches = append(s.switches, swtch{prof: spec.sw, node: int32(i), portBase: next, nports: nd.nports})
		}
		for k, ref := range spec.ports {
			s.links[ref>>1].port[ref&1] = next + int32(k)
		}
		next += nd.nports
	}
	for i := range n.links {
		n.wire(s, i)
	}
	return nil
}

// wire fills both ports of a link.
func (n *Network) wire(s *Sim, i int) {
	spec := &n.links[i]
	for end, id := range []NodeID{spec.a, spec.b} {
		pi := s.links[i].port[end]
		nd := &s.nodes[id]
		pt := &s.ports[pi]
		*pt = port{
			peer: s.links[i].port[1-end], psb: spec.Rate.perByte(), delay: spec.Delay,
			sw: nd.sw, nic: -1, kickAt: never, flHead: -1, flTail: -1, extra: uint16(spec.Overhead),
		}
		if nd.sw < 0 {
			pt.nic = nd.nic + (pi - nd.portBase)
			s.nics[pt.nic].init(pi)
			if r := s.nics[pt.nic].prof.RxRate; r > 0 && r < spec.Rate {
				pt.flags |= portSlow
			}
		}
		info := &s.portInfo[pi]
		*info = portInfo{name: spec.names[end], node: int32(id), link: int32(i), rate: spec.Rate, rng: seedFor(s.opt.Seed, classPort, int(pi))}
		info.loss = spec.Loss
		if spec.Loss > 0 {
			pt.flags |= portLossy
		}
		for q := range NumQueues {
			s.queues[pi*NumQueues+int32(q)] = queue{head: -1, tail: -1, kmin: noMarks, kmax: noMarks}
		}
	}
}

// eventRate estimates how many events a second of a busy fabric has: two for each
// kilobyte on each wire at a third of its speed.
func (s *Sim) eventRate() float64 {
	sum := 0.0
	for i := range s.portInfo {
		sum += float64(s.portInfo[i].rate) / 8000 * 2 / 3
	}
	return sum
}
