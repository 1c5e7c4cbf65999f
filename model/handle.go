package model

// What mechanisms hold of the fabric: a switch and a frame, each a pair of words.

// Switch is a switch as its mechanisms see it.
type Switch struct {
	s *Sim
	i int32
}

// Now gives the virtual time.
func (w Switch) Now() Time { return w.s.now }

// Index numbers the switches of a fabric from 0.
func (w Switch) Index() int { return int(w.i) }

// Ports gives the number of its ports.
func (w Switch) Ports() int { return int(w.s.switches[w.i].nports) }

// Port gives its k-th port.
func (w Switch) Port(k int) PortID { return PortID(w.s.switches[w.i].portBase + int32(k)) }

// Rate gives the speed of a port.
func (w Switch) Rate(p PortID) Rate { return w.s.portInfo[p].rate }

// Depth gives the bytes that wait in all queues of a port.
func (w Switch) Depth(p PortID) int64 {
	n := int64(0)
	for q := range NumQueues {
		n += int64(w.s.queues[int(p)*NumQueues+q].bytes)
	}
	return n
}

// Sent gives the bytes that a port has sent from its queues so far.
func (w Switch) Sent(p PortID) uint64 {
	n := uint64(0)
	for q := range NumQueues {
		n += w.s.queues[int(p)*NumQueues+q].txBytes
	}
	return n
}

// Up reports whether a port has carrier.
func (w Switch) Up(p PortID) bool { return w.s.ports[p].flags&portDown == 0 }

// Frame is a frame in a switch.
type Frame struct {
	s  *Sim
	pk int32
}

func (f Frame) packet() *packet { return &f.s.pool.pkts[f.pk] }

// Flow gives the queue pair that it belongs to; of a control frame it means nothing.
func (f Frame) Flow() FlowID { return FlowID(f.packet().flow) }

// Hash gives the hash of its flow in its direction.
func (f Frame) Hash() uint32 { return f.packet().hash }

// Size gives its bytes on the wire.
func (f Frame) Size() int32 { return int32(f.packet().size) }

// IsData reports whether it carries payload.
func (f Frame) IsData() bool { return f.packet().kind() == kindData }

// IsControl reports whether it is a frame of a control plane.
func (f Frame) IsControl() bool { return f.packet().kind() == kindRaw }
