package scenario

import (
	"cmp"
	"fmt"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/control"
	"github.com/openinof/inof/model/reduce"
	"github.com/openinof/inof/snsd"
)

// Control is the control plane of a scenario: which switches reflect, who shares a
// zone, how quick hardware, daemons and hosts are. What is not said is as inofd and
// the host agent have it.
type Control struct {
	Line           int
	Reflectors     []string    `yaml:"reflectors"`      // switches
	Zones          []HostZone  `yaml:"zones"`           // none: one zone of all hosts
	Agents         []string    `yaml:"agents"`          // hosts that are told of faults; default all
	Carrier        *model.Time `yaml:"carrier-delay"`   // from the loss of light to the event
	Processing     *model.Time `yaml:"processing"`      // of a switch's daemon for one event
	HostProcessing *model.Time `yaml:"host-processing"` // of a host's agent
	Boot           *model.Time `yaml:"boot"`            // from the return of a switch to the start of its daemon
	Hold           model.Time  `yaml:"hold"`            // of sessions
	Keepalive      model.Time  `yaml:"keepalive"`
	Register       model.Time  `yaml:"register"` // between two registrations of a host
	BFD            *ControlBFD `yaml:"bfd"`
	Storm          *StormCause `yaml:"pfc-storm"`
	CRC            *CRCCause   `yaml:"crc"`
	React          *HostReacts `yaml:"hosts"`
	Class          *int        `yaml:"queue"`            // of LLDP and NTS frames
	DSCP           *int        `yaml:"dscp"`             // of sessions and BFD
	Follows        bool        `yaml:"lossless-follows"` // a switch protects its lossless classes only once it knows a storage host
}

// HostZone is a zone of hosts.
type HostZone struct {
	Line  int
	Name  string   `yaml:"name"`
	Hosts []string `yaml:"hosts"`
}

// ControlBFD are the timers of BFD between switches with hosts in common zones.
type ControlBFD struct {
	Line     int
	Off      bool       `yaml:"off"`
	Interval model.Time `yaml:"interval"`
	Mult     uint8      `yaml:"multiplier"`
}

// StormCause is when a port counts as stormed.
type StormCause struct {
	Line      int
	Action    string     `yaml:"action"` // notify (default), error-down, none
	Detect    model.Time `yaml:"detect"`
	Recover   model.Time `yaml:"recover"`
	Deadlocks int        `yaml:"deadlocks"`
	Window    model.Time `yaml:"window"`
	HoldUp    model.Time `yaml:"hold-up"`
}

// CRCCause is when damaged frames are a fault.
type CRCCause struct {
	Line       int
	Action     string     `yaml:"action"`
	Errors     int        `yaml:"errors"`
	Window     model.Time `yaml:"window"`
	PerMillion int        `yaml:"per-million"`
	HoldUp     model.Time `yaml:"hold-up"`
}

// HostReacts is what a host does about a notice.
type HostReacts struct {
	Line      int
	FailOver  *model.Time `yaml:"fail-over"` // until its system has stopped using the path
	Probe     model.Time  `yaml:"probe"`     // 0: it believes the notice; else a keep-alive command may take this long
	Restraint *model.Time `yaml:"restraint"` // from an active notice to using the path again
}

// tagControl is the load number that stands for the control plane in tags of timers.
const tagControl = 255

// control places the control plane on the fabric.
func (b *builder) control() {
	c := b.f.Control
	if c == nil {
		return
	}
	cfg := control.Default()
	cfg.Seed = b.f.Seed
	cfg.Reflectors = b.switchesNamed(c.Line, "control.reflectors", c.Reflectors)
	for i := range c.Zones {
		z := &c.Zones[i]
		cfg.Zones = append(cfg.Zones, control.Zone{Name: z.Name, Hosts: b.owners(z.Line, fmt.Sprintf("control.zones[%d].hosts", i), z.Hosts)})
	}
	initiators := map[model.NodeID]bool{}
	for _, n := range b.initiators {
		initiators[n] = true
	}
	cfg.Hosts = map[model.NodeID]control.Host{}
	for _, n := range b.agentNodes(c) {
		role := snsd.RoleTarget
		if initiators[n] {
			role = snsd.RoleInitiator
		}
		cfg.Hosts[n] = control.Host{Role: role}
	}
	for _, t := range []struct{ from, to *model.Time }{{c.Carrier, &cfg.Carrier}, {c.Processing, &cfg.Processing}, {c.HostProcessing, &cfg.HostProcessing}, {c.Boot, &cfg.Boot}} {
		setIf(t.to, t.from)
	}
	cfg.Hold, cfg.Keepalive = cmp.Or(c.Hold.Duration(), cfg.Hold), cmp.Or(c.Keepalive.Duration(), cfg.Keepalive)
	cfg.Register = cmp.Or(c.Register.Duration(), cfg.Register)
	if t := c.BFD; t != nil {
		iv := cmp.Or(t.Interval.Duration(), cfg.Timers.MinTx)
		cfg.BFD, cfg.Timers.MinTx, cfg.Timers.MinRx, cfg.Timers.DetectMult = !t.Off, iv, iv, cmp.Or(t.Mult, cfg.Timers.DetectMult)
	}
	b.causes(c, &cfg.ErrorDown)
	if r := c.React; r != nil {
		cfg.React.Probe = r.Probe
		setIf(&cfg.React.FailOver, r.FailOver)
		setIf(&cfg.React.Restraint, r.Restraint)
	}
	if c.Class != nil {
		cfg.Class = *c.Class
	}
	if c.DSCP != nil {
		cfg.DSCP = *c.DSCP
	}
	cfg.OnNotice, cfg.LosslessFollows = b.told, c.Follows
	if len(b.problems) > 0 {
		return
	}
	p, err := control.New(b.sim, cfg, tagControl<<56)
	if err != nil {
		b.problem(c.Line, "control", "%v", err)
		return
	}
	b.plane = p
}

