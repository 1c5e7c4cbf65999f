package model

import "fmt"

var timelyMechanism = Mechanism{Part: PartCongestion, Kind: "timely",
	About: "TIMELY (SIGCOMM 2015): the rate follows the gradient of the round trip, between two bounds",
	New: func() Settings {
		return &Timely{Low: 50 * Microsecond, High: 500 * Microsecond, MinRTT: 20 * Microsecond, Alpha: 0.875, Beta: 0.8, AI: 100 * Mbps, HAI: 500 * Mbps, Min: Gbps}
	}}

// Timely holds the parameters of TIMELY.
type Timely struct {
	Low    Time    `yaml:"low" about:"below this round trip the rate rises"`
	High   Time    `yaml:"high" about:"above this round trip it is cut whatever the gradient"`
	MinRTT Time    `yaml:"min-rtt" about:"what the gradient is relative to"`
	Alpha  float64 `yaml:"alpha" about:"weight of a new difference of round trips"`
	Beta   float64 `yaml:"beta" about:"weight of a cut"`
	AI     Rate    `yaml:"additive" about:"increase once a round trip"`
	HAI    Rate    `yaml:"hyper" about:"increase after five in a row"`
	Min    Rate    `yaml:"minimum" about:"least rate"`
}

// Check refuses what cannot run.
func (c *Timely) Check() error {
	if c.Low <= 0 || c.High <= c.Low || c.MinRTT <= 0 || !(c.Alpha > 0 && c.Alpha <= 1) || !(c.Beta > 0 && c.Beta <= 1) || c.AI <= 0 || c.HAI <= 0 || c.Min <= 0 {
		return fmt.Errorf("timely: want 0 < low < high, alpha and beta in 0..1, and rates above 0")
	}
	return nil
}

// Marking is none.
func (c *Timely) Marking() ECN { return ECN{} }

// Answer carries a time stamp of 8 bytes both ways.
func (c *Timely) Answer() Answer { return Answer{Header: 8, Ack: 8} }

// Controller begins without queue pairs.
func (c *Timely) Controller() Controller { return &timelySender{par: c} }

type timelySender struct {
	hearsNothing
	par *Timely
	qps []timely
}

type timely struct {
	rate, line float64
	diff       float64 // of round trips, smoothed, in ps
	last       Time
	update     uint32
	ups        uint32
	sent       stamps
	st         ControlState
}

func (t *timelySender) Hears() Hear { return HearAcks | HearSent }

func (t *timelySender) Open(q QP) {
	t.qps = perQP(t.qps, q)
	t.qps[q.ID()] = timely{rate: float64(q.Line()), line: float64(q.Line())}
}

func (t *timelySender) Sent(q QP, psn uint32, _ int64) { t.qps[q.ID()].sent.sent(psn, q.Now()) }

// Ack acts once a round trip.
func (t *timelySender) Ack(q QP, a Ack) {
	c, p := &t.qps[q.ID()], t.par
	rtt, ok := c.sent.answered(a.Psn, q.Now())
	if !ok {
		return
	}
	c.st.measure(rtt)
	if a.Psn <= c.update {
		return
	}
	if c.update > 0 {
		c.diff = float64((1-p.Alpha)*c.diff) + float64(p.Alpha*float64(rtt-c.last))
		gradient := c.diff / float64(p.MinRTT)
		switch {
		case rtt < p.Low:
			t.up(c)
		case rtt > p.High:
			t.cut(c, 1-float64(p.Beta*(1-float64(p.High)/float64(rtt))))
		case gradient <= 0:
			t.up(c)
		default:
			t.cut(c, max(0, 1-float64(p.Beta*gradient)))
		}
		q.SetRate(Rate(c.rate))
	}
	c.update, c.last = q.Next(), rtt
}

func (t *timelySender) up(c *timely) {
	step := t.par.AI
	if c.ups >= 5 {
		step = t.par.HAI
	}
	c.ups++
	c.st.Ups++
	c.rate = min(c.line, c.rate+float64(step))
}

func (t *timelySender) cut(c *timely, by float64) {
	c.ups = 0
	c.st.Cuts++
	c.rate = max(float64(t.par.Min), float64(c.rate*by))
}

func (t *timelySender) State(q QP) ControlState { return t.qps[q.ID()].st }
