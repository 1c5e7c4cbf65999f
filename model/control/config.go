package control

import (
	"errors"
	"fmt"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/virtual"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Config is a control plane on a fabric. Times are virtual.
type Config struct {
	// Reflectors are switches; each switch with hosts has sessions with all of them
	// that it can reach when the run begins.
	Reflectors []model.NodeID
	// Zones by the names of hosts; none: one zone of all hosts.
	Zones []Zone
	// Hosts by node; one that is not listed has no agent and sends plain LLDP.
	Hosts map[model.NodeID]Host
	Seed  uint64

	// Carrier is from the loss (or return) of light to the event that a control plane
	// gets: the PHY, the driver, the kernel.
	Carrier model.Time
	// Processing is how long a switch's daemon, and the agent of a host, is busy with
	// one event: a frame, a message, a change of a port. Events wait for each other.
	Processing, HostProcessing model.Time
	// Boot is from the return of a dead switch to the start of its daemon.
	Boot model.Time

	Hold, Keepalive time.Duration   // of sessions; 0: inof's defaults
	BFD             bool            // whether paths between devices are watched
	Timers          bfd.Timers      // of BFD; 0: bfd's defaults
	ErrorDown       errdown.Config  // thresholds of faults of ports
	Register        time.Duration   // between two registrations of a host; 0: 30 s
	Class           int             // queue of link-local frames
	DSCP            int             // of routed ones
	React           Reaction        // of hosts with an agent
	OnNotice        func(Act) error // what a host does; called when it does it
	// LosslessFollows has each switch with a daemon protect its lossless classes only once it knows
	// a storage host, here or elsewhere. It goes on when that one is gone: silence is no reason to
	// lose frames.
	LosslessFollows bool
}

// Zone is a zone of hosts, all their ports included.
type Zone struct {
	Name  string
	Hosts []model.NodeID
}

// Host is a host with an agent.
type Host struct {
	Role snsd.Role
}

// Reaction is what a host makes of a notice. FailOver is how long its system takes to
// stop using a path. Probe > 0: of notices that do not take the controller away
// (reasons 1, 2, 3 and 7) it first believes nothing but sends a keep-alive command, and
// fails over when that is not answered in this time. Restraint is how long it waits
// before it uses a path again that was told active.
type Reaction struct {
	FailOver, Probe, Restraint model.Time
}

// Act is what a host does about a path after a notice.
type Act struct {
	Host         model.NodeID
	Own, Subject model.EndpointID
	Use          bool       // use the path again
	Probe        model.Time // do not use it unless it answers within this time; 0: do not use it
}

// Defaults. Processing is what the daemon takes for one event on the machine of
// docs/performance.md: fault to notice over two devices and a reflector takes 0.45 ms
// with some 0.16 ms in the kernel, the rest being six events. Carrier is an assumption
// about hardware (interrupt-driven PHYs and drivers take 1 to 10 ms; the kernel's part
// is 0.2 ms), and so is FailOver.
const (
	DefaultCarrier        = 5 * model.Millisecond
	DefaultProcessing     = 50 * model.Microsecond
	DefaultHostProcessing = 50 * model.Microsecond
	DefaultBoot           = 10 * model.Second
	DefaultFailOver       = model.Millisecond
	DefaultRestraint      = 3 * model.Second // snsd.DefaultRestraint
	DefaultClass          = 7
	DefaultDSCP           = 48 // CS6, network control
	maxProcessing         = model.Second
)

// DefaultBFD are the timers of BFD.
var DefaultBFD = bfd.Timers{MinTx: 50 * time.Millisecond, MinRx: 50 * time.Millisecond, DetectMult: 3}

// Default is a Config without reflectors and hosts.
func Default() Config {
	return Config{
		Carrier: DefaultCarrier, Processing: DefaultProcessing, HostProcessing: DefaultHostProcessing, Boot: DefaultBoot,
		Hold: wire.DefaultHold, Keepalive: wire.DefaultKeepalive, BFD: true, Timers: DefaultBFD, Register: snsd.DefaultRegisterInterval,
		ErrorDown: errdown.Config{
			PFCStorm: errdown.PFCStormConfig{Reaction: errdown.Reaction{Response: errdown.RespondNotify}},
			CRC:      errdown.CRCConfig{Reaction: errdown.Reaction{Response: errdown.RespondNotify}},
		},
		Class: DefaultClass, DSCP: DefaultDSCP, React: Reaction{FailOver: DefaultFailOver, Restraint: DefaultRestraint},
	}
}

// ErrConfig is wrapped by every error about a Config.
var ErrConfig = errors.New("control plane")

func (c *Config) check(s *model.Sim) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	if len(c.Reflectors) == 0 {
		return bad("no reflectors: one switch at least must reflect")
	}
	for i, r := range c.Reflectors {
		if r < 0 || int(r) >= s.Nodes() || !s.IsSwitch(r) {
			return bad("reflector %d is not a switch", i)
		}
	}
	for _, t := range []struct {
		what string
		v    model.Time
		most model.Time
	}{{"carrier delay", c.Carrier, 10 * model.Second}, {"processing", c.Processing, maxProcessing}, {"host processing", c.HostProcessing, maxProcessing},
		{"boot", c.Boot, 3600 * model.Second}, {"fail-over", c.React.FailOver, 3600 * model.Second}, {"probe", c.React.Probe, 3600 * model.Second}, {"restraint", c.React.Restraint, 3600 * model.Second}} {
		if t.v < 0 || t.v > t.most {
			return bad("%s of %v, want 0..%v", t.what, t.v, t.most)
		}
	}
	switch {
	case c.Class < 0 || c.Class >= model.NumQueues:
		return bad("class %d, want 0..%d", c.Class, model.NumQueues-1)
	case c.DSCP < 0 || c.DSCP > 63:
		return bad("DSCP %d, want 0..63", c.DSCP)
	case c.Register < time.Second || c.Register > time.Hour:
		return bad("registration every %v, want 1s..1h", c.Register)
	}
	if err := c.Timers.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if _, err := link.NewSession(link.SessionConfig{Self: deviceAddr(0), Auth: auth, Hold: c.Hold, Keepalive: c.Keepalive}, virtual.Wall(0)); err != nil {
		return fmt.Errorf("%w: sessions: %w", ErrConfig, err)
	}
	if err := c.ErrorDown.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c.zones(s).Validate()
}

// zones gives the configuration of the reflectors.
func (c *Config) zones(s *model.Sim) zone.Set {
	set := zone.Set{}
	list := c.Zones
	if len(list) == 0 {
		all := Zone{Name: "all"}
		for n := range s.Nodes() {
			if !s.IsSwitch(model.NodeID(n)) {
				all.Hosts = append(all.Hosts, model.NodeID(n))
			}
		}
		list = []Zone{all}
	}
	for _, z := range list {
		out := zone.Zone{Name: z.Name}
		for _, h := range z.Hosts {
			for k := range s.Ports(h) {
				out.Members = append(out.Members, zone.Member{Kind: zone.MemberAddr, First: HostAddr(s.EndpointOf(h, k))})
			}
		}
		set.Zones = append(set.Zones, out)
	}
	return set.Canonical()
}
