package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/health"
)

// hardZoning brings the rows that the owner of the Core decides into the dataplane, and tells
// operators how that does. The owner never waits for it.
type hardZoning struct {
	rounds
	d *Daemon

	mu    sync.Mutex
	want  bool // zones are to be enforced
	known bool // want was said by somebody
	queue []hardzone.Step
	whole bool // the queue has all that there is
	opens bool // the device observes: everything passes
	ports []hardzone.Port
	cfg   hardzone.Config
	bound []config.HostBinding
	fresh bool // cfg or bound are not in force yet
	state hardState
	asks  []func(dp hardzone.Dataplane) // of readers
	upset bool                          // another program has changed rows

	dp      hardzone.Dataplane // nil: nothing is enforced
	opened  bool               // everything passes because the device observes
	stop    func()             // of the reader of samples
	placed  []hardzone.Port    // as the filters stand
	begun   bool               // pins of before were looked at
	next    time.Time          // audit
	retry   time.Time          // after an error
	filters []hardzone.PortState
	wrong   map[string]string // what is not as it should be, by what it is about
}

// hardState is what operators see.
type hardState struct {
	suspended bool
	since     time.Time
	audit     hardzone.Audited
	audited   time.Time
	repaired  int
	errors    uint64
	steps     uint64
	samples   uint64
	wrong     []string
	filters   []hardzone.PortState
	running   bool
}

const (
	hardRetry   = 5 * time.Second
	hardTimeout = 5 * time.Second // of a reader's question
)

func newHardZoning(d *Daemon, cfg *config.Config) *hardZoning {
	return &hardZoning{rounds: newRounds(), d: d, cfg: cfg.HardZoning, bound: cfg.Hosts.Bindings, fresh: true, wrong: make(map[string]string)}
}

// boundsOf is the access whitelist: the bindings that name addresses, with those of the ports
// that there are.
func boundsOf(bindings []config.HostBinding, ports []hardzone.Port) (list []hardzone.Bound) {
	for _, b := range bindings {
		names, err := fabric.ParseNames(b.Ports)
		if !b.Addrs.IsValid() || err != nil {
			continue
		}
		bound := hardzone.Bound{Prefix: b.Addrs}
		for _, p := range ports {
			if names.Match(p.Name) {
				bound.Ports = append(bound.Ports, p.Name)
			}
		}
		list = append(list, bound)
	}
	return list
}

// hand takes over what the owner has for the dataplane; it never waits.
func (h *hardZoning) hand(c *device.Core, ports []hardzone.Port, now time.Time) {
	want, known := c.HardWanted()
	opens := c.OpensZoning()
	steps, whole := c.HardWork(now)
	h.mu.Lock()
	changed := len(steps) > 0 || opens != h.opens || want != h.want || known != h.known || whole && !h.whole
	if ports != nil && !slices.Equal(ports, h.ports) {
		h.ports, changed, h.fresh = ports, true, true
	}
	h.want, h.known, h.whole, h.opens = want, known, whole, opens
	h.queue = append(h.queue, steps...)
	h.mu.Unlock()
	if changed {
		h.wake()
	}
}

// configure brings a changed configuration into force.
func (h *hardZoning) configure(cfg *config.Config) {
	h.mu.Lock()
	h.cfg, h.bound, h.fresh = cfg.HardZoning, cfg.Hosts.Bindings, true
	h.mu.Unlock()
	h.wake()
}

// Run implements task.
func (h *hardZoning) Run(ctx context.Context) error {
	h.run(ctx, h.d.env.Now, func(ctx context.Context) time.Time {
		h.round(ctx)
		if h.dp != nil {
			return sooner(h.retry, h.next)
		}
		return h.retry
	})
	h.close()
	return nil
}

func (h *hardZoning) String() string { return "hard zoning" }

// round does all that there is to do.
func (h *hardZoning) round(ctx context.Context) {
	h.mu.Lock()
	want, known, steps, whole, ports, asks := h.want, h.known, h.queue, h.whole, h.ports, h.asks
	cfg, bound, fresh, opens, upset := h.cfg, boundsOf(h.bound, h.ports), h.fresh, h.opens, h.upset
	h.queue, h.asks, h.fresh, h.upset = nil, nil, false, false
	h.mu.Unlock()
	now := h.d.env.Now()
	switch {
	case !known:
	case want && h.dp == nil && !now.Before(h.retry):
		h.open(ctx, cfg, bound, now)
	case !want && (h.dp != nil || !h.begun):
		h.remove(ctx, cfg)
	}
	if h.dp != nil {
		if fresh {
			h.note("configuration", h.dp.Configure(cfg, bound))
		}
		h.follow(opens)
		h.apply(steps)
		if whole && !slices.Equal(ports, h.placed) {
			h.place(ports)
		}
		if upset || !now.Before(h.next) {
			h.audit(now)
		}
	}
	for _, ask := range asks {
		ask(h.dp)
	}
	h.tell(ctx)
}

