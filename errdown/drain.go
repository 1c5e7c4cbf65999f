package errdown

import (
	"errors"
	"fmt"
	"time"

	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// Drained is a port that is taken out of service in order.
const Drained Cause = "drained"

// DrainConfig is nothing: nothing can be set.
type DrainConfig struct{}

func (*DrainConfig) cause() (Cause, snsd.Reason) { return Drained, snsd.ReasonAgedOut }

// Settings implements kind.
func (*DrainConfig) Settings() []setting.Setting { return nil }

func (*DrainConfig) detector() Detector { return drain{} }

// drain is a port that the operator takes out of service in order, through
// Monitor.Drain: its hosts leave while it is still open, and it is shut (Monitor.Close)
// once they have.
type drain struct{}

func (drain) Look(*Input) Signal { return Quiet }

func (drain) Next() time.Time { return time.Time{} }

func (drain) Reset() {}

func (drain) Policy() Policy { return Policy{Response: RespondNotify, Latched: true} }

func (drain) Need() Need { return Need{} }

// ErrIsDrained is given by Drain.
var ErrIsDrained = errors.New("is drained already")

// Drain takes a port out of service in order. The error wraps ErrNoPort or ErrIsDrained.
func (m *Monitor) Drain(name string, now time.Time) ([]Change, error) {
	return m.byHand(name, Drained, ErrIsDrained, now)
}

// Close shuts a port that is drained.
func (m *Monitor) Close(name string, now time.Time) []Change {
	p, _ := m.find(name)
	if p == nil || !p.present {
		return nil
	}
	s := p.state(Drained)
	if !s.faulty || s.holds {
		return nil
	}
	r := run{m: m, p: p, now: now, at: now}
	action := ActionNone
	if !p.shut {
		action = ActionShut
		r.hold()
	}
	s.holds = true
	r.emit(s, action)
	return r.done()
}

// Undrain puts a drained port into service again. The error wraps ErrNoPort or ErrNoFault.
func (m *Monitor) Undrain(name string, now time.Time) ([]Change, error) {
	p, _ := m.find(name)
	if p == nil {
		return nil, fmt.Errorf("port %q: %w", name, ErrNoPort)
	}
	s := p.state(Drained)
	if !s.faulty {
		return nil, fmt.Errorf("port %q is not drained: %w", name, ErrNoFault)
	}
	r := run{m: m, p: p, now: now, at: now}
	r.unlatch(s, true)
	return r.done(), nil
}

// Drained reports whether a port is drained, and whether it was shut for that.
func (m *Monitor) Drained(name string) (since time.Time, closed, ok bool) {
	p, _ := m.find(name)
	if p == nil {
		return time.Time{}, false, false
	}
	s := p.state(Drained)
	return s.since, s.holds, s.faulty
}
