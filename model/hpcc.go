package model

import "fmt"

var hpccMechanism = Mechanism{Part: PartCongestion, Kind: "hpcc",
	About: "HPCC (SIGCOMM 2019): each hop writes its load into the frame, the sender keeps the most loaded one just below full",
	New: func() Settings {
		return &HPCC{Eta: 0.95, MaxStage: 0, AI: 40 * Mbps, PerRate: 100 * Gbps, Min: Gbps}
	}}

// HPCC holds the parameters of HPCC.
type HPCC struct {
	Eta      float64 `yaml:"eta" about:"use of the most loaded link to aim at"`
	MaxStage uint32  `yaml:"max-stage" about:"additive increases before the rate is set by the load again"`
	AI       Rate    `yaml:"additive" about:"additive increase at per-rate"`
	PerRate  Rate    `yaml:"per-rate" about:"line rate for which additive is given"`
	Min      Rate    `yaml:"minimum" about:"least rate"`
}

// Check refuses what cannot run.
func (c *HPCC) Check() error {
	if !(c.Eta > 0 && c.Eta <= 1) || c.AI <= 0 || c.PerRate <= 0 || c.Min <= 0 {
		return fmt.Errorf("hpcc: want eta above 0 and at most 1, and rates above 0")
	}
	return nil
}

// Marking is none.
func (c *HPCC) Marking() ECN { return ECN{} }

// Answer: telemetry of five hops, 8 B each and 2, both ways.
func (c *HPCC) Answer() Answer { return Answer{Header: 42, Ack: 28, Telemetry: true} }

// Controller begins without queue pairs.
func (c *HPCC) Controller() Controller { return &hpccSender{par: c} }

type hpccSender struct {
	hearsNothing
	par *HPCC
	qps []hpcc
}

type hpcc struct {
	cur, line float64 // the rate of the last round trip
	u         float64
	ai        float64
	update    uint32
	stage     uint32
	nhops     int
	hops      [intHops]intHop
	st        ControlState
}

func (h *hpccSender) Hears() Hear { return HearAcks }

func (h *hpccSender) Open(q QP) {
	line := float64(q.Line())
	h.qps = perQP(h.qps, q)
	h.qps[q.ID()] = hpcc{cur: line, line: line, u: 1, ai: float64(h.par.AI) * line / float64(h.par.PerRate)}
	q.windowFor(q.Line())
}

// Ack sets the rate at each ACK, and what it is relative to once a round trip.
func (h *hpccSender) Ack(q QP, a Ack) {
	c := &h.qps[q.ID()]
	hops, ok := q.telemetry(a.Psn - 1)
	if !ok {
		return
	}
	if c.update == 0 {
		c.update, c.hops, c.nhops = q.Next(), hops.hop, int(hops.n)
		return
	}
	trip := a.Psn > c.update
	c.load(q, hops)
	m := c.u / h.par.Eta
	rate, stage := c.cur+c.ai, c.stage+1
	if m >= 1 || c.stage >= h.par.MaxStage {
		rate, stage = c.cur/m+c.ai, 0
	}
	rate = max(float64(h.par.Min), min(c.line, rate))
	q.SetPace(Rate(rate))
	q.windowFor(Rate(rate))
	if trip {
		if rate < c.cur {
			c.st.Cuts++
		} else {
			c.st.Ups++
		}
		c.cur, c.stage, c.update = rate, stage, q.Next()
	}
}

// load brings the use of the most loaded hop up to date.
func (c *hpcc) load(q QP, now *intRecord) {
	most, span := 0.0, Time(0)
	for i := range int(now.n) {
		if i >= c.nhops {
			break
		}
		tau := now.hop[i].at - c.hops[i].at
		if tau <= 0 {
			continue
		}
		b := float64(now.hop[i].rate)
		rate := float64(now.hop[i].sent-c.hops[i].sent) * 8 / tau.Seconds()
		queued := float64(min(now.hop[i].queued, c.hops[i].queued))
		use := rate/b + float64(queued*c.line/b/q.fullWindow())
		if use > most {
			most, span = use, tau
		}
	}
	c.hops, c.nhops = now.hop, int(now.n)
	t := q.BaseRTT()
	span = min(span, t)
	c.u = (float64(c.u*float64(t-span)) + float64(most*float64(span))) / float64(t)
}

func (h *hpccSender) State(q QP) ControlState { return h.qps[q.ID()].st }
