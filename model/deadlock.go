package model

// The watchdog on lasting XOFF: detection, recovery and control. It looks at egress
// queues of switches; a queue is deadlocked when it was paused for the whole
// detection time without a single resume.

// watch arms detection when a pause begins.
func (s *Sim) watch(pi int32, pt *port, q int32, ps *pauseState) {
	if pt.sw < 0 || ps.detecting {
		return
	}
	d := &s.switches[pt.sw].prof.Deadlock
	if d.On && !ps.off {
		s.lookAt(d.due(ps.since), pi*NumQueues+q, ps)
	}
}

// lookAt plans the look at a queue.
func (s *Sim) lookAt(at Time, i int32, ps *pauseState) {
	ps.detecting = true
	if s.mayTrip(i) {
		s.trip = min(s.trip, at)
	}
	s.schedule(at, evDetect, i)
}

// mayTrip reports whether the next deadlock of a queue may take its port down: as that cuts a link,
// both ends of which may be in different shards, the whole fabric is there for it.
func (s *Sim) mayTrip(i int32) bool {
	pt := &s.ports[i/NumQueues]
	if pt.sw < 0 {
		return false
	}
	d := &s.switches[pt.sw].prof.Deadlock
	return d.ErrorDown && d.TurnOff > 0 && len(s.pauses[i].recent) >= d.TurnOff-1
}

// leastTrip gives the least time from the begin of a pause to the look that may take a port down.
func (s *Sim) leastTrip() Time {
	least := never
	for i := range s.switches {
		if d := &s.switches[i].prof.Deadlock; d.On && d.ErrorDown && d.TurnOff > 0 {
			least = min(least, d.Detect)
		}
	}
	return least
}

// due gives when a pause that began at since is found to be a deadlock: at the first
// look after the detection time.
func (d *Deadlock) due(since Time) Time {
	t := since + d.Detect
	if d.Poll > 0 {
		t = (t + d.Poll - 1) / d.Poll * d.Poll
	}
	return t
}

func (s *Sim) detectDeadlock(i int32) {
	ps := &s.pauses[i]
	ps.detecting = false
	pi, q := i/NumQueues, i%NumQueues
	pt := &s.ports[pi]
	if pt.paused>>q&1 == 0 {
		return
	}
	d := &s.switches[pt.sw].prof.Deadlock
	if t := d.due(ps.since); t > s.now { // it resumed meanwhile
		s.lookAt(t, i, ps)
		return
	}
	ps.deadlocks++
	if ps.deadlocks == 1 {
		ps.firstDead = s.now
	}
	switch tooMany := ps.tooMany(d, s.now); {
	case tooMany && d.ErrorDown:
		s.portInfo[pi].errorDown = true
		ps.recent, ps.next = ps.recent[:0], 0
		s.SetLink(LinkID(s.portInfo[pi].link), false)
	case tooMany:
		ps.off = true
		pt.ignore |= 1 << q
		s.resumeQueue(pi, pt, q)
	case d.Recover == 0:
		ps.total += s.now - ps.since
		ps.since = s.now
		s.lookAt(d.due(ps.since), i, ps)
	default:
		s.beginRecovery(pi, pt, q, ps, d)
	}
}

// tooMany counts the deadlocks of the window, this one included.
func (ps *pauseState) tooMany(d *Deadlock, now Time) bool {
	if d.TurnOff <= 0 {
		return false
	}
	if len(ps.recent) < d.TurnOff {
		ps.recent = append(ps.recent, now)
	} else {
		ps.recent[ps.next] = now
		ps.next = (ps.next + 1) % d.TurnOff
	}
	return len(ps.recent) == d.TurnOff && ps.recent[ps.next%len(ps.recent)] > now-d.Window
}

// beginRecovery has the queue ignore pauses, and forward or discard, for a while.
func (s *Sim) beginRecovery(pi int32, pt *port, q int32, ps *pauseState, d *Deadlock) {
	until := ps.until // still what the peer wants
	pt.ignore |= 1 << q
	if d.Discard {
		pt.discard |= 1 << q
		s.flush(pi, pt, q, DropRecovery)
	}
	s.resumeQueue(pi, pt, q)
	ps.until = until
	s.schedule(s.now+d.Recover, evRecover, pi*NumQueues+q)
}

func (s *Sim) endRecovery(i int32) {
	pi, q := i/NumQueues, i%NumQueues
	pt := &s.ports[pi]
	ps := &s.pauses[i]
	if ps.off {
		return
	}
	ps.recoveries++
	pt.ignore &^= 1 << q
	pt.discard &^= 1 << q
	if ps.until > s.now {
		s.pauseQueue(pi, pt, q, ps.until, s.pfcOf(pt).Off)
	}
}

// Watchdog reports whether a switch looks for deadlocks.
func (s *Sim) Watchdog(n NodeID) bool {
	sw := s.nodes[n].sw
	return sw >= 0 && s.switches[sw].prof.Deadlock.On
}

// ErrorDown reports whether deadlock control took a port down. Taking its link up again ends it.
func (s *Sim) ErrorDown(p PortID) bool { return s.portInfo[p].errorDown }

// RestorePFC turns PFC of a queue on again after deadlock control turned it off.
func (s *Sim) RestorePFC(port PortID, q int) {
	i := int32(port)*NumQueues + int32(q)
	s.pauses[i].off = false
	s.pauses[i].recent = s.pauses[i].recent[:0]
	s.pauses[i].next = 0
	s.ports[port].ignore &^= 1 << q
}

// flush drops everything that waits in one egress queue.
func (s *Sim) flush(pi int32, pt *port, q int32, why DropReason) {
	qu := &s.queues[pi*NumQueues+q]
	for qu.head >= 0 {
		pk := qu.head
		p := &s.pool.pkts[pk]
		qu.head = p.next
		qu.bytes -= int32(p.size)
		qu.pkts--
		if pt.sw >= 0 {
			s.leave(pi, pt, p, qu, q, int32(p.size))
		}
		s.dropAt(pk, pi*NumQueues+q, why)
	}
	qu.tail = -1
	qu.deficit = 0
	pt.ready &^= 1 << q
}
