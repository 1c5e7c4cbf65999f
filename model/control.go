package model

import "sync/atomic"

// stopEvery is how many events pass between two looks at the stop flag.
const stopEvery = 1 << 16

// stopper is the way into a running simulation from outside.
type stopper struct {
	asked    atomic.Bool
	progress func(now Time, events uint64)
}

// Stop makes Run return ErrStopped soon; it may be called from any goroutine. The
// simulation is consistent afterwards and Run may be called again.
func (s *Sim) Stop() { s.stop.asked.Store(true) }

// OnProgress has f called every 65,536 events from within Run.
func (s *Sim) OnProgress(f func(now Time, events uint64)) { s.stop.progress = f }

func (st *stopper) due(s *Sim) bool {
	if st.progress != nil {
		st.progress(s.now, s.events)
	}
	return st.asked.Swap(false)
}

// timers are the wake-ups that scenarios and applications asked for.
type timers struct {
	tags []uint64
	free []int32
}

// At has the handler's Timer called at the given time (not before now) with the tag.
func (s *Sim) At(at Time, tag uint64) {
	if at < s.now {
		at = s.now
	}
	t := &s.timers
	var i int32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
		t.tags[i] = tag
	} else {
		i = int32(len(t.tags))
		t.tags = append(t.tags, tag)
	}
	s.schedule(at, evTimer, i)
}

func (s *Sim) fireTimer(i int32) {
	tag := s.timers.tags[i]
	s.timers.free = append(s.timers.free, i)
	if s.handler != nil {
		s.handler.Timer(s, tag)
	}
}
