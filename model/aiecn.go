package model

import (
	"fmt"
	"os"

	"github.com/openinof/inof/fabric"
)

var aiECNMechanism = Mechanism{Part: PartTuner, Kind: "ai-ecn",
	About: "searches the thresholds of marking step by step for full use with a short queue (heuristic mode), or has a trained network choose them (inference mode)",
	New: func() Settings {
		return &AIECN{Mode: heuristicMode, Elephant: 1_000_000, Every: 100 * Microsecond, First: 160_000, Least: 20_000, Most: 1_500_000, Percent: 20, PerRate: 100 * Gbps}
	}}

// Modes of AI-ECN.
const (
	heuristicMode = "heuristic"
	inferenceMode = "inference"
)

// AIECN is AI-ECN. The sources name its heuristic mode (BBR, heuristic search) and publish
// no steps; these are ours: a cycle of eight intervals tries a higher threshold and keeps it if
// use rose by a hundredth, and a lower one and keeps it unless use fell by as much. In the
// inference mode a ThresholdNet decides.
type AIECN struct {
	Mode     string `yaml:"mode" about:"heuristic or inference"`
	Weights  string `yaml:"weights" about:"inference: file of the network, as inofctl fabric train writes it; empty = the one that is shipped"`
	Elephant Size   `yaml:"elephant" about:"inference: a flow that sent more is an elephant"`
	// Net is used instead of a file; Watch is told of all inputs of the network. Both are for
	// training.
	Net     *ThresholdNet
	Watch   func(in [NetInputs]int32)
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
	if c.Mode != heuristicMode && c.Mode != inferenceMode || c.Elephant < 1 {
		return fmt.Errorf("ai-ecn: mode %q, elephants above %d bytes: want %s or %s, and a size above 0", c.Mode, c.Elephant, heuristicMode, inferenceMode)
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
	if c.Mode == heuristicMode {
		return a, nil
	}
	net, err := c.network()
	if err != nil {
		return nil, err
	}
	return &inferredECN{aiECN: *a, net: net, watch: newFlowWatch(sw, c.Elephant), seen: make([]inferred, len(a.queue))}, nil
}

// network gives the network to infer with.
func (c *AIECN) network() (*ThresholdNet, error) {
	if c.Net != nil {
		return c.Net, nil
	}
	if c.Weights == "" {
		return ShippedThresholdNet()
	}
	text, err := os.ReadFile(c.Weights)
	if err != nil {
		return nil, fmt.Errorf("ai-ecn: weights: %w", err)
	}
	net, err := ParseThresholdNet(string(text))
	if err != nil {
		return nil, fmt.Errorf("ai-ecn: weights: %s: %w", c.Weights, err)
	}
	return net, nil
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

func (*aiECN) marks() fabric.MarkingMode { return fabric.MarkingBBR }

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
			sw.SetMarking(p, q, a.scale(sw.Rate(p), e.low), a.scale(sw.Rate(p), 4*e.low), a.par.Percent/100)
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

// scale gives a size at per-rate as it is at the speed of a port.
func (a *aiECN) scale(r Rate, v int64) int64 { return v * int64(r/Mbps) / int64(a.par.PerRate/Mbps) }

// within is the safety policy.
func (a *aiECN) within(low int64) int64 {
	return min(max(low, int64(a.par.Least)), int64(a.par.Most))
}

func (a *aiECN) Counters(put func(string, uint64)) {
	put("ai-ecn.kept", a.kept)
	put("ai-ecn.eased", a.eased)
}
