package model

// The predicates of a switch, by the names that they have in the literature.

// mayAdmit charges a frame to the buffer, or tells why there is no room.
func (s *Sim) mayAdmit(sw *swtch, ip, ot *port, ig *ingress, qu *queue, q, size int32) DropReason {
	if sw.mmu == MMUCells {
		return sw.admitCells(ip, ot, ig, qu, q, size)
	}
	return sw.admitReference(ip, ig, q, size)
}

// shouldPause reports whether the peer of an ingress must stop sending class q.
func (s *Sim) shouldPause(sw *swtch, ip *port, ig *ingress, q int32) bool {
	if sw.mmu == MMUCells {
		return sw.xoffCells(ig, q)
	}
	return sw.xoffReference(ip, ig, q)
}

// shouldResume reports whether it may go on.
func (s *Sim) shouldResume(sw *swtch, ip *port, ig *ingress, q int32) bool {
	if sw.mmu == MMUCells {
		return sw.xonCells(ig, q)
	}
	return sw.xonReference(ip, ig, q)
}

// marks draws whether a frame that sees a queue above its lower threshold is marked.
func (s *Sim) marks(pt *port, qu *queue) bool {
	if qu.bytes > qu.kmax {
		return true
	}
	// r/2^32 < pmax (depth-kmin)/(kmax-kmin), without a division.
	r := pt.rng.Uint64() >> 32
	return r*uint64(qu.kmax-qu.kmin) < qu.pmax*uint64(qu.bytes-qu.kmin)
}

// fitsGuaranteed reports whether a frame is admitted without a look at the thresholds of
// its ingress.
func (sw *swtch) fitsGuaranteed(ig *ingress, q, size int32) bool {
	if ig.xoff || ig.hdrm != 0 {
		return false
	}
	if sw.mmu == MMUCells {
		c := &sw.prof.Cells
		return (ig.used*c.Cell)+size <= c.Guaranteed && sw.prof.PFC.ABS == 0
	}
	return ig.used+size <= sw.prof.Ref.Reserve && (sw.reserve[q] > 0 || sw.shared+size <= sw.sharedCap)
}
