package model

import (
	"cmp"
	"fmt"
	"slices"
)

var degradedMechanism = Mechanism{Part: PartTuner, Kind: "degraded-link",
	About: "tells of links that corrupt frames now and then, as FPIN's link integrity does: an event and a counter",
	New: func() Settings {
		return &Degraded{Errors: 3, Window: 10 * Second, Every: 10 * Millisecond}
	}}

// Degraded watches the ports of a switch for corrupted frames.
type Degraded struct {
	Errors     int     `yaml:"errors" about:"corrupted frames within the window that make a link degraded"`
	Window     Time    `yaml:"window" about:"the window; after three of them without an error the link is good again"`
	PerMillion float64 `yaml:"per-million" about:"and more than so many of a million frames must be corrupted; 0 = any share"`
	Every      Time    `yaml:"every" about:"time between two readings of the counters"`
}

// Check refuses what cannot run.
func (c *Degraded) Check() error {
	if c.Errors < 1 || c.Errors > 10_000 || c.Every <= 0 || c.Window < c.Every || !(c.PerMillion >= 0) {
		return fmt.Errorf("degraded-link: want 1 to 10000 errors and a window of at least a reading")
	}
	return nil
}

// Period is that of readings.
func (c *Degraded) Period() Time { return c.Every }

// Tuner makes that of a switch.
func (c *Degraded) Tuner(sw Switch) (Tuner, error) {
	return &degraded{par: c, port: make([]watchedPort, sw.Ports())}, nil
}

// watchedPort keeps the readings at which errors were found, within the window.
type watchedPort struct {
	frames uint64 // that came so far
	crc    uint64 // at the last reading
	errors []reading
	last   Time // of an error
	bad    bool
}

type reading struct {
	at     Time
	errors uint64
	frames uint64 // that had come by then
}

type degraded struct {
	passive
	par       *Degraded
	port      []watchedPort
	incidents []Incident
	bad, good uint64
}

// Arrive counts frames.
func (d *degraded) Arrive(sw Switch, _ Frame, in, _ PortID) int {
	d.port[in-sw.Port(0)].frames++
	return PassOn
}

// Tick reads the counters.
func (d *degraded) Tick(sw Switch) {
	now := sw.Now()
	for k := range d.port {
		e, p := &d.port[k], sw.Port(k)
		if n := sw.Corrupted(p); n != e.crc {
			e.errors = append(e.errors, reading{now, n - e.crc, e.frames})
			e.crc, e.last = n, now
		}
		for len(e.errors) > 0 && e.errors[0].at <= now-d.par.Window {
			e.errors = e.errors[1:]
		}
		sum := uint64(0)
		for _, r := range e.errors {
			sum += r.errors
		}
		switch {
		case !e.bad && sum >= uint64(d.par.Errors) && d.often(e, sum):
			e.bad = true
			d.bad++
			d.incidents = append(d.incidents, Incident{now, p, fmt.Sprintf("link degraded: %d corrupted frames within %v", sum, d.par.Window)})
		case e.bad && now-e.last >= 3*d.par.Window:
			e.bad = false
			d.good++
			d.incidents = append(d.incidents, Incident{now, p, fmt.Sprintf("link good: no corrupted frame for %v", 3*d.par.Window)})
		}
	}
}

// often compares the share of corrupted frames with what is asked for.
func (d *degraded) often(e *watchedPort, errors uint64) bool {
	frames := e.frames - e.errors[0].frames + errors
	return float64(errors)*1e6 > float64(d.par.PerMillion*float64(frames))
}

func (d *degraded) Counters(put func(string, uint64)) {
	put("degraded-link.degraded", d.bad)
	put("degraded-link.good", d.good)
}

func (d *degraded) Incidents() []Incident { return d.incidents }

// Incident is something that a switch would tell its operator.
type Incident struct {
	At   Time
	Port PortID
	What string
}

// Incidents lists those of all switches in order of time.
func (s *Sim) Incidents() []Incident {
	var out []Incident
	for i := range s.tuners {
		if t, ok := s.tuners[i].tuner.(interface{ Incidents() []Incident }); ok {
			out = append(out, t.Incidents()...)
		}
	}
	slices.SortStableFunc(out, func(a, b Incident) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Port, b.Port))
	})
	return out
}
