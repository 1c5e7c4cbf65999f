package daemon

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/deepstack"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/internal/store"
)

// Device owns a Core: it takes events in order, port events before everything else, and hands
// readers snapshots. One goroutine, Run, does so; while that one rests, whoever brings a loss does
// (see lend).
type Device struct {
	core *device.Core
	dp   fabric.Dataplane
	now  func() time.Time

	turn  sync.Mutex // whoever holds it is the owner: what is no queue belongs to it
	timer *time.Timer
	due   time.Time // when timer rings

	ports    *portQueue  // of a dataplane that says at once what happens
	inbox    *link.Inbox // from sessions
	requests chan func(now time.Time)
	reports  chan bfd.Event // of paths
	ready    chan struct{}
	stopped  chan struct{}

	toReflectors link.Peers
	toClients    link.Peers
	log          *api.EventLog
	stamper      fabric.SendStamper // nil: the dataplane does not know when frames leave
	left         time.Time          // the last frame
	sendErrors   map[string]uint64  // by port; frames the dataplane did not take
	held         hold               // how long messages for clients wait for others
	passed       int                // events that were taken while a client is owed more
	deliverError uint64
	adminErrors  uint64

	paths pathWatcher // nil: nobody watches paths
	// hostPorts are the interfaces of the access ports, which are those of the kernel
	// where realPorts says so.
	hostPorts map[string]int
	realPorts bool
	keeper    *keep.Keeper // nil: nothing is kept
	store     *store.Store // likewise
	sampler   *sampler
	hard      *hardZoning // nil: nobody enforces zones
	guard     *portGuard  // nil: ports are not guarded
	fence     *fencing    // nil: nobody blocks
	replaced  bool        // ports came, went, or have another interface
	admin     *admin
}

// pathWatcher watches paths to other devices. Its methods never wait.
type pathWatcher interface {
	Watch(peers []bfd.Peer)
	Ignore(interfaces []int) // where hosts are: nothing from there counts
}

const (
	requestQueue = 16
	// pauseSeen is how late a timer must be for the process to count as having
	// been stopped, swapped out or starved.
	pauseSeen = 500 * time.Millisecond
	// maxPassed is how many events come before a client that is owed more gets the next of it.
	maxPassed = 64
)

// ErrStopped is given to readers of a device that has stopped.
var ErrStopped = errors.New("the device has stopped")

// NewDevice gives the owner of a device.Core that build makes.
func NewDevice(dp fabric.Dataplane, log *api.EventLog, now func() time.Time, build func(device.Actions) (*device.Core, error)) (*Device, error) {
	d := &Device{
		dp: dp, log: log, now: now,
		timer:      time.NewTimer(time.Hour),
		ports:      newPortQueue(),
		inbox:      link.NewInbox(0),
		requests:   make(chan func(time.Time), requestQueue),
		reports:    make(chan bfd.Event, pathQueue),
		ready:      make(chan struct{}),
		stopped:    make(chan struct{}),
		sendErrors: make(map[string]uint64),
		hostPorts:  make(map[string]int),
		sampler:    newSampler(dp, now),
	}
	d.stamper, _ = dp.(fabric.SendStamper)
	if h, ok := dp.(fabric.EventHandler); ok {
		h.HandleEvents(d.portEvent)
	}
	if h, ok := dp.(fabric.HealthTeller); ok {
		h.HandleHealth(func(port string, h fabric.Health) {
			_ = d.Do(context.Background(), func(c *device.Core, now time.Time) { c.Sample(port, h, now) })
		})
	}
	d.admin = newAdmin(d.setAdmin)
	core, err := build(d)
	if err != nil {
		return nil, err
	}
	d.core = core
	return d, nil
}

// Ready is closed once the first dump of ports has been taken in: only then may
// sessions begin, so that nobody is told of hosts behind a port that is down.
func (d *Device) Ready() <-chan struct{} { return d.ready }

func (d *Device) String() string { return "device" }

// Run owns the device.Core until ctx ends.
func (d *Device) Run(ctx context.Context) error {
	defer close(d.stopped)
	defer d.timer.Stop()
	d.turn.Lock()                             // for good, but for when it waits
	if err := d.firstPorts(ctx); err != nil { // stopped before it began
		d.last()
		return nil
	}
	d.core.Start(d.now())
	close(d.ready)
	ctx, stop := context.WithCancel(ctx)
	defer stop() // whatever ends us ends these
	go d.sampler.run(ctx)
	go d.admin.run(ctx, d.now)
	d.settle()
	for ctx.Err() == nil {
		if ev, ok := d.ports.take(); ok {
			d.port(ev)
		} else {
			select {
			case ev := <-d.dp.Events():
				d.port(ev)
			default:
				d.step(ctx)
			}
		}
		d.settle()
	}
	now := d.now()
	d.core.Goodbye(now)
	d.last()
	return nil
}

