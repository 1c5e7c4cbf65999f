package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/internal/telemetry"
)

const (
	// leastSnapshot is how long a snapshot serves all who ask.
	leastSnapshot = time.Second
	// idleAfter is how long ports are read after nobody has asked any more.
	idleAfter = 2 * time.Minute
	// How often what drivers and modules tell is read while somebody asks, and nobody wants it
	// faster.
	driverPeriod, modulePeriod = time.Second, 10 * time.Second
)

// What is kept of a port: each with the time of its own reading.
const (
	ofDriver = iota
	ofModule
	ofKernel // totals, where they are wanted more often than the rest
	parts
)

// known reads what telemetry tells, for all its outlets: at most one snapshot a second, however
// many ask. What takes a driver its time is read by a sampler of its own, within its share of
// a core, and only while somebody asks; the owner of the Core answers what an operator's
// questions ask of it too, in small parts.
type known struct {
	d     *Daemon
	asked chan struct{} // somebody has

	mu      sync.Mutex // one reads at a time
	last    *telemetry.Snapshot
	has     telemetry.Need // of last
	machine machine
	// The large tables.
	hosts      large[api.Host]
	zones      large[api.Zone]
	neighbours large[api.Neighbour]

	readings sync.Mutex
	health   map[string][parts]telemetry.Health
	paces    map[*telemetry.Pace]bool // what is wanted faster than it is read by itself

	quick   sync.Mutex
	load    telemetry.Machine // as last read in a hurry
	hurried machine
}

func newKnown(d *Daemon) *known {
	return &known{d: d, asked: make(chan struct{}, 1), health: map[string][parts]telemetry.Health{}, paces: map[*telemetry.Pace]bool{}}
}

func (k *known) String() string { return "telemetry" }

// Snapshot gives what is known, with the parts that are needed, not older than a second, nor than
// after.
func (k *known) Snapshot(ctx context.Context, need telemetry.Need, after time.Time) (*telemetry.Snapshot, error) {
	k.ask()
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.d.env.Now(); k.last != nil && now.Sub(k.last.At) < leastSnapshot && k.last.At.After(after) {
		if k.has&need == need {
			return k.last, nil
		}
		need |= k.has
	}
	s, err := k.read(ctx, need)
	if err != nil {
		return nil, err
	}
	k.last, k.has = s, need
	return s, nil
}

func (k *known) read(ctx context.Context, need telemetry.Need) (*telemetry.Snapshot, error) {
	d := k.d
	s := &telemetry.Snapshot{At: d.env.Now(), Inconsistent: -1, Events: d.log.Kinds()}
	var err error
	get := func(read func() error) {
		if err == nil {
			err = read()
		}
	}
	get(func() (err error) { s.Status, err = d.Status(ctx); return err })
	get(func() (err error) { s.Counters, err = query.Counters(s.Status.Counters); return err })
	get(func() (err error) { s.Peers, err = d.Peers(ctx); return err })
	get(func() (err error) { s.Paths, err = d.BFD(ctx); return err })
	get(func() (err error) { s.Latency, err = d.Latency(ctx); return err })
	get(func() (err error) { s.Ports, err = d.Ports(ctx); s.CountersAt = d.env.Now(); return err })
	get(func() error {
		return d.Do(ctx, func(c *device.Core, now time.Time) {
			s.Faults = c.ErrorDown(now)
			if d.cfg.Load().Device.Roles.Client {
				s.Inconsistent = len(c.Differing())
			}
		})
	})
	if d.zones != nil {
		cfg, b := d.cfg.Load(), d.zones.zoning()
		s.Zoning = &telemetry.Zoning{Version: versionNow(b), Plan: b.Plan(), AutoJoin: cfg.Zones.AutoJoin, Hard: cfg.Zones.Hard}
	}
	if e, ok := d.log.Latest(); ok {
		s.Latest = &e
	}
	if need&telemetry.NeedHosts != 0 {
		get(func() (err error) {
			s.Hosts, err = k.hosts.get(d, s.Latest, func() ([]api.Host, error) { return query.Hosts(ctx, d, query.Asked{}) })
			return err
		})
	}
	if need&telemetry.NeedZones != 0 {
		get(func() (err error) {
			s.Zones, err = k.zones.get(d, s.Latest, func() ([]api.Zone, error) { return query.Zones(ctx, d, query.Asked{}) })
			return err
		})
	}
	if need&telemetry.NeedNeighbours != 0 {
		get(func() (err error) {
			s.Neighbours, err = k.neighbours.get(d, s.Latest, func() ([]api.Neighbour, error) { return query.Neighbours(ctx, d) })
			return err
		})
	}
	if d.cluster != nil {
		c := d.cluster.show(d.cluster.node.Here())
		s.Cluster = &c
	}
	s.Machine = k.machine.read(d.env.Now())
	s.Health = k.healthOf(s.Ports)
	return s, err
}

// healthOf gives what was read last of ports.
func (k *known) healthOf(ports []api.Port) (out []telemetry.Health) {
	k.readings.Lock()
	defer k.readings.Unlock()
	for i := range ports {
		for _, h := range k.health[ports[i].Name] {
			if h.Valid != 0 {
				out = append(out, h)
			}
		}
	}
	return out
}

// Hasten has the platform read at a pace, within the share of the machine that readings have, until
// end is called.
func (k *known) Hasten(p telemetry.Pace) (end func()) {
	k.readings.Lock()
	k.paces[&p] = true
	k.readings.Unlock()
	k.ask()
	return func() {
		k.readings.Lock()
		delete(k.paces, &p)
		k.readings.Unlock()
		k.ask()
	}
}

