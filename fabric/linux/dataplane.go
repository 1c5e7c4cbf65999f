package linux

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/fabric"
)

// Dataplane is the dataplane of one network namespace. It implements
// fabric.Dataplane.
type Dataplane struct {
	cfg    Config
	names  atomic.Pointer[fabric.Names]
	ready  chan struct{}
	events chan fabric.Event
	handle func(fabric.Event) // nil: events takes them
	frames chan fabric.Frame
	count  counters
	alert  atomic.Int64 // until when to poll faster, nanoseconds since start
	kick   chan struct{}
	start  time.Time

	noSysfs bool // of tests

	changing sync.Mutex  // held while a message or a word changes ports, and until the owner has its event
	hearing  hearing     // nil: changes of carrier are told by netlink alone
	hears    atomic.Bool // hearing works
	why      string      // there is no better one

	mu      sync.RWMutex
	ports   map[int]*port // by interface index
	byName  map[string]*port
	asker   *asker // nil unless Run is running
	ethtool *ethtool
	watcher *watcher
	poll    *poller // nil when there is none
	source  string

	readyOnce sync.Once
}

var _ fabric.Dataplane = (*Dataplane)(nil)

// New checks the configuration; it opens nothing yet.
func New(cfg Config) (*Dataplane, error) {
	cfg, names, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	d := &Dataplane{cfg: cfg, ready: make(chan struct{}), start: time.Now(), source: "off",
		kick:   make(chan struct{}, 1),
		events: make(chan fabric.Event, cfg.QueueEvents), frames: make(chan fabric.Frame, cfg.QueueFrames),
		ports: make(map[int]*port), byName: make(map[string]*port)}
	d.names.Store(&names)
	return d, nil
}

// SetAccess changes which ports belong to the dataplane: those that come in are
// told as added, those that no longer do as removed. The others are not touched.
// It takes effect within the time of one dump of all links.
func (d *Dataplane) SetAccess(access []string) error {
	names, err := fabric.ParseNames(access)
	if err != nil {
		return fmt.Errorf("access ports: %w", err)
	}
	if len(access) == 0 {
		return errors.New("access ports: none named, want at least one name or glob such as eth*")
	}
	d.names.Store(&names)
	if w := d.current(); w != nil { // else Run will dump when it begins
		d.resync(time.Now())
	}
	return nil
}

// Ready implements fabric.Dataplane.
func (d *Dataplane) Ready() <-chan struct{} { return d.ready }

// Events implements fabric.Dataplane.
func (d *Dataplane) Events() <-chan fabric.Event { return d.events }

// HandleEvents implements fabric.EventHandler.
func (d *Dataplane) HandleEvents(handle func(fabric.Event)) { d.handle = handle }

// Frames implements fabric.Dataplane.
func (d *Dataplane) Frames() <-chan fabric.Frame { return d.frames }

// String implements fabric.Dataplane.
func (d *Dataplane) String() string {
	if d.cfg.NetNS == "" {
		return "linux dataplane " + d.names.Load().String()
	}
	return "linux dataplane " + d.names.Load().String() + " in " + d.cfg.NetNS
}

