package model

import "fmt"

var ctccMechanism = Mechanism{Part: PartCongestion, Kind: "ctcc",
	About: "round trips by probes whose answers come at high priority: above the target the rate is cut in proportion, below it grows; a NACK halves it",
	New: func() Settings {
		return &CTCC{Target: 30 * Microsecond, Beta: 0.4, AI: Mbps, F: 0, HAI: Gbps, Gap: 100 * Microsecond, Lost: 300 * Microsecond, First: 100 * Mbps, PerRate: 100 * Gbps, MinShift: 14}
	}}

// CTCC holds the constants of the law, which the paper does not publish: these meet its figures.
type CTCC struct {
	Target   Time    `yaml:"target" about:"round trip to aim at: that of the empty fabric and some 25 us"`
	Beta     float64 `yaml:"beta" about:"weight of a cut"`
	AI       Rate    `yaml:"additive" about:"increase an answer below the target, at per-rate"`
	F        uint32  `yaml:"fast-after" about:"increases in a row after which they double; 0 = never"`
	HAI      Rate    `yaml:"hyper" about:"greatest increase, at per-rate"`
	Gap      Time    `yaml:"gap" about:"time between probes of a queue pair"`
	Lost     Time    `yaml:"lost" about:"a probe without an answer for this long is sent again"`
	First    Rate    `yaml:"first" about:"rate at the start"`
	PerRate  Rate    `yaml:"per-rate" about:"line rate for which the increases are given"`
	MinShift uint8   `yaml:"minimum-shift" about:"least rate: line rate x 2^-this"`
}

// Check refuses what cannot run.
func (c *CTCC) Check() error {
	if c.Target <= 0 || !(c.Beta > 0 && c.Beta <= 1) || c.AI <= 0 || c.HAI < c.AI || c.Gap <= 0 || c.Lost <= 0 || c.First <= 0 || c.PerRate <= 0 || c.MinShift > 20 {
		return fmt.Errorf("ctcc: want times and rates above 0, beta in 0..1, hyper not below additive")
	}
	return nil
}

// Marking is none.
func (c *CTCC) Marking() ECN { return ECN{} }

// Answer is that of probes, which the engine gives.
func (c *CTCC) Answer() Answer { return Answer{} }

// Controller begins without queue pairs.
func (c *CTCC) Controller() Controller { return &ctccSender{par: c} }

type ctccSender struct {
	hearsNothing
	par *CTCC
	qps []ctcc
}

type ctcc struct {
	rate, line float64
	ups        uint32
	serial     uint32 // of the probe that is out
	out        bool
	begun      bool
	sent       Time
	due        Time // of the next probe
	st         ControlState
}

func (c *ctccSender) Hears() Hear { return HearAcks | HearSent }

func (c *ctccSender) Open(q QP) {
	c.qps = perQP(c.qps, q)
	line := float64(q.Line())
	c.qps[q.ID()] = ctcc{rate: min(line, float64(c.par.First)), line: line}
	q.SetRate(Rate(c.qps[q.ID()].rate))
}

// Timers of a queue pair.
const (
	probeTimer = iota
	lostTimer
)

// Sent begins probing with the first frame, each queue pair at a moment of its own within a gap.
func (c *ctccSender) Sent(q QP, _ uint32, _ int64) {
	e := &c.qps[q.ID()]
	if !e.begun {
		e.begun = true
		e.due = q.Now() + Time(mix64(uint64(q.ID()))%uint64(c.par.Gap))
		q.Timer(probeTimer, e.due)
	}
}

func (c *ctccSender) Timer(q QP, n int) {
	e := &c.qps[q.ID()]
	if n == lostTimer && (!e.out || q.Now() < e.sent+c.par.Lost) || n == probeTimer && q.Now() != e.due {
		return
	}
	e.serial++
	e.out, e.sent = true, q.Now()
	q.Timer(lostTimer, q.Now()+c.par.Lost)
	q.Probe(e.serial)
}

// Answered is the law.
func (c *ctccSender) Answered(q QP, serial uint32) {
	e, p := &c.qps[q.ID()], c.par
	if !e.out || serial != e.serial {
		return
	}
	e.out = false
	v := q.Now() - e.sent
	e.st.measure(v)
	scale := e.line / float64(p.PerRate)
	if v > p.Target {
		e.rate = float64(e.rate * max(0.5, 1-float64(p.Beta*float64(v-p.Target)/float64(v))))
		e.ups = 0
		e.st.Cuts++
	} else {
		e.ups++
		step := float64(p.AI)
		if p.F > 0 && e.ups > p.F {
			step *= float64(uint64(1) << min(e.ups-p.F, 40))
		}
		e.rate += float64(min(step, float64(p.HAI)) * scale)
		e.st.Ups++
	}
	c.set(q, e)
	e.due = q.Now() + max(0, p.Gap-v)
	q.Timer(probeTimer, e.due)
}

// Ack halves at a NACK.
func (c *ctccSender) Ack(q QP, a Ack) {
	if !a.Nack {
		return
	}
	e := &c.qps[q.ID()]
	e.rate /= 2
	e.ups = 0
	e.st.CNPs++
	c.set(q, e)
}

func (c *ctccSender) set(q QP, e *ctcc) {
	e.rate = min(e.line, max(e.rate, e.line/float64(uint64(1)<<c.par.MinShift)))
	q.SetPace(Rate(e.rate))
}

func (c *ctccSender) State(q QP) ControlState { return c.qps[q.ID()].st }
