package model

import (
	"fmt"
	"math/bits"
)

// The cell-based buffer model of switch chips: every frame takes whole cells. It is
// admitted to its ingress's guaranteed cells, then to the service pool (shared by
// all, with a static or dynamic limit), then, on a lossless class, to the headroom;
// else it is dropped. A lossy class is limited at its egress queue as well.

func (sw *swtch) cells(size int32) int32 {
	c := sw.prof.Cells.Cell
	return (size + c - 1) / c
}

func (s *Sim) setupCells(sw *swtch) error {
	c := &sw.prof.Cells
	total := int64(sw.prof.Buffer) / int64(c.Cell)
	guaranteed := NumQueues * int64(sw.nports) * (int64(sw.cells(c.Guaranteed)) + int64(sw.cells(c.Egress)))
	headroom, classes := int64(0), int64(bits.OnesCount8(sw.lossless))
	for k := range sw.nports {
		pi := sw.portBase + k
		n := int64(sw.cells(c.Headroom))
		if n == 0 && sw.lossless&^sw.prof.PFC.ABS != 0 { // point braking has no headroom
			n = s.linkHeadroom(pi, c.Cell) / int64(c.Cell)
		}
		if n > total {
			return fmt.Errorf("%w: switch %s: the link of port %d needs %d cells of headroom, the chip has %d", ErrProfile, s.nodes[sw.node].name, k, n, total)
		}
		s.setHeadroom(pi, int32(n))
		headroom += n * classes
	}
	if c.HeadroomPool > 0 {
		headroom = c.HeadroomPool / int64(c.Cell)
	}
	free := total - guaranteed - headroom
	if free <= 0 {
		return fmt.Errorf("%w: switch %s: %d guaranteed and %d headroom cells on %d ports, the chip has %d",
			ErrProfile, s.nodes[sw.node].name, guaranteed, headroom, sw.nports, total)
	}
	sw.sharedCap, sw.hdrmPool = int32(free), int32(headroom)
	if c.Xoff > free*int64(c.Cell) {
		return fmt.Errorf("%w: switch %s: XOFF at %d bytes lies above the service pool of %d", ErrProfile, s.nodes[sw.node].name, c.Xoff, free*int64(c.Cell))
	}
	if sw.prof.PFC.ABS != 0 {
		return s.setupABS(sw)
	}
	return nil
}

// linkHeadroom gives the bytes of whole cells that may still arrive at port pi after it has
// sent XOFF: what its link and the reaction of its peer ask for.
func (s *Sim) linkHeadroom(pi, cell int32) int64 {
	pt := &s.ports[pi]
	mtu := int32(0)
	for i := range s.nics {
		mtu = max(mtu, s.nics[i].prof.MTU+s.nics[i].prof.Header)
	}
	h := Headroom{Rate: s.portInfo[pi].rate, Delay: pt.delay, MTU: mtu, Reaction: s.pfcOf(&s.ports[pt.peer]).Reaction, Cell: cell}
	return (h.Bytes() + int64(cell) - 1) / int64(cell) * int64(cell)
}

// dynamic gives 2^(index-7) of the free service pool, in cells.
func (sw *swtch) dynamic(index uint8) int32 {
	free := int64(sw.sharedCap - sw.shared)
	if index >= 7 {
		return int32(min(free<<(index-7), int64(sw.sharedCap)))
	}
	return int32(free >> (7 - index))
}

func (sw *swtch) xoffLimit(q int32) int32 {
	c := &sw.prof.Cells
	if c.Xoff > 0 {
		return sw.cells(int32(c.Xoff))
	}
	return sw.dynamic(sw.xoffAlpha[q])
}

func (sw *swtch) admitCells(ig *ingress, qu *queue, q, size int32) DropReason {
	c := &sw.prof.Cells
	n := sw.cells(size)
	lossless := sw.lossless>>q&1 != 0
	if why := sw.egressFull(qu, q, n, lossless); why != 0 {
		return why
	}
	g := sw.cells(c.Guaranteed)
	over := max(0, ig.used+n-g) // cells that the service pool would hold for this ingress
	add := min(n, over)
	braked := sw.prof.PFC.ABS>>q&1 != 0
	switch {
	case add <= sw.sharedCap-sw.shared && (!lossless || braked || over <= sw.xoffLimit(q)):
		ig.used += n
		sw.shared += add
		sw.peakShared = max(sw.peakShared, sw.shared)
		ig.peakUsed = max(ig.peakUsed, ig.used)
	case lossless && ig.hdrm+n <= ig.hdrmCap && sw.hdrmUsed+n <= sw.hdrmPool:
		ig.hdrm += n
		sw.hdrmUsed += n
		ig.peakHdrm = max(ig.peakHdrm, ig.hdrm)
		sw.peakHdrm = max(sw.peakHdrm, sw.hdrmUsed)
	case lossless:
		return DropHeadroom
	default:
		return DropTail
	}
	qu.cells += n
	return 0
}

// egressFull applies the limit of the egress queue.
func (sw *swtch) egressFull(qu *queue, q, n int32, lossless bool) DropReason {
	c := &sw.prof.Cells
	if lossless {
		if c.LosslessMax > 0 && qu.cells+n > sw.cells(int32(c.LosslessMax)) {
			return DropEgress
		}
		return 0
	}
	limit := sw.dynamic(sw.limitAlpha[q])
	if c.Limit > 0 {
		limit = sw.cells(int32(c.Limit))
	}
	if qu.cells+n > limit+sw.cells(c.Egress) {
		return DropTail
	}
	return 0
}

func (sw *swtch) xoffCells(ig *ingress, q int32) bool {
	if sw.prof.PFC.ABS>>q&1 != 0 {
		return false
	}
	return ig.hdrm > 0 || max(0, ig.used-sw.cells(sw.prof.Cells.Guaranteed)) >= sw.xoffLimit(q)
}

func (sw *swtch) xonCells(ig *ingress, q int32) bool {
	c := &sw.prof.Cells
	xon := max(sw.xoffLimit(q)-sw.cells(c.XonOffset), sw.cells(c.XonFloor))
	return ig.hdrm == 0 && max(0, ig.used-sw.cells(c.Guaranteed)) <= xon
}

func (sw *swtch) releaseCells(ig *ingress, qu *queue, size int32) {
	n := sw.cells(size)
	qu.cells -= n
	fromHdrm := min(ig.hdrm, n)
	ig.hdrm -= fromHdrm
	sw.hdrmUsed -= fromHdrm
	n -= fromHdrm
	sw.shared -= min(n, max(0, ig.used-sw.cells(sw.prof.Cells.Guaranteed)))
	ig.used -= n
}
