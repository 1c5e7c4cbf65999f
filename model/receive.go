package model

// consume is what the NIC does with a frame.
func (s *Sim) consume(pi int32, pt *port, pk int32) {
	p := &s.pool.pkts[pk]
	s.ended[p.kind()]++
	switch p.kind() {
	case kindData:
		s.consumeData(pi, pt, pk, p)
		return
	case kindAck, kindNack:
		id, psn, nack, cnp := p.flow, p.psn, p.kind() == kindNack, p.flags()&flagCNP != 0
		s.pool.put(pk)
		s.acknowledge(id, psn, nack, cnp)
	case kindCNP:
		id := p.flow
		s.pool.put(pk)
		s.notify(id)
	case kindProbe:
		s.probed(pi, pt, pk, p)
	}
}

// consumeData checks the sequence and answers. The frame itself becomes the answer.
func (s *Sim) consumeData(pi int32, pt *port, pk int32, p *packet) {
	r := &s.rx[p.flow]
	prof := s.nics[pt.nic].prof
	marked := p.tos&ecnMask == ecnCE
	if marked {
		if every := s.controls[r.ctl].answer.CNPEvery; every > 0 && s.now >= r.cnpAt && s.now >= s.nics[pt.nic].cnpAt {
			r.cnpAt = s.now + every
			s.nics[pt.nic].cnpAt = s.now + prof.CNPGap
			s.sendCNP(pi, pt, p.flow, r)
			p = &s.pool.pkts[pk] // the pool may have moved
		}
	}
	k := kindAck
	tell := false
	switch {
	case p.psn == r.expect:
		r.expect++
		r.unacked++
		if r.ahead != nil && s.receivers[r.rcv].rcv.Filled(RX{s, r, prof.NackGap}, r.fill()) == ReplyNack {
			k = kindNack // the next hole
		}
		tell = p.flags()&flagTell != 0 && s.qps[p.flow].msgs >= 0
		if k == kindAck && r.unacked < prof.AckEvery && p.flags()&flagTell == 0 {
			s.pool.put(pk)
			return
		}
	case p.psn > r.expect:
		r.ooo++
		switch s.receivers[r.rcv].rcv.Ahead(RX{s, r, prof.NackGap}, p.psn) {
		case ReplyNone:
			s.pool.put(pk)
			return
		case ReplyNack:
			k = kindNack
		}
	default: // a repetition: its ACK may have been lost
		r.dups++
	}
	r.unacked = 0
	flags := uint8(0)
	if marked && s.controls[r.ctl].answer.Echo {
		flags = flagCNP
	}
	tos, class := p.tos&^ecnMask, r.class
	if prof.AckTOS >= 0 {
		tos, class = uint8(prof.AckTOS), uint8(prof.AckTOS)>>5
	}
	*p = packet{flow: p.flow, psn: r.expect, hash: r.hash, dst: r.home, size: r.ack, tos: tos, kf: kindFlags(k, flags, class)}
	s.made[k]++
	id, expect := p.flow, p.psn
	s.hostQueue(pi, pt, pk, p)
	if tell && !s.qps[id].done {
		s.delivered(id, expect)
	}
}

// aheadFrames is how far beyond the expected frame a receiver keeps others.
const aheadFrames = 4096

// aheadBits is a ring of bits, one a frame.
type aheadBits [aheadFrames / 64]uint64

// keep notes a frame that came before its turn; one too far ahead is forgotten and
// will be sent again.
func (r *rxqp) keep(psn uint32) {
	if psn-r.expect >= aheadFrames {
		return
	}
	if r.ahead == nil {
		r.ahead = new(aheadBits)
	}
	i := psn % aheadFrames
	r.ahead[i/64] |= 1 << (i % 64)
}

// fill moves on over the frames that were kept; true if there are more beyond the
// next hole.
func (r *rxqp) fill() bool {
	for {
		i := r.expect % aheadFrames
		if r.ahead[i/64]>>(i%64)&1 == 0 {
			break
		}
		r.ahead[i/64] &^= 1 << (i % 64)
		r.expect++
	}
	for _, w := range r.ahead {
		if w != 0 {
			return true
		}
	}
	return false
}

// hostQueue sends a control frame of a host, at once if the wire is free.
func (s *Sim) hostQueue(pi int32, pt *port, pk int32, p *packet) {
	q := int32(p.kf >> prioShift)
	s.push(pt, &s.queues[pi*NumQueues+q], q, pk, p)
	if pt.paused>>q&1 == 0 {
		s.needTx(pi, pt)
	}
}

