package model

import (
	"fmt"
	"math/bits"
)

var dcqcnMechanism = Mechanism{Part: PartCongestion, Kind: "dcqcn",
	About: "DCQCN (SIGCOMM 2015): marks become notifications, each cuts the rate by half of alpha; recovery and increase as in QCN",
	New:   func() Settings { return CX4() },
	Sets: []Set{
		{"cx4", "as the published RoCE simulators parametrise it after a ConnectX-4", func() Settings { return CX4() }},
		{"paper", "the parameters of the SIGCOMM 2015 paper", func() Settings { return Paper() }},
	}}

// DCQCN holds the parameters of rate control: the switch's marking (CP), the
// receiver's notifications (NP) and the sender's reaction (RP).
type DCQCN struct {
	Name string
	ECN  ECN
	// NP.
	CNPEvery Time  `yaml:"cnp-every" about:"least time between the CNPs of a flow; 0 = a bit in each ACK instead"`
	CNPDSCP  uint8 `yaml:"cnp-dscp" about:"DSCP of CNPs"`
	// RP.
	AlphaTimer    Time    `yaml:"alpha-timer" about:"alpha falls when no notification came for this long"`
	DecreaseCheck Time    `yaml:"decrease-check" about:"the rate is cut at most once in this time, and first this long after the first notification; 0 = at each notification"`
	ClampTarget   bool    `yaml:"clamp-target" about:"each cut brings the target down to the rate, not only the first after an increase"`
	IncreaseTimer Time    `yaml:"increase-timer" about:"time between increases"`
	ByteCounter   Size    `yaml:"byte-counter" about:"bytes between increases of the byte counter; 0 = none"`
	F             uint32  `yaml:"fast-recovery" about:"increases that only recover"`
	GShift        uint8   `yaml:"g-shift" about:"g = 2^-this"`
	AI            Rate    `yaml:"additive" about:"additive increase"`
	HAI           Rate    `yaml:"hyper" about:"hyper increase"`
	Min           Rate    `yaml:"minimum" about:"least rate"`
	InitialAlpha  float64 `yaml:"first-alpha" about:"alpha at the first notification; 0 = 1"`
}

// CX4 is DCQCN as the published RoCE simulators parametrise it after a ConnectX-4.
func CX4() *DCQCN {
	return &DCQCN{
		Name:       "cx4",
		ECN:        ECN{Mode: ECNDequeue, KMin: 400_000, KMax: 1_600_000, PMax: 0.2, PerRate: 100 * Gbps},
		AlphaTimer: Microsecond, DecreaseCheck: 4 * Microsecond, IncreaseTimer: 300 * Microsecond,
		F: 1, GShift: 8, AI: 20 * Mbps, HAI: 200 * Mbps, Min: Gbps,
	}
}

// Paper is DCQCN with the parameters of the SIGCOMM 2015 paper.
func Paper() *DCQCN {
	return &DCQCN{
		Name:     "paper",
		ECN:      ECN{Mode: ECNDequeue, KMin: 5_000, KMax: 200_000, PMax: 0.01},
		CNPEvery: 50 * Microsecond, CNPDSCP: 48,
		AlphaTimer: 55 * Microsecond, IncreaseTimer: 55 * Microsecond, ByteCounter: 10_000_000,
		F: 5, GShift: 8, AI: 40 * Mbps, HAI: 200 * Mbps, Min: 100 * Mbps,
	}
}

// Check refuses values that the state machine cannot run with.
func (c *DCQCN) Check() error {
	switch {
	case c.AlphaTimer <= 0 || c.IncreaseTimer <= 0 || c.CNPEvery < 0 || c.DecreaseCheck < 0 || c.ByteCounter < 0:
		return fmt.Errorf("%q: timers must be positive, the byte counter not negative", c.Name)
	case c.GShift < 1 || c.GShift > 16 || c.Min <= 0 || c.AI < 0 || c.HAI < 0:
		return fmt.Errorf("%q: want g = 2^-1..2^-16 and a minimum rate above 0", c.Name)
	case !(c.InitialAlpha >= 0 && c.InitialAlpha <= 1):
		return fmt.Errorf("%q: first alpha %g, want 0..1", c.Name, c.InitialAlpha)
	case c.CNPDSCP > 63:
		return fmt.Errorf("%q: cnp-dscp: DSCP %d, want 0..63", c.Name, c.CNPDSCP)
	}
	return nil
}

