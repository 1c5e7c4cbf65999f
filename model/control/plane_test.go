package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/snsd"
)

// rig is two access switches l0 and l1 with a reflector s0 between them and one more
// way around it (s1, a mere switch); i0 and i1 on l0, t0 and t1 on l1.
type rig struct {
	t     interface{ Fatal(...any) }
	s     *model.Sim
	p     *Plane
	node  map[string]model.NodeID
	link  map[string]model.LinkID
	acts  []string
	using map[string]bool
}

func newRig(t interface{ Fatal(...any) }, change func(*Config, *rig)) *rig {
	r := &rig{t: t, node: map[string]model.NodeID{}, link: map[string]model.LinkID{}, using: map[string]bool{}}
	net := &model.Network{}
	// Pauses run out: where XON may be lost, one without end would last for ever.
	sw, nic := model.ReferenceSwitch(4<<20, nil), model.ReferenceNIC(nil)
	sw.PFC.Quanta, nic.PFC.Quanta = 65535, 65535
	for _, n := range []string{"l0", "l1", "s0", "s1"} {
		r.node[n] = net.AddSwitch(n, sw)
	}
	for _, n := range []string{"i0", "i1", "t0", "t1"} {
		r.node[n] = net.AddHost(n, nic)
	}
	for _, l := range [][2]string{{"i0", "l0"}, {"i1", "l0"}, {"t0", "l1"}, {"t1", "l1"}, {"l0", "s0"}, {"l1", "s0"}, {"l0", "s1"}, {"l1", "s1"}} {
		id, err := net.Connect(r.node[l[0]], r.node[l[1]], model.LinkSpec{Rate: 10 * model.Gbps, Delay: model.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		r.link[l[0]+"-"+l[1]] = id
	}
	s, err := net.Build(model.Options{Seed: 7, Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	r.s = s
	cfg := Default()
	cfg.Seed = 7
	cfg.Reflectors = []model.NodeID{r.node["s0"]}
	cfg.Hosts = map[model.NodeID]Host{}
	for _, n := range []string{"i0", "i1"} {
		cfg.Hosts[r.node[n]] = Host{Role: snsd.RoleInitiator}
	}
	for _, n := range []string{"t0", "t1"} {
		cfg.Hosts[r.node[n]] = Host{Role: snsd.RoleTarget}
	}
	cfg.OnNotice = func(a Act) error {
		pair := s.NodeName(a.Host) + ">" + s.NodeName(s.EndpointNode(a.Subject))
		r.using[pair] = a.Use
		r.acts = append(r.acts, fmt.Sprintf("%s %v", pair, a.Use))
		return nil
	}
	if change != nil {
		change(&cfg, r)
	}
	if r.p, err = New(s, cfg, 1); err != nil {
		t.Fatal(err)
	}
	s.SetHandler(r)
	r.p.Start()
	return r
}

func (r *rig) FlowDone(*model.Sim, model.FlowID) {}
func (r *rig) Timer(_ *model.Sim, tag uint64) {
	if err := r.p.Timer(); err != nil || !r.p.Owns(tag) {
		r.t.Fatal(err, tag)
	}
}
func (r *rig) Control(_ *model.Sim, p model.PortID, b []byte) { r.p.Control(p, b) }
func (r *rig) Carrier(_ *model.Sim, p model.PortID, _ bool)   { r.p.Carrier(p) }
func (r *rig) fault(what string)                              { r.p.Note(Step{At: r.s.Now(), Step: StepFault, What: what}) }
func (r *rig) cable(name string, whole bool)                  { r.p.SetCable(r.link[name], whole) }
func (r *rig) steps(step string) (n int)                      { return len(r.p.find(step)) }
func (p *Plane) find(step string) (out []Step) {
	for _, s := range p.log {
		if s.Step == step {
			out = append(out, s)
		}
	}
	return out
}

// pass lets time pass, checking the books of the fabric on the way.
func (r *rig) pass(d model.Time) {
	end := r.s.Now() + d
	for r.s.Now() < end {
		if err := r.s.Run(min(end, r.s.Now()+100*model.Millisecond)); err != nil {
			r.t.Fatal(err)
		}
		if err := r.s.CheckConservation(); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) forget() { r.acts = nil }

func (r *rig) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := strings.Join(r.acts, ", "); got != strings.Join(want, ", ") {
		t.Errorf("%s: hosts did %q, want %q", when, got, want)
	}
	r.forget()
}

// settled tells what is not as it is when all is well.
func (r *rig) settled() error {
	for _, st := range r.p.Report().Devices {
		want := len(r.p.cfg.Reflectors)
		if st.Name[0] == 's' {
			want = 2
		}
		if st.Sessions != want || st.Paths != 0 || !st.Running {
			return fmt.Errorf("%+v", st)
		}
	}
	for _, i := range []string{"i0", "i1"} {
		for _, t := range []string{"t0", "t1"} {
			if !r.using[i+">"+t] {
				return fmt.Errorf("%s does not use %s", i, t)
			}
		}
	}
	return nil
}

// All comes together, and every host learns of every array.
func TestControlPlaneComesUp(t *testing.T) {
	r := newRig(t, nil)
	r.pass(5 * model.Second)
	if err := r.settled(); err != nil {
		t.Error(err)
	}
	if n := r.steps(StepDetected); n != 2 {
		t.Errorf("%d paths are up, want both ends of one: %v", n, r.p.find(StepDetected))
	}
	if d := r.s.Totals().Dropped; len(d) > 0 {
		t.Errorf("lost %v", d)
	}
}

// A cut at one switch is acted upon behind the other in the time that the parts take;
// when the link is back so is the path, after the restraint.
func TestCutAndReturn(t *testing.T) {
	r := newRig(t, nil)
	r.pass(5 * model.Second)
	r.forget()
	r.fault("cut")
	r.cable("t0-l1", false)
	r.pass(model.Second)
	r.expect(t, "cut", "i0>t0 false", "i1>t0 false")
	chains := r.p.Report().Chains
	if len(chains) != 2 || chains[0].Host != "i0" {
		t.Fatalf("%+v", chains)
	}
	want := []string{StepDetected, StepDecided, StepSent, StepReflected, StepReceived, StepFrameSent, StepFrameTaken, StepActs}
	var got []string
	last := 0.0
	for _, l := range chains[0].Links {
		got = append(got, l.Step.Step)
		if l.After < last {
			t.Errorf("%s comes before what it follows from", l.Step.Step)
		}
		last = l.After
	}
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("chain %q, want %q", got, want)
	}
	// 5 ms of carrier, the daemons of l1, s0 and l0 and the agent with 50 us each, the
	// host's millisecond, and some microseconds of wire.
	if last < 6.2 || last > 6.3 {
		t.Errorf("the host acted after %.3f ms", last)
	}
	at := r.s.Now()
	r.cable("t0-l1", true)
	r.pass(5 * model.Second)
	r.expect(t, "mended", "i0>t0 true", "i1>t0 true")
	acts := r.p.find(StepActs)
	if d := acts[len(acts)-1].At - at; d < 3*model.Second || d > 3020*model.Millisecond {
		t.Errorf("used again after %v", d)
	}
}

// The same when the access switch is the reflector itself, in either direction.
func TestCutWithReflectorAtTheEdge(t *testing.T) {
	for edge, want := range map[string][]string{
		"l0": {StepDetected, StepDecided, StepSent, StepReceived, StepFrameSent, StepFrameTaken, StepActs},
		"l1": {StepDetected, StepDecided, StepReflected, StepReceived, StepFrameSent, StepFrameTaken, StepActs},
	} {
		r := newRig(t, func(c *Config, r *rig) { c.Reflectors = []model.NodeID{r.node[edge]} })
		r.pass(5 * model.Second)
		r.forget()
		r.fault("cut")
		r.cable("t0-l1", false)
		r.pass(model.Second)
		r.expect(t, edge, "i0>t0 false", "i1>t0 false")
		var got []string
		for _, l := range r.p.Report().Chains[0].Links {
			got = append(got, l.Step.Step)
		}
		if strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("reflector %s: chain %q, want %q", edge, got, want)
		}
	}
}

// A path that turns black is found by BFD; the session with the reflector, cut off too,
// ends with its hold time, which tells nobody anything, and comes back.
func TestBlackPath(t *testing.T) {
	r := newRig(t, nil)
	r.pass(5 * model.Second)
	r.forget()
	at := r.s.Now()
	for _, l := range []string{"l1-s0", "l1-s1"} {
		r.s.SetMute(r.link[l], true, true)
	}
	r.pass(model.Second)
	r.expect(t, "black", "i0>t0 false", "i0>t1 false", "i1>t0 false", "i1>t1 false")
	down := r.p.find(StepDetected)
	if d := down[len(down)-1].At - at; d < 75*model.Millisecond || d > 155*model.Millisecond {
		t.Errorf("found after %v", d)
	}
	r.pass(15 * model.Second)
	r.expect(t, "later")
	if s := r.p.find(StepSession); !strings.Contains(s[len(s)-1].What, "nothing was received for 9s") {
		t.Errorf("sessions: %v", s)
	}
	for _, l := range []string{"l1-s0", "l1-s1"} {
		r.s.SetMute(r.link[l], false, false)
	}
	r.pass(20 * model.Second)
	if err := r.settled(); err != nil {
		t.Error(err)
	}
}

// A switch that dies takes its daemon along; back again it starts with what it had
// saved, and all is as before.
func TestSwitchDiesAndReturns(t *testing.T) {
	r := newRig(t, func(c *Config, _ *rig) { c.Boot = 2 * model.Second })
	r.pass(5 * model.Second)
	r.forget()
	r.p.KillSwitch(r.node["l1"])
	r.s.Reroute()
	r.pass(model.Second)
	r.expect(t, "dead", "i0>t0 false", "i0>t1 false", "i1>t0 false", "i1>t1 false")
	r.pass(20 * model.Second)
	r.expect(t, "still dead")
	r.p.ReviveSwitch(r.node["l1"])
	r.s.Reroute()
	r.pass(60 * model.Second)
	if err := r.settled(); err != nil {
		t.Error(err)
	}
}

// A daemon that crashes and starts again tells nobody anything, whether BFD goes on or
// the reflector forgets; what happened meanwhile it tells at once.
func TestDaemonRestarts(t *testing.T) {
	for _, name := range []string{"l0", "l1", "s0"} {
		r := newRig(t, nil)
		r.pass(5 * model.Second)
		told := r.steps(StepFrameTaken)
		r.p.StopDaemon(r.node[name])
		r.pass(3 * model.Second)
		r.p.StartDaemon(r.node[name])
		r.pass(200 * model.Second)
		if n := r.steps(StepFrameTaken) - told; n > 0 {
			t.Errorf("restart of %s: %d notices", name, n)
		}
		if err := r.settled(); err != nil {
			t.Error(err)
		}
	}
	r := newRig(t, nil)
	r.pass(5 * model.Second)
	r.forget()
	r.p.StopDaemon(r.node["l0"])
	r.cable("t0-l1", false)
	r.pass(3 * model.Second)
	r.expect(t, "while the daemon is away")
	r.p.StartDaemon(r.node["l0"])
	r.pass(3 * model.Second)
	r.expect(t, "the daemon is back", "i0>t0 false", "i1>t0 false")
}

// The death of the reflector is no fault of any host, and cables between switches
// that have another way are none either.
func TestReflectorDies(t *testing.T) {
	r := newRig(t, nil)
	r.pass(5 * model.Second)
	r.forget()
	r.p.KillSwitch(r.node["s0"])
	r.s.Reroute() // at once: BFD must not notice
	r.pass(60 * model.Second)
	r.expect(t, "reflector dead")
	r.p.ReviveSwitch(r.node["s0"])
	r.s.Reroute()
	r.pass(60 * model.Second)
	r.expect(t, "reflector back")
	if err := r.settled(); err != nil {
		t.Error(err)
	}
}

// Notices wait while the host pauses their class, and other hosts have theirs.
func TestNoticesArePausedWithTheirClass(t *testing.T) {
	r := newRig(t, nil)
	r.pass(5 * model.Second)
	r.forget()
	r.s.Storm(r.s.EndpointOf(r.node["i0"], 0), 1<<DefaultClass, 100*model.Microsecond, r.s.Now()+500*model.Millisecond)
	r.cable("t0-l1", false)
	r.pass(400 * model.Millisecond)
	r.expect(t, "storm", "i1>t0 false")
	r.pass(600 * model.Millisecond)
	r.expect(t, "after it", "i0>t0 false")
}

// A storm in another class is a fault of the port like any other, once detected.
func TestStormIsDetected(t *testing.T) {
	r := newRig(t, func(c *Config, _ *rig) {
		c.ErrorDown.PFCStorm.Detect, c.ErrorDown.PFCStorm.Deadlocks = 10*time.Millisecond, 1
	})
	r.pass(5 * model.Second)
	r.forget()
	r.s.Storm(r.s.EndpointOf(r.node["t0"], 0), 1<<3, 100*model.Microsecond, r.s.Now()+2*model.Second)
	r.pass(model.Second)
	r.expect(t, "storm", "i0>t0 false", "i1>t0 false")
	r.pass(45 * model.Second)
	r.expect(t, "over", "i0>t0 true", "i1>t0 true")
}

// Hosts without an agent are known and told nothing.
func TestHostsWithoutAgent(t *testing.T) {
	r := newRig(t, func(c *Config, r *rig) { delete(c.Hosts, r.node["i1"]) })
	r.pass(5 * model.Second)
	r.forget()
	r.cable("t0-l1", false)
	r.pass(model.Second)
	r.expect(t, "cut", "i0>t0 false")
	if _, known := r.p.Report().Devices[0].Counters["lldp"]; !known {
		t.Error("no counters of lldp")
	}
}

// Hosts learn of faults in their own zones only, and a zone that a host is in with
// nobody tells it nothing.
func TestZonesBoundNotices(t *testing.T) {
	r := newRig(t, func(c *Config, r *rig) {
		c.Zones = []Zone{{Name: "a", Hosts: []model.NodeID{r.node["i0"], r.node["t0"]}}, {Name: "b", Hosts: []model.NodeID{r.node["i1"], r.node["t1"]}}}
	})
	r.pass(5 * model.Second)
	r.expect(t, "start", "i0>t0 true", "i1>t1 true")
	r.cable("t0-l1", false)
	r.pass(model.Second)
	r.expect(t, "cut", "i0>t0 false")
}

// One seed, one run; another seed, another one.
func TestControlPlaneIsDeterministic(t *testing.T) {
	run := func(seed uint64) (uint64, string) {
		r := newRig(t, func(c *Config, _ *rig) { c.Seed = seed })
		r.s.SetLoss(r.link["l1-s0"], 0.05)
		r.pass(3 * model.Second)
		r.cable("t0-l1", false)
		r.p.KillSwitch(r.node["s1"])
		r.pass(3 * model.Second)
		return r.s.TraceHash(), r.p.Report().Hash
	}
	a, x := run(1)
	b, y := run(1)
	c, z := run(2)
	if a != b || x != y {
		t.Errorf("the same seed gave %x %s and %x %s", a, x, b, y)
	}
	if a == c || x == z {
		t.Error("another seed gave the same run")
	}
}

// Whatever breaks, however often, over links that lose frames: once all is mended
// everything is as it should be.
func TestControlPlaneHeals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(rt, func(c *Config, r *rig) {
			c.Boot = model.Second
			c.Seed = rapid.Uint64().Draw(rt, "seed")
			if rapid.Bool().Draw(rt, "two reflectors") {
				c.Reflectors = append(c.Reflectors, r.node["s1"])
			}
			c.React.Restraint = model.Millisecond
			c.Carrier = model.Time(rapid.IntRange(0, 50).Draw(rt, "carrier")) * model.Millisecond
			c.Processing = model.Time(rapid.IntRange(0, 2000).Draw(rt, "processing")) * model.Microsecond
		})
		links := []string{"i0-l0", "t0-l1", "l0-s0", "l1-s0", "l0-s1", "l1-s1"}
		switches := []string{"l0", "l1", "s0", "s1"}
		for range rapid.IntRange(1, 8).Draw(rt, "faults") {
			r.pass(model.Time(rapid.IntRange(1, 4000).Draw(rt, "wait")) * model.Millisecond)
			l := r.link[rapid.SampledFrom(links).Draw(rt, "link")]
			sw := r.node[rapid.SampledFrom(switches).Draw(rt, "switch")]
			switch rapid.IntRange(0, 8).Draw(rt, "what") {
			case 0:
				r.p.SetCable(l, false)
			case 1:
				r.p.SetCable(l, true)
			case 2:
				r.s.SetMute(l, rapid.Bool().Draw(rt, "a"), rapid.Bool().Draw(rt, "b"))
			case 3:
				r.s.SetLoss(l, 0.3)
			case 4:
				r.p.KillSwitch(sw)
			case 5:
				r.p.ReviveSwitch(sw)
			case 7:
				r.p.StopDaemon(sw)
			case 8:
				r.p.StartDaemon(sw)
			case 6:
				r.s.Storm(0, 0xff, 100*model.Microsecond, r.s.Now()+3*model.Second)
			}
			r.s.Reroute()
		}
		for _, n := range links {
			r.s.SetMute(r.link[n], false, false)
			r.s.SetLoss(r.link[n], 0)
			r.p.SetCable(r.link[n], true)
		}
		for _, n := range switches {
			r.p.ReviveSwitch(r.node[n])
			r.p.StartDaemon(r.node[n])
		}
		r.s.Reroute()
		for range 30 {
			r.pass(10 * model.Second)
			if r.settled() == nil {
				return
			}
		}
		rt.Fatal(r.settled())
	})
}

func TestBadConfigsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Config, *rig){
		"no reflectors": func(c *Config, _ *rig) { c.Reflectors = nil },
		"not a switch":  func(c *Config, r *rig) { c.Reflectors = []model.NodeID{r.node["i0"]} },
		"carrier":       func(c *Config, _ *rig) { c.Carrier = -1 },
		"processing":    func(c *Config, _ *rig) { c.Processing = model.Second + 1 },
		"class":         func(c *Config, _ *rig) { c.Class = 8 },
		"DSCP":          func(c *Config, _ *rig) { c.DSCP = 64 },
		"registration":  func(c *Config, _ *rig) { c.Register = 0 },
		"BFD":           func(c *Config, _ *rig) { c.Timers.MinTx = time.Hour },
		"hold":          func(c *Config, _ *rig) { c.Hold = time.Millisecond },
		"storm":         func(c *Config, _ *rig) { c.ErrorDown.PFCStorm.Detect = time.Hour },
		"zone":          func(c *Config, r *rig) { c.Zones = []Zone{{Name: "", Hosts: []model.NodeID{r.node["i0"]}}} },
	} {
		r := newRig(t, nil)
		cfg := r.p.cfg
		change(&cfg, r)
		if _, err := New(r.s, cfg, 1); err == nil {
			t.Errorf("%s: accepted", name)
		} else if name != "zone" && !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
