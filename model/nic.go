package model

import "math/bits"

// nic is a host's port: the queue pairs that send through it. Control frames (ACKs,
// notifications) wait in the port's egress queues and go first; queue pairs take
// turns, each no earlier than its pace allows.
type nic struct {
	prof  *NICProfile
	node  int32
	port  int32
	rdy   [NumQueues]struct{ head, tail int32 } // queue pairs that may send now, by class
	mask  uint8                                 // classes with such queue pairs
	last  uint8                                 // the class that sent last
	wait  []waiter                              // heap of those whose time has not come
	slow  rxFIFO
	flows uint32
	cnpAt Time // no CNP of any flow before this moment
}

type waiter struct {
	at Time
	id int32
}

// rxFIFO holds frames for a host that takes them slowly.
type rxFIFO struct {
	head, tail int32
	bytes      int64
	peak       int64
	busy       bool
}

func (n *nic) init(pi int32) {
	n.port = pi
	for q := range n.rdy {
		n.rdy[q].head, n.rdy[q].tail = -1, -1
	}
	n.slow.head, n.slow.tail = -1, -1
}

// States of a queue pair with respect to its NIC.
const (
	qpIdle    uint8 = iota // nothing to send, or its window is full
	qpReady                // in a ready list
	qpWaiting              // in the heap
)

// qp is the sending side of a queue pair: one cache line of what each frame touches,
// and a little more.
type qp struct {
	next    Time   // earliest start of the next frame
	psb     uint64 // ps per byte at the present rate
	sndNxt  uint32 // frames
	sndUna  uint32
	total   uint32
	maxSent uint32 // highest sndNxt ever, to tell retransmissions
	nic     int32
	link    int32 // next in the ready list
	hash    uint32
	home    uint16 // packet.dst of its frames
	full    uint16 // bytes on the wire of a full frame
	last    uint16 // bytes on the wire of the last frame
	tos     uint8
	q       uint8 // class at the NIC
	state   uint8
	hears   Hear // what its Controller is told
	rtoOn   bool
	done    bool
	msgs    int32 // index of its messages, -1 = one transfer
	win     int32 // frames in flight at most, 0 = no limit
	gapFull Time  // pace of full frames
	heard   Time  // of the last progress
	retx    uint64
	hole    uint32 // selective repeat: the frame the receiver asked for, noHole = none
	ctl     uint8  // its Control among Sim.controls, 0 = none
	repeat  bool   // a NACK asks for one frame, not for all from there on
}

// noHole in qp.hole: nothing is asked for.
const noHole = ^uint32(0)

// rxqp is the receiving side: one cache line, so that two cores that receive
// neighbouring flows do not take it from each other.
type rxqp struct {
	expect   uint32 // so many frames were delivered in order
	lastNack uint32
	nackAt   Time       // no NACK for lastNack before this moment
	cnpAt    Time       // no CNP before this moment
	ahead    *aheadBits // selective repeat: frames received beyond expect
	hash     uint32
	unacked  int32
	dups     uint32
	ooo      uint32
	src, dst int32  // endpoints
	home     uint16 // packet.dst of its answers
	class    uint8  // in which the sender's NIC sends, and this one answers
	ctl      uint8  // the Control whose answers this end gives
	ack      uint16 // bytes of an ACK on the wire
	rcv      uint8  // index of its Receiver
	_        [1]byte
}

func (s *Sim) pushReady(n *nic, id int32) {
	q := &s.qps[id]
	q.state = qpReady
	q.link = -1
	l := &n.rdy[q.q]
	if l.tail >= 0 {
		s.qps[l.tail].link = id
	} else {
		l.head = id
		n.mask |= 1 << q.q
	}
	l.tail = id
}

// nextQP takes the next queue pair whose turn it is, or -1.
func (s *Sim) nextQP(n *nic, paused uint8) int32 {
	m := n.mask &^ paused
	if m == 0 {
		return -1
	}
	q := bits.TrailingZeros8(m)
	if m&(m-1) != 0 { // the next class after the last one
		q = (bits.TrailingZeros8(bits.RotateLeft8(m, -int(n.last)-1)) + int(n.last) + 1) & 7
	}
	n.last = uint8(q)
	l := &n.rdy[q]
	id := l.head
	l.head = s.qps[id].link
	if l.head < 0 {
		l.tail = -1
		n.mask &^= 1 << q
	}
	return id
}

// nicSend sends a frame of the next queue pair and plans the one after it.
func (s *Sim) nicSend(pi int32, pt *port) {
	n := &s.nics[pt.nic]
	for len(n.wait) > 0 && n.wait[0].at <= s.now {
		s.pushReady(n, n.popWait())
	}
	for {
		id := s.nextQP(n, pt.paused)
		if id < 0 {
			break
		}
		q := &s.qps[id]
		if !q.canSend() {
			q.state = qpIdle
			continue
		}
		if q.next > s.now { // it was slowed down while it stood in the list
			n.pushWait(q.next, id)
			q.state = qpWaiting
			continue
		}
		s.sendData(pi, pt, n, q, id)
		break
	}
	s.nicArm(pi, pt)
}

