package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// HostileOptions say how the harm that one client can do to others is measured.
type HostileOptions struct {
	Options
	Clients  int    // that read, all of them concerned with the hosts of the one that floods
	ZoneSize int    // clients that share a zone with the fault
	Count    int    // faults of all quiet phases of one kind of flood, and of all under it
	Rounds   int    // into which these are divided: a quiet phase and a flood take turns
	Rate     int    // a second
	Only     string // of the ways to flood; empty: all
}

// FloodNames are the ways to flood.
func FloodNames() (names []string) {
	for i := range floods {
		names = append(names, floods[i].name)
	}
	return names
}

// HostileResult is what came out.
type HostileResult struct {
	Machine Machine `json:"machine"`
	Auth    string  `json:"auth"`
	Clients int     `json:"clients"`
	Rate    int     `json:"rate"`
	Floods  []Flood `json:"floods"`
}

// Flood is one way in which an authenticated client sends without end, and what a fault
// elsewhere takes meanwhile.
type Flood struct {
	Name     string    `json:"name"`
	What     string    `json:"what"`
	Sent     uint64    `json:"messages_sent"` // of the flood; as fast as the reflector took them
	Quiet    Quantiles `json:"quiet"`         // a fault until the last client of its zone has it
	Fault    Quantiles `json:"fault"`         // the same under the flood
	P99Ratio float64   `json:"p99_ratio"`
	// The same without a flood, while other processes take the processor time that the flood
	// took more than the quiet phases.
	CPU          time.Duration `json:"cpu_ns"`
	Control      Quantiles     `json:"control"`
	ControlRatio float64       `json:"control_p99_ratio"`
	ToControl    float64       `json:"p99_to_control"` // p99 in the flood over that of the control
	// Memory of the reflector in MiB, at most: while hosts of all clients change and in the
	// quiet phases, and under the flood.
	QuietPeak   float64 `json:"quiet_rss_peak_mib"`
	Peak        float64 `json:"rss_peak_mib"`
	MemoryRatio float64 `json:"memory_ratio"`
	// What of it is in use, after a collection at the end of a phase.
	QuietLive float64 `json:"quiet_live_mib"`
	Live      float64 `json:"live_mib"`

	quiet, took, control []time.Duration
}

// floodHosts is how many hosts a device that floods has at most.
const floodHosts = 4096

// floodBegins is how long a flood lasts before the first fault under it.
const floodBegins = 200 * time.Millisecond

// flooder is a device that sends without end.
type flooder struct {
	*client
	plan  *plan
	first int // of its hosts
	epoch uint64
	n     int // messages made
}

func (f *flooder) host(i int) netip.Addr { return f.plan.burstHost(f.first + i%floodHosts) }

// floods are the ways; make gives the next message.
var floods = []struct {
	name, what string
	make       func(f *flooder) wire.Message
}{
	{"hosts", "messages of one host that changes", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		u.Hosts = []wire.HostRecord{putHost(f.host(f.n/8), f.dev, portAll, time.Now())}
		return u
	}},
	{"losses", "messages of one host that goes or comes back", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		h := putHost(f.host(0), f.dev, portAll, time.Now())
		if f.n%2 == 1 {
			h.Op, h.Why = wire.Withdraw, snsd.ReasonAgedOut
		}
		u.Hosts = []wire.HostRecord{h}
		return u
	}},
	{"syncs", "messages of 4,000 hosts that change", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		for i := range 4000 {
			u.Hosts = append(u.Hosts, putHost(f.host(i), f.dev, portAll, time.Now()))
		}
		return u
	}},
	{"lists", "faults of 400 ports with 16,384 addresses each", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		list := make([]netip.Addr, wire.MaxDownAddrs)
		for i := range list {
			list[i] = f.plan.burstHost(i)
		}
		u.Downs = []wire.DownRecord{{Device: f.dev, Port: fmt.Sprintf("p%d", f.n%400), Down: zone.Down{Why: snsd.ReasonLinkDown, Since: time.Now()}, Addrs: list}}
		return u
	}},
	{"flaps", "a port with 1,000 hosts that fails and recovers", func(f *flooder) wire.Message {
		u := f.update(f.epoch)
		if f.n == 0 {
			for i := range 1000 {
				u.Hosts = append(u.Hosts, putHost(f.host(i), f.dev, portAll, time.Now()))
			}
			return u
		}
		r := wire.DownRecord{Device: f.dev, Port: portAll}
		if f.n%2 == 1 {
			r.Down = zone.Down{Why: snsd.ReasonLinkDown, Since: time.Now()}
		}
		for i := range 1000 {
			r.Addrs = append(r.Addrs, f.host(i))
		}
		u.Downs = []wire.DownRecord{r}
		return u
	}},
	{"ends", "an End-of-Sync after the other", func(f *flooder) wire.Message { return &wire.EndOfSync{Epoch: f.epoch, Seq: f.seq} }},
	{"keepalives", "a keepalive after the other", func(*flooder) wire.Message { return &wire.Keepalive{} }},
}

