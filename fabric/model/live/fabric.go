package live

import (
	"context"
	"sync"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/model"
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
	devices []*Device
	faulty  map[model.LinkID]bool
	began   time.Time
	wake    chan struct{} // something was sent
}

// New makes a live fabric of a built simulation, whose handler it becomes.
func New(sim *model.Sim) *Fabric {
	f := &Fabric{sim: sim, faulty: map[model.LinkID]bool{}, wake: make(chan struct{}, 1)}
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

// catchUp runs the simulation up to now; it tells whether control frames are on
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
	if now := model.FromDuration(time.Since(f.began)); now > f.sim.Now() {
		return f.sim.Run(now)
	}
	return nil
}

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
		f.faulty[l] = !up
		f.carrier(l)
		return nil
	})
}

// carrier gives a link the state that its cable and the administrators of both ends
// make of it, and tells both.
func (f *Fabric) carrier(l model.LinkID) {
	a, b := f.sim.LinkPorts(l)
	da, db := f.devices[f.sim.PortNode(a)], f.devices[f.sim.PortNode(b)]
	pa, pb := da.port(a), db.port(b)
	up := !f.faulty[l] && pa.AdminUp && pb.AdminUp
	f.sim.SetLink(l, up)
	for _, end := range []struct {
		d *Device
		p *fabric.Port
	}{{da, pa}, {db, pb}} {
		if end.p.Carrier != up {
			end.p.Carrier = up
			end.d.tell(fabric.PortChanged, *end.p)
		}
	}
}

// FlowDone, Timer and Control make Fabric the simulation's handler.
func (f *Fabric) FlowDone(*model.Sim, model.FlowID) {}

// Timer is not used: the clock drives a live fabric.
func (f *Fabric) Timer(*model.Sim, uint64) {}

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
