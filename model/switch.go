package model

import "math"

// swtch is what the frames passing one switch share.
type swtch struct {
	prof                  *SwitchProfile
	node                  int32
	portBase              int32
	nports                int32
	routeBase             int // of routes: one entry a destination switch
	groupBase             int32
	groupCount            int32
	seed                  uint32 // of the ECMP hash
	mmu                   MMUKind
	lossless              uint8
	dscp                  [64]uint8
	mapped                bool             // the class is not that of the DSCP alone, or the DSCP is rewritten
	reserve               [NumQueues]int32 // bytes set aside for a class of each port (reference model)
	sharedCap             int32            // bytes or cells of the shared (service) pool
	shared                int32            // in use
	hdrmPool              int32            // cells of the headroom pool
	hdrmUsed              int32
	peakShared            int32
	peakHdrm              int32
	own                   int32 // bytes of the own control plane that wait
	hook                  *hookFlow
	balancer              Balancer  // nil: by hash
	sched                 Scheduler // nil: priority and WDRR
	stages                []Stage
	buffer                Buffer           // of a model that is not built in
	limitAlpha, xoffAlpha [NumQueues]uint8 // of each class; they may change at run time
	dead                  bool
}

// ingress is the accounting of one port and class of a switch, or of a NIC that
// takes frames slowly.
type ingress struct {
	used     int32 // guaranteed and shared, bytes or cells
	hdrm     int32
	hdrmCap  int32 // the most of it
	peakUsed int32
	peakHdrm int32
	quanta   uint16 // of the PFC frame that is to be sent
	xoff     bool   // the peer was told to stop
	refresh  bool   // a refresh event is pending
}

// setupSwitch derives the limits of switch i from its profile and ports.
func (s *Sim) setupSwitch(i int32) error {
	sw := &s.switches[i]
	p := sw.prof
	sw.mmu, sw.lossless, sw.dscp = p.MMU, p.Lossless, *p.DSCP
	sw.mapped = p.Trust8021p || p.Remark
	for q := range NumQueues {
		sw.limitAlpha[q], sw.xoffAlpha[q] = p.Cells.LimitAlpha, p.Cells.XoffAlpha
	}
	if p.PFC.Off {
		sw.lossless = 0
	}
	rng := seedFor(s.opt.Seed, classSwitch, int(i))
	sw.seed = uint32(rng.Uint64())
	for k := range sw.nports {
		pi := sw.portBase + k
		rate := s.portInfo[pi].rate
		s.portInfo[pi].marking = seedFor(s.opt.Seed, classPort, int(pi)+1<<24)
		if e := &p.ECN; e.Mode != ECNOff {
			scale := 1.0
			if e.PerRate > 0 {
				scale = float64(rate) / float64(e.PerRate)
			}
			for q := range int32(NumQueues) {
				if qu := &s.queues[pi*NumQueues+q]; e.Queues>>q&1 != 0 {
					qu.kmin, qu.kmax = depth(float64(e.KMin)*scale), depth(float64(e.KMax)*scale)
					qu.pmax = uint64(e.PMax * (1 << 32))
				}
			}
		}
	}
	switch p.MMU {
	case MMUCells:
		return s.setupCells(sw)
	case MMUOther:
		return s.setupOther(i)
	}
	return s.setupReference(sw)
}

// setHeadroom gives each class of a port so many bytes or cells of headroom.
func (s *Sim) setHeadroom(pi, n int32) {
	for q := range int32(NumQueues) {
		s.ingress[pi*NumQueues+q].hdrmCap = n
	}
}

// SetLossless has a switch protect, from now on, only those of its lossless classes that are named
// by a bit. Buffer is set aside for all that its profile has. What is paused is resumed as its
// ingress drains.
func (s *Sim) SetLossless(n NodeID, classes uint8) {
	if i := s.nodes[n].sw; i >= 0 && !s.switches[i].prof.PFC.Off {
		sw := &s.switches[i]
		sw.lossless = classes & sw.prof.Lossless
	}
}

// depth gives a threshold as a depth of a queue in bytes; one that no queue reaches stays so.
func depth(threshold float64) int32 { return int32(min(threshold, math.MaxInt32)) }

