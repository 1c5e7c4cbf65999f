package model

// PortOf gives port number k of a node, in order of Connect.
func (s *Sim) PortOf(n NodeID, k int) PortID { return PortID(s.nodes[n].portBase + int32(k)) }

// Ports gives the number of ports of a node.
func (s *Sim) Ports(n NodeID) int { return int(s.nodes[n].nports) }

// EndpointOf gives the address of port k of a host.
func (s *Sim) EndpointOf(n NodeID, k int) EndpointID {
	return EndpointID(s.nodes[n].nic + int32(k))
}

// LinkPorts gives both ends of a link.
func (s *Sim) LinkPorts(l LinkID) (a, b PortID) {
	return PortID(s.links[l].port[0]), PortID(s.links[l].port[1])
}

// PortName gives "node:port".
func (s *Sim) PortName(p PortID) string {
	return s.nodes[s.portInfo[p].node].name + ":" + s.portInfo[p].name
}

// NodeName gives the name of a node.
func (s *Sim) NodeName(n NodeID) string { return s.nodes[n].name }

// EndpointNode gives the host of an address.
func (s *Sim) EndpointNode(e EndpointID) NodeID { return NodeID(s.nics[e].node) }

// EndpointPort gives the port of an address.
func (s *Sim) EndpointPort(e EndpointID) PortID { return PortID(s.nics[e].port) }

// PortRate gives a port's speed.
func (s *Sim) PortRate(p PortID) Rate { return s.portInfo[p].rate }

// Peer gives the port at the other end of the link.
func (s *Sim) Peer(p PortID) PortID { return PortID(s.ports[p].peer) }

// Endpoints gives the number of host ports.
func (s *Sim) Endpoints() int { return len(s.nics) }

// IsSwitch tells switches from hosts.
func (s *Sim) IsSwitch(n NodeID) bool { return s.nodes[n].sw >= 0 }

// Nodes gives the number of nodes.
func (s *Sim) Nodes() int { return len(s.nodes) }

// Links gives the number of links.
func (s *Sim) Links() int { return len(s.links) }

// ECMPChoice tells which member of a group of n a flow with the given hash takes at a
// switch, for scenarios that choose paths.
func (s *Sim) ECMPChoice(n NodeID, hash uint32, members int) int {
	return int(pickECMP(hash&^s.innerECN, s.switches[s.nodes[n].sw].seed, int32(members)))
}

// PortNode gives the node that a port belongs to.
func (s *Sim) PortNode(p PortID) NodeID { return NodeID(s.portInfo[p].node) }

// ECMPWays tells among how many ports a switch chooses for a destination.
func (s *Sim) ECMPWays(n NodeID, dst EndpointID) int {
	nd := &s.nodes[n]
	if nd.sw < 0 {
		return 1
	}
	sw := &s.switches[nd.sw]
	switch r := s.routes[sw.routeBase+int(s.home[dst])]; {
	case r == routeNone, r == routeLocal && s.local[dst] < 0:
		return 0
	case r == routeLocal, r < routeGroup:
		return 1
	default:
		return int(s.groups[sw.groupBase+int32(r-routeGroup)].n)
	}
}

// LinkOf gives the link of a port.
func (s *Sim) LinkOf(p PortID) LinkID { return LinkID(s.portInfo[p].link) }

// Groups gives how many ECMP groups all tables hold.
func (s *Sim) Groups() int { return len(s.groups) }

// PortShortName gives the name of a port within its node.
func (s *Sim) PortShortName(p PortID) string { return s.portInfo[p].name }
