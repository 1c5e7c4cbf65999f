package model

import (
	"fmt"

	"github.com/openinof/inof/fabric"
)

var dynamicECNMechanism = Mechanism{Part: PartTuner, Kind: "dynamic-ecn",
	About: "thresholds of marking by the degree of incast and the share of elephants",
	New: func() Settings {
		return &DynamicECN{Every: 100 * Microsecond, Elephant: 100_000, Base: 640_000, Least: 20_000, Most: 1_500_000, Percent: 20, PerRate: 100 * Gbps}
	}}

// DynamicECN lowers the thresholds of a queue the more flows share it, and raises them with the
// share of bytes of elephants. The source tells directions only; the law is ours.
type DynamicECN struct {
	Every    Time    `yaml:"every" about:"time between two settings"`
	Elephant Size    `yaml:"elephant" about:"a flow that sent more is an elephant"`
	Base     Size    `yaml:"base" about:"lower threshold for up to eight elephants, at per-rate"`
	Least    Size    `yaml:"least" about:"least lower threshold, at per-rate"`
	Most     Size    `yaml:"most" about:"greatest lower threshold, at per-rate: below XOFF by what arrives until a cut takes effect; the upper one is four times the lower, and at most four times this"`
	Percent  float64 `yaml:"percent" about:"probability at the upper threshold"`
	PerRate  Rate    `yaml:"per-rate" about:"port speed for which the sizes are given"`
}

// Check refuses what cannot run.
func (c *DynamicECN) Check() error {
	if c.Every <= 0 || c.Elephant < 1 || c.Least < 1 || c.Most < c.Least || c.Base < 1 || !(c.Percent > 0 && c.Percent <= 100) || c.PerRate <= 0 {
		return fmt.Errorf("dynamic-ecn: want sizes above 0, least below most, and a percentage")
	}
	return nil
}

// Period is that of its settings.
func (c *DynamicECN) Period() Time { return c.Every }

// Tuner makes that of a switch.
func (c *DynamicECN) Tuner(sw Switch) (Tuner, error) {
	return &dynamicECN{par: c, watch: newFlowWatch(sw, c.Elephant), degree: make([]uint64, sw.Ports()*NumQueues)}, nil
}

type dynamicECN struct {
	passive
	par    *DynamicECN
	watch  flowWatch
	degree []uint64 // of incast at each queue, in 1/1024
	sets   uint64
}

func (*dynamicECN) marks() fabric.MarkingMode { return fabric.MarkingDynamic }

func (d *dynamicECN) Tapped() bool { return true }

// Leave counts flows and elephants.
func (d *dynamicECN) Leave(sw Switch, f Frame, _, out PortID, queue int, depth int64) {
	d.watch.leave(sw, f, out, queue, depth)
}

// halvings gives 2^(-5 x), x = part/whole, in 1/65536: 32 steps, so that every machine has the
// same ones.
var halvings = [33]int64{65536, 58809, 52773, 47356, 42495, 38133, 34219, 30706, 27554, 24726, 22188, 19911, 17867, 16033, 14387, 12910,
	11585, 10396, 9329, 8371, 7512, 6741, 6049, 5428, 4871, 4371, 3922, 3520, 3158, 2834, 2543, 2282, 2048}

// Tick sets the thresholds of the queues that sent something.
func (d *dynamicECN) Tick(sw Switch) {
	for i := range d.watch.queue {
		e := &d.watch.queue[i]
		if e.flows == nil {
			continue
		}
		n := max(uint64(e.n)*1024, d.degree[i]*98/100)
		d.degree[i] = n
		if e.whole > 0 {
			p, q := sw.Port(i/NumQueues), i%NumQueues
			low := int64(d.par.Base)
			if n > 8*1024 {
				low = low * 8 * 1024 / int64(n)
			}
			low = low * halvings[(e.whole-e.bytes)*32/e.whole] / 65536
			low = min(max(low, int64(d.par.Least)), int64(d.par.Most))
			scale := func(v int64) int64 { return v * int64(sw.Rate(p)/Mbps) / int64(d.par.PerRate/Mbps) }
			sw.SetMarking(p, q, scale(low), scale(4*low), d.par.Percent/100)
			d.sets++
		}
		e.next()
	}
}

func (d *dynamicECN) Counters(put func(string, uint64)) { put("dynamic-ecn.settings", d.sets) }