// forward takes a frame that arrived at a switch port to its egress queue.
func (s *Sim) forward(in int32, ip *port, pk int32) {
	sw := &s.switches[ip.sw]
	p := &s.pool.pkts[pk]
	out := s.route(sw, pk)
	if out < 0 {
		s.drop(pk, DropNoRoute)
		return
	}
	hops := p.way&maxHops + 1
	if hops >= maxHops {
		s.drop(pk, DropTTL)
		return
	}
	p.way = uint16(in-sw.portBase)<<hopBits | hops
	ot := &s.ports[out]
	if ot.flags&portDown != 0 {
		out = s.lagMember(sw, out, p)
		ot = &s.ports[out]
	}
	q := int32(PassOn)
	if sw.stages != nil {
		if q = s.arriveStages(sw, in, out, pk); q == TakeIt {
			return
		}
		p = &s.pool.pkts[pk]
	}
	if q == PassOn {
		if q = int32(sw.dscp[p.tos>>2]); sw.mapped {
			q = s.classify(sw, in, p)
		}
	}
	p.kf = p.kf&^prioMask | uint8(q)<<prioShift
	size := int32(p.size)
	qu := &s.queues[out*NumQueues+q]
	ig := &s.ingress[in*NumQueues+q]
	if ot.busy <= s.now && ot.ready|ot.pfcWant|ot.paws == 0 && (ot.paused|ot.discard)>>q&1 == 0 &&
		ot.flags&(portDown|portTapped) == 0 && sw.fitsGuaranteed(ig, q, size) {
		// The frame leaves at the very moment it arrives and never was in anybody's
		// way: taken in and out of the books, they would read the same.
		if size > qu.peak {
			qu.peak = size
		}
		qu.txPkts++
		qu.txBytes += uint64(size)
		s.launch(out, ot, pk, p)
		return
	}
	if ot.flags&portDown != 0 {
		s.dropAt(pk, out*NumQueues+q, DropCarrier)
		return
	}
	if ot.discard>>q&1 != 0 {
		s.dropAt(pk, out*NumQueues+q, DropRecovery)
		return
	}
	if qu.bytes > qu.kmin && sw.prof.ECN.Mode == ECNEnqueue && !s.markAtEnqueue(sw, out, qu, p) {
		s.dropAt(pk, out*NumQueues+q, DropWRED)
		return
	}
	if why := s.mayAdmit(sw, in, out, ip, ig, qu, q, size); why != 0 {
		s.dropAt(pk, out*NumQueues+q, why)
		return
	}
	s.push(ot, qu, q, pk, p)
	if ot.paused>>q&1 == 0 {
		s.needTx(out, ot)
	}
	if sw.lossless>>q&1 == 0 || ig.xoff {
		return
	}
	if sw.prof.PFC.ABS>>q&1 != 0 {
		if int64(ig.used+ig.hdrm)*int64(sw.prof.Cells.Cell) > sw.prof.PFC.ABSOver {
			s.armBrake(in, q)
		}
	} else if s.shouldPause(sw, in, ip, ig, q) {
		s.xoff(in, ip, ig, q)
	}
}

// leave is the accounting and marking of a frame that a switch port is about to send.
func (s *Sim) leave(out int32, ot *port, p *packet, qu *queue, q, size int32) {
	sw := &s.switches[ot.sw]
	if p.ownFrame() {
		sw.own -= size
		return
	}
	in := sw.portBase + int32(p.way>>hopBits)
	ip := &s.ports[in]
	ig := &s.ingress[in*NumQueues+q]
	s.release(sw, in, out, ip, ig, qu, q, size)
	resume := ig.xoff && s.shouldResume(sw, in, ip, ig, q)
	if qu.bytes > qu.kmin && sw.prof.ECN.Mode == ECNDequeue && s.marks(out, qu) {
		mark(p, qu)
	}
	if resume {
		s.xon(in, ip, ig, q)
	}
}

// mark sets CE on a frame of an ECN-capable flow.
func mark(p *packet, qu *queue) {
	if e := p.tos & ecnMask; e != 0 && e != ecnCE {
		p.tos |= ecnCE
		qu.marks++
	}
}

// markAtEnqueue is WRED/ECN when a frame enters; false means drop.
func (s *Sim) markAtEnqueue(sw *swtch, out int32, qu *queue, p *packet) bool {
	if !s.marks(out, qu) {
		return true
	}
	if p.tos&ecnMask == 0 {
		return !sw.prof.ECN.DropNonECT
	}
	mark(p, qu)
	return true
}
