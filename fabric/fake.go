package fabric

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// FakeConfig is what a Fake is made from. The zero value is a device without a
// name, on the real clock, with room for DefaultFakeQueue frames.
type FakeConfig struct {
	Name        string
	Now         func() time.Time // nil means time.Now, which is right under testing/synctest too
	QueueFrames int              // received frames that may wait for the owner, above 0
}

// DefaultFakeQueue is the default of FakeConfig.QueueFrames.
const DefaultFakeQueue = 4096

// FakeStats are what a Fake counted on all ports together.
type FakeStats struct {
	Received uint64 `json:"received"` // control frames taken for the owner
	Sent     uint64 `json:"sent"`     // frames sent while the port was up
	// Filtered frames had another EtherType, were tagged or for somebody else.
	Filtered uint64 `json:"filtered"`
	Overlong uint64 `json:"overlong"` // payload above MaxControlPayload
	Short    uint64 `json:"short"`    // shorter than an Ethernet header
	PortDown uint64 `json:"port_down"`
	Dropped  uint64 `json:"dropped"` // the owner's queue was full, or Run was not running
}

// Fake is a Dataplane in memory, for tests and for fabrics of many devices in one
// process. It treats frames as fabric/linux does: the same EtherTypes, addresses
// and sizes pass. It starts no goroutine but Run's, holds no timer, and blocks on
// channels only, so it works in a testing/synctest bubble.
type Fake struct {
	cfg    FakeConfig
	events chan Event
	frames chan Frame
	wake   chan struct{} // holds one token while there may be something to hand over

	mu       sync.Mutex
	ready    chan struct{} // of this run, or of the next one
	handle   func(Event)   // nil: events takes them
	running  bool
	ports    map[string]*fakePort
	foreign  map[string]*fakePort // ports that SetAccess does not name
	index    int
	waiting  []Event
	received []Frame
	sent     map[string][][]byte
	stats    FakeStats
}

type fakePort struct {
	lost uint64 // frames, see Lose
	Port
	cable    bool // what SetCarrier said
	link     *fakeLink
	side     int
	onSend   func(frame []byte)
	counters Counters
	health   Health
}

// fakeLink is a cable between two Fakes. Each end publishes whether it has light;
// carrier is there when both have.
type fakeLink struct {
	up   [2]atomic.Bool
	dev  [2]*Fake
	name [2]string
}

var (
	_ Dataplane    = (*Fake)(nil)
	_ EventHandler = (*Fake)(nil)
)

// NewFake makes a device with the given ports; see Plug for their defaults.
func NewFake(cfg FakeConfig, ports ...Port) *Fake {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.QueueFrames <= 0 {
		cfg.QueueFrames = DefaultFakeQueue
	}
	f := &Fake{cfg: cfg, ready: make(chan struct{}), events: make(chan Event), frames: make(chan Frame),
		wake: make(chan struct{}, 1), ports: make(map[string]*fakePort), foreign: make(map[string]*fakePort), sent: make(map[string][][]byte)}
	for _, p := range ports {
		f.Plug(p)
	}
	return f
}

// Run hands events and frames to their readers until ctx ends. It may be called
// again after that, like a control plane that starts anew on a switch that went
// on: it begins with the ports there are, and what nobody read is forgotten. Ready
// is another channel then.
func (f *Fake) Run(ctx context.Context) error {
	f.mu.Lock()
	if f.running {
		f.mu.Unlock()
		return fmt.Errorf("%s: Run is already running", f)
	}
	f.running, f.waiting, f.received = true, nil, nil
	for _, p := range f.list() {
		f.emit(PortAdded, p)
	}
	dump, ready := len(f.waiting), f.ready
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.running, f.ready = false, make(chan struct{})
		f.mu.Unlock()
	}()
	for told := false; ctx.Err() == nil; {
		if dump == 0 && !told {
			close(ready)
			told = true
		}
		if f.handOver(ctx) && dump > 0 {
			dump--
		}
	}
	return nil
}

// handOver passes on one event or frame, or waits until there is one; it tells
// whether it was an event.
func (f *Fake) handOver(ctx context.Context) bool {
	var events chan Event
	var frames chan Frame
	var ev Event
	var fr Frame
	f.mu.Lock()
	switch { // what happened to a port is told before what it received
	case len(f.waiting) > 0 && f.handle != nil:
		handle := f.handle
		ev = f.waiting[0]
		f.mu.Unlock()
		handle(ev)
		f.mu.Lock()
		f.waiting = f.waiting[1:]
		f.mu.Unlock()
		return true
	case len(f.waiting) > 0:
		events, ev = f.events, f.waiting[0]
	case len(f.received) > 0:
		frames, fr = f.frames, f.received[0]
	}
	f.mu.Unlock()
	select {
	case events <- ev:
		f.mu.Lock()
		f.waiting = f.waiting[1:]
		f.mu.Unlock()
		return true
	case frames <- fr:
		f.mu.Lock()
		f.received = f.received[1:]
		f.mu.Unlock()
	case <-f.wake:
	case <-ctx.Done():
	}
	return false
}

func (f *Fake) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Ready implements Dataplane.
func (f *Fake) Ready() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}

// Events implements Dataplane.
func (f *Fake) Events() <-chan Event { return f.events }

// HandleEvents implements EventHandler.
func (f *Fake) HandleEvents(handle func(Event)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handle = handle
}

// Frames implements Dataplane.
func (f *Fake) Frames() <-chan Frame { return f.frames }

func (f *Fake) String() string { return "fake dataplane " + f.cfg.Name }

// Ports lists the ports as they are now, in the order of their index.
func (f *Fake) Ports() []Port {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list()
}

