package errdown

import (
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
)

// run is one input on its way through one port.
type run struct {
	m       *Monitor
	p       *port
	now, at time.Time
	initial bool
	out     []Change
}

// done ends the run: it notes when the port wants attention next, and gives the changes.
func (r *run) done() []Change {
	next := time.Time{}
	for i := range r.p.causes {
		s := &r.p.causes[i]
		next = sooner(sooner(next, s.due), s.detector.Next())
	}
	r.p.next = next
	return r.out
}

// removed follows the disappearance of a port: its link is down, and what was
// latched about it ends, because the port it was about is gone.
func (r *run) removed(was fabric.Port) {
	p := r.p
	was.AdminUp, was.Carrier = false, false
	p.Port, p.present = was, false
	p.tally.rebase()
	r.lookAtLevels()
	r.release(false)
	p.shut, p.echoed, p.opening, p.settling = false, false, false, false
}

// changed follows the state of a port that is there.
func (r *run) changed(is fabric.Port) {
	p := r.p
	was, seen := p.Port, p.present
	p.Port, p.present = is, true
	if seen && was.Index != is.Index {
		p.tally.rebase() // plugged again; the counters are another port's
	}
	if seen && was.Carrier != is.Carrier {
		p.tally.event()
	}
	if seen && was.AdminUp != is.AdminUp {
		p.tally.hush()
	}
	if p.shut {
		switch {
		case !is.AdminUp:
			p.echoed = true
		case p.echoed:
			r.release(false) // the operator opened it: that is a recovery by hand
		case r.initial:
			r.shutAgain() // nobody has seen that it was done before the process ended
		}
	}
	p.opening = p.opening && !is.AdminUp
	if seen && was.Carrier != is.Carrier && was.AdminUp && is.AdminUp && !p.settling {
		r.flaps(1)
	}
	if p.settling && !p.shut && is.Up() {
		p.settling = false
		p.tally.hush()
	}
	r.look(&Input{})
}

// missed takes the counters' word on changes of carrier, and gives how many there
// were of which no event told.
func (r *run) missed(n fabric.Counters) int {
	p := r.p
	missed, plausible := p.tally.sample(n)
	if !plausible {
		r.m.counters.SampleJumps++
	}
	if !p.present || p.settling {
		return 0
	}
	r.flaps(missed)
	r.m.counters.FlapsMissed += uint64(missed)
	p.tally.missed += uint64(missed)
	return missed
}

// flaps counts n changes of carrier.
func (r *run) flaps(n int) {
	r.p.tally.count(n, r.at)
	r.m.counters.Flaps += uint64(n)
}

// look shows the port to every detector. Trips come before recoveries, so that a
// port that changes from one cause to another is never without one; within each
// the most serious cause comes first.
func (r *run) look(in *Input) {
	p := r.p
	r.fill(in)
	in.Flaps = p.tally.within(p.cfg.LinkFlap.Window, r.now)
	held := p.shut && p.present // the state of a port that we hold down says nothing
	said := r.m.said[:0]
	for i := range p.causes {
		said = append(said, p.causes[i].detector.Look(in))
	}
	r.m.said = said
	for _, sig := range [...]Signal{Trip, Clear, Unwell} {
		for i := range p.causes {
			if s := &p.causes[i]; said[i] == sig && (!held || s.detector.Policy().Latched) {
				r.judge(s, sig)
			}
		}
	}
}

// fill sets what every Input has.
func (r *run) fill(in *Input) {
	in.Now, in.Port, in.Present, in.jumps = r.now, r.p.Port, r.p.present, &r.m.counters.SampleJumps
}

// judge applies what a detector said to the state of its cause.
func (r *run) judge(s *state, sig Signal) {
	switch sig {
	case Trip:
		if s.faulty {
			r.again(s)
			return
		}
		r.trip(s)
	case Unwell:
		r.again(s)
	case Clear:
		pol := s.detector.Policy()
		switch {
		case !s.faulty || s.latched || !s.due.IsZero():
		case pol.HoldUp > 0 && r.p.shut: // it was shut by this very input; it will be looked at when it opens
		case pol.HoldUp > 0:
			s.due = r.now.Add(pol.HoldUp)
		default:
			r.recover(s, ActionNone)
		}
	}
}

// again lets the hold-up time of a level begin anew.
func (r *run) again(s *state) {
	if !s.latched {
		s.due = time.Time{}
	}
}

