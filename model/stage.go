package model

// Stage is something that a switch does to passing frames; its state is that switch's.
type Stage interface {
	// Arrive is asked of each frame that has its way and not yet its class. It may change
	// the frame and send others; it gives the class, or one of the verdicts.
	Arrive(sw Switch, f Frame, in, out PortID) int
	// Leave is told of each frame that a port is about to send, after marking, if the stage
	// is tapped. Depth is what its queue still holds.
	Leave(sw Switch, f Frame, in, out PortID, queue int, depth int64)
	// Tapped reports whether it is told of frames that leave.
	Tapped() bool
	// Counters are for those who look on.
	Counters(put func(name string, n uint64))
}

// Verdicts of Stage.Arrive beside a class.
const (
	PassOn = -1 // the class is what the switch's maps say
	TakeIt = -2 // the frame ends here
)

// StageSettings make the Stage of a switch.
type StageSettings interface {
	Settings
	Stage(sw Switch) (Stage, error)
}

// passive is for Stages to embed that do only part of it.
type passive struct{}

func (passive) Arrive(Switch, Frame, PortID, PortID) int        { return PassOn }
func (passive) Leave(Switch, Frame, PortID, PortID, int, int64) {}
func (passive) Tapped() bool                                    { return false }
func (passive) Counters(func(name string, n uint64))            {}

// addStage puts a stage after those that a switch has.
func (s *Sim) addStage(i int32, st Stage) {
	sw := &s.switches[i]
	sw.stages = append(sw.stages, st)
	if st.Tapped() {
		for pi := sw.portBase; pi < sw.portBase+sw.nports; pi++ {
			s.ports[pi].flags |= portTapped
		}
	}
}

// arriveStages has the stages of a switch look at a frame. The pool may move meanwhile.
func (s *Sim) arriveStages(sw *swtch, in, out, pk int32) int32 {
	class := PassOn
	w := Switch{s, s.ports[in].sw}
	for _, st := range sw.stages {
		switch v := st.Arrive(w, Frame{s, pk}, PortID(in), PortID(out)); {
		case v == TakeIt:
			s.drop(pk, DropStage)
			return TakeIt
		case v >= 0:
			class = v
		}
	}
	return int32(class)
}

// leaveStages shows the stages a frame that leaves.
func (s *Sim) leaveStages(out, pk, q int32) {
	ot := &s.ports[out]
	sw := &s.switches[ot.sw]
	p := &s.pool.pkts[pk]
	if p.ownFrame() {
		return
	}
	in := PortID(sw.portBase + int32(p.way>>hopBits))
	depth := int64(s.queues[out*NumQueues+q].bytes)
	for _, st := range sw.stages {
		if st.Tapped() {
			st.Leave(Switch{s, ot.sw}, Frame{s, pk}, in, PortID(out), int(q), depth)
		}
	}
}

func isStage(t Tuner) bool {
	_, ok := t.(Stage)
	return ok
}

// StageCounters sums the counters of the stages and tuners of all switches.
func (s *Sim) StageCounters() map[string]uint64 {
	sum := map[string]uint64{}
	put := func(name string, n uint64) { sum[name] += n }
	for i := range s.switches {
		for _, st := range s.switches[i].stages {
			st.Counters(put)
		}
	}
	for i := range s.tuners {
		if t := s.tuners[i].tuner; !isStage(t) {
			t.Counters(put)
		}
	}
	return sum
}
