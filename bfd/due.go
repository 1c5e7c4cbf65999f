package bfd

import "time"

// instant converts a time; time never goes back.
func (m *Manager) instant(t time.Time) instant { return instant(t.Sub(m.base)) }

// advance takes the time of a call.
func (m *Manager) advance(now time.Time) instant {
	m.clock = max(m.clock, m.instant(now))
	return m.clock
}

// time converts back; never is the zero time.
func (m *Manager) time(i instant) time.Time {
	if i == never {
		return time.Time{}
	}
	return m.base.Add(time.Duration(i))
}

// nextSend gives the place of the next packet.
func (m *Manager) nextSend() *Send {
	if len(m.sends) == cap(m.sends) {
		m.sends = append(m.sends, Send{})
	} else {
		m.sends = m.sends[:len(m.sends)+1]
	}
	return &m.sends[len(m.sends)-1]
}

// arm puts a session where its earliest timer belongs.
func (m *Manager) arm(s *session) {
	if !s.Queued() {
		return
	}
	if due := s.earliest(); due != s.due {
		s.due = due
		m.timers.Put(s, int64(due))
	}
}

// Ahead breaks ties, so that the order does not depend on chance.
func (s *session) Ahead(o *session) bool { return s.localDiscr < o.localDiscr }

// first is the session whose timer is due first, nil if there is none.
func (m *Manager) first() *session {
	if m.timers.Len() == 0 {
		return nil
	}
	s, _ := m.timers.First()
	return s
}

// earliest of all timers of a session.
func (s *session) earliest() instant {
	due := farOff
	for _, t := range [...]instant{s.txAt, s.detectAt, s.report.pending, s.report.suspect, s.lingers} {
		if t != never && t < due {
			due = t
		}
	}
	return due
}
