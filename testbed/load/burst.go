package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Burst is many changes at once, each for all clients.
type Burst struct {
	Changes    int     `json:"changes"`
	Deliveries uint64  `json:"deliveries"` // changes times clients: what every client must know in the end
	Seconds    float64 `json:"seconds"`    // until the last client has the last of them
	PerSecond  float64 `json:"deliveries_per_second"`
	// Messages is in how many messages the clients got them: what waits together is
	// told as its outcome, which for changes of different records is all of them.
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	// BoundPerSecond is what the bare loop passes on, and Ratio ours to it.
	BoundPerSecond float64 `json:"bound_deliveries_per_second"`
	Ratio          float64 `json:"ratio"`
	// The same of a bare loop over connections in TLS; zero but in mode tls.
	TLSBoundPerSecond float64 `json:"tls_bound_deliveries_per_second,omitempty"`
	TLSRatio          float64 `json:"tls_ratio,omitempty"`
	// CPU is what the reflector's process used for a million deliveries, in seconds;
	// zero when it is not ours.
	CPU float64 `json:"cpu_seconds_per_million"`
}

// bursts lets the burst hosts come up, their ports fail, and them go.
func (f *fanout) bursts(ctx context.Context) error {
	if f.Burst == 0 {
		return nil
	}
	now := time.Now()
	portOf := func(j int) string { return fmt.Sprintf("burst%d", j) }
	f.say("bursts of %d changes from %d devices", f.Burst, f.Origins)
	left := f.left("bursts")
	var err error
	if f.res.HostBurst, err = f.burst(ctx, "host-burst", func(o *client, j int, u *wire.Update) {
		u.Hosts = []wire.HostRecord{putHost(f.plan.burstHost(j), o.dev, portOf(j), now)}
	}); err != nil {
		return err
	}
	left(1, 3)
	if f.res.FaultBurst, err = f.burst(ctx, "fault-burst", func(o *client, j int, u *wire.Update) {
		u.Downs = []wire.DownRecord{{Device: o.dev, Port: portOf(j), Down: zone.Down{Why: snsd.ReasonLinkDown, Since: now}, Addrs: []netip.Addr{f.plan.burstHost(j)}}}
	}); err != nil {
		return err
	}
	left(2, 3)
	_, err = f.burst(ctx, "", func(o *client, j int, u *wire.Update) {
		h := putHost(f.plan.burstHost(j), o.dev, portOf(j), now)
		h.Op, h.Why = wire.Withdraw, snsd.ReasonAgedOut
		u.Hosts = []wire.HostRecord{h}
	})
	return err
}

// burst sends one change after the other, each as a message, and waits until all
// clients have all. Without a name it is not measured.
func (f *fanout) burst(ctx context.Context, name string, fill func(o *client, j int, u *wire.Update)) (*Burst, error) {
	lists := make([][]*wire.Encoded, len(f.origins))
	for j := range f.Burst {
		k := j % len(f.origins)
		u := f.origins[k].update(f.crew.epoch)
		fill(f.origins[k], j, u)
		e, err := wire.Encode(u)
		if err != nil {
			return nil, err
		}
		lists[k] = append(lists[k], e)
	}
	to := make([]*reader, f.Clients)
	var msgs, bytes uint64
	for i := range to {
		to[i] = f.crew.all[i].reader
		msgs, bytes = msgs-to[i].msgs.Load(), bytes-to[i].bytes.Load()
	}
	var before, after stats
	var err error
	if f.own != nil {
		if before, err = f.own.stats(ctx, false); err != nil {
			return nil, err
		}
	}
	stop := func() error { return nil }
	if name != "" {
		if stop, err = f.own.profile(ctx, f.Profiles, name); err != nil {
			return nil, err
		}
	}
	f.crew.crowd.expect(to, uint64(f.Burst))
	start := make(chan struct{})
	errs := make(chan error, len(f.origins))
	var ready sync.WaitGroup
	for k, o := range f.origins {
		ready.Add(1)
		go func() { errs <- o.pour(lists[k], ready.Done, start) }()
	}
	ready.Wait()
	began := time.Now()
	close(start)
	for range f.origins {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return nil, err
	}
	at, err := f.crew.wait(ctx, f.crew.crowd, 5*time.Minute)
	if err = errors.Join(err, stop()); err != nil || name == "" {
		return nil, err
	}
	b := &Burst{Changes: f.Burst, Deliveries: uint64(f.Burst) * uint64(f.Clients), Seconds: at.Sub(began).Seconds()}
	b.PerSecond = float64(b.Deliveries) / b.Seconds
	for _, r := range to {
		msgs, bytes = msgs+r.msgs.Load(), bytes+r.bytes.Load()
	}
	b.Messages, b.Bytes = msgs, bytes
	if f.own != nil {
		if after, err = f.own.stats(ctx, false); err != nil {
			return nil, err
		}
		b.CPU = (after.CPU - before.CPU).Seconds() / float64(b.Deliveries) * 1e6
	}
	if b.BoundPerSecond, err = f.bareBurst(ctx, f.bare, b); err != nil {
		return nil, err
	}
	b.Ratio = b.PerSecond / b.BoundPerSecond
	if f.bareTLS == nil {
		return b, nil
	}
	if b.TLSBoundPerSecond, err = f.bareBurst(ctx, f.bareTLS, b); err != nil {
		return nil, err
	}
	b.TLSRatio = b.PerSecond / b.TLSBoundPerSecond
	return b, nil
}

// bareBurst is a bound: the messages of single faults, as many, through a bare loop;
// it gives the deliveries a second.
func (f *fanout) bareBurst(ctx context.Context, bare *bareCrew, b *Burst) (float64, error) {
	frame := *f.crew.all[0].frame.Load()
	out := make([]byte, 0, f.Burst*len(frame))
	for range f.Burst {
		out = append(out, frame...)
	}
	bare.crowd.expect(bare.to, uint64(f.Burst))
	began := time.Now()
	go func() { _, _ = bare.from[1].Write(out) }()
	at, err := f.crew.wait(ctx, bare.crowd, 5*time.Minute)
	if err != nil {
		return 0, fmt.Errorf("bare loop: %w", err)
	}
	return float64(b.Deliveries) / at.Sub(began).Seconds(), nil
}
