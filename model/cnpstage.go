package model

import "fmt"

// Notifications that switches send: what fast CNP, iQCN and NPCC share.

// SendCNP sends a notification for a flow to its sender, out of port p in the class of its
// DSCP, as if the receiver had.
func (w Switch) SendCNP(flow FlowID, p PortID, dscp uint8) {
	s := w.s
	r := &s.rx[flow]
	pk := s.pool.get()
	tos := dscp << 2
	q := s.switches[w.i].dscp[dscp&63]
	s.pool.pkts[pk] = packet{flow: int32(flow), hash: r.hash, dst: r.home, size: cnpFrame, tos: tos, kf: kindFlags(kindCNP, 0, q)}
	s.made[kindCNP]++
	s.emit(int32(p), int32(q), pk)
}

// cnpFrame is a RoCEv2 notification with its FCS.
const cnpFrame = 78

// CE reports whether the frame is marked.
func (f Frame) CE() bool { return f.packet().tos&ecnMask == ecnCE }

// IsCNP reports whether it is a notification, IsAnswer whether it is an ACK or NACK.
func (f Frame) IsCNP() bool    { return f.packet().kind() == kindCNP }
func (f Frame) IsAnswer() bool { k := f.packet().kind(); return k == kindAck || k == kindNack }

// Queue gives the class in which it waits or waited.
func (f Frame) Queue() int { return int(f.packet().kf >> prioShift) }

var fastCNPMechanism = Mechanism{Part: PartStage, Kind: "fast-cnp",
	About: "the switch that marks a frame notifies its sender at once, in place of the receiver",
	New: func() Settings {
		return &FastCNP{Every: 50 * Microsecond, Age: Second, OnArriving: true, DSCP: 48, Flows: 16384}
	}}

// FastCNP answers marks where they are made.
type FastCNP struct {
	Every      Time  `yaml:"every" about:"least time between the notifications of a flow; the receiver's are taken out meanwhile"`
	Age        Time  `yaml:"age" about:"a flow that sent nothing for this long is forgotten"`
	OnArriving bool  `yaml:"on-arriving-ce" about:"answers frames that were marked before they came, too"`
	DSCP       uint8 `yaml:"dscp" about:"DSCP of its notifications"`
	Flows      int   `yaml:"flows" about:"entries of the flow table"`
	Known      bool  `yaml:"known" about:"all flows are usable from their first frame on, as if a connection had been set up through this switch"`
}

// Check refuses what cannot run.
func (c *FastCNP) Check() error {
	if c.Every <= 0 || c.Age <= 0 || c.DSCP > 63 || c.Flows < 1 {
		return fmt.Errorf("fast-cnp: want times above 0, a DSCP of 0..63 and a flow table")
	}
	return nil
}

// Stage makes that of a switch.
func (c *FastCNP) Stage(Switch) (Stage, error) {
	return &fastCNP{par: c, flows: map[FlowID]*cnpFlow{}}, nil
}

// cnpFlow is a flow that a switch may answer for. Its frames name only the receiver's queue
// pair: the switch learns the sender's from the first ACK or notification on the way back.
type cnpFlow struct {
	usable bool
	sent   Time // the last notification; never before the first
	seen   Time
}

type fastCNP struct {
	par                               *FastCNP
	flows                             map[FlowID]*cnpFlow
	made, dropped, notUsable, tooMany uint64
}

func (c *fastCNP) Tapped() bool { return true }

// entry finds the flow of a frame, or makes room for it.
func (c *fastCNP) entry(id FlowID, now Time) *cnpFlow {
	e := c.flows[id]
	if e == nil {
		if len(c.flows) >= c.par.Flows {
			for k, old := range c.flows { // those of age make room
				if now-old.seen > c.par.Age {
					delete(c.flows, k)
				}
			}
			if len(c.flows) >= c.par.Flows {
				c.tooMany++
				return nil
			}
		}
		e = &cnpFlow{sent: -c.par.Every}
		c.flows[id] = e
	}
	if now-e.seen > c.par.Age {
		*e = cnpFlow{sent: -c.par.Every}
	}
	e.seen = now
	e.usable = e.usable || c.par.Known
	return e
}

// Arrive learns from what goes back, and takes out notifications that it has answered itself.
func (c *fastCNP) Arrive(sw Switch, f Frame, _, _ PortID) int {
	if !f.IsCNP() && !f.IsAnswer() {
		return PassOn
	}
	e := c.entry(f.Flow(), sw.Now())
	if e == nil {
		return PassOn
	}
	e.usable = true
	if f.IsCNP() && sw.Now()-e.sent < c.par.Every {
		c.dropped++
		return TakeIt
	}
	return PassOn
}

// Leave answers a marked frame.
func (c *fastCNP) Leave(sw Switch, f Frame, in, _ PortID, _ int, _ int64) {
	if !f.IsData() || !f.CE() {
		return
	}
	e := c.entry(f.Flow(), sw.Now())
	switch {
	case e == nil:
	case !e.usable:
		c.notUsable++
	case sw.Now()-e.sent >= c.par.Every:
		e.sent = sw.Now()
		c.made++
		sw.SendCNP(f.Flow(), in, c.par.DSCP)
	}
}

func (c *fastCNP) Counters(put func(string, uint64)) {
	put("fast-cnp.sent", c.made)
	put("fast-cnp.np-dropped", c.dropped)
	put("fast-cnp.flows", uint64(len(c.flows)))
	put("fast-cnp.not-usable", c.notUsable)
	put("fast-cnp.full", c.tooMany)
}