// follow lets everything pass while the device observes; the end of that also ends what an
// operator had suspended before.
func (h *hardZoning) follow(opens bool) {
	h.mu.Lock()
	was := h.state.suspended
	h.mu.Unlock()
	if opens == h.opened && (!opens || was) {
		return
	}
	err := h.dp.Suspend(opens)
	if h.note("observing", err); err != nil {
		return
	}
	h.opened = opens
	h.mu.Lock()
	h.state.suspended = opens
	h.mu.Unlock()
}

// open begins to enforce.
func (h *hardZoning) open(ctx context.Context, cfg hardzone.Config, bound []hardzone.Bound, now time.Time) {
	h.begun, h.retry = true, time.Time{}
	if h.d.env.HardZoning == nil {
		h.note("dataplane", errors.New("this dataplane cannot filter"))
		h.retry = now.Add(24 * time.Hour)
		return
	}
	dp, err := h.d.env.HardZoning(cfg)
	h.note("dataplane", err)
	if dp == nil {
		h.retry = now.Add(hardRetry)
		return
	}
	h.dp, h.placed, h.next = dp, nil, now.Add(cfg.Audit)
	h.note("configuration", dp.Configure(cfg, bound))
	hosts, pairs, suspended := dp.Adopted()
	h.mu.Lock()
	h.state.suspended, h.state.since, h.queue = suspended, now, nil
	h.mu.Unlock()
	reading, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	h.stop = func() { stop(); readers.Wait() } // it reads the tables, which are closed next
	readers.Go(func() {
		if err := dp.Samples(reading, h.sample); err != nil && reading.Err() == nil {
			h.d.warn("hard-zoning", fmt.Errorf("dropped frames are not made known: %w", err))
		}
	})
	if w, ok := dp.(hardzone.Watcher); ok {
		go func() { _ = w.Watch(reading, h.disturb) }()
	}
	_ = h.d.device.Do(ctx, func(c *device.Core, now time.Time) { c.BeginHard(hosts, pairs, now) })
	h.event(fmt.Sprintf("hard zoning begins: %d hosts and %d pairs were in force already", len(hosts), len(pairs)))
}

// disturb has rows looked at that another program has changed.
func (h *hardZoning) disturb() {
	h.mu.Lock()
	h.upset = true
	h.mu.Unlock()
	h.wake()
}

// remove ends the enforcement, also that of a process before this one.
func (h *hardZoning) remove(ctx context.Context, cfg hardzone.Config) {
	h.begun = true
	h.retry = time.Time{}
	clear(h.wrong)
	if h.dp == nil {
		if h.d.env.EndHardZoning != nil {
			h.note("dataplane", h.d.env.EndHardZoning(cfg))
		}
		return
	}
	h.stop()
	h.note("dataplane", h.dp.Remove())
	h.dp, h.filters, h.placed = nil, nil, nil
	_ = h.d.device.Do(ctx, func(c *device.Core, _ time.Time) { c.EndHard() })
	h.event("hard zoning has ended: hosts are told of their zones, and everything passes")
}

// close leaves what is pinned in force.
func (h *hardZoning) close() {
	if h.dp != nil {
		h.stop()
		_ = h.dp.Close()
	}
}

func (h *hardZoning) apply(steps []hardzone.Step) {
	if len(steps) == 0 {
		return
	}
	err := h.dp.Apply(steps)
	h.mu.Lock()
	h.state.steps += uint64(len(steps))
	if err != nil {
		h.state.errors++
	}
	h.mu.Unlock()
	if err != nil {
		h.note("rows", err)
		h.next = h.d.env.Now() // an audit puts what is missing
	}
}

