package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Zones is where the zones of a live reflector are changed.
type Zones interface {
	AddZone(ctx context.Context, name string, members []string) error
	RemoveZone(ctx context.Context, name string) error
	// Hosts is how many hosts are in the zones whose names begin with prefix.
	Hosts(ctx context.Context, prefix string) (int, error)
}

// Options are what all benchmarks have in common.
type Options struct {
	Auth    string  // of a reflector of one's own: none, hmac-sha256 or tls
	Process Process // that starts it
	// Live is the reflector under load instead, and where its zones are changed.
	Live      *Target
	LiveZones Zones
	Devices   Range
	Hosts     Range
	Profiles  string           // directory for profiles of a reflector of one's own; empty: none
	Progress  func(string)     // nil: nobody is told
	now       func() time.Time // of what Progress is told; nil: time.Now
}

// FanoutOptions say how the passing on of changes is measured.
type FanoutOptions struct {
	Options
	Clients  int
	ZoneSize int // clients that share a zone with the first fault
	Count    int // faults of each kind
	Rate     int // a second, all kinds together
	Burst    int // changes in one burst; 0: none
	Origins  int // devices from which they come
	// Paced leaves a reflector of one's own its limits of what a device may say at once. Without
	// it they are as high as they go: the burst is to measure work, and by default a device that
	// sends 1,000 hosts each in a message of its own is made to wait until 0.9 s have gone by.
	Paced bool
}

// Machine is where a benchmark ran.
type Machine struct {
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	Load string `json:"load_average"` // at the start: 1, 5 and 15 minutes
}

func machine() Machine {
	b, _ := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(b))
	return Machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), Load: strings.Join(f[:min(3, len(f))], " ")}
}

// FanoutResult is what came out.
type FanoutResult struct {
	Machine   Machine `json:"machine"`
	Reflector string  `json:"reflector"`
	Auth      string  `json:"auth"`
	Clients   int     `json:"clients"`
	ZoneSize  int     `json:"zone_size"`
	Rate      int     `json:"rate"`
	Origins   int     `json:"origins"`
	Devices   Range   `json:"devices"`
	Hosts     Range   `json:"hosts"`
	Bytes     int     `json:"message_bytes"` // of one fault on the wire

	Connect time.Duration `json:"connect_ns"` // until the last session was established
	// Zone is a fault until the last client of its zone has it, All the same for a
	// fault that concerns all clients.
	Zone Compared `json:"zone"`
	All  Compared `json:"all"`
	// HostBurst are hosts that come up, FaultBurst their ports failing, each change a
	// message of its own.
	HostBurst  *Burst  `json:"host_burst,omitempty"`
	FaultBurst *Burst  `json:"fault_burst,omitempty"`
	Memory     *Memory `json:"memory,omitempty"` // of a reflector of one's own
}

// Memory is what a session costs the reflector, in KiB.
type Memory struct {
	Sessions int     `json:"sessions"`
	Heap     float64 `json:"heap_kib"`  // objects in use
	Stack    float64 `json:"stack_kib"` // of goroutines
	RSS      float64 `json:"rss_kib"`   // of the process, after a collection
}

// fanout is one run.
type fanout struct {
	FanoutOptions
	plan    plan
	own     *ownReflector // nil: live
	target  *Target
	crew    *crew
	origins []*client
	bare    *bareCrew
	bareTLS *bareCrew // nil but in mode tls
	added   []string  // zones of a live reflector
	res     FanoutResult
}

// Fanout measures how changes are passed on.
func Fanout(ctx context.Context, opt FanoutOptions) (res *FanoutResult, err error) {
	f := &fanout{FanoutOptions: opt, plan: plan{clients: opt.Clients, zoneSize: opt.ZoneSize, origins: opt.Origins, burst: opt.Burst, devices: opt.Devices, hosts: opt.Hosts}}
	if err := f.plan.check(); err != nil {
		return nil, err
	}
	if err := raiseFiles(3*opt.Clients + opt.Origins + 16); err != nil {
		return nil, err
	}
	f.res = FanoutResult{Machine: machine(), Clients: opt.Clients, ZoneSize: opt.ZoneSize, Rate: opt.Rate, Origins: opt.Origins, Devices: opt.Devices, Hosts: opt.Hosts}
	defer func() { err = errors.Join(err, f.leave()) }()
	for _, step := range []func(context.Context) error{f.begin, f.connect, f.attach, f.faults, f.bursts} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return &f.res, nil
}

