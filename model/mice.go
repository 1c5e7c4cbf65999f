package model

import "fmt"

var miceMechanism = Mechanism{Part: PartStage, Kind: "mice",
	About: "the first packets of a flow go to a queue above, the rest of an elephant stays in its own",
	New: func() Settings {
		return &Mice{Packets: 128, Idle: 10 * Millisecond, From: 3, To: 4, Flows: 16384}
	}}

// Mice tells short flows from long ones by their first packets.
type Mice struct {
	Packets uint32 `yaml:"packets" about:"packets of a flow that are a mouse's"`
	Idle    Time   `yaml:"idle" about:"pause after which a flow begins anew"`
	From    int    `yaml:"from" about:"queue of the flows that are told apart"`
	To      int    `yaml:"to" about:"queue of mice"`
	Flows   int    `yaml:"flows" about:"entries of the flow table; what does not fit stays where it is"`
}

// Check refuses what cannot run.
func (c *Mice) Check() error {
	if c.Packets < 1 || c.Idle <= 0 || c.From < 0 || c.From >= NumQueues || c.To < 0 || c.To >= NumQueues || c.From == c.To || c.Flows < 1 {
		return fmt.Errorf("mice: want a number of packets, a time above 0 and two queues of 0..7")
	}
	return nil
}

// Stage makes that of a switch.
func (c *Mice) Stage(Switch) (Stage, error) { return &mice{par: c, flows: map[FlowID]*mouse{}}, nil }

type mouse struct {
	packets uint32
	seen    Time
}

type mice struct {
	passive
	par           *Mice
	flows         map[FlowID]*mouse
	passed, stays uint64
	tooMany       uint64
}

// Arrive gives the class of mice.
func (c *mice) Arrive(sw Switch, f Frame, _, _ PortID) int {
	if !f.IsData() || int(sw.s.switches[sw.i].dscp[f.packet().tos>>2]) != c.par.From {
		return PassOn
	}
	now := sw.Now()
	e := c.flows[f.Flow()]
	if e == nil {
		if len(c.flows) >= c.par.Flows {
			for k, old := range c.flows {
				if now-old.seen > c.par.Idle {
					delete(c.flows, k)
				}
			}
			if len(c.flows) >= c.par.Flows {
				c.tooMany++
				return PassOn
			}
		}
		e = &mouse{}
		c.flows[f.Flow()] = e
	} else if now-e.seen > c.par.Idle {
		e.packets = 0
	}
	e.seen = now
	if e.packets >= c.par.Packets {
		c.stays++
		return PassOn
	}
	e.packets++
	c.passed++
	return c.par.To
}

func (c *mice) Counters(put func(string, uint64)) {
	put("mice.passed", c.passed)
	put("mice.elephants", c.stays)
	put("mice.full", c.tooMany)
}