// settle does what follows each event: what has changed is told, and the timer set.
func (d *Device) settle() {
	d.core.Replan(d.sampler.set)
	now := d.now()
	d.release(now)
	d.core.Pump(now)
	if d.fence != nil {
		d.fence.hand(d.core, now)
		d.release(now)
		d.core.Pump(now)
	}
	d.enforce(now)
	next := sooner(sooner(d.core.Next(), d.core.HardNext(now)), d.core.FenceNext(now))
	if !next.Equal(d.due) || !next.After(now) {
		d.due = next
		d.timer.Reset(wait(next, now))
	}
}

// enforce hands rows of hard zoning over, once what hosts are told has left.
func (d *Device) enforce(now time.Time) {
	if d.hard == nil {
		return
	}
	var ports []hardzone.Port
	if d.replaced {
		d.replaced, ports = false, d.core.HardPorts()
		if d.guard != nil {
			d.guard.hand(guardedPorts(ports))
		}
	}
	d.hard.hand(d.core, ports, now)
}

func guardedPorts(ports []hardzone.Port) []fabric.GuardedPort {
	list := make([]fabric.GuardedPort, len(ports))
	for i, p := range ports {
		list[i] = fabric.GuardedPort{Name: p.Name, Index: p.Index}
	}
	return list
}

// sooner is the earlier of two times; zero is no time.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// last keeps what there is at a stop; nothing comes after it.
func (d *Device) last() {
	if d.keeper != nil {
		d.core.KeepLast(d.now())
		d.keeper.Close(true)
		d.core.SaveAll(d.now())
		d.store.Close()
	}
}

// wait is how long to sleep until next; without a next, a day.
func wait(next, now time.Time) time.Duration {
	if next.IsZero() {
		return 24 * time.Hour
	}
	return max(0, next.Sub(now))
}

// step waits for one event of any kind and handles it.
func (d *Device) step(ctx context.Context) {
	if d.core.Owing() {
		d.pass()
		return
	}
	d.turn.Unlock()
	select {
	case <-ctx.Done():
		d.awake()
	case ev := <-d.dp.Events():
		d.awake()
		d.port(ev)
	case <-d.ports.ready:
		d.awake()
		if ev, ok := d.ports.take(); ok {
			d.port(ev)
		}
	case f := <-d.dp.Frames():
		d.awake()
		d.core.Frame(f, d.now())
	case ev := <-d.reports:
		d.awake()
		d.core.Path(ev, d.now())
	case <-d.inbox.Ready():
		d.awake()
		d.takePeer()
	case fn := <-d.requests:
		d.awake()
		fn(d.now())
	case list := <-d.sampler.out:
		d.awake()
		d.samples(list)
	case <-d.timer.C:
		d.awake()
		now := d.now()
		if !d.due.IsZero() && now.Sub(d.due) > pauseSeen {
			d.core.Paused(now)
		}
		d.due = time.Time{} // the timer has fired: set it anew
		d.core.Tick(now)
	}
}

// awake takes the turn back after a wait.
func (d *Device) awake() {
	d.turn.Lock()
	deepstack.Grow()
}

// pass handles an event that is there before a client that is owed more gets the next of it,
// within limits.
func (d *Device) pass() {
	if d.passed < maxPassed {
		d.passed++
		select {
		case f := <-d.dp.Frames():
			d.core.Frame(f, d.now())
			return
		case ev := <-d.reports:
			d.core.Path(ev, d.now())
			return
		case <-d.inbox.Ready():
			d.takePeer()
			return
		case fn := <-d.requests:
			fn(d.now())
			return
		default:
		}
	}
	d.passed = 0
	now := d.now()
	d.core.PullStep(d.drained, now)
	if next := d.core.Next(); !next.IsZero() && !next.After(now) {
		d.core.Tick(now)
	}
}

// firstPorts takes in port events until the dataplane has dumped all ports.
func (d *Device) firstPorts(ctx context.Context) error {
	for dumped := false; ; {
		for ev, ok := d.ports.take(); ok; ev, ok = d.ports.take() {
			d.port(ev)
		}
		select {
		case ev := <-d.dp.Events():
			d.port(ev)
			continue
		default:
		}
		if dumped {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev := <-d.dp.Events():
			d.port(ev)
		case <-d.ports.ready:
		case <-d.dp.Ready():
			dumped = true
		}
	}
}