// agentNodes gives the hosts that have an agent.
func (b *builder) agentNodes(c *Control) []model.NodeID {
	agents := c.Agents
	if agents == nil {
		agents = []string{"*"}
	}
	return b.owners(c.Line, "control.agents", agents)
}

func (b *builder) switchesNamed(line int, key string, names []string) []model.NodeID {
	var out []model.NodeID
	for _, name := range names {
		id, ok := b.nodes[name]
		if !ok || !b.sim.IsSwitch(id) {
			b.problem(line, key, "%q is not a switch", name)
			continue
		}
		out = append(out, id)
	}
	return out
}

// causes fills the thresholds of faults that are measured.
func (b *builder) causes(c *Control, out *errdown.Config) {
	if s := c.Storm; s != nil {
		out.PFCStorm = errdown.PFCStormConfig{Detect: s.Detect.Duration(), Recover: s.Recover.Duration(), Deadlocks: s.Deadlocks, Window: s.Window.Duration(),
			Reaction: b.reaction(s.Line, "control.pfc-storm", s.Action, s.HoldUp.Duration())}
	}
	if e := c.CRC; e != nil {
		out.CRC = errdown.CRCConfig{Errors: e.Errors, Window: e.Window.Duration(), PerMillion: e.PerMillion, Reaction: b.reaction(e.Line, "control.crc", e.Action, e.HoldUp.Duration())}
	}
}

func (b *builder) reaction(line int, key, action string, holdUp time.Duration) errdown.Reaction {
	r := errdown.Reaction{HoldUp: holdUp}
	switch action {
	case "", "notify":
		r.Response = errdown.RespondNotify
	case "error-down":
		r.Response = errdown.RespondShut
	case "none":
	default:
		b.problem(line, key+".action", "%q is not notify, error-down or none", action)
	}
	return r
}

// told is what a host does after a notice: with every load it has.
func (b *builder) told(a control.Act) error {
	for _, l := range b.loads {
		var err error
		switch {
		case a.Use:
			err = l.Up(a.Own, a.Subject)
		case a.Probe > 0:
			err = l.Ask(a.Own, a.Subject, a.Probe)
		default:
			err = l.Down(a.Own, a.Subject)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Carrier passes a change of carrier on to the control plane.
func (r runner) Carrier(s *model.Sim, p model.PortID, up bool) {
	if d := r.b.f.Reroute; d != nil && !up && s.ErrorDown(p) { // tables follow deadlock control
		s.At(s.Now()+*d, tagReroute)
	}
	if r.b.plane != nil {
		r.b.plane.Carrier(p)
	}
}

// Control passes a frame on to the control plane.
func (r runner) Control(s *model.Sim, p model.PortID, frame []byte) {
	if n, ok := reduce.Owns(frame); ok && n > 0 && n <= len(r.b.apps) {
		if j, ok := r.b.apps[n-1].(*reduce.Job); ok {
			r.failed(j.Control(s, p, frame))
		}
	} else if r.b.plane != nil {
		r.b.plane.Control(p, frame)
	}
}

// pauseTold is the least pause of a load that counts as one.
const pauseTold = 20 * model.Millisecond

// controlResults adds what the control plane did, and when I/O resumed after faults.
func (b *builder) controlResults(r *Result) {
	if b.plane == nil {
		return
	}
	type pause struct {
		load string
		from model.Time
	}
	seen := map[pause]bool{} // a pause may outlast the next fault
	for i := range b.faults {
		f := &b.faults[i]
		if f.spec.At > r.End {
			continue
		}
		for _, l := range b.loads {
			p := l.LongestPause(f.spec.At)
			if p.To == 0 || p.Span(r.End) < pauseTold || p.From > f.spec.At+model.Second || seen[pause{l.name, p.From}] {
				continue
			}
			seen[pause{l.name, p.From}] = true
			for _, h := range l.from {
				b.plane.Note(control.Step{At: p.To, Step: control.StepResumes, Node: l.name, To: b.sim.NodeName(h), What: fmt.Sprintf("after %.1f ms without I/O", p.Span(r.End).Seconds()*1e3)})
			}
		}
	}
	r.Control = b.plane.Report()
	n := 0
	for i, c := range r.Control.Chains {
		if i == 0 || c.Fault != r.Control.Chains[i-1].Fault {
			n++
		}
		for _, l := range c.Links {
			key := fmt.Sprintf("fault%d.%s.%s-ms", n, c.Host, metricName(l.Step.Step))
			r.Metrics[key] = l.After
		}
	}
	r.Metrics["notices"] = 0 // that hosts got after the first fault
	for _, st := range r.Control.Log {
		if st.Step == control.StepFrameTaken && len(r.Control.Chains) > 0 && st.At > r.Control.Chains[0].Fault.At {
			r.Metrics["notices"]++
		}
		if st.Step == control.StepLossless {
			r.Metrics["lossless."+st.Node+"-ms"] = st.At.Seconds() * 1e3
		}
	}
	r.Metrics["control-frames"], r.Metrics["control-frames-lost"] = float64(r.Totals.Created["control"]), float64(r.Totals.Created["control"]-r.Totals.Delivered["control"])
}

// metricName is a step in the name of a metric.
func metricName(step string) string {
	b := []byte(step)
	for i, c := range b {
		switch {
		case c == ' ' || c == '/':
			b[i] = '-'
		case c >= 'A' && c <= 'Z':
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