// begin starts the reflector, or puts the zones into one that is there.
func (f *fanout) begin(ctx context.Context) error {
	set := f.plan.zones()
	if f.Live != nil {
		f.target = f.Live
		f.res.Reflector = f.Live.Addr.String()
		f.say("adding %d zones %s*", len(set.Zones), ZonePrefix)
		if err := f.addZones(ctx, set); err != nil {
			return err
		}
	} else {
		own, err := startReflector(ctx, f.Process, f.Auth, set, f.limits()...)
		if err != nil {
			return err
		}
		f.own, f.target, f.res.Reflector = own, &own.Target, "a process of its own"
	}
	f.res.Auth = f.target.Auth.String()
	return nil
}

// limits are the settings of a reflector of one's own for what a device may say.
func (f *fanout) limits() []string {
	if f.Paced {
		return nil
	}
	return []string{"records-per-second: 1000000", "records-burst: 1000000"}
}

func (f *fanout) addZones(ctx context.Context, set zone.Set) error {
	left := f.left("zones")
	for i := range set.Zones {
		left(i, len(set.Zones))
		z := &set.Zones[i]
		members := make([]string, len(z.Members))
		for k := range z.Members {
			members[k] = z.Members[k].String()
		}
		if err := f.LiveZones.AddZone(ctx, z.Name, members); err != nil {
			return fmt.Errorf("zone %s: %w", z.Name, err)
		}
		f.added = append(f.added, z.Name)
	}
	return nil
}

