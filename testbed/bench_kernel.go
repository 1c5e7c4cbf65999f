package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// kernel measures how long it takes until netlink tells of a pulled cable.
func (b *bench) kernel(ctx context.Context) ([]time.Duration, error) {
	at := b.truth.info(b.truth.of(benchPulled, "A"))
	ns, err := netns.GetFromPath(b.lab.ns(at.Switch).net)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	type seen struct {
		up bool
		at time.Time
	}
	changes, done := make(chan seen, 64), make(chan struct{})
	updates := make(chan netlink.LinkUpdate)
	defer close(done)
	if err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{Namespace: &ns}); err != nil {
		return nil, err
	}
	go func() {
		for u := range updates {
			if u.Attrs().Name == at.Port {
				select {
				case changes <- seen{hasCarrier(u.Attrs()), time.Now()}:
				default:
				}
			}
		}
	}()
	wait := func(up bool) (time.Time, error) {
		for limit := time.After(demoWait); ; {
			select {
			case c := <-changes:
				if c.up == up {
					return c.at, nil
				}
			case <-ctx.Done():
				return time.Time{}, ctx.Err()
			case <-limit:
				return time.Time{}, fmt.Errorf("netlink does not tell of %s:%s within %s", at.Switch, at.Port, demoWait)
			}
		}
	}
	var out []time.Duration
	for range b.Trials {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
		fault, err := b.lab.Fault(at.Switch, at.Port, false)
		if err != nil {
			return nil, err
		}
		told, err := wait(false)
		if err != nil {
			return nil, err
		}
		out = append(out, told.Sub(fault))
		if _, err := b.lab.Fault(at.Switch, at.Port, true); err != nil {
			return nil, err
		}
		if _, err := wait(true); err != nil {
			return nil, err
		}
	}
	return out, nil
}
