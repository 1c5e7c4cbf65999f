package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime/debug"
	"slices"
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
	Count    int    // faults of all quiet slices of one kind of flood, of all under it, and of all controls
	Rounds   int    // into which these are divided: a quiet slice, one under a flood and a control take turns
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
	Flooder string  `json:"flooder"`  // where it runs
	Process string  `json:"process"`  // the reflector's, and that of the clients that are measured: its priority
	Turns   string  `json:"turns_ms"` // after which threads of one real-time priority give way to each other
	Floods  []Flood `json:"floods"`
}

// Flood is one way in which an authenticated client sends without end, and what a fault
// elsewhere takes meanwhile.
type Flood struct {
	Name  string    `json:"name"`
	What  string    `json:"what"`
	Sent  uint64    `json:"messages_sent"` // of the floods; as fast as the reflector took them
	Quiet Quantiles `json:"quiet"`         // a fault until the last client of its zone has it
	Fault Quantiles `json:"fault"`         // the same under the flood
	Ratio Ratio     `json:"p99_ratio"`     // of the flood to quiet
	// Where the time goes, quiet and under the flood.
	QuietHops Hops `json:"quiet_hops"`
	FaultHops Hops `json:"fault_hops"`
	// The same without a flood, while the process that flooded takes as much processor time.
	CPU          time.Duration `json:"cpu_ns"`           // of that process, in all floods
	ReflectorCPU time.Duration `json:"reflector_cpu_ns"` // of the reflector, in all floods
	Control      Quantiles     `json:"control"`
	ControlRatio Ratio         `json:"control_p99_ratio"` // of the control to quiet
	// Memory of the reflector in MiB, at most: while hosts of all clients change and faults come,
	// and under the flood.
	QuietPeak   float64 `json:"quiet_rss_peak_mib"`
	Peak        float64 `json:"rss_peak_mib"`
	MemoryRatio float64 `json:"memory_ratio"`
	// What of it is in use, after a collection at the end of each.
	QuietLive float64 `json:"quiet_live_mib"`
	Live      float64 `json:"live_mib"`
}

