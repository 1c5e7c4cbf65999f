package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// PortStatus is what `show error-down` tells of one port.
type PortStatus struct {
	Port    string        `json:"port"`
	Present bool          `json:"present"`
	Shut    bool          `json:"shut"`   // by error-down
	Causes  []CauseStatus `json:"causes"` // most serious first; empty: no fault
	// Reason is the one of the most serious cause, 0 without a fault.
	Reason        snsd.Reason `json:"reason"`
	FlapsInWindow int         `json:"flaps_in_window"`
	Flaps         uint64      `json:"flaps"`     // changes of carrier so far
	LastFlap      time.Time   `json:"last_flap"` // zero: never
}

// CauseStatus is one active cause of a port.
type CauseStatus struct {
	Cause    Cause         `json:"cause"`
	Since    time.Time     `json:"since"`
	Recovery time.Duration `json:"recovery"`  // interval of automatic recovery or hold-up; 0: by hand, or at once
	TimeLeft time.Duration `json:"time_left"` // until it recovers by itself; 0: nothing pending
}

// Status tells of every port, by name.
func (m *Monitor) Status(now time.Time) []PortStatus {
	out := make([]PortStatus, len(m.ports))
	for i, p := range m.ports {
		out[i] = m.status(p, now)
	}
	return out
}

// PortStatus tells of one port, false when it is not known.
func (m *Monitor) PortStatus(name string, now time.Time) (PortStatus, bool) {
	p, _ := m.find(name)
	if p == nil {
		return PortStatus{}, false
	}
	return m.status(p, now), true
}

func (m *Monitor) status(p *port, now time.Time) PortStatus {
	s := PortStatus{
		Port: p.Name, Present: p.present, Shut: p.shut,
		FlapsInWindow: p.tally.within(m.cfg.LinkFlap.Window, now), Flaps: p.tally.total, LastFlap: p.tally.last,
	}
	if c, faulty := p.worst(); faulty {
		s.Reason = c.Reason()
	}
	for c := LinkDown; c < endOfCauses; c++ {
		st := &p.causes[c]
		if !st.faulty {
			continue
		}
		pol := st.detector.Policy()
		cs := CauseStatus{Cause: c, Since: st.since, Recovery: pol.HoldUp}
		if pol.Latched {
			cs.Recovery = pol.Recovery
		}
		if !st.due.IsZero() {
			cs.TimeLeft = max(0, st.due.Sub(now))
		}
		s.Causes = append(s.Causes, cs)
	}
	return s
}

// Saved is what a port needs kept over a restart of the process: without it a port
// that error-down has shut would stay shut for ever.
type Saved struct {
	Port     string       `json:"port"`
	Flaps    uint64       `json:"flaps"`
	LastFlap time.Time    `json:"last_flap,omitzero"`
	Shut     bool         `json:"shut,omitempty"`
	Latched  []SavedCause `json:"latched,omitempty"`
}

// SavedCause is one latched cause.
type SavedCause struct {
	Cause Cause     `json:"cause"`
	Since time.Time `json:"since"`
	Due   time.Time `json:"due,omitzero"` // of the automatic recovery; zero: by hand
}

// Snapshot gives what is to be kept, by port.
func (m *Monitor) Snapshot() []Saved {
	var out []Saved
	for _, p := range m.ports {
		s := Saved{Port: p.Name, Flaps: p.tally.total, LastFlap: p.tally.last, Shut: p.shut}
		for c := LinkDown; c < endOfCauses; c++ {
			if st := &p.causes[c]; st.faulty && st.detector.Policy().Latched {
				s.Latched = append(s.Latched, SavedCause{Cause: c, Since: st.since, Due: st.due})
			}
		}
		if s.Flaps > 0 || s.Shut || len(s.Latched) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Restore takes a Snapshot back, before the first event. Causes that are a level
// are not in it: the first event of each port tells. The changes returned are the
// latched faults, which are in force at once; a port that turns out to be open is
// taken as recovered by the operator.
func (m *Monitor) Restore(saved []Saved, now time.Time) []Change {
	var out []Change
	for _, s := range saved {
		if s.Port == "" || len(s.Port) > fabric.MaxPortName {
			continue
		}
		p, isNew := m.obtain(s.Port)
		if !isNew {
			continue
		}
		p.tally.total, p.tally.last = s.Flaps, s.LastFlap
		r := run{m: m, p: p, now: now, at: now, initial: true}
		for _, l := range s.Latched {
			if !l.Cause.valid() || !p.causes[l.Cause].detector.Policy().Latched || p.causes[l.Cause].faulty {
				continue
			}
			st := &p.causes[l.Cause]
			st.faulty, st.holds, st.since, st.due = true, s.Shut, l.Since, l.Due
			r.emit(l.Cause, ActionNone)
		}
		if s.Shut && len(r.out) > 0 {
			p.shut, p.echoed, p.settling = true, true, true
		}
		out = append(out, r.done()...)
	}
	return out
}
