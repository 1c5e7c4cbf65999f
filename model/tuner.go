package model

import "fmt"

// Tuner is what a switch changes by the clock: thresholds of marking, shares of the buffer.
type Tuner interface {
	Tick(sw Switch)
	Counters(put func(name string, n uint64))
}

// TunerSettings make the Tuner of a switch and say how often it acts.
type TunerSettings interface {
	Settings
	Period() Time
	Tuner(sw Switch) (Tuner, error)
}

// Ticking is a Stage that acts by the clock, too.
type Ticking interface {
	Tuner
	Period() Time
}

type tunerAt struct {
	sw    int32
	every Time
	tuner Tuner
}

// setupMechanisms gives a switch its balancer, scheduler, stages and tuners.
func (s *Sim) setupMechanisms(i int32) error {
	sw, w := &s.switches[i], Switch{s, i}
	switch b := sw.prof.Balancer; {
	case b != nil:
		sw.balancer = b.Balancer(w)
	case s.opt.NSPaths:
		sw.balancer = (&NSPaths{}).Balancer(w)
	}
	if sc := sw.prof.Scheduler; sc != nil {
		sw.sched = sc.Scheduler(w)
	}
	for _, st := range sw.prof.Stages {
		made, err := st.Stage(w)
		if err != nil {
			return fmt.Errorf("%w: switch %s: %w", ErrProfile, s.nodes[sw.node].name, err)
		}
		s.addStage(i, made)
		if t, ok := made.(Ticking); ok {
			s.tuners = append(s.tuners, tunerAt{sw: i, every: t.Period(), tuner: t})
		}
	}
	for _, t := range sw.prof.Tuners {
		made, err := t.Tuner(w)
		if err != nil {
			return fmt.Errorf("%w: switch %s: %w", ErrProfile, s.nodes[sw.node].name, err)
		}
		s.tuners = append(s.tuners, tunerAt{sw: i, every: t.Period(), tuner: made})
		if st, ok := made.(Stage); ok { // it looks at frames, too
			s.addStage(i, st)
		}
	}
	return nil
}

// startTuners plans the first act of each.
func (s *Sim) startTuners() {
	for k := range s.tuners {
		s.schedule(s.tuners[k].every, evTune, int32(k))
	}
}

func (s *Sim) tune(k int32) {
	t := &s.tuners[k]
	t.tuner.Tick(Switch{s, t.sw})
	s.schedule(s.now+t.every, evTune, k)
}

func portOfTuner(s *Sim, k int32) int32 { return s.switches[s.tuners[k].sw].portBase }
