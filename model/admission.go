package model

// The predicates of a switch, by the names that they have in the literature.

// mayAdmit charges a frame to the buffer, or tells why there is no room.
func (s *Sim) mayAdmit(sw *swtch, in, out int32, ip *port, ig *ingress, qu *queue, q, size int32) DropReason {
	switch sw.mmu {
	case MMUReference:
		return sw.admitReference(ip, ig, q, size)
	case MMUCells:
		return sw.admitCells(ig, qu, q, size)
	}
	return sw.buffer.Admit(Switch{s, ip.sw}, PortID(in), PortID(out), int(q), size)
}

// release gives back what a frame was charged.
func (s *Sim) release(sw *swtch, in, out int32, ip *port, ig *ingress, qu *queue, q, size int32) {
	switch sw.mmu {
	case MMUReference:
		sw.releaseReference(ig, q, size)
	case MMUCells:
		sw.releaseCells(ig, qu, size)
	default:
		sw.buffer.Release(Switch{s, ip.sw}, PortID(in), PortID(out), int(q), size)
	}
}

// shouldPause reports whether the peer of an ingress must stop sending class q.
func (s *Sim) shouldPause(sw *swtch, in int32, ip *port, ig *ingress, q int32) bool {
	switch sw.mmu {
	case MMUReference:
		return sw.xoffReference(ip, ig, q)
	case MMUCells:
		return sw.xoffCells(ig, q)
	}
	return sw.buffer.Xoff(Switch{s, ip.sw}, PortID(in), int(q))
}

// shouldResume reports whether it may go on.
func (s *Sim) shouldResume(sw *swtch, in int32, ip *port, ig *ingress, q int32) bool {
	switch sw.mmu {
	case MMUReference:
		return sw.xonReference(ip, ig, q)
	case MMUCells:
		return sw.xonCells(ig, q)
	}
	return sw.buffer.Xon(Switch{s, ip.sw}, PortID(in), int(q))
}

// marks draws whether a frame that sees a queue above its lower threshold is marked.
func (s *Sim) marks(out int32, qu *queue) bool {
	if qu.bytes > qu.kmax {
		return true
	}
	// r/2^32 < pmax (depth-kmin)/(kmax-kmin), without a division.
	r := s.portInfo[out].marking.Uint64() >> 32
	return r*uint64(qu.kmax-qu.kmin) < qu.pmax*uint64(qu.bytes-qu.kmin)
}

// fitsGuaranteed reports whether a frame is admitted without a look at the thresholds of
// its ingress.
func (sw *swtch) fitsGuaranteed(ig *ingress, q, size int32) bool {
	if ig.xoff || ig.hdrm != 0 {
		return false
	}
	switch sw.mmu {
	case MMUCells:
		c := &sw.prof.Cells
		return (ig.used*c.Cell)+size <= c.Guaranteed && sw.prof.PFC.ABS == 0
	case MMUOther:
		return false
	}
	return ig.used+size <= sw.prof.Ref.Reserve && (sw.reserve[q] > 0 || sw.shared+size <= sw.sharedCap)
}