// sendCNP tells the sender of a flow that its frames met congestion (DCQCN's NP).
func (s *Sim) sendCNP(pi int32, pt *port, id int32, r *rxqp) {
	pk := s.pool.get()
	p := &s.pool.pkts[pk]
	tos := s.controls[r.ctl].answer.CNPDSCP << 2
	*p = packet{flow: id, hash: r.hash, dst: r.home, size: r.ack, tos: tos, kf: kindFlags(kindCNP, 0, tos>>5)}
	s.made[kindCNP]++
	s.hostQueue(pi, pt, pk, p)
}

// acknowledge moves the sending side on.
func (s *Sim) acknowledge(id int32, psn uint32, nack, cnp bool) {
	q := &s.qps[id]
	if q.done {
		return
	}
	fresh := uint32(0)
	if psn > q.sndUna {
		fresh = psn - q.sndUna
		q.sndUna = psn
		q.heard = s.now
		if q.sndNxt < psn {
			q.sndNxt = psn
		}
		if q.msgs >= 0 {
			s.ackedMessages(q)
		} else if psn >= q.total {
			s.finish(id, q)
			return
		}
	}
	if nack && psn == q.sndUna && q.sndNxt > psn {
		if q.repeat {
			q.hole = psn
		} else {
			q.sndNxt = psn
		}
	}
	if q.hole != noHole && q.hole < q.sndUna {
		q.hole = noHole // it has arrived meanwhile
	}
	if q.hears != 0 {
		if q.hears&HearAcks != 0 {
			s.control(q).Ack(QP{s, id}, Ack{Psn: psn, New: fresh, Nack: nack, Marked: cnp})
		} else if cnp {
			s.control(q).Notified(QP{s, id})
		}
	}
	if q.state == qpIdle {
		s.wake(id)
	}
}

// notify is the arrival of a CNP.
func (s *Sim) notify(id int32) {
	q := &s.qps[id]
	if q.hears&HearNotified != 0 && !q.done {
		s.control(q).Notified(QP{s, id})
	}
}

// retransmitTimer goes back to the first unacknowledged frame when nothing was heard
// for the time-out.
func (s *Sim) retransmitTimer(id int32) {
	q := &s.qps[id]
	q.rtoOn = false
	if q.done || q.sndUna >= q.sndNxt && !q.canSend() {
		return
	}
	rto := s.nics[q.nic].prof.RTO
	if due := q.heard + rto; due > s.now {
		q.rtoOn = true
		s.schedule(due, evRTO, id)
		return
	}
	q.heard = s.now
	q.sndNxt = q.sndUna
	if c, ok := s.control(q).(TimeOuts); ok && q.hears != 0 {
		c.TimedOut(QP{s, id})
	}
	q.rtoOn = true
	s.schedule(s.now+rto, evRTO, id)
	s.wake(id)
}

// holdForHost queues a frame for a slow host; false means that it may pass at once.
func (s *Sim) holdForHost(pi int32, pt *port, pk int32) bool {
	n := &s.nics[pt.nic]
	p := &s.pool.pkts[pk]
	size := int64(p.size)
	if n.slow.bytes+size > n.prof.RxBuffer {
		s.portInfo[pi].hostDrops++
		s.drop(pk, DropHost)
		return true
	}
	p.next = -1
	if n.slow.tail >= 0 {
		s.pool.pkts[n.slow.tail].next = pk
	} else {
		n.slow.head = pk
	}
	n.slow.tail = pk
	n.slow.bytes += size
	n.slow.peak = max(n.slow.peak, n.slow.bytes)
	if !n.slow.busy {
		n.slow.busy = true
		s.schedule(s.now+Time(uint64(size)*n.prof.RxRate.perByte()>>serBits), evDrain, pi)
	}
	q := int32(p.kf >> prioShift)
	if ig := &s.ingress[pi*NumQueues+q]; n.slow.bytes >= n.prof.RxXoff && !ig.xoff && !n.prof.PFC.Off {
		s.xoff(pi, pt, ig, q)
	}
	return true
}

// drainHost hands the first held frame to the host.
func (s *Sim) drainHost(pi int32) {
	pt := &s.ports[pi]
	n := &s.nics[pt.nic]
	pk := n.slow.head
	p := &s.pool.pkts[pk]
	n.slow.head = p.next
	n.slow.bytes -= int64(p.size)
	if n.slow.head < 0 {
		n.slow.tail = -1
		n.slow.busy = false
	} else {
		size := uint64(s.pool.pkts[n.slow.head].size)
		s.schedule(s.now+Time(size*n.prof.RxRate.perByte()>>serBits), evDrain, pi)
	}
	s.consume(pi, pt, pk)
	if n.slow.bytes*2 <= n.prof.RxXoff {
		for q := range int32(NumQueues) {
			if ig := &s.ingress[pi*NumQueues+q]; ig.xoff && s.portInfo[pi].storm.queues>>q&1 == 0 {
				s.xon(pi, pt, ig, q)
			}
		}
	}
}
