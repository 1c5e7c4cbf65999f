package model

import "fmt"

var npccMechanism = Mechanism{Part: PartStage, Kind: "npcc",
	About: "the congested switch itself notifies senders, more the deeper and the faster its queue grows; for long links",
	New: func() Settings {
		return &NPCC{Every: 50 * Microsecond, Low: 100_000, High: 1_000_000, DSCP: 48, Flows: 16384, PerRate: 100 * Gbps}
	}}

// NPCC is proactive control in the network. Vendors publish the directions of its law and no
// figure; these are ours.
type NPCC struct {
	Every   Time  `yaml:"every" about:"time between two looks at a queue, and between two draws of a flow"`
	Low     Size  `yaml:"low" about:"average depth below which nothing is sent, at per-rate"`
	High    Size  `yaml:"high" about:"average depth from which every draw notifies, at per-rate"`
	PerRate Rate  `yaml:"per-rate" about:"port speed for which low and high are given"`
	Latency bool  `yaml:"low-latency" about:"halves both thresholds"`
	DSCP    uint8 `yaml:"dscp" about:"DSCP of its notifications"`
	Flows   int   `yaml:"flows" about:"entries of the flow table"`
	Known   bool  `yaml:"known" about:"all flows are usable from their first frame on, as if a connection had been set up through this switch"`
}

// Check refuses what cannot run.
func (c *NPCC) Check() error {
	if c.Every <= 0 || c.Low < 1 || c.High <= c.Low || c.PerRate <= 0 || c.DSCP > 63 || c.Flows < 1 {
		return fmt.Errorf("npcc: want 0 < low < high, times and rates above 0, a DSCP of 0..63 and a flow table")
	}
	return nil
}

// Stage makes that of a switch.
func (c *NPCC) Stage(sw Switch) (Stage, error) {
	n := sw.Ports() * NumQueues
	return &npcc{par: c, flows: fastCNP{par: &FastCNP{Age: Second, Flows: c.Flows, Known: c.Known}, flows: map[FlowID]*cnpFlow{}},
		queue: make([]npccQueue, n), rng: seedFor(sw.s.opt.Seed, classStage, sw.Index())}, nil
}

type npccQueue struct {
	avg, last int64
	p         uint64 // of 2^32
}

type npcc struct {
	par           *NPCC
	flows         fastCNP // the table of flows is the same
	queue         []npccQueue
	rng           RNG
	made, dropped uint64
}

func (c *npcc) Tapped() bool { return true }

// Period is that of looks at the queues.
func (c *npcc) Period() Time { return c.par.Every }

// Tick brings the probabilities of all queues up to date.
func (c *npcc) Tick(sw Switch) {
	for k := range sw.Ports() {
		p := sw.Port(k)
		low, high := c.par.thresholds(sw.Rate(p))
		for q := range NumQueues {
			e := &c.queue[k*NumQueues+q]
			now := sw.QueueDepth(p, q)
			rising := now > e.last
			e.avg, e.last = (e.avg+now)/2, now
			if e.avg < low {
				e.p = 0
				continue
			}
			const one = 1 << 32
			x := uint64(min(e.avg-low, high-low)) * one / uint64(high-low)
			switch {
			case rising:
				e.p = one/10 + x/10*9
			case x > one/2:
				e.p = (2*x - one) / 5
			default:
				e.p = 0
			}
		}
	}
}

func (c *NPCC) thresholds(r Rate) (low, high int64) {
	low, high = int64(c.Low)*int64(r/Mbps)/int64(c.PerRate/Mbps), int64(c.High)*int64(r/Mbps)/int64(c.PerRate/Mbps)
	if c.Latency {
		low, high = low/2, high/2
	}
	return max(1, low), max(2, high)
}

// Arrive learns flows, and takes out the receiver's notifications for those it knows.
func (c *npcc) Arrive(sw Switch, f Frame, _, _ PortID) int {
	if !f.IsCNP() && !f.IsAnswer() {
		return PassOn
	}
	e := c.flows.entry(f.Flow(), sw.Now())
	if e == nil {
		return PassOn
	}
	e.usable = true
	if f.IsCNP() {
		c.dropped++
		return TakeIt
	}
	return PassOn
}

// Leave draws for a flow that did not for a while.
func (c *npcc) Leave(sw Switch, f Frame, in, out PortID, queue int, _ int64) {
	if !f.IsData() {
		return
	}
	e := c.flows.entry(f.Flow(), sw.Now())
	if e == nil || !e.usable || sw.Now()-e.sent < c.par.Every {
		return
	}
	p := c.queue[int(out-sw.Port(0))*NumQueues+queue].p
	if p == 0 {
		return
	}
	e.sent = sw.Now()
	if c.rng.Uint64()>>32 < p {
		c.made++
		sw.SendCNP(f.Flow(), in, c.par.DSCP)
	}
}

func (c *npcc) Counters(put func(string, uint64)) {
	put("npcc.sent", c.made)
	put("npcc.np-dropped", c.dropped)
	put("npcc.flows", uint64(len(c.flows.flows)))
	put("npcc.full", c.flows.tooMany)
}
