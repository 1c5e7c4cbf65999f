package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
)

// cleanLimit bounds the removal of what a run has left, which goes on when the run was
// interrupted.
const cleanLimit = time.Minute

// cleanUp withdraws every host of the run and removes its zones.
func (f *fanout) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanLimit)
	defer cancel()
	f.say("withdrawing the hosts, removing the zones %s*", ZonePrefix)
	var errs []error
	if f.crew != nil {
		errs = append(errs, f.withdraw(), f.gone(ctx))
	}
	// Not before the hosts are gone: without their zones they would come into the
	// default zone, where others hear of them.
	if errors.Join(errs...) == nil {
		left := f.left("zones")
		for i, name := range f.added {
			left(i, len(f.added))
			errs = append(errs, f.LiveZones.RemoveZone(ctx, name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("not all of the benchmark is gone from %v, what is left has ids in %v, hosts in %v and zones %s*: %w", f.target.Addr, f.Devices, f.Hosts, ZonePrefix, err)
	}
	return nil
}

// withdraw lets each device withdraw all that it may have said.
func (f *fanout) withdraw() error {
	for i, c := range f.crew.all {
		u := c.update(f.crew.epoch)
		gone := func(h wire.HostRecord) {
			h.Op, h.Why = wire.Withdraw, snsd.ReasonAgedOut
			u.Hosts = append(u.Hosts, h)
		}
		switch o := i - f.Clients; {
		case o < 0:
			gone(putHost(f.Hosts.at(i), c.dev, portZone, time.Time{}))
		case o == 0:
			gone(putHost(f.plan.zoneHost(), c.dev, portZone, time.Time{}))
			gone(putHost(f.plan.allHost(), c.dev, portAll, time.Time{}))
			fallthrough
		default:
			for j := o; j < f.plan.burst; j += f.plan.origins {
				gone(putHost(f.plan.burstHost(j), c.dev, fmt.Sprintf("burst%d", j), time.Time{}))
			}
		}
		for part := range slices.Chunk(u.Hosts, partRecords) {
			m := c.update(f.crew.epoch)
			m.Hosts = part
			if err := c.send(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// partRecords is how many records go into one Update.
const partRecords = 256

// gone waits until no host is left in the zones of the run.
func (f *fanout) gone(ctx context.Context) error {
	for {
		n, err := f.LiveZones.Hosts(ctx, ZonePrefix)
		if err != nil || n == 0 {
			return err
		}
		if pause(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("%d hosts are still in them", n)
		}
	}
}
