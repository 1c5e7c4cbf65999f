package bfd

import (
	"github.com/openinof/inof/internal/timerheap"
)

// session holds the variables of RFC 5880 section 6.8.1 and the timers of one
// session. What it wants sent and told goes to its Manager.
type session struct {
	m    *Manager
	peer Peer // as wanted

	state, remoteState           State
	localDiag, remoteDiag        Diag
	localDiscr, remoteDiscr      uint32
	desiredMinTx, requiredMinRx  uint32 // as advertised, in microseconds
	remoteMinTx, remoteMinRx     uint32 // last received
	remoteMinEchoRx              uint32
	detectMult, remoteDetectMult uint8
	remoteDemand                 bool
	heard                        bool // the peer's variables are those of a received packet
	auth                         *authState

	// What the timers are computed from while a Poll Sequence is under way
	// (section 6.8.3): the larger transmit interval waits for its end, and so does
	// the smaller receive interval.
	txInUse, rxInUse uint32
	polling          bool
	urgent           bool // the next packet differs from the last one: send it now (section 6.8.7)

	txAt     instant // next periodic packet
	txEvery  instant // the interval txAt was drawn from
	lastTx   instant
	detectAt instant // end of the detection time; in Down the peer is forgotten then
	lastRx   instant
	// unnamed is the last packet with state Down that did not name us while we are Up.
	unnamed   Packet
	unnamedAt instant
	lastEcho  instant
	lastF     instant // last packet with the Final bit
	graced    bool    // a detection time was given away because of a pause, and nothing was heard since
	lingers   instant // no longer wanted: tells AdminDown until then

	report report
	since  instant // of state

	packetsIn, packetsOut, txLate uint64

	timerheap.Place[session]
	due instant // the earliest of all timers: the key in the heap
	gen uint64  // the Reconcile that last wanted it
}

// newSession makes a session in state Down (section 6.8.1).
func newSession(m *Manager, p Peer, discr uint32, now instant) *session {
	s := &session{
		m: m, peer: p, localDiscr: discr, state: StateDown, remoteState: StateDown, since: now,
		remoteMinRx: 1, detectMult: p.Timers.DetectMult, auth: newAuthState(p.Auth, m.firstSeq(p.Auth, now)),
	}
	if p.AdminDown {
		s.state, s.localDiag = StateAdminDown, DiagAdminDown
		s.report.shown = ReportAdminDown
	}
	s.retime(now)
	// The first packet of an active session comes at a random moment of the first
	// interval: a mesh that is made at once does not speak at once.
	if s.periodic() {
		s.txEvery = s.interval()
		spread := s.txEvery
		if p.Last == ReportUp || p.Last == ReportDown {
			spread = min(spread, instant(p.Timers.MinTx))
		}
		s.txAt = now + instant(s.m.rng.upTo(uint64(spread)))
		s.lastTx = s.txAt - s.txEvery
	}
	if s.state != StateAdminDown {
		s.inherit(p.Last, now)
	}
	return s
}

// wanted gives the intervals that the configuration and the state ask for: at least
// one second between packets while not Up (section 6.8.3).
func (s *session) wanted() (tx, rx uint32) {
	tx, rx = micros(s.peer.Timers.MinTx), micros(s.peer.Timers.MinRx)
	if s.state != StateUp {
		tx = max(tx, micros(SlowInterval))
	}
	return tx, rx
}

// retime brings the advertised intervals in line with what is wanted (section
// 6.8.3). In Up that is a Poll Sequence; while one is under way the next has to wait
// for its end (section 6.5). In the other states the peer learns them by itself,
// before anything depends on them.
func (s *session) retime(now instant) {
	tx, rx := s.wanted()
	if s.polling || tx == s.desiredMinTx && rx == s.requiredMinRx {
		return
	}
	s.desiredMinTx, s.requiredMinRx = tx, rx
	if s.state == StateUp {
		s.txInUse, s.rxInUse = min(s.txInUse, tx), max(s.rxInUse, rx)
		s.polling, s.urgent = true, true
	} else {
		s.txInUse, s.rxInUse = tx, rx
	}
	s.rearm()
	s.schedule(now)
}

