package model

import "fmt"

// The reference buffer model: bytes; each port and class has a small reserve; all
// share the rest of the buffer with a dynamic threshold; headroom beyond takes what
// arrives after XOFF. Nothing limits egress queues.

func (s *Sim) setupReference(sw *swtch) error {
	p := sw.prof
	nicRate := s.slowestNIC()
	free := p.Buffer - int64(p.Ref.Reserve)*int64(sw.nports)
	for k := range sw.nports {
		pi := sw.portBase + k
		pt := &s.ports[pi]
		rate := s.portInfo[pi].rate
		pt.hdrmCap = int32(p.Ref.HeadroomX * float64(rate) / 8 * pt.delay.Seconds())
		pt.shift = p.Ref.AlphaShift
		for r := rate; r > nicRate && pt.shift > 0; r /= 2 {
			pt.shift--
		}
		free -= int64(pt.hdrmCap)
		sw.hdrmPool += pt.hdrmCap
	}
	if free <= 0 {
		return fmt.Errorf("%w: switch %s: headroom and reserves of %d ports need %d bytes more than the buffer of %d",
			ErrProfile, s.nodes[sw.node].name, sw.nports, -free, p.Buffer)
	}
	sw.sharedCap = int32(free)
	return nil
}

// slowestNIC is the speed that thresholds are relative to.
func (s *Sim) slowestNIC() Rate {
	if s.opt.NICRate > 0 {
		return s.opt.NICRate
	}
	if s.nicRate == 0 {
		for i := range s.nics {
			if r := s.portInfo[s.nics[i].port].rate; s.nicRate == 0 || r < s.nicRate {
				s.nicRate = r
			}
		}
	}
	return s.nicRate
}

func (sw *swtch) thresholdReference(ip *port) int32 {
	return (sw.sharedCap - sw.shared) >> ip.shift
}

func (sw *swtch) admitReference(ip *port, ig *ingress, q, size int32) DropReason {
	reserve := sw.prof.Ref.Reserve
	thr := sw.thresholdReference(ip)
	over := max(0, ig.used-reserve)
	if size+over > thr && (size+ig.hdrm > ip.hdrmCap || sw.lossless>>q&1 == 0) {
		if sw.lossless>>q&1 == 0 {
			return DropTail
		}
		return DropHeadroom
	}
	now := ig.used + size
	switch {
	case now <= reserve:
		ig.used = now
	case now-reserve > thr && sw.lossless>>q&1 != 0:
		ig.hdrm += size
		sw.hdrmUsed += size
		sw.peakHdrm = max(sw.peakHdrm, sw.hdrmUsed)
		if ig.hdrm > ig.peakHdrm {
			ig.peakHdrm = ig.hdrm
		}
	default:
		ig.used = now
		sw.shared += min(size, now-reserve)
		if sw.shared > sw.peakShared {
			sw.peakShared = sw.shared
		}
	}
	if ig.used > ig.peakUsed {
		ig.peakUsed = ig.used
	}
	return 0
}

func (sw *swtch) xoffReference(ip *port, ig *ingress) bool {
	return ig.hdrm > 0 || max(0, ig.used-sw.prof.Ref.Reserve) >= sw.thresholdReference(ip)
}

func (sw *swtch) xonReference(ip *port, ig *ingress) bool {
	over := max(0, ig.used-sw.prof.Ref.Reserve)
	return ig.hdrm == 0 && (over == 0 || over+sw.prof.Ref.Resume <= sw.thresholdReference(ip))
}

func (sw *swtch) releaseReference(ig *ingress, size int32) {
	fromHdrm := min(ig.hdrm, size)
	ig.hdrm -= fromHdrm
	sw.hdrmUsed -= fromHdrm
	size -= fromHdrm
	sw.shared -= min(size, max(0, ig.used-sw.prof.Ref.Reserve))
	ig.used -= size
}
