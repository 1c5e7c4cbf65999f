package errdown

import (
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// PortStatus is what `show error-down` tells of one port.
type PortStatus struct {
	Port    string        `json:"port"`
	Present bool          `json:"present"`
	Shut    bool          `json:"shut"`    // by error-down
	Closed  bool          `json:"closed"`  // and the dataplane has confirmed it
	Opening bool          `json:"opening"` // it was asked to open it again, and has not confirmed that
	Causes  []CauseStatus `json:"causes"`  // most serious first; empty: no fault
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
		Port: p.Name, Present: p.present, Shut: p.shut, Closed: p.shut && p.echoed, Opening: p.opening,
		FlapsInWindow: p.tally.within(p.cfg.LinkFlap.Window, now), Flaps: p.tally.total, LastFlap: p.tally.last,
	}
	if c, faulty := p.worst(); faulty {
		s.Reason = c.Reason()
	}
	for i := range p.causes {
		st := &p.causes[i]
		if !st.faulty {
			continue
		}
		pol := st.detector.Policy()
		cs := CauseStatus{Cause: st.cause, Since: st.since, Recovery: pol.HoldUp}
		if st.latched {
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
	Port     string    `json:"port"`
	Flaps    uint64    `json:"flaps"`
	LastFlap time.Time `json:"last_flap,omitzero"`
	Shut     bool      `json:"shut,omitempty"`
	// Unseen: it is to be shut, and was not seen to be so yet. Opening: it is to be open
	// again, and was not seen so yet. The process may have ended before it had done it.
	Unseen  bool         `json:"unseen,omitempty"`
	Opening bool         `json:"opening,omitempty"`
	Latched []SavedCause `json:"latched,omitempty"`
	// Standing are faults that end by themselves once their measure has been well
	// for the hold-up time: without them a restart would tell hosts that all is well.
	Standing []SavedCause `json:"standing,omitempty"`
}

// SavedCause is one cause that was active.
type SavedCause struct {
	Cause Cause     `json:"cause"`
	Since time.Time `json:"since"`
	Due   time.Time `json:"due,omitzero"` // of the automatic recovery; zero: by hand
}

// ShutByCause reports whether a port is shut by causes alone, and by no order of an operator.
func (m *Monitor) ShutByCause(name string) bool {
	p, _ := m.find(name)
	return p != nil && p.shut && !slices.ContainsFunc(p.causes, func(s state) bool {
		return s.holds && (s.cause == Manual || s.cause == Drained)
	})
}

// Snapshot gives what is to be kept, by port.
func (m *Monitor) Snapshot() []Saved {
	var out []Saved
	for _, p := range m.ports {
		if s := p.save(); !s.Empty() {
			out = append(out, s)
		}
	}
	return out
}

// Saved gives what is to be kept of one port, which may be nothing.
func (m *Monitor) Saved(name string) Saved {
	p, _ := m.find(name)
	if p == nil {
		return Saved{Port: name}
	}
	return p.save()
}

// Empty reports whether nothing is to be kept.
func (s *Saved) Empty() bool {
	return s.Flaps == 0 && !s.Shut && !s.Opening && len(s.Latched)+len(s.Standing) == 0
}

// SameFaults reports whether two differ in nothing but the flaps.
func (s *Saved) SameFaults(o *Saved) bool {
	same := func(a, b SavedCause) bool { return a.Cause == b.Cause && a.Since.Equal(b.Since) && a.Due.Equal(b.Due) }
	return s.Shut == o.Shut && s.Unseen == o.Unseen && s.Opening == o.Opening &&
		slices.EqualFunc(s.Latched, o.Latched, same) && slices.EqualFunc(s.Standing, o.Standing, same)
}

func (p *port) save() Saved {
	s := Saved{Port: p.Name, Flaps: p.tally.total, LastFlap: p.tally.last, Shut: p.shut, Unseen: p.shut && !p.echoed, Opening: p.opening}
	for i := range p.causes {
		st := &p.causes[i]
		switch {
		case !st.faulty:
		case st.latched:
			s.Latched = append(s.Latched, SavedCause{Cause: st.cause, Since: st.since, Due: st.due})
		case !st.detector.Policy().Lasting:
			s.Standing = append(s.Standing, SavedCause{Cause: st.cause, Since: st.since})
		}
	}
	return s
}

// Restore takes a Snapshot back, before the first event. Link-down is not in it: the
// first event of each port tells. The changes returned are the faults of the others,
// which are in force at once; a port that was shut and turns out to be open is taken
// as recovered by the operator, unless nobody had seen it shut yet: then it is shut. One that was
// to be opened and turns out to be shut is opened.
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
			r.restore(l, true, s.Shut)
		}
		held := len(r.out) > 0
		for _, l := range s.Standing {
			r.restore(l, false, false)
		}
		switch {
		case s.Shut && held:
			p.shut, p.echoed, p.settling = true, !s.Unseen, true
		case s.Opening:
			p.opening, p.settling = true, true
		}
		out = append(out, r.done()...)
	}
	return out
}

// restore puts one cause back, unless it cannot be one that was saved.
func (r *run) restore(l SavedCause, latched, holds bool) {
	st := r.p.state(l.Cause)
	if st == nil || st.faulty || st.detector.Policy().Lasting {
		return
	}
	// Kept times are of a clock that may have been set since, and go on by their distances to now.
	st.faulty, st.latched, st.holds, st.since, st.due = true, latched, holds, r.now.Add(min(0, l.Since.Sub(r.now))), time.Time{}
	if latched && !l.Due.IsZero() {
		left := l.Due.Sub(r.now)
		if most := st.detector.Policy().Recovery; most > 0 {
			left = min(left, most)
		}
		st.due = r.now.Add(left)
	}
	r.emit(st, ActionNone)
}
