package bfd

import (
	"net/netip"
	"time"
)

// finalSpacing is the least time between two packets with the Final bit. Section
// 6.8.7 allows a limit that is no longer than the advertised Desired Min TX Interval.
const finalSpacing = instant(MinInterval)

// mute reports whether nothing may be sent on our own account (section 6.8.7): a
// passive system waits to be spoken to, and a peer may ask for silence.
func (s *session) mute() bool {
	return s.peer.Passive && s.remoteDiscr == 0 || s.remoteMinRx == 0 || s.keyless()
}

// periodic reports whether packets are sent periodically (section 6.8.7).
func (s *session) periodic() bool {
	if s.mute() {
		return false
	}
	// Demand mode is active on the remote system (section 6.6).
	return !s.remoteDemand || s.state != StateUp || s.remoteState != StateUp || s.polling
}

// schedule sets the time of the next periodic packet when its interval is new, and
// the key in the heap of timers.
func (s *session) schedule(now instant) {
	switch iv := s.interval(); {
	case !s.periodic():
		s.txAt = never
	case s.txAt == never || iv != s.txEvery:
		s.txEvery = iv
		s.txAt = max(now, s.lastTx+s.jittered(iv))
	}
	s.m.arm(s)
}

// A packet may be sent earlier than drawn by this share of its interval, as part of
// its jitter, but by no more than mostEarly: one wake-up serves many sessions, and
// still they do not all speak at once.
const (
	earlyShare = 16
	mostEarly  = instant(4 * time.Millisecond)
)

// early is how much earlier than drawn a packet of this interval may be sent.
func early(iv instant) instant { return min(iv/earlyShare, mostEarly) }

// jittered takes a random part off an interval, so that with what the packet may be
// early it is 0 to 25 % of it, 10 to 25 % when the Detect Mult is 1 (section 6.8.7).
func (s *session) jittered(iv instant) instant {
	most := uint64(iv)/4 - uint64(early(iv))
	if s.detectMult != 1 {
		return iv - instant(s.m.rng.upTo(most))
	}
	tenth := uint64(iv) / 10
	return iv - instant(tenth) - instant(s.m.rng.upTo(most-tenth))
}

// mayGoAlong reports whether the next thing this session has to do is a packet that may
// be sent now, a little early.
func (s *session) mayGoAlong(now instant) bool {
	return s.due == s.txAt && s.txAt-early(s.txEvery) <= now
}

// transmitDue sends the periodic packet whose time has come.
func (s *session) transmitDue(now instant) {
	if late := now - s.txAt; late > s.txEvery/4 {
		// The peer has waited for longer than an interval at the longest.
		s.txLate++
		s.m.counters.TxLate++
		s.m.counters.TxLateMax = max(s.m.counters.TxLateMax, time.Duration(late))
	}
	s.transmit(false, now)
	s.show(now)
}

// answerPoll sends a Final as soon as practicable, whatever the timers and the state
// (section 6.8.7).
func (s *session) answerPoll(now instant) {
	if s.lastF != never && now-s.lastF < finalSpacing {
		s.m.counters.FinalsLimited++
		return
	}
	s.lastF = now
	s.transmit(true, now)
}

// flush sends a packet that differs from the one before, between the periodic ones
// (section 6.8.7).
func (s *session) flush(now instant) {
	if !s.urgent {
		return
	}
	if s.mute() {
		s.urgent = false
		return
	}
	s.transmit(false, now)
}

// transmit sends one packet (section 6.8.7). A Final tells of a new state as well
// as any packet does, but a Poll has to be sent on its own.
func (s *session) transmit(final bool, now instant) {
	if s.auth == nil {
		s.emit(final, 0, now)
	} else {
		s.emitSigned(final, now)
	}
	if final {
		s.urgent = s.urgent && s.polling
		return
	}
	s.urgent = false
	s.lastTx = now
	if s.periodic() {
		s.txEvery = s.interval()
		s.txAt = now + s.jittered(s.txEvery)
	} else {
		s.txAt = never
	}
	s.m.arm(s)
}

// emit builds one packet, signed with a key where there is authentication.
func (s *session) emit(final bool, key int, now instant) {
	p := Packet{
		Diag: s.localDiag, State: s.state, Final: final, Poll: s.polling && !final,
		DetectMult: s.detectMult, MyDiscr: s.localDiscr, YourDiscr: s.remoteDiscr,
		DesiredMinTx: s.desiredMinTx, RequiredMinRx: s.requiredMinRx,
	}
	if !s.peer.Multihop {
		p.RequiredMinEchoRx = micros(s.peer.Timers.MinEchoRx)
	}
	if s.auth != nil {
		p.Auth = s.auth.section(key, s.m.seqClock(now))
	}
	out := s.m.nextSend()
	out.Local, out.Peer, out.Interface = s.source(), s.peer.Peer, s.peer.Interface
	out.Multihop, out.Discr = s.peer.Multihop, s.localDiscr
	b := p.Append(out.buf[:0])
	if s.auth != nil {
		s.auth.sign(b, key)
	}
	out.n = uint8(len(b))
	s.packetsOut++
	s.m.counters.PacketsOut++
}

// emitSigned sends a packet signed with the key of both ends; with each while it is not
// known, so that a process that was started again is heard within an interval.
func (s *session) emitSigned(final bool, now instant) {
	if key, ok := s.auth.signer(); ok {
		s.emit(final, key, now)
		return
	}
	for i := range s.auth.keys {
		s.emit(final, i, now)
	}
}

// show sends a packet signed with another key, when it is time.
func (s *session) show(now instant) {
	if s.auth == nil {
		return
	}
	if key, ok := s.auth.toShow(now); ok {
		s.emit(false, key, now)
	}
}

// interval between periodic packets before jitter (sections 6.8.2 and 6.8.7).
func (s *session) interval() instant { return span(max(s.txInUse, s.remoteMinRx)) }

// source is the address packets are sent from; the zero value leaves it to the kernel.
func (s *session) source() netip.Addr { return s.peer.Local }
