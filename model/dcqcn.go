package model

import (
	"fmt"
	"math/bits"
)

// DCQCN holds the parameters of rate control: the switch's marking (CP), the
// receiver's notifications (NP) and the sender's reaction (RP).
type DCQCN struct {
	Name     string
	ECN      ECN
	CNPEvery Time  // NP: least time between the CNPs of a flow; 0 = a bit in each ACK instead
	CNPTOS   uint8 // NP: class byte of CNPs
	// RP.
	AlphaTimer    Time // alpha falls when no notification came for this long
	DecreaseCheck Time // the rate is cut at most once in this time, and first this long after the first notification; 0 = at each notification
	ClampTarget   bool // each cut brings the target down to the rate, not only the first after an increase
	IncreaseTimer Time
	ByteCounter   int64 // bytes between increase events; 0 = none
	F             uint32
	GShift        uint8 // g = 2^-GShift
	AI, HAI       Rate
	Min           Rate
	InitialAlpha  float64 // alpha at the first notification, default 1
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
		CNPEvery: 50 * Microsecond, CNPTOS: 48 << 2,
		AlphaTimer: 55 * Microsecond, IncreaseTimer: 55 * Microsecond, ByteCounter: 10_000_000,
		F: 5, GShift: 8, AI: 40 * Mbps, HAI: 200 * Mbps, Min: 100 * Mbps,
	}
}

func (c *DCQCN) check() error {
	switch {
	case c.AlphaTimer <= 0 || c.IncreaseTimer <= 0 || c.CNPEvery < 0 || c.DecreaseCheck < 0 || c.ByteCounter < 0:
		return fmt.Errorf("%w %q: timers must be positive, the byte counter not negative", ErrCongestion, c.Name)
	case c.GShift < 1 || c.GShift > 16 || c.Min <= 0 || c.AI < 0 || c.HAI < 0:
		return fmt.Errorf("%w %q: want g = 2^-1..2^-16 and a minimum rate above 0", ErrCongestion, c.Name)
	case !(c.InitialAlpha >= 0 && c.InitialAlpha <= 1):
		return fmt.Errorf("%w %q: first alpha %g, want 0..1", ErrCongestion, c.Name, c.InitialAlpha)
	}
	return nil
}

// alphaOne is 1 in the fixed-point format of alpha.
const alphaOne = 1 << 32

// dcqcn is the RP state of one queue pair. All arithmetic is in integers, so that a
// run gives the same numbers on every machine. Alpha is brought up to date when it
// is needed: an idle queue pair costs no event.
type dcqcn struct {
	par       *DCQCN
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

// settle brings alpha up to date: one step up if a notification came in the first
// interval, one step down for each interval without.
func (c *dcqcn) settle(now Time) {
	step := c.par.AlphaTimer
	for c.alphaAt+step <= now {
		c.alphaAt += step
		c.alpha -= c.alpha >> c.par.GShift
		if c.fresh {
			c.alpha += alphaOne >> c.par.GShift
			c.fresh = false
		} else if c.alpha < 1<<c.par.GShift { // what remains is not worth a loop
			c.alphaAt += (now - c.alphaAt) / step * step
		}
	}
}

// cnp is the RP's reaction to a congestion notification.
func (s *Sim) cnp(id int32, q *qp) {
	c := &s.cc[id]
	c.cnps++
	if c.par.DecreaseCheck == 0 {
		s.cutNow(id, q, c)
		return
	}
	if !c.started {
		c.started = true
		c.alpha = c.par.initialAlpha()
		c.alphaAt = s.now
		c.check = (s.now + Nanosecond) % c.par.DecreaseCheck // after the alpha update of the same moment
		c.target = c.rate
		c.cut = true
		c.checking = true
		s.schedule(s.now+Nanosecond+c.par.DecreaseCheck, evDecrease, id)
		return
	}
	c.settle(s.now)
	c.fresh = true
	c.cut = true
	if !c.checking {
		c.checking = true
		d := c.par.DecreaseCheck
		s.schedule(s.now+d-(s.now-c.check)%d, evDecrease, id)
	}
}

// decreaseCheck cuts the rate if a notification came since the last look.
func (s *Sim) decreaseCheck(id int32) {
	q, c := &s.qps[id], &s.cc[id]
	c.checking = false
	if q.done || !c.cut {
		return
	}
	c.settle(s.now)
	c.cut = false
	if c.stage != 0 || c.par.ClampTarget {
		c.target = c.rate
	}
	s.reduce(id, q, c)
}

// cutNow is the reaction of the paper: the cut uses the old alpha.
func (s *Sim) cutNow(id int32, q *qp, c *dcqcn) {
	if !c.started {
		c.started = true
		c.alpha = c.par.initialAlpha()
	} else {
		c.settle(s.now)
	}
	c.target = c.rate
	s.reduce(id, q, c)
	c.alpha += alphaOne>>c.par.GShift - c.alpha>>c.par.GShift
	c.alphaAt = s.now
	c.bytes, c.byteStage = 0, 0
}

func (s *Sim) reduce(id int32, q *qp, c *dcqcn) {
	hi, lo := bits.Mul64(c.rate, 2*alphaOne-c.alpha)
	rate := hi<<31 | lo>>33 // rate (1 - alpha/2)
	c.cuts++
	c.stage = 0
	c.incAt = s.now + c.par.IncreaseTimer
	if !c.timing {
		c.timing = true
		s.schedule(c.incAt, evIncrease, id)
	}
	s.setRate(q, c, max(rate, uint64(c.par.Min)))
}

// increaseTimer raises the rate when the timer ran out since the last cut.
func (s *Sim) increaseTimer(id int32) {
	q, c := &s.qps[id], &s.cc[id]
	c.timing = false
	if q.done {
		return
	}
	if c.incAt > s.now {
		c.timing = true
		s.schedule(c.incAt, evIncrease, id)
		return
	}
	if c.par.ByteCounter == 0 {
		s.increase(q, c, c.stage < c.par.F, c.stage > c.par.F)
		c.stage++
	} else {
		c.stage++
		s.increaseBoth(q, c)
	}
	if c.rate >= c.line && c.target >= c.line {
		return // nothing to gain: the next cut restarts the timer
	}
	c.incAt = s.now + c.par.IncreaseTimer
	c.timing = true
	s.schedule(c.incAt, evIncrease, id)
}

// sentBytes runs the byte counter.
func (s *Sim) sentBytes(id int32, n int64) {
	c := &s.cc[id]
	if c.par.ByteCounter == 0 || !c.started {
		return
	}
	if c.bytes += n; c.bytes >= c.par.ByteCounter {
		c.bytes -= c.par.ByteCounter
		c.byteStage++
		s.increaseBoth(&s.qps[id], c)
	}
}

// increaseBoth chooses the phase from both counters, as QCN does.
func (s *Sim) increaseBoth(q *qp, c *dcqcn) {
	f := c.par.F
	s.increase(q, c, max(c.stage, c.byteStage) < f, min(c.stage, c.byteStage) > f)
}

// increase is fast recovery towards the target, after moving it unless recovering.
func (s *Sim) increase(q *qp, c *dcqcn, recovering, hyper bool) {
	if !recovering {
		step := c.par.AI
		if hyper {
			step = c.par.HAI
		}
		c.target = min(c.target+uint64(step), c.line)
	}
	s.setRate(q, c, c.rate/2+c.target/2)
}

func (s *Sim) setRate(q *qp, c *dcqcn, rate uint64) {
	c.rate = min(rate, c.line)
	q.psb = Rate(c.rate).perByte()
	q.gapFull = s.span(q.full, q.psb)
}
