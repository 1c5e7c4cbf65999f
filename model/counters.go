package model

// What can be read of a queue, a port, a switch: every counter that a device of this
// kind streams, and some that none has.

// QueueStats are the counters of one egress queue and of the class of the same
// number at its port's ingress.
type QueueStats struct {
	TxFrames      uint64 `json:"tx_frames"`
	TxBytes       uint64 `json:"tx_bytes"`
	Drops         uint64 `json:"drops"`
	DropBytes     uint64 `json:"drop_bytes"`
	Marks         uint64 `json:"ecn_marks"`
	Bytes         int64  `json:"bytes"` // queued now
	Peak          int64  `json:"peak_bytes"`
	RxXoff        uint64 `json:"rx_xoff"` // PFC received for this queue
	RxXon         uint64 `json:"rx_xon"`
	TxXoff        uint64 `json:"tx_xoff"` // PFC sent for this class
	TxXon         uint64 `json:"tx_xon"`
	Paused        Time   `json:"paused_ps"` // total time this queue stood still
	PausedNow     bool   `json:"paused_now"`
	Deadlocks     uint64 `json:"deadlocks"`
	Recoveries    uint64 `json:"recoveries"`
	FirstDeadlock Time   `json:"first_deadlock_ps"`
	TurnedOff     bool   `json:"pfc_turned_off"`
	// Use of the buffer by what came in here, bytes: now, and at most.
	Guaranteed   int64 `json:"guaranteed_bytes"`
	Service      int64 `json:"service_bytes"` // of the shared pool
	Headroom     int64 `json:"headroom_bytes"`
	PeakIngress  int64 `json:"peak_ingress_bytes"` // guaranteed and service
	PeakHeadroom int64 `json:"peak_headroom_bytes"`
}

// bufferUnit gives what one unit of the buffer accounting is, in bytes, and how many of
// them are guaranteed to a class of a port.
func (s *Sim) bufferUnit(port PortID, q int) (unit, guaranteed int64) {
	sw := s.ports[port].sw
	switch {
	case sw < 0:
		return 1, 0
	case s.switches[sw].mmu == MMUCells:
		return int64(s.switches[sw].prof.Cells.Cell), int64(s.switches[sw].cells(s.switches[sw].prof.Cells.Guaranteed))
	}
	return 1, int64(s.switches[sw].reserve[q])
}

// Queue reads the counters of queue q of a port.
func (s *Sim) Queue(port PortID, q int) QueueStats {
	i := int(port)*NumQueues + q
	qu, ps, ig := &s.queues[i], &s.pauses[i], &s.ingress[i]
	unit, guaranteed := s.bufferUnit(port, q)
	guaranteed = min(guaranteed, int64(ig.used))
	st := QueueStats{
		TxFrames: qu.txPkts, TxBytes: qu.txBytes, Drops: s.lost[i].frames, DropBytes: s.lost[i].bytes, Marks: uint64(qu.marks),
		Bytes: int64(qu.bytes), Peak: int64(qu.peak), RxXoff: ps.rxXoff, RxXon: ps.rxXon, TxXoff: ps.txXoff, TxXon: ps.txXon,
		Paused: ps.total, PausedNow: s.ports[port].paused>>q&1 != 0, Deadlocks: ps.deadlocks, Recoveries: ps.recoveries,
		FirstDeadlock: ps.firstDead, TurnedOff: ps.off,
		Guaranteed: guaranteed * unit, Service: (int64(ig.used) - guaranteed) * unit, Headroom: int64(ig.hdrm) * unit,
		PeakIngress: int64(ig.peakUsed) * unit, PeakHeadroom: int64(ig.peakHdrm) * unit,
	}
	if st.PausedNow {
		st.Paused += s.now - ps.since
	}
	return st
}

// QueueBytes reads the depth of queue q of a port.
func (s *Sim) QueueBytes(port PortID, q int) int64 {
	return int64(s.queues[int(port)*NumQueues+q].bytes)
}

// XoffSent gives how many XOFF, PAUSE and brake orders have been sent for all classes.
func (s *Sim) XoffSent() uint64 {
	n := uint64(0)
	for i := range s.pauses {
		n += s.pauses[i].txXoff
	}
	return n
}

