package hostagent

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Measure is what is done about a path that a notice calls inactive.
type Measure uint8

// The measures.
const (
	Nothing Measure = iota
	Destroy         // end its TCP sockets; over RDMA reset its controllers
	Reset           // reset its controllers
	Probe           // ask its controllers for an answer for a while; the first that gives none is left as by Destroy
	Ask             // ask them, and leave the rest to the kernel: the existing agent's way
	Avoid           // have its I/O take other paths while it answers, and ask it meanwhile as by Probe
	Forget          // delete its controllers, where they may be deleted
	Remove          // delete them whosever they are and whether they answer or not: the existing agent's way
)

var measureNames = []string{"nothing", "destroy", "reset", "probe", "ask", "avoid", "forget", "remove"}

func (m Measure) String() string { return measureNames[m] }

// kind is that of the action which the measure leads to.
func (m Measure) kind() string {
	switch m {
	case Destroy, Reset:
		return "failover"
	case Remove:
		return "forget"
	}
	return m.String()
}

// MarshalText gives the name.
func (m Measure) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (m *Measure) UnmarshalText(b []byte) error {
	i := slices.Index(measureNames, string(b))
	if i < 0 {
		return fmt.Errorf("%q: want one of %v", b, measureNames)
	}
	*m = Measure(i)
	return nil
}

// Policy is what an Actor does about what it is told.
type Policy struct {
	By      map[snsd.Reason]Measure // missing: Nothing
	OwnLink Measure                 // Nothing, Destroy or Ask, when a port of this host loses its carrier
	Foreign bool                    // leave dead paths of controllers that are not ours too

	Owner          string   // our name in the registry
	Named          []string // subsystems whose controllers may be deleted though they are not ours
	RemoveLastPath bool
	DeleteAfter    time.Duration // between a notice and forgetting

	Connect   bool                              // connect targets that are active
	Restraint time.Duration                     // until a controller that vanished is connected again
	Options   hostkernel.Connect                // of new controllers: identity and numbers; transport, addresses and name are filled in
	Of        map[netip.Addr]hostkernel.Connect // instead of them, for those from one address
	Port      uint16                            // of targets that name none; 0: the protocol's

	Fence     FenceMode     // what must be known before a path is left
	FenceWait time.Duration // for a fence, from the notice
	Settle    []Settle      // what the operator says of arrays
	Observe   bool          // touch no controller and call no hook: report what would be done
}

// Settle is how long a write may wait in an array, and be executed there, at most.
type Settle struct {
	NQN  string // of the subsystem; empty: any
	Addr netip.Addr
	Time time.Duration
}

// settle is how long a write may wait in the array of a controller, and whether that is known. Of
// several that name it the longest counts.
func (p *Policy) settle(c *hostkernel.Controller) (longest time.Duration, known bool) {
	for _, s := range p.Settle {
		if s.NQN == c.NQN && s.NQN != "" || s.Addr == c.Target.Addr() && s.Addr.IsValid() {
			longest, known = max(longest, s.Time), true
		}
	}
	return longest, known
}

// Times of controllers that are connected with FenceRequire: the kernel would leave a path unfenced
// while the array still ends what it executes.
const (
	patientKeepAlive = 120 // s
	patientIO        = 120 // s
)

// patient returns a new controller long times where the operator set none. Where a settle is known of
// the array its keep-alive stays, so that a switch's block can outlast it: then "network" and the
// settle are the fence.
func (p *Policy) patient(c *hostkernel.Connect) {
	if _, known := p.settle(&hostkernel.Controller{NQN: c.NQN, Target: c.Target}); c.KeepAlive == nil && !known {
		t := patientKeepAlive
		c.KeepAlive = &t
	}
	if c.IOTimeout == nil {
		t := patientIO
		c.IOTimeout = &t
	}
}

// DefaultFenceWait is how long a fence is waited for.
const DefaultFenceWait = time.Second

// DefaultOwner is our name in the registry.
const DefaultOwner = "snsd"

// DefaultPolicy is what fits production.
func DefaultPolicy() Policy {
	return Policy{
		By: map[snsd.Reason]Measure{
			snsd.ReasonLinkDown: Destroy, snsd.ReasonPFCStorm: Destroy, snsd.ReasonBFDDown: Destroy, snsd.ReasonPacketError: Probe,
			snsd.ReasonZoneChanged: Forget, snsd.ReasonIPChanged: Forget, snsd.ReasonAgedOut: Forget,
		},
		Foreign: true, OwnLink: Destroy, Owner: DefaultOwner, Restraint: snsd.DefaultRestraint, FenceWait: DefaultFenceWait,
	}
}

// ExistingPolicy is the method of the existing agent.
func ExistingPolicy() Policy {
	p := DefaultPolicy()
	p.OwnLink, p.Fence = Ask, FenceOff
	p.By = map[snsd.Reason]Measure{
		snsd.ReasonLinkDown: Ask, snsd.ReasonPFCStorm: Ask, snsd.ReasonPacketError: Ask, snsd.ReasonBFDDown: Ask,
		snsd.ReasonZoneChanged: Remove, snsd.ReasonIPChanged: Remove, snsd.ReasonAgedOut: Remove,
	}
	return p
}

// ours reports whether we may delete a controller.
func (p *Policy) ours(c *hostkernel.Controller) bool {
	return c.Owner == p.Owner || slices.Contains(p.Named, c.NQN)
}

// mayLeave reports whether we may have a controller's I/O take another path.
func (p *Policy) mayLeave(c *hostkernel.Controller) bool {
	return !c.Discovery && (p.Foreign || p.ours(c))
}
