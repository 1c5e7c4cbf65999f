package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// SyncOptions say how the full sync of a client that asks for everything is measured.
type SyncOptions struct {
	Options
	Zones   int // of a reflector of one's own
	Members int // of each zone, all of them addresses of hosts that are there
	HostsUp int // hosts, spread over the feeders
	Feeders int // devices with hosts
	Count   int // full syncs
}

// SyncResult is what came out.
type SyncResult struct {
	Machine   Machine `json:"machine"`
	Reflector string  `json:"reflector"`
	Auth      string  `json:"auth"`
	Zones     int     `json:"zones"` // that the client got
	Hosts     int     `json:"hosts"` // and faults
	Members   int     `json:"memberships,omitempty"`
	Bytes     uint64  `json:"bytes"`
	Messages  uint64  `json:"messages"`
	// Sync runs from the dial to the word that it is complete; its bound is a bare
	// socket with as many bytes.
	Sync Compared `json:"sync"`
	// Fault is a fault between two other devices that happens while the full sync runs,
	// until the other one has it.
	Fault *Quantiles `json:"fault_meanwhile,omitempty"`
	// Of a reflector of one's own: from its start until it listened, until it knew
	// all hosts, and its memory in MiB: in use before the syncs, and the most meanwhile.
	Start  time.Duration `json:"start_ns,omitempty"`
	Feed   time.Duration `json:"feed_ns,omitempty"`
	Before float64       `json:"rss_before_mib,omitempty"`
	Peak   float64       `json:"rss_peak_mib,omitempty"`
}

// syncRun is one run.
type syncRun struct {
	SyncOptions
	own    *ownReflector
	target *Target
	crew   *crew
	next   int // device id of the next client
	res    SyncResult
}

// Sync measures the full sync of a client that asks for everything.
func Sync(ctx context.Context, opt SyncOptions) (*SyncResult, error) {
	r := &syncRun{SyncOptions: opt, target: opt.Live, res: SyncResult{Machine: machine()}}
	need := opt.Count
	if opt.Live == nil {
		need += opt.Feeders + 1
		if err := opt.Hosts.holds(opt.HostsUp); err != nil {
			return nil, fmt.Errorf("hosts: %w", err)
		}
	}
	if err := errors.Join(opt.Devices.holds(need), raiseFiles(need+16)); err != nil {
		return nil, err
	}
	defer r.close()
	if opt.Live != nil {
		r.res.Reflector = opt.Live.Addr.String()
	} else if err := r.feed(ctx); err != nil {
		return nil, err
	}
	r.res.Auth = r.target.Auth.String()
	if err := r.measure(ctx); err != nil {
		return nil, err
	}
	return &r.res, nil
}

func (r *syncRun) close() {
	if r.crew != nil {
		r.crew.close()
	}
	if r.own != nil {
		r.own.close()
	}
}

// zones lets each host be in as many zones as every other, with its neighbours.
func (r *syncRun) zones() zone.Set {
	set := zone.Set{Zones: make([]zone.Zone, r.Zones)}
	for i := range set.Zones {
		z := &set.Zones[i]
		z.Name = fmt.Sprintf("%s%06d", ZonePrefix, i)
		for m := range r.Members {
			z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: r.Hosts.at((i*r.Members + m) % r.HostsUp)})
		}
	}
	return set
}

// feed starts a reflector and lets all hosts appear.
func (r *syncRun) feed(ctx context.Context) (err error) {
	r.say("a reflector with %d zones of %d members", r.Zones, r.Members)
	if r.own, err = startReflector(ctx, r.Process, r.Auth, r.zones()); err != nil {
		return err
	}
	r.target, r.res.Reflector = &r.own.Target, "a process of its own"
	r.res.Start, r.res.Members = r.own.began, r.Zones*r.Members
	began := time.Now()
	r.say("%d hosts on %d devices", r.HostsUp, r.Feeders)
	if r.crew, err = assemble(ctx, r.target, r.Devices.list(0, r.Feeders), nil); err != nil {
		return err
	}
	r.next = r.Feeders
	for i, c := range r.crew.all {
		var part []wire.HostRecord
		for h := i; h < r.HostsUp; h += r.Feeders {
			part = append(part, putHost(r.Hosts.at(h), c.dev, portOf(h), began))
			if len(part) == partRecords || h+r.Feeders >= r.HostsUp {
				u := c.update(r.crew.epoch)
				u.Hosts, part = part, nil
				if err := c.send(u); err != nil {
					return err
				}
			}
		}
	}
	// A client that asks for everything tells when they are all there.
	all, err := connect(ctx, r.target, r.Devices.at(r.next), wire.CapInterestAll, r.crew.epoch, newCrowd())
	if err != nil {
		return err
	}
	r.next++
	r.crew.mu.Lock()
	r.crew.all = append(r.crew.all, all)
	r.crew.mu.Unlock()
	go all.run()
	if err := all.send(&wire.EndOfSync{Epoch: r.crew.epoch}); err != nil {
		return err
	}
	left := r.left("hosts")
	err = r.crew.until(ctx, 10*time.Minute, "all hosts", func() bool {
		left(int(all.recs.Load()), r.HostsUp)
		return all.recs.Load() >= uint64(r.HostsUp) && all.syncs.Load() > 0
	})
	r.res.Feed = time.Since(began)
	return err
}

