package model

import "math/bits"

// Scheduler chooses which of the queues of a port sends next; its state is that switch's.
type Scheduler interface {
	// Pick gives one of the queues of the mask, of which there are at least two; each holds
	// a frame and is not paused.
	Pick(sw Switch, p PortID, ready uint8) int
}

// SchedulerSettings make the Scheduler of a switch; nil is strict priority with WDRR.
type SchedulerSettings interface {
	Settings
	Scheduler(sw Switch) Scheduler
}

var priorityMechanism = Mechanism{Part: PartScheduler, Kind: "priority",
	About: "strict priority from high to low, then the queues of `wdrr` by deficit, then `low-priority`, looked at anew before each frame",
	New:   func() Settings { return &Priority{} }}

// Priority is the built-in scheduler, whose queues are told by Sched.
type Priority struct{}

// Check has nothing to refuse.
func (*Priority) Check() error { return nil }

// Scheduler gives nil: the engine has this one built in.
func (*Priority) Scheduler(Switch) Scheduler { return nil }

// pick chooses among the queues of mask m (at least two): strict priority from high
// to low, then WDRR, then the low priority queues.
func (s *Sim) pick(pi int32, pt *port, m uint8) int32 {
	if pt.sw < 0 {
		return int32(bits.Len8(m) - 1)
	}
	sw := &s.switches[pt.sw]
	if sw.sched != nil {
		return int32(sw.sched.Pick(Switch{s, pt.sw}, PortID(pi), m))
	}
	sched := &sw.prof.Sched
	if sp := m &^ (sched.WDRR | sched.Low); sp != 0 {
		return int32(bits.Len8(sp) - 1)
	}
	if w := m & sched.WDRR; w != 0 {
		return s.pickWDRR(pi, pt, w, sched)
	}
	return int32(bits.Len8(m) - 1)
}

// pickWDRR is deficit round robin in which a queue may overdraw: each time the turn
// comes to a backlogged queue its deficit grows by its quantum; it sends while the
// deficit is above 0, and what it sends beyond is owed to the next rounds. The turn
// goes from high queue to low.
func (s *Sim) pickWDRR(pi int32, pt *port, m uint8, sched *Sched) int32 {
	qs := s.queues[pi*NumQueues : pi*NumQueues+NumQueues : pi*NumQueues+NumQueues]
	for {
		q := int32(pt.cur & 7)
		if m>>q&1 != 0 && qs[q].deficit > 0 {
			qs[q].deficit -= int32(s.pool.pkts[qs[q].head].size)
			return q
		}
		pt.cur = uint8(q-1) & 7
		if n := pt.cur; m>>n&1 != 0 {
			qs[n].deficit += sched.Quantum[n]
		}
	}
}
