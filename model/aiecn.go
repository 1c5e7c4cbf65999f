package model

import "fmt"

var aiECNMechanism = Mechanism{Part: PartTuner, Kind: "ai-ecn",
	About: "searches the thresholds of marking step by step for full use with a short queue: the heuristic mode, for traffic that no model was trained on",
	New: func() Settings {
		return &AIECN{Every: 100 * Microsecond, First: 160_000, Least: 20_000, Most: 1_500_000, Percent: 20, PerRate: 100 * Gbps}
	}}

// AIECN is the heuristic mode of AI-ECN. The sources name it (BBR, heuristic search) and publish
// no steps; these are ours: a cycle of eight intervals tries a higher threshold and keeps it if
// use rose by a hundredth, and a lower one and keeps it unless use fell by as much.
type AIECN struct {
	Every   Time    `yaml:"every" about:"an interval: time between two settings"`
	First   Size    `yaml:"first" about:"lower threshold at the start, at per-rate"`
	Least   Size    `yaml:"least" about:"safety policy: least lower threshold, at per-rate"`
	Most    Size    `yaml:"most" about:"safety policy: greatest lower threshold, at per-rate; the upper one is four times the lower"`
	Percent float64 `yaml:"percent" about:"probability at the upper threshold"`
	PerRate Rate    `yaml:"per-rate" about:"port speed for which the sizes are given"`
}

// Check refuses what cannot run.
func (c *AIECN) Check() error {
	if c.Every <= 0 || c.Least < 1 || c.Most < c.Least || c.First < c.Least || c.First > c.Most || !(c.Percent > 0 && c.Percent <= 100) || c.PerRate <= 0 {
		return fmt.Errorf("ai-ecn: want 0 < least <= first <= most, and a percentage")
	}
	return nil
}

// Period is that of its settings.
func (c *AIECN) Period() Time { return c.Every }

// Tuner makes that of a switch.
func (c *AIECN) Tuner(sw Switch) (Tuner, error) {
	a := &aiECN{par: c, queue: make([]searched, sw.Ports()*NumQueues)}
	for i := range a.queue {
		a.queue[i].low = int64(c.First)
	}
	return a, nil
}

// searched is what is known of one queue.
type searched struct {
	low, before int64 // the lower threshold at per-rate, and the one before a trial
	step        uint8
	sent        uint64
	base        uint64 // use of the last interval at rest, in 1/65536
	pauses      uint64 // of the class, when last looked at
}

type aiECN struct {
	par         *AIECN
	queue       []searched
	kept, eased uint64
}

// Steps of the cycle; at the others it rests.
const (
	tryMore   = 0 // its outcome is judged one step later
	tryLess   = 4
	cycleLong = 8
)

// Tick judges the last interval and sets the next.
func (a *aiECN) Tick(sw Switch) {
	for k := range sw.Ports() {
		p := sw.Port(k)
		full := uint64(sw.Rate(p).Bytes(a.par.Every))
		for q := range NumQueues {
			e := &a.queue[k*NumQueues+q]
			sent, _ := sw.QueueSent(p, q)
			if sent == e.sent {
				continue
			}
			use := (sent - e.sent) * useOne / max(1, full)
			e.sent = sent
			a.search(sw, e, q, use)
			scale := func(v int64) int64 { return v * int64(sw.Rate(p)/Mbps) / int64(a.par.PerRate/Mbps) }
			sw.SetMarking(p, q, scale(e.low), scale(4*e.low), a.par.Percent/100)
		}
	}
}

func (a *aiECN) search(sw Switch, e *searched, q int, use uint64) {
	if n := sw.PausesSent(q); n != e.pauses { // too deep: at once, and from rest again
		e.pauses = n
		e.low, e.step = a.within(e.low/2), tryMore+2
		a.eased++
		e.base = use
		return
	}
	switch e.step {
	case tryMore:
		e.before, e.base = e.low, use
		e.low = a.within(e.low * 3 / 2)
	case tryMore + 1:
		if use <= e.base+e.base/100 {
			e.low = e.before
		} else {
			a.kept++
		}
	case tryLess:
		e.before, e.base = e.low, use
		e.low = a.within(e.low * 2 / 3)
	case tryLess + 1:
		if use+e.base/100 < e.base {
			e.low = e.before
		} else {
			a.kept++
		}
	}
	e.step = (e.step + 1) % cycleLong
}

// within is the safety policy.
func (a *aiECN) within(low int64) int64 {
	return min(max(low, int64(a.par.Least)), int64(a.par.Most))
}

func (a *aiECN) Counters(put func(string, uint64)) {
	put("ai-ecn.kept", a.kept)
	put("ai-ecn.eased", a.eased)
}