// place puts filters at the ports; those of other ports are taken away.
func (h *hardZoning) place(ports []hardzone.Port) {
	before := make(map[string]hardzone.PortState)
	for _, st := range h.filters {
		before[st.Port] = st
	}
	h.filters, h.placed = h.dp.SetPorts(ports), ports
	var errs []error
	for _, st := range h.filters {
		errs = append(errs, st.Err)
		if was := before[st.Port]; was.Attach != st.Attach && st.Err == nil {
			h.event(fmt.Sprintf("port %s is filtered (%s)", st.Port, st.Attach))
		}
	}
	h.note("ports", errors.Join(errs...))
}

func (h *hardZoning) audit(now time.Time) {
	h.next = now.Add(h.cfg.Audit)
	a, err := h.dp.Audit()
	h.mu.Lock()
	h.state.audit, h.state.audited = a, now
	h.state.repaired += a.Repaired()
	h.mu.Unlock()
	if n := a.Repaired(); n > 0 && err == nil {
		h.d.log.Append(api.Event{Time: now, Kind: "hard-zoning", Warning: health.RowsChanged,
			Text: fmt.Sprintf("audit of hard zoning: %d rows were not as they should be and are repaired: %d missing, %d wrong, %d foreign", n, a.Missing, a.Wrong, a.Foreign)})
	}
	if err != nil {
		err = fmt.Errorf("audit: %w", err)
		h.next = now.Add(min(h.cfg.Audit, hardRetry))
	}
	h.note("rows", err)
	if slices.ContainsFunc(h.filters, func(st hardzone.PortState) bool { return st.Err != nil }) {
		h.placed = nil // try again
	}
}

// note keeps what is wrong with one thing; nil: nothing is.
func (h *hardZoning) note(about string, err error) {
	if err == nil {
		delete(h.wrong, about)
		return
	}
	text := oneLine(err.Error())
	if h.wrong[about] != text {
		h.wrong[about] = text
		h.d.warn("hard-zoning", fmt.Errorf("hard zoning is abnormal: %s", text))
	}
}

// tell gives readers and the owner what is so now.
func (h *hardZoning) tell(ctx context.Context) {
	var wrong []string
	for _, about := range []string{"dataplane", "configuration", "ports", "rows"} {
		if text, there := h.wrong[about]; there {
			wrong = append(wrong, text)
		}
	}
	h.mu.Lock()
	same := slices.Equal(wrong, h.state.wrong) && h.state.running == (h.dp != nil)
	h.state.wrong, h.state.filters, h.state.running = wrong, slices.Clone(h.filters), h.dp != nil
	h.mu.Unlock()
	if !same {
		_ = h.d.device.Do(ctx, func(c *device.Core, _ time.Time) { c.SetHardStatus(device.HardStatus{Why: wrong}) })
	}
}

func (h *hardZoning) event(text string) {
	h.d.log.Append(api.Event{Time: h.d.env.Now(), Kind: "hard-zoning", Text: text})
}

// sample makes a dropped frame known.
func (h *hardZoning) sample(s hardzone.Sample) {
	h.mu.Lock()
	h.state.samples++
	h.mu.Unlock()
	what := "a frame"
	fields := map[string]string{"why": string(s.Why), "source": s.Src.String(), "destination": s.Dst.String(), "protocol": fmt.Sprint(s.Protocol)}
	switch {
	case s.Discovery:
		what = "address discovery"
	case s.DstPort != 0:
		what = fmt.Sprintf("a frame to port %d", s.DstPort)
		fields["port"] = fmt.Sprint(s.DstPort)
	}
	if s.Why == hardzone.BadFrame {
		h.d.log.Append(api.Event{Time: s.At, Kind: "denied", Port: s.Port, Text: fmt.Sprintf("port %s: a frame was dropped: %s", s.Port, s.Why), Fields: fields})
		return
	}
	h.d.log.Append(api.Event{Time: s.At, Kind: "denied", Port: s.Port, Addr: s.Src.String(), Fields: fields,
		Text: fmt.Sprintf("port %s: %s from %s to %s was dropped: %s", s.Port, what, s.Src, s.Dst, s.Why)})
}

// ask runs fn beside the dataplane, in the goroutine that owns it.
func (h *hardZoning) ask(ctx context.Context, fn func(dp hardzone.Dataplane)) error {
	ctx, cancel := context.WithTimeout(ctx, hardTimeout)
	defer cancel()
	done := make(chan struct{})
	h.mu.Lock()
	h.asks = append(h.asks, func(dp hardzone.Dataplane) { fn(dp); close(done) })
	h.mu.Unlock()
	h.wake()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
