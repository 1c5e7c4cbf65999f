package model

import (
	"math"
	"math/bits"
)

// Flags of a port that take a frame off the fast path.
const (
	portLossy  = 1 << iota // frames may arrive corrupted
	portDown               // no carrier
	portMute               // a black path: carrier is there, frames are not
	portSlow               // the host behind takes frames slowly
	portCut                // the peer is in another shard
	portTapped             // stages of the switch see what leaves
)

// Bits of port.paws.
const (
	pawsPause = 1 << iota // a PAUSE frame must be sent
)

// port is the hot part of one end of a link, one cache line: what is touched for each frame. The
// transmit side is its own; frames in flight towards the peer hang on it, in order
// of arrival, with one pending event for the first of them.
type port struct {
	busy   Time   // the wire is free from this moment on
	kickAt Time   // the pending kick that counts; others are stale
	delay  Time   // propagation
	psb    uint64 // ps per byte, serBits fractional bits

	flHead, flTail int32 // frames in flight
	peer           int32
	sw, nic        int32  // owner: index into switches or nics, the other is -1
	extra          uint16 // bytes of preamble and gap of each frame

	ready   uint8 // queues that hold frames
	paused  uint8 // queues that the peer has paused
	pfcWant uint8 // classes that a PFC frame must be sent for
	flags   uint8
	ignore  uint8 // queues that do not obey PFC (recovery, turned off)
	discard uint8 // queues that drop instead of forward (recovery by discarding)
	cur     uint8 // WDRR: the queue being served
	paws    uint8 // what else goes before data: pawsPause
	shift   uint8 // reference model: threshold = free >> shift
}

// queue is one egress queue with its counters: one cache line.
type queue struct {
	head, tail      int32
	bytes, pkts     int32
	peak            int32
	deficit         int32
	txPkts, txBytes uint64
	pmax            uint64 // ECN: probability at kmax in units of 2^-32
	kmin, kmax      int32  // bytes; kmin noMarks = this queue does not mark
	marks           uint32
	cells           int32 // egress accounting of the cell model
}

// noMarks as queue.kmin is a depth that no queue has.
const noMarks = math.MaxInt32

// lost counts what was dropped in front of a queue.
type lost struct {
	frames, bytes uint64
}

// portInfo is the cold part of a port.
type portInfo struct {
	name                string
	node                int32
	link                int32
	rate                Rate
	loss                float64
	rng                 RNG // draws of this port's receiver
	marking             RNG // draws of its queues
	lost                uint64
	lostB               uint64
	crc                 uint64
	react               []int32 // PFC frames that wait for the reaction time
	storm               stormState
	hostDrops           uint64
	ctlFrames, ctlBytes uint64 // PFC and PAUSE frames sent
	carrierChanges      uint64
	alarms              []alarm // timers of applications there, in their order
	errorDown           bool    // by deadlock control
}

type link struct {
	port [2]int32
}

// needTx makes the port send as soon as its wire is free.
func (s *Sim) needTx(pi int32, pt *port) {
	if pt.busy <= s.now {
		s.transmit(pi, pt)
		return
	}
	s.kickWhen(pi, pt, pt.busy)
}

func (s *Sim) kickWhen(pi int32, pt *port, at Time) {
	if pt.kickAt != at {
		pt.kickAt = at
		s.schedule(at, evKick, pi)
	}
}

// transmit starts the next frame of an idle port, if there is one: PFC first, then
// what the scheduler picks among queues that are not paused, then, on a NIC, the
// next queue pair.
func (s *Sim) transmit(pi int32, pt *port) {
	if pt.flags&portDown != 0 {
		return
	}
	if pt.pfcWant|pt.paws != 0 {
		s.sendPFC(pi, pt)
	} else if m := pt.ready &^ pt.paused; m != 0 {
		q := int32(bits.TrailingZeros8(m))
		if m&(m-1) != 0 {
			q = s.pick(pi, pt, m)
		}
		qu := &s.queues[pi*NumQueues+q]
		pk := qu.head
		p := &s.pool.pkts[pk]
		qu.head = p.next
		if p.next < 0 {
			qu.tail = -1
			pt.ready &^= 1 << q
			if qu.deficit > 0 {
				qu.deficit = 0
			}
		}
		size := int32(p.size)
		qu.bytes -= size
		qu.pkts--
		if pt.sw >= 0 {
			// It may have an XON sent, on this very port if the frame goes back where it came
			// from: that one must wait. And for it the pool may move.
			pt.busy = s.now + 1
			s.leave(pi, pt, p, qu, q, size)
			if pt.flags&portTapped != 0 {
				s.leaveStages(pi, pk, q)
			}
			p = &s.pool.pkts[pk]
		}
		qu.txPkts++
		qu.txBytes += uint64(size)
		s.launch(pi, pt, pk, p)
	} else {
		if pt.nic >= 0 {
			s.nicSend(pi, pt)
		}
		return
	}
	if pt.nic >= 0 {
		s.nicArm(pi, pt)
	} else if pt.ready&^pt.paused != 0 || pt.pfcWant|pt.paws != 0 {
		s.kickWhen(pi, pt, pt.busy)
	}
}