// samples takes readings in, whose own time counts. Those of a port that has changed
// since are of the past.
func (d *Device) samples(list []sample) {
	for i := range list {
		d.core.Sample(list[i].port, list[i].health, d.now())
	}
}

// ResumePoint gives what was seen of a device that we dial (or that dials us), for
// the Open of the next session. It may be called by any goroutine.
func (d *Device) ResumePoint(client bool) func(netip.Addr) *wire.Resume {
	return func(dev netip.Addr) (point *wire.Resume) {
		ctx, cancel := context.WithTimeout(context.Background(), resumeTimeout)
		defer cancel()
		found := make(chan *wire.Resume, 1)
		err := d.Do(ctx, func(c *device.Core, _ time.Time) { found <- c.ResumePoint(dev, client) })
		if err != nil {
			return nil // everything is sent anew then
		}
		return <-found
	}
}

// resumeTimeout bounds how long an Open waits for the owner goroutine.
const resumeTimeout = time.Second

// takePeer handles the next event of a session, or the next piece of one.
func (d *Device) takePeer() {
	ev, client, ok := d.inbox.Take()
	if !ok {
		return
	}
	dev, now := ev.Peer.Device(), d.now()
	routes := &d.toReflectors
	if client {
		routes = &d.toClients
	}
	if !routes.Handle(ev) {
		return // of a session that a newer one has replaced
	}
	switch {
	case ev.Kind == link.PeerDrained:
		d.core.ClientDrained() // drained asked for it
	case client && ev.Kind == link.PeerUp:
		d.core.ClientAsks(dev, ev.Caps&wire.CapInterestAll != 0)
		d.core.ClientResumes(dev, ev.Seen, ev.Offered, now)
	case client && ev.Kind == link.PeerDown:
		d.core.ClientDown(dev, ev.Err, now)
	case client:
		d.core.ClientMessage(dev, ev.Msg, now)
		ev.Peer.Charge(d.core.Work())
	case ev.Kind == link.PeerUp:
		d.core.ReflectorResumes(dev, ev.Seen, now)
	case ev.Kind == link.PeerDown:
		d.core.ReflectorDown(dev, ev.Err, now)
	default:
		d.core.ReflectorMessage(dev, ev.Msg, now)
	}
}

// Do runs fn in the owner goroutine and waits for it. It must be short: faults wait
// meanwhile. If ctx ends before the owner has come to it, fn is never run.
func (d *Device) Do(ctx context.Context, fn func(c *device.Core, now time.Time)) error {
	done := make(chan struct{})
	var taken atomic.Bool // by the owner, or back by the caller
	req := func(now time.Time) {
		if !taken.CompareAndSwap(false, true) {
			return
		}
		defer close(done)
		fn(d.core, now)
		d.core.Say() // whoever asked finds it said
	}
	select {
	case d.requests <- req:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.stopped:
		return ErrStopped
	}
	ended := ctx.Done()
	for {
		select {
		case <-done:
			return nil
		case <-d.stopped:
			return ErrStopped
		case <-ended:
			if taken.CompareAndSwap(false, true) {
				return ctx.Err()
			}
			ended = nil // fn runs
		}
	}
}

// port takes an event of a port. What hosts send there is no BFD.
func (d *Device) port(ev fabric.Event) {
	d.core.Port(ev, d.now())
	d.replaced = true
	if d.paths == nil || !d.realPorts {
		return
	}
	index := ev.Port.Index
	if ev.Kind == fabric.PortRemoved {
		index = 0
	}
	if d.hostPorts[ev.Port.Name] == index {
		return
	}
	if d.hostPorts[ev.Port.Name] = index; index == 0 {
		delete(d.hostPorts, ev.Port.Name)
	}
	d.paths.Ignore(slices.Sorted(maps.Values(d.hostPorts)))
}

// WatchPaths implements device.Actions.
func (d *Device) WatchPaths(peers []bfd.Peer) {
	if d.paths != nil {
		d.paths.Watch(peers)
	}
}

// DeviceCounters count what the owner goroutine could not do.
type DeviceCounters struct {
	SendErrors    map[string]uint64 `json:"send_errors,omitempty"` // by port
	DeliverErrors uint64            `json:"deliver_errors"`
	AdminErrors   uint64            `json:"admin_errors"`
}

func (d *Device) counters() DeviceCounters {
	return DeviceCounters{SendErrors: maps.Clone(d.sendErrors), DeliverErrors: d.deliverError, AdminErrors: d.adminErrors}
}