// Run implements fabric.Dataplane. It fails only when it cannot begin, for want of
// permission or because the namespace does not exist; what goes wrong later is
// logged, counted and tried again.
func (d *Dataplane) Run(ctx context.Context) error {
	var poll *poller
	err := inNetNS(d.cfg.NetNS, func() (err error) {
		poll, err = d.open()
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", d, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	r := &reader{d: d, ctx: ctx, poll: poll, frames: &wg}
	wg.Go(func() {
		<-ctx.Done()
		d.current().close()
		if d.hearing != nil {
			d.hearing.Stop()
		}
	})
	wg.Go(func() { d.keep(ctx, poll) })
	r.run()
	cancel()
	r.stopAll()
	wg.Wait()
	if poll != nil {
		poll.close()
	}
	d.hears.Store(false)
	if d.hearing != nil {
		d.hearing.Close()
	}
	d.mu.Lock()
	d.asker.close()
	d.ethtool.close()
	d.asker, d.ethtool, d.poll = nil, nil, nil
	d.mu.Unlock()
	return nil
}

// open opens everything that belongs to the namespace rather than to a port.
func (d *Dataplane) open() (*poller, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asker != nil {
		return nil, errors.New("Run is already running")
	}
	if err := mayOpenPacketSocket(); err != nil {
		return nil, err
	}
	w, err := openWatcher()
	if err != nil {
		return nil, err
	}
	a, err := newAsker()
	if err != nil {
		w.close()
		return nil, err
	}
	e, err := newEthtool(d.cfg.Counters)
	if err != nil {
		w.close()
		a.close()
		return nil, err
	}
	var poll *poller
	if d.cfg.CarrierPoll > 0 {
		probe, err := openProbe(!d.noSysfs)
		if err != nil {
			w.close()
			a.close()
			e.close()
			return nil, err
		}
		poll, d.source = newPoller(probe), probe.String()
	}
	d.watcher, d.asker, d.ethtool, d.poll = w, a, e, poll
	d.hearing, d.why = openHearing(d.cfg.Carrier)
	d.hears.Store(d.hearing != nil)
	return poll, nil
}

func (d *Dataplane) current() *watcher {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.watcher
}

// idleRound is how often keep looks whether words were lost while it polls nothing: as long as
// the kernel holds a notification back.
const idleRound = time.Second

// keep polls carrier and asks for a dump now and then.
func (d *Dataplane) keep(ctx context.Context, poll *poller) {
	resync := time.Now().Add(d.cfg.Resync)
	var cost time.Duration
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-d.kick:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		if d.cfg.Resync > 0 && !now.Before(resync) {
			resync = now.Add(d.cfg.Resync)
			d.resync(now)
		}
		d.makeGood(now)
		if poll == nil || d.whole() {
			t.Reset(d.idle(time.Until(resync)))
			continue
		}
		poll.round(d.question)
		took := time.Since(now)
		if cost == 0 {
			cost = took
		}
		cost = (costWeight*cost + took) / (costWeight + 1)
		d.count.polls.Add(1)
		d.count.costNS.Store(uint64(cost))
		alert := int64(time.Since(d.start)) < d.alert.Load()
		t.Reset(pollInterval(d.cfg.CarrierPoll, cost, alert))
	}
}

// idle is how long to rest while nothing is polled.
func (d *Dataplane) idle(resync time.Duration) time.Duration {
	if d.hears.Load() {
		return idleRound
	}
	return max(resync, time.Second)
}

// alarm makes the poller faster for a while, at once.
func (d *Dataplane) alarm(at time.Time) {
	if d.whole() {
		return // nothing is polled
	}
	now := int64(at.Sub(d.start))
	if d.alert.Swap(now+int64(alertTime)) > now {
		return // it is already
	}
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// question asks for a port's state because the poller saw a difference. The kernel
// also catches up with what it held back then, so the answer may come twice.
func (d *Dataplane) question(index int) {
	d.mu.RLock()
	p, w := d.ports[index], d.watcher
	d.mu.RUnlock()
	if p == nil {
		return
	}
	p.asked.Store(true)
	if err := w.ask(index); err != nil {
		p.asked.Store(false)
		d.count.errors.Add(1)
	}
}

// resync asks for all links; on an error the socket's reader will notice as well.
func (d *Dataplane) resync(now time.Time) {
	if err := d.current().requestDump(now); err != nil {
		d.count.errors.Add(1)
		d.cfg.Log.Warn("cannot ask for all links", "dataplane", d.String(), "err", err)
	}
}

// find looks a port up by name.
func (d *Dataplane) find(name string) (*port, *asker, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	p := d.byName[name]
	if p == nil || d.asker == nil {
		return nil, nil, fmt.Errorf("port %q: %w", name, fabric.ErrNoPort)
	}
	return p, d.asker, nil
}

// Send implements fabric.Dataplane. It never waits. Errors wrap fabric.ErrNoPort,
// ErrPortDown, ErrPortBusy or ErrFrameSize.
func (d *Dataplane) Send(name string, frame []byte) error {
	_, err := d.SendStamped(name, frame)
	return err
}

// SendStamped implements fabric.SendStamper.
func (d *Dataplane) SendStamped(name string, frame []byte) (time.Time, error) {
	p, _, err := d.find(name)
	if err != nil {
		return time.Time{}, err
	}
	return p.send(frame)
}

// SetAdmin implements fabric.Dataplane. Shutting a port waits for the kernel, which
// can take some milliseconds.
func (d *Dataplane) SetAdmin(name string, up bool) error {
	p, a, err := d.find(name)
	if err != nil {
		return err
	}
	if err := a.setUp(p.index, up); err != nil {
		return fmt.Errorf("port %q: set administrative state up=%t: %w", name, up, err)
	}
	return nil
}

// Counters implements fabric.Dataplane from the kernel's 64-bit link statistics.
func (d *Dataplane) Counters(name string) (fabric.Counters, error) {
	p, a, err := d.find(name)
	if err != nil {
		return fabric.Counters{}, err
	}
	l, err := a.link(p.index)
	if err != nil {
		return fabric.Counters{}, fmt.Errorf("port %q: read counters: %w", name, err)
	}
	l.counters.CarrierChanges = l.changes
	return l.counters, nil
}

// Stats returns a copy of all counts.
func (d *Dataplane) Stats() Stats {
	c := &d.count
	st := Stats{Messages: c.messages.Load(), BadMessages: c.badMessages.Load(), Lost: c.lost.Load(),
		Errors: c.errors.Load(), Dumps: c.dumps.Load(), Events: c.events.Load(),
		SeenByNotice: c.seenByNotice.Load(), SeenByPoll: c.seenByPoll.Load(), SeenByDump: c.seenByDump.Load(),
		SeenEarly: c.seenEarly.Load(), Words: c.words.Load(), WordsLost: c.wordsLost.Load(), EarlyWrong: c.earlyWrong.Load(),
		Polls: c.polls.Load(), PollCost: time.Duration(c.costNS.Load())}
	d.mu.RLock()
	defer d.mu.RUnlock()
	st.PollSource = d.source
	for _, p := range d.byName {
		st.Ports = append(st.Ports, p.stats())
	}
	sort.Slice(st.Ports, func(i, j int) bool { return st.Ports[i].Port < st.Ports[j].Port })
	return st
}

// CarrierSource implements fabric.CarrierTeller.
func (d *Dataplane) CarrierSource() (fabric.CarrierSource, string) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.hears.Load() {
		return d.hearing.Source(), d.why
	}
	return fabric.CarrierNetlink, d.why
}

// LostFrames implements fabric.LossReader.
func (d *Dataplane) LostFrames() []fabric.LostFrames {
	var list []fabric.LostFrames
	for _, p := range d.Stats().Ports {
		list = append(list, fabric.LostFrames{Port: p.Port, Frames: p.Dropped})
	}
	return list
}
