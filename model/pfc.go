package model

// pfcFrame is the size of PFC and PAUSE frames: the Ethernet minimum.
const pfcFrame = 64

// untilXON beside a class in a frame's psn: its pause does not run out (quanta 0). In a PFC
// frame the low eight bits are the classes it names and the next eight those of them that
// wait until XON; in a PAUSE frame, which has one time for all, it lies above the time.
const untilXON = 1 << NumQueues

// pauseState is what one egress queue knows of the pauses its peer asked for, and
// the counters of both directions.
type pauseState struct {
	since, until Time // of the pause in force
	total        Time // spent paused before
	rxXoff       uint64
	rxXon        uint64
	txXoff       uint64
	txXon        uint64
	deadlocks    uint64
	recoveries   uint64
	firstDead    Time
	off          bool // PFC turned off by deadlock control
	expiring     bool // an expiry event is pending
	detecting    bool // a detection event is pending
	recent       []Time
	next         int
}

// pfcOf gives the flow control settings of the owner of a port.
func (s *Sim) pfcOf(pt *port) *PFC {
	if pt.sw >= 0 {
		return &s.switches[pt.sw].prof.PFC
	}
	return &s.nics[pt.nic].prof.PFC
}

// quanta gives the duration of n pause quanta of 512 bit times at the port's speed.
func (pt *port) quanta(n uint16) Time {
	return Time(uint64(n) * 64 * pt.psb >> serBits)
}

// xoff asks the peer of port in to stop class q.
func (s *Sim) xoff(in int32, pt *port, ig *ingress, q int32) {
	cfg := s.pfcOf(pt)
	first := !s.anyXoff(in)
	ig.xoff = true
	ig.quanta = cfg.Quanta
	if cfg.Pause {
		if !first {
			return
		}
		pt.paws |= pawsPause
	} else {
		pt.pfcWant |= s.pausedFor(in, pt, q)
	}
	s.needTx(in, pt)
}

// xon lets it go on.
func (s *Sim) xon(in int32, pt *port, ig *ingress, q int32) {
	ig.xoff = false
	ig.quanta = 0
	if s.pfcOf(pt).Pause {
		if s.anyXoff(in) {
			return
		}
		pt.paws |= pawsPause
	} else {
		pt.pfcWant |= s.pausedFor(in, pt, q)
	}
	s.needTx(in, pt)
}

func (s *Sim) anyXoff(in int32) bool {
	for q := range int32(NumQueues) {
		if s.ingress[in*NumQueues+q].xoff {
			return true
		}
	}
	return false
}

// sendPFC puts a PFC frame for all classes that want one, or a PAUSE frame, on the
// idle wire of pi.
func (s *Sim) sendPFC(pi int32, pt *port) {
	pk := s.pool.get()
	cfg := s.pfcOf(pt)
	p := packet{size: pfcFrame, tos: 7 << 5}
	base := pi * NumQueues
	if pt.paws&pawsPause != 0 {
		pt.paws &^= pawsPause
		p.kf = uint8(kindPause)
		if s.anyXoff(pi) {
			p.psn = uint32(cfg.Quanta)
			if cfg.Quanta == 0 {
				p.psn = untilXON<<16 | 0xffff
			}
			s.pauses[base].txXoff++
			s.planRefresh(pi, pt, cfg, 0)
		} else {
			s.pauses[base].txXon++
		}
	} else {
		p.kf = uint8(kindPFC)
		p.flow = s.newTimes()
		p.psn = uint32(pt.pfcWant)
		for q := range int32(NumQueues) {
			if pt.pfcWant>>q&1 != 0 {
				time, lasting := s.classTime(base+q, pi, pt, cfg, q)
				s.pfcTimes[p.flow][q] = time
				if lasting {
					p.psn |= untilXON << q
				}
			}
		}
		pt.pfcWant = 0
	}
	s.made[p.kind()]++
	s.portInfo[pi].ctlFrames++
	s.portInfo[pi].ctlBytes += pfcFrame
	s.pool.pkts[pk] = p
	s.launch(pi, pt, pk, &s.pool.pkts[pk])
}

// classTime gives the pause time of one class in the frame that is being sent, and whether
// the pause lasts until XON.
func (s *Sim) classTime(i, pi int32, pt *port, cfg *PFC, q int32) (quanta uint16, lasting bool) {
	ig, ps := &s.ingress[i], &s.pauses[i]
	if cfg.ABS>>q&1 != 0 && ig.quanta > 0 { // a brake is one order, not a state
		t := ig.quanta
		ig.quanta = 0
		ps.txXoff++
		return t, false
	}
	if !s.mustWait(pi, pt, q) {
		ps.txXon++
		return 0, false
	}
	ps.txXoff++
	quanta = cfg.Quanta
	if ig.xoff {
		quanta = ig.quanta // a storming NIC has its own
	}
	if quanta == 0 {
		return 0xffff, true
	}
	if pt.nic < 0 { // a NIC storms as often as it was told to
		s.planRefresh(pi, pt, cfg, q)
	}
	return quanta, false
}

func (s *Sim) planRefresh(pi int32, pt *port, cfg *PFC, q int32) {
	ig := &s.ingress[pi*NumQueues+q]
	if cfg.Refresh > 0 && !ig.refresh {
		ig.refresh = true
		s.schedule(s.now+pt.quanta(cfg.Refresh), evRefresh, pi*NumQueues+q)
	}
}