// endPoll takes a Final: the peer knows what we advertise, so it may take effect
// (section 6.8.3).
func (s *session) endPoll(now instant) {
	s.polling = false
	s.txInUse, s.rxInUse = s.desiredMinTx, s.requiredMinRx
	s.m.counters.Polls++
	s.retime(now)
	s.schedule(now)
}

// detectionTime after section 6.8.4, zero while nothing was received.
func (s *session) detectionTime() instant {
	if !s.heard {
		return 0
	}
	return instant(s.remoteDetectMult) * span(max(s.rxInUse, s.remoteMinTx))
}

// rearm computes the end of the detection time anew from the last packet; what was
// given away after a pause stays given.
func (s *session) rearm() {
	if s.detectAt == never {
		return
	}
	at := s.lastRx + s.detectionTime()
	if s.graced {
		at = max(at, s.detectAt)
	}
	s.detectAt = at
}

// setState changes the state and what follows from it.
func (s *session) setState(to State, diag Diag, now instant) {
	if to == s.state {
		return
	}
	from := s.state
	s.state, s.localDiag, s.since = to, diag, now
	s.urgent = true
	if from == StateUp {
		// Nobody is left to answer a Poll: what is advertised counts.
		s.polling, s.txInUse, s.rxInUse = false, s.desiredMinTx, s.requiredMinRx
	}
	s.retime(now)
	s.m.observe(s, from, now)
}

// forgetPeer sets what was learned from the peer back to its initial values.
func (s *session) forgetPeer() {
	s.remoteDiscr, s.remoteMinRx, s.remoteState = 0, 1, StateDown
	s.remoteDemand, s.heard, s.graced = false, false, false
}

// pathDown is an indication from below that nothing gets through, such as lost
// carrier (section 6.8.16, diagnostic Path Down).
func (s *session) pathDown(now instant) bool {
	if s.state != StateUp && s.state != StateInit {
		return false
	}
	s.setState(StateDown, DiagPathDown, now)
	s.forgetPeer()
	s.detectAt = never
	s.schedule(now)
	s.flush(now)
	return true
}

// setAdmin holds the session down on purpose, or lets it go (section 6.8.16).
func (s *session) setAdmin(down bool, now instant) {
	switch {
	case down && s.state != StateAdminDown:
		s.setState(StateAdminDown, DiagAdminDown, now)
	case !down && s.state == StateAdminDown:
		s.setState(StateDown, DiagNone, now)
	}
	s.schedule(now)
}

// reconfigure takes what is now wanted of a session that goes on.
func (s *session) reconfigure(p Peer, now instant) {
	if !p.Auth.equal(s.peer.Auth) && !(s.auth == nil && p.Auth.awaited()) {
		waited := s.keyless()
		s.auth = newAuthState(p.Auth, s.m.firstSeq(p.Auth, now)).follow(s.auth)
		if waited && !s.keyless() {
			s.mustBeSeen(now)
		}
	}
	s.peer = p
	s.detectMult = p.Timers.DetectMult
	s.lingers = never
	s.setAdmin(p.AdminDown, now)
	s.retime(now)
	s.schedule(now)
	s.flush(now)
}

// graceFor gives the session one detection time from now, because its packets may
// have been missed for as long as the pause lasted. That is done once until the peer
// is heard, so that a process which is starved for good still detects.
func (s *session) graceFor(pause, now instant) bool {
	if s.detectAt == never || s.graced || pause < s.detectionTime()/instant(s.remoteDetectMult) {
		return false
	}
	s.graced = true
	s.detectAt = max(s.detectAt, now+s.detectionTime())
	return true
}