func (q *qp) canSend() bool {
	if q.hole != noHole {
		return true
	}
	return q.sndNxt < q.total && (q.win == 0 || q.sndNxt-q.sndUna < uint32(q.win))
}

// sendData puts the next frame of a queue pair on the idle wire.
func (s *Sim) sendData(pi int32, pt *port, n *nic, q *qp, id int32) {
	size, gap := q.full, q.gapFull
	flags := uint8(0)
	psn := q.sndNxt
	if q.hole != noHole {
		psn, flags = q.hole, flagTell
	}
	if psn == q.total-1 {
		size = q.last
		gap = s.span(size, q.psb)
		flags = flagTell
	}
	if q.msgs >= 0 {
		size, flags = s.msgFrame(q, psn, flags)
		gap = s.span(size, q.psb)
	}
	pk := s.pool.get()
	s.pool.pkts[pk] = packet{flow: id, psn: psn, hash: q.hash, dst: q.home, size: size, tos: q.tos, kf: kindFlags(kindData, flags, q.q)}
	s.made[kindData]++
	again := psn < q.maxSent
	if again {
		q.retx++
	} else {
		q.maxSent = psn + 1
	}
	if q.hole != noHole {
		q.hole = noHole
	} else {
		q.sndNxt++
	}
	qu := &s.queues[pi*NumQueues+int32(q.q)]
	qu.txPkts++
	qu.txBytes += uint64(size)
	if s.telemetry && s.controls[q.ctl].answer.Telemetry {
		s.newRecord(id, psn, again)
	}
	s.launch(pi, pt, pk, &s.pool.pkts[pk])
	if q.hears&HearSent != 0 {
		s.control(q).Sent(QP{s, id}, psn, int64(size))
	}
	q.next = s.now + gap
	if n.prof.RTO > 0 {
		if q.sndNxt == q.sndUna+1 { // nothing was outstanding
			q.heard = s.now
		}
		if !q.rtoOn {
			q.rtoOn = true
			s.schedule(s.now+n.prof.RTO, evRTO, id)
		}
	}
	switch {
	case !q.canSend():
		q.state = qpIdle
	case q.next <= pt.busy:
		s.pushReady(n, id)
	default:
		n.pushWait(q.next, id)
		q.state = qpWaiting
	}
}

// span gives the time that size bytes take at a pace.
func (s *Sim) span(size uint16, psb uint64) Time {
	t := Time(uint64(size) * psb >> serBits)
	if s.opt.NSClock {
		t -= t % Nanosecond
	}
	return t
}

// nicArm makes sure that a NIC looks again when it next may send.
func (s *Sim) nicArm(pi int32, pt *port) {
	n := &s.nics[pt.nic]
	if (pt.ready|n.mask)&^pt.paused != 0 || pt.pfcWant|pt.paws != 0 {
		if pt.busy > s.now {
			s.kickWhen(pi, pt, pt.busy)
		}
		return
	}
	if len(n.wait) > 0 {
		s.kickWhen(pi, pt, max(pt.busy, n.wait[0].at))
	}
}

// wake makes a queue pair that has something to send a candidate.
func (s *Sim) wake(id int32) {
	q := &s.qps[id]
	if q.state != qpIdle || !q.canSend() {
		return
	}
	n := &s.nics[q.nic]
	pt := &s.ports[n.port]
	if q.next > s.now {
		q.state = qpWaiting
		n.pushWait(q.next, id)
	} else {
		s.pushReady(n, id)
	}
	if pt.busy <= s.now {
		s.transmit(n.port, pt)
	} else {
		s.nicArm(n.port, pt)
	}
}

func (n *nic) pushWait(at Time, id int32) {
	n.wait = append(n.wait, waiter{at, id})
	w := n.wait
	i := len(w) - 1
	for i > 0 {
		up := (i - 1) / 2
		if w[up].at < at || w[up].at == at && w[up].id < id {
			break
		}
		w[i], i = w[up], up
	}
	w[i] = waiter{at, id}
}

// moveWait gives a waiting queue pair another time.
func (n *nic) moveWait(at Time, id int32) {
	for i := range n.wait {
		if n.wait[i].id != id {
			continue
		}
		last := len(n.wait) - 1
		n.wait[i] = n.wait[last]
		n.wait = n.wait[:last]
		rest := n.wait
		n.wait = n.wait[:0]
		for _, w := range rest { // restores the order of the heap; few wait at one NIC
			n.pushWait(w.at, w.id)
		}
		n.pushWait(at, id)
		return
	}
}

func (n *nic) popWait() int32 {
	w := n.wait
	id := w[0].id
	last := w[len(w)-1]
	w = w[:len(w)-1]
	n.wait = w
	i := 0
	for {
		c := 2*i + 1
		if c >= len(w) {
			break
		}
		if r := c + 1; r < len(w) && (w[r].at < w[c].at || w[r].at == w[c].at && w[r].id < w[c].id) {
			c = r
		}
		if last.at < w[c].at || last.at == w[c].at && last.id < w[c].id {
			break
		}
		w[i], i = w[c], c
	}
	if len(w) > 0 {
		w[i] = last
	}
	return id
}
