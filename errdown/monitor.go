package errdown

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/fabric"
)

// MaxPorts is the most ports a Monitor keeps.
const MaxPorts = 4096

// Action is what the daemon is to do with a port because of a Change.
type Action uint8

const (
	ActionNone Action = iota
	ActionShut        // shut the port, after others have been told of the fault
	ActionOpen        // open it again
)

func (a Action) String() string {
	switch a {
	case ActionShut:
		return "shut"
	case ActionOpen:
		return "open"
	}
	return "none"
}

// MarshalText gives none, shut or open.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Change is one trip or recovery of one cause on one port.
type Change struct {
	Port   string    `json:"port"`
	Cause  Cause     `json:"cause"`
	Faulty bool      `json:"faulty"`
	Since  time.Time `json:"since"`        // of the fault, also when it is over
	At     time.Time `json:"at"`           // of this change, as the dataplane saw it where it did
	Of     string    `json:"of,omitempty"` // what was measured, where the cause does not say it
	Flaps  uint64    `json:"flaps"`        // changes of carrier of the port so far
	Action Action    `json:"action"`
	// Initial says that the port was like this when it was first seen: a fault,
	// but nothing that happened just now.
	Initial bool `json:"initial,omitempty"`
}

// Counters of a Monitor.
type Counters struct {
	Events         uint64 `json:"events"`
	EventsRejected uint64 `json:"events_rejected"` // no port name, an unknown kind, or beyond MaxPorts
	Samples        uint64 `json:"samples"`
	SamplesUnknown uint64 `json:"samples_unknown"` // of a port that no event told of
	SamplesStale   uint64 `json:"samples_stale"`   // read before the port last changed
	SampleJumps    uint64 `json:"sample_jumps"`    // totals that went back or leapt, measures that cannot be true; not taken for faults
	Trips          uint64 `json:"trips"`
	Recoveries     uint64 `json:"recoveries"`
	Flaps          uint64 `json:"flaps"`
	FlapsMissed    uint64 `json:"flaps_missed"` // part of Flaps that only a counter told of
}

// Errors of Recover and Shut.
var (
	ErrNoPort    = fabric.ErrNoPort
	ErrNoFault   = errors.New("nothing to recover")
	ErrNotByHand = errors.New("ends by itself when its cause is gone")
	ErrIsShut    = errors.New("is shut by hand already")
)

// Monitor keeps the fault state of all ports of a device. It is not safe for
// concurrent use.
type Monitor struct {
	cfg      Config
	ports    []*port // sorted by name
	counters Counters
	said     []Signal // of the detectors of the port that is looked at: memory that is used again
	in       Input    // of the reading that is looked at: memory that is used again
	likely   int      // where the port of the next reading is: they come in the order of the names
}

// port is what is known of one port.
type port struct {
	fabric.Port
	present bool
	seen    bool   // by an event; a restored port is not yet
	cfg     Config // in force here
	tally   tally
	causes  []state   // in the order of Config
	told    time.Time // when the dataplane said what it is like
	next    time.Time // when Tick has something to do here; zero for never

	shut     bool // we asked for the port to be shut
	echoed   bool // and the dataplane has said that it is
	opening  bool // we asked for it to be opened again, and it was not seen open since
	settling bool // we shut it, or opened it and have not seen it up since: its carrier changes are our doing
}

// state of one cause on one port.
type state struct {
	cause    Cause
	detector Detector
	faulty   bool
	latched  bool // stays until recovered; as the policy said when it tripped
	holds    bool // the port was shut for this cause
	since    time.Time
	due      time.Time // of the recovery, zero when none is pending
}

// NewMonitor makes a Monitor without ports; values of cfg that Validate refuses
// are brought into range.
func NewMonitor(cfg Config) *Monitor { return &Monitor{cfg: cfg.withDefaults()} }

// Counters gives a copy of the counters.
func (m *Monitor) Counters() Counters { return m.counters }

// find gives a port, or the place where it belongs.
func (m *Monitor) find(name string) (*port, int) {
	i, ok := slices.BinarySearchFunc(m.ports, name, func(p *port, name string) int { return strings.Compare(p.Name, name) })
	if !ok {
		return nil, i
	}
	return m.ports[i], i
}

// read gives the port of a reading.
func (m *Monitor) read(name string) *port {
	i := m.likely
	if i >= len(m.ports) || m.ports[i].Name != name {
		var p *port
		if p, i = m.find(name); p == nil {
			return nil
		}
	}
	m.likely = i + 1
	return m.ports[i]
}

// obtain gives a port, making it when it is new; nil at MaxPorts.
func (m *Monitor) obtain(name string) (p *port, isNew bool) {
	p, i := m.find(name)
	if p != nil {
		return p, false
	}
	if len(m.ports) >= MaxPorts {
		return nil, false
	}
	p = &port{Port: fabric.Port{Name: name}, cfg: m.cfg.of(name)}
	for _, k := range p.cfg.kinds() {
		cause, _ := k.cause()
		p.causes = append(p.causes, state{cause: cause, detector: k.detector()})
	}
	m.ports = slices.Insert(m.ports, i, p)
	return p, true
}

