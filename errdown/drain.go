package errdown

import (
	"errors"
	"fmt"
	"time"
)

// drain is a port that the operator takes out of service in order, through
// Monitor.Drain: its hosts leave while it is still open, and it is shut (Monitor.Close)
// once they have.
type drain struct{}

func newDrain(*Config) Detector { return drain{} }

func (drain) Look(*Input) Signal { return Quiet }

func (drain) Next() time.Time { return time.Time{} }

func (drain) Reset() {}

func (drain) Policy() Policy { return Policy{Response: RespondNotify, Latched: true} }

func (drain) Need() Need { return Need{} }

// ErrIsDrained is given by Drain.
var ErrIsDrained = errors.New("is drained already")

// Drain takes a port out of service in order. The error wraps ErrNoPort or ErrIsDrained.
func (m *Monitor) Drain(name string, now time.Time) ([]Change, error) {
	p, _ := m.find(name)
	if p == nil || !p.present {
		return nil, fmt.Errorf("port %q: %w", name, ErrNoPort)
	}
	if p.causes[Drained].faulty {
		return nil, fmt.Errorf("port %q %w", name, ErrIsDrained)
	}
	r := run{m: m, p: p, now: now, at: now}
	r.trip(Drained)
	return r.done(), nil
}

// Close shuts a port that is drained.
func (m *Monitor) Close(name string, now time.Time) []Change {
	p, _ := m.find(name)
	if p == nil || !p.present || !p.causes[Drained].faulty || p.causes[Drained].holds {
		return nil
	}
	r := run{m: m, p: p, now: now, at: now}
	action := ActionNone
	if !p.shut {
		action = ActionShut
		r.hold()
	}
	p.causes[Drained].holds = true
	r.emit(Drained, action)
	return r.done()
}

// Undrain puts a drained port into service again. The error wraps ErrNoPort or ErrNoFault.
func (m *Monitor) Undrain(name string, now time.Time) ([]Change, error) {
	p, _ := m.find(name)
	if p == nil {
		return nil, fmt.Errorf("port %q: %w", name, ErrNoPort)
	}
	if !p.causes[Drained].faulty {
		return nil, fmt.Errorf("port %q is not drained: %w", name, ErrNoFault)
	}
	r := run{m: m, p: p, now: now, at: now}
	r.unlatch(Drained, true)
	return r.done(), nil
}

// Drained tells whether a port is drained, and whether it was shut for that.
func (m *Monitor) Drained(name string) (since time.Time, closed, ok bool) {
	p, _ := m.find(name)
	if p == nil {
		return time.Time{}, false, false
	}
	s := &p.causes[Drained]
	return s.since, s.holds, s.faulty
}
