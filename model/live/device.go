package live

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/model"
)

// maxFrames is how many received frames wait for a slow owner; more are dropped and
// counted. Events are never dropped: there are few, and each counts.
const maxFrames = 4096

// controlQueue is the class of frames that the control plane sends.
const controlQueue = 7

// portMTU is what simulated ports say of themselves.
const portMTU = 9000

// Device is one node of a live fabric as its control plane sees it.
type Device struct {
	f      *Fabric
	node   model.NodeID
	name   string
	ports  []fabric.Port // under the fabric's lock
	byName map[string]int
	drops  []uint64 // frames that nobody took, by port

	mu      sync.Mutex
	running bool
	pending []fabric.Event
	ready   chan struct{} // of this run, or of the next one
	more    chan struct{}

	events chan fabric.Event
	frames chan fabric.Frame
}

var (
	_ fabric.Dataplane    = (*Device)(nil)
	_ fabric.HealthReader = (*Device)(nil)
)

// ErrBusy is returned by Run while another Run of the same device works.
var ErrBusy = errors.New("the device has a control plane already")

func newDevice(f *Fabric, n model.NodeID) *Device {
	d := &Device{f: f, node: n, name: f.sim.NodeName(n), byName: map[string]int{}, more: make(chan struct{}, 1),
		events: make(chan fabric.Event), frames: make(chan fabric.Frame, maxFrames), ready: make(chan struct{})}
	for k := range f.sim.Ports(n) {
		p := f.sim.PortOf(n, k)
		name := f.sim.PortShortName(p)
		d.byName[name] = k
		// Locally administered addresses, one a port of the fabric.
		mac := fabric.MAC{0x02, 0x4d}
		binary.BigEndian.PutUint32(mac[2:], uint32(p))
		d.ports = append(d.ports, fabric.Port{Name: name, Index: k + 1, MAC: mac, MTU: portMTU, AdminUp: true, Carrier: f.sim.LinkUp(p)})
	}
	d.drops = make([]uint64, len(d.ports))
	return d
}

// String names the dataplane.
func (d *Device) String() string { return "model " + d.name }

// Run tells of all ports and then of every change until ctx ends. The fabric's own Run
// must be at work for time to pass. After it has ended it may be called again, by the
// next control plane: what came meanwhile is lost, as with a process that is not there.
func (d *Device) Run(ctx context.Context) error {
	dumped, err := d.begin()
	if err != nil {
		return err
	}
	defer d.end()
	if dumped == 0 {
		close(d.readyChan())
	}
	for {
		for _, e := range d.take() {
			select {
			case d.events <- e:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if dumped--; dumped == 0 {
				close(d.readyChan())
			}
		}
		select {
		case <-d.more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin queues the dump of ports; it gives their number.
func (d *Device) begin() (int, error) {
	d.f.mu.Lock()
	defer d.f.mu.Unlock()
	d.mu.Lock()
	busy := d.running
	d.running = true
	d.pending = nil
	d.mu.Unlock()
	if busy {
		return 0, fmt.Errorf("%s: %w", d, ErrBusy)
	}
	for {
		select {
		case <-d.frames:
			continue
		default:
		}
		break
	}
	for i := range d.ports {
		d.tell(fabric.PortAdded, d.ports[i])
	}
	return len(d.ports), nil
}

func (d *Device) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = false
	select {
	case <-d.ready:
		d.ready = make(chan struct{})
	default:
	}
}

func (d *Device) take() []fabric.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.pending
	d.pending = nil
	return out
}

// tell queues an event for the owner, if there is one.
func (d *Device) tell(kind fabric.EventKind, p fabric.Port) {
	d.mu.Lock()
	if d.running {
		d.pending = append(d.pending, fabric.Event{Kind: kind, Port: p, At: time.Now()})
	}
	d.mu.Unlock()
	select {
	case d.more <- struct{}{}:
	default:
	}
}

// Ready is closed when the owner has been told of all ports.
func (d *Device) Ready() <-chan struct{} { return d.readyChan() }

func (d *Device) readyChan() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ready
}

// Running reports whether a control plane is attached.
func (d *Device) Running() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running
}

// Events gives ports and their changes.
func (d *Device) Events() <-chan fabric.Event { return d.events }

// Frames gives control frames that arrived.
func (d *Device) Frames() <-chan fabric.Frame { return d.frames }

// port finds a port by the fabric's number; the fabric's lock is held.
func (d *Device) port(p model.PortID) *fabric.Port {
	return &d.ports[int(p-d.f.sim.PortOf(d.node, 0))]
}

func (d *Device) find(name string) (int, error) {
	k, ok := d.byName[name]
	if !ok {
		return 0, fmt.Errorf("%s: port %q: %w", d, name, fabric.ErrNoPort)
	}
	return k, nil
}

// Send puts a control frame on the wire; on a port without carrier it is lost.
func (d *Device) Send(port string, frame []byte) error {
	k, err := d.find(port)
	if err != nil {
		return err
	}
	own := append([]byte(nil), frame...)
	err = d.f.Do(func(s *model.Sim) error {
		if !d.ports[k].Up() {
			return nil
		}
		return s.SendControl(s.PortOf(d.node, k), controlQueue, own)
	})
	d.f.poke()
	return err
}

// SetAdmin shuts or opens a port.
func (d *Device) SetAdmin(port string, up bool) error {
	k, err := d.find(port)
	if err != nil {
		return err
	}
	return d.f.Do(func(s *model.Sim) error {
		p := &d.ports[k]
		if p.AdminUp == up {
			return nil
		}
		p.AdminUp = up
		changed := p.Carrier
		d.f.light(s.LinkOf(s.PortOf(d.node, k)))
		if p.Carrier == changed { // carrier did not tell of it
			d.tell(fabric.PortChanged, *p)
		}
		return nil
	})
}

// Counters reads a port's totals.
func (d *Device) Counters(port string) (fabric.Counters, error) {
	k, err := d.find(port)
	if err != nil {
		return fabric.Counters{}, err
	}
	var out fabric.Counters
	err = d.f.Do(func(s *model.Sim) error {
		c := s.PortCounters(s.PortOf(d.node, k))
		out = counters(&c)
		out.RxDrops += d.drops[k]
		return nil
	})
	return out, err
}

// receive takes a frame from the wire; the fabric's lock is held.
func (d *Device) receive(p model.PortID, b []byte) {
	if !d.Running() {
		return
	}
	port := d.port(p)
	f := fabric.Frame{Port: port.Name, Dst: fabric.MAC(b[0:6]), Src: fabric.MAC(b[6:12]), EtherType: binary.BigEndian.Uint16(b[12:14]), Payload: b[fabric.EthernetHeaderLen:], At: time.Now()}
	select {
	case d.frames <- f:
	default:
		d.drops[port.Index-1]++
	}
}
