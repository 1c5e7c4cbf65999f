package bfd

// receive applies a packet that was found to belong to this session: RFC 5880
// section 6.8.6 from the authentication on. at is when it arrived, now when it is
// handled; raw is the payload.
func (s *session) receive(p *Packet, raw []byte, at, now instant) error {
	if err := s.authenticate(p, raw, now); err != nil {
		return err
	}
	if s.doubts(p, at) {
		return &PacketError{ErrUnnamed, "Your Discriminator", 0, "ours: the session is known to its peer"}
	}
	s.take(p, at, now)
	return nil
}

// doubts reports whether a packet that does not name our session is not to be believed,
// though RFC 5880 section 6.8.6 would: anybody who can send from the peer's address may
// have made it, while who names our discriminator has seen our packets or has guessed 32
// bits. With authentication it was checked already. A peer that was started again sends
// such packets too: the last one is kept, and counts when those that name us have ceased.
func (s *session) doubts(p *Packet, at instant) bool {
	if p.YourDiscr != 0 || s.auth != nil {
		return false
	}
	switch {
	case s.state == StateUp:
		if p.State == StateDown {
			s.unnamed, s.unnamedAt = *p, at
		}
		return true
	case p.State == StateAdminDown: // of a peer that really is it will name us: it hears us
		// One that was up a moment ago may have failed, and be about to be told as down.
		return s.state == StateInit || s.report.shown == ReportDown || s.report.shown == ReportUp
	}
	return false
}

// restarted takes the last packet of a peer that was started again, if one came after all
// that named our session.
func (s *session) restarted(now instant) bool {
	if s.state != StateUp || s.unnamedAt <= s.lastRx {
		return false
	}
	s.take(&s.unnamed, s.unnamedAt, now)
	return true
}

// take is what follows from a packet that is believed.
func (s *session) take(p *Packet, at, now instant) {
	s.packetsIn++
	s.remoteDiscr = p.MyDiscr
	s.remoteState, s.remoteDiag = p.State, p.Diag
	s.remoteDemand = p.Demand
	s.remoteMinRx, s.remoteMinTx = p.RequiredMinRx, p.DesiredMinTx
	s.remoteMinEchoRx = p.RequiredMinEchoRx
	s.remoteDetectMult = p.DetectMult
	s.heard, s.graced = true, false
	// Packets of one session may be read from two sockets, not in order.
	s.lastRx = max(s.lastRx, at)
	if p.Final && s.polling {
		s.endPoll(now)
	}
	s.detectAt = s.lastRx + s.detectionTime()
	if s.state != StateAdminDown {
		s.transition(p.State, now)
	}
	s.schedule(now)
	if s.state != StateAdminDown && p.Poll {
		s.answerPoll(now)
	}
	s.flush(now)
}

// authenticate applies the A bit (section 6.8.6) and section 6.7.
func (s *session) authenticate(p *Packet, raw []byte, now instant) error {
	switch {
	case s.auth == nil && p.Auth.Type == AuthNone:
		return nil
	case s.auth == nil:
		return &PacketError{ErrAuthMissing, "A bit", 1, "0: no authentication is configured"}
	case p.Auth.Type == AuthNone:
		return &PacketError{ErrAuthMissing, "A bit", 0, "1: authentication is configured"}
	}
	// bfd.AuthSeqKnown: forgotten after twice the detection time (section 6.8.1). The
	// detection time of a peer that was forgotten meanwhile is that of its last packet.
	silent := instant(s.remoteDetectMult) * span(max(s.rxInUse, s.remoteMinTx))
	if s.auth.seqKnown && now-s.lastRx >= 2*silent {
		s.auth.seqKnown = false
	}
	if err := s.auth.check(p, raw, now); err != nil {
		return err
	}
	if s.auth.handed != nil && p.MyDiscr != s.remoteDiscr {
		s.auth.begunAnew(now)
	}
	return nil
}

// transition is the state machine of section 6.8.6 (and the diagram in 6.2).
func (s *session) transition(remote State, now instant) {
	if remote == StateAdminDown {
		if s.state != StateDown {
			s.setState(StateDown, DiagNeighborDown, now)
		} else {
			s.m.observe(s, s.state, now)
		}
		return
	}
	switch s.state {
	case StateDown:
		switch remote {
		case StateDown:
			s.setState(StateInit, DiagNone, now)
		case StateInit:
			s.setState(StateUp, DiagNone, now)
		}
	case StateInit:
		if remote == StateInit || remote == StateUp {
			s.setState(StateUp, DiagNone, now)
		}
	case StateUp:
		if remote == StateDown {
			s.setState(StateDown, DiagNeighborDown, now)
		}
	}
}

// expire ends the detection time: a session that is Init or Up goes Down (section
// 6.8.4), and whatever its state the peer is forgotten (sections 6.8.1 and 6.8.18).
func (s *session) expire(now instant) {
	s.detectAt = never
	if s.restarted(now) {
		return
	}
	wasAlive := s.state == StateInit || s.state == StateUp
	s.forgetPeer()
	if wasAlive {
		s.m.counters.DetectExpired++
		s.setState(StateDown, DiagDetectTime, now)
	}
	s.schedule(now)
	s.flush(now)
}
