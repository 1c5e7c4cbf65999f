package daemon

import (
	"context"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

// Halt implements api.Source.
func (d *Daemon) Halt(ctx context.Context, o api.HaltOrder) (api.Mode, error) {
	return d.setMode(ctx, func(c *device.Core, now time.Time) error {
		return c.Halt(api.Halt{OpenZoning: o.OpenZoning, Reason: o.Reason, By: api.By(ctx), Since: now.Round(0)}, o.Fabric, now)
	})
}

// Resume implements api.Source.
func (d *Daemon) Resume(ctx context.Context, o api.HaltOrder) (api.Mode, error) {
	return d.setMode(ctx, func(c *device.Core, now time.Time) error { return c.Resume(o.Fabric, o.Force, now) })
}

func (d *Daemon) setMode(ctx context.Context, set func(*device.Core, time.Time) error) (m api.Mode, err error) {
	doErr := d.device.Do(ctx, func(c *device.Core, now time.Time) {
		err = set(c, now)
		m = c.Mode()
	})
	if doErr != nil {
		return m, doErr
	}
	if err != nil {
		return m, err
	}
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "mode", Text: "mode, ordered by " + api.By(ctx) + ": " + m.String(), Fields: callerFields(ctx)})
	return m, nil
}