func (r *run) trip(s *state) {
	p := r.p
	pol := s.detector.Policy()
	if pol.Response == RespondNone {
		return
	}
	s.faulty, s.latched, s.since, s.due = true, pol.Latched, r.at, time.Time{}
	if pol.Latched && pol.Recovery > 0 {
		s.due = r.now.Add(pol.Recovery)
	}
	action := ActionNone
	if pol.Response == RespondShut && p.present && !p.shut {
		action = ActionShut
		r.hold()
	}
	if s.cause == LinkDown && r.initial && p.present && p.opening { // the process ended before it was done
		action = ActionOpen
	}
	s.holds = p.shut && pol.Latched && pol.Response == RespondShut
	r.m.counters.Trips++
	r.emit(s, action)
}

// shutAgain asks for a port to be shut once more.
func (r *run) shutAgain() {
	for i := range r.p.causes {
		if s := &r.p.causes[i]; s.holds {
			r.emit(s, ActionShut)
			return
		}
	}
}

// hold notes that the port is being shut by us.
func (r *run) hold() {
	p := r.p
	p.shut, p.settling, p.echoed, p.opening = true, true, !p.AdminUp, false
	for i := range p.causes {
		// A hold-up time cannot go on while the port is held down.
		r.again(&p.causes[i])
	}
}

func (r *run) recover(s *state, action Action) {
	s.faulty, s.latched, s.holds, s.due = false, false, false, time.Time{}
	s.detector.Reset()
	r.m.counters.Recoveries++
	r.emit(s, action)
}

func (r *run) emit(s *state, action Action) {
	p := r.p
	of := ""
	if m, ok := s.detector.(measurer); ok && s.faulty {
		of = m.What()
	}
	r.out = append(r.out, Change{
		Of: of, Port: p.Name, Cause: s.cause, Faulty: s.faulty, Since: s.since, At: r.at,
		Flaps: p.tally.total, Action: action, Initial: r.initial && s.faulty,
	})
}

// release ends every cause that does not describe the port itself; open says whether the port, when
// we shut it, is to be opened (it is not when the operator did, or when it is gone).
func (r *run) release(open bool) {
	for i := range r.p.causes {
		if s := &r.p.causes[i]; s.faulty && !s.detector.Policy().Lasting {
			r.unlatch(s, open)
		}
	}
}

// unlatch ends one cause before its time. When it was the last that held the port down the
// port is opened, and before that the causes that are a level are looked at again:
// without carrier the port passes from this fault to link-down, never through
// being well.
func (r *run) unlatch(s *state, open bool) {
	p := r.p
	action := ActionNone
	if p.shut && !r.heldByOther(s) {
		p.shut, p.echoed = false, false
		if open && p.present {
			action, p.opening = ActionOpen, true
		}
		r.lookAtLevels()
	}
	p.tally.restart()
	r.recover(s, action)
}

func (r *run) heldByOther(s *state) bool {
	return slices.ContainsFunc(r.p.causes, func(o state) bool { return o.cause != s.cause && o.holds })
}

func (r *run) lookAtLevels() {
	in := Input{}
	r.fill(&in)
	for i := range r.p.causes {
		s := &r.p.causes[i]
		if sig := s.detector.Look(&in); !s.detector.Policy().Latched { // the others shall only see it
			r.judge(s, sig)
		}
	}
}

// tick does what is due at the port.
func (r *run) tick() {
	for i := range r.p.causes {
		s := &r.p.causes[i]
		if next := s.detector.Next(); !next.IsZero() && !r.now.Before(next) {
			in := Input{}
			r.fill(&in)
			r.judge(s, s.detector.Look(&in))
		}
		if s.due.IsZero() || r.now.Before(s.due) {
			continue
		}
		if s.latched {
			r.unlatch(s, true)
		} else {
			r.recover(s, ActionNone)
		}
	}
}

// reconfigured brings the port's state in line with a new configuration.
func (r *run) reconfigured() {
	for i := range r.p.causes {
		s := &r.p.causes[i]
		pol := s.detector.Policy()
		switch {
		case !s.faulty:
		case pol.Response == RespondNone:
			r.unlatch(s, true)
		case s.latched && pol.Recovery == 0:
			s.due = time.Time{}
		case s.latched:
			s.due = s.since.Add(pol.Recovery)
		case !s.due.IsZero() && pol.HoldUp == 0:
			r.recover(s, ActionNone)
		}
	}
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