// Hostile measures what one client that sends without end does to a fault elsewhere.
func Hostile(ctx context.Context, opt HostileOptions) (_ *HostileResult, err error) {
	if opt.Live != nil {
		return nil, errors.New("a flood is for a reflector of one's own only")
	}
	f := &fanout{FanoutOptions: FanoutOptions{Options: opt.Options, Clients: opt.Clients, ZoneSize: opt.ZoneSize, Count: opt.Count, Rate: opt.Rate, Origins: 1}}
	rounds := max(1, opt.Rounds)
	f.plan = plan{opt.Clients, opt.ZoneSize, 1 + len(floods)*rounds, floodHosts * max(len(floods)*rounds, 4), max(leastFaulty, opt.Rate), opt.Devices, opt.Hosts}
	if err := errors.Join(f.plan.check(), raiseFiles(2*opt.Clients+64)); err != nil {
		return nil, err
	}
	res := &HostileResult{Machine: machine(), Clients: opt.Clients, Rate: opt.Rate}
	defer func() { err = errors.Join(err, f.leave()) }()
	for _, step := range []func(context.Context) error{f.begin, f.connect, f.attach, f.attachFaulty} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	res.Auth = f.target.Auth.String()
	f.say("%d changes of hosts", logMessages)
	if err := f.change(ctx, logMessages); err != nil {
		return nil, err
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return nil, err
	}
	if _, err := f.faultPhase(ctx, 20); err != nil { // warms up
		return nil, err
	}
	for i := range floods {
		if opt.Only != "" && opt.Only != floods[i].name {
			continue
		}
		r := Flood{Name: floods[i].name, What: floods[i].what}
		f.say("under a flood of %s", r.What)
		for round := range rounds {
			// A device of its own each time: none has used up what it may send at once.
			if err := f.underFlood(ctx, &r, i, i*rounds+round, max(1, opt.Count/rounds)); err != nil {
				return nil, fmt.Errorf("flood %q: %w", r.Name, err)
			}
		}
		r.Quiet, r.Fault, r.Control = quantiles(r.quiet), quantiles(r.took), quantiles(r.control)
		r.P99Ratio, r.ControlRatio, r.MemoryRatio = r.Fault.P99/r.Quiet.P99, r.Control.P99/r.Quiet.P99, r.Peak/r.QuietPeak
		r.ToControl = r.Fault.P99 / r.Control.P99
		res.Floods = append(res.Floods, r)
	}
	return res, nil
}

const (
	// logMessages is how many messages fill what a reflector keeps for clients that come
	// back, as the hosts of a fabric do in a day or two.
	logMessages = 45_000
	// churn is how many change before each quiet phase, so that its memory is that of a
	// reflector at work: between two collections.
	churn = 6000
)

// leastFaulty is how many ports have faults in turn, at least; there are so many that none has more
// than one in a second: what a port that flaps tells is told when nothing else is to do, which is
// not what a fault waits for.
const leastFaulty = 64

// attachFaulty puts the hosts that have faults.
func (f *fanout) attachFaulty(ctx context.Context) error {
	o := f.origins[0]
	u := o.update(f.crew.epoch)
	for j := range f.plan.faulty {
		u.Hosts = append(u.Hosts, putHost(f.plan.faultyHost(j), o.dev, f.plan.faultyPort(j), time.Now()))
	}
	had := f.crew.all[0].recs.Load()
	if err := o.send(u); err != nil {
		return err
	}
	return f.crew.until(ctx, time.Minute, "hosts that have faults", func() bool {
		return f.crew.all[0].recs.Load() >= had+uint64(f.plan.faulty)
	})
}

