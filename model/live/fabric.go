package live

import (
	"context"
	"sync"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/model"
)

// tick is how often virtual time catches up with the clock when nothing is sent;
// while control frames are on their way it does so every hurry.
const (
	tick  = time.Millisecond
	hurry = 20 * time.Microsecond
)

// Fabric is a simulation that follows the clock. Its methods may be called from any
// goroutine; the Sim must not be used directly while Run works.
type Fabric struct {
	mu      sync.Mutex
	sim     *model.Sim
	apps    model.Handler // what goes on in the fabric besides control planes; nil: nothing
	devices []*Device
	faulty  map[model.LinkID]bool
	dead    map[model.NodeID]bool
	began   time.Time
	behind  time.Duration // after the last catching up
	wake    chan struct{} // something was sent
}

// New makes a live fabric of a built simulation, whose handler it becomes. Apps, which
// may be nil, is told of flows, timers and messages; it is called with the fabric's
// lock held, by whoever makes time pass.
func New(sim *model.Sim, apps model.Handler) *Fabric {
	f := &Fabric{sim: sim, apps: apps, faulty: map[model.LinkID]bool{}, dead: map[model.NodeID]bool{}, wake: make(chan struct{}, 1)}
	for n := range sim.Nodes() {
		f.devices = append(f.devices, newDevice(f, model.NodeID(n)))
	}
	sim.SetHandler(f)
	return f
}

// Device gives a node's dataplane.
func (f *Fabric) Device(n model.NodeID) *Device { return f.devices[n] }

// Run lets virtual time follow the clock until ctx ends.
func (f *Fabric) Run(ctx context.Context) error {
	f.mu.Lock()
	f.began = time.Now().Add(-f.sim.Now().Duration())
	f.mu.Unlock()
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.wake:
		case <-timer.C:
		}
		flying, err := f.catchUp()
		if err != nil {
			return err
		}
		if flying {
			timer.Reset(hurry)
		} else {
			timer.Reset(tick)
		}
	}
}

// catchUp runs the simulation up to now; it reports whether control frames are on
// their way.
func (f *Fabric) catchUp() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.advance()
	return f.sim.ControlInFlight() > 0, err
}

// advance is catchUp under the lock. Before Run there is no clock to follow.
func (f *Fabric) advance() error {
	if f.began.IsZero() {
		return nil
	}
	now := model.FromDuration(time.Since(f.began))
	if now <= f.sim.Now() {
		return nil
	}
	err := f.sim.Run(now)
	f.behind = time.Since(f.began) - f.sim.Now().Duration()
	return err
}

// Behind tells how far virtual time is behind the clock, within Do: more than some
// milliseconds when the machine cannot simulate the load as fast as it happens.
func (f *Fabric) Behind() time.Duration { return f.behind }

// Do calls fn with the simulation at the present moment: to start flows, to break
// things that SetLink does not know, to read counters.
func (f *Fabric) Do(fn func(*model.Sim) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.advance(); err != nil {
		return err
	}
	return fn(f.sim)
}

// SetLink cuts a cable or mends it.
func (f *Fabric) SetLink(l model.LinkID, up bool) error {
	return f.Do(func(*model.Sim) error {
		f.SetCable(l, up)
		return nil
	})
}

// SetCable is SetLink for callers that are within Do or called by the simulation.
func (f *Fabric) SetCable(l model.LinkID, whole bool) {
	f.faulty[l] = !whole
	f.light(l)
}

// KillSwitch takes a switch down with all its links, as SetCable within Do.
func (f *Fabric) KillSwitch(n model.NodeID) {
	f.dead[n] = true
	f.sim.KillSwitch(n)
}

// ReviveSwitch brings it back.
func (f *Fabric) ReviveSwitch(n model.NodeID) {
	delete(f.dead, n)
	f.sim.ReviveSwitch(n)
	for k := range f.sim.Ports(n) {
		f.light(f.sim.LinkOf(f.sim.PortOf(n, k)))
	}
}

// Dead reports whether a switch is down, within Do.
func (f *Fabric) Dead(n model.NodeID) bool { return f.dead[n] }

// light gives a link the state that its cable, the administrators of both ends and
// the switches make of it.
func (f *Fabric) light(l model.LinkID) {
	a, b := f.sim.LinkPorts(l)
	na, nb := f.sim.PortNode(a), f.sim.PortNode(b)
	f.sim.SetLink(l, !f.faulty[l] && f.devices[na].port(a).AdminUp && f.devices[nb].port(b).AdminUp && !f.dead[na] && !f.dead[nb])
}

// Carrier takes a change of carrier of the simulation to the port's owner.
func (f *Fabric) Carrier(s *model.Sim, p model.PortID, up bool) {
	d := f.devices[s.PortNode(p)]
	port := d.port(p)
	port.Carrier = up
	d.tell(fabric.PortChanged, *port)
}

// FlowDone, Timer and Delivered make Fabric the simulation's handler.
func (f *Fabric) FlowDone(s *model.Sim, id model.FlowID) {
	if f.apps != nil {
		f.apps.FlowDone(s, id)
	}
}

// Timer passes a timer on.
func (f *Fabric) Timer(s *model.Sim, tag uint64) {
	if f.apps != nil {
		f.apps.Timer(s, tag)
	}
}

// Delivered passes a message on.
func (f *Fabric) Delivered(s *model.Sim, id model.FlowID, tag uint64) {
	if h, ok := f.apps.(model.MessageHandler); ok {
		h.Delivered(s, id, tag)
	}
}

// Control takes a control frame that reached a node.
func (f *Fabric) Control(s *model.Sim, p model.PortID, frame []byte) {
	f.devices[s.PortNode(p)].receive(p, frame)
}

func (f *Fabric) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
