package model

import "sync/atomic"

// stopEvery is how many events pass between two looks at the stop flag.
const stopEvery = 1 << 16

// stopper is the way into a running simulation from outside.
type stopper struct {
	asked    atomic.Bool
	progress func(now Time, events uint64)
	cutEvery int // events after which a fabric that is cut is put together to tell progress
}

// cutProgress is some seconds of work of a large fabric: to put it together and cut it again takes
// a few hundredths of that.
const cutProgress = 1 << 22

// Stop makes Run return ErrStopped soon; it may be called from any goroutine. The
// simulation is consistent afterwards and Run may be called again.
func (s *Sim) Stop() { s.stop.asked.Store(true) }

// OnProgress has f called from within Run: each 65,536 events, and each four million of a fabric
// that is cut into shards, which is put together for it.
func (s *Sim) OnProgress(f func(now Time, events uint64)) {
	s.stop.progress, s.stop.cutEvery = f, cutProgress
}

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

// At has the handler's Timer called at the given time (not before now) with the tag. It is for what
// looks at the whole fabric; of one port there is AtPort.
func (s *Sim) At(at Time, tag uint64) {
	if s.owner != nil {
		panic("model: At is of the whole fabric, and this is a part of it; use AtPort")
	}
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

// AtPort is At of something that concerns nothing but what belongs to the owner of one port, which
// is a host's or a switch's: it does not need the whole fabric at that moment.
func (s *Sim) AtPort(p PortID, at Time, tag uint64) {
	at = max(at, s.now)
	info := &s.portInfo[p]
	a := append(info.alarms, alarm{at, tag})
	i := len(a) - 1
	for ; i > 0 && a[i-1].at > at; i-- { // those of one port are mostly of one span, and few
		a[i] = a[i-1]
	}
	a[i] = alarm{at, tag}
	info.alarms = a
	s.schedule(at, evAlarm, int32(p))
}

// alarm is a timer of a port.
type alarm struct {
	at  Time
	tag uint64
}

// fireAlarm takes the first alarm of a port; each has an event of its own.
func (s *Sim) fireAlarm(pi int32) {
	info := &s.portInfo[pi]
	tag := info.alarms[0].tag
	if info.alarms = info.alarms[1:]; len(info.alarms) == 0 {
		info.alarms = nil
	}
	if s.handler != nil {
		s.handler.Timer(s, tag)
	}
}

func (s *Sim) fireTimer(i int32) {
	tag := s.timers.tags[i]
	s.timers.free = append(s.timers.free, i)
	if s.handler != nil {
		s.handler.Timer(s, tag)
	}
}