func (k *known) pace() (p telemetry.Pace) {
	k.readings.Lock()
	defer k.readings.Unlock()
	for one := range k.paces {
		p.Add(*one)
	}
	return p
}

func (k *known) ask() {
	select {
	case k.asked <- struct{}{}:
	default:
	}
}

// Quick gives the last snapshot with what was read since of ports and the machine: it asks nobody
// else, and waits for no driver.
func (k *known) Quick(ctx context.Context) (*telemetry.Snapshot, error) {
	k.mu.Lock()
	last := k.last
	k.mu.Unlock()
	if last == nil {
		return k.Snapshot(ctx, 0, time.Time{})
	}
	s := *last
	s.Health = k.healthOf(s.Ports)
	if every := k.pace()[telemetry.ReadMachine]; every > 0 {
		k.quick.Lock()
		defer k.quick.Unlock()
		if now := k.d.env.Now(); now.Sub(k.load.At) >= every {
			k.load = k.hurried.read(now)
		}
		if k.load.At.After(s.Machine.At) {
			s.Machine = k.load
		}
	}
	return &s, nil
}

// large is a table that is read again when something has happened since, or after largeAge; but for
// a twentieth of all time at most.
type large[T any] struct {
	part telemetry.Part[T]
	of   uint64 // the newest event then
	cost time.Duration
}

const (
	largeAge   = 10 * time.Second
	largeShare = 20
)

func (l *large[T]) get(d *Daemon, newest *api.Event, read func() ([]T, error)) (telemetry.Part[T], error) {
	begun, event := d.env.Now(), uint64(0)
	if newest != nil {
		event = newest.ID
	}
	age := begun.Sub(l.part.At)
	if !l.part.At.IsZero() && (l.of == event && age < largeAge || age < largeShare*l.cost) {
		return l.part, nil
	}
	rows, err := read()
	if err != nil {
		return l.part, err
	}
	*l = large[T]{telemetry.Part[T]{At: begun, Rows: rows}, event, d.env.Now().Sub(begun)}
	return l.part, nil
}

// Run reads the ports while somebody asks.
func (k *known) Run(ctx context.Context) error {
	for {
		select {
		case <-k.asked:
			k.sample(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sample reads ports until nobody has asked for a while.
func (k *known) sample(ctx context.Context) {
	dp := k.d.env.Dataplane
	if dp == nil {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newSampler(dp, k.d.env.Now)
	go s.run(ctx)
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	set := map[string]telemetry.Pace{}
	k.plan(ctx, s, set)
	for {
		select {
		case list := <-s.out:
			k.take(list)
		case <-k.asked:
			k.plan(ctx, s, set)
			idle.Reset(idleAfter)
		case <-idle.C:
			k.readings.Lock()
			clear(k.health) // what is old is nobody's present state
			k.readings.Unlock()
			return
		case <-ctx.Done():
			return
		}
	}
}

// plan has all ports of now read at the pace that is wanted, and forgets those that are gone.
func (k *known) plan(ctx context.Context, s *sampler, set map[string]telemetry.Pace) {
	var names []string
	if k.d.Do(ctx, func(c *device.Core, _ time.Time) { names = c.PortNames() }) != nil {
		return // it stops
	}
	for name := range set {
		if !slices.Contains(names, name) {
			delete(set, name)
			s.set(name, nil)
			k.readings.Lock()
			delete(k.health, name)
			k.readings.Unlock()
		}
	}
	p := telemetry.Pace{telemetry.ReadDrivers: driverPeriod, telemetry.ReadModules: modulePeriod}
	p.Add(k.pace())
	needs := []errdown.Need{{Fields: fabric.AllFields &^ fabric.FieldsOfModule, Every: p[telemetry.ReadDrivers]}, {Fields: fabric.FieldsOfModule, Every: p[telemetry.ReadModules]}}
	if every := p[telemetry.ReadTotals]; every > 0 && every < p[telemetry.ReadDrivers] {
		needs = append(needs, errdown.Need{Fields: fabric.FieldCounters, Every: every})
	}
	for _, name := range names {
		if set[name] != p {
			set[name] = p
			s.set(name, needs)
		}
	}
}

// take keeps readings.
func (k *known) take(list []sample) {
	k.readings.Lock()
	defer k.readings.Unlock()
	for i := range list {
		kept := k.health[list[i].port]
		lane := ofDriver
		switch want := list[i].want; {
		case want&fabric.FieldsOfModule != 0:
			lane = ofModule
		case want == fabric.FieldCounters:
			lane = ofKernel
		}
		now := telemetry.Health{Port: list[i].port, Health: list[i].health, InRate: -1, OutRate: -1}
		if was := &kept[lane]; lane == ofDriver && was.Has(fabric.FieldCounters) && now.Has(fabric.FieldCounters) {
			span := now.At.Sub(was.At)
			now.InRate = rate(now.Counters.RxBytes, was.Counters.RxBytes, span)
			now.OutRate = rate(now.Counters.TxBytes, was.Counters.TxBytes, span)
		}
		kept[lane] = now
		k.health[list[i].port] = kept
	}
}

// rate is bits a second; negative where the total went back or there is no time between.
func rate(now, was uint64, span time.Duration) float64 {
	if now < was || span <= 0 {
		return -1
	}
	return float64(now-was) * 8 / span.Seconds()
}

// Telemetry implements query.Source.
func (d *Daemon) Telemetry(ctx context.Context, path string) (telemetry.Tree, error) {
	s, err := d.known.Snapshot(ctx, telemetry.NeedsOf(path), time.Time{})
	if err != nil {
		return nil, err
	}
	return telemetry.Read(s), nil
}