func (f *Fake) list() []Port {
	list := make([]Port, 0, len(f.ports))
	for _, p := range f.ports {
		list = append(list, p.Port)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Index < list[j].Index })
	return list
}

// Stats returns a copy of the counts.
func (f *Fake) Stats() FakeStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

// port finds a port; f.mu is held.
func (f *Fake) port(name string) (*fakePort, error) {
	p := f.ports[name]
	if p == nil {
		return nil, fmt.Errorf("%s: port %q: %w", f, name, ErrNoPort)
	}
	return p, nil
}

// Plug adds a port, or replaces one of that name. AdminUp and Carrier are taken
// from p (Carrier is what the cable offers, it shows only while AdminUp); a zero
// Index, MAC or MTU is chosen: the next index, a local MAC made from it, and 1500.
func (f *Fake) Plug(p Port) {
	f.Unplug(p.Name)
	f.mu.Lock()
	f.index++
	if p.Index == 0 {
		p.Index = f.index
	}
	if p.MAC.IsZero() {
		p.MAC = MAC{0x02, 0, byte(p.Index >> 24), byte(p.Index >> 16), byte(p.Index >> 8), byte(p.Index)}
	}
	if p.MTU == 0 {
		p.MTU = MaxControlPayload
	}
	fp := &fakePort{Port: p, cable: p.Carrier}
	fp.Carrier = fp.cable && fp.AdminUp
	f.ports[p.Name] = fp
	f.emit(PortAdded, fp.Port)
	f.mu.Unlock()
	f.notify()
}

// Unplug removes a port; the other end of its cable loses carrier. An unknown name
// is no error.
func (f *Fake) Unplug(name string) {
	f.mu.Lock()
	p := f.ports[name]
	if p == nil {
		f.mu.Unlock()
		return
	}
	delete(f.ports, name)
	f.emit(PortRemoved, p.Port)
	f.mu.Unlock()
	f.notify()
	if p.link != nil {
		p.link.up[p.side].Store(false)
		p.link.refresh(1 - p.side)
	}
}

// SetAccess changes which of the ports belong to the dataplane, as that of fabric/linux
// does: the others are told as removed, and their links go on.
func (f *Fake) SetAccess(access []string) error {
	names, err := ParseNames(access)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, p := range f.foreign {
		if names.Match(name) {
			delete(f.foreign, name)
			f.ports[name] = p
			f.emit(PortAdded, p.Port)
		}
	}
	for name, p := range f.ports {
		if !names.Match(name) {
			delete(f.ports, name)
			f.foreign[name] = p
			f.emit(PortRemoved, p.Port)
		}
	}
	f.notify()
	return nil
}

// emit queues an event for Run's reader; f.mu is held.
func (f *Fake) emit(kind EventKind, p Port) {
	if !f.running {
		return // Run begins with the ports as they are then
	}
	e := Event{Kind: kind, Port: p, At: f.cfg.Now()}
	if fp := f.ports[p.Name]; fp != nil {
		e.Changes = fp.counters.CarrierChanges + 1
	}
	f.waiting = append(f.waiting, e)
}

// SetCarrier pulls (false) or plugs (true) the cable of a port.
func (f *Fake) SetCarrier(name string, up bool) error {
	return f.change(name, func(p *fakePort) { p.cable = up })
}

// SetAdmin implements Dataplane. A shut port takes the carrier from both ends of
// its cable.
func (f *Fake) SetAdmin(name string, up bool) error {
	return f.change(name, func(p *fakePort) { p.AdminUp = up })
}

// SetAddress changes a port's MAC address.
func (f *Fake) SetAddress(name string, mac MAC) error {
	return f.change(name, func(p *fakePort) { p.MAC = mac })
}

// SetCounters replaces a port's totals, except CarrierChanges, which the Fake counts.
func (f *Fake) SetCounters(name string, c Counters) error {
	return f.change(name, func(p *fakePort) {
		c.CarrierChanges = p.counters.CarrierChanges
		p.counters = c
	})
}

// Counters implements Dataplane.
func (f *Fake) Counters(name string) (Counters, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.port(name)
	if err != nil {
		return Counters{}, err
	}
	return p.counters, nil
}

// change edits a port and tells whoever sees the difference.
func (f *Fake) change(name string, edit func(*fakePort)) error {
	f.mu.Lock()
	p, err := f.port(name)
	if err != nil {
		f.mu.Unlock()
		return err
	}
	before := p.Port
	edit(p)
	link, side := p.link, p.side
	if link != nil {
		link.up[side].Store(p.cable && p.AdminUp)
	}
	f.settle(p, before)
	f.mu.Unlock()
	f.notify()
	if link != nil {
		link.refresh(1 - side)
	}
	return nil
}

// settle works out the carrier and emits what differs from before; f.mu is held.
func (f *Fake) settle(p *fakePort, before Port) {
	p.Carrier = p.cable && p.AdminUp
	if p.link != nil {
		p.Carrier = p.link.up[0].Load() && p.link.up[1].Load()
	}
	if p.Carrier != before.Carrier {
		p.counters.CarrierChanges++
	}
	if p.Port != before {
		f.emit(PortChanged, p.Port)
	}
}

// refresh makes one end see what both ends publish now. Whoever comes last reads
// the latest, so calls may overtake each other.
func (l *fakeLink) refresh(side int) {
	f := l.dev[side]
	f.mu.Lock()
	p := f.ports[l.name[side]]
	if p != nil && p.link == l {
		f.settle(p, p.Port)
	}
	if p := f.foreign[l.name[side]]; p != nil && p.link == l { // nobody is told
		p.Carrier = l.up[0].Load() && l.up[1].Load()
	}
	f.mu.Unlock()
	f.notify()
}
