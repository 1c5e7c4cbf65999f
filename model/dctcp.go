package model

import "fmt"

var dctcpMechanism = Mechanism{Part: PartCongestion, Kind: "dctcp",
	About: "DCTCP as a rate with a window: once a round trip alpha follows the share of marked ACKs, a mark cuts by alpha/2",
	New: func() Settings {
		return &DCTCP{Mark: 300_000, PerRate: 100 * Gbps, GShift: 4, AI: 615 * Mbps, Min: Gbps, Windowed: true}
	}}

// DCTCP holds the parameters as the published RoCE simulators have them.
type DCTCP struct {
	Mark     Size  `yaml:"mark" about:"depth of a queue from which every frame is marked, at per-rate"`
	PerRate  Rate  `yaml:"per-rate" about:"port speed for which mark is given"`
	GShift   uint8 `yaml:"g-shift" about:"g = 2^-this"`
	AI       Rate  `yaml:"additive" about:"increase a round trip without a mark"`
	Min      Rate  `yaml:"minimum" about:"least rate"`
	Windowed bool  `yaml:"window" about:"bounds the bytes in flight to rate x longest base round trip"`
}

// Check refuses what cannot run.
func (c *DCTCP) Check() error {
	if c.Mark < 1 || c.PerRate <= 0 || c.GShift < 1 || c.GShift > 16 || c.AI <= 0 || c.Min <= 0 {
		return fmt.Errorf("dctcp: want a mark of 1 byte or more, g = 2^-1..2^-16, and rates above 0")
	}
	return nil
}

// Marking is a step: all frames above it.
func (c *DCTCP) Marking() ECN {
	return ECN{Mode: ECNDequeue, KMin: int64(c.Mark), KMax: int64(c.Mark) + 1, PMax: 1, PerRate: c.PerRate}
}

// Answer echoes marks.
func (c *DCTCP) Answer() Answer { return Answer{Echo: true} }

// Controller begins without queue pairs.
func (c *DCTCP) Controller() Controller { return &dctcpSender{par: c} }

type dctcpSender struct {
	hearsNothing
	par *DCTCP
	qps []dctcp
}

type dctcp struct {
	rate, line uint64
	alpha      uint64 // of alphaOne
	update     uint32 // alpha is due at the first ACK beyond
	batch      uint32 // frames of the round trip
	marked     uint32
	high       uint32 // until an ACK beyond, no further cut
	cwr        bool
	st         ControlState
}

func (d *dctcpSender) Hears() Hear { return HearAcks }

func (d *dctcpSender) Open(q QP) {
	line := uint64(q.Line())
	d.qps = perQP(d.qps, q)
	d.qps[q.ID()] = dctcp{rate: line, line: line, alpha: alphaOne}
	d.window(q, &d.qps[q.ID()])
}

func (d *dctcpSender) window(q QP, c *dctcp) {
	if d.par.Windowed {
		q.windowFor(Rate(c.rate))
	}
}

// Ack runs the law; the cut comes before the increase of the same ACK.
func (d *dctcpSender) Ack(q QP, a Ack) {
	c := &d.qps[q.ID()]
	if a.Marked {
		c.marked++
		c.st.CNPs++
	}
	trip := a.Psn > c.update
	if trip {
		if c.update > 0 {
			share := min(alphaOne, uint64(c.marked)*alphaOne/uint64(c.batch))
			c.alpha += share>>d.par.GShift - c.alpha>>d.par.GShift
			c.marked = 0
			c.batch = q.Next() - a.Psn + 1
		} else {
			c.batch = q.Next() + 1
		}
		c.update = q.Next()
	}
	if c.cwr && a.Psn > c.high {
		c.cwr = false
	}
	rate := c.rate
	if a.Marked && !c.cwr {
		rate = max(uint64(d.par.Min), cutBy(rate, c.alpha/2))
		c.cwr, c.high = true, q.Next()
		c.st.Cuts++
	}
	if !c.cwr && trip {
		rate = min(c.line, rate+uint64(d.par.AI))
		c.st.Ups++
	}
	if rate != c.rate {
		c.rate = rate
		q.SetRate(Rate(rate))
		d.window(q, c)
	}
}

func (d *dctcpSender) State(q QP) ControlState { return d.qps[q.ID()].st }
