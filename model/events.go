package model

// Kinds of events, in the order in which they happen at one moment.
const (
	evArrive   = iota // a frame reaches the far end of a port's wire
	evKick            // a port may send
	evReact           // a received PFC frame takes effect
	evExpire          // a pause may have run out
	evRefresh         // a lasting XOFF is repeated
	evDetect          // a queue may have been paused for the whole detection time
	evRecover         // the recovery time is over
	evABS             // point braking decides
	evDrain           // a slow host takes the next frame
	evDecrease        // timer 0 of a queue pair's rate control
	evIncrease        // timer 1
	evRTO             // a queue pair may have lost its tail
	evStart           // a listed flow starts
	evStorm           // a storming NIC pauses again
	evTimer           // a timer of a scenario or application
	evTune            // a switch changes thresholds by the clock
	evAlarm           // a timer of what belongs to the owner of a port
	numEvents
)

// eventKind tells of one kind what is done, and whose port decides which shard does it.
type eventKind struct {
	name   string
	handle func(s *Sim, idx int32)
	port   func(s *Sim, idx int32) int32 // nil: it belongs to the whole fabric, and shards refuse it
}

// events has a line for each kind.
var events = [numEvents]eventKind{
	evArrive:   {"arrive", (*Sim).arrive, func(s *Sim, idx int32) int32 { return s.ports[idx].peer }},
	evKick:     {"kick", (*Sim).kick, portItself},
	evReact:    {"react", (*Sim).react, portItself},
	evExpire:   {"expire", (*Sim).pauseExpiry, portOfQueue},
	evRefresh:  {"refresh", (*Sim).refreshXoff, portOfQueue},
	evDetect:   {"detect", (*Sim).detectDeadlock, portOfQueue},
	evRecover:  {"recover", (*Sim).endRecovery, portOfQueue},
	evABS:      {"brake", (*Sim).brake, portOfQueue},
	evDrain:    {"drain", (*Sim).drainHost, portItself},
	evDecrease: {"control-0", func(s *Sim, idx int32) { s.controlTimer(idx, 0) }, portOfFlow},
	evIncrease: {"control-1", func(s *Sim, idx int32) { s.controlTimer(idx, 1) }, portOfFlow},
	evRTO:      {"time-out", (*Sim).retransmitTimer, portOfFlow},
	evStart:    {"start", (*Sim).startListed, portOfFlow},
	evStorm:    {"storm", (*Sim).stormOn, portItself},
	evTimer:    {"timer", (*Sim).fireTimer, nil},
	evTune:     {"tune", (*Sim).tune, portOfTuner},
	evAlarm:    {"alarm", (*Sim).fireAlarm, portItself},
}

func portItself(_ *Sim, idx int32) int32  { return idx }
func portOfQueue(_ *Sim, idx int32) int32 { return idx / NumQueues }
func portOfFlow(s *Sim, idx int32) int32  { return s.nics[s.qps[idx].nic].port }

// kick has a port send, if this is the kick that counts.
func (s *Sim) kick(pi int32) {
	pt := &s.ports[pi]
	if pt.kickAt != s.now {
		return
	}
	pt.kickAt = never
	if pt.busy <= s.now {
		s.transmit(pi, pt)
	} else {
		s.kickWhen(pi, pt, pt.busy)
	}
}
