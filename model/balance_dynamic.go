package model

import "fmt"

// Dynamic load balancing as switch guides describe it: the flow's way is chosen by the load of
// the ports, for each frame, for each flowlet, or for a fixed time. How load is weighed
// is in no source: here the use of the last 16 us in steps of 12.5 %, then the bytes that
// wait, then the hash.

var flowletMechanism = Mechanism{Part: PartBalancer, Kind: "flowlet",
	About: "a flow that paused longer than the gap takes the least loaded port, else its old one",
	New:   func() Settings { return &Flowlet{Gap: 2000 * 1024 * Nanosecond} }}

var sprayMechanism = Mechanism{Part: PartBalancer, Kind: "spray",
	About: "every frame takes the least loaded port; frames may overtake each other",
	New:   func() Settings { return &Spray{} }}

var fixedMechanism = Mechanism{Part: PartBalancer, Kind: "fixed",
	About: "the first frame goes by hash; after each hold time the flow may move to the least loaded port",
	New:   func() Settings { return &Fixed{Hold: 2 * Second} }}

// Flowlet is the choice for each flowlet.
type Flowlet struct {
	Gap Time `yaml:"gap" about:"pause after which a flow may move; at least the difference of the ways' delays, else frames overtake each other"`
}

// Spray is the choice for each frame.
type Spray struct{}

// Fixed is the choice for a fixed time.
type Fixed struct {
	Hold Time `yaml:"hold" about:"time for which a flow keeps its port"`
}

const (
	perFlowlet = iota
	perFrame
	perTime
)

// Check refuses a gap of no time.
func (c *Flowlet) Check() error {
	if c.Gap <= 0 {
		return fmt.Errorf("a flowlet gap of %v, want more than 0", c.Gap)
	}
	return nil
}

// Check has nothing to refuse.
func (*Spray) Check() error { return nil }

// Check refuses a hold of no time.
func (c *Fixed) Check() error {
	if c.Hold <= 0 {
		return fmt.Errorf("hold for %v, want more than 0", c.Hold)
	}
	return nil
}

// Balancer makes that of a switch.
func (c *Flowlet) Balancer(sw Switch) Balancer {
	return &dynamic{mode: perFlowlet, span: c.Gap, load: newLoads(sw)}
}

// Balancer makes that of a switch.
func (*Spray) Balancer(sw Switch) Balancer { return &dynamic{mode: perFrame, load: newLoads(sw)} }

// Balancer makes that of a switch.
func (c *Fixed) Balancer(sw Switch) Balancer {
	return &dynamic{mode: perTime, span: c.Hold, load: newLoads(sw)}
}

// flowTable is how many flows a switch tells apart, by hash.
const flowTable = 1 << 16

type flowWay struct {
	port PortID
	at   Time // of the last frame; of a fixed way, when it was chosen
	used bool
}

type dynamic struct {
	mode  int
	span  Time
	load  loads
	table []flowWay
}

// Pick gives the way of a frame.
func (d *dynamic) Pick(sw Switch, f Frame, ways []PortID) int {
	if d.mode == perFrame || f.IsControl() {
		return d.load.least(sw, f.Hash(), ways)
	}
	if d.table == nil {
		d.table = make([]flowWay, flowTable)
	}
	e := &d.table[mix64(uint64(f.Hash()))%flowTable]
	now, at := sw.Now(), -1
	for i, p := range ways {
		if e.used && p == e.port && sw.Up(p) {
			at = i
		}
	}
	switch old := now-e.at > d.span; {
	case at >= 0 && !old:
	case at < 0 && d.mode == perTime:
		at, e.at = int(pickECMP(f.Hash(), sw.s.switches[sw.i].seed, int32(len(ways)))), now
	default:
		at, e.at = d.load.least(sw, f.Hash(), ways), now
	}
	if d.mode == perFlowlet {
		e.at = now
	}
	e.port, e.used = ways[at], true
	return at
}

// loads is what a switch knows of the use of its ports.
type loads struct {
	port []portLoad
}

type portLoad struct {
	at   Time
	sent uint64
	use  uint64 // of useOne
}

const (
	useOne   = 1 << 16
	useSpan  = 16 * Microsecond
	useSteps = 8 // of 12.5 %
)

func newLoads(sw Switch) loads { return loads{port: make([]portLoad, sw.Ports())} }

// step gives the use of a port in steps.
func (l *loads) step(sw Switch, p PortID) uint64 {
	e := &l.port[p-sw.Port(0)]
	now := sw.Now()
	dt := now - e.at
	if dt < useSpan/256 {
		return e.use * useSteps / useOne
	}
	sent := sw.Sent(p)
	full := uint64(sw.Rate(p).Bytes(dt))
	use := min(useOne, (sent-e.sent)*useOne/max(1, full))
	if dt >= useSpan {
		e.use = use
	} else {
		w := uint64(dt) * useOne / uint64(useSpan)
		e.use = (e.use*(useOne-w) + use*w) / useOne
	}
	e.at, e.sent = now, sent
	return e.use * useSteps / useOne
}

// least gives the least loaded of the ports that are up; without one, the first by hash.
func (l *loads) least(sw Switch, hash uint32, ways []PortID) int {
	first := int(pickECMP(hash, sw.s.switches[sw.i].seed, int32(len(ways))))
	best, found := first, false
	var load, queued uint64
	for k := range ways {
		i := (first + k) % len(ways) // of equals, the first from that of the hash on
		if !sw.Up(ways[i]) {
			continue
		}
		u, q := l.step(sw, ways[i]), uint64(sw.Depth(ways[i]))
		if !found || u < load || u == load && q < queued {
			best, found, load, queued = i, true, u, q
		}
	}
	return best
}