// Acked gives the payload bytes of a flow that were acknowledged.
func (s *Sim) Acked(id FlowID) int64 {
	f := &s.flows[id].spec
	return min(int64(s.qps[id].sndUna)*int64(s.nics[f.Src].prof.MTU), f.Bytes)
}

// PortCounters are the totals of a port as a driver would show them. All frames are
// unicast, but for the flow control frames.
type PortCounters struct {
	TxFrames       uint64 `json:"tx_frames"`
	TxBytes        uint64 `json:"tx_bytes"`
	RxFrames       uint64 `json:"rx_frames"`
	RxBytes        uint64 `json:"rx_bytes"`
	TxDrops        uint64 `json:"tx_drops"`
	RxDrops        uint64 `json:"rx_drops"`
	RxCRC          uint64 `json:"rx_crc_errors"`
	TxErrors       uint64 `json:"tx_errors"` // sent, but lost on the wire
	Marks          uint64 `json:"ecn_marks"`
	CarrierChanges uint64 `json:"carrier_changes"`
}

// PortCounters reads the totals of a port. What it received is what its peer sent, less
// what is still on the wire or was lost there.
func (s *Sim) PortCounters(p PortID) PortCounters {
	info, peer := &s.portInfo[p], s.ports[p].peer
	c := PortCounters{RxCRC: info.crc, RxDrops: info.hostDrops, CarrierChanges: info.carrierChanges}
	c.TxFrames, c.TxBytes = s.sentBy(int32(p))
	c.RxFrames, c.RxBytes = s.sentBy(peer)
	c.RxFrames -= s.portInfo[peer].lost
	c.RxBytes -= s.portInfo[peer].lostB
	c.TxErrors = info.lost
	for pk := s.ports[peer].flHead; pk >= 0; pk = s.pool.pkts[pk].next {
		c.RxFrames--
		c.RxBytes -= uint64(s.pool.pkts[pk].size)
	}
	for q := range NumQueues {
		c.TxDrops += s.lost[int(p)*NumQueues+q].frames
		c.Marks += uint64(s.queues[int(p)*NumQueues+q].marks)
	}
	return c
}

func (s *Sim) sentBy(pi int32) (frames, bytes uint64) {
	frames, bytes = s.portInfo[pi].ctlFrames, s.portInfo[pi].ctlBytes
	for q := range int32(NumQueues) {
		frames += s.queues[pi*NumQueues+q].txPkts
		bytes += s.queues[pi*NumQueues+q].txBytes
	}
	return frames, bytes
}

// SwitchStats is how a switch stands with its packet memory, in bytes.
type SwitchStats struct {
	Buffer       int64  `json:"buffer_bytes"`
	Service      int64  `json:"service_pool_bytes"` // shared by all, what is left after guarantees and headroom
	ServiceUsed  int64  `json:"service_used_bytes"`
	ServicePeak  int64  `json:"service_peak_bytes"`
	Headroom     int64  `json:"headroom_pool_bytes"`
	HeadroomUsed int64  `json:"headroom_used_bytes"`
	HeadroomPeak int64  `json:"headroom_peak_bytes"`
	HookHits     uint64 `json:"hook_hits"` // frames that its uplink group moved to another class
	Lossless     uint8  `json:"lossless"`  // bit q: class q is protected by PFC
}

// Switch reads the state of a switch's packet memory; zero for a host.
func (s *Sim) Switch(n NodeID) SwitchStats {
	nd := &s.nodes[n]
	if nd.sw < 0 {
		return SwitchStats{}
	}
	sw := &s.switches[nd.sw]
	unit := int64(1)
	if sw.mmu == MMUCells {
		unit = int64(sw.prof.Cells.Cell)
	}
	return SwitchStats{
		Buffer: sw.prof.Buffer, Service: int64(sw.sharedCap) * unit, ServiceUsed: int64(sw.shared) * unit, ServicePeak: int64(sw.peakShared) * unit,
		Headroom: int64(sw.hdrmPool) * unit, HeadroomUsed: int64(sw.hdrmUsed) * unit, HeadroomPeak: int64(sw.peakHdrm) * unit, HookHits: s.HookHits(n), Lossless: sw.lossless,
	}
}
