package bfd

import (
	"fmt"
	"time"
)

// Report is what a session says about its path (RFC 5882 section 4).
type Report uint8

const (
	ReportUnknown   Report = 0 // it was never up: nothing is known, no fault
	ReportUp        Report = 1 // the path works
	ReportDown      Report = 2 // the path fails, or worked for less than the hold-up time since
	ReportAdminDown Report = 3 // one side holds the session down on purpose: nothing is known, no fault
)

func (r Report) String() string {
	switch r {
	case ReportUnknown:
		return "unknown"
	case ReportUp:
		return "up"
	case ReportDown:
		return "down"
	case ReportAdminDown:
		return "admin-down"
	}
	return fmt.Sprintf("report %d", uint8(r))
}

// MarshalText gives the name of the report.
func (r Report) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Event is a change of what is reported of a path.
type Event struct {
	Key    Key
	Report Report // ReportUp, ReportDown or ReportAdminDown
	// Diag is why: the peer's own diagnostic tells more when it is DiagNeighborDown.
	Diag, RemoteDiag Diag
	At               time.Time // of the decision
	Heard            time.Time // last packet of the peer before, zero if none
	Flaps            uint64    // of this session so far
}

// report is the memory behind the Events of one session: what was told, and the
// damping of a session that flaps.
type report struct {
	shown    Report
	pending  instant // end of the hold-up time
	suspect  instant // Down is told then, unless the session is Up again: see blameless
	level    uint8   // the hold-up time is doubled so many times
	flaps    uint64
	lastFlap instant
}

// observe draws the conclusions from a session's state. from is the state before;
// it is the same as the present one when only the peer's AdminDown is news.
func (m *Manager) observe(s *session, from State, now instant) {
	r := &s.report
	restarted := r.suspect != never && s.state == StateUp
	if restarted || s.state == StateAdminDown || s.remoteState == StateAdminDown {
		r.suspect = never
	}
	switch {
	case s.state == StateAdminDown || s.remoteState == StateAdminDown:
		// AdminDown says nothing about the path (RFC 5882 section 4.2 and 3.2).
		r.pending = never
		m.tell(s, ReportAdminDown, now)
	case s.state == StateUp && from != StateUp:
		if restarted {
			m.counters.Restarts++
		}
		if r.shown == ReportDown {
			r.pending = now + m.holdUp(r.level)
		} else {
			m.tell(s, ReportUp, now)
		}
	case s.state == StateDown && from == StateUp:
		r.pending = never
		if r.shown == ReportUp && s.blameless(now) && m.cfg.RestartGrace > 0 {
			r.suspect = now + instant(m.cfg.RestartGrace)
			return
		}
		m.flap(r, now)
		m.tell(s, ReportDown, now)
	}
}

// blameless reports whether a session that has just left Up says nothing of the path:
// the peer took it down because it was started again, or because it did not hear us
// while this process did not run.
func (s *session) blameless(now instant) bool {
	if s.localDiag != DiagNeighborDown {
		return false
	}
	m := s.m
	interval := max(instant(s.peer.Timers.MinTx), span(s.remoteMinRx)) // while it was Up
	patience := instant(s.detectMult) * interval                       // of the peer
	ours := m.paused != never && now-m.paused <= patience && m.pause >= patience-interval
	return s.remoteDiag == DiagNone || s.remoteDiag == DiagDetectTime && ours
}

// condemn ends the patience with a session that is not Up again.
func (m *Manager) condemn(s *session, now instant) {
	s.report.suspect = never
	m.flap(&s.report, now)
	m.tell(s, ReportDown, now)
}

// inherit goes on from what an earlier process reported last of this path. What
// worked then must be seen to work, or it is told that it does not.
func (s *session) inherit(last Report, now instant) {
	switch last {
	case ReportUp:
		s.report.shown = ReportUp
		s.mustBeSeen(now)
	case ReportDown:
		s.report.shown = ReportDown
	}
}

// mustBeSeen gives a path that worked before this session some time to be Up; not while
// there is no key.
func (s *session) mustBeSeen(now instant) {
	grace := instant(s.m.cfg.RestartGrace)
	if grace == 0 || s.keyless() || s.state != StateDown || s.report.shown != ReportUp {
		return
	}
	if s.auth != nil && s.auth.handed == nil {
		// The peer refuses our new sequence numbers for twice its detection time
		// (RFC 5880 section 6.8.1, bfd.AuthSeqKnown), at the slow interval.
		grace += 2 * instant(s.detectMult) * instant(SlowInterval)
	}
	s.report.suspect = now + grace
}

// flap counts a loss of an Up session. One that follows another before the steady
// time is over doubles the hold-up time.
func (m *Manager) flap(r *report, now instant) {
	m.counters.Flaps++
	r.flaps++
	switch {
	case r.lastFlap == never || now-r.lastFlap >= instant(m.cfg.SteadyTime):
		r.level = 0
	case m.holdUp(r.level) < instant(m.cfg.MaxHoldUp):
		r.level++
		m.counters.Damped++
	}
	r.lastFlap = now
}

// holdUp gives the time a session must be Up before that is told.
func (m *Manager) holdUp(level uint8) instant {
	return instant(min(m.cfg.HoldUp<<level, m.cfg.MaxHoldUp))
}

// tell adds an Event when it is news.
func (m *Manager) tell(s *session, r Report, now instant) {
	if s.report.shown == r {
		return
	}
	s.report.shown = r
	m.events = append(m.events, Event{
		Key: s.peer.Key, Report: r, Diag: s.localDiag, RemoteDiag: s.remoteDiag,
		At: m.time(now), Heard: m.time(s.lastRx), Flaps: s.report.flaps,
	})
}