// Ratio is one of two p99s: of all slices together, and slice by slice.
type Ratio struct {
	All    float64 `json:"all"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// Hops are the p99s of the parts of the way of a fault, in milliseconds.
type Hops struct {
	In      float64 `json:"in_p99_ms"`      // from its origin until the reflector has read it
	Through float64 `json:"through_p99_ms"` // until it has made the message that tells it
	Out     float64 `json:"out_p99_ms"`     // until the last client has read that
}

// slices of one kind, each with what its faults took.
type sliced [][]faultTime

func part(all []faultTime, of func(faultTime) time.Duration) Quantiles {
	ds := make([]time.Duration, len(all))
	for i := range all {
		ds[i] = of(all[i])
	}
	return quantiles(ds)
}

func whole(all []faultTime) Quantiles {
	return part(all, func(f faultTime) time.Duration { return f.all })
}

func (s sliced) quantiles() Quantiles { return whole(slices.Concat(s...)) }

func (s sliced) hops() Hops {
	all := slices.Concat(s...)
	return Hops{In: part(all, func(f faultTime) time.Duration { return f.in }).P99,
		Through: part(all, func(f faultTime) time.Duration { return f.through }).P99,
		Out:     part(all, func(f faultTime) time.Duration { return f.out }).P99}
}

// to gives the ratio of the p99s to those of other slices of the same rounds.
func (s sliced) to(other sliced) Ratio {
	each := make([]float64, len(s))
	for i := range s {
		each[i] = whole(s[i]).P99 / whole(other[i]).P99
	}
	slices.Sort(each)
	return Ratio{All: s.quantiles().P99 / other.quantiles().P99, Min: each[0], Median: each[len(each)/2], Max: each[len(each)-1]}
}

const (
	// logMessages is how many messages fill what a reflector keeps for clients that come
	// back, as the hosts of a fabric do in a day or two.
	logMessages = 45_000
	// churn is how many change before the memory of a reflector at work is taken: that between two
	// collections.
	churn = 6000
	// leastFaulty is how many ports have faults in turn, at least; there are so many that none has
	// more than one in a second: what a port that flaps tells is told when nothing else is to do,
	// which is not what a fault waits for.
	leastFaulty = 64
	// originRate is how many faults a second one device has at most. Faults of one device that
	// come in a burst wait for each other.
	originRate = 20
	// settleTime is for what a flood has left behind: up to 1 MiB of it was read and is still taken,
	// and told. No slice without a flood is to have that in it.
	settleTime = 4 * time.Second
)

// hostile is one run against one reflector.
type hostile struct {
	HostileOptions
	plan    plan
	own     *ownReflector
	crew    *crew // the clients that hear of the fault, then the origins of faults
	board   *board
	nth     int // of the faults in turn
	flooder child
	where   string
	with    string // what priority
	epoch   uint64
	left    func(rounds int) // hears of those against this reflector that are done
}

// Hostile measures what one client that sends without end does to a fault elsewhere.
func Hostile(ctx context.Context, opt HostileOptions) (*HostileResult, error) {
	if opt.Live != nil {
		return nil, errors.New("a flood is for a reflector of one's own only")
	}
	if err := raiseFiles(2*opt.Clients + 64); err != nil {
		return nil, err
	}
	// This process is the clients of a fabric: its collections are none of the reflector's.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	if _, err := asElsewhere(); err != nil {
		return nil, err
	}
	defer func() { _ = asOthers() }()
	turns, restore, err := asPackaged()
	if err != nil {
		return nil, err
	}
	defer restore()
	opt.Rounds = max(1, opt.Rounds)
	res := &HostileResult{Machine: machine(), Clients: opt.Clients, Rate: opt.Rate, Turns: turns}
	all := len(floods) * opt.Rounds
	if opt.Only != "" {
		all = opt.Rounds
	}
	left := opt.left("rounds")
	for i := range floods {
		if opt.Only != "" && opt.Only != floods[i].name {
			continue
		}
		f := &Flood{Name: floods[i].name, What: floods[i].what}
		opt.say("under a flood of %s", f.What)
		// Each against a reflector of its own: none finds what another has left.
		h := &hostile{HostileOptions: opt, left: func(rounds int) { left(len(res.Floods)*opt.Rounds+rounds, all) }, plan: plan{clients: opt.Clients, zoneSize: opt.ZoneSize, origins: (opt.Rate + originRate - 1) / originRate,
			burst: floodHosts * max(opt.Rounds+1, 4), faulty: max(leastFaulty, opt.Rate), devices: opt.Devices, hosts: opt.Hosts}}
		if err := errors.Join(h.measure(ctx, f), h.leave()); err != nil {
			return nil, fmt.Errorf("flood %q: %w", f.Name, err)
		}
		res.Auth, res.Flooder, res.Process = h.own.Auth.String(), h.where, h.with
		res.Floods = append(res.Floods, *f)
	}
	return res, nil
}

// measure measures one way to flood.
func (h *hostile) measure(ctx context.Context, f *Flood) error {
	for _, step := range []func(context.Context) error{h.begin, h.attach, h.fill} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if _, err := h.faults(ctx, h.Rate/4); err != nil { // warms up
		return err
	}
	count := max(1, h.Count/h.Rounds)
	if err := h.memory(ctx, f, count); err != nil {
		return err
	}
	var quiet, under, control sliced
	for round := range h.Rounds {
		h.left(round)
		q, err := h.faults(ctx, count)
		if err != nil {
			return err
		}
		before, err := h.own.stats(ctx, false)
		if err != nil {
			return err
		}
		// A device of its own each time: none has used up what it may send at once.
		began := time.Now()
		u, cpu, err := h.underFlood(ctx, f, 1+round, count)
		if err != nil {
			return err
		}
		over := time.Since(began)
		after, err := h.own.stats(ctx, false)
		if err != nil {
			return err
		}
		f.CPU, f.ReflectorCPU = f.CPU+cpu, f.ReflectorCPU+after.CPU-before.CPU
		if err := pause(ctx, settleTime); err != nil {
			return err
		}
		if _, err := h.flooder.ask(ctx, request{Op: "burn", Flood: &floodOf{CPU: cpu, Over: over}}); err != nil {
			return err
		}
		c, err := h.faults(ctx, count)
		if err != nil {
			return err
		}
		if _, err := h.flooder.ask(ctx, request{Op: "rest"}); err != nil {
			return err
		}
		quiet, under, control = append(quiet, q), append(under, u), append(control, c)
	}
	f.Quiet, f.Fault, f.Control = quiet.quantiles(), under.quantiles(), control.quantiles()
	f.Ratio, f.ControlRatio = under.to(quiet), control.to(quiet)
	f.QuietHops, f.FaultHops = quiet.hops(), under.hops()
	return nil
}

// begin starts the processes and brings the clients in.
func (h *hostile) begin(ctx context.Context) (err error) {
	if err := h.plan.check(); err != nil {
		return err
	}
	// None of those that flooded comes back: what they had stays until the run is over.
	if h.own, err = startReflector(ctx, h.Process, h.Auth, h.plan.zones(), "grace: 1h"); err != nil {
		return err
	}
	if err := h.flooder.start(h.Process, "flooder", h.own.dir); err != nil {
		return err
	}
	r, err := h.own.ask(ctx, request{Op: "priority"})
	if err != nil {
		return err
	}
	h.with = r.Where
	measured := h.measured()
	if h.crew, err = assemble(ctx, &h.own.Target, slices.Concat(h.Devices.list(0, measured), h.Devices.list(h.Clients, h.plan.origins)), nil); err != nil {
		return err
	}
	h.epoch = h.crew.epoch
	r, err = h.flooder.ask(ctx, request{Op: "join", Flood: &floodOf{Addr: h.own.Addr, Auth: h.Auth, Clients: h.Clients, Measured: measured,
		ZoneSize: h.ZoneSize, Origins: h.plan.origins, Burst: h.plan.burst, Devices: h.Devices, Hosts: h.Hosts}})
	h.where = r.Where
	return err
}

// measured is how many clients hear of the fault.
func (h *hostile) measured() int { return min(h.ZoneSize, h.Clients) }

// origin is the device that has a faulty port.
func (h *hostile) origin(port int) *client { return h.crew.all[h.measured()+port%h.plan.origins] }

// attach lets the hosts appear and waits until all have heard of those that have faults.
func (h *hostile) attach(ctx context.Context) error {
	for i, c := range h.crew.all[:h.measured()] {
		u := c.update(h.epoch)
		u.Hosts = []wire.HostRecord{putHost(h.Hosts.at(i), c.dev, portZone, time.Now())}
		if err := c.send(u); err != nil {
			return err
		}
	}
	had := make([]uint64, h.measured())
	for i, c := range h.crew.all[:h.measured()] {
		had[i] = c.recs.Load()
	}
	for j := range h.plan.faulty {
		o := h.origin(j)
		u := o.update(h.epoch)
		u.Hosts = []wire.HostRecord{putHost(h.plan.faultyHost(j), o.dev, h.plan.faultyPort(j), time.Now())}
		if err := o.send(u); err != nil {
			return err
		}
	}
	if err := h.crew.until(ctx, time.Minute, "hosts that have faults", func() bool {
		for i, c := range h.crew.all[:h.measured()] {
			if c.recs.Load() < had[i]+uint64(h.plan.faulty) {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	h.board = newBoard(h.plan.faulty, h.measured())
	for _, c := range h.crew.all[:h.measured()] {
		c.watch.Store(h.board.watch())
	}
	return nil
}

// fill has the reflector keep as much as it does.
func (h *hostile) fill(ctx context.Context) error {
	if err := h.change(ctx, logMessages); err != nil {
		return err
	}
	return pause(ctx, 3*time.Second)
}

// change lets hosts of the clients change so often.
func (h *hostile) change(ctx context.Context, times int) error {
	for n := range times {
		i := n % h.measured()
		c := h.crew.all[i]
		u := c.update(h.epoch)
		u.Hosts = []wire.HostRecord{putHost(h.Hosts.at(i), c.dev, portZone, time.Now())}
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

// fault sets or ends the fault of a port.
func (h *hostile) fault(port int, on bool) error {
	o := h.origin(port)
	u := o.update(h.epoch)
	r := wire.DownRecord{Device: o.dev, Port: h.plan.faultyPort(port), Addrs: []netip.Addr{h.plan.faultyHost(port)}}
	if on {
		r.Down = zone.Down{Why: snsd.ReasonLinkDown, Since: u.SentAt}
	}
	u.FaultAt, u.Downs = u.SentAt, []wire.DownRecord{r}
	return o.send(u)
}

// underFlood gives how long faults took while device dev floods, and the processor time that its
// process has taken. They come from its first message on: it may send the most at the beginning.
func (h *hostile) underFlood(ctx context.Context, f *Flood, dev, count int) ([]faultTime, time.Duration, error) {
	before, err := h.flooder.ask(ctx, request{Op: "rest"})
	if err != nil {
		return nil, 0, err
	}
	endTrace, err := h.own.trace(ctx, h.Profiles, fmt.Sprintf("%s-%d", f.Name, dev))
	if err != nil {
		return nil, 0, err
	}
	if _, err := h.flooder.ask(ctx, request{Op: "flood", Flood: &floodOf{Kind: f.Name, Device: dev}}); err != nil {
		return nil, 0, err
	}
	took, err := h.faults(ctx, count)
	if err := errors.Join(err, endTrace()); err != nil {
		return nil, 0, err
	}
	after, err := h.flooder.ask(ctx, request{Op: "rest"})
	f.Sent += after.Sent
	return took, after.CPU - before.CPU, err
}

// memory takes that of a reflector at work, and under a flood. No fault of these slices is counted:
// what a collection gives back is asked for anew.
func (h *hostile) memory(ctx context.Context, f *Flood, count int) error {
	peak := func() (peak, live float64, err error) {
		s, err := h.own.resetPeak(ctx)
		return float64(s.Peak) / (1 << 20), float64(s.Heap) / (1 << 20), err
	}
	if _, _, err := peak(); err != nil {
		return err
	}
	err := h.change(ctx, churn)
	if err == nil {
		err = pause(ctx, 500*time.Millisecond)
	}
	if err == nil {
		_, err = h.faults(ctx, count)
	}
	if err != nil {
		return err
	}
	if f.QuietPeak, f.QuietLive, err = peak(); err != nil {
		return err
	}
	if _, _, err = h.underFlood(ctx, f, 0, max(count, h.Rate)); err != nil {
		return err
	}
	if f.Peak, f.Live, err = peak(); err != nil {
		return err
	}
	f.MemoryRatio = f.Peak / math.Max(1, f.QuietPeak)
	return pause(ctx, settleTime)
}

// leave ends the run.
func (h *hostile) leave() error {
	if h.flooder.cmd != nil {
		_ = h.flooder.in.Close()
		_ = h.flooder.cmd.Wait()
		h.flooder.cmd = nil
	}
	if h.crew != nil {
		h.crew.close()
	}
	if h.own != nil {
		h.own.close()
	}
	return nil
}