// connect opens all sessions.
func (f *fanout) connect(ctx context.Context) error {
	var before stats
	var err error
	if f.own != nil {
		if before, err = f.own.stats(ctx, true); err != nil {
			return err
		}
	}
	f.say("connecting %d clients", f.Clients)
	began := time.Now()
	if f.crew, err = assemble(ctx, f.target, f.Devices.list(0, f.Clients+f.Origins), f.left("sessions")); err != nil {
		return err
	}
	f.res.Connect = time.Since(began)
	f.origins = f.crew.all[f.Clients:]
	if f.own == nil {
		return nil
	}
	// Every client has its zone and the word that this is all.
	if err := f.crew.until(ctx, time.Minute, "full sync", func() bool {
		for _, c := range f.crew.all {
			if c.syncs.Load() == 0 {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	after, err := f.own.stats(ctx, true)
	if err != nil {
		return err
	}
	if err := f.own.heap(ctx, f.Profiles, "sessions-heap"); err != nil {
		return err
	}
	n := float64(f.Clients + f.Origins)
	kib := func(after, before uint64) float64 { return (float64(after) - float64(before)) / 1024 / n }
	f.res.Memory = &Memory{Sessions: int(n), Heap: kib(after.Heap, before.Heap), Stack: kib(after.Stack, before.Stack), RSS: kib(after.RSS, before.RSS)}
	return nil
}

// attach lets the hosts appear and waits until everybody has heard of its neighbours.
func (f *fanout) attach(ctx context.Context) error {
	now := time.Now()
	had := make([]uint64, f.Clients)
	for i, c := range f.crew.all[:f.Clients] {
		had[i] = c.recs.Load()
	}
	put := func(c *client, hosts ...wire.HostRecord) error {
		u := c.update(f.crew.epoch)
		u.Hosts = hosts
		return c.send(u)
	}
	for i, c := range f.crew.all[:f.Clients] {
		if err := put(c, putHost(f.Hosts.at(i), c.dev, portZone, now)); err != nil {
			return err
		}
	}
	first := f.origins[0]
	if err := put(first, putHost(f.plan.zoneHost(), first.dev, portZone, now), putHost(f.plan.allHost(), first.dev, portAll, now)); err != nil {
		return err
	}
	err := f.crew.until(ctx, 2*time.Minute, "hosts in common zones", func() bool {
		for i, c := range f.crew.all[:f.Clients] {
			want := f.plan.inZone(i) // its neighbours and the one of all
			if i < f.ZoneSize {
				want++ // that of the origin
			}
			if c.recs.Load()-had[i] < uint64(want) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("%w; are the devices %v allowed there?", err, f.Devices)
	}
	return pause(ctx, 50*time.Millisecond) // for what comes twice to have come
}

// fault sets or ends the fault of a port of the first origin, and gives when it was written.
func (f *fanout) fault(port string, addr netip.Addr, on bool) (time.Time, error) {
	o := f.origins[0]
	u := o.update(f.crew.epoch)
	r := wire.DownRecord{Device: o.dev, Port: port, Addrs: []netip.Addr{addr}}
	if on {
		r.Down = zone.Down{Why: snsd.ReasonLinkDown, Since: u.SentAt}
	}
	u.FaultAt, u.Downs = u.SentAt, []wire.DownRecord{r}
	return o.sendTimed(u)
}

// faults measures single faults in turn with the bare loop.
func (f *fanout) faults(ctx context.Context) error {
	readers := func(n int) []*reader {
		out := make([]*reader, n)
		for i := range out {
			out[i] = f.crew.all[i].reader
		}
		return out
	}
	zoneSize := min(f.ZoneSize, f.Clients)
	kinds := []struct {
		port string
		addr netip.Addr
		to   []*reader
		res  *Compared
	}{{portZone, f.plan.zoneHost(), readers(zoneSize), &f.res.Zone}, {portAll, f.plan.allHost(), readers(f.Clients), &f.res.All}}
	// One of each first: it warms up, and its bytes are those of the bare loop.
	for _, k := range kinds {
		k.to[0].keep.Store(true)
		for _, on := range []bool{true, false} {
			f.crew.crowd.expect(k.to, 1)
			if _, err := f.fault(k.port, k.addr, on); err != nil {
				return err
			}
			if _, err := f.crew.wait(ctx, f.crew.crowd, time.Minute); err != nil {
				return err
			}
		}
	}
	frame := *f.crew.all[0].frame.Load()
	f.res.Bytes = len(frame)
	var err error
	if f.bare, err = newBareCrew(f.bareAddr(), f.Clients, []int{zoneSize, f.Clients}, false); err != nil {
		return err
	}
	if f.target.Auth == wire.AuthTLS {
		if f.bareTLS, err = newBareCrew(f.bareAddr(), f.Clients, []int{zoneSize, f.Clients}, true); err != nil {
			return err
		}
	}
	stop, err := f.own.profile(ctx, f.Profiles, "faults")
	if err != nil {
		return err
	}
	f.say("%d faults of each kind", f.Count)
	tick := time.NewTicker(time.Second / time.Duration(f.Rate))
	defer tick.Stop()
	// single waits for its turn and gives how long it took until the last had it.
	single := func(c *crowd, to []*reader, send func() (time.Time, error)) (time.Duration, error) {
		<-tick.C
		c.expect(to, 1)
		began, err := send()
		if err != nil {
			return 0, err
		}
		at, err := f.crew.wait(ctx, c, time.Minute)
		return at.Sub(began), err
	}
	bare := func(b *bareCrew, k int) (time.Duration, error) {
		return single(b.crowd, b.to[:len(kinds[k].to)], func() (time.Time, error) {
			began := time.Now()
			_, err := b.from[k].Write(frame)
			return began, err
		})
	}
	ways := []func(n, k int) (time.Duration, error){
		func(n, k int) (time.Duration, error) {
			return single(f.crew.crowd, kinds[k].to, func() (time.Time, error) { return f.fault(kinds[k].port, kinds[k].addr, n%2 == 0) })
		},
		func(_, k int) (time.Duration, error) { return bare(f.bare, k) },
		func(_, k int) (time.Duration, error) { return bare(f.bareTLS, k) },
	}
	if f.bareTLS == nil {
		ways = ways[:2]
	}
	took := make([][3][]time.Duration, len(kinds)) // ours, bound, bound in TLS
	left := f.left("faults of each kind")
	for n := range f.Count {
		left(n, f.Count)
		for k := range kinds {
			// The first finds a machine that was idle, the others one that was not: they
			// take turns.
			for turn := range ways {
				way := (turn + n/2) % len(ways)
				d, err := ways[way](n, k)
				if err != nil {
					return err
				}
				took[k][way] = append(took[k][way], d)
			}
		}
	}
	for k, kind := range kinds {
		*kind.res = compare(took[k][0], took[k][1]).withTLS(took[k][2])
	}
	return stop()
}

// bareAddr is where the bare loop runs: beside the reflector, or here.
func (f *fanout) bareAddr() string {
	if f.own != nil {
		return f.own.bare
	}
	return ""
}

// leave removes all that the run has left, and ends it.
func (f *fanout) leave() error {
	var err error
	for _, b := range []*bareCrew{f.bare, f.bareTLS} {
		if b != nil {
			b.close()
		}
	}
	if f.Live != nil {
		err = f.cleanUp()
	}
	if f.crew != nil {
		f.crew.close()
	}
	if f.own != nil {
		f.own.close()
	}
	return err
}
