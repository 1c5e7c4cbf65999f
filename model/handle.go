package model

import "github.com/openinof/inof/fabric"

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

// HeadSize gives the bytes of the frame that a queue would send next; 0 = it is empty.
func (w Switch) HeadSize(p PortID, q int) int32 {
	if pk := w.s.queues[int(p)*NumQueues+q].head; pk >= 0 {
		return int32(w.s.pool.pkts[pk].size)
	}
	return 0
}

// QueueDepth gives the bytes that wait in a queue.
func (w Switch) QueueDepth(p PortID, q int) int64 {
	return int64(w.s.queues[int(p)*NumQueues+q].bytes)
}

// QueueSent gives the bytes that a queue has sent so far, and how many of its frames were marked.
func (w Switch) QueueSent(p PortID, q int) (bytes uint64, marks uint32) {
	qu := &w.s.queues[int(p)*NumQueues+q]
	return qu.txBytes, qu.marks
}

// QueueDrops gives the frames that were dropped in front of a queue so far.
func (w Switch) QueueDrops(p PortID, q int) uint64 { return w.s.lost[int(p)*NumQueues+q].frames }

// Marking gives the thresholds of a queue in bytes; ok reports whether it marks.
func (w Switch) Marking(p PortID, q int) (low, high int64, ok bool) { return w.s.Marking(p, q) }

// Marking gives the thresholds of a queue in bytes; ok reports whether it marks.
func (s *Sim) Marking(p PortID, q int) (low, high int64, ok bool) {
	qu := &s.queues[int(p)*NumQueues+q]
	return int64(qu.kmin), int64(qu.kmax), qu.kmin != noMarks
}

// MarkingSet tells all of how a queue marks: who chooses its thresholds, what they are, and the
// probability at the upper one. Mode is empty where it does not mark.
func (s *Sim) MarkingSet(p PortID, q int) (m fabric.Marking) {
	qu := &s.queues[int(p)*NumQueues+q]
	if qu.kmin == noMarks {
		return m
	}
	m = fabric.Marking{Mode: fabric.MarkingStatic, Low: uint64(qu.kmin), High: uint64(qu.kmax), Probability: float64(qu.pmax) / (1 << 32)}
	node := s.PortNode(p)
	for i := range s.tuners {
		if t, ok := s.tuners[i].tuner.(marker); ok && s.switches[s.tuners[i].sw].node == int32(node) {
			m.Mode = t.marks()
		}
	}
	return m
}

// marker is a Tuner that chooses thresholds of marking.
type marker interface{ marks() fabric.MarkingMode }

// SetMarking changes the thresholds of a queue from now on; probability is that at high.
func (w Switch) SetMarking(p PortID, q int, low, high int64, probability float64) {
	qu := &w.s.queues[int(p)*NumQueues+q]
	qu.kmin, qu.kmax, qu.pmax = depth(float64(low)), depth(float64(high)), uint64(probability*(1<<32))
}

// Alphas gives the indices of the dynamic limits of a class: of its egress queues, and of XOFF.
func (w Switch) Alphas(q int) (limit, xoff uint8) {
	sw := &w.s.switches[w.i]
	return sw.limitAlpha[q], sw.xoffAlpha[q]
}

// SetAlphas changes them from now on, each 0..12.
func (w Switch) SetAlphas(q int, limit, xoff uint8) {
	sw := &w.s.switches[w.i]
	sw.limitAlpha[q], sw.xoffAlpha[q] = min(limit, 12), min(xoff, 12)
}

// QueueLimit gives the bytes that a queue may hold now, whatever its class is protected by.
func (w Switch) QueueLimit(p PortID, q int) int64 {
	sw := &w.s.switches[w.i]
	if sw.mmu != MMUCells {
		return sw.prof.Buffer
	}
	c := &sw.prof.Cells
	switch lossless := sw.lossless>>q&1 != 0; {
	case lossless && c.LosslessMax > 0:
		return c.LosslessMax
	case lossless:
		return int64(sw.xoffLimit(int32(q))) * int64(c.Cell)
	case c.Limit > 0:
		return c.Limit
	}
	return int64(sw.dynamic(sw.limitAlpha[q])) * int64(c.Cell)
}

// Corrupted gives the frames that came to a port with a wrong checksum so far.
func (w Switch) Corrupted(p PortID) uint64 { return w.s.portInfo[p].crc }

// PausesSent gives the XOFFs that the switch has sent for a class so far.
func (w Switch) PausesSent(q int) uint64 {
	sw, n := &w.s.switches[w.i], uint64(0)
	for pi := sw.portBase; pi < sw.portBase+sw.nports; pi++ {
		n += w.s.pauses[int(pi)*NumQueues+q].txXoff
	}
	return n
}

// Leads reports whether a port leads to a host.
func (w Switch) Leads(p PortID) bool { return w.s.ports[w.s.ports[p].peer].nic >= 0 }

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
func (f Frame) Hash() uint32 { return f.packet().hash &^ f.s.innerECN }

// Size gives its bytes on the wire.
func (f Frame) Size() int32 { return int32(f.packet().size) }

// IsData reports whether it carries payload.
func (f Frame) IsData() bool { return f.packet().kind() == kindData }

// IsControl reports whether it is a frame of a control plane.
func (f Frame) IsControl() bool { return f.packet().kind() == kindRaw }
