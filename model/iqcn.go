package model

import "fmt"

var iqcnMechanism = Mechanism{Part: PartStage, Kind: "iqcn",
	About: "adds the notifications that a slow receiver owes, before its sender's increase timer runs out",
	New:   func() Settings { return &IQCN{RPG: 300 * Microsecond, Margin: 50 * Microsecond, DSCP: 48, Flows: 1024} }}

// IQCN repeats the notifications of receivers that are late.
type IQCN struct {
	RPG    Time  `yaml:"rpg-time-reset" about:"increase timer of the NICs"`
	Margin Time  `yaml:"margin" about:"how much earlier the switch acts, so that its notification comes in time"`
	DSCP   uint8 `yaml:"dscp" about:"DSCP of its notifications"`
	Flows  int   `yaml:"flows" about:"entries of the table"`
}

// Check refuses what cannot run.
func (c *IQCN) Check() error {
	if c.RPG <= 0 || c.Margin < 0 || c.Margin >= c.RPG || c.DSCP > 63 || c.Flows < 1 {
		return fmt.Errorf("iqcn: want 0 <= margin < rpg-time-reset, a DSCP of 0..63 and a table")
	}
	return nil
}

// Stage makes that of a switch.
func (c *IQCN) Stage(Switch) (Stage, error) { return &iqcn{par: c, last: map[FlowID]Time{}}, nil }

type iqcn struct {
	par     *IQCN
	last    map[FlowID]Time // the last notification that passed or was made; from the receiver's first on
	rx, tx  uint64
	tooMany uint64
}

func (c *iqcn) Tapped() bool { return true }

// Arrive notes the receiver's notifications, which always pass.
func (c *iqcn) Arrive(sw Switch, f Frame, _, _ PortID) int {
	if f.IsCNP() {
		c.rx++
		if _, ok := c.last[f.Flow()]; ok || len(c.last) < c.par.Flows {
			c.last[f.Flow()] = sw.Now()
		} else {
			c.tooMany++
		}
	}
	return PassOn
}

// Leave notifies when the port is heavily congested (above the upper threshold of marking)
// and the last notification is about to be forgotten.
func (c *iqcn) Leave(sw Switch, f Frame, in, out PortID, queue int, depth int64) {
	if !f.IsData() {
		return
	}
	if _, high, ok := sw.Marking(out, queue); !ok || depth <= high {
		return
	}
	if t, ok := c.last[f.Flow()]; ok && sw.Now()-t > c.par.RPG-c.par.Margin {
		c.last[f.Flow()] = sw.Now()
		c.tx++
		sw.SendCNP(f.Flow(), in, c.par.DSCP)
	}
}

func (c *iqcn) Counters(put func(string, uint64)) {
	put("iqcn.rx", c.rx)
	put("iqcn.tx", c.tx)
	put("iqcn.full", c.tooMany)
}