// launch puts a frame on the wire of an idle port.
func (s *Sim) launch(pi int32, pt *port, pk int32, p *packet) {
	ser := Time((uint64(p.size) + uint64(pt.extra)) * pt.psb >> serBits)
	if s.opt.NSClock {
		ser -= ser % Nanosecond
	}
	s.sent[p.kf&kindMask]++
	pt.busy = s.now + ser
	p.at = pt.busy + pt.delay
	p.next = -1
	if pt.flags&portCut != 0 {
		s.post(pi, pt, pk, p)
		return
	}
	if pt.flTail >= 0 {
		s.pool.pkts[pt.flTail].next = pk
	} else {
		pt.flHead = pk
		s.schedule(p.at, evArrive, pi)
	}
	pt.flTail = pk
}

// arrive takes the first frame off the wire of sender pi and hands it to its peer.
func (s *Sim) arrive(pi int32) {
	if s.cut != nil && s.cut[pi>>6]>>(pi&63)&1 != 0 {
		s.arriveCut(pi)
		return
	}
	pt := &s.ports[pi]
	pk := pt.flHead
	p := &s.pool.pkts[pk]
	nx := p.next
	pt.flHead = nx
	if nx < 0 {
		pt.flTail = -1
	} else {
		s.schedule(s.pool.pkts[nx].at, evArrive, pi)
	}
	qi := pt.peer
	qt := &s.ports[qi]
	if ((pt.flags|qt.flags)&(portLossy|portDown|portMute) != 0 || p.kf&(flagLost<<flagShift) != 0) && s.lostOnWire(pi, pt.flags, qi, p) {
		s.pool.put(pk)
		return
	}
	switch k := p.kind(); {
	case k == kindPFC || k == kindPause:
		s.receivePFC(qi, qt, pk)
	case k == kindRaw:
		s.arriveRaw(qi, qt, pk)
	case qt.sw >= 0:
		s.forward(qi, qt, pk)
	case qt.flags&portSlow == 0 || !s.holdForHost(qi, qt, pk):
		s.consume(qi, qt, pk)
	}
}

// push appends a frame to an egress queue.
func (s *Sim) push(pt *port, qu *queue, q, pk int32, p *packet) {
	p.next = -1
	if qu.tail >= 0 {
		s.pool.pkts[qu.tail].next = pk
	} else {
		qu.head = pk
		pt.ready |= 1 << q
	}
	qu.tail = pk
	qu.pkts++
	qu.bytes += int32(p.size)
	if qu.bytes > qu.peak {
		qu.peak = qu.bytes
	}
}

// lostOnWire decides what happens to a frame on a damaged link; flags are those of its sender.
func (s *Sim) lostOnWire(pi int32, flags uint8, qi int32, p *packet) bool {
	qt := &s.ports[qi]
	switch {
	case (flags|qt.flags)&portDown != 0 || p.flags()&flagLost != 0:
		s.count(DropCarrier, p)
	case flags&portMute != 0:
		s.count(DropBlackPath, p)
	case s.portInfo[pi].loss > 0 && s.portInfo[qi].rng.Float64() < s.portInfo[pi].loss:
		s.portInfo[qi].crc++
		s.count(DropCRC, p)
	default:
		return false
	}
	s.portInfo[pi].lost++
	s.portInfo[pi].lostB += uint64(p.size)
	s.forgetContent(p)
	return true
}
