package model

// Which class a frame is in at a switch: by its DSCP, or by its 802.1p priority. The
// priority bits of a frame in this model are the class in which the node before sent it,
// because switches rewrite the tag to the class on egress and by default leave the DSCP alone.

// greenDSCP is what a switch that remarks writes for a frame of each class.
var greenDSCP = [NumQueues]uint8{0, 10, 18, 26, 34, 46, 48, 56}

// DefaultPriorities is the map in which a queue is the 802.1p priority.
func DefaultPriorities() *[NumQueues]uint8 {
	return &[NumQueues]uint8{0, 1, 2, 3, 4, 5, 6, 7}
}

// classify gives the class of a frame at a switch that trusts 802.1p or remarks.
func (s *Sim) classify(sw *swtch, in int32, p *packet) int32 {
	q := sw.dscp[p.tos>>2]
	if sw.prof.Trust8021p {
		prio := p.kf >> prioShift
		if s.ports[s.ports[in].peer].nic >= 0 && !s.flows[p.flow].spec.Tagged {
			prio = sw.prof.PortPriority
		}
		q = sw.prof.Priorities[prio]
	}
	if sw.prof.Remark {
		p.tos = greenDSCP[q]<<2 | p.tos&ecnMask
	}
	return int32(q)
}

// hostClass is the class of a flow's data at its NIC.
func (f *FlowSpec) hostClass() uint8 {
	if f.Tagged {
		return f.Priority
	}
	return f.TOS >> 5
}