// Port takes one event of the dataplane. A port that is removed has no carrier;
// a port without carrier when it is first seen is faulty from the start.
func (m *Monitor) Port(ev fabric.Event, now time.Time) []Change {
	name := ev.Port.Name
	if name == "" || len(name) > fabric.MaxPortName || ev.Kind < fabric.PortAdded || ev.Kind > fabric.PortChanged {
		m.counters.EventsRejected++
		return nil
	}
	p, _ := m.obtain(name)
	if p == nil {
		m.counters.EventsRejected++
		return nil
	}
	m.counters.Events++
	r := run{m: m, p: p, now: now, at: ev.At, initial: !p.seen}
	p.seen = true
	if r.at.IsZero() {
		r.at = now
	}
	p.told = r.at
	if ev.Kind == fabric.PortRemoved {
		r.removed(ev.Port)
	} else {
		r.changed(ev.Port)
	}
	return r.done()
}

// Sample takes a reading of a port's health, of whatever fields. Its time counts,
// not that of the call: readings may wait. Without one it is now.
func (m *Monitor) Sample(name string, h fabric.Health, now time.Time) []Change {
	p := m.read(name)
	if p == nil {
		m.counters.SamplesUnknown++
		return nil
	}
	m.counters.Samples++
	if h.At.IsZero() {
		h.At = now
	}
	r := run{m: m, p: p, now: now, at: h.At}
	in := &m.in
	*in = Input{Reading: h}
	if h.Has(fabric.FieldCounters) {
		in.Missed = r.missed(h.Counters)
	}
	if h.At.Before(p.told) { // overtaken by an event: it is of another link than this one
		m.counters.SamplesStale++
		in.Reading.Valid = 0
	}
	r.look(in)
	return r.done()
}

// Needs tells what of a port's health is to be read how often; the same fields may
// be in several of them. A port that is down, or held down, tells nothing but
// changes of its carrier.
func (m *Monitor) Needs(name string) []Need {
	p, _ := m.find(name)
	if p == nil || !p.present {
		return nil
	}
	var out []Need
	for i := range p.causes {
		d := p.causes[i].detector
		counted := p.causes[i].cause == LinkFlap // always, and on a port that is down too
		on := d.Policy().Response != RespondNone
		if n := d.Need(); n.Fields != 0 && (counted || p.Up() && on) {
			if on {
				n.Cause = p.causes[i].cause
			}
			out = append(out, n)
		}
	}
	return out
}

// Tick does what is due.
func (m *Monitor) Tick(now time.Time) []Change {
	var out []Change
	for _, p := range m.ports {
		if p.next.IsZero() || now.Before(p.next) {
			continue
		}
		r := run{m: m, p: p, now: now, at: now}
		r.tick()
		out = append(out, r.done()...)
	}
	return out
}

// Next is when Tick has something to do; zero for never.
func (m *Monitor) Next() time.Time {
	var next time.Time
	for _, p := range m.ports {
		next = sooner(next, p.next)
	}
	return next
}

// Recover ends the latched causes of a port by hand. The error wraps ErrNoPort,
// ErrNoFault, or ErrNotByHand.
func (m *Monitor) Recover(name string, now time.Time) ([]Change, error) {
	p, _ := m.find(name)
	if p == nil {
		return nil, fmt.Errorf("port %q: %w", name, ErrNoPort)
	}
	r := run{m: m, p: p, now: now, at: now}
	r.release(true)
	if out := r.done(); len(out) > 0 {
		return out, nil
	}
	if c, faulty := m.Worst(name); faulty {
		return nil, fmt.Errorf("port %q: %v %w", name, c, ErrNotByHand)
	}
	return nil, fmt.Errorf("port %q: %w", name, ErrNoFault)
}

// Shut shuts a port by hand: an error-down that only Recover ends.
func (m *Monitor) Shut(name string, now time.Time) ([]Change, error) {
	return m.byHand(name, Manual, ErrIsShut, now)
}

// byHand trips a cause that is not observed; already says that it has.
func (m *Monitor) byHand(name string, cause Cause, already error, now time.Time) ([]Change, error) {
	p, _ := m.find(name)
	if p == nil || !p.present {
		return nil, fmt.Errorf("port %q: %w", name, ErrNoPort)
	}
	s := p.state(cause)
	if s.faulty {
		return nil, fmt.Errorf("port %q %w", name, already)
	}
	r := run{m: m, p: p, now: now, at: now}
	r.trip(s)
	return r.done(), nil
}

// Worst gives the most serious cause of a port, false when it has none.
func (m *Monitor) Worst(name string) (Cause, bool) {
	p, _ := m.find(name)
	if p == nil {
		return "", false
	}
	return p.worst()
}

func (p *port) worst() (Cause, bool) {
	for i := range p.causes {
		if p.causes[i].faulty {
			return p.causes[i].cause, true
		}
	}
	return "", false
}

// state is that of one cause, nil for one that there is not.
func (p *port) state(c Cause) *state {
	for i := range p.causes {
		if p.causes[i].cause == c {
			return &p.causes[i]
		}
	}
	return nil
}

// Forget drops a port that was removed, with its faults and its flaps; one that is
// still there is kept.
func (m *Monitor) Forget(name string) {
	if p, i := m.find(name); p != nil && !p.present {
		m.ports = slices.Delete(m.ports, i, i+1)
	}
}

// SetConfig puts another configuration in force. Pending recoveries keep the time
// at which the fault began, faults that stand end as they would have; causes that no
// longer trip recover.
func (m *Monitor) SetConfig(cfg Config, now time.Time) []Change {
	m.cfg = cfg.withDefaults()
	var out []Change
	for _, p := range m.ports {
		p.cfg = m.cfg.of(p.Name)
		r := run{m: m, p: p, now: now, at: now}
		r.reconfigured()
		out = append(out, r.done()...)
	}
	return out
}