// Marking gives the thresholds of the set.
func (c *DCQCN) Marking() ECN { return c.ECN }

// Answer is the NP.
func (c *DCQCN) Answer() Answer {
	return Answer{Echo: c.CNPEvery == 0, CNPEvery: c.CNPEvery, CNPDSCP: c.CNPDSCP}
}

// Controller is the RP.
func (c *DCQCN) Controller() Controller { return &reactionPoint{par: c} }

// alphaOne is 1 in the fixed-point format of alpha.
const alphaOne = 1 << 32

// reactionPoint is the RP of all queue pairs of one set.
type reactionPoint struct {
	hearsNothing
	par *DCQCN
	qps []dcqcn
}

// dcqcn is the RP state of one queue pair. All arithmetic is in integers, so that a
// run gives the same numbers on every machine. Alpha is brought up to date when it
// is needed: an idle queue pair costs no event.
type dcqcn struct {
	rate      uint64 // bit/s
	target    uint64
	line      uint64
	alpha     uint64
	alphaAt   Time // of the last alpha update done
	check     Time // phase of the decrease checks
	incAt     Time // when the increase timer runs out
	bytes     int64
	stage     uint32 // increases by timer since the last cut
	byteStage uint32
	started   bool
	fresh     bool // a notification came since the last alpha update
	cut       bool // a notification came since the last decrease check
	checking  bool // a decrease event is pending
	timing    bool // an increase event is pending
	cnps      uint64
	cuts      uint64
}

// initialAlpha gives alpha at the first notification.
func (c *DCQCN) initialAlpha() uint64 {
	if c.InitialAlpha == 0 {
		return alphaOne
	}
	return uint64(c.InitialAlpha * alphaOne)
}

// Hears: notifications, and what is sent if a byte counter runs.
func (r *reactionPoint) Hears() Hear {
	if r.par.ByteCounter > 0 {
		return HearNotified | HearSent
	}
	return HearNotified
}

// Open begins at line rate.
func (r *reactionPoint) Open(q QP) {
	line := uint64(q.Line())
	r.qps = perQP(r.qps, q)
	r.qps[q.ID()] = dcqcn{rate: line, target: line, line: line}
}

// State counts notifications and cuts.
func (r *reactionPoint) State(q QP) ControlState {
	c := &r.qps[q.ID()]
	return ControlState{CNPs: c.cnps, Cuts: c.cuts}
}

// Timers of a queue pair.
const (
	decreaseTimer = iota // look whether a notification came
	increaseTimer
)

// Timer is the check for notifications, or the increase.
func (r *reactionPoint) Timer(q QP, n int) {
	if c := &r.qps[q.ID()]; n == decreaseTimer {
		r.decreaseCheck(q, c)
	} else {
		r.increaseTimer(q, c)
	}
}

// settle brings alpha up to date: one step up if a notification came in the first
// interval, one step down for each interval without.
func (c *dcqcn) settle(par *DCQCN, now Time) {
	step := par.AlphaTimer
	for c.alphaAt+step <= now {
		c.alphaAt += step
		c.alpha -= c.alpha >> par.GShift
		if c.fresh {
			c.alpha += alphaOne >> par.GShift
			c.fresh = false
		} else if c.alpha < 1<<par.GShift { // what remains is not worth a loop
			c.alphaAt += (now - c.alphaAt) / step * step
		}
	}
}