func portOf(h int) string { return fmt.Sprint("Ethernet", h) }

// measure lets one client after the other get everything.
func (r *syncRun) measure(ctx context.Context) error {
	var ours, bound, faults []time.Duration
	if r.own != nil {
		s, err := r.own.resetPeak(ctx)
		if err != nil {
			return err
		}
		r.res.Before = float64(s.RSS) / (1 << 20)
	}
	stop, err := r.own.profile(ctx, r.Profiles, "sync")
	if err != nil {
		return err
	}
	r.say("%d full syncs", r.Count)
	left := r.left("full syncs")
	for n := range r.Count {
		left(n, r.Count)
		d, fault, err := r.once(ctx, n)
		if err != nil {
			return err
		}
		ours = append(ours, d)
		if fault > 0 {
			faults = append(faults, fault)
		}
		if d, err = r.bare(ctx); err != nil {
			return err
		}
		bound = append(bound, d)
	}
	r.res.Sync = compare(ours, bound)
	if err := stop(); err != nil {
		return err
	}
	if len(faults) > 0 {
		q := quantiles(faults)
		r.res.Fault = &q
	}
	if r.own == nil {
		return nil
	}
	s, err := r.own.stats(ctx, false)
	r.res.Peak = float64(s.Peak) / (1 << 20)
	return err
}

// once is one full sync, and a fault while it runs.
func (r *syncRun) once(ctx context.Context, n int) (took, fault time.Duration, err error) {
	epoch := epochOf(time.Now())
	began := time.Now()
	c, err := connect(ctx, r.target, r.Devices.at(r.next), wire.CapInterestAll, epoch, newCrowd())
	if err != nil {
		return 0, 0, err
	}
	r.next++
	go c.run()
	defer c.goodbye()
	if err := c.send(&wire.EndOfSync{Epoch: epoch}); err != nil {
		return 0, 0, err
	}
	told := make(chan error, 1)
	if r.own != nil && r.Feeders > 1 && r.Members > 1 {
		go func() {
			var err error
			fault, err = r.fault(ctx, n%2 == 0)
			told <- err
		}()
	} else {
		told <- nil
	}
	for c.syncs.Load() == 0 {
		if err := c.ended(); err != nil {
			return 0, 0, err
		}
		if time.Since(began) > 5*time.Minute {
			return 0, 0, errors.New("a full sync was not complete within 5 minutes; does the reflector still wait for devices it knew?")
		}
		if err := pause(ctx, 200*time.Microsecond); err != nil {
			return 0, 0, err
		}
	}
	took = time.Since(began)
	r.res.Bytes, r.res.Messages = c.bytes.Load(), c.msgs.Load()
	r.res.Zones, r.res.Hosts = int(c.zones.Load()), int(c.recs.Load())
	return took, fault, <-told
}

// fault lets the port of the first host fail and recover in turn; the second device
// has a host in common zones.
func (r *syncRun) fault(ctx context.Context, on bool) (time.Duration, error) {
	from, to := r.crew.all[0], r.crew.all[1]
	u := from.update(r.crew.epoch)
	d := wire.DownRecord{Device: from.dev, Port: portOf(0), Addrs: []netip.Addr{r.Hosts.at(0)}}
	if on {
		d.Down = zone.Down{Why: snsd.ReasonLinkDown, Since: u.SentAt}
	}
	u.Downs = []wire.DownRecord{d}
	r.crew.crowd.expect([]*reader{to.reader}, 1)
	began := time.Now()
	if err := from.send(u); err != nil {
		return 0, err
	}
	at, err := r.crew.wait(ctx, r.crew.crowd, time.Minute)
	return at.Sub(began), err
}

// bare takes as many bytes from a bare socket.
func (r *syncRun) bare(ctx context.Context) (time.Duration, error) {
	var loop *bare
	addr := ""
	if r.own != nil {
		addr = r.own.bare
	} else {
		var err error
		if loop, err = newBare(); err != nil {
			return 0, err
		}
		defer loop.close()
		addr = loop.l.Addr().String()
	}
	began := time.Now()
	nc, err := dialBare(addr, 0, false)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	sent := make(chan error, 1)
	go func() {
		var err error
		if loop != nil {
			loop.send(r.res.Bytes)
		} else {
			_, err = r.own.ask(ctx, request{Op: "send", Bytes: r.res.Bytes})
		}
		sent <- err
	}()
	if _, err := io.CopyN(io.Discard, nc, int64(r.res.Bytes)); err != nil {
		return 0, fmt.Errorf("bare socket: %w", err)
	}
	took := time.Since(began)
	return took, <-sent
}