// refreshXoff repeats a lasting XOFF before it runs out at the peer.
func (s *Sim) refreshXoff(i int32) {
	ig := &s.ingress[i]
	ig.refresh = false
	pi, q := i/NumQueues, i%NumQueues
	pt := &s.ports[pi]
	cfg := s.pfcOf(pt)
	if cfg.Pause {
		if !s.anyXoff(pi) {
			return
		}
		pt.paws |= pawsPause
	} else {
		if !s.mustWait(pi, pt, q) {
			return
		}
		pt.pfcWant |= 1 << q
	}
	s.needTx(pi, pt)
}

func (s *Sim) newTimes() int32 {
	if n := len(s.pfcFree); n > 0 {
		i := s.pfcFree[n-1]
		s.pfcFree = s.pfcFree[:n-1]
		return i
	}
	s.pfcTimes = append(s.pfcTimes, [NumQueues]uint16{})
	return int32(len(s.pfcTimes) - 1)
}

// receivePFC takes a PFC or PAUSE frame that arrived at port pi; it acts after the
// reaction time of the port.
func (s *Sim) receivePFC(pi int32, pt *port, pk int32) {
	delay := s.pfcOf(pt).Reaction
	if delay == 0 {
		s.obey(pi, pt, pk)
		return
	}
	info := &s.portInfo[pi]
	s.pool.pkts[pk].at = s.now + delay
	info.react = append(info.react, pk)
	if len(info.react) == 1 {
		s.schedule(s.now+delay, evReact, pi)
	}
}

func (s *Sim) react(pi int32) {
	info := &s.portInfo[pi]
	pk := info.react[0]
	copy(info.react, info.react[1:])
	info.react = info.react[:len(info.react)-1]
	if len(info.react) > 0 {
		s.schedule(s.pool.pkts[info.react[0]].at, evReact, pi)
	}
	s.obey(pi, &s.ports[pi], pk)
}

// obey applies a PFC or PAUSE frame to the queues of port pi and frees it.
func (s *Sim) obey(pi int32, pt *port, pk int32) {
	p := s.pool.pkts[pk]
	s.ended[p.kind()]++
	s.forgetContent(&p)
	s.pool.put(pk)
	off := s.pfcOf(pt).Off
	if p.kind() == kindPause {
		s.obeyPause(pi, pt, p.psn, off)
		return
	}
	times := s.pfcTimes[p.flow]
	for q := range int32(NumQueues) {
		if p.psn>>q&1 == 0 {
			continue
		}
		if n := times[q]; n > 0 {
			until := never
			if p.psn>>q&untilXON == 0 {
				until = s.now + pt.quanta(n)
			}
			s.pauses[pi*NumQueues+q].rxXoff++
			s.pauseQueue(pi, pt, q, until, off)
		} else {
			s.pauses[pi*NumQueues+q].rxXon++
			s.resumeQueue(pi, pt, q)
		}
	}
}

// obeyPause stops or restarts all queues (802.3 annex 31B). It is counted at queue 0.
func (s *Sim) obeyPause(pi int32, pt *port, psn uint32, off bool) {
	n := uint16(psn)
	if n > 0 {
		s.pauses[pi*NumQueues].rxXoff++
	} else {
		s.pauses[pi*NumQueues].rxXon++
	}
	for q := range int32(NumQueues) {
		switch {
		case n == 0:
			s.resumeQueue(pi, pt, q)
		case psn>>16 != 0:
			s.pauseQueue(pi, pt, q, never, off)
		default:
			s.pauseQueue(pi, pt, q, s.now+pt.quanta(n), off)
		}
	}
}

// pauseQueue stops queue q of port pi until the given moment.
func (s *Sim) pauseQueue(pi int32, pt *port, q int32, until Time, off bool) {
	ps := &s.pauses[pi*NumQueues+q]
	ps.until = until
	if off || pt.ignore>>q&1 != 0 {
		return
	}
	if pt.paused>>q&1 == 0 {
		pt.paused |= 1 << q
		ps.since = s.now
		s.watch(pi, pt, q, ps)
	}
	if until != never && !ps.expiring {
		ps.expiring = true
		s.schedule(until, evExpire, pi*NumQueues+q)
	}
}

// resumeQueue lets queue q of port pi send again.
func (s *Sim) resumeQueue(pi int32, pt *port, q int32) {
	ps := &s.pauses[pi*NumQueues+q]
	ps.until = s.now
	if pt.paused>>q&1 == 0 {
		return
	}
	pt.paused &^= 1 << q
	ps.total += s.now - ps.since
	if pt.ready>>q&1 != 0 || pt.nic >= 0 {
		s.needTx(pi, pt)
	}
}

// pauseExpiry ends a pause that was neither refreshed nor cancelled.
func (s *Sim) pauseExpiry(i int32) {
	ps := &s.pauses[i]
	ps.expiring = false
	pi, q := i/NumQueues, i%NumQueues
	pt := &s.ports[pi]
	if pt.paused>>q&1 == 0 || ps.until == never {
		return
	}
	if ps.until > s.now {
		ps.expiring = true
		s.schedule(ps.until, evExpire, i)
		return
	}
	s.resumeQueue(pi, pt, q)
}
