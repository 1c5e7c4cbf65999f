package errdown

import (
	"fmt"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// PFCStorm is a priority that PFC frames keep from being sent, again and again.
const PFCStorm Cause = "pfc-storm"

// PFCStormConfig sets PFC storms and deadlocks.
type PFCStormConfig struct {
	Detect    time.Duration // for how long a priority must be held to be in a deadlock, 10 ms..15 s
	Recover   time.Duration // before the next detection, 10 ms..31 s
	Deadlocks int           // of one priority within Window that trip, 1..300
	Window    time.Duration // 1 s..1 h
	// PauseFrames a second hold a priority, if it sends nothing: for drivers that
	// do not measure the time. 1..1,000,000,000.
	PauseFrames int
	Reaction
}

func (c *PFCStormConfig) cause() (Cause, snsd.Reason) { return PFCStorm, snsd.ReasonPFCStorm }

// Settings implements kind.
func (c *PFCStormConfig) Settings() []setting.Setting {
	return append([]setting.Setting{
		setting.Span("detect", &c.Detect, 100*time.Millisecond, 10*time.Millisecond, 15*time.Second,
			"How long PFC frames must have kept one priority from being sent, without a moment in between, for a deadlock. "+
				"It is also how often the counters are read, 50 ms..1 s."),
		setting.Span("recover", &c.Recover, 100*time.Millisecond, 10*time.Millisecond, 31*time.Second, "The time between a deadlock and the next detection."),
		setting.Int("deadlocks", &c.Deadlocks, 30, 1, 300,
			"Deadlocks of one priority within the window that trip, as many as fit into it: with the defaults after 5.9 s without end."),
		setting.Span("window", &c.Window, 20*time.Second, minWindow, maxWindow, "Over how long deadlocks are counted."),
		setting.Int("pause-frames", &c.PauseFrames, 1000, 1, mostOfAll,
			"For drivers that count PFC frames and frames sent by priority, but no pause time: so many PFC frames a second and nothing sent mean that a "+
				"priority is held. Drivers with nothing but PFC frames cannot tell a storm from load."),
	}, c.clearing("As above. Hosts are told reason pfc-storm.")...)
}

// Together implements kind.
func (c *PFCStormConfig) Together() (key, wrong, want string) {
	if most := int((c.Window + c.Recover) / (c.Detect + c.Recover)); c.Deadlocks > most {
		return "deadlocks", fmt.Sprintf("is never reached: there are at most %d within the window", most), "fewer, a longer window, or shorter detect and recover"
	}
	return "", "", ""
}

func (c *PFCStormConfig) detector() Detector { return &pfcStorm{cfg: c} }

// pfcStorm is a host that keeps us from sending a priority by PFC frames, or a
// deadlock of the fabric, which looks the same from here.
//
// A priority that is held for all of the detection period is a deadlock; then comes
// the recovery period, in which a dataplane that can ignores the peer's PFC, and
// then detection again. Deadlocks within the window are counted by priority.
type pfcStorm struct {
	cfg   *PFCStormConfig
	prios [fabric.Priorities]pfcPriority
	// the last reading, as far as was says
	last fabric.Health
	was  fabric.Fields
	port int
}

type pfcPriority struct {
	pos    time.Duration // in the cycle of detection and recovery, while held
	recent window        // deadlocks
}

const (
	// heldShare is the part of an interval in percent that a priority must have
	// been paused to count as held through all of it: readings are not taken at
	// exactly the time that they are stamped with.
	heldShare = 98
	// maxShare is the most that can be true.
	maxShare = 150
)

func (d *pfcStorm) Look(in *Input) Signal {
	if !in.up() {
		d.drop()
		return Unwell
	}
	if in.Reading.Valid&fabric.FieldsOfPFC == 0 {
		return Quiet
	}
	if in.Reading.Valid&fabric.FieldsOfPFC == fabric.FieldVerdict {
		return verdict(&in.Reading) // between two readings of the rest
	}
	valid, known := d.was&in.Reading.Valid, d.port == in.Port.Index
	span := in.Reading.At.Sub(d.last.At)
	out := verdict(&in.Reading)
	if valid == 0 || !known || span <= 0 {
		d.rearm()
	} else {
		step := pfcStep{was: &d.last, is: &in.Reading, valid: valid, span: span, frames: d.cfg.PauseFrames}
		for step.p = range d.prios {
			if in.Reading.Guarded&(1<<step.p) != 0 {
				continue
			}
			out = worse(out, d.prios[step.p].advance(&step, d.cfg, in))
		}
	}
	d.last, d.was, d.port = in.Reading, in.Reading.Valid&fabric.FieldsOfPFC, in.Port.Index
	return out
}

// verdict is what the dataplane's own watchdog has found of the priorities that it guards: its
// dropping all frames of one is the fault, at once; nothing is counted there.
func verdict(h *fabric.Health) Signal {
	switch {
	case h.Dropping != 0:
		return Trip
	case h.Guarded != 0:
		return Clear
	}
	return Quiet
}

// advance takes one priority through one interval.
func (q *pfcPriority) advance(s *pfcStep, c *PFCStormConfig, in *Input) Signal {
	held, found, known := s.held(in)
	n := found
	if held {
		n = max(n, q.cycles(s.span, c))
	} else {
		q.pos = 0
	}
	at := s.is.At
	q.recent.add(n, 0, at, s.span, c.Window)
	sum, _ := q.recent.sum(at, c.Window)
	sig := c.level(float64(sum), float64(c.Deadlocks))
	switch {
	case sig == Clear && held:
		return Unwell
	case sig == Clear && !known:
		return Quiet
	}
	return sig
}

// cycles goes through the cycle for a time in which the priority was held, and
// gives how many detection periods ended.
func (q *pfcPriority) cycles(span time.Duration, c *PFCStormConfig) uint64 {
	cycle := c.Detect + c.Recover
	before := time.Duration(-1) // complete detections of this cycle, less one
	if q.pos >= c.Detect {
		before = 0
	}
	end := q.pos + min(span, c.Window)
	after := time.Duration(-1)
	if end >= c.Detect {
		after = (end - c.Detect) / cycle
	}
	q.pos = end % cycle
	return uint64(after - before)
}

func (d *pfcStorm) drop() {
	d.was = 0
	d.rearm()
}

// rearm ends every period of detection that is under way.
func (d *pfcStorm) rearm() {
	for p := range d.prios {
		d.prios[p].pos = 0
	}
}

func (d *pfcStorm) Next() time.Time { return time.Time{} }

func (d *pfcStorm) Reset() { *d = pfcStorm{cfg: d.cfg} }

func (d *pfcStorm) Policy() Policy { return d.cfg.policy() }

func (d *pfcStorm) Need() Need {
	c := d.cfg
	return Need{Fields: fabric.FieldsOfPFC, Every: within(c.Detect, 50*time.Millisecond, time.Second)}
}

// Seen reports whether a reading with these fields is enough to judge by; PFC frames alone are not,
// for a port under load gets them all the time.
func (n Need) Seen(valid fabric.Fields) bool {
	const counted = fabric.FieldPause | fabric.FieldTxFrames
	if n.Cause != PFCStorm {
		return valid&n.Fields == n.Fields
	}
	return valid&(fabric.FieldVerdict|fabric.FieldDeadlocks|fabric.FieldPauseTime) != 0 || valid&counted == counted
}

// pfcStep is one interval between two readings, for one priority.
type pfcStep struct {
	was, is *fabric.Health
	valid   fabric.Fields // in both
	span    time.Duration
	frames  int // PFC frames a second that hold a priority for good
	p       int
}

func (s *pfcStep) has(f fabric.Fields) bool { return s.valid&f == f }

// held reports whether the priority was held through all of the interval, and how
// many deadlocks the dataplane's own watchdog has found in it. Known is false when
// the readings do not tell: PFC frames alone do not, for a port under load gets
// them all the time.
func (s *pfcStep) held(in *Input) (held bool, found uint64, known bool) {
	if s.has(fabric.FieldDeadlocks) {
		known = true
		bit := uint8(1) << s.p
		held = s.was.Deadlocked&s.is.Deadlocked&bit != 0
		var ok bool
		if found, ok = s.rise(s.was.Deadlocks[s.p], s.is.Deadlocks[s.p], uint64(s.span/(10*time.Millisecond))+1); !ok {
			in.jump()
		}
	}
	sent, tellsSent := uint64(0), false
	if s.has(fabric.FieldTxFrames) {
		sent, tellsSent = s.rise(s.was.TxFrames[s.p], s.is.TxFrames[s.p], maxRate(s.span))
		if !tellsSent {
			in.jump()
			return held, found, known
		}
	}
	switch {
	case s.has(fabric.FieldPauseTime):
		paused := s.is.RxPauseTime[s.p] - s.was.RxPauseTime[s.p]
		if paused < 0 || paused*100 > s.span*maxShare {
			in.jump()
			return held, found, known
		}
		held = held || sent == 0 && paused*100 >= s.span*heldShare
		known = true
	case s.has(fabric.FieldPause) && tellsSent:
		n, ok := s.rise(s.was.RxPause[s.p], s.is.RxPause[s.p], maxRate(s.span))
		if !ok {
			in.jump()
			return held, found, known
		}
		held = held || sent == 0 && float64(n) >= float64(s.frames)*s.span.Seconds()
		known = true
	}
	return held, found, known
}

// rise is by how much a total has grown, false when it went back or grew too much.
func (s *pfcStep) rise(was, is, most uint64) (uint64, bool) {
	if is < was || is-was > most {
		return 0, false
	}
	return is - was, true
}
