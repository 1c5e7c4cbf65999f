package control

import (
	"fmt"

	"github.com/openinof/inof/model"
)

// Plane is a control plane at work. It is a part of a model.Handler: the owner passes
// on Timer with the Plane's tag, Control and Carrier, and breaks switches and cables
// through it, so that what runs in them shares their fate.
type Plane struct {
	clock
	cfg     Config
	tos     uint8
	rng     model.RNG
	devices []*device // by node; nil: a host, or a switch that runs nothing
	hosts   []*host   // by node; nil: a switch
	ports   []side    // by port
	cut     map[model.LinkID]bool
	shut    map[model.PortID]bool
	log     []Step
	room    int // how long the log may become
	skipped uint64
	hash    uint64
	err     error
}

// side is what the owner of a port was told of its carrier.
type side struct {
	told    bool
	pending bool // a change is on its way through hardware and kernel
}

// New prepares a control plane on a built fabric, whose switches it gives addresses.
// Tag is that of its timers. Start begins it.
func New(s *model.Sim, cfg Config, tag uint64) (*Plane, error) {
	if err := cfg.check(s); err != nil {
		return nil, err
	}
	if s.Nodes() > maxSwitchNode {
		return nil, fmt.Errorf("%w: %d nodes, at most %d", ErrConfig, s.Nodes(), maxSwitchNode)
	}
	if err := s.AddressSwitches(); err != nil {
		return nil, err
	}
	p := &Plane{clock: clock{sim: s, tag: tag}, cfg: cfg, tos: uint8(cfg.DSCP << 2), rng: model.RNG(cfg.Seed ^ 0x6e6f662b),
		devices: make([]*device, s.Nodes()), hosts: make([]*host, s.Nodes()), cut: map[model.LinkID]bool{}, shut: map[model.PortID]bool{}}
	for n := range model.NodeID(s.Nodes()) {
		for k := range s.Ports(n) {
			for len(p.ports) <= int(s.PortOf(n, k)) {
				p.ports = append(p.ports, side{})
			}
			p.ports[s.PortOf(n, k)].told = s.LinkUp(s.PortOf(n, k))
		}
		if !s.IsSwitch(n) {
			p.hosts[n] = newHost(p, n)
		}
	}
	islands := p.islands()
	for n := range model.NodeID(s.Nodes()) {
		if s.IsSwitch(n) {
			p.devices[n] = newDevice(p, n, islands)
		}
	}
	return p, nil
}

// islands numbers the parts of the fabric that have no link between them, by node.
func (p *Plane) islands() []int {
	s := p.sim
	of := make([]int, s.Nodes())
	next := 0
	for n := range of {
		if of[n] != 0 || !s.IsSwitch(model.NodeID(n)) {
			continue
		}
		next++
		todo := []model.NodeID{model.NodeID(n)}
		of[n] = next
		for len(todo) > 0 {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for k := range s.Ports(at) {
				m := s.PortNode(s.Peer(s.PortOf(at, k)))
				if s.IsSwitch(m) && of[m] == 0 { // hosts do not route
					of[m] = next
					todo = append(todo, m)
				}
			}
		}
	}
	return of
}

// bootSpread is the time within which all switches start at the beginning, and then
// all hosts: one that speaks before its switch listens is known 30 s later.
const bootSpread = 100 * model.Millisecond

// Start begins the run.
func (p *Plane) Start() {
	for _, d := range p.devices {
		if d != nil {
			if p.cfg.LosslessFollows && (len(d.access) > 0 || d.reflects) {
				p.sim.SetLossless(d.node, 0)
			}
			p.after(p.between(bootSpread), d.start)
		}
	}
	for _, h := range p.hosts {
		if h != nil {
			p.after(bootSpread+p.between(bootSpread), h.start)
		}
	}
}

// between draws a time below most.
func (p *Plane) between(most model.Time) model.Time {
	return model.Time(p.rng.Uint64() % uint64(most))
}

// unit draws a number in [0, 1).
func (p *Plane) unit() float64 { return p.rng.Float64() }

// Owns reports whether a timer is the Plane's.
func (p *Plane) Owns(tag uint64) bool { return tag == p.tag }

// Timer takes a timer of the Plane.
func (p *Plane) Timer() error {
	p.fire()
	return p.err
}

// failed keeps the first error; it is returned by the next Timer.
func (p *Plane) failed(err error) {
	if err != nil && p.err == nil {
		p.err = err
		p.after(0, func() {})
	}
}

// Control takes a control frame off the wire.
func (p *Plane) Control(port model.PortID, frame []byte) {
	n := p.sim.PortNode(port)
	if h := p.hosts[n]; h != nil {
		h.frame(port, frame)
	} else {
		p.devices[n].frame(port, frame)
	}
}

// Carrier takes a change of carrier. Its owner is told after the delay of hardware and
// kernel, and only when it is still so: what is shorter is not seen.
func (p *Plane) Carrier(port model.PortID) {
	sd := &p.ports[port]
	if sd.pending {
		return
	}
	sd.pending = true
	p.after(p.cfg.Carrier, func() {
		sd.pending = false
		is := p.sim.LinkUp(port)
		if sd.told == is {
			return
		}
		sd.told = is
		n := p.sim.PortNode(port)
		if h := p.hosts[n]; h != nil {
			h.carrier(port, is)
		} else {
			p.devices[n].carrier(port, is)
		}
	})
}

// SetCable cuts a cable or mends it. A port that is shut keeps its link down.
func (p *Plane) SetCable(l model.LinkID, whole bool) {
	p.cut[l] = !whole
	p.light(l)
}

// light gives a link the state that its cable, its ports and its ends make of it.
func (p *Plane) light(l model.LinkID) {
	a, b := p.sim.LinkPorts(l)
	p.sim.SetLink(l, !p.cut[l] && !p.shut[a] && !p.shut[b] && !p.dead(a) && !p.dead(b))
}

func (p *Plane) dead(port model.PortID) bool {
	d := p.devices[p.sim.PortNode(port)]
	return d != nil && d.dead
}

// KillSwitch takes a switch and all that runs in it.
func (p *Plane) KillSwitch(n model.NodeID) {
	if d := p.devices[n]; d != nil && !d.dead {
		d.dead = true
		d.stop()
	}
	p.sim.KillSwitch(n)
}

// StopDaemon ends the daemon of a switch as a crash does.
func (p *Plane) StopDaemon(n model.NodeID) {
	if d := p.devices[n]; d != nil && d.running {
		d.crash()
	}
}

// StartDaemon starts it again.
func (p *Plane) StartDaemon(n model.NodeID) {
	if d := p.devices[n]; d != nil {
		d.start()
	}
}

// ReviveSwitch brings a dead switch back: its links at once, its daemon later.
func (p *Plane) ReviveSwitch(n model.NodeID) {
	d := p.devices[n]
	if d == nil || !d.dead {
		return
	}
	d.dead = false
	p.sim.ReviveSwitch(n)
	for k := range p.sim.Ports(n) {
		p.light(p.sim.LinkOf(p.sim.PortOf(n, k)))
	}
	life := d.life
	p.after(p.cfg.Boot, func() {
		if d.life == life && !d.dead {
			d.start()
		}
	})
}
