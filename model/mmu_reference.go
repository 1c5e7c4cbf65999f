package model

import (
	"fmt"
	"math"
	"math/bits"
)

// The reference buffer model: bytes; each port and class has a small reserve; all
// share the rest of the buffer with a dynamic threshold; headroom beyond takes what
// arrives after XOFF. Nothing limits egress queues.
//
// Reserve and headroom are set aside for each lossless class of each port, so that the
// buffer holds what is admitted. The reserve of a lossy class is a floor of admission,
// taken from the shared pool: the published formula S = B - headrooms - 4096 x ports counts
// one class, and the switches that follow it have one that is lossless.

func (s *Sim) setupReference(sw *swtch) error {
	p := sw.prof
	nicRate := s.slowestNIC()
	classes := int64(max(1, bits.OnesCount8(sw.lossless)))
	free := p.Buffer - int64(p.Ref.Reserve)*int64(sw.nports)*classes
	for q := range sw.reserve {
		if sw.lossless>>q&1 != 0 {
			sw.reserve[q] = p.Ref.Reserve
		}
	}
	pool := int64(0)
	for k := range sw.nports {
		pi := sw.portBase + k
		pt := &s.ports[pi]
		rate := s.portInfo[pi].rate
		headroom := math.Floor(p.Ref.HeadroomX * float64(rate) / 8 * pt.delay.Seconds())
		if headroom > float64(p.Buffer) {
			return fmt.Errorf("%w: switch %s: %.0f bytes of headroom for a link of %v with a delay of %v, above the buffer of %d",
				ErrProfile, s.nodes[sw.node].name, headroom, rate, pt.delay, p.Buffer)
		}
		s.setHeadroom(pi, int32(headroom))
		pt.shift = p.Ref.AlphaShift
		for r := rate; r > nicRate && pt.shift > 0; r /= 2 {
			pt.shift--
		}
		pool += int64(headroom) * classes
	}
	if free -= pool; free <= 0 {
		return fmt.Errorf("%w: switch %s: headroom and reserves of %d ports need %d bytes more than the buffer of %d",
			ErrProfile, s.nodes[sw.node].name, sw.nports, -free, p.Buffer)
	}
	sw.sharedCap, sw.hdrmPool = int32(free), int32(pool)
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
	reserve := sw.reserve[q]
	thr := sw.thresholdReference(ip)
	over := max(0, ig.used-reserve)
	if size+over > thr {
		switch {
		case sw.lossless>>q&1 == 0:
			if ig.used+size > sw.prof.Ref.Reserve || sw.shared+size > sw.sharedCap {
				return DropTail
			}
		case size+ig.hdrm > ig.hdrmCap:
			return DropHeadroom
		}
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

func (sw *swtch) xoffReference(ip *port, ig *ingress, q int32) bool {
	return ig.hdrm > 0 || max(0, ig.used-sw.reserve[q]) >= sw.thresholdReference(ip)
}

func (sw *swtch) xonReference(ip *port, ig *ingress, q int32) bool {
	over := max(0, ig.used-sw.reserve[q])
	return ig.hdrm == 0 && (over == 0 || over+sw.prof.Ref.Resume <= sw.thresholdReference(ip))
}

func (sw *swtch) releaseReference(ig *ingress, q, size int32) {
	fromHdrm := min(ig.hdrm, size)
	ig.hdrm -= fromHdrm
	sw.hdrmUsed -= fromHdrm
	size -= fromHdrm
	sw.shared -= min(size, max(0, ig.used-sw.reserve[q]))
	ig.used -= size
}