// change lets hosts of the clients change so often.
func (f *fanout) change(ctx context.Context, times int) error {
	for n := range times {
		i := n % f.Clients
		c := f.crew.all[i]
		u := c.update(f.crew.epoch)
		u.Hosts = []wire.HostRecord{putHost(f.Hosts.at(i), c.dev, portZone, time.Now())}
		if err := c.send(u); err != nil {
			return err
		}
		if n%1000 == 999 {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// underFlood measures a quiet phase, one under flood i of device dev, and its control, and adds
// them.
func (f *fanout) underFlood(ctx context.Context, r *Flood, i, dev, count int) error {
	mib := func(n uint64) float64 { return float64(n) / (1 << 20) }
	if _, err := f.own.resetPeak(ctx); err != nil {
		return err
	}
	if err := f.change(ctx, churn); err != nil {
		return err
	}
	if err := pause(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	var used [4]time.Duration // before and after the quiet phase, and the flood
	var err error
	if used[0], err = f.used(ctx); err != nil {
		return err
	}
	quiet, err := f.faultPhase(ctx, count)
	if err != nil {
		return err
	}
	if used[1], err = f.used(ctx); err != nil {
		return err
	}
	s, err := f.own.resetPeak(ctx)
	if err != nil {
		return err
	}
	r.quiet, r.QuietPeak, r.QuietLive = append(r.quiet, quiet...), max(r.QuietPeak, mib(s.Peak)), max(r.QuietLive, mib(s.Heap))
	if used[2], err = f.used(ctx); err != nil {
		return err
	}
	stop, sent, err := f.flood(ctx, i, dev)
	if err != nil {
		return err
	}
	took, err := f.faultPhase(ctx, count)
	stop()
	if err != nil {
		return err
	}
	if s, err = f.own.stats(ctx, true); err != nil {
		return err
	}
	r.took, r.Peak, r.Live = append(r.took, took...), max(r.Peak, mib(s.Peak)), max(r.Live, mib(s.Heap))
	if used[3], err = f.used(ctx); err != nil {
		return err
	}
	r.Sent += sent.Load()
	more := max(0, used[3]-used[2]-(used[1]-used[0]))
	r.CPU += more
	if err := pause(ctx, time.Second); err != nil { // what the flood left behind
		return err
	}
	stop, err = burn(ctx, more)
	if err != nil {
		return err
	}
	if err = pause(ctx, floodBegins); err != nil {
		stop()
		return err
	}
	control, err := f.faultPhase(ctx, count)
	stop()
	r.control = append(r.control, control...)
	return err
}

// flood lets device dev, which is nobody else's, send flood i until stop is called.
func (f *fanout) flood(ctx context.Context, i, dev int) (stop func(), sent *atomic.Uint64, err error) {
	c, err := connect(ctx, f.target, f.Devices.at(f.Clients+1+dev), 0, f.crew.epoch, newCrowd())
	if err != nil {
		return nil, nil, err
	}
	go c.run()
	if err := c.send(&wire.EndOfSync{Epoch: f.crew.epoch}); err != nil {
		return nil, nil, err
	}
	fl := &flooder{client: c, plan: &f.plan, first: dev * floodHosts, epoch: f.crew.epoch}
	sent = &atomic.Uint64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c.send(floods[i].make(fl)) == nil {
			fl.n++
			sent.Add(1)
		}
	}()
	stop = func() {
		_ = c.nc.(*net.TCPConn).SetLinger(0) // what is on its way must not reach into the next phase
		c.nc.Close()
		<-done
		<-c.done
	}
	return stop, sent, pause(ctx, floodBegins)
}

// faultPhase gives how long each of some faults of the first origin took. The port recovers as soon
// as all have heard of it.
func (f *fanout) faultPhase(ctx context.Context, count int) ([]time.Duration, error) {
	// Every client hears of the flood too: what counts is the fault.
	crowd := newCrowd()
	to := make([]*watch, min(f.ZoneSize, f.Clients))
	for i := range to {
		to[i] = &watch{crowd: crowd}
		r := f.crew.all[i].reader
		r.watch.Store(to[i])
		defer r.watch.Store(nil)
	}
	tick := time.NewTicker(time.Second / time.Duration(f.Rate))
	defer tick.Stop()
	var took []time.Duration
	for range count {
		<-tick.C
		port, addr := f.plan.faultyPort(f.nth%f.plan.faulty), f.plan.faultyHost(f.nth%f.plan.faulty)
		f.nth++
		crowd.pending.Store(int64(len(to)))
		for _, w := range to {
			w.port = append([]byte{byte(len(port))}, port...)
			w.armed.Store(true)
		}
		began := time.Now()
		if err := f.fault(port, addr, true); err != nil {
			return nil, err
		}
		at, err := f.crew.wait(ctx, crowd, 2*time.Minute)
		if err != nil {
			return nil, err
		}
		took = append(took, at.Sub(began))
		if err := f.fault(port, addr, false); err != nil {
			return nil, err
		}
	}
	return took, nil
}
