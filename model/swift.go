package model

import (
	"fmt"
	"math"
)

var swiftMechanism = Mechanism{Part: PartCongestion, Kind: "swift",
	About: "Swift (SIGCOMM 2020): a window by the round trip against a target that grows with hops and for small windows",
	New: func() Settings {
		return &Swift{Base: 20 * Microsecond, Range: 5, AI: 1, Beta: 0.8, MostCut: 0.5, Hops: 4}
	}}

// Swift holds the parameters of Swift, some of which its paper leaves open.
type Swift struct {
	Base    Time    `yaml:"base" about:"target without hops and flows"`
	Range   float64 `yaml:"range" about:"greatest share of small windows in the target, times base"`
	Hops    int     `yaml:"hops" about:"hops that the target allows for, each base/6.55"`
	AI      float64 `yaml:"additive" about:"frames a round trip below the target"`
	Beta    float64 `yaml:"beta" about:"weight of a cut"`
	MostCut float64 `yaml:"most-cut" about:"least factor of a cut"`
}

// Check refuses what cannot run.
func (c *Swift) Check() error {
	if c.Base <= 0 || !(c.Range >= 0) || c.Hops < 0 || !(c.AI > 0) || !(c.Beta > 0 && c.Beta <= 1) || !(c.MostCut > 0 && c.MostCut < 1) {
		return fmt.Errorf("swift: want a base above 0, and factors in 0..1")
	}
	return nil
}

// Marking is none.
func (c *Swift) Marking() ECN { return ECN{} }

// Answer carries a time stamp of 8 bytes both ways.
func (c *Swift) Answer() Answer { return Answer{Header: 8, Ack: 8} }

// Controller begins without queue pairs.
func (c *Swift) Controller() Controller { return &swiftSender{par: c} }

type swiftSender struct {
	hearsNothing
	par *Swift
	qps []swift
}

type swift struct {
	w      float64 // frames
	most   float64
	update uint32 // no second cut before an ACK beyond
	sent   stamps
	st     ControlState
}

func (t *swiftSender) Hears() Hear { return HearAcks | HearSent }

func (t *swiftSender) Open(q QP) {
	w := math.Ceil(q.fullWindow() / float64(q.MTU()))
	t.qps = perQP(t.qps, q)
	t.qps[q.ID()] = swift{w: w, most: 8 * w}
	q.SetWindow(int32(max(1, w)))
}

func (t *swiftSender) Sent(q QP, psn uint32, _ int64) { t.qps[q.ID()].sent.sent(psn, q.Now()) }

// target gives the round trip to aim at for a window.
func (c *Swift) target(w float64) float64 {
	base := float64(c.Base)
	x := c.Range * base / (1/math.Sqrt(0.1) - 1/math.Sqrt(100))
	small := min(max(0, float64(x/math.Sqrt(w))-float64(x/math.Sqrt(100))), c.Range*base)
	return base + float64(float64(c.Hops)*base/6.55) + small
}

// Ack is the law; a window below one frame is a pace.
func (t *swiftSender) Ack(q QP, a Ack) {
	c, p := &t.qps[q.ID()], t.par
	rtt, ok := c.sent.answered(a.Psn, q.Now())
	if !ok {
		return
	}
	c.st.measure(rtt)
	if target, delay := p.target(c.w), float64(rtt); delay < target {
		step := float64(p.AI * float64(a.New))
		if c.w >= 1 {
			step /= c.w
		}
		c.w += step
		c.st.Ups++
	} else if a.Psn > c.update {
		c.w = float64(c.w * max(p.MostCut, 1-float64(p.Beta*(delay-target)/delay)))
		c.update = q.Next()
		c.st.Cuts++
	}
	c.w = min(max(c.w, 0.001), c.most)
	t.set(q, c, rtt)
}

func (t *swiftSender) set(q QP, c *swift, rtt Time) {
	if c.w >= 1 {
		q.SetWindow(int32(c.w))
		if q.Rate() < q.Line()-q.Line()/1000 {
			q.SetPace(q.Line())
		}
		return
	}
	q.SetWindow(1)
	q.SetPace(max(Kbps, Rate(float64(q.Frame())*8*float64(c.w/rtt.Seconds()))))
}

// TimedOut halves.
func (t *swiftSender) TimedOut(q QP) { t.qps[q.ID()].w /= 2 }

func (t *swiftSender) State(q QP) ControlState { return t.qps[q.ID()].st }