// Notified is the RP's reaction to a congestion notification.
func (r *reactionPoint) Notified(q QP) {
	c := &r.qps[q.ID()]
	c.cnps++
	if r.par.DecreaseCheck == 0 {
		r.cutNow(q, c)
		return
	}
	if !c.started {
		c.started = true
		c.alpha = r.par.initialAlpha()
		c.alphaAt = q.Now()
		c.check = (q.Now() + Nanosecond) % r.par.DecreaseCheck // after the alpha update of the same moment
		c.target = c.rate
		c.cut = true
		c.checking = true
		q.Timer(decreaseTimer, q.Now()+Nanosecond+r.par.DecreaseCheck)
		return
	}
	c.settle(r.par, q.Now())
	c.fresh = true
	c.cut = true
	if !c.checking {
		c.checking = true
		d := r.par.DecreaseCheck
		q.Timer(decreaseTimer, q.Now()+d-(q.Now()-c.check)%d)
	}
}

// decreaseCheck cuts the rate if a notification came since the last look.
func (r *reactionPoint) decreaseCheck(q QP, c *dcqcn) {
	c.checking = false
	if !c.cut {
		return
	}
	c.settle(r.par, q.Now())
	c.cut = false
	if c.stage != 0 || r.par.ClampTarget {
		c.target = c.rate
	}
	r.reduce(q, c)
}

// cutNow is the reaction of the paper: the cut uses the old alpha.
func (r *reactionPoint) cutNow(q QP, c *dcqcn) {
	if !c.started {
		c.started = true
		c.alpha = r.par.initialAlpha()
	} else {
		c.settle(r.par, q.Now())
	}
	c.target = c.rate
	r.reduce(q, c)
	c.alpha += alphaOne>>r.par.GShift - c.alpha>>r.par.GShift
	c.alphaAt = q.Now()
	c.bytes, c.byteStage = 0, 0
}

func (r *reactionPoint) reduce(q QP, c *dcqcn) {
	hi, lo := bits.Mul64(c.rate, 2*alphaOne-c.alpha)
	rate := hi<<31 | lo>>33 // rate (1 - alpha/2)
	c.cuts++
	c.stage = 0
	c.incAt = q.Now() + r.par.IncreaseTimer
	if !c.timing {
		c.timing = true
		q.Timer(increaseTimer, c.incAt)
	}
	c.setRate(q, max(rate, uint64(r.par.Min)))
}

// increaseTimer raises the rate when the timer ran out since the last cut.
func (r *reactionPoint) increaseTimer(q QP, c *dcqcn) {
	c.timing = false
	if c.incAt > q.Now() {
		c.timing = true
		q.Timer(increaseTimer, c.incAt)
		return
	}
	if r.par.ByteCounter == 0 {
		r.increase(q, c, c.stage < r.par.F, c.stage > r.par.F)
		c.stage++
	} else {
		c.stage++
		r.increaseBoth(q, c)
	}
	if c.rate >= c.line && c.target >= c.line {
		return // nothing to gain: the next cut restarts the timer
	}
	c.incAt = q.Now() + r.par.IncreaseTimer
	c.timing = true
	q.Timer(increaseTimer, c.incAt)
}

// Sent runs the byte counter.
func (r *reactionPoint) Sent(q QP, _ uint32, n int64) {
	c := &r.qps[q.ID()]
	if !c.started {
		return
	}
	if c.bytes += n; c.bytes >= int64(r.par.ByteCounter) {
		c.bytes -= int64(r.par.ByteCounter)
		c.byteStage++
		r.increaseBoth(q, c)
	}
}

// increaseBoth chooses the phase from both counters, as QCN does.
func (r *reactionPoint) increaseBoth(q QP, c *dcqcn) {
	f := r.par.F
	r.increase(q, c, max(c.stage, c.byteStage) < f, min(c.stage, c.byteStage) > f)
}

// increase is fast recovery towards the target, after moving it unless recovering.
func (r *reactionPoint) increase(q QP, c *dcqcn, recovering, hyper bool) {
	if !recovering {
		step := r.par.AI
		if hyper {
			step = r.par.HAI
		}
		c.target = min(c.target+uint64(step), c.line)
	}
	c.setRate(q, c.rate/2+c.target/2)
}

func (c *dcqcn) setRate(q QP, rate uint64) {
	c.rate = min(rate, c.line)
	q.SetRate(Rate(c.rate))
}
