package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
)

// Drain implements api.Source.
func (d *Daemon) Drain(ctx context.Context, o api.DrainOrder) (api.Drained, error) {
	wait := device.DrainWait
	if o.Wait != nil {
		wait = time.Duration(*o.Wait)
	}
	if wait < 0 || wait > device.MaxDrainWait {
		return api.Drained{}, fmt.Errorf("%w: wait of %v: allowed are 0s..%v", api.ErrInvalid, wait, device.MaxDrainWait)
	}
	var names []string
	if o.Port != "" {
		names = []string{o.Port}
	}
	var done api.Drained
	var err error
	doErr := d.device.Do(ctx, func(c *device.Core, now time.Time) {
		if o.Undo {
			done, err = c.Undrain(names, now)
		} else {
			done, err = c.Drain(names, wait, now)
		}
	})
	if doErr != nil {
		return api.Drained{}, doErr
	}
	if len(done.Ports) > 0 {
		what := "draining"
		if o.Undo {
			what = "end of draining"
		}
		d.ordered(ctx, what, done.Ports...)
	}
	return done, err
}

// ClearHost implements api.Source.
func (d *Daemon) ClearHost(ctx context.Context, host netip.Addr) (cleared []api.HostCleared, err error) {
	host = host.Unmap()
	if doErr := d.device.Do(ctx, func(c *device.Core, now time.Time) { cleared, err = c.ClearHost(host, now) }); doErr != nil {
		return nil, doErr
	}
	for _, h := range cleared {
		var macs []string
		for _, m := range h.MACs {
			macs = append(macs, m.String())
		}
		fields := callerFields(ctx)
		fields["change"] = "cleared"
		d.log.Append(api.Event{Time: d.env.Now(), Kind: "host", Port: h.Port, Addr: host.String(), Fields: fields,
			Text: fmt.Sprintf("host %s (%s) of port %s was cleared by %s", host, strings.Join(macs, ", "), h.Port, api.By(ctx))})
	}
	return cleared, err
}

const (
	testNoticeTries = 3
	testNoticeEvery = time.Second // between the tries
)

// TestNotice implements api.Source.
func (d *Daemon) TestNotice(ctx context.Context, host netip.Addr) ([]api.TestNotice, error) {
	host = host.Unmap()
	var list []api.TestNotice
	var elsewhere string
	if err := d.device.Do(ctx, func(c *device.Core, _ time.Time) { list, elsewhere = c.TestTargets(host) }); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("host %s: %w on a port of this device%s", host, api.ErrNotFound, elsewhere)
	}
	for i := range list {
		if err := d.testOver(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// testOver sends test notices to a host over one port until one is acked.
func (d *Daemon) testOver(ctx context.Context, t *api.TestNotice) error {
	acked := make(chan time.Duration, 1)
	defer func() {
		_ = d.device.Do(context.WithoutCancel(ctx), func(c *device.Core, _ time.Time) { c.EndTestNotices(acked) })
	}()
	for range testNoticeTries {
		var err error
		if doErr := d.device.Do(ctx, func(c *device.Core, now time.Time) { err = c.SendTestNotice(t.Host, t.Port, acked, now) }); doErr != nil {
			return doErr
		}
		if err != nil {
			t.Error = err.Error()
			return nil
		}
		t.Sent++
		timer := time.NewTimer(testNoticeEvery)
		select {
		case rtt := <-acked:
			timer.Stop()
			us := rtt.Microseconds()
			t.Acked, t.RoundTrip = true, &us
			return nil
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// RecoverPort implements api.Source.
func (d *Daemon) RecoverPort(ctx context.Context, port string) error {
	return d.byHand(ctx, port, "recovery", (*device.Core).RecoverPort)
}

// ShutPort implements api.Source.
func (d *Daemon) ShutPort(ctx context.Context, port string) error {
	return d.byHand(ctx, port, "shutting", (*device.Core).ShutPort)
}

func (d *Daemon) byHand(ctx context.Context, port, what string, do func(*device.Core, string, time.Time) error) error {
	var err error
	if doErr := d.device.Do(ctx, func(c *device.Core, now time.Time) { err = do(c, port, now) }); doErr != nil {
		return doErr
	}
	if err == nil {
		d.ordered(ctx, what, port)
	}
	return err
}

// ordered makes known who asked for what is done to ports.
func (d *Daemon) ordered(ctx context.Context, what string, ports ...string) {
	e := api.Event{Time: d.env.Now(), Kind: "port", Text: fmt.Sprintf("%s of port %s: ordered by %s", what, some(ports[:min(len(ports), mostNamed)], len(ports), ""), api.By(ctx)),
		Fields: callerFields(ctx)}
	if len(ports) == 1 {
		e.Port = ports[0]
	}
	d.log.Append(e)
}
